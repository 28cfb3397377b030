//! The right of this host to change something for a sync, looked at before each request that changes something.
//!
//! It counts for two thirds of the time after which others take this host for dead, from before the renewal was sent, and
//! by a clock that runs on while the host sleeps: whoever wakes up too late is not let through. What is under way at that
//! moment is bound to the uid and the version that were read, so that it changes nothing that somebody else has touched.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::cluster::{ClusterError, Reason};
use crate::shared::Shared;

/// The syncs that a process looks after, and until when.
pub(crate) struct Held {
    clock: Arc<dyn Clock>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    until: Duration,
    syncs: BTreeSet<String>,
}

impl Held {
    /// Begins with nothing.
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock: Arc::clone(clock), now: Mutex::default() })
    }

    /// Notes that the Lease of this host was renewed; `sent` is when that was sent, by the clock that runs on.
    pub(super) fn renewed(&self, sent: Duration, lease: Duration) {
        lock(&self.now).until = sent + lease * 2 / 3;
    }

    /// Tells whether the Lease of this host counts.
    pub(crate) fn is_valid(&self) -> bool {
        self.clock.uptime() < lock(&self.now).until
    }

    /// Has a sync be this host's from now on.
    pub(super) fn add(&self, sync: &str) {
        lock(&self.now).syncs.insert(sync.to_owned());
    }

    /// Has a sync be this host's no longer.
    pub(super) fn remove(&self, sync: &str) {
        lock(&self.now).syncs.remove(sync);
    }

    /// Has nothing be this host's any more.
    pub(super) fn clear(&self) {
        *lock(&self.now) = Now::default();
    }

    /// Returns the syncs that this host looks after, whether its Lease still counts or not.
    pub(crate) fn syncs(&self) -> BTreeSet<String> {
        lock(&self.now).syncs.clone()
    }

    /// Tells whether this host may change something for a sync at this moment.
    pub(crate) fn holds(&self, sync: &str) -> bool {
        let now = lock(&self.now);
        now.syncs.contains(sync) && self.clock.uptime() < now.until
    }
}

/// The right to change something for one sync.
#[derive(Clone)]
pub(crate) struct Fence {
    held: Arc<Held>,
    shared: Arc<Shared>,
    sync: String,
}

/// This host does not look after a sync.
#[derive(Debug, thiserror::Error)]
#[error("this host does not hold the Lease of sync {0:?}")]
struct NotHeld(String);

impl Fence {
    /// Names the sync.
    pub(super) fn new(held: &Arc<Held>, shared: &Arc<Shared>, sync: &str) -> Self {
        Self { held: Arc::clone(held), shared: Arc::clone(shared), sync: sync.to_owned() }
    }

    /// Lets a request through that changes something: this host holds the sync, and what others need to go on from here is
    /// with them.
    pub(super) async fn pass(&self, action: &str) -> Result<(), ClusterError> {
        self.check(action)?;
        self.shared.flush().await.map_err(|error| ClusterError {
            action: action.to_owned(),
            reason: Reason::Other,
            hint: Some("nothing is changed that other hosts could not go on with; see hosts.store".to_owned()),
            source: Box::new(error),
        })?;
        self.check(action)
    }

    fn check(&self, action: &str) -> Result<(), ClusterError> {
        if self.held.holds(&self.sync) {
            return Ok(());
        }
        Err(ClusterError {
            action: action.to_owned(),
            reason: Reason::Other,
            hint: Some("another host may look after it by now; that one goes on from here".to_owned()),
            source: Box::new(NotHeld(self.sync.clone())),
        })
    }
}
