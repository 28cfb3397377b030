//! One round of one sync on one cluster: observe, plan, write ahead, apply, wait, prune, record.
//!
//! The order is what makes it safe. The inventory is written before the first object is, and shortened only after a
//! deletion is known to have happened, so that a process that dies anywhere in here leaves an inventory that holds
//! everything it made.

mod dependence;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::saved::{SavedStep, saved};
use gatewright_engine::plan::{Action, Observed, Plan, Step, plan};
use gatewright_engine::unit::Rendering;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::apply::prune::prune;
use crate::apply::{Applied, Limits, Outcome, apply};
use crate::cluster::{Cluster, ClusterError, KindScope, Reason};
use crate::ledger::{self, Ledger};
use crate::observe::{Scope, observe};
use crate::report::{ClusterReport, ClusterState, Mode, Saved};
use crate::wait::{Patience, Unhealthy, sick, wait};
use summary::{report, units};

/// How often a round plans again when somebody else was faster.
const ATTEMPTS: usize = 4;

/// Everything that a round on a cluster is about.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is wanted, marks included.
    pub rendering: &'a Rendering,
    /// What the sync may do.
    pub policies: &'a Policies,
    /// Whether anything is changed.
    pub mode: Mode,
    /// How long to wait for health; `None`: not at all.
    pub patience: Option<Patience>,
    /// How long to wait until Gateways are accepted of which something is taken over.
    pub acceptance: Duration,
    /// Told when the process is to end.
    pub stop: &'a CancellationToken,
}

/// Runs a round. What goes wrong is part of the report.
pub async fn run(cluster: &dyn Cluster, task: &Task<'_>) -> ClusterReport {
    match try_run(cluster, task).await {
        Ok(report) => report,
        Err(error) => failed(&error),
    }
}

/// Reports a cluster on which something could not be done at all.
fn failed(error: &ClusterError) -> ClusterReport {
    let state = if error.is_unreachable() { ClusterState::Unreachable } else { ClusterState::Failed };
    // When nothing at all can be asked, it does not matter which question happened to be the first.
    let cause: &dyn Error = match error.reason {
        Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized => &*error.source,
        _ => error,
    };
    ClusterReport::failed(state, Chain(cause).to_string(), error.hint.clone())
}

async fn try_run(cluster: &dyn Cluster, task: &Task<'_>) -> Result<ClusterReport, ClusterError> {
    let sync = &task.policies.marker.sync;
    let first_look = async {
        let located = located(cluster, task).await?;
        let ledger = ledger::load(cluster, sync).await?;
        let here = Task { rendering: located.as_ref().unwrap_or(task.rendering), ..*task };
        let (plan, observed) = look(cluster, &here, &ledger.inventory).await?;
        Ok::<_, ClusterError>((located, ledger, plan, observed))
    };
    // Nothing is under way yet that could be left half done, and a silent server must not keep the process.
    let (located, mut ledger, mut plan, mut observed) = tokio::select! {
        biased;
        () = task.stop.cancelled() => {
            return Ok(ClusterReport { state: ClusterState::Stopped, ..ClusterReport::of(&Plan::default()) });
        }
        looked = first_look => looked?,
    };
    let task = &Task { rendering: located.as_ref().unwrap_or(task.rendering), ..*task };
    if task.mode == Mode::Plan || plan.is_stopped() {
        let mut report = ClusterReport::of(&plan);
        report.units = units(task, &plan, &observed.live, None, &Unhealthy::new());
        report.saved = Saved { identity: observed.cluster.clone(), steps: saved(&plan, &observed) };
        return Ok(report);
    }
    let limits = Limits { acceptance: Instant::now() + task.acceptance, stop: task.stop };
    let mut applied = Applied::default();
    let mut done = BTreeMap::new();
    for attempt in 1..=ATTEMPTS {
        ledger.save(cluster, sync, &plan.inventory).await?;
        applied = apply(cluster, &plan, &task.policies.marker, limits).await;
        let is_stale = applied.outcomes.values().any(|outcome| matches!(outcome, Outcome::Stale(_)));
        if !is_stale || attempt == ATTEMPTS || task.stop.is_cancelled() {
            break;
        }
        // Somebody else was faster: what was written so far is in the inventory, and is seen as ours now.
        debug!(sync, attempt, "plans again, because an object was changed meanwhile");
        note_uids(&mut plan.inventory, &applied);
        ledger.save(cluster, sync, &plan.inventory).await?;
        let is_done = |step: &Step| applied.outcomes.get(&step.id) == Some(&Outcome::Done);
        done.extend(plan.steps.into_iter().filter(is_done).map(|step| (step.id.clone(), step)));
        let policies = Policies { pinned: left(task.policies, &done), ..task.policies.clone() };
        (plan, observed) = look(cluster, &Task { policies: &policies, ..*task }, &ledger.inventory).await?;
        if plan.is_stopped() {
            return Ok(ClusterReport::of(&plan));
        }
    }
    carry_over(&mut plan, &mut applied, done);
    Ok(finish(cluster, task, ledger, plan, observed, applied).await)
}

/// What is left to do of a plan that is carried out as it was made.
fn left(policies: &Policies, done: &BTreeMap<ObjectId, Step>) -> Option<Vec<SavedStep>> {
    let pinned = policies.pinned.as_ref()?;
    let is_done = |step: &SavedStep| done.get(&step.id).is_some_and(|done| done.action.word() == step.action);
    Some(pinned.iter().filter(|step| !is_done(step)).cloned().collect())
}

/// Puts documents of kinds that nobody here knows into a namespace or not, as the cluster has the kind; `None` if they
/// are right already.
async fn located(cluster: &dyn Cluster, task: &Task<'_>) -> Result<Option<Rendering>, ClusterError> {
    let guessed = task.rendering.units.iter().filter(|unit| unit.home.is_some() && task.policies.is_about(&unit.id));
    let kinds: BTreeSet<Gvk> = guessed.flat_map(|unit| unit.objects.iter().map(Object::gvk)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let known = cluster.kinds(&kinds).await?;
    let settled = task.rendering.settled(|kind| known.get(kind).map(|scope| *scope == KindScope::Namespaced));
    let marker = &task.policies.marker;
    Ok(settled.map(|mut rendering| {
        for problem in rendering.problems.iter().filter(|problem| !task.rendering.problems.contains(problem)) {
            warn!(%problem, "problem in the source on this cluster");
        }
        for unit in rendering.units.iter_mut().filter(|unit| unit.home.is_some()) {
            unit.map(|object| marker.mark(object));
        }
        rendering
    }))
}

async fn look(cluster: &dyn Cluster, task: &Task<'_>, owned: &Inventory) -> Result<(Plan, Observed), ClusterError> {
    let scope = Scope {
        units: &task.rendering.units,
        owned,
        policies: task.policies,
        rehearse_creates: task.mode == Mode::Plan,
    };
    let observed = observe(cluster, scope).await?;
    let plan = plan(task.rendering, &observed, owned, task.policies);
    Ok((plan, observed))
}

/// What was done before the last plan was made is as it should be for that plan, and a change of this round all the
/// same: it is awaited and reported.
fn carry_over(plan: &mut Plan, applied: &mut Applied, mut done: BTreeMap<ObjectId, Step>) {
    for step in plan.steps.iter_mut().filter(|step| matches!(step.action, Action::Keep | Action::Forget)) {
        if let Some(earlier) = done.remove(&step.id) {
            applied.outcomes.insert(step.id.clone(), Outcome::Done);
            *step = earlier;
        }
    }
    // A namespace that is there is in no plan.
    for step in done.into_values().filter(|step| step.action == Action::CreateNamespace) {
        applied.outcomes.entry(step.id.clone()).or_insert_with(|| {
            plan.steps.insert(0, step);
            Outcome::Done
        });
    }
}

/// Waits, prunes and records. Whatever goes wrong here, what was done before it is in the report.
async fn finish(
    cluster: &dyn Cluster,
    task: &Task<'_>,
    mut ledger: Ledger,
    mut plan: Plan,
    observed: Observed,
    mut applied: Applied,
) -> ClusterReport {
    let mut live = observed.live;
    live.extend(applied.live.clone());
    let mut unhealthy = Unhealthy::new();
    let settled = settle(cluster, task, &mut ledger, &mut plan, &mut applied, (&mut live, &mut unhealthy)).await;
    for (id, outcome) in not_pruned(&plan).outcomes {
        applied.outcomes.entry(id).or_insert(outcome);
    }
    let report = report(task, &plan, &applied, &live, &unhealthy);
    match settled {
        Ok(()) => report,
        Err(error) => {
            let failed = failed(&error);
            ClusterReport { state: failed.state, error: failed.error, ..report }
        }
    }
}

async fn settle(
    cluster: &dyn Cluster,
    task: &Task<'_>,
    ledger: &mut Ledger,
    plan: &mut Plan,
    applied: &mut Applied,
    (live, unhealthy): (&mut BTreeMap<ObjectId, Live>, &mut Unhealthy),
) -> Result<(), ClusterError> {
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
        *unhealthy = wait(cluster, &task.policies.marker, &changed, patience, live, task.stop).await?;
        bystanders = sick(&kept(plan), live, patience.demands);
    }
    if applied.lost.is_none() && !task.stop.is_cancelled() {
        let open = dependence::open(plan, applied, (unhealthy, &bystanders), task.rendering, live);
        let postponed = dependence::postponed(plan, &open, live);
        let pruned = prune(cluster, plan, &postponed, &task.policies.marker, task.stop).await;
        applied.going.extend(pruned.going);
        applied.outcomes.extend(pruned.outcomes);
        applied.lost = applied.lost.take().or(pruned.lost);
        applied.postponed.extend(postponed);
    }
    forget(plan, applied);
    unhealthy.extend(bystanders);
    ledger.save(cluster, sync, &plan.inventory).await
}

/// The uids of what was made or changed are known now.
fn note_uids(inventory: &mut Inventory, applied: &Applied) {
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
        let is_gone = match step.action {
            Action::Forget => true,
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
