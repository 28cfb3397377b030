//! Places of rounds: so many rounds of a process hold the objects of their cluster in memory at once.
//!
//! The daemon begins the rounds of all clusters when a source has something new. Beside each other they would hold the
//! objects of all clusters at the same time, which for a thousand of them is more memory than hosts have. A round takes a
//! place once its cluster has answered and is known to need more than a look at metadata. So a cluster that is down, or on
//! which nothing has changed, needs none.
//!
//! Whoever waits for long, because pods do not become healthy or the cluster is slow, loses the place and goes on without:
//! a few sick clusters must not keep the others waiting. Places are given out in the order in which they were asked for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::basics::lock::lock;

/// The number of places. A round holds some 0.3 MB for each Gateway.
const PLACES: usize = 32;

/// The places that are left where memory is short.
const FEW: usize = 2;

/// The longest time that a round keeps its place.
const LONGEST: Duration = Duration::from_mins(1);

/// The places of a process.
#[derive(Clone, Debug)]
pub struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PLACES)))
    }
}

impl Places {
    /// Takes most of the places away, once the rounds before have left theirs, until what is returned is dropped.
    pub(crate) async fn narrow(&self) -> Narrowed {
        let most = u32::try_from(PLACES - FEW).expect("there are few places");
        Narrowed(Arc::clone(&self.0).acquire_many_owned(most).await.expect("nobody closes the semaphore"))
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits()
    }

    /// Returns what takes a place for a round.
    pub(super) fn for_round(&self) -> Place {
        Place { places: self.clone(), held: Mutex::default() }
    }
}

/// The places that no round has for now.
#[must_use]
pub(crate) struct Narrowed(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

/// The place of one round, once it is taken.
pub(crate) struct Place {
    places: Places,
    /// The task that holds it for as long as that may be.
    held: Mutex<Option<AbortHandle>>,
}

impl Place {
    /// Waits for a place, unless this round has had one.
    pub(super) async fn take(&self) {
        if lock(&self.held).is_some() {
            return;
        }
        let place = Arc::clone(&self.places.0).acquire_owned().await.expect("nobody closes the semaphore");
        let task = tokio::spawn(async move {
            sleep(LONGEST).await;
            drop(place);
        });
        *lock(&self.held) = Some(task.abort_handle());
    }

    /// Gives the place to somebody else; the next part of the round takes one again.
    pub(super) fn leave(&self) {
        if let Some(task) = lock(&self.held).take() {
            task.abort();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_late_waits_until_a_place_is_left() {
        let places = Places::default();
        let rounds: Vec<Place> = (0..PLACES).map(|_| places.for_round()).collect();
        for round in &rounds {
            assert!(round.take().now_or_never().is_some());
            assert!(round.take().now_or_never().is_some(), "to take it again is to keep it");
        }
        let late = places.for_round();
        assert!(late.take().now_or_never().is_none());
        rounds[3].leave();
        tokio::time::timeout(Duration::from_secs(1), late.take()).await.expect("one was left");
        assert_eq!(places.free(), 0);
        drop(rounds);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(places.free(), PLACES - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_too_long_keeps_nobody_waiting() {
        let places = Places::default();
        let slow: Vec<Place> = (0..PLACES).map(|_| places.for_round()).collect();
        for round in &slow {
            round.take().await;
        }
        let late = places.for_round();
        tokio::time::timeout(LONGEST + Duration::from_secs(1), late.take()).await.expect("their time is up");
        drop(slow);
    }
}
