//! Tells others of news: a notification for each report that says something new, sent to every webhook that is to know.
//!
//! It is written to the state directory first, and sent beside the rounds: who does not answer delays nothing, and what
//! could not be delivered waits there for the next try, also by another process. Deciding what is news is the journal's
//! business.

pub(crate) mod connect;
pub(crate) mod delivery;
mod form;
pub(crate) mod gather;
pub(crate) mod notification;
mod pending;
mod queue;
mod signature;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{error, warn};

use crate::basics::clock::Clock;
use crate::config::Config;
use crate::config::webhooks::WebhookSettings;
use crate::history::archive::Archive;
use crate::history::audit_log::{self, Actor, Event};
use crate::history::{interrupted, journal};
use crate::process::metrics::Metrics;
use crate::report::Report;
use crate::state::{State, StateError};
use delivery::{Delivery, Step};
use gather::{Gathering, Moment};
use notification::Notification;
use pending::Part;
use queue::Queue;

/// Keeps a report, and leaves a notification of it for everybody who is to be told if it is news. Returns whether it
/// says something new.
///
/// After an error the news is told with the next report.
pub(crate) fn keep(state: &State, config: &Config, report: &Report, metrics: &Metrics) -> Result<bool, StateError> {
    journal::expire(state, &config.journal(), report.finished);
    journal::record(state, &config.journal(), report, |kept| announce(state, config, report, kept, metrics))
}

/// Keeps reports of earlier rounds on the clusters of a report of which nothing was told, because they were interrupted: in the
/// audit log, in the history, and for everybody who is to be told. It comes before the report itself is kept.
pub(crate) fn catch_up(state: &State, config: &Config, report: &Report, (metrics, actor): (&Metrics, &Actor)) {
    let open = || Archive::existing(state, &config.settings.undo);
    for earlier in interrupted::before(state, report, open) {
        // Nothing was changed.
        if earlier.report.clusters.is_empty() {
            interrupted::forget(state, &earlier);
            continue;
        }
        let tell = |kept: &Path| announce(state, config, &earlier.report, kept, metrics);
        match journal::add(state, &config.journal(), &earlier.report, tell) {
            Ok(true) => audit(state, &earlier.report, (actor, report.finished)),
            Ok(false) => {}
            Err(error) => {
                error!(run = earlier.report.run, error = %Chain(&error), "cannot keep the report of an interrupted round");
                continue;
            }
        }
        interrupted::forget(state, &earlier);
    }
}

/// Writes a line of the audit log about an interrupted round, unless there is one. Who has run it nobody knows any more.
fn audit(state: &State, earlier: &Report, (actor, now): (&Actor, Timestamp)) {
    let write = || match (audit_log::has_round(state, earlier)?, Event::of_round(earlier)) {
        (false, Some(event)) => audit_log::record(state, now, &Actor { user: None, ..actor.clone() }, event),
        _ => Ok(()),
    };
    if let Err(error) = write() {
        error!(error = %Chain(&error), "cannot write the audit log");
    }
}

/// Keeps the report of a sync on one of its clusters, and leaves word of it together with those of the others.
pub(crate) fn keep_with_others(
    state: &State,
    config: &Config,
    report: &Report,
    metrics: &Metrics,
    gathering: &Gathering,
) -> Result<bool, StateError> {
    let total = config.settings.syncs.get(&report.sync).map_or(1, |sync| config.clusters_of(sync).len());
    if total <= 1 {
        return keep(state, config, report, metrics);
    }
    gathering.begin(report, total);
    if gathering.expiry.is_due(report.finished) {
        journal::expire(state, &config.journal(), report.finished);
    }
    let gather = |kept: &Path| gather(state, (config, metrics), report, kept, gathering);
    let is_new = journal::record(state, &config.journal(), report, gather)?;
    if gathering.end(report) {
        for (name, _) in told_of(config, &report.sync) {
            left(name, metrics, Queue::new(state, name).close(&report.sync, gathering.progress(&report.sync)))?;
        }
    }
    Ok(is_new)
}

/// Leaves a kept report to be told with others, for everybody who is to be told.
fn gather(
    state: &State,
    (config, metrics): (&Config, &Metrics),
    report: &Report,
    kept: &Path,
    gathering: &Gathering,
) -> Result<(), StateError> {
    let mut result = Ok(());
    let Some(cluster) = report.clusters.keys().next() else { return Ok(()) };
    let longest = told_of(config, &report.sync).map(|(_, webhook)| webhook.group_wait.0).max().unwrap_or_default();
    let moment = gathering.moment(report, SignedDuration::try_from(longest).unwrap_or_default());
    for (name, webhook) in told_of(config, &report.sync) {
        let (sync, revision) = (report.sync.as_str(), report.revision.as_str());
        let (progress, queue) = (gathering.progress(sync), Queue::new(state, name));
        let part = Part { sync, revision, cluster, kept: kept.to_owned() };
        let lost = match moment {
            _ if webhook.group_wait.0.is_zero() => queue.tell_alone(part, progress),
            Moment::AtOnce => {
                queue.add(part, progress, report.finished).and_then(|lost| Ok(lost + queue.close(sync, progress)?))
            }
            Moment::After(wait) => {
                queue.add(part, progress, report.finished.checked_add(wait).unwrap_or(report.finished))
            }
        };
        result = result.and(left(name, metrics, lost));
    }
    result
}

/// Returns the webhooks that are told of a sync.
fn told_of<'a>(config: &'a Config, sync: &'a str) -> impl Iterator<Item = (&'a String, &'a WebhookSettings)> {
    config.settings.reports.webhooks.iter().filter(move |(_, webhook)| webhook.is_about(sync))
}

/// Says what came of leaving a notification: how many of the oldest had to make room, or why it could not be left.
fn left(name: &str, metrics: &Metrics, result: Result<usize, StateError>) -> Result<(), StateError> {
    match result {
        Ok(0) => Ok(()),
        Ok(lost) => {
            metrics.notified(name, "dropped", lost);
            error!(webhook = name, lost, "too many notifications wait, the oldest are lost");
            Ok(())
        }
        Err(error) => {
            error!(webhook = name, error = %Chain(&error), "cannot leave a notification");
            Err(error)
        }
    }
}

/// Leaves a notification of a kept report for everybody who is to be told. That it cannot be left for one keeps it from
/// nobody else.
fn announce(state: &State, config: &Config, report: &Report, kept: &Path, metrics: &Metrics) -> Result<(), StateError> {
    if told_of(config, &report.sync).next().is_none() {
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
    let mut result = Ok(());
    for (name, _) in told_of(config, &report.sync) {
        result = result.and(left(name, metrics, Queue::new(state, name).put(&notification.id, body.as_bytes())));
    }
    result
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
    // What a daemon has gathered is told by that, as long as one runs.
    delivery.close_due(ABANDONED);
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

/// The time after which nobody else tells what waits to be told with others.
const ABANDONED: SignedDuration = SignedDuration::from_mins(1);

/// The longest time until a notification that another process has left is seen.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sends what waits, for as long as this is awaited.
pub(crate) async fn carry(mut delivery: Delivery) {
    loop {
        delivery.close_due(SignedDuration::ZERO);
        match delivery.step().await {
            Step::Done => {}
            Step::Nothing => sleep(LOOK_AGAIN).await,
            Step::Wait(pause, _) => sleep(pause).await,
        }
    }
}
