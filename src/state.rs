//! The state that this installation keeps on its own disk: who it is, what it saw last, and what it did.
//!
//! Everything here is a convenience or a detector. What is owned stands in the inventories on the clusters; losing
//! this folder costs time and a new identity, never an object.

pub(crate) mod append;
pub(crate) mod notes;
pub(crate) mod owner;
pub(crate) mod requested;
pub(crate) mod store;
pub(crate) mod suspension;
pub(crate) mod timekeeping;

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gatewright_engine::text::hex;

use crate::basics::private::{above, no_link, try_lock, write_whole};
use notes::{Notes, UnderWay};

/// The mode of the state folder and those in it: for their owner alone.
const PRIVATE: u32 = 0o700;

/// The interval between two tries to be the one who makes the id; it takes a few milliseconds.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The most tries: whoever holds the lock for seconds has stopped.
const MOST_TRIES: usize = 2_000;

/// The state folder.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
    /// The files that were changed, where somebody wants to know.
    notes: Option<Arc<Notes>>,
}

/// Held while a process may change clusters; released when it is dropped, or when the process ends.
#[derive(Debug)]
pub struct Lock(File);

/// The state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A file cannot be read.
    #[error("cannot read {0:?}")]
    Read(PathBuf, #[source] io::Error),
    /// A file cannot be written.
    #[error("cannot write {0:?}")]
    Write(PathBuf, #[source] io::Error),
    /// The file with the id of the installation holds none.
    #[error("{0:?} is damaged: it is to hold 32 hexadecimal digits")]
    Damaged(PathBuf),
    /// Another process uses the folder.
    #[error("the state directory {0:?} is in use by another gatewright, process {1}")]
    Locked(PathBuf, String),
}

impl State {
    /// Opens the folder; it is made when something is written.
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), notes: None }
    }

    /// Has this state, and each clone that is made of it from now on, note which files are written and removed.
    #[must_use]
    pub fn noting(self) -> Self {
        Self { notes: Some(Arc::default()), ..self }
    }

    /// Returns the notes, if they are made.
    pub(crate) fn notes(&self) -> Option<&Arc<Notes>> {
        self.notes.as_ref()
    }

    /// Tells whether what is too old may be deleted by the clock of this host.
    pub(crate) fn may_expire(&self) -> bool {
        self.notes.as_ref().is_none_or(|notes| notes.may_expire())
    }

    /// Notes that a file below the folder was written or removed, by whoever does that without [`State::write`]. A folder
    /// stands for all that is in it. It is to be called after the change: a note says that there is something to read.
    pub fn touched(&self, path: impl AsRef<Path>) {
        if let Some(notes) = &self.notes {
            notes.add(self.path(path));
        }
    }

    /// Says that a file below the folder, or all in a folder, is being changed until the result is dropped; it is to be noted
    /// before that. A file that is missing was removed on purpose where this is said.
    pub(crate) fn changing(&self, path: impl AsRef<Path>) -> Option<UnderWay<'_>> {
        self.notes.as_ref().map(|notes| notes.under_way(self.path(path)))
    }

    /// Makes sure that the folder can be read, if it is there: what nobody may read is not nothing.
    pub fn examine(&self) -> Result<(), StateError> {
        match fs::read_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::Read(self.folder.clone(), error)),
            _ => Ok(()),
        }
    }

    /// Returns a path below the folder.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// Makes sure that no other process changes clusters with this state.
    pub fn lock(&self) -> Result<Lock, StateError> {
        let path = self.path("lock");
        let write = |error| StateError::Write(path.clone(), error);
        let Some(mut lock) = self.try_lock(&path)? else {
            let holder = fs::read_to_string(&path).ok().filter(|holder| !holder.is_empty());
            return Err(StateError::Locked(self.folder.clone(), holder.unwrap_or_else(|| "unknown".to_owned())));
        };
        lock.0.set_len(0).map_err(write)?;
        write!(lock.0, "{}", std::process::id()).map_err(write)?;
        Ok(lock)
    }

    /// Tells whether the process that has the folder is there; where that is not known, it is.
    pub(crate) fn is_held(&self) -> bool {
        let holder = fs::read_to_string(self.path("lock")).unwrap_or_default();
        let Ok(process) = holder.trim().parse::<u32>() else { return true };
        !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists()
    }

    /// Tells whether the lock of the folder still is what keeps others out: the folder may have been removed or replaced.
    pub fn is_kept_by(&self, lock: &Lock) -> bool {
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let there = fs::metadata(self.path("lock")).map(identity);
        lock.0.metadata().map(identity).is_ok_and(|held| there.is_ok_and(|there| there == held))
    }

    /// Makes sure that no other round of a sync on a cluster is under way, in whatever process; `None` if there is one.
    pub fn lock_round(&self, sync: &str, cluster: &str) -> Result<Option<Lock>, StateError> {
        self.try_lock(&self.path(format!("rounds/{sync}/{cluster}")))
    }

    /// Makes sure that nobody else notes how far the rollouts of a sync are. It is an error if somebody does that for longer
    /// than it can take.
    pub(crate) fn lock_rollouts(&self, sync: &str) -> Result<Lock, StateError> {
        const TRIES: u32 = 200;
        let path = self.path(format!("rollouts/{sync}.lock"));
        for _ in 0..TRIES {
            if let Some(lock) = self.try_lock(&path)? {
                return Ok(lock);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(StateError::Write(path, io::ErrorKind::ResourceBusy.into()))
    }

    /// Makes sure that nobody else compares the folder with the object store; `None` if somebody does.
    pub(crate) fn try_lock_shared(&self) -> Result<Option<Lock>, StateError> {
        self.try_lock(&self.path("shared.lock"))
    }

    /// Makes sure that nobody else makes one of the shared files alike, of those that have a number in common; `None` if
    /// somebody does.
    pub(crate) fn try_lock_files(&self, number: u8) -> Result<Option<Lock>, StateError> {
        self.try_lock(&self.path(format!("shared/locks/{number:02x}")))
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>, StateError> {
        let ready = no_link(&self.folder, path).and_then(|()| make(above(path), PRIVATE));
        let locked = ready.and_then(|()| close(&self.folder)).and_then(|()| try_lock(path));
        locked.map(|file| file.map(Lock)).map_err(|error| StateError::Write(path.to_owned(), error))
    }

    /// Returns the random id of this installation, if it has one already.
    pub fn installation(&self) -> Result<Option<String>, StateError> {
        let Some(bytes) = self.read("installation")? else { return Ok(None) };
        let unreadable = |error| StateError::Read(self.path("installation"), io::Error::other(error));
        let text = String::from_utf8(bytes).map_err(unreadable)?;
        // Whoever goes on with another one is not known to any cluster any more, and is told to take over what is its own.
        let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.trim() {
            id if is_id(id) => Ok(Some(id.to_owned())),
            _ => Err(StateError::Damaged(self.path("installation"))),
        }
    }

    /// Returns the random id of this installation, made when it is asked for the first time.
    pub fn make_installation(&self) -> Result<String, StateError> {
        if let Some(id) = self.installation()? {
            return Ok(id);
        }
        self.adopt_installation(&new_installation())
    }

    /// Makes this the id of this installation, unless it has one; returns the one that it has.
    pub(crate) fn adopt_installation(&self, id: &str) -> Result<String, StateError> {
        // A plan may be made while a daemon starts: whoever comes second is the same installation.
        let _making = self.wait_to_lock("installation.lock")?;
        if let Some(id) = self.installation()? {
            return Ok(id);
        }
        self.write("installation", id.as_bytes())?;
        Ok(id.to_owned())
    }

    /// Takes a lock that nobody holds for long.
    pub(crate) fn wait_to_lock(&self, path: &str) -> Result<Lock, StateError> {
        let path = self.path(path);
        for _ in 0..MOST_TRIES {
            if let Some(lock) = self.try_lock(&path)? {
                return Ok(lock);
            }
            thread::sleep(LOOK_AGAIN);
        }
        Err(StateError::Write(path, io::ErrorKind::TimedOut.into()))
    }

    /// Reads a file below the folder; `None` if there is no such file.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.path(path);
        match no_link(&self.folder, &path).and_then(|()| fs::read(&path)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::Read(path, error)),
        }
    }

    /// Writes a file, whole or not at all, readable for nobody else; when this returns it is on the disk.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), StateError> {
        let written = self.write_unnoted(&path, bytes);
        self.touched(path);
        written
    }

    /// Writes a file as [`State::write`] does, and does not note it: it is what others have.
    pub(crate) fn write_unnoted(&self, path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), StateError> {
        let path = self.path(path);
        no_link(&self.folder, &path).map_err(|error| StateError::Write(path.clone(), error))?;
        write_file(&path, bytes)
    }

    /// Removes a file below the folder; one that is not there is no error.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<(), StateError> {
        let _changing = self.changing(&path);
        let removed = self.remove_unnoted(&path);
        self.touched(path);
        removed
    }

    /// Removes a file as [`State::remove`] does, and does not note it: others do not have it either.
    pub(crate) fn remove_unnoted(&self, path: impl AsRef<Path>) -> Result<(), StateError> {
        let path = self.path(path);
        match no_link(&self.folder, &path).and_then(|()| fs::remove_file(&path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::Write(path, error)),
            _ => Ok(()),
        }
    }

    /// Gives a file below the folder another name, with the folders that it takes; what has that name already stays, and the
    /// file goes.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), StateError> {
        let (from, to) = (self.path(from), self.path(to));
        let _changing = self.changing(&from);
        let renamed = no_link(&self.folder, &from).and_then(|()| no_link(&self.folder, &to)).and_then(|()| {
            if to.exists() {
                return fs::remove_file(&from);
            }
            make(above(&to), PRIVATE)?;
            fs::rename(&from, &to)?;
            File::open(above(&to))?.sync_all()
        });
        self.touched(&from);
        self.touched(&to);
        match renamed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::Write(to, error)),
            _ => Ok(()),
        }
    }

    /// Returns the names in a folder below the folder, sorted; none if it is not there, or is a link.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let path = self.path(path);
        if no_link(&self.folder, &path).is_err() {
            return Vec::new();
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// Returns a random id for an installation.
pub(crate) fn new_installation() -> String {
    hex(&rand::random::<[u8; 16]>())
}

/// Writes a file and the folders that it is in, whole or not at all, readable for nobody else; when this returns it is
/// on the disk.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    write_for(path, bytes, 0o600, PRIVATE)
}

/// Writes a file as [`write_file`] does, but readable for everybody who may enter its folder.
pub fn share_file(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    write_for(path, bytes, 0o644, 0o755)
}

fn write_for(path: &Path, bytes: &[u8], mode: u32, folder_mode: u32) -> Result<(), StateError> {
    let written = make(above(path), folder_mode).and_then(|()| write_whole(path, bytes, mode));
    written.map_err(|error| StateError::Write(path.to_owned(), error))
}

/// Makes a folder and those above it, each of them on the disk before anything is in it.
fn make(folder: &Path, mode: u32) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    make(above(folder), mode)?;
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.and_then(|()| File::open(above(folder))?.sync_all()),
    }
}

/// Closes the state folder to everybody else; an earlier version left it open. Whoever may not do that does not own it.
fn close(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.mode() & 0o077 != 0 {
        drop(fs::set_permissions(folder, Permissions::from_mode(PRIVATE)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::store::Store;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_installation_keeps_its_id() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("new"));
        assert_eq!(state.installation().expect("nothing is wrong"), None);
        let id = state.make_installation().expect("it is written");
        assert_eq!(id.len(), 32);
        assert_eq!(state.make_installation().expect("it is read"), id);
    }

    #[test]
    fn two_that_begin_at_once_are_one_installation() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("new"));
        let barrier = std::sync::Barrier::new(8);
        let make = || {
            barrier.wait();
            state.make_installation().expect("it is written")
        };
        let ids: BTreeSet<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        assert_eq!(ids, BTreeSet::from([state.installation().expect("it is read").expect("it is there")]));
    }

    #[test]
    fn two_processes_do_not_share_a_state() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        let lock = state.lock().expect("nobody holds it");
        assert!(matches!(state.lock(), Err(StateError::Locked(..))));
        drop(lock);
        assert!(state.lock().is_ok());
    }

    #[test]
    fn a_sync_has_one_round_at_a_time_on_a_cluster() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("new"));
        let is_free = |cluster| state.lock_round("edge", cluster).expect("it can be written").is_some();
        let lock = state.lock_round("edge", "a").expect("it can be written");
        assert!(lock.is_some() && !is_free("a") && is_free("b"));
        drop(lock);
        assert!(is_free("a"));
    }

    #[test]
    fn the_folder_is_for_nobody_else_and_no_name_in_it_is_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("state"));
        let mode = |path: &str| fs::metadata(state.path(path)).expect("it is there").mode() & 0o777;
        let seen = Store::<u8>::new("seen");
        seen.write(&state, &["a", "b"], &1).expect("it is written");
        assert_eq!([mode(""), mode("seen"), mode("seen/a"), mode("seen/a/b.json")], [0o700, 0o700, 0o700, 0o600]);
        // As an earlier version has left it.
        fs::set_permissions(state.path(""), Permissions::from_mode(0o755)).expect("a test may");
        let lock = state.lock().expect("nobody holds it");
        assert_eq!([mode(""), mode("lock")], [0o700, 0o600]);
        drop(lock);

        let theirs = folder.path().join("theirs");
        fs::write(&theirs, "1").expect("a test may");
        for name in ["lock", "installation", "seen/a/c.json"] {
            drop(fs::remove_file(state.path(name)));
            std::os::unix::fs::symlink(&theirs, state.path(name)).expect("a test may");
        }
        fs::create_dir(folder.path().join("others")).expect("a test may");
        std::os::unix::fs::symlink(folder.path().join("others"), state.path("rounds")).expect("a test may");
        assert!(state.lock().is_err() && state.lock_round("a", "b").is_err());
        assert!(state.installation().is_err() && state.make_installation().is_err());
        assert_eq!(seen.read(&state, &["a", "c"]), None);
        assert!(seen.write(&state, &["a", "c"], &2).is_err() && seen.remove(&state, &["a", "c"]).is_err());
        assert_eq!(fs::read_to_string(&theirs).ok().as_deref(), Some("1"));
        assert_eq!(fs::read_dir(folder.path().join("others")).map(Iterator::count).ok(), Some(0));
    }
}
