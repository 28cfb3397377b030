//! A command at work among hosts: it takes the syncs that it is about from whoever looks after them, and gives each back as
//! soon as it needs it no more.

use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::sync::Mutex;
use tracing::{debug, warn};

use super::fence::{Fence, Held};
use super::membership::{Membership, Renewal};
use crate::cluster::{ClusterError, Reason};
use crate::shared::{Shared, SharedError};

/// The interval between two looks whether a sync is free.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Tries to give a sync back before the end. The Lease of the command is not renewed meanwhile.
const GIVES: usize = 5;

/// A command among hosts.
pub(crate) struct Command {
    membership: Mutex<Membership>,
    held: Arc<Held>,
    shared: Arc<Shared>,
}

/// A sync cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    /// The management cluster.
    #[error("cannot look after sync {0:?}")]
    Cluster(String, #[source] ClusterError),
    /// The store.
    #[error("cannot know what other hosts have done for sync {0:?}")]
    Store(String, #[source] SharedError),
}

impl HoldError {
    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Cluster(_, error) => error.hint.clone(),
            Self::Store(_, error) => error.hint(),
        }
    }
}

/// The renewals came too late.
#[derive(Debug, thiserror::Error)]
#[error("the Lease of this command has run out before it was renewed")]
struct TooLate;

impl Command {
    pub(super) fn new(membership: Membership, shared: Arc<Shared>) -> Self {
        let held = Arc::clone(&membership.held);
        Self { membership: Mutex::new(membership), held, shared }
    }

    /// Returns the right to change something for a sync.
    pub(crate) fn fence(&self, sync: &str) -> Fence {
        Fence::of_any_term(&self.held, &self.shared, sync)
    }

    /// Has the others know what this command has written.
    pub(crate) async fn flush(&self) -> Result<(), SharedError> {
        self.shared.flush(|sync| self.held.holds(sync)).await
    }

    /// Brings what the others know here.
    pub(crate) async fn synchronize(&self) -> Result<(), SharedError> {
        self.shared.synchronize(|sync| self.held.holds(sync)).await.map(drop)
    }

    /// Looks after a sync from now on; waits until whoever does lets go of it. `told` is called once, with the name of that
    /// host, if there is one.
    pub(crate) async fn hold(&self, sync: &str, told: impl FnOnce(&str)) -> Result<(), HoldError> {
        let failed = |error| HoldError::Cluster(sync.to_owned(), error);
        let mut told = Some(told);
        while !self.held.syncs().contains(sync) {
            let mut membership = self.membership.lock().await;
            renew(&mut membership).await.map_err(failed)?;
            membership.look().await.map_err(failed)?;
            let is_given = membership.view.is_held_by(sync, membership.identity());
            if (is_given || membership.is_free(sync)) && membership.take(sync).await.map_err(failed)? {
                drop(membership);
                let result = self.shared.synchronize(|other| other != sync && self.held.holds(other)).await;
                result.map_err(|error| HoldError::Store(sync.to_owned(), error))?;
                self.held.add(sync);
                return Ok(());
            }
            membership.ask_for(sync).await.map_err(failed)?;
            if let Some(told) = told.take() {
                let holder = membership.view.holder(sync);
                told(holder.rsplit_once('_').map_or(holder, |(host, _)| host));
            }
            drop(membership);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Gives back those syncs whose rounds are over, once the others know what this command has written for them. What
    /// cannot be given back now is at the end, which tells why it cannot.
    pub(crate) async fn give_back(&self, is_over: impl Fn(&str) -> bool) {
        for sync in self.held.syncs().into_iter().filter(|sync| is_over(sync)) {
            let failed = match self.shared.flush_for(&sync, |sync| self.held.holds(sync)).await {
                Ok(()) => self.give(&sync).await.err().map(|error| Chain(&error).to_string()),
                Err(error) => Some(Chain(&error).to_string()),
            };
            if let Some(error) = failed {
                debug!(sync, error, "the sync is not given back before the end");
            }
        }
    }

    async fn give(&self, sync: &str) -> Result<(), ClusterError> {
        let mut membership = self.membership.lock().await;
        // Somebody may have asked for it since the last look, or at this moment.
        for _ in 0..GIVES {
            membership.look().await?;
            let is_ours = membership.view.is_held_by(sync, membership.identity());
            if !is_ours || membership.give(sync, "").await? {
                break;
            }
        }
        Ok(())
    }

    /// Renews its Lease, once there is one, until this is dropped.
    pub(crate) async fn keep(&self) {
        let pause = self.membership.lock().await.terms.duration / 6;
        loop {
            tokio::time::sleep(pause).await;
            let mut membership = self.membership.lock().await;
            if !membership.has_lease() {
                continue;
            }
            let kept = match renew(&mut membership).await {
                Ok(()) => membership.look().await,
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                warn!(error = %Chain(&error), "cannot renew the Lease of this command; without it nothing is changed");
            }
        }
    }

    /// Gives everything back.
    pub(crate) async fn leave(&self) {
        if let Err(error) = self.membership.lock().await.leave().await {
            warn!(error = %Chain(&error), "Leases were not given back; others take the syncs when they have run out");
        }
    }
}

async fn renew(membership: &mut Membership) -> Result<(), ClusterError> {
    match membership.renew().await? {
        Renewal::Counts => Ok(()),
        // What it was about may have been done by somebody else meanwhile.
        Renewal::Lapsed => {
            membership.held.clear();
            Err(ClusterError {
                action: "go on with the command".to_owned(),
                reason: Reason::Other,
                hint: Some("see what the other hosts have done, and run it again".to_owned()),
                source: Box::new(TooLate),
            })
        }
    }
}
