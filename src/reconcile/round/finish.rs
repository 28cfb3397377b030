//! The end of a round on a cluster: wait, prune, record.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::{Action, Plan, Release, Step};
use tokio::time::Instant;
use tracing::{Instrument as _, debug_span};

use super::cache_update::{self, Basis};
use super::dependence;
use super::former_inventories::Stores;
use super::summary::report;
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store::Store;
use crate::reconcile::apply::model::{Applied, Terms};
use crate::reconcile::apply::prune::prune;
use crate::reconcile::cache::LastRound;
use crate::reconcile::events;
use crate::reconcile::model::{Conclusion, Facts, RoundSettings, Unhealthy};
use crate::reconcile::references::missing;
use crate::reconcile::wait::{judge, wait};
use crate::report::ClusterReport;
use crate::report::outcome::Outcome;

/// Waits, prunes and records. Whatever goes wrong here, what was done before it is in the report.
pub(super) async fn finish(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    facts: &Facts,
    mut stores: Stores,
    mut plan: Plan,
    mut applied: Applied,
) -> (ClusterReport, Option<LastRound>) {
    let written = Instant::now();
    let mut after = After { live: facts.observed.live.clone(), unhealthy: Unhealthy::new(), notes: Vec::new() };
    after.live.extend(applied.live.clone());
    let ended = end(cluster, (settings, facts), &mut stores.own, &mut plan, &mut applied, &mut after).await;
    let ended = match ended {
        Ok(()) => stores.dissolve(cluster).await,
        failed => failed,
    };
    for step in plan.steps.iter().filter(|step| matches!(step.action, Action::Prune(_))) {
        applied.outcomes.entry(step.id.clone()).or_insert(Outcome::Skipped);
    }
    if ended.is_ok() {
        applied.outcomes.extend(released(&plan));
    }
    events::record(cluster, settings, &plan, &applied).await;
    let mut report = report(settings, facts, &plan, &applied, &after.live, &after.unhealthy);
    report.notes.append(&mut after.notes);
    if let Err(error) = ended {
        let failed = Conclusion::failed(&error).report;
        return (ClusterReport { state: failed.state, error: failed.error, ..report }, None);
    }
    let closing = cache_update::closing(cluster, settings, &plan, &applied, written).await;
    let basis = Basis { settings, facts, plan: &plan, applied: &applied, live: &after.live, closing: closing.as_ref() };
    let last_round = basis.last_round(&stores.own, &report);
    (report, last_round)
}

/// The state after everything was applied.
struct After {
    /// The newest state of every object that was looked at.
    live: BTreeMap<ObjectId, Live>,
    /// The objects that are not healthy.
    unhealthy: Unhealthy,
    /// Notes on what they need and the cluster does not have.
    notes: Vec<String>,
}

impl After {
    /// Others have had the time of the round to make what is needed, so that only now it is said to be missing.
    async fn look_for_what_is_needed(
        &mut self,
        cluster: &dyn Cluster,
        (settings, facts): (&RoundSettings, &Facts),
        plan: &Plan,
    ) {
        let missing = tokio::select! {
            biased;
            () = settings.stop.cancelled() => return,
            missing = missing(cluster, plan, facts) => missing,
        };
        missing.explain(&facts.rendering, &facts.policies, &mut self.unhealthy);
        self.notes = missing.notes();
    }
}

async fn end(
    cluster: &dyn Cluster,
    (settings, facts): (&RoundSettings, &Facts),
    store: &mut Store,
    plan: &mut Plan,
    applied: &mut Applied,
    after: &mut After,
) -> Result<(), ClusterError> {
    let (sync, snapshots) = (settings.sync(), &facts.snapshots);
    if plan.inventory.cluster.is_empty() {
        // A directory has an identity only after its first write.
        plan.inventory.cluster = cluster.identity().await?;
    }
    plan.inventory.record_uids(applied.live.values());
    store.save(cluster, sync, &plan.inventory).await?;
    let mut bystanders = Unhealthy::new();
    if let Some(wait_policy) = settings.wait_policy.filter(|_| cluster.has_health() && applied.lost.is_none()) {
        let awaited = awaited(plan, applied, &facts.on_the_way);
        let live = &mut after.live;
        let wait = wait(cluster, settings, &awaited, wait_policy, live).instrument(debug_span!("wait"));
        after.unhealthy = wait.await?;
        bystanders = judge(&kept(plan), live, (wait_policy.readiness, &settings.policies.kinds)).0;
        bystanders.retain(|id, _| !snapshots.contains_key(id));
        let known = snapshots.iter().filter_map(|(id, health)| Some((id.clone(), health.sick.clone()?)));
        bystanders.extend(known);
        bystanders.retain(|id, _| !awaited.values().any(|objects| objects.contains_key(id)));
    }
    if applied.lost.is_none() {
        after.look_for_what_is_needed(cluster, (settings, facts), plan).await;
    }
    if settings.suspension.is_over() {
        // Nobody knows what would have become of it.
        after.unhealthy.clear();
    } else if applied.lost.is_none() && !settings.stop.is_cancelled() {
        let sick = (&after.unhealthy, &bystanders);
        let open = dependence::open(plan, applied, sick, &facts.rendering, &after.live);
        let postponed = dependence::postponed(plan, &open, &after.live, &settings.policies.kinds);
        let prune = prune(cluster, plan, &postponed, Terms::of(settings, facts));
        let pruned = prune.instrument(debug_span!("prune")).await;
        applied.absorb(pruned);
        applied.postponed.extend(postponed);
    }
    forget(plan, applied);
    after.unhealthy.extend(bystanders);
    store.save(cluster, sync, &plan.inventory).await
}

/// The objects that this round has written, by unit: only their health gates what follows. So does that of what an earlier
/// round has written for a rollout and did not see become healthy, because its process ended. A Gateway that was not accepted
/// in time has been waited for.
fn awaited(
    plan: &Plan,
    applied: &Applied,
    on_the_way: &BTreeSet<ObjectId>,
) -> BTreeMap<ObjectId, BTreeMap<ObjectId, Gvk>> {
    let is_written =
        |step: &&Step| step.action != Action::CreateNamespace && applied.outcomes.get(&step.id) == Some(&Outcome::Done);
    let is_under_way = |step: &&Step| step.action == Action::Unchanged && on_the_way.contains(&step.unit);
    let steps = plan.changes().filter(is_written).chain(plan.steps.iter().filter(is_under_way));
    let mut units: BTreeMap<ObjectId, BTreeMap<ObjectId, Gvk>> = BTreeMap::new();
    for step in steps.filter(|step| !applied.unaccepted.contains_key(&step.unit)) {
        units.entry(step.unit.clone()).or_default().insert(step.id.clone(), step.gvk.clone());
    }
    units
}

/// The objects that were left as they are: a sick one is reported, awaited by nobody, and in nobody's way.
fn kept(plan: &Plan) -> BTreeMap<ObjectId, Gvk> {
    let steps = plan.steps.iter().filter(|step| step.action == Action::Unchanged);
    steps.map(|step| (step.id.clone(), step.gvk.clone())).collect()
}

/// Only what is known to be gone leaves the inventory.
fn forget(plan: &mut Plan, applied: &Applied) {
    let is_gone = |id: &ObjectId| applied.outcomes.get(id) == Some(&Outcome::Done) && !applied.deleting.contains(id);
    let disowned = plan.steps.iter().filter(|step| step.action.disowns());
    for step in disowned.filter(|step| !step.action.deletes() || is_gone(&step.id)) {
        plan.inventory.entries.remove(&step.id);
    }
}

/// Returns the objects that have moved to another sync, with their outcome: they are done when this sync has let go of
/// them.
fn released(plan: &Plan) -> impl Iterator<Item = (ObjectId, Outcome)> {
    let is_over = |step: &&Step| matches!(step.action, Action::Release(Release { is_taken: true, .. }));
    plan.steps.iter().filter(is_over).map(|step| (step.id.clone(), Outcome::Done))
}
