//! The end of a round on a cluster: wait, prune, record.

use std::collections::BTreeMap;

use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::{Action, Plan, Release, Step};
use tokio::time::Instant;

use super::former_inventories::Ledgers;
use super::summary::report;
use super::{Here, Memory, View, cache_update, dependence, failed};
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store::Ledger;
use crate::reconcile::apply::Applied;
use crate::reconcile::apply::prune::prune;
use crate::reconcile::wait::{Unhealthy, sick, wait};
use crate::report::ClusterReport;
use crate::report::outcome::Outcome;

/// Waits, prunes and records. Whatever goes wrong here, what was done before it is in the report.
pub(super) async fn finish(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    mut ledgers: Ledgers,
    mut view: View,
    mut applied: Applied,
) -> (ClusterReport, Option<Memory>) {
    let written = Instant::now();
    let mut after = After { live: view.observed.live.clone(), unhealthy: Unhealthy::new() };
    after.live.extend(applied.live.clone());
    let settled = settle(cluster, here, &mut ledgers.own, &mut view, &mut applied, &mut after).await;
    let settled = match settled {
        Ok(()) => ledgers.others.dissolve(cluster).await,
        failed => failed,
    };
    for (id, outcome) in not_pruned(&view.plan).outcomes {
        applied.outcomes.entry(id).or_insert(outcome);
    }
    if settled.is_ok() {
        applied.outcomes.extend(released(&view.plan));
    }
    let vitals = here.health(&view, Some(&after.live));
    let report = report(here, &view.plan, &applied, &vitals, &after.unhealthy);
    if let Err(error) = settled {
        let failed = failed(&error);
        return (ClusterReport { state: failed.state, error: failed.error, ..report }, None);
    }
    let closing = cache_update::closing(cluster, here, &view, &applied, written).await;
    let memory = cache_update::finished(here, &view, &applied, &after.live, (&ledgers.own, &report), closing.as_ref());
    (report, memory)
}

/// How things are after everything was applied.
struct After {
    /// The newest state of every object that was looked at.
    live: BTreeMap<ObjectId, Live>,
    /// What is not healthy.
    unhealthy: Unhealthy,
}

async fn settle(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    ledger: &mut Ledger,
    view: &mut View,
    applied: &mut Applied,
    after: &mut After,
) -> Result<(), ClusterError> {
    let (task, View { plan, observed, vitals, .. }) = (here.task, view);
    let sync = &task.policies.marker.sync;
    if plan.inventory.cluster.is_empty() {
        // A directory has an identity only after its first write.
        plan.inventory.cluster = cluster.identity().await?;
    }
    note_uids(&mut plan.inventory, applied);
    ledger.save(cluster, sync, &plan.inventory).await?;
    let mut bystanders = Unhealthy::new();
    if let Some(patience) = task.patience.filter(|_| cluster.has_health() && applied.lost.is_none()) {
        let changed = changed(plan, applied);
        let live = &mut after.live;
        after.unhealthy = wait(cluster, &task.policies.marker, &changed, patience, live, task.stop).await?;
        bystanders = sick(&kept(plan), live, patience.demands);
        bystanders.retain(|id, _| !vitals.contains_key(id));
        let known = vitals.iter().filter_map(|(id, vital)| Some((id.clone(), vital.sick.clone()?)));
        bystanders.extend(known);
    }
    if applied.lost.is_none() && !task.stop.is_cancelled() {
        let sick = (&after.unhealthy, &bystanders);
        let open = dependence::open(plan, applied, sick, &here.place.rendering, &after.live);
        let postponed = dependence::postponed(plan, &open, &after.live);
        let pruned = prune(cluster, plan, &postponed, task.terms(observed), task.stop).await;
        applied.outcomes.extend(pruned.outcomes);
        applied.going.extend(pruned.going);
        applied.lost = applied.lost.take().or(pruned.lost);
        applied.postponed.extend(postponed);
    }
    forget(plan, applied);
    after.unhealthy.extend(bystanders);
    ledger.save(cluster, sync, &plan.inventory).await
}

/// The uids of what was made or changed are known now.
pub(super) fn note_uids(inventory: &mut Inventory, applied: &Applied) {
    for (id, live) in &applied.live {
        if let Some(entry) = inventory.entries.get_mut(id) {
            entry.uid = Some(live.uid.clone());
        }
    }
}

/// The objects that this round has written: only their health gates what follows.
fn changed(plan: &Plan, applied: &Applied) -> BTreeMap<ObjectId, Gvk> {
    let is_written = |id: &ObjectId| applied.outcomes.get(id) == Some(&Outcome::Done);
    let steps = plan.changes().filter(|step| step.action != Action::CreateNamespace && is_written(&step.id));
    steps.map(|step| (step.id.clone(), step.gvk.clone())).collect()
}

/// The objects that were left as they are: a sick one is reported, awaited by nobody, and in nobody's way.
fn kept(plan: &Plan) -> BTreeMap<ObjectId, Gvk> {
    let steps = plan.steps.iter().filter(|step| step.action == Action::Keep);
    steps.map(|step| (step.id.clone(), step.gvk.clone())).collect()
}

fn not_pruned(plan: &Plan) -> Applied {
    let prunes = plan.steps.iter().filter(|step| matches!(step.action, Action::Prune(_)));
    Applied { outcomes: prunes.map(|step| (step.id.clone(), Outcome::Skipped)).collect(), ..Applied::default() }
}

/// Only what is known to be gone leaves the inventory.
fn forget(plan: &mut Plan, applied: &Applied) {
    for step in &plan.steps {
        let is_gone = match &step.action {
            Action::Forget => true,
            Action::Release(Release { is_taken, .. }) => *is_taken,
            Action::Prune(_) | Action::ReleaseFirst(_) => {
                applied.outcomes.get(&step.id) == Some(&Outcome::Done) && !applied.going.contains(&step.id)
            }
            Action::CreateNamespace
            | Action::Create
            | Action::Update(_)
            | Action::Adopt(_)
            | Action::TakeOver(_)
            | Action::Generate(_)
            | Action::Recreate(_)
            | Action::Keep
            | Action::Omit => false,
        };
        if is_gone {
            plan.inventory.entries.remove(&step.id);
        }
    }
}

/// What has moved to another sync is done when this one has let go of it.
fn released(plan: &Plan) -> impl Iterator<Item = (ObjectId, Outcome)> {
    let is_over = |step: &&Step| matches!(step.action, Action::Release(Release { is_taken: true, .. }));
    plan.steps.iter().filter(is_over).map(|step| (step.id.clone(), Outcome::Done))
}
