//! One round of one sync on one cluster: observe, plan, write ahead, apply, wait, prune, record.
//!
//! The order is what makes it safe. The inventory is written before the first object is, and shortened only after a
//! deletion is known to have happened, so that a process that dies anywhere in here leaves an inventory that holds
//! everything it made.

mod cache_update;
mod dependence;
mod fast_path;
mod finish;
mod former_inventories;
pub(crate) mod kept;
mod recognize;
mod summary;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::inventory::Inventory;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::bodies::bodies;
use gatewright_engine::plan::deployer::settings::proposals;
use gatewright_engine::plan::guard::rollout::Wait;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::saved::{SavedStep, saved};
use gatewright_engine::plan::{Action, Observed, Plan, Step, plan};
use gatewright_engine::text::digest;
use gatewright_engine::unit::Unit;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, debug_span};

use crate::cluster::{Cluster, ClusterError};
use crate::desired::rendering::Want;
use crate::inventory::audit::Audit;
use crate::inventory::store::{Shards, forgetful};
use crate::reconcile::addressed::service_addresses;
use crate::reconcile::apply::apply;
use crate::reconcile::apply::model::{Applied, Terms};
use crate::reconcile::apply::pre_image::unkept;
use crate::reconcile::cache::{LastRound, digests};
use crate::reconcile::capacity::shortages;
use crate::reconcile::depends::Waiting;
use crate::reconcile::health_snapshot::{HealthSnapshots, snapshots};
use crate::reconcile::located::located;
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::model::{Conclusion, Facts, RoundSettings, Unhealthy};
use crate::reconcile::observe::observe;
use crate::reconcile::phase::Phase;
use crate::reconcile::references::missing;
use crate::reconcile::rollout::{Answer, Asked};
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, Mode, Saved};
use cache_update::Basis;
use former_inventories::Stores;
use recognize::{Recognized, recognize};
use summary::units;

/// The most times that a round plans when somebody else was faster.
const ATTEMPTS: usize = 4;

/// Runs a round. What goes wrong is part of the report.
pub(crate) async fn run(cluster: &dyn Cluster, settings: &RoundSettings) -> Conclusion {
    try_run(cluster, settings).await.unwrap_or_else(|error| Conclusion::failed(&error))
}

async fn try_run(cluster: &dyn Cluster, settings: &RoundSettings) -> Result<Conclusion, ClusterError> {
    // Nothing is under way yet that could be left half done, and a silent server must not keep the process.
    let looked = tokio::select! {
        biased;
        () = settings.stop.cancelled() => return Ok(Conclusion::stopped()),
        looked = first_look(cluster, settings) => looked?,
    };
    let (mut facts, mut plan, stores) = match looked {
        First::Concluded(conclusion) => return Ok(*conclusion),
        First::Open(open) => *open,
    };
    kept::recall(settings, &plan).await;
    take_turn(settings, &mut facts, &mut plan);
    if let Some(history) = settings.history.as_ref().filter(|_| !plan.is_empty() || !plan.holds.is_empty()) {
        history.begin(&settings.want, &facts.rendered).await;
    }
    let rendering = Some(Arc::clone(&facts.rendered));
    let is_held = settings.mode == Mode::Plan || plan.is_stopped();
    let is_suspect = is_held && stores.are_suspect();
    let (report, last_round) = if is_held {
        let (mut report, last_round) = planned(settings, &facts, &plan, &stores);
        // A round that is held comes again and again, and asks for nothing more.
        if settings.mode == Mode::Plan {
            let lacks = async {
                let missing = missing(cluster, &plan, &facts).await.notes();
                missing.into_iter().chain(shortages(cluster, &plan, &facts.observed.live).await).collect()
            };
            report.notes.extend(unless_stopped(settings, lacks).await);
        }
        (report, last_round)
    } else {
        carry_out(cluster, settings, facts, plan, stores).await?
    };
    let is_new = settings.last_round != last_round;
    Ok(Conclusion { report, last_round, is_new, is_suspect, rendering })
}

/// Does something that nothing depends on, and gives it up where the process is to end.
async fn unless_stopped(settings: &RoundSettings, lines: impl Future<Output = Vec<String>>) -> Vec<String> {
    tokio::select! {
        biased;
        () = settings.stop.cancelled() => Vec::new(),
        lines = lines => lines,
    }
}

/// Has units whose pods a plan replaces wait until it is their turn on this cluster.
fn take_turn(settings: &RoundSettings, facts: &mut Facts, plan: &mut Plan) {
    let Some(turn) = &settings.turn else { return };
    facts.on_the_way = turn.on_the_way();
    let masker = &facts.policies.conflicts.masker;
    let units = || facts.rendered.units.iter().map(|unit| (&unit.id, unit));
    let of = |unit: &Unit| turn.content(&facts.rendered, &unit.id, || content(unit, masker));
    if turn.may_go_back() {
        turn.wants(units().map(|(id, unit)| (id.clone(), of(unit))).collect());
    }
    if plan.is_stopped() {
        return;
    }
    let report = ClusterReport::of(plan);
    let rolled: BTreeSet<&ObjectId> =
        report.steps.iter().filter(|step| step.rolls_pods()).map(|step| &step.id).collect();
    let rolled: BTreeSet<&ObjectId> =
        plan.changes().filter(|step| rolled.contains(&step.id)).map(|step| &step.unit).collect();
    let withheld = plan.held_units().into_iter().cloned().collect();
    let mut asked = Asked { withheld, ..Asked::default() };
    // What was taken back does not come again in pieces.
    let taken_back = turn.taken_back();
    let is_back =
        |step: &&Step| rolled.contains(&step.unit) || (step.object.is_some() && taken_back.contains(&step.unit));
    let rolled: BTreeSet<&ObjectId> = plan.changes().filter(is_back).map(|step| &step.unit).collect();
    // A unit waits as a whole, so all of it is the change, whatever of it is there already.
    for (id, unit) in units().filter(|(id, _)| rolled.contains(id)) {
        asked.units.insert(id.clone(), of(unit));
    }
    for unit in rolled {
        asked.units.entry(unit.clone()).or_default();
    }
    // Whoever carries out a plan has read what it deletes.
    asked.deletes = if settings.pinned.is_some() { 0 } else { plan.deletes_unasked().len() };
    let lift = |waits: &BTreeMap<ObjectId, Wait>| {
        plan.waiting_for_others((waits, None), &facts.observed, &facts.policies).lifted()
    };
    let Answer { waits, deletions } = turn.ask(&asked, lift);
    let waiting = plan.waiting_for_others((&waits, deletions), &facts.observed, &facts.policies);
    if !waiting.is_empty() {
        facts.policies.waiting = waiting;
        // What was found out of fields that nobody has touched stays.
        let fields = std::mem::take(&mut plan.steps).into_iter().map(|step| (step.id, step.fields));
        let fields: BTreeMap<ObjectId, _> = fields.collect();
        *plan = self::plan(&facts.rendering, &facts.observed, &facts.owned, &facts.policies);
        for step in plan.steps.iter_mut().filter(|step| facts.observed.unchanged.contains(&step.id)) {
            step.fields = fields.get(&step.id).cloned().unwrap_or_default();
        }
    }
}

/// Returns the digest of all that is wanted of a unit. In the place of secrets are their fingerprints.
fn content(unit: &Unit, masker: &Masker) -> String {
    let bodies: Vec<_> = unit.all().map(|object| masker.body(object.body()).to_string()).collect();
    digest(bodies.concat().as_bytes())[..32].to_owned()
}

/// Reports a round that changes nothing. A plan for what no source says leaves what is known as it is.
fn planned(
    settings: &RoundSettings,
    facts: &Facts,
    plan: &Plan,
    stores: &Stores,
) -> (ClusterReport, Option<LastRound>) {
    let mut report = ClusterReport::of(plan);
    let snapshots = HealthSnapshots::of_round(settings, facts, None);
    report.units = units(settings, facts, plan, &snapshots, None, &Unhealthy::new());
    if settings.policies.adopt_deployer {
        report.tell_settings(proposals(facts.units(), &facts.observed.live));
    }
    let steps = saved(plan, &facts.observed, &settings.policies.conflicts.masker);
    report.saved = Saved { identity: facts.observed.cluster.clone(), steps };
    if let Some(marks) = settings.bodies {
        let masker = &facts.policies.conflicts.masker;
        report.bodies = bodies(plan, &facts.rendering, &facts.observed, (masker, marks));
    }
    let (applied, live) = (&Applied::default(), &facts.observed.live);
    let basis = Basis { settings, facts, plan, applied, live, closing: None };
    let is_of_source = !matches!(settings.want, Want::Ready(_));
    let last_round = is_of_source.then(|| basis.last_round(&stores.own, &report)).flatten();
    (report, last_round)
}

/// The result of the first look.
enum First {
    Concluded(Box<Conclusion>),
    Open(Box<(Facts, Plan, Stores)>),
}

/// Looks at what the last round was about, and only if that does not decide it at all that is wanted.
async fn first_look(cluster: &dyn Cluster, settings: &RoundSettings) -> Result<First, ClusterError> {
    let Recognized { identity, metadata } = recognize(cluster, settings).await?;
    let twin = settings.names.twin(&identity).await;
    // Whatever is known from the last round, this one is to say that nothing is done.
    let last_round =
        settings.last_round.as_ref().filter(|last_round| twin.is_none() && last_round.cache.are_about(&identity));
    let metadata = metadata.filter(|_| last_round.is_some());
    if let (Some(last_round), Some(metadata)) = (last_round, &metadata)
        && let Some(conclusion) = fast_path::conclude(cluster, settings, last_round, metadata).await?
    {
        return Ok(First::Concluded(Box::new(conclusion)));
    }
    settings.place.take().await;
    let rendering = match settings.want.rendering().instrument(debug_span!("render")).await {
        Ok(rendering) => rendering,
        Err(error) => return Ok(First::Concluded(Box::new(Conclusion::unrendered(&error)))),
    };
    let rendered = located(cluster, &settings.policies, &rendering).await?.map_or(rendering, Arc::new);
    let service_addresses = service_addresses(cluster, &settings.policies, &rendered).await?;
    let rendering = rendered.with_addresses(&service_addresses).map_or_else(|| Arc::clone(&rendered), Arc::new);
    let policies = Policies {
        claims: settings.siblings.claims(&settings.policies.kinds).await,
        known_cluster: settings.audit.as_ref().and_then(Audit::cluster).unwrap_or_default(),
        twin,
        awaited: settings.waiting.as_ref().and_then(Waiting::reason),
        ..settings.policies.clone()
    };
    let shards = if last_round.is_some() { Shards::Here } else { Shards::There };
    let stores = Stores::load(cluster, settings, shards).await?;
    kept::read(settings, &stores.own.inventory, stores.own.rollouts()).await;
    let mut facts = Facts {
        identity,
        digests: digests(&rendering, &policies.conflicts),
        rendering,
        rendered,
        service_addresses,
        policies,
        owned: stores.owned(),
        cache: last_round.map(|last_round| Arc::clone(&last_round.cache)),
        metadata,
        observed: Observed::default(),
        snapshots: BTreeMap::new(),
        on_the_way: BTreeSet::new(),
    };
    let plan = look(cluster, settings, &stores, &mut facts).instrument(debug_span!("observe")).await?;
    Ok(First::Open(Box::new((facts, plan, stores))))
}

/// Looks at the cluster as it is now, and plans.
async fn look(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    stores: &Stores,
    facts: &mut Facts,
) -> Result<Plan, ClusterError> {
    (facts.observed, facts.metadata) = observe(cluster, settings, facts).await?;
    stores.report(cluster, &facts.policies, &mut facts.observed).await?;
    let (observed, owned, policies) = (&facts.observed, &facts.owned, &facts.policies);
    let mut plan = match &settings.undo {
        Some(changes) => undo::plan(cluster, changes, observed, owned, policies).await,
        None => plan(&facts.rendering, observed, owned, policies),
    };
    facts.snapshots = BTreeMap::new();
    if let (Some(cache), Some(metadata)) = (&facts.cache, &facts.metadata) {
        let known = cache.by_object();
        for step in plan.steps.iter_mut().filter(|step| observed.unchanged.contains(&step.id)) {
            step.fields = known.get(&step.id).map(|note| note.fields.clone()).unwrap_or_default();
        }
        let unchanged = cache.objects.iter().filter(|note| observed.unchanged.contains(&note.id));
        facts.snapshots = snapshots(cluster, settings, unchanged, metadata).await?;
    }
    Ok(plan)
}

/// Applies, and plans again where somebody else was faster.
async fn carry_out(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    mut facts: Facts,
    mut plan: Plan,
    mut stores: Stores,
) -> Result<(ClusterReport, Option<LastRound>), ClusterError> {
    let sync = settings.sync();
    let acceptance = Instant::now() + settings.acceptance;
    let mut applied = Applied::default();
    let mut done = BTreeMap::new();
    if let (Some(suspicion), Some(audit)) = (&stores.own.suspicion, &settings.audit) {
        audit.keep_suspicion(suspicion).map_err(|error| forgetful(sync, error))?;
    }
    for attempt in 1..=ATTEMPTS {
        settings.teller.tell(Phase::Applying(plan.changes().count()));
        write_ahead(cluster, settings, (&plan, &facts.owned), &mut stores).await?;
        let apply = apply(cluster, &plan, Terms::of(settings, &facts), acceptance);
        let removed = std::mem::take(&mut applied.removed);
        applied = apply.instrument(debug_span!("apply", attempt)).await;
        applied.removed.extend(removed);
        let is_stale = applied.outcomes.values().any(|outcome| matches!(outcome, Outcome::Stale(_)));
        if !is_stale || attempt == ATTEMPTS || settings.stop.is_cancelled() {
            break;
        }
        // Somebody else was faster: what was written so far is in the inventory, and is seen as ours now.
        debug!(sync, attempt, "plans again, because an object was changed meanwhile");
        plan.inventory.record_uids(applied.live.values());
        stores.own.save(cluster, sync, &plan.inventory).await?;
        let (applied, live) = (&applied, &applied.live);
        let cache = Basis { settings, facts: &facts, plan: &plan, applied, live, closing: None }.cache();
        // What is stale may have been done all the same: an answer was lost, and the second try met the first.
        let may_be_done =
            |step: &Step| matches!(applied.outcomes.get(&step.id), Some(Outcome::Done | Outcome::Stale(_)));
        done.extend(plan.steps.into_iter().filter(may_be_done).map(|step| (step.id.clone(), step)));
        facts.cache = Some(Arc::new(cache));
        facts.metadata = facts.metadata.map(|_| MetadataView::default());
        facts.policies.pinned = left(&settings.policies, &done);
        facts.owned = stores.own.inventory.clone();
        plan = look(cluster, settings, &stores, &mut facts).await?;
        if plan.is_stopped() {
            return Ok((ClusterReport::of(&plan), None));
        }
    }
    carry_over(settings, &mut plan, &mut applied, done);
    Ok(finish::finish(cluster, settings, &facts, stores, plan, applied).await)
}

/// Writes down what is about to be done; what cannot be written down is not done.
async fn write_ahead(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    (plan, owned): (&Plan, &Inventory),
    stores: &mut Stores,
) -> Result<(), ClusterError> {
    if let Some(recorder) = &settings.recorder {
        recorder.begin(plan, owned).map_err(|error| unkept("a record of the round", error))?;
    }
    // What is wanted and bears our mark needs no other proof.
    let proven: BTreeSet<&ObjectId> =
        plan.steps.iter().filter(|step| step.object.is_some()).map(|step| &step.id).collect();
    stores.own.unverified.retain(|id| !proven.contains(id));
    kept::save(cluster, settings, &plan.inventory, &mut stores.own).await
}

/// Returns the steps left to do of a plan that is carried out as it was made.
fn left(policies: &Policies, done: &BTreeMap<ObjectId, Step>) -> Option<Vec<SavedStep>> {
    let pinned = policies.pinned.as_ref()?;
    let is_done = |step: &SavedStep| done.get(&step.id).is_some_and(|done| done.action.word() == step.action);
    Some(pinned.iter().filter(|step| !is_done(step)).cloned().collect())
}

/// Carries over what was done before the last plan was made: it is as it should be for that plan, and a change of this
/// round all the same, so it is awaited and reported. What is not as it should be was not done, and has a step of its
/// own in that plan.
fn carry_over(settings: &RoundSettings, plan: &mut Plan, applied: &mut Applied, mut done: BTreeMap<ObjectId, Step>) {
    for step in plan.steps.iter_mut().filter(|step| step.action == Action::Unchanged) {
        if let Some(earlier) = done.remove(&step.id) {
            applied.outcomes.insert(step.id.clone(), Outcome::Done);
            *step = earlier;
        }
    }
    let refused: BTreeSet<&ObjectId> = plan.refusals.iter().map(|refusal| &refusal.id).collect();
    // A namespace that is there is in no plan, nor is what is undone already.
    let is_in_none = |step: &Step| {
        step.action == Action::CreateNamespace || (settings.undo.is_some() && !refused.contains(&step.id))
    };
    let done: Vec<Step> = done.into_values().filter(is_in_none).collect();
    for step in done {
        applied.outcomes.entry(step.id.clone()).or_insert_with(|| {
            plan.steps.insert(0, step);
            Outcome::Done
        });
    }
}
