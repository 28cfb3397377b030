//! Waiting for what a round has changed to be healthy, by LISTs per kind and no watch.

mod causes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::health::{Health, Readiness, health};
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::deployer::Awaited;
use gatewright_engine::plan::guard::confirm::is_slow;
use gatewright_engine::plan::policies::Policies;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::basics::duration::Period;
use crate::cluster::{Cluster, ClusterError, budget};
use crate::reconcile::model::{RoundSettings, Unhealthy, WaitPolicy};
use crate::reconcile::phase::Phase;

/// The first pause between two looks; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest time for finding out why waiting was in vain.
const LAST_QUESTIONS: Duration = Duration::from_secs(10);

/// The path at which a Gateway names its parameters.
const PARAMETERS: &str = "/spec/infrastructure/parametersRef";

impl WaitPolicy {
    /// Returns for how long these are awaited.
    fn of(self, objects: &BTreeMap<ObjectId, Gvk>, seen: &BTreeMap<ObjectId, Live>, kinds: &kinds::Table) -> Duration {
        let is_slow = |id: &ObjectId| is_slow(id, seen.get(id).map(|live| live.object.body()), kinds);
        if objects.keys().any(is_slow) { self.timeout.max(self.model_timeout) } else { self.timeout }
    }
}

/// Waits until all objects are healthy, each unit that is not has failed for good, time is up, or the sync was suspended,
/// so that a rollback need not wait for that time; returns those that are not healthy. `objects` are by unit.
///
/// `seen` is filled with the newest state of every object that was looked at.
pub(crate) async fn wait(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    units: &BTreeMap<ObjectId, BTreeMap<ObjectId, Gvk>>,
    wait_policy: WaitPolicy,
    seen: &mut BTreeMap<ObjectId, Live>,
) -> Result<Unhealthy, ClusterError> {
    let RoundSettings { policies, stop, suspension, .. } = settings;
    let objects: &BTreeMap<ObjectId, Gvk> =
        &units.values().flatten().map(|(id, gvk)| (id.clone(), gvk.clone())).collect();
    let timeout = wait_policy.of(objects, seen, &policies.kinds);
    let deadline = Instant::now() + timeout;
    let mut pause = FIRST_PAUSE;
    // What an apply has answered is from before any controller saw it: enough for what never becomes anything, and
    // never for a failure.
    let mut unhealthy = judge(objects, seen, (wait_policy.readiness, &policies.kinds)).0;
    loop {
        let mut has_failed = false;
        if !unhealthy.is_empty() {
            look(cluster, policies, objects, &unhealthy, seen).await?;
            let failed;
            (unhealthy, failed) = judge(objects, seen, (wait_policy.readiness, &policies.kinds));
            let is_hopeless = |unit: &BTreeMap<ObjectId, Gvk>| unit.keys().any(|id| failed.contains(id));
            let is_well = |unit: &BTreeMap<ObjectId, Gvk>| !unit.keys().any(|id| unhealthy.contains_key(id));
            has_failed = !failed.is_empty() && units.values().all(|unit| is_hopeless(unit) || is_well(unit));
        }
        let is_late = Instant::now() >= deadline;
        if unhealthy.is_empty() || has_failed || stop.is_cancelled() || is_late || suspension.look() {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = sleep(LAST_QUESTIONS) => {}
                () = causes::explain(cluster, seen, &mut unhealthy) => {}
            }
            let late = format!("after {}: ", Period(timeout));
            let since = if is_late && !has_failed { late.as_str() } else { "" };
            return Ok(unhealthy.into_iter().map(|(id, what)| (id, format!("{since}{what}"))).collect());
        }
        if let Some(phase) = Phase::of(&unhealthy) {
            settings.teller.tell(phase);
        }
        tokio::select! {
            () = sleep(pause.min(deadline - Instant::now())) => {}
            () = stop.cancelled() => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The answer to the question whether a control plane has accepted a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// It has.
    Accepted,
    /// It has not by the deadline; what is missing.
    Late(String),
    /// It cannot any more, or nobody waits for it.
    Lost(String),
}

/// Waits until a control plane has accepted the newest generation of a Gateway that names these parameters, or none.
pub(crate) async fn accepted(
    cluster: &dyn Cluster,
    gateway: &Awaited,
    kinds: &kinds::Table,
    deadline: Instant,
    stop: &CancellationToken,
) -> Result<Acceptance, ClusterError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let state = match cluster.get(&gateway.gvk, &gateway.id).await? {
            None => return Ok(Acceptance::Lost("it is not there any more".to_owned())),
            Some(live) if live.object.body().pointer(PARAMETERS).unwrap_or(&Value::Null) != &gateway.parameters => {
                return Ok(Acceptance::Lost("somebody has changed its parametersRef".to_owned()));
            }
            Some(live) => health(live.object.body(), Readiness::default(), kinds),
        };
        match state {
            Health::Current => return Ok(Acceptance::Accepted),
            Health::InProgress(what) | Health::Failed(what) if stop.is_cancelled() => {
                return Ok(Acceptance::Lost(what));
            }
            Health::InProgress(what) | Health::Failed(what) if Instant::now() >= deadline => {
                return Ok(Acceptance::Late(what));
            }
            Health::InProgress(_) | Health::Failed(_) => {}
        }
        tokio::select! {
            () = sleep(pause.min(deadline.saturating_duration_since(Instant::now()))) => {}
            () = stop.cancelled() => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks again at the kinds of what is not healthy yet.
async fn look(
    cluster: &dyn Cluster,
    policies: &Policies,
    objects: &BTreeMap<ObjectId, Gvk>,
    unhealthy: &Unhealthy,
    seen: &mut BTreeMap<ObjectId, Live>,
) -> Result<(), ClusterError> {
    let kinds: BTreeSet<&Gvk> = unhealthy.keys().filter_map(|id| objects.get(id)).collect();
    let label = policies.marker.label();
    for gvk in kinds {
        // What was seen the last time is held no more.
        for live in budget::together(cluster.list(gvk, (SYNC_LABEL, &label))).await? {
            if objects.contains_key(live.object.id()) {
                seen.insert(live.object.id().clone(), live);
            }
        }
    }
    Ok(())
}

/// Returns those of some objects that are not healthy, with what is wrong, and which of them have failed for good.
pub(crate) fn judge(
    objects: &BTreeMap<ObjectId, Gvk>,
    seen: &BTreeMap<ObjectId, Live>,
    (readiness, kinds): (Readiness, &kinds::Table),
) -> (Unhealthy, BTreeSet<ObjectId>) {
    let (mut unhealthy, mut failed) = (Unhealthy::new(), BTreeSet::new());
    for id in objects.keys() {
        let state = seen.get(id).map_or_else(
            || Health::InProgress("it is not there".to_owned()),
            |live| health(live.object.body(), readiness, kinds),
        );
        if matches!(state, Health::Failed(_)) {
            failed.insert(id.clone());
        }
        if state != Health::Current {
            unhealthy.insert(id.clone(), state.to_string());
        }
    }
    (unhealthy, failed)
}
