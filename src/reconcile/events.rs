//! Kubernetes Events: word of each object that a round has changed, where people look who do not know of us
//! (`kubectl describe`, `kubectl events`).
//!
//! They are told when all else is done, and nothing depends on them: a cluster that takes none has had its round.

use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use gatewright_engine::plan::{Action, Plan, Step};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::apply::model::Applied;
use super::model::RoundSettings;
use crate::basics::sanitize;
use crate::cluster::{Cluster, ClusterError, Event, EventType};
use crate::report::outcome::Outcome;

/// The most Events of a round on a cluster; the report has the rest. Each is a request, and etcd keeps it for an hour.
const MOST: usize = 100;

/// The most requests at a time.
const AT_ONCE: usize = 8;

/// The longest time that all of them may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most fields that are named of an object that was changed.
const FIELDS: usize = 5;

/// Records Events of a round.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    /// The round: each Event is recorded once for it.
    pub run: String,
    /// What the round was for, if not for what the source says.
    pub cause: Option<String>,
    /// When it began.
    pub started: Timestamp,
    /// The same moment, by a clock that nobody sets.
    pub begun: Instant,
}

/// Records what has become of the steps of a plan. What cannot be recorded is told in the log.
pub(super) async fn record(cluster: &dyn Cluster, settings: &RoundSettings, plan: &Plan, applied: &Applied) {
    let Some(recorder) = &settings.events else { return };
    let events: Vec<Event> = plan.steps.iter().filter_map(|step| recorder.event(settings, step, applied)).collect();
    let sent = tokio::select! {
        biased;
        () = settings.stop.cancelled() => return,
        sent = timeout(PATIENCE, send(cluster, &events)) => sent,
    };
    let Ok(failed) = sent else {
        return warn!(sync = settings.sync(), "not all Events of the round were recorded in time");
    };
    if let Some(error) = failed.first() {
        let (lost, hint) = (failed.len(), error.hint.as_deref());
        warn!(sync = settings.sync(), lost, error = %Chain(error), hint, "cannot record Events of the round");
    }
}

/// Sends Events, and returns what went wrong.
async fn send(cluster: &dyn Cluster, events: &[Event]) -> Vec<ClusterError> {
    let mut failed = Vec::new();
    for batch in events[..events.len().min(MOST)].chunks(AT_ONCE) {
        let sent = join_all(batch.iter().map(|event| cluster.record_event(event))).await;
        failed.extend(sent.into_iter().filter_map(Result::err));
    }
    failed
}

impl EventRecorder {
    /// Returns the Event for a step, if something was done or has failed.
    fn event(&self, settings: &RoundSettings, step: &Step, applied: &Applied) -> Option<Event> {
        let (reason, word) = words(&step.action)?;
        let by = match &self.cause {
            Some(cause) => format!("sync {} ({cause})", settings.sync()),
            None => format!("sync {} from revision {}", settings.sync(), settings.policies.applying.revision),
        };
        let (event_type, reason, note) = match applied.outcomes.get(&step.id)? {
            Outcome::Done => (EventType::Normal, reason, format!("{word} by {by}{}", fields(step))),
            Outcome::Failed(why) => (EventType::Warning, "ApplyFailed", format!("not {word} by {by}: {why}")),
            Outcome::Stale(_) | Outcome::Skipped => return None,
        };
        let elapsed = SignedDuration::try_from(self.begun.elapsed()).unwrap_or_default();
        Some(Event {
            event_type,
            reason,
            action: step.action.word(),
            note: sanitize::line(&note).into_owned(),
            regarding: (step.gvk.clone(), step.id.clone()),
            uid: uid(step, applied),
            run: self.run.clone(),
            time: self.started.checked_add(elapsed).unwrap_or(self.started),
        })
    }
}

/// Returns the reason as Events have it, and the word for people; `None` where nothing changes on the cluster.
fn words(action: &Action) -> Option<(&'static str, &'static str)> {
    match action {
        Action::CreateNamespace | Action::Create | Action::Generate(_) => Some(("Created", "created")),
        Action::Update(_) => Some(("Updated", "updated")),
        Action::Adopt(_) | Action::AdoptFromDeployer(_) => Some(("Adopted", "adopted")),
        Action::Recreate(_) => Some(("Recreated", "recreated")),
        Action::DeleteFirst(_) | Action::Prune(_) => Some(("Deleted", "deleted")),
        Action::Unchanged | Action::Omit | Action::Release(_) | Action::Forget => None,
    }
}

/// Names the fields that were changed; their values may be secret, and are in the report.
fn fields(step: &Step) -> String {
    let paths: Vec<&str> = step.differences.iter().map(|difference| difference.path.as_str()).collect();
    match (&step.action, paths.as_slice()) {
        (Action::Update(_) | Action::Adopt(_), [_, ..]) => {
            let more = if paths.len() > FIELDS { format!(" and {} more", paths.len() - FIELDS) } else { String::new() };
            format!(": {}{more}", paths[..paths.len().min(FIELDS)].join(", "))
        }
        _ => String::new(),
    }
}

/// Returns the uid of the object; empty if there is none.
fn uid(step: &Step, applied: &Applied) -> String {
    match &step.action {
        Action::Prune(deletion) | Action::DeleteFirst(deletion) => deletion.over.uid.clone(),
        _ => applied.live.get(&step.id).map(|live| live.uid.clone()).unwrap_or_default(),
    }
}
