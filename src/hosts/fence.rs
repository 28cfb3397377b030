//! The right of this host to change something for a sync, looked at before each request that changes something, and before
//! each try of it.
//!
//! It counts for two thirds of the time after which others take this host for dead, from before its last renewal and its last
//! look at who holds what were sent, and by a clock that runs on while the host sleeps: whoever wakes up too late is not let
//! through. What is under way at that moment is bound to the uid and the version that were read, so that it changes nothing
//! that somebody else has touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::cluster::permit::{Permit, Withdrawn};
use crate::cluster::{ClusterError, Reason};
use crate::shared::Shared;

/// The syncs that a process looks after, and until when.
pub(crate) struct Held {
    clock: Arc<dyn Clock>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    /// For how long the Lease of this host counts, for itself.
    counts: Duration,
    /// The time of its last renewal.
    renewed: Option<Duration>,
    /// The time of the last look at all Leases: what others have taken is known up to then.
    looked: Option<Duration>,
    /// The syncs, each with the number of the time that it was taken.
    syncs: BTreeMap<String, u64>,
    taken: u64,
}

impl Now {
    fn counts_at(&self, now: Duration) -> bool {
        let last = self.renewed.zip(self.looked).map(|(renewed, looked)| renewed.min(looked));
        last.is_some_and(|last| now < last + self.counts)
    }
}

impl Held {
    /// Begins with nothing.
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock: Arc::clone(clock), now: Mutex::default() })
    }

    /// Notes that the Lease of this host was renewed; `sent` is when that was sent, by the clock that runs on.
    pub(super) fn renewed(&self, sent: Duration, lease: Duration) {
        let now = &mut *lock(&self.now);
        (now.renewed, now.counts) = (Some(sent), lease * 2 / 3);
    }

    /// Notes that this host has looked who holds what; `asked` is when that was asked.
    pub(super) fn looked(&self, asked: Duration) {
        lock(&self.now).looked = Some(asked);
    }

    /// Tells whether the Lease of this host counts.
    pub(crate) fn is_valid(&self) -> bool {
        lock(&self.now).counts_at(self.clock.uptime())
    }

    /// Has a sync be this host's from now on.
    pub(super) fn add(&self, sync: &str) {
        let now = &mut *lock(&self.now);
        now.taken += 1;
        now.syncs.insert(sync.to_owned(), now.taken);
    }

    /// Has a sync be this host's no longer.
    pub(super) fn remove(&self, sync: &str) {
        lock(&self.now).syncs.remove(sync);
    }

    /// Has nothing be this host's any more.
    pub(super) fn clear(&self) {
        let now = &mut *lock(&self.now);
        *now = Now { taken: now.taken, ..Now::default() };
    }

    /// Returns the syncs that this host looks after, whether its Lease still counts or not.
    pub(crate) fn syncs(&self) -> BTreeSet<String> {
        lock(&self.now).syncs.keys().cloned().collect()
    }

    /// Tells whether this host may change something for a sync at this moment.
    pub(crate) fn holds(&self, sync: &str) -> bool {
        let now = lock(&self.now);
        now.syncs.contains_key(sync) && now.counts_at(self.clock.uptime())
    }

    /// Returns the number of the time that a sync was taken.
    fn term(&self, sync: &str) -> Option<u64> {
        lock(&self.now).syncs.get(sync).copied()
    }
}

/// The right to change something for one sync.
#[derive(Clone)]
pub(crate) struct Fence {
    held: Arc<Held>,
    shared: Arc<Shared>,
    sync: String,
    /// The time that it was taken: what was begun in an earlier one is over. `None`: whichever it is.
    term: Option<u64>,
}

impl Fence {
    /// Names the sync, for as long as this host has it now.
    pub(super) fn new(held: &Arc<Held>, shared: &Arc<Shared>, sync: &str) -> Self {
        let term = Some(held.term(sync).unwrap_or_default());
        Self { term, ..Self::of_any_term(held, shared, sync) }
    }

    /// Names the sync, for whenever this process has it.
    pub(super) fn of_any_term(held: &Arc<Held>, shared: &Arc<Shared>, sync: &str) -> Self {
        Self { held: Arc::clone(held), shared: Arc::clone(shared), sync: sync.to_owned(), term: None }
    }

    /// Lets a request through that changes something: this host holds the sync, and what others need to go on from here is
    /// with them.
    pub(super) async fn pass(&self, action: &str) -> Result<(), ClusterError> {
        self.check(action)?;
        let flushed = self.shared.flush_for(&self.sync, |sync| self.held.holds(sync)).await;
        flushed.map_err(|error| {
            let hint = || "nothing is changed that other hosts could not go on with; see hosts.store".to_owned();
            let (action, hint) = (action.to_owned(), Some(error.hint().unwrap_or_else(hint)));
            ClusterError { action, reason: Reason::Other, hint, source: Box::new(error) }
        })?;
        self.check(action)
    }

    /// Returns the permission that each try of such a request needs.
    pub(super) fn permit(&self) -> Arc<Permit> {
        let fence = self.clone();
        Arc::new(move || fence.holds())
    }

    fn check(&self, action: &str) -> Result<(), ClusterError> {
        self.holds().map_err(|withdrawn| ClusterError {
            action: action.to_owned(),
            reason: Reason::Other,
            hint: Some(withdrawn.hint.clone()),
            source: Box::new(withdrawn),
        })
    }

    fn holds(&self) -> Result<(), Withdrawn> {
        if self.held.holds(&self.sync) && self.term.is_none_or(|term| self.held.term(&self.sync) == Some(term)) {
            return Ok(());
        }
        let why = format!("this host does not hold the Lease of sync {:?}", self.sync);
        Err(Withdrawn { why, hint: "another host may look after it by now; that one goes on from here".to_owned() })
    }
}
