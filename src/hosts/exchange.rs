//! What this host knows and what others know, brought together again and again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tracing::{info, warn};

use super::fence::Held;
use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::shared::{Shared, SharedError};

/// The interval between two looks at the store.
const INTERVAL: Duration = Duration::from_secs(10);

/// The exchange with the store.
pub(super) struct Exchange {
    shared: Arc<Shared>,
    held: Arc<Held>,
    begun: AtomicU64,
    is_due: Notify,
    last: watch::Sender<Last>,
    clock: Arc<dyn Clock>,
    /// The last time that it went well.
    good: Mutex<Duration>,
}

/// The last time that all was brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last {
    /// Its number, given when it began.
    number: u64,
    is_good: bool,
}

impl Exchange {
    /// Begins with nothing.
    pub(super) fn new(shared: &Arc<Shared>, held: &Arc<Held>, clock: &Arc<dyn Clock>) -> Arc<Self> {
        let (shared, held, clock) = (Arc::clone(shared), Arc::clone(held), Arc::clone(clock));
        let (last, good) = (watch::Sender::new(Last::default()), Mutex::new(clock.uptime()));
        Arc::new(Self { shared, held, begun: AtomicU64::new(0), is_due: Notify::new(), last, clock, good })
    }

    /// Goes on until it is dropped.
    pub(super) async fn run(&self) {
        loop {
            self.once().await;
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.is_due.notified() => {}
            }
        }
    }

    /// Brings all together.
    pub(super) async fn once(&self) {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let result = self.shared.synchronize(|sync| self.held.holds(sync)).await;
        let was = *self.last.borrow();
        match &result {
            Err(error) if was.is_good || was.number == 0 => {
                let error = Chain(error).to_string();
                warn!(error, "the store of all hosts cannot be used: they do not know what this host does");
            }
            Ok(_) if !was.is_good && was.number > 0 => info!("the store of all hosts can be used again"),
            _ => {}
        }
        if result.is_ok() {
            *lock(&self.good) = self.clock.uptime();
        }
        self.last.send_replace(Last { number, is_good: result.is_ok() });
    }

    /// Has it done at once, and returns its number.
    pub(super) fn request(&self) -> u64 {
        self.is_due.notify_one();
        self.begun.load(Ordering::SeqCst) + 1
    }

    /// Tells whether the one of a number is over, or a later one, and went well.
    pub(super) fn is_done(&self, number: u64) -> bool {
        let last = *self.last.borrow();
        last.is_good && last.number >= number
    }

    /// Tells whether the last one went well.
    pub(super) fn is_good(&self) -> bool {
        self.last.borrow().is_good
    }

    /// Tells whether the store has been out of reach for so long.
    pub(super) fn is_lost_for(&self, time: Duration) -> bool {
        !self.is_good() && *lock(&self.good) + time < self.clock.uptime()
    }

    /// Has others know what this host has written, as far as that can be done in a time.
    pub(super) async fn flush_all(&self, limit: Duration) {
        if let Ok(Err(error)) = timeout(limit, self.shared.flush(|sync| self.held.holds(sync))).await {
            warn!(error = %Chain(&error), hint = error.hint(), "other hosts do not know yet what this one has written");
        }
    }

    /// Has others know what this host has written, if that can be done in a time; returns those of some syncs of which they
    /// know all.
    pub(super) async fn flush(&self, syncs: &BTreeSet<String>, limit: Duration) -> BTreeSet<String> {
        let mut known = BTreeSet::new();
        let all = async {
            for sync in syncs {
                match self.shared.flush_for(sync, |sync| self.held.holds(sync)).await {
                    Ok(()) => drop(known.insert(sync.clone())),
                    Err(error) => {
                        let hint = error.hint();
                        warn!(sync, error = %Chain(&error), hint, "other hosts do not know yet what this one has written");
                        // What is too large keeps its own sync alone.
                        if !matches!(error, SharedError::TooLarge { .. }) {
                            return;
                        }
                    }
                }
            }
        };
        drop(timeout(limit, all).await);
        known
    }
}
