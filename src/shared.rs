//! What one host knows and others need to go on for it, kept alike on all hosts through an object store.
//!
//! Which host looks after a sync is decided elsewhere. Here files are compared: each host remembers of every shared file
//! what it was when it was last the same in the store, so that it can tell who has changed it since. A host that looks
//! after a sync has the last word about its files; elsewhere the store has, and what loses is kept aside.
//!
//! A host must [`Shared::flush`] before it lets go of a sync, and must [`Shared::synchronize`] before it counts one as its
//! own: from then on what its rounds write counts, whatever the store says.

mod connect;
mod error;
mod groups;
mod local;
mod marker;
mod merge;
mod pass;
mod remote;
pub mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, mem};

use futures::StreamExt as _;
use futures::stream::iter;
use object_store::ObjectMeta;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::state::notes::Notes;
use crate::state::{Lock, State, StateError};
pub use error::SharedError;
use groups::{Name, Writer};
use local::{Alike, Local, Stat};
use merge::Right;
use pass::{Look, Moved, Outcome, Way, blocking, one};
use remote::Remote;
pub use settings::StoreSettings;

/// The number of files that are on their way at once.
const AT_ONCE: usize = 8;

/// More missing files than this, and more than half of all, are taken for a loss.
const MOST_MISSING: usize = 10;

/// The interval between two tries to be the one process of this host that compares.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The most tries: ten minutes.
const MOST_TRIES: usize = 30_000;

/// The state folder of this host, and the object store that is to hold the same.
#[derive(Debug)]
pub struct Shared {
    local: Local,
    remote: Remote,
    notes: Arc<Notes>,
    /// Held by who compares in this process.
    turn: Mutex<()>,
    /// The last time that the store was seen to be the one that this host uses.
    confirmed: std::sync::Mutex<Option<Instant>>,
    /// Files that were lost in the store by the dozen were written there again.
    has_mended: AtomicBool,
    /// The group of hosts that share it.
    group: String,
    /// Whether this process may begin with a store that nobody has used.
    may_found: bool,
}

/// The number of files that took each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synchronized {
    /// Files that were written to the store.
    pub pushed: usize,
    /// Files that were deleted in the store.
    pub deleted: usize,
    /// Files that were written here.
    pub taken: usize,
    /// Files that were removed here.
    pub removed: usize,
    /// Files that were lost here together with many others, and were written again.
    pub restored: usize,
    /// Files that were changed on two sides; the one that lost is below `shared/conflicts` in the state folder.
    pub conflicts: usize,
    /// Files that are too large, and objects whose names are none of ours.
    pub refused: usize,
}

impl Synchronized {
    fn count(&mut self, way: Way, (moved, is_conflict): Outcome) {
        let counter = match moved {
            Moved::Nothing => return,
            Moved::Pushed => &mut self.pushed,
            Moved::Deleted => &mut self.deleted,
            Moved::Taken if way == Way::Restore => &mut self.restored,
            Moved::Taken => &mut self.taken,
            Moved::Removed => &mut self.removed,
            Moved::Refused => &mut self.refused,
        };
        *counter += 1;
        self.conflicts += usize::from(is_conflict);
    }
}

/// Both sides, as they are before anything is moved.
struct Sides {
    known: BTreeMap<Name, Alike>,
    here: BTreeMap<Name, Stat>,
    there: BTreeMap<Name, ObjectMeta>,
}

impl Sides {
    /// Tells whether so many files can only have been lost.
    fn is_loss(&self, missing: usize) -> bool {
        missing > MOST_MISSING && missing * 2 > self.known.len()
    }

    /// Returns the files that are not certain to be alike as they were.
    fn work(&self, lost: &BTreeSet<Name>, is_ours: impl Fn(&str) -> bool) -> Vec<(Name, Look, Way)> {
        let names: BTreeSet<&Name> = self.known.keys().chain(self.here.keys()).chain(self.there.keys()).collect();
        let mut work = Vec::new();
        for name in names {
            let meta = self.there.get(name);
            let is_alike = self
                .known
                .get(name)
                .zip(meta)
                .is_some_and(|(known, meta)| known.is(meta) && known.looks_like(self.here.get(name)));
            if !is_alike {
                let way = if lost.contains(name) { Way::Restore } else { Way::Merge(right(name, &is_ours)) };
                work.push((name.clone(), Look::Listed(meta.cloned()), way));
            }
        }
        work
    }
}

impl Shared {
    /// Opens the store for a state that notes its changes ([`State::noting`]). `reports` is the folder of the history of
    /// reports, below the state folder unless absolute. No request is made yet.
    ///
    /// A store that nobody has used yet is begun with only where `may_found` says so: whoever only looks may have been given a
    /// wrong address, or one that is empty because something is broken.
    pub fn open(
        settings: &StoreSettings,
        state: &State,
        reports: &Path,
        group: &str,
        may_found: bool,
    ) -> Result<Self, SharedError> {
        Self::with(Remote::open(settings)?, state, (reports, group, may_found))
    }

    fn with(
        remote: Remote,
        state: &State,
        (reports, group, may_found): (&Path, &str, bool),
    ) -> Result<Self, SharedError> {
        let notes = Arc::clone(state.notes().ok_or(SharedError::NotNoting)?);
        let (local, group) = (Local::new(state, reports), group.to_owned());
        let (turn, confirmed) = (Mutex::new(()), std::sync::Mutex::new(None));
        Ok(Self { local, remote, notes, turn, confirmed, has_mended: AtomicBool::new(false), group, may_found })
    }

    /// Makes this host's files and the store alike, both ways. `is_ours` tells whether this host looks after a sync.
    ///
    /// Of files that people change on any host (approvals, suspensions) each change counts, and where there are two, that
    /// of the host that looks after the sync. Other files are the result of rounds: where the sync is ours, nobody else can
    /// have had a reason to write them, so that what differs in the store is a late word of a host that has lost the sync,
    /// and ours is written again.
    ///
    /// All files are tried before the first error is returned.
    pub async fn synchronize(&self, is_ours: impl Fn(&str) -> bool) -> Result<Synchronized, SharedError> {
        let _turn = self.turn.lock().await;
        let _lock = self.lock().await?;
        // What was noted before now is compared, too.
        let mut drained = Drained::of(&self.notes);
        let mut total = Synchronized::default();
        let sides = self.sides(&mut total).await?;
        let lost = self.lost(&sides, &drained.paths).into_iter().chain(self.lost_there(&sides)).collect();
        let work = sides.work(&lost, is_ours);
        let mut failed = None;
        for (name, way, result) in self.all(work).await {
            match result {
                Ok(outcome) => total.count(way, outcome),
                Err(SharedError::TooLarge { .. }) => {
                    warn!(file = %name, "a file is too large to be shared, and is left alone");
                    total.refused += 1;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if total.conflicts > 0 {
            let (conflicts, folder) = (total.conflicts, self.local.state.path("shared/conflicts"));
            warn!(conflicts, ?folder, "files were changed on two sides; those that lost are kept there");
        }
        debug!(?total, url = self.remote.url, "the state folder and the object store were compared");
        if let Some(error) = failed {
            return Err(error);
        }
        drained.paths.clear();
        Ok(total)
    }

    /// Pushes every file that was written or removed through the state since the last push; returns when all is in the
    /// store. Of callers at one time the second waits for the first, and pushes what that has left.
    ///
    /// Where somebody else has changed the same file, ours wins if it is of a sync that is ours, and the store's if not: a
    /// host that has lost a sync may still have a late word to say about it. The one that loses is kept aside.
    pub async fn flush(&self, is_ours: impl Fn(&str) -> bool) -> Result<(), SharedError> {
        let _turn = self.turn.lock().await;
        let mut drained = Drained::of(&self.notes);
        if drained.paths.is_empty() {
            return Ok(());
        }
        let mut paths_of = self.names_of(&mut drained.paths).await?;
        if paths_of.is_empty() {
            return Ok(());
        }
        let _lock = self.lock().await?;
        self.confirm_again().await?;
        let way = |name: &Name| (name.clone(), Look::AsKnown, Way::Merge(right_to_say(name, &is_ours)));
        let work = paths_of.keys().map(way).collect();
        let (mut failed, mut left) = (None, BTreeSet::new());
        for (name, _, result) in self.all(work).await {
            let refused = matches!(result, Ok((Moved::Refused, _)));
            let error = if refused { Some(remote::too_large(name.as_str())) } else { result.err() };
            if let Some(error) = error {
                left.extend(paths_of.remove(&name).unwrap_or_default());
                failed = failed.or(Some(error));
            }
        }
        drained.paths = left;
        failed.map_or(Ok(()), Err)
    }

    /// Returns the shared files that the noted paths are about, each with those paths. Paths that are about none go.
    async fn names_of(&self, paths: &mut BTreeSet<PathBuf>) -> Result<BTreeMap<Name, BTreeSet<PathBuf>>, SharedError> {
        let (local, noted) = (self.local.clone(), paths.clone());
        let named = blocking(move || {
            let of = |path: PathBuf| local.noted(&path).map(|names| (path, names));
            noted.into_iter().map(of).collect::<Result<Vec<_>, _>>()
        });
        let mut paths_of: BTreeMap<Name, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, names) in named.await? {
            if names.is_empty() {
                paths.remove(&path);
            }
            for name in names {
                paths_of.entry(name).or_default().insert(path.clone());
            }
        }
        Ok(paths_of)
    }

    /// Deals with files, some at once, and with each whatever becomes of the others.
    async fn all(&self, work: Vec<(Name, Look, Way)>) -> Vec<(Name, Way, Result<Outcome, SharedError>)> {
        let each = work.into_iter().map(|(name, look, way)| async move {
            let result = one(&self.local, &self.remote, &name, look, way).await;
            (name, way, result)
        });
        iter(each).buffer_unordered(AT_ONCE).collect().await
    }

    /// Looks at both sides, and makes sure that the store is ours before anything can follow from what it lacks.
    async fn sides(&self, total: &mut Synchronized) -> Result<Sides, SharedError> {
        let listing = self.remote.list().await?;
        self.confirm(Some(&listing)).await?;
        let mut there = BTreeMap::new();
        for (text, meta) in listing {
            match Name::parse(&text) {
                Some(name) => drop(there.insert(name, meta)),
                None if text == marker::MARKER => {}
                None => {
                    let name: String = text.chars().take(100).collect();
                    warn!(object = ?name, "an object of the store has no name of ours, and is left alone");
                    total.refused += 1;
                }
            }
        }
        let local = self.local.clone();
        let (known, here) = blocking(move || Ok((local.all_known()?, local.files()?))).await?;
        Ok(Sides { known, here, there })
    }

    /// Returns the files that are missing here without anybody having removed them, if they are so many that nobody can
    /// have meant it.
    fn lost(&self, sides: &Sides, noted: &BTreeSet<PathBuf>) -> BTreeSet<Name> {
        let is_noted = |name: &Name| self.local.path(name).ancestors().any(|path| noted.contains(path));
        let missing = sides.known.keys().filter(|name| !sides.here.contains_key(*name) && !is_noted(name));
        let missing: BTreeSet<Name> = missing.cloned().collect();
        if !sides.is_loss(missing.len()) {
            return BTreeSet::new();
        }
        let (count, known) = (missing.len(), sides.known.len());
        warn!(count, known, "files of the state folder are gone; they are restored from the object store");
        missing
    }

    /// Returns the files that are missing in the store, if they are so many that nobody can have meant it.
    fn lost_there(&self, sides: &Sides) -> BTreeSet<Name> {
        let missing = sides.known.keys().filter(|name| !sides.there.contains_key(*name));
        let missing: BTreeSet<Name> = missing.cloned().collect();
        // Once: whoever has removed them on purpose removes them again.
        if !sides.is_loss(missing.len()) || self.has_mended.swap(true, Ordering::Relaxed) {
            return BTreeSet::new();
        }
        let (count, known, url) = (missing.len(), sides.known.len(), self.remote.url.as_str());
        warn!(
            count,
            known, url, "objects of the store are gone; they are written there again, and nothing is removed here"
        );
        missing
    }

    /// Waits until no other process of this host compares.
    async fn lock(&self) -> Result<Lock, SharedError> {
        for _ in 0..MOST_TRIES {
            let state = self.local.state.clone();
            if let Some(lock) = blocking(move || Ok(state.try_lock_shared()?)).await? {
                return Ok(lock);
            }
            sleep(LOOK_AGAIN).await;
        }
        let path = self.local.state.path("shared.lock");
        Err(StateError::Write(path, io::ErrorKind::TimedOut.into()).into())
    }
}

/// Decides whose word counts about a file.
fn right(name: &Name, is_ours: impl Fn(&str) -> bool) -> Right {
    match (name.sync().is_some_and(is_ours), name.group().writer) {
        (false, _) => Right::None,
        (true, Writer::Anybody) => Right::First,
        (true, Writer::Owner) => Right::Alone,
    }
}

/// Decides whose word counts about a file that was just written here: ours, unless it is for the host of a sync to write, and
/// that is another one.
fn right_to_say(name: &Name, is_ours: impl Fn(&str) -> bool) -> Right {
    let is_theirs = name.sync().is_some_and(|sync| !is_ours(sync));
    if is_theirs && name.group().writer == Writer::Owner { Right::None } else { Right::First }
}

/// Notes that were taken to be dealt with. What is left of them when this is dropped is noted again, so that nothing is
/// forgotten because of an error, or because the caller did not wait.
struct Drained<'a> {
    notes: &'a Notes,
    paths: BTreeSet<PathBuf>,
}

impl<'a> Drained<'a> {
    fn of(notes: &'a Notes) -> Self {
        Self { notes, paths: notes.take() }
    }
}

impl Drop for Drained<'_> {
    fn drop(&mut self) {
        self.notes.put_back(mem::take(&mut self.paths));
    }
}
