//! Handing a Gateway back to the deployer of its control plane, on one cluster.
//!
//! A process may end between any two requests: what went back is recognized on the cluster, and the inventory forgets it
//! last. As in a round, what somebody else has changed meanwhile is looked at again a few times.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::marks::Marker;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::plan::deployer::Awaited;
use gatewright_engine::plan::deployer::release::{Deed, Plan, Situation, Step, heir, tidy};
use gatewright_engine::plan::refusal::{Reason as Why, Refusal};
use gatewright_engine::plan::{self, Over, restore};
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::unit::released::Released;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, ClusterError, Mode, Precondition, Reason};
use crate::history::archive::record::{Intent, Recorder};
use crate::inventory::audit::Audit;
use crate::inventory::store::{self, Shards, Store};
use crate::reconcile::apply::pre_image::unkept;
use crate::reconcile::wait::{Acceptance, accepted};
use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, StepReport};

/// The most times that somebody else may be faster.
const ATTEMPTS: usize = 4;

/// The hand-over of a Gateway on a cluster.
pub(crate) struct Release<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The Gateway.
    pub released: &'a Released,
    /// The marks of the sync that has it.
    pub marker: &'a Marker,
    /// The record that this host keeps of the inventory.
    pub audit: Option<&'a Audit>,
    /// The facts of the cluster that overlays and packs may ask for.
    pub facts: ClusterFacts,
    /// The packs as deployers know them.
    pub packs: &'a Packs,
    /// The table of kinds.
    pub kinds: &'a kinds::Table,
    /// It decides what is shown of values that may be secret.
    pub masker: &'a Masker,
}

/// The terms of carrying it out.
pub(crate) struct Terms<'a> {
    /// The record of what was there before.
    pub recorder: &'a Arc<Recorder>,
    /// The longest wait until the control plane has seen the Gateway.
    pub acceptance: Duration,
    /// Told when the process is to end.
    pub stop: &'a CancellationToken,
}

/// The work that was found on the cluster.
pub(crate) struct Found {
    store: Store,
    live: BTreeMap<ObjectId, Live>,
    plan: Plan,
}

impl Found {
    /// Tells whether there is nothing to hand back.
    pub(crate) fn is_nothing(&self) -> bool {
        self.plan.steps.is_empty() && self.plan.refusals.is_empty()
    }

    /// Tells whether it can be carried out.
    pub(crate) fn is_allowed(&self) -> bool {
        self.plan.refusals.is_empty()
    }
}

impl Release<'_> {
    /// Looks at the cluster, and plans.
    pub(crate) async fn look(&self) -> Result<Found, ClusterError> {
        let unit = self.released.gateway.id();
        let store = store::watched(self.cluster, &self.marker.sync, self.audit, Shards::There).await?;
        let mut found = Found { store, live: BTreeMap::new(), plan: Plan::default() };
        if !found.store.inventory.entries.values().any(|entry| entry.unit == *unit) {
            return Ok(found);
        }
        if let Some(why) = self.distrust(&found.store).await? {
            found.plan = self.refused(why);
            return Ok(found);
        }
        for attempt in 1..=ATTEMPTS {
            found.live = self.live(&found.store.inventory).await?;
            match self.plan(&found).await {
                Err(error) if error.reason == Reason::Conflict && attempt < ATTEMPTS => {}
                planned => {
                    found.plan = planned?;
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn plan(&self, found: &Found) -> Result<Plan, ClusterError> {
        let beside = self.beside().await?;
        let deployed = match self.released.deployed(self.packs, &self.facts, &beside.iter().collect::<Vec<_>>()) {
            Ok(deployed) => deployed,
            Err(why) => return Ok(self.refused(why)),
        };
        let situation = Situation {
            released: self.released,
            deployed: &deployed,
            owned: &found.store.inventory,
            live: &found.live,
            applied: &BTreeMap::new(),
            marker: self.marker,
            masker: self.masker,
        };
        let applied = self.dry_run(&situation).await?;
        Ok(Situation { applied: &applied, ..situation }.plan())
    }

    fn refused(&self, why: String) -> Plan {
        let unit = self.released.gateway.id();
        let refusal = Refusal { unit: unit.clone(), id: unit.clone(), reason: Why::NotReleased(why) };
        Plan { refusals: vec![refusal], ..Plan::default() }
    }

    /// Says why nothing can be done on the word of an inventory.
    async fn distrust(&self, store: &Store) -> Result<Option<String>, ClusterError> {
        let (inventory, sync) = (&store.inventory, &self.marker.sync);
        let repair =
            format!("`gatewright inventory repair {sync} --cluster` comes first, with the name of the cluster");
        if inventory.installation != self.marker.installation {
            return Ok(Some("the inventory belongs to another installation".to_owned()));
        }
        if inventory.cluster != self.cluster.identity().await? {
            return Ok(Some(format!("another cluster answers than the one that the inventory is about; {repair}")));
        }
        let of_unit =
            |id: &ObjectId| inventory.entries.get(id).is_some_and(|it| it.unit == *self.released.gateway.id());
        let is_unverified = store.unverified.iter().any(of_unit);
        let suspicion = store.suspicion.clone().or(is_unverified.then(|| "entries without a valid HMAC".to_owned()));
        Ok(suspicion.map(|what| format!("the inventory is suspect: {what}; {repair}")))
    }

    async fn live(&self, inventory: &Inventory) -> Result<BTreeMap<ObjectId, Live>, ClusterError> {
        let gateway = &self.released.gateway;
        let of_unit = inventory.entries.iter().filter(|(_, entry)| entry.unit == *gateway.id());
        let mut wanted: BTreeMap<&ObjectId, Gvk> = of_unit.map(|(id, entry)| (id, entry.gvk.clone())).collect();
        wanted.entry(gateway.id()).or_insert_with(|| gateway.gvk());
        let mut live = BTreeMap::new();
        for (id, gvk) in wanted {
            live.extend(self.cluster.get(&gvk, id).await?.map(|found| (id.clone(), found)));
        }
        Ok(live)
    }

    /// Reads what has a say in the Gateway beside itself: its class, and the parameters of both.
    async fn beside(&self) -> Result<Vec<Object>, ClusterError> {
        let gateway = &self.released.gateway;
        let name = gateway.body()["spec"]["gatewayClassName"].as_str().unwrap_or_default();
        let kind = Gvk::new(&format!("{GATEWAY_API}/v1"), "GatewayClass");
        let class = self.cluster.get(&kind, &ObjectId::new(GATEWAY_API, "GatewayClass", "", name)).await?;
        let of_class = class.as_ref().and_then(|class| class.object.body().pointer("/spec/parametersRef"));
        let own = gateway.body().pointer("/spec/infrastructure/parametersRef");
        let mut found: BTreeMap<ObjectId, Object> = BTreeMap::new();
        for (reference, home) in [(of_class, ""), (own, gateway.id().namespace.as_str())] {
            let Some(reference) = reference else { continue };
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let namespace = reference["namespace"].as_str().unwrap_or(home);
            let id = ObjectId::new(text("group"), text("kind"), namespace, text("name"));
            let read = self.packs.kinds().get(&(id.group.clone(), id.kind.clone()));
            let Some(version) = read.and_then(|kind| kind.versions.first()) else { continue };
            let gvk = Gvk { group: id.group.clone(), version: version.clone(), kind: id.kind.clone() };
            found.extend(self.cluster.get(&gvk, &id).await?.map(|live| (id, live.object)));
        }
        Ok(found.into_values().chain(class.map(|class| class.object)).collect())
    }

    async fn dry_run(
        &self,
        situation: &Situation<'_>,
    ) -> Result<BTreeMap<ObjectId, Result<Live, String>>, ClusterError> {
        let mut answers = BTreeMap::new();
        for (object, live) in situation.questions() {
            let answer = match self.cluster.apply(object, &unchanged(&Over::of(live)), Mode::DryRun).await {
                Ok(after) => Ok(after),
                // Controllers report all the time: what was read is old already, and that is no reason to refuse.
                Err(error) if error.is_unreachable() || error.reason == Reason::Conflict => return Err(error),
                Err(error) => Err(Chain(&error).to_string()),
            };
            answers.insert(object.id().clone(), answer);
        }
        Ok(answers)
    }

    /// Carries it out, and has the inventory forget what went back.
    pub(crate) async fn carry_out(&self, mut found: Found, terms: &Terms<'_>) -> Result<ClusterReport, ClusterError> {
        let mut report = self.report(&found);
        for attempt in 1..=ATTEMPTS {
            terms
                .recorder
                .begin_with(self.intents(&found))
                .map_err(|error| unkept("a record of the release", error))?;
            let outcomes = self.steps(&found, terms).await;
            let inventory = without(&found.store.inventory, &outcomes);
            found.store.save(self.cluster, &self.marker.sync, &inventory).await?;
            let is_stale = outcomes.values().any(|outcome| matches!(outcome, Outcome::Stale(_)));
            for step in &mut report.steps {
                step.outcome = outcomes.get(&step.id).cloned().or(step.outcome.take());
            }
            if !is_stale || attempt == ATTEMPTS || terms.stop.is_cancelled() {
                break;
            }
            found = self.look().await?;
            if !found.is_allowed() {
                report.refusals = found.plan.refusals.iter().cloned().map(Into::into).collect();
                break;
            }
        }
        let is_done = report.steps.iter().all(|step| step.outcome == Some(Outcome::Done));
        let is_stopped = !is_done && terms.stop.is_cancelled();
        report.state = if is_done {
            ClusterState::Done
        } else if is_stopped {
            ClusterState::Stopped
        } else {
            ClusterState::Failed
        };
        Ok(report)
    }

    /// Takes one step after the other; what follows a failure is not tried.
    async fn steps(&self, found: &Found, terms: &Terms<'_>) -> BTreeMap<ObjectId, Outcome> {
        let mut outcomes = BTreeMap::new();
        let mut goes_on = true;
        for step in &found.plan.steps {
            let outcome = if goes_on && !terms.stop.is_cancelled() {
                self.take(step, found.live.get(&step.id), terms).await.unwrap_or_else(|error| match error.reason {
                    Reason::Conflict => Outcome::Stale(Chain(&error).to_string()),
                    _ => Outcome::Failed(Chain(&error).to_string()),
                })
            } else {
                Outcome::Skipped
            };
            goes_on &= outcome == Outcome::Done;
            outcomes.insert(step.id.clone(), outcome);
        }
        outcomes
    }

    async fn take(&self, step: &Step, live: Option<&Live>, terms: &Terms<'_>) -> Result<Outcome, ClusterError> {
        let (Some(over), Some(live)) = (&step.over, live) else { return Ok(Outcome::Done) };
        if step.deed == Deed::Delete
            && let Some(why) = self.unseen(terms).await?
        {
            return Ok(Outcome::Failed(format!("it stays, because {why}; the same command goes on")));
        }
        let keep = |error| unkept(&format!("{} as it is", step.id), error);
        tokio::task::block_in_place(|| terms.recorder.before(live)).map_err(keep)?;
        let after = self.write(step, over).await?;
        let after = match after {
            Some(after) => Some(self.tidied(step, after).await?),
            None => None,
        };
        tokio::task::block_in_place(|| terms.recorder.after(&step.id, after.as_ref()));
        Ok(Outcome::Done)
    }

    async fn write(&self, step: &Step, over: &Over) -> Result<Option<Live>, ClusterError> {
        let (gvk, id, uid, version) = (&step.gvk, &step.id, &over.uid, &over.resource_version);
        match &step.deed {
            Deed::HandBack(patch) | Deed::Unmark(patch) | Deed::Tidy(patch) => {
                self.cluster.patch(gvk, id, uid, version, patch, Mode::Real).await.map(Some)
            }
            Deed::Restore(object) => self.cluster.apply(object, &unchanged(over), Mode::Real).await.map(Some),
            Deed::Delete => self.cluster.delete(gvk, id, uid, version).await.map(|()| None),
            Deed::Forget => Ok(None),
        }
    }

    /// Ends what is said of us in the record of who has set what. Controllers report all the time, also between two
    /// requests.
    async fn tidied(&self, step: &Step, mut live: Live) -> Result<Live, ClusterError> {
        let uid = live.uid.clone();
        for attempt in 1..=ATTEMPTS {
            let Some(patch) = tidy(&live, heir(self.released, step)) else { break };
            match self.cluster.patch(&step.gvk, &step.id, &uid, &live.resource_version, &patch, Mode::Real).await {
                Err(error) if error.reason == Reason::Conflict && attempt < ATTEMPTS => {
                    match self.cluster.get(&step.gvk, &step.id).await? {
                        Some(newer) if newer.uid == uid => live = newer,
                        Some(_) | None => break,
                    }
                }
                patched => return patched,
            }
        }
        Ok(live)
    }

    /// Waits until the control plane has seen what the Gateway says now; returns what is missing when time is up.
    async fn unseen(&self, terms: &Terms<'_>) -> Result<Option<String>, ClusterError> {
        let gateway = &self.released.gateway;
        let parameters = gateway.body().pointer("/spec/infrastructure/parametersRef").cloned().unwrap_or(Value::Null);
        let awaited = Awaited { id: gateway.id().clone(), gvk: gateway.gvk(), parameters };
        let deadline = Instant::now() + terms.acceptance;
        let what = match accepted(self.cluster, &awaited, self.kinds, deadline, terms.stop).await? {
            Acceptance::Accepted => return Ok(None),
            Acceptance::Late(what) | Acceptance::Lost(what) => what,
        };
        Ok(Some(format!("{} has not been accepted as it is now: {what}", gateway.id())))
    }

    fn intents(&self, found: &Found) -> Vec<Intent> {
        let inventory = &found.store.inventory;
        let written = found.plan.steps.iter().filter(|step| step.over.is_some());
        let intent = |step: &Step| Intent {
            unit: self.released.gateway.id().clone(),
            id: step.id.clone(),
            gvk: step.gvk.clone(),
            files: inventory.entries.get(&step.id).map(|entry| entry.files.clone()).unwrap_or_default(),
            deed: restore::Deed::Release,
        };
        written.map(intent).collect()
    }

    /// Reports what is to be done.
    pub(crate) fn report(&self, found: &Found) -> ClusterReport {
        let unit = self.released.gateway.id();
        let manager = &self.released.deployer.manager;
        let step = |step: &Step| {
            let (action, note) = told(step, manager);
            let report = StepReport::new(unit.clone(), step.id.clone(), action, note);
            StepReport { differences: step.differences.clone(), ..report }
        };
        let empty = ClusterReport::of(&plan::Plan::default());
        let refusals = found.plan.refusals.iter().cloned().map(Into::into).collect();
        // Where anything is refused nothing is done.
        let steps = if found.is_allowed() { found.plan.steps.iter().map(step).collect() } else { Vec::new() };
        ClusterReport { steps, refusals, ..empty }
    }
}

fn told(step: &Step, manager: impl Display) -> (StepAction, Option<String>) {
    match &step.deed {
        Deed::HandBack(_) if step.differences.is_empty() => {
            (StepAction::Update, Some(format!("goes back to {manager}")))
        }
        Deed::HandBack(_) => {
            (StepAction::Update, Some(format!("goes back to {manager}, which will set what differs below")))
        }
        Deed::Unmark(_) => (StepAction::Update, Some("stays as it is, and is nobody's here".to_owned())),
        Deed::Tidy(_) => (StepAction::Update, Some("went back already; our field manager goes".to_owned())),
        Deed::Restore(_) => (StepAction::Update, Some(format!("{manager} provisions it again, as the source says it"))),
        Deed::Delete => (StepAction::Prune, Some("once its Gateway is accepted without it".to_owned())),
        Deed::Forget => (StepAction::Forget, None),
    }
}

fn unchanged(over: &Over) -> Precondition {
    Precondition::Unchanged { uid: over.uid.clone(), resource_version: over.resource_version.clone() }
}

fn without(inventory: &Inventory, outcomes: &BTreeMap<ObjectId, Outcome>) -> Inventory {
    let mut inventory = inventory.clone();
    inventory.entries.retain(|id, _| outcomes.get(id) != Some(&Outcome::Done));
    inventory
}
