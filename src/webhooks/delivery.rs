//! Carries notifications to one webhook, one after the other: when is tried again, and when it is given up.

use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tracing::{error, info, warn};

use super::connect::{self, Failure};
use super::form::form;
use super::queue::{Queue, Waiting};
use crate::basics::clock::Clock;
use crate::config::webhooks::WebhookSettings;
use crate::process::metrics::Metrics;
use crate::state::{State, timekeeping};

/// The wait after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait that we choose.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The longest wait that a server may ask for.
const LONGEST_WISH: Duration = Duration::from_hours(1);

/// What a notification is that cannot be read.
const DAMAGED: &str = "the file of the notification is damaged";

pub(crate) struct Delivery {
    pub(super) name: String,
    pub(super) settings: WebhookSettings,
    state: State,
    queue: Queue,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    /// The number of tries in a row, up to the last one, that have failed.
    failures: u32,
}

/// The result of a step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing waits, or another process sends it.
    Nothing,
    /// One is delivered, or given up.
    Done,
    /// It failed, and is to be tried again after this time.
    Wait(Duration, String),
}

/// The part that is read of a notification that waits.
#[derive(Debug, Deserialize)]
struct Head {
    time: Timestamp,
    sync: String,
}

impl Delivery {
    pub(super) fn new(
        name: &str,
        settings: &WebhookSettings,
        state: &State,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // What begins at one has not increased, as Prometheus sees it.
        for result in ["given-up", "dropped"] {
            metrics.notified(name, result, 0);
        }
        let (queue, state) = (Queue::new(state, name), state.clone());
        Self { name: name.to_owned(), settings: settings.clone(), state, queue, metrics, clock, failures: 0 }
    }

    /// Has be told what was to be told with others by now, and `since` ago.
    pub(super) fn close_due(&self, since: SignedDuration) {
        let closed = self.queue.close_due(self.clock.now(), since);
        match closed {
            Ok(0) => {}
            Ok(lost) => self.metrics.notified(&self.name, "dropped", lost),
            Err(error) => warn!(webhook = self.name, error = %Chain(&error), "cannot leave a notification"),
        }
    }

    /// Sends what waits longest. When this is not awaited to its end it may be sent again, under the same name.
    pub(crate) async fn step(&mut self) -> Step {
        let waiting = self.queue.len();
        self.metrics.notifications_wait(&self.name, waiting);
        if waiting == 0 {
            return Step::Nothing;
        }
        let lock = match self.queue.lock() {
            Ok(Some(lock)) => lock,
            Ok(None) => return Step::Nothing,
            Err(error) => {
                let why = format!("cannot lock the notifications: {error}");
                return Step::Wait(self.fails(&why), why);
            }
        };
        let Some(waiting) = self.queue.oldest() else { return Step::Nothing };
        let Ok(head) = serde_json::from_slice::<Head>(&waiting.body) else {
            self.give_up(&waiting, "", DAMAGED);
            return Step::Done;
        };
        let installation = self.state.installation().ok().flatten().unwrap_or_default();
        let Ok(form) = form(self.settings.format, &waiting.body, &installation) else {
            self.give_up(&waiting, &head.sync, DAMAGED);
            return Step::Done;
        };
        let sent = connect::post(&self.settings, &waiting.id, form, self.clock.now()).await;
        let step = match sent {
            Ok(()) => {
                self.queue.remove(&waiting.id);
                self.failures = 0;
                self.metrics.notified(&self.name, "delivered", 1);
                info!(webhook = self.name, sync = head.sync, notification = waiting.id, "notification delivered");
                Step::Done
            }
            Err(failure) if failure.is_final || self.is_late(head.time) => {
                self.give_up(&waiting, &head.sync, &failure.what);
                Step::Done
            }
            Err(Failure { what, wait, .. }) => {
                let pause = self.fails(&what);
                Step::Wait(wait.map_or(pause, |wish| wish.min(LONGEST_WISH).max(pause)), what)
            }
        };
        self.metrics.notifications_wait(&self.name, self.queue.len());
        drop(lock);
        step
    }

    fn is_late(&self, made: Timestamp) -> bool {
        let age = timekeeping::believed(&self.state, self.clock.as_ref()).duration_since(made);
        SignedDuration::try_from(self.settings.retry_for.0).is_ok_and(|limit| age >= limit)
    }

    fn give_up(&mut self, waiting: &Waiting, sync: &str, why: &str) {
        self.queue.remove(&waiting.id);
        self.failures = 0;
        self.metrics.notified(&self.name, "given-up", 1);
        error!(webhook = self.name, sync, notification = waiting.id, error = why, "notification given up");
    }

    /// Tells of a failure, and returns how long is waited after it.
    fn fails(&mut self, why: &str) -> Duration {
        let pause = pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.metrics.notified(&self.name, "failed", 1);
        let (webhook, waiting, again) = (&self.name, self.queue.len(), format!("{pause:.1?}"));
        warn!(webhook, error = why, waiting, again, "notification not delivered");
        pause
    }
}

/// Returns how long to wait after so many failures: many hosts do not come back all at once.
fn pause(failures: u32) -> Duration {
    let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
    pause.mul_f64(0.8 + 0.2 * rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit() {
        let waits: Vec<Duration> = (0..40).map(pause).collect();
        assert!(waits[0] >= FIRST_PAUSE.mul_f64(0.79) && waits[0] <= FIRST_PAUSE);
        assert!(waits[4] > waits[0] * 8);
        assert!(waits.iter().all(|wait| *wait <= LONGEST_PAUSE));
    }
}
