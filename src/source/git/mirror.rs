//! The bare repository on disk that a remote one is fetched into.
//!
//! It is a cache: whatever is wrong with it, it is thrown away and fetched again.
//! It holds the newest commit and what is left of older ones, never their whole history, and no work tree.
//! libgit2 does not tidy up, so a mirror that has become untidy is thrown away as well.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use git2::{Oid, Repository, RepositoryInitOptions};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use crate::basics::private::try_lock;
use crate::source::Reason;

/// The most packs and their indexes that a mirror may have: each fetch leaves two files, one that was cut short leaves
/// one.
const MAX_PACK_FILES: usize = 400;

/// The pause between two tries of a lock that somebody else holds.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The place of the mirror of one source, and the exclusive right to it.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Another process may look at the same source. The kernel unlocks when the file is closed, whatever happens.
    _lock: File,
}

/// A mirror cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {folder:?}, which holds copies of repositories")]
struct DiskError {
    folder: PathBuf,
    source: io::Error,
}

impl Place {
    /// Waits for the exclusive right to the mirror of a name below a folder, until cancelled.
    pub(super) fn take(folder: &Path, name: &str, cancelled: &CancellationToken) -> Result<Self, Failure> {
        let fail = |source| disk_failure(folder, source);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let path = folder.join(format!("{name}.lock"));
        loop {
            if let Some(lock) = try_lock(&path).map_err(fail)? {
                return Ok(Self { folder: folder.join(format!("{name}.git")), _lock: lock });
            }
            if cancelled.is_cancelled() {
                return Err(Failure::new(Reason::Unreachable, "another process is busy with the same repository"));
            }
            thread::sleep(LOCK_PAUSE);
        }
    }

    /// Opens the mirror, which is empty if there was none.
    pub(super) fn open(&self) -> Result<Repository, Failure> {
        if self.folder.is_symlink() {
            return Err(disk_failure(&self.folder, io::Error::other("it is a symbolic link, and is not followed")));
        }
        let repository = if self.folder.exists() {
            Repository::open_bare(&self.folder).map_err(|error| Failure::of_mirror(&error))?
        } else {
            create(&self.folder)?
        };
        stay_on_host(&repository).map_err(|error| Failure::of_mirror(&error))?;
        Ok(repository)
    }

    pub(super) fn discard(&self) -> Result<(), Failure> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk_failure(&self.folder, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Tells whether a mirror has a commit, with all its files.
///
/// What a server sends is put in its place at once and as a whole, so that the commit speaks for the rest.
pub(super) fn has(repository: &Repository, commit: Oid) -> bool {
    repository.find_object(commit, None).is_ok()
}

/// Tells whether a mirror has become so untidy that it should be thrown away.
pub(super) fn is_worn(repository: &Repository) -> bool {
    let packs = fs::read_dir(repository.path().join("objects/pack"));
    packs.is_ok_and(|files| files.count() > MAX_PACK_FILES)
}

fn create(folder: &Path) -> Result<Repository, Failure> {
    let mut options = RepositoryInitOptions::new();
    // Templates are the machine's, and may bring hooks.
    options.bare(true).no_reinit(true).external_template(false);
    Repository::init_opts(folder, &options).map_err(|error| Failure::of_mirror(&error))
}

/// Keeps libgit2 from following a redirect to another host; by its own default it does, for the first request.
///
/// Connecting takes no such option, but it looks into the configuration of the repository.
fn stay_on_host(repository: &Repository) -> Result<(), git2::Error> {
    const SETTING: &str = "http.followRedirects";
    let mut config = repository.config()?;
    if config.snapshot()?.get_str(SETTING).is_ok_and(|value| value == "false") {
        return Ok(());
    }
    config.set_str(SETTING, "false")
}

fn disk_failure(folder: &Path, source: io::Error) -> Failure {
    let hint = "Let the user that gatewright runs as write to `stateDir`, and look whether its disk is full.";
    Failure::new(Reason::Invalid, DiskError { folder: folder.to_owned(), source }).hint(hint)
}
