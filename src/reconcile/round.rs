//! One round of one sync on one cluster: observe, plan, write ahead, apply, wait, prune, record.
//!
//! The order is what makes it safe. The inventory is written before the first object is, and shortened only after a
//! deletion is known to have happened, so that a process that dies anywhere in here leaves an inventory that holds
//! everything it made.

mod cache_update;
mod dependence;
pub mod fast_path;
mod finish;
mod former_inventories;
pub mod health_snapshot;
pub mod summary;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::restore::Change;
use gatewright_engine::plan::saved::{SavedStep, saved};
use gatewright_engine::plan::{Action, Observed, Plan, Step, plan};
use gatewright_engine::unit::Rendering;
use gatewright_engine::unit::marked::Marked;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::cluster::{Cluster, ClusterError, KindScope, Reason};
use crate::desired::rendering::Want;
use crate::desired::rendering::work::RenderingError;
use crate::desired::siblings::Siblings;
use crate::history::archive::record::Recorder;
use crate::inventory::audit::Audit;
use crate::inventory::store::{Shards, forgetful};
use crate::reconcile::aliases::Names;
use crate::reconcile::apply::pre_image::{Keep, unkept};
use crate::reconcile::apply::{Applied, Limits, Terms, apply};
use crate::reconcile::cache::{Cache, HealthSnapshot, digests};
use crate::reconcile::observe::metadata::MetadataView;
use crate::reconcile::observe::{Known, Scope, observe};
use crate::reconcile::wait::{Unhealthy, WaitPolicy};
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, Mode, Saved};
use fast_path::NoChange;
use former_inventories::Stores;
use health_snapshot::HealthSnapshots;
use summary::units;

/// How often a round plans again when somebody else was faster.
const ATTEMPTS: usize = 4;

/// Everything that a round on a cluster is about.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is wanted, marks included.
    pub want: &'a Want,
    /// What the sync may do.
    pub policies: &'a Policies,
    /// Whether anything is changed.
    pub mode: Mode,
    /// How long to wait for health; `None`: not at all.
    pub wait_policy: Option<WaitPolicy>,
    /// How long to wait until Gateways are accepted of which something is adopted.
    pub acceptance: Duration,
    /// What is known from the last round; `None`: everything is compared again.
    pub last_round: Option<&'a LastRound>,
    /// What our other syncs want on this cluster.
    pub siblings: &'a Siblings,
    /// The names by which clusters answer.
    pub names: &'a Names,
    /// What this host remembers of the inventory; `None` where that is authoritative, as in a directory.
    pub audit: Option<&'a Audit>,
    /// Where objects are kept as they are before they are changed; `None` keeps nothing.
    pub recorder: Option<&'a Arc<Recorder>>,
    /// What a round has done that is to be undone; what is wanted holds all that may be wanted for it.
    pub undo: Option<&'a [Change]>,
    /// Told when the process is to end.
    pub stop: &'a CancellationToken,
}

impl<'a> Task<'a> {
    /// Writes down what is about to be done; what cannot be written down is not done.
    fn begin(&self, plan: &Plan) -> Result<(), ClusterError> {
        let Some(recorder) = self.recorder else { return Ok(()) };
        recorder.begin(plan).map_err(|error| unkept("a record of the round", error))
    }

    fn terms<'b>(&self, observed: &'b Observed) -> Terms<'b>
    where
        'a: 'b,
    {
        Terms { policies: self.policies, keep: Keep { recorder: self.recorder, observed } }
    }
}

/// What this host knows of a sync on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastRound {
    /// Its objects.
    pub cache: Cache,
    /// What the last round was about, if there was nothing left to do after it.
    pub no_change: Option<NoChange>,
}

/// What came of a round on a cluster.
#[derive(Debug)]
pub struct Conclusion {
    /// What is told.
    pub report: ClusterReport,
    /// What is known for the next round.
    pub last_round: Option<LastRound>,
    /// Whether that differs from what was known before.
    pub is_new: bool,
    /// The inventory is suspect, and nothing was changed: the next round is to read all of it again.
    pub is_suspect: bool,
    /// What was wanted, if it had to be rendered.
    pub rendering: Option<Arc<Marked>>,
}

impl Conclusion {
    /// Concludes with a report and nothing else.
    pub fn of(report: ClusterReport) -> Self {
        Self { report, last_round: None, is_new: false, is_suspect: false, rendering: None }
    }
}

/// Runs a round. What goes wrong is part of the report.
pub async fn run(cluster: &dyn Cluster, task: &Task<'_>) -> Conclusion {
    match try_run(cluster, task).await {
        Ok(conclusion) => conclusion,
        Err(error) => Conclusion::of(failed(&error)),
    }
}

/// Reports a cluster on which something could not be done at all.
pub fn failed(error: &ClusterError) -> ClusterReport {
    let state = if error.is_unreachable() { ClusterState::Unreachable } else { ClusterState::Failed };
    // When nothing at all can be asked, it does not matter which question happened to be the first.
    let cause: &dyn Error = match error.reason {
        Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized => &*error.source,
        _ => error,
    };
    ClusterReport::failed(state, Chain(cause).to_string(), error.hint.clone())
}

/// Reports a cluster on which nothing was begun, because the process is to end.
pub fn stopped() -> ClusterReport {
    ClusterReport { state: ClusterState::Stopped, ..ClusterReport::of(&Plan::default()) }
}

/// Reports a cluster for which nothing could be rendered, because this program has a bug.
pub fn unrendered(error: &RenderingError) -> ClusterReport {
    ClusterReport::failed(ClusterState::Failed, error.to_string(), Some(error.hint().to_owned()))
}

async fn try_run(cluster: &dyn Cluster, task: &Task<'_>) -> Result<Conclusion, ClusterError> {
    // Nothing is under way yet that could be left half done, and a silent server must not keep the process.
    let looked = tokio::select! {
        biased;
        () = task.stop.cancelled() => {
            return Ok(Conclusion::of(stopped()));
        }
        looked = first_look(cluster, task) => looked?,
    };
    let (place, view, stores) = match looked {
        First::Concluded(conclusion) => return Ok(*conclusion),
        First::Open(open) => *open,
    };
    let task = &Task { policies: &place.policies, ..*task };
    let here = &Here { task, place: &place };
    let rendering = Some(Arc::clone(&place.rendering));
    if task.mode == Mode::Plan || view.plan.is_stopped() {
        let mut report = ClusterReport::of(&view.plan);
        report.units = units(here, &view.plan, &here.health(&view, None), None, &Unhealthy::new());
        let steps = saved(&view.plan, &view.observed, &task.policies.conflicts.masker);
        report.saved = Saved { identity: view.observed.cluster.clone(), steps };
        let last_round = cache_update::planned(here, &view, &stores.own, &report);
        let is_new = task.last_round != last_round.as_ref();
        return Ok(Conclusion { report, last_round, is_new, is_suspect: stores.are_suspect(), rendering });
    }
    let (report, last_round) = carry_out(cluster, here, view, stores).await?;
    let is_new = task.last_round != last_round.as_ref();
    Ok(Conclusion { report, last_round, is_new, is_suspect: false, rendering })
}

/// What a round on a cluster goes by once it is known that there may be something to do.
struct Place {
    /// What identifies the cluster.
    identity: String,
    /// What is wanted there.
    rendering: Arc<Marked>,
    /// The digests of that.
    digests: BTreeMap<ObjectId, String>,
    /// What the sync may do, beside the others of this installation.
    policies: Policies,
}

/// A task at its place.
struct Here<'a> {
    task: &'a Task<'a>,
    place: &'a Place,
}

/// What was seen, and what is to be done about it.
struct View {
    plan: Plan,
    observed: Observed,
    /// The metadata of our objects, where they were looked at.
    metadata: Option<MetadataView>,
    /// What is known of those that nobody has touched.
    snapshots: BTreeMap<ObjectId, HealthSnapshot>,
}

impl Here<'_> {
    /// What is known of the state of objects.
    fn health<'a>(&self, view: &'a View, live: Option<&'a BTreeMap<ObjectId, Live>>) -> HealthSnapshots<'a> {
        let readiness = self.task.wait_policy.map(|wait_policy| wait_policy.readiness).unwrap_or_default();
        HealthSnapshots {
            live: live.unwrap_or(&view.observed.live),
            known: &view.snapshots,
            readiness: (!view.observed.is_unmarked).then_some(readiness),
        }
    }
}

/// How far the first look has led.
enum First {
    Concluded(Box<Conclusion>),
    Open(Box<(Place, View, Stores)>),
}

/// Renders while the cluster is asked who it is, where it is certain that the round needs it. What is shared by all
/// clusters is made only once; how it went is seen by whoever takes it.
async fn begin(task: &Task<'_>) {
    if task.last_round.is_none() {
        drop(task.want.rendering().await);
    }
}

/// Looks at what the last round was about, and only if that does not settle it at all that is wanted.
async fn first_look(cluster: &dyn Cluster, task: &Task<'_>) -> Result<First, ClusterError> {
    let (identity, ()) = tokio::join!(cluster.identity(), begin(task));
    let identity = identity?;
    let twin = task.names.twin(&identity).await;
    // Whatever is known from the last round, this one is to say that nothing is done.
    let last_round = task.last_round.filter(|last_round| twin.is_none() && last_round.cache.are_about(&identity));
    let metadata = match last_round {
        Some(last_round) => {
            MetadataView::default().widened(cluster, &last_round.cache.kinds(), &task.policies.marker).await?
        }
        None => None,
    };
    if let (Some(last_round), Some(metadata)) = (last_round, &metadata)
        && let Some(conclusion) = fast_path::conclude(cluster, task, last_round, metadata).await?
    {
        return Ok(First::Concluded(Box::new(conclusion)));
    }
    let rendering = match task.want.rendering().await {
        Ok(rendering) => rendering,
        Err(error) => return Ok(First::Concluded(Box::new(Conclusion::of(unrendered(&error))))),
    };
    let rendering = located(cluster, task.policies, &rendering).await?.map_or(rendering, Arc::new);
    let digests = digests(&rendering.units, &task.policies.conflicts);
    let policies = Policies {
        claims: task.siblings.claims().await,
        known_cluster: task.audit.and_then(Audit::cluster).unwrap_or_default(),
        twin,
        ..task.policies.clone()
    };
    let place = Place { identity, rendering, digests, policies };
    let here = Here { task: &Task { policies: &place.policies, ..*task }, place: &place };
    let shards = if last_round.is_some() { Shards::Here } else { Shards::There };
    let stores = Stores::load(cluster, task, shards).await?;
    let owned = stores.others.with_former(&stores.own.inventory);
    let view =
        look(cluster, &here, (&stores, &owned), last_round.map(|last_round| &last_round.cache), metadata).await?;
    Ok(First::Open(Box::new((place, view, stores))))
}

/// Applies, and plans again where somebody else was faster.
async fn carry_out(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    mut view: View,
    mut stores: Stores,
) -> Result<(ClusterReport, Option<LastRound>), ClusterError> {
    let (task, sync) = (here.task, &here.task.policies.marker.sync);
    let limits = Limits { acceptance: Instant::now() + task.acceptance, stop: task.stop };
    let mut applied = Applied::default();
    let mut done = BTreeMap::new();
    if let (Some(suspicion), Some(audit)) = (&stores.own.suspicion, task.audit) {
        audit.keep_suspicion(suspicion).map_err(|error| forgetful(sync, error))?;
    }
    for attempt in 1..=ATTEMPTS {
        task.begin(&view.plan)?;
        // What is wanted and bears our mark needs no other proof.
        let proven: BTreeSet<&ObjectId> =
            view.plan.steps.iter().filter(|step| step.object.is_some()).map(|step| &step.id).collect();
        stores.own.unverified.retain(|id| !proven.contains(id));
        stores.own.save(cluster, sync, &view.plan.inventory).await?;
        applied = apply(cluster, &view.plan, task.terms(&view.observed), limits).await;
        let is_stale = applied.outcomes.values().any(|outcome| matches!(outcome, Outcome::Stale(_)));
        if !is_stale || attempt == ATTEMPTS || task.stop.is_cancelled() {
            break;
        }
        // Somebody else was faster: what was written so far is in the inventory, and is seen as ours now.
        debug!(sync, attempt, "plans again, because an object was changed meanwhile");
        view.plan.inventory.record_uids(applied.live.values());
        stores.own.save(cluster, sync, &view.plan.inventory).await?;
        let cache = cache_update::so_far(here, &view, &applied);
        // What is stale may have been done all the same: an answer was lost, and the second try met the first.
        let may_be_done =
            |step: &Step| matches!(applied.outcomes.get(&step.id), Some(Outcome::Done | Outcome::Stale(_)));
        done.extend(view.plan.steps.into_iter().filter(may_be_done).map(|step| (step.id.clone(), step)));
        let metadata = view.metadata.map(|_| MetadataView::default());
        let policies = Policies { pinned: left(task.policies, &done), ..task.policies.clone() };
        let here = &Here { task: &Task { policies: &policies, ..*task }, place: here.place };
        view = look(cluster, here, (&stores, &stores.own.inventory), Some(&cache), metadata).await?;
        if view.plan.is_stopped() {
            return Ok((ClusterReport::of(&view.plan), None));
        }
    }
    carry_over(task, &mut view.plan, &mut applied, done);
    Ok(finish::finish(cluster, here, stores, view, applied).await)
}

/// What is left to do of a plan that is carried out as it was made.
fn left(policies: &Policies, done: &BTreeMap<ObjectId, Step>) -> Option<Vec<SavedStep>> {
    let pinned = policies.pinned.as_ref()?;
    let is_done = |step: &SavedStep| done.get(&step.id).is_some_and(|done| done.action.word() == step.action);
    Some(pinned.iter().filter(|step| !is_done(step)).cloned().collect())
}

/// Puts documents of kinds that nobody here knows into a namespace or not, as the cluster has the kind; `None` if they
/// are right already.
pub async fn located(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
) -> Result<Option<Marked>, ClusterError> {
    let guessed = rendering.units.iter().filter(|unit| unit.home.is_some() && policies.is_about(&unit.id));
    let kinds: BTreeSet<Gvk> = guessed.flat_map(|unit| unit.objects.iter().map(Object::gvk)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let known = cluster.kinds(&kinds).await?.served;
    let scoped = rendering.scoped(|kind| known.get(kind).map(|scope| *scope == KindScope::Namespaced));
    Ok(scoped.map(|scoped| {
        for problem in scoped.problems.iter().filter(|problem| !rendering.problems.contains(problem)) {
            warn!(%problem, "problem in the source on this cluster");
        }
        scoped.marked(&policies.marker)
    }))
}

async fn look(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    (stores, owned): (&Stores, &Inventory),
    cache: Option<&Cache>,
    metadata: Option<MetadataView>,
) -> Result<View, ClusterError> {
    let Here { task, place } = here;
    let known =
        cache.zip(metadata.as_ref()).map(|(cache, metadata)| Known { cache, metadata, digests: &place.digests });
    let scope = Scope {
        identity: &place.identity,
        units: &place.rendering.units,
        owned,
        policies: task.policies,
        dry_run_creates: task.mode == Mode::Plan,
        known,
    };
    let (mut observed, metadata) = observe(cluster, scope).await?;
    stores.report(cluster, task, &mut observed).await?;
    let mut plan = match task.undo {
        Some(changes) => undo::plan(cluster, changes, &observed, owned, task.policies).await,
        None => plan(&place.rendering, &observed, owned, task.policies),
    };
    let mut snapshots = BTreeMap::new();
    if let Some((cache, metadata)) = cache.zip(metadata.as_ref()) {
        let known = cache.by_object();
        for step in plan.steps.iter_mut().filter(|step| observed.unchanged.contains(&step.id)) {
            step.fields = known.get(&step.id).map(|note| note.fields.clone()).unwrap_or_default();
        }
        let unchanged = cache.objects.iter().filter(|note| observed.unchanged.contains(&note.id));
        snapshots = health_snapshot::snapshots(cluster, task, unchanged, metadata).await?;
    }
    Ok(View { plan, observed, metadata, snapshots })
}

/// What was done before the last plan was made is as it should be for that plan, and a change of this round all the
/// same: it is awaited and reported. What is not as it should be was not done, and has a step of its own in that plan.
fn carry_over(task: &Task<'_>, plan: &mut Plan, applied: &mut Applied, mut done: BTreeMap<ObjectId, Step>) {
    for step in plan.steps.iter_mut().filter(|step| step.action == Action::Unchanged) {
        if let Some(earlier) = done.remove(&step.id) {
            applied.outcomes.insert(step.id.clone(), Outcome::Done);
            *step = earlier;
        }
    }
    let refused: BTreeSet<&ObjectId> = plan.refusals.iter().map(|refusal| &refusal.id).collect();
    // A namespace that is there is in no plan, nor is what is undone already.
    let is_in_none =
        |step: &Step| step.action == Action::CreateNamespace || (task.undo.is_some() && !refused.contains(&step.id));
    let done: Vec<Step> = done.into_values().filter(is_in_none).collect();
    for step in done {
        applied.outcomes.entry(step.id.clone()).or_insert_with(|| {
            plan.steps.insert(0, step);
            Outcome::Done
        });
    }
}
