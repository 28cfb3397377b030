//! One round of one sync on one cluster: observe, plan, write ahead, apply, wait, prune, record.
//!
//! The order is what makes it safe. The inventory is written before the first object is, and shortened only after a
//! deletion is known to have happened, so that a process that dies anywhere in here leaves an inventory that holds
//! everything it made.

mod summary;
mod taken;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::restore::{Change, restoration};
use gatewright_engine::plan::{Action, Observed, Plan, Step, plan};
use gatewright_engine::unit::Rendering;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::apply::keep::{Keep, unkept};
use crate::apply::{Applied, Limits, Outcome, apply, prune};
use crate::archive::record::Recorder;
use crate::cluster::{Cluster, ClusterError, KindScope, Reason};
use crate::ledger::{self, Ledger};
use crate::observe::{Scope, observe};
use crate::report::{ClusterReport, ClusterState, Mode};
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
    /// Where objects are kept as they are before they are changed; `None` keeps nothing.
    pub recorder: Option<&'a Arc<Recorder>>,
    /// What a round has done that is to be undone; the rendering holds all that may be wanted for it.
    pub undo: Option<&'a [Change]>,
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
    if task.mode == Mode::Plan || !plan.holds.is_empty() {
        let mut report = ClusterReport::of(&plan);
        report.units = units(task, &plan, &observed.live, None, &Unhealthy::new());
        return Ok(report);
    }
    let limits = Limits { acceptance: Instant::now() + task.acceptance, stop: task.stop };
    let mut applied = Applied::default();
    let mut done = BTreeMap::new();
    for attempt in 1..=ATTEMPTS {
        task.begin(&plan)?;
        ledger.save(cluster, sync, &plan.inventory).await?;
        applied = apply(cluster, &plan, task.keep(&observed), limits).await;
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
        (plan, observed) = look(cluster, task, &ledger.inventory).await?;
        if !plan.holds.is_empty() {
            return Ok(ClusterReport::of(&plan));
        }
    }
    carry_over(task, &mut plan, &mut applied, done);
    Ok(finish(cluster, task, ledger, plan, observed, applied).await)
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
    let Some(changes) = task.undo else {
        let plan = plan(task.rendering, &observed, owned, task.policies);
        return Ok((plan, observed));
    };
    let mut restoration = restoration(changes, &observed, owned, &task.policies.marker);
    taken::leave_out(cluster, &mut restoration, &observed).await;
    let mut plan = plan(&restoration.rendering, &observed, &restoration.owned, task.policies);
    plan.refusals.extend(restoration.refusals);
    for (id, entry) in &owned.entries {
        plan.inventory.entries.entry(id.clone()).or_insert_with(|| entry.clone());
    }
    Ok((plan, observed))
}

impl Task<'_> {
    /// Writes down what is about to be done; what cannot be written down is not done.
    fn begin(&self, plan: &Plan) -> Result<(), ClusterError> {
        let Some(recorder) = self.recorder else { return Ok(()) };
        recorder.begin(plan).map_err(|error| unkept("a record of the round", error))
    }

    fn keep<'b>(&'b self, observed: &'b Observed) -> Keep<'b> {
        Keep { recorder: self.recorder, live: &observed.live }
    }
}

/// What was done before the last plan was made is as it should be for that plan, and a change of this round all the
/// same: it is awaited and reported.
fn carry_over(task: &Task<'_>, plan: &mut Plan, applied: &mut Applied, mut done: BTreeMap<ObjectId, Step>) {
    for step in plan.steps.iter_mut().filter(|step| step.action == Action::Keep) {
        if let Some(earlier) = done.remove(&step.id) {
            applied.outcomes.insert(step.id.clone(), Outcome::Done);
            *step = earlier;
        }
    }
    // A namespace that is there is in no plan, nor is what is undone already.
    let is_in_none = |step: &Step| step.action == Action::CreateNamespace || task.undo.is_some();
    for step in done.into_values().filter(is_in_none) {
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
    let mut live = observed.live.clone();
    live.extend(applied.live.clone());
    let mut unhealthy = Unhealthy::new();
    let settled = {
        let keep = task.keep(&observed);
        settle(cluster, (task, keep), &mut ledger, &mut plan, &mut applied, (&mut live, &mut unhealthy)).await
    };
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
    (task, keep): (&Task<'_>, Keep<'_>),
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
    if applied.is_complete() && unhealthy.is_empty() && !task.stop.is_cancelled() {
        let pruned = prune(cluster, plan, keep, &task.policies.marker, task.stop).await;
        forget(plan, &pruned);
        applied.outcomes.extend(pruned.outcomes);
        applied.lost = applied.lost.take().or(pruned.lost);
    } else {
        forget(plan, &not_pruned(plan));
    }
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
