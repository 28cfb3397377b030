//! What this host knows and what others know, brought together again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use super::fence::Held;
use crate::shared::Shared;

/// The interval between two looks at the store.
const INTERVAL: Duration = Duration::from_secs(10);

/// The exchange with the store.
pub(super) struct Exchange {
    shared: Arc<Shared>,
    held: Arc<Held>,
    begun: AtomicU64,
    is_due: Notify,
    last: watch::Sender<Last>,
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
    pub(super) fn new(shared: &Arc<Shared>, held: &Arc<Held>) -> Arc<Self> {
        let (shared, held) = (Arc::clone(shared), Arc::clone(held));
        let last = watch::Sender::new(Last::default());
        Arc::new(Self { shared, held, begun: AtomicU64::new(0), is_due: Notify::new(), last })
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

    /// Returns the store.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
