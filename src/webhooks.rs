//! Tells others of news: a notification for each report that says something new, sent to every webhook that is to know.
//!
//! It is written to the state directory first, and sent beside the rounds: who does not answer delays nothing, and what
//! could not be delivered waits there for the next try, also by another process. Deciding what is news is the journal's
//! business.

pub(crate) mod connect;
pub(crate) mod delivery;
pub(crate) mod notification;
mod queue;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{error, warn};

use crate::basics::clock::Clock;
use crate::config::Config;
use crate::history::journal;
use crate::process::metrics::Metrics;
use crate::report::Report;
use crate::state::{State, StateError};
use delivery::{Delivery, Step};
use notification::Notification;
use queue::Queue;

/// Keeps a report, and leaves a notification of it for everybody who is to be told if it is news. Returns whether it
/// says something new.
///
/// After an error the news is told with the next report.
pub(crate) fn keep(state: &State, config: &Config, report: &Report, metrics: &Metrics) -> Result<bool, StateError> {
    journal::record(state, &config.journal(), report, |kept| announce(state, config, report, kept, metrics))
}

/// Leaves a notification of a kept report for everybody who is to be told. That it cannot be left for one keeps it from
/// nobody else.
fn announce(state: &State, config: &Config, report: &Report, kept: &Path, metrics: &Metrics) -> Result<(), StateError> {
    let webhooks = config.settings.reports.webhooks.iter();
    let mut told = webhooks.filter(|(_, webhook)| webhook.is_about(&report.sync)).peekable();
    if told.peek().is_none() {
        return Ok(());
    }
    let notification = Notification::of(report, kept);
    let body = match notification.body() {
        Ok(body) => body,
        Err(error) => {
            // The next try would end in the same way.
            error!(error = %Chain(&error), "cannot write a notification");
            return Ok(());
        }
    };
    let mut left = Ok(());
    for (name, _) in told {
        match Queue::new(state, name).put(&notification.id, body.as_bytes()) {
            Ok(0) => {}
            Ok(lost) => {
                metrics.notified(name, "dropped", lost);
                error!(webhook = name, lost, "too many notifications wait, the oldest are lost");
            }
            Err(error) => {
                error!(webhook = name, error = %Chain(&error), "cannot leave a notification");
                left = Err(error);
            }
        }
    }
    left
}

/// Returns what carries notifications to each webhook of the config file.
pub(crate) fn deliveries(
    state: &State,
    config: &Config,
    metrics: &Arc<Metrics>,
    clock: &Arc<dyn Clock>,
) -> Vec<Delivery> {
    let webhooks = config.settings.reports.webhooks.iter();
    let delivery =
        |(name, settings): (&String, _)| Delivery::new(name, settings, state, Arc::clone(metrics), Arc::clone(clock));
    webhooks.map(delivery).collect()
}

/// Drops what waits for webhooks that are in the config file no more.
pub(crate) fn forget_others(state: &State, config: &Config) {
    let is_known = |name: &str| config.settings.reports.webhooks.contains_key(name);
    for name in state.names(queue::FOLDER).into_iter().filter(|name| !is_known(name)) {
        let lost = Queue::new(state, &name).clear();
        if lost > 0 {
            warn!(webhook = name, lost, "notifications are lost, because the webhook is in the config file no more");
        }
    }
}

/// Sends what waits, as long as a try may take; returns the webhooks for which something is left, and why.
pub(crate) async fn flush(deliveries: Vec<Delivery>) -> Vec<(String, String)> {
    let flushed = join_all(deliveries.into_iter().map(flush_one)).await;
    flushed.into_iter().flatten().collect()
}

async fn flush_one(mut delivery: Delivery) -> Option<(String, String)> {
    let limit = delivery.settings.timeout.0;
    let deadline = Instant::now() + limit;
    loop {
        match timeout_at(deadline, delivery.step()).await {
            Ok(Step::Nothing) => return None,
            Ok(Step::Done) => {}
            Ok(Step::Wait(pause, why)) => {
                if Instant::now() + pause >= deadline {
                    return Some((delivery.name, why));
                }
                sleep(pause).await;
            }
            Err(_) => return Some((delivery.name, format!("no answer within {limit:?}"))),
        }
    }
}

/// The longest time until a notification that another process has left is seen.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sends what waits, for as long as this is awaited.
pub(crate) async fn carry(mut delivery: Delivery) {
    loop {
        match delivery.step().await {
            Step::Done => {}
            Step::Nothing => sleep(LOOK_AGAIN).await,
            Step::Wait(pause, _) => sleep(pause).await,
        }
    }
}
