//! The end of a round on a cluster: wait, prune, record.

use std::collections::BTreeMap;

use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::{Action, Plan};
use tokio::time::Instant;

use super::summary::report;
use super::{Here, Memory, View, failed, noting};
use crate::apply::{Applied, Outcome, prune};
use crate::cluster::{Cluster, ClusterError};
use crate::ledger::Ledger;
use crate::report::ClusterReport;
use crate::wait::{Unhealthy, sick, wait};

/// Waits, prunes and records. Whatever goes wrong here, what was done before it is in the report.
pub(super) async fn finish(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    mut ledger: Ledger,
    mut view: View,
    mut applied: Applied,
) -> (ClusterReport, Option<Memory>) {
    let written = Instant::now();
    let mut after = After { live: view.observed.live.clone(), unhealthy: Unhealthy::new() };
    after.live.extend(applied.live.clone());
    let settled = settle(cluster, here, &mut ledger, &mut view, &mut applied, &mut after).await;
    for (id, outcome) in not_pruned(&view.plan).outcomes {
        applied.outcomes.entry(id).or_insert(outcome);
    }
    let vitals = view.health(Some(&after.live));
    let report = report(here, &view.plan, &applied, &vitals, &after.unhealthy);
    if let Err(error) = settled {
        let failed = failed(&error);
        return (ClusterReport { state: failed.state, error: failed.error, ..report }, None);
    }
    let closing = noting::closing(cluster, here, &view, &applied, written).await;
    let memory = noting::finished(here, &view, &applied, &after.live, (&ledger, &report), closing.as_ref());
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
    if applied.is_complete() && after.unhealthy.is_empty() && !task.stop.is_cancelled() {
        let pruned = prune(cluster, plan, task.keep(observed), &task.policies.marker, task.stop).await;
        forget(plan, &pruned);
        applied.outcomes.extend(pruned.outcomes);
        applied.going.extend(pruned.going);
        applied.lost = applied.lost.take().or(pruned.lost);
    } else {
        forget(plan, &not_pruned(plan));
    }
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
fn forget(plan: &mut Plan, pruned: &Applied) {
    for step in &plan.steps {
        let is_gone = match step.action {
            Action::Forget => true,
            Action::Prune(_) => {
                pruned.outcomes.get(&step.id) == Some(&Outcome::Done) && !pruned.going.contains(&step.id)
            }
            Action::CreateNamespace
            | Action::Create
            | Action::Update(_)
            | Action::Adopt(_)
            | Action::TakeOver(_)
            | Action::Generate(_)
            | Action::Keep
            | Action::Omit => false,
        };
        if is_gone {
            plan.inventory.entries.remove(&step.id);
        }
    }
}
