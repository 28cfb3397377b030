//! A git repository as a source, read through libgit2 and without the `git` program.
//!
//! A poll first lists what the server has, and fetches only when the wanted commit is another one; then it reads the
//! commit's files from the object database.
//! Nothing in a repository is ever run or obeyed: no hooks, no configuration, no submodules, no links to elsewhere.
//! The machine's and the user's git configuration do not count either, so that a poll depends on the config file only.
//!
//! Left out: proxies, partial clones, Git LFS, and `SHA-256` repositories, which libgit2 cannot read.

pub mod address;
mod conversation;
mod credentials;
mod failure;
mod known_hosts;
mod limits;
mod local;
mod mirror;
pub mod names;
mod refs;
pub mod settings;
mod tree;
pub mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use gatewright_engine::error::Chain;
use git2::Repository;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::address::Transport;
use self::failure::Failure;
use self::mirror::Place;
use self::names::Reference;
use self::refs::Wanted;
use self::settings::{Conflict, Settings};
use super::{Reason, Snapshot, Source, SourceError};

/// Sets libgit2 up for this process, and tells whether it can do what sources need.
///
/// To be called when the process starts, before it has other threads: the first use of libgit2 may set OpenSSL's
/// environment variables.
/// [`GitSource::new`] makes up for it where it was not.
pub fn init() -> Result<(), InitError> {
    limits::init()
}

/// libgit2 cannot be used: it was built without a transport that sources need, or refused a setting.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InitError(String);

/// A repository that is asked at each poll.
#[derive(Clone, Debug)]
pub struct GitSource {
    repository: Arc<Remote>,
}

/// A source cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// Its settings contradict each other.
    #[error("the settings of the git source {name:?} do not fit together")]
    Settings {
        /// The source.
        name: String,
        /// The conflict of the settings.
        source: Conflict,
    },
    /// libgit2 cannot be used.
    #[error("git sources cannot be read")]
    Library(#[source] InitError),
}

/// Everything that a poll needs, and that its thread keeps when nobody waits for it any more.
#[derive(Clone, Debug)]
struct Remote {
    name: String,
    settings: Settings,
    mirrors: PathBuf,
    /// This program, to be started as the process that talks to the server.
    program: Option<PathBuf>,
    /// One poll at a time: a second one would find the mirror in use, and keep one of the few threads waiting for it.
    turn: Arc<Semaphore>,
}

impl GitSource {
    /// Takes the settings of one source, its paths absolute, and the folder for the mirrors of all sources.
    ///
    /// The name tells the mirrors apart, so no two sources may share it.
    pub fn new(name: &str, settings: Settings, mirror_dir: &Path) -> Result<Self, NewError> {
        settings.check().map_err(|source| NewError::Settings { name: name.to_owned(), source })?;
        limits::init().map_err(NewError::Library)?;
        let turn = Arc::new(Semaphore::new(1));
        let (name, mirrors) = (file_name(name), mirror_dir.to_owned());
        let repository = Remote { name, settings, mirrors, program: None, turn };
        Ok(Self { repository: Arc::new(repository) })
    }

    /// Talks to the server in a process of its own, for which `program` is started: gatewright itself. Without it a
    /// server that sends its answer for ever keeps a thread of this process.
    #[must_use]
    pub fn in_process_of(self, program: Option<PathBuf>) -> Self {
        Self { repository: Arc::new(Remote { program, ..(*self.repository).clone() }) }
    }

    fn error(&self, failure: Failure) -> SourceError {
        let Failure { reason, cause, hint, .. } = failure;
        SourceError { what: self.repository.settings.url.to_string(), reason, hint, source: cause }
    }
}

#[async_trait]
impl Source for GitSource {
    async fn poll(&self, have: Option<&str>) -> Result<Option<Snapshot>, SourceError> {
        let limit = self.repository.settings.timeout;
        let cancelled = CancellationToken::new();
        // A thread cannot be stopped from outside: it looks at this whenever libgit2 lets it.
        let _cancel_at_end = cancelled.clone().drop_guard();
        let repository = Arc::clone(&self.repository);
        let have = have.map(str::to_owned);
        let work = async {
            // A thread that nobody waits for any more keeps its permits, so that their number stays bounded.
            let turn = Arc::clone(&repository.turn).acquire_owned().await;
            let slot = match limits::slots(repository.settings.url.transport()) {
                Some(slots) => Some(slots.acquire_owned().await),
                None => None,
            };
            let permits = (turn, slot);
            let poll = move || {
                let _permits = permits;
                repository.poll(have.as_deref(), &cancelled)
            };
            tokio::task::spawn_blocking(poll).await
        };
        match tokio::time::timeout(limit.0, work).await {
            Ok(Ok(result)) => result.map_err(|failure| self.error(failure)),
            Ok(Err(stopped)) => Err(self.error(Failure::new(Reason::Invalid, stopped))),
            Err(_) => {
                let hint = "If the repository is only large or far away, raise `timeout`.";
                Err(self
                    .error(Failure::new(Reason::Unreachable, format!("there was no answer within {limit}")).hint(hint)))
            }
        }
    }
}

impl Remote {
    fn poll(&self, have: Option<&str>, cancelled: &CancellationToken) -> Result<Option<Snapshot>, Failure> {
        if let Transport::Local(path) = self.settings.url.transport() {
            return self.poll_local(path, have);
        }
        let place = Place::take(&self.mirrors, &self.name, cancelled)?;
        match self.poll_mirror(&place, have, cancelled) {
            Err(failure) if failure.of_mirror => {
                tracing::warn!(source = self.name, error = %Chain(failure.cause.as_ref()), "mirror is discarded");
                place.discard()?;
                self.poll_mirror(&place, have, cancelled)
            }
            result => result,
        }
    }

    fn poll_local(&self, path: &Path, have: Option<&str>) -> Result<Option<Snapshot>, Failure> {
        let repository = local::open(path)?;
        let wanted = refs::choose(&local::list(&repository)?, self.settings.reference.as_ref())?;
        if have == Some(wanted.revision.as_str()) {
            return Ok(None);
        }
        let read = self.read(&repository, wanted).map_err(|failure| {
            // What would be wrong with a mirror is wrong with the repository itself here.
            if failure.of_mirror { failure.hint("Run `git fsck` in the repository.") } else { failure }
        });
        read.map(Some)
    }

    fn poll_mirror(
        &self,
        place: &Place,
        have: Option<&str>,
        cancelled: &CancellationToken,
    ) -> Result<Option<Snapshot>, Failure> {
        let repository = place.open()?;
        if let Some(wanted) = self.pinned() {
            // A commit is for ever, so a server is asked for it once.
            if have == Some(wanted.revision.as_str()) {
                return Ok(None);
            }
            if mirror::has(&repository, wanted.commit) {
                return self.read(&repository, wanted).map(Some);
            }
        }
        let updated = match &self.program {
            Some(program) => worker::update(program, (&self.settings, have), &repository, cancelled),
            None => conversation::update(&self.settings, &repository, have, cancelled),
        };
        let Some(wanted) = updated? else { return Ok(None) };
        tracing::debug!(source = self.name, revision = wanted.revision, "fetched");
        let snapshot = self.read(&repository, wanted)?;
        if mirror::is_worn(&repository) {
            // Nobody needs it before there is another commit.
            drop(repository);
            place.discard()?;
        }
        Ok(Some(snapshot))
    }

    /// Returns the commit that the settings name by its identifier, if they do.
    fn pinned(&self) -> Option<Wanted> {
        match &self.settings.reference {
            Some(Reference::Commit(id)) => Some(Wanted::pinned(id.oid(), &refs::References::default())),
            Some(Reference::Branch(_) | Reference::Tag(_)) | None => None,
        }
    }

    fn read(&self, repository: &Repository, wanted: Wanted) -> Result<Snapshot, Failure> {
        let tree = tree::read(repository, wanted.commit, self.settings.path.as_str())?;
        let commit = repository.find_object(wanted.commit, None).and_then(|object| object.peel_to_commit());
        let committed = commit.ok().map(|commit| commit.time().seconds());
        let address = super::address(&self.settings.url.to_string(), self.settings.path.as_str());
        Ok(Snapshot { address, committed, ..Snapshot::new(wanted.revision, tree) })
    }
}

/// Makes a name that cannot leave the folder for mirrors.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}
