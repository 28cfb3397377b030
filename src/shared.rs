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
mod flush;
mod groups;
mod local;
mod locks;
mod marker;
mod merge;
mod pass;
mod remote;
pub mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use object_store::ObjectMeta;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::state::notes::{Noted, Notes};
use crate::state::{Lock, State, StateError};
pub use error::SharedError;
use groups::{Name, Writer};
use local::{Alike, Local, Stat};
use locks::Locks;
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
    /// Held by who compares all in this process.
    exchanging: Mutex<()>,
    /// Held by who pushes what was noted.
    flushing: Mutex<()>,
    /// Held for one file by whoever makes it alike.
    locks: Locks,
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
    fn count(&mut self, is_lost: bool, (moved, is_conflict): Outcome) {
        let counter = match moved {
            Moved::Nothing => return,
            Moved::Pushed => &mut self.pushed,
            Moved::Deleted => &mut self.deleted,
            Moved::Taken if is_lost => &mut self.restored,
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

/// A file to be made alike.
struct Work {
    name: Name,
    look: Look,
    /// Nobody can have meant that it is missing on one side.
    is_lost: bool,
}

impl Sides {
    /// Tells whether so many files can only have been lost.
    fn is_loss(&self, missing: usize) -> bool {
        missing > MOST_MISSING && missing * 2 > self.known.len()
    }

    /// Returns the files that are not certain to be alike as they were.
    fn work(&self, lost: &BTreeSet<Name>) -> Vec<Work> {
        let names: BTreeSet<&Name> = self.known.keys().chain(self.here.keys()).chain(self.there.keys()).collect();
        let mut work = Vec::new();
        for name in names {
            let (known, meta) = (self.known.get(name), self.there.get(name));
            let is_alike =
                known.zip(meta).is_some_and(|(known, meta)| known.is(meta) && known.looks_like(self.here.get(name)));
            if !is_alike {
                let look = Look::Listed { meta: meta.cloned(), known: known.cloned().map(Box::new) };
                work.push(Work { name: name.clone(), look, is_lost: lost.contains(name) });
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
        let (exchanging, flushing, locks) = (Mutex::new(()), Mutex::new(()), Locks::new(state));
        let (confirmed, has_mended) = (std::sync::Mutex::new(None), AtomicBool::new(false));
        Ok(Self { local, remote, notes, exchanging, flushing, locks, confirmed, has_mended, group, may_found })
    }

    /// Makes this host's files and the store alike, both ways. `is_ours` tells whether this host looks after a sync.
    ///
    /// Of files that people change on any host (approvals, suspensions) each change counts, and where there are two, that
    /// of the host that looks after the sync. Other files are the result of rounds: where the sync is ours, nobody else can
    /// have had a reason to write them, so that what differs in the store is a late word of a host that has lost the sync,
    /// and ours is written again.
    ///
    /// All files are tried before the first error is returned.
    pub async fn synchronize(&self, is_ours: impl Fn(&str) -> bool + Sync) -> Result<Synchronized, SharedError> {
        let _turn = self.exchanging.lock().await;
        let _lock = self.lock().await?;
        // What was noted before now is compared, too. Whoever flushes meanwhile deals with it as well.
        let mut noted = self.notes.all();
        let mut total = Synchronized::default();
        let sides = Arc::new(self.sides(&mut total).await?);
        let lost = self.lost(&sides).await?.into_iter().chain(self.lost_there(&sides).await?).collect();
        let work = sides.work(&lost);
        let way = |work: &Work| self.way(work, &is_ours);
        let mut failed = None;
        for (work, result) in self.all(work, way).await {
            let is_lost = work.is_lost;
            match result {
                Ok((Moved::Refused, is_conflict)) => {
                    total.count(is_lost, (Moved::Refused, is_conflict));
                    self.keep_noted(&mut noted, &work.name);
                }
                Ok(outcome) => total.count(is_lost, outcome),
                Err(SharedError::TooLarge { .. }) => {
                    warn!(file = %work.name, "a file is too large to be shared; what needs it on other hosts is not done");
                    total.refused += 1;
                    // Whoever needs it in the store is to know that it is not there.
                    self.notes.add(self.local.path(&work.name));
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
        self.notes.done(&noted);
        if self.notes.may_expire() {
            let local = self.local.clone();
            blocking(move || {
                local.expire_conflicts();
                Ok(())
            })
            .await?;
        }
        Ok(total)
    }

    /// Decides how a file of an exchange is dealt with, at the moment at which it is.
    fn way(&self, work: &Work, is_ours: impl Fn(&str) -> bool) -> Way {
        let is_noted = self.notes.is_about(&self.local.path(&work.name));
        match (work.is_lost, is_noted) {
            (false, _) => Way::Merge(right(&work.name, is_noted, is_ours)),
            (true, false) => Way::Restore,
            // Somebody has removed it after all, and pushes that himself.
            (true, true) => Way::Leave,
        }
    }

    /// Has the notes about a file stay.
    fn keep_noted(&self, noted: &mut Noted, name: &Name) {
        let path = self.local.path(name);
        noted.retain(|about, _| !path.starts_with(about));
    }

    /// Deals with files, some at once, and with each whatever becomes of the others. `way` is asked before each try.
    async fn all(
        &self,
        work: Vec<Work>,
        way: impl Fn(&Work) -> Way + Sync,
    ) -> Vec<(Work, Result<Outcome, SharedError>)> {
        let way = &way;
        let each = work.into_iter().map(|work| async move {
            let result = match self.locks.of(&work.name).await {
                Ok(_lock) => one(&self.local, &self.remote, (&work.name, &work.look), || way(&work)).await,
                Err(error) => Err(error),
            };
            (work, result)
        });
        iter(each).buffer_unordered(AT_ONCE).collect().await
    }

    /// Looks at both sides, and makes sure that the store is ours before anything can follow from what it lacks.
    async fn sides(&self, total: &mut Synchronized) -> Result<Sides, SharedError> {
        // What is known comes first: a file of which something else is known later was dealt with by somebody who has seen
        // more than the listing says.
        let local = self.local.clone();
        let known = blocking(move || local.all_known()).await?;
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
        let here = blocking(move || local.files()).await?;
        Ok(Sides { known, here, there })
    }

    /// Returns the files that are missing here without anybody having removed them, if they are so many that nobody can
    /// have meant it.
    async fn lost(&self, sides: &Arc<Sides>) -> Result<BTreeSet<Name>, SharedError> {
        let missing = self.missing(sides, |sides, name| !sides.here.contains_key(name)).await?;
        // Whoever removes something says so before it can be missed.
        let is_noted = |name: &Name| self.notes.is_about(&self.local.path(name));
        let missing: BTreeSet<Name> = missing.into_iter().filter(|name| !is_noted(name)).collect();
        if !sides.is_loss(missing.len()) {
            return Ok(BTreeSet::new());
        }
        let (count, known) = (missing.len(), sides.known.len());
        warn!(count, known, "files of the state folder are gone; they are restored from the object store");
        Ok(missing)
    }

    /// Returns the files that are missing in the store, if they are so many that nobody can have meant it.
    async fn lost_there(&self, sides: &Arc<Sides>) -> Result<BTreeSet<Name>, SharedError> {
        let missing = self.missing(sides, |sides, name| !sides.there.contains_key(name)).await?;
        // Once: whoever has removed them on purpose removes them again.
        if !sides.is_loss(missing.len()) || self.has_mended.swap(true, Ordering::Relaxed) {
            return Ok(BTreeSet::new());
        }
        let (count, known, url) = (missing.len(), sides.known.len(), self.remote.url.as_str());
        warn!(
            count,
            known, url, "objects of the store are gone; they are written there again, and nothing is removed here"
        );
        Ok(missing)
    }

    /// Returns the files that one side lacks, if they are many, but for those that somebody has dealt with since.
    async fn missing(
        &self,
        sides: &Arc<Sides>,
        is_missing: fn(&Sides, &Name) -> bool,
    ) -> Result<BTreeSet<Name>, SharedError> {
        let count = sides.known.keys().filter(|name| is_missing(sides, name)).count();
        if !sides.is_loss(count) {
            return Ok(BTreeSet::new());
        }
        let (local, sides) = (self.local.clone(), Arc::clone(sides));
        blocking(move || {
            let missing = sides.known.iter().filter(|(name, _)| is_missing(&sides, name));
            let still = missing.filter(|(name, known)| local.known(name).as_ref() == Some(known));
            Ok(still.map(|(name, _)| name.clone()).collect())
        })
        .await
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

/// Decides whose word counts about a file. What a host has just written that has lost the sync is a late word.
fn right(name: &Name, is_noted: bool, is_ours: impl Fn(&str) -> bool) -> Right {
    match (name.sync().is_some_and(is_ours), name.group().writer) {
        (false, Writer::Owner) if is_noted && name.is_written_again() => Right::Late,
        (false, _) => Right::None,
        (true, Writer::Anybody) => Right::First,
        (true, Writer::Owner) => Right::Alone,
    }
}

/// Decides whose word counts about a file that was just written here: ours, unless it is for the host of a sync to write, and
/// that is another one.
fn right_to_say(name: &Name, is_ours: impl Fn(&str) -> bool) -> Right {
    match (name.sync().is_some_and(|sync| !is_ours(sync)), name.group().writer) {
        (true, Writer::Owner) if name.is_written_again() => Right::Late,
        (true, Writer::Owner) => Right::None,
        (false, _) | (_, Writer::Anybody) => Right::First,
    }
}
