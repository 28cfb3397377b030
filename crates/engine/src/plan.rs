//! Wanted, live and owned to a plan: the complete, ordered list of what will happen on one cluster.
//!
//! Pure: everything that was seen is in [`Observed`], everything that was decided beforehand in [`Policies`].
//! Carrying out a plan takes no further decision. What we choose not to do is a [`Refusal`] with its reason; what
//! stops a whole sync on a cluster is a [`Hold`].
//!
//! Nothing without our mark is changed or deleted, and what is not deleted stays in the inventory.

pub mod bodies;
pub mod claims;
pub mod conflicts;
mod decide;
pub mod deployer;
mod display;
pub mod drift;
pub mod exclusive;
mod fields;
pub mod guard;
mod inputs;
mod namespaces;
mod order;
pub mod policies;
mod prune;
pub mod questions;
pub mod recreate;
pub mod refusal;
pub mod restore;
pub mod saved;
#[cfg(test)]
mod tests;
mod transfer;
mod unreadable;
pub mod withdrawal;

use std::collections::{BTreeMap, BTreeSet};

use crate::diff::Difference;
use crate::inventory::{Entry, Inventory};
use crate::live::Live;
use crate::marks::{Marker, Owner};
use crate::object::{Gvk, Object, ObjectId};
use crate::pack;
use crate::unit::Unit;
use crate::unit::marked::Marked;
use conflicts::FieldVerdict;
use decide::Decision;
use deployer::{FromDeployer, GatewayState};
use guard::Hold;
use inputs::Inputs;
use policies::Policies;
use questions::DryRun;
use recreate::Immutable;
use refusal::{Reason, Refusal};
use withdrawal::{Deletion, Evidence};

/// The state of a cluster as it was seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// The identity of the cluster; empty if it does not know yet.
    pub cluster: String,
    /// Whether objects there carry no marks, as in a directory: the inventory alone says what is ours.
    pub is_unmarked: bool,
    /// All that is wanted or owned and exists.
    pub live: BTreeMap<ObjectId, Live>,
    /// Those of them that are known to be exactly what is wanted, because nobody has touched them since that was found
    /// out; of these nothing more need be known in `live` than uid and version.
    pub unchanged: BTreeSet<ObjectId>,
    /// The results of dry runs: what wanted objects would become, or why they cannot.
    pub dry_runs: BTreeMap<ObjectId, DryRun>,
    /// Objects of which it is known that no dry run may be asked for.
    pub unasked: BTreeSet<ObjectId>,
    /// The state of Gateways of which a deployer holds objects, as the cluster says it, by unit.
    pub gateways: BTreeMap<ObjectId, GatewayState>,
    /// The autoscalers among wanted objects, by the object that each scales.
    pub autoscaled: BTreeMap<ObjectId, ObjectId>,
    /// The namespaces of wanted objects.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// The number of routes attached in the cluster to each Gateway of which everything may go, by unit.
    pub routes: BTreeMap<ObjectId, usize>,
    /// The objects in a namespace that may be deleted, or of a kind that may be, as far as their metadata tells; or why
    /// nobody knows.
    pub contents: BTreeMap<ObjectId, Result<Vec<Live>, String>>,
    /// The pods on the cluster that need something that may be deleted, by that object.
    pub users: BTreeMap<ObjectId, Vec<guard::in_use::PodUser>>,
    /// Objects that could not be read: nobody knows whether they exist.
    pub unknown: BTreeMap<ObjectId, String>,
    /// The reason why the inventory cannot be trusted: nothing is deleted then.
    pub suspicion: Option<Suspicion>,
    /// Entries of the inventory of which it is not proven that we wrote them: they are not deleted.
    pub unverified: BTreeSet<ObjectId>,
    /// Entries in the inventories of our other syncs there, as far as they matter here.
    pub elsewhere: BTreeMap<ObjectId, Elsewhere>,
}

/// An inventory that is not as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The sync that it belongs to: this one, or a former name of it.
    pub sync: String,
    /// The problem with it.
    pub what: String,
}

/// An object that stands in the inventory of another of our syncs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// That sync.
    pub sync: String,
    /// The entry in its inventory.
    pub entry: Entry,
    /// Whether it wants the object.
    pub is_wanted: bool,
}

/// The reason why a dry run failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// The cluster says that the object is not valid.
    Invalid(String),
    /// Fields of it cannot be changed.
    Immutable(Box<Immutable>),
    /// The credentials do not allow it.
    Forbidden(String),
    /// The cluster has no such kind.
    NoSuchKind(String),
    /// Somebody else has changed the object since it was read.
    Stale(String),
    /// Anything else.
    Failed(String),
}

/// The state of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// It can be used.
    Present,
    /// It is not there.
    Absent,
    /// It is being deleted.
    Terminating,
}

/// The action that is planned for one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A namespace is made; it is never marked and never deleted.
    CreateNamespace,
    /// The object is made.
    Create,
    /// It is changed.
    Update(Over),
    /// It becomes ours, and is changed where it differs.
    Adopt(Over),
    /// The same, from a deployer that would not have let go of it.
    AdoptFromDeployer(Box<FromDeployer>),
    /// It is made, or changed where it lacks it, with a value that is made when this is carried out.
    Generate(Box<Generate>),
    /// It is deleted and created again, because a field of it cannot be changed.
    Recreate(Over),
    /// It is deleted before what needs the place that it takes; the step belongs to the unit that needs it.
    DeleteFirst(Deletion),
    /// It is as it should be.
    Unchanged,
    /// It is not written to this kind of cluster.
    Omit,
    /// It is left to another of our syncs.
    Release(Release),
    /// It is deleted.
    Prune(Deletion),
    /// It is gone already, and leaves the inventory.
    Forget,
}

/// An object that moves to another of our syncs. Nothing on the cluster changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The sync that it moves to.
    pub to: String,
    /// Whether that has marked it as its own. Until then it stays in this inventory, so that it is always in one.
    pub is_taken: bool,
}

/// A generated value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generate {
    /// The generated value.
    pub value: pack::manifest::Generated,
    /// The live object without it, if there is one.
    pub over: Option<Over>,
}

/// The live object that an action is about: the preconditions of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
}

impl Over {
    /// Returns what tells this version of a live object from any other.
    pub fn of(live: &Live) -> Self {
        Self { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
    }
}

impl Action {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        self.told().1
    }

    /// Returns the sign for it, as in a diff, and the word.
    fn told(&self) -> (char, &'static str) {
        match self {
            Self::CreateNamespace | Self::Create => ('+', "create"),
            Self::Update(_) => ('~', "update"),
            Self::Adopt(_) | Self::AdoptFromDeployer(_) => ('&', "adopt"),
            Self::Generate(_) => ('+', "generate"),
            Self::Recreate(_) => ('±', "recreate"),
            Self::DeleteFirst(_) => ('-', "delete-first"),
            Self::Unchanged => ('=', "keep"),
            Self::Omit => ('=', "omit"),
            Self::Release(_) => ('>', "hand-over"),
            Self::Prune(_) => ('-', "prune"),
            Self::Forget => ('x', "forget"),
        }
    }

    /// Returns the live object that it is about; `None` where there is none, or nothing is done to it.
    pub fn over(&self) -> Option<&Over> {
        match self {
            Self::Update(over) | Self::Adopt(over) | Self::Recreate(over) => Some(over),
            Self::DeleteFirst(deletion) | Self::Prune(deletion) => Some(&deletion.over),
            Self::AdoptFromDeployer(it) => Some(&it.over),
            Self::Generate(it) => it.over.as_ref(),
            Self::CreateNamespace | Self::Create | Self::Unchanged | Self::Omit | Self::Release(_) | Self::Forget => {
                None
            }
        }
    }

    /// Tells whether an object of ours is deleted that nobody wants any more.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Prune(_) | Self::DeleteFirst(_))
    }

    /// Tells whether the object leaves the inventory once this is done.
    pub fn disowns(&self) -> bool {
        self.deletes() || matches!(self, Self::Forget | Self::Release(Release { is_taken: true, .. }))
    }

    /// Tells whether anything on the cluster changes.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Unchanged | Self::Omit | Self::Release(_) | Self::Forget)
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The unit that the object belongs to; the namespace itself for a namespace.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The action of the step.
    pub action: Action,
    /// The object to write, marks included; `None` where nothing is written.
    pub object: Option<Object>,
    /// All that is done to the live object before that, by one patch over the same uid and resource version: operations
    /// of a JSON patch (RFC 6902). Empty where nothing is.
    pub first: Vec<serde_json::Value>,
    /// The differences.
    pub differences: Vec<Difference>,
    /// The decisions about fields that others write to.
    pub fields: Vec<FieldVerdict>,
    /// A note on what else is to be known.
    pub note: Option<String>,
}

impl Step {
    /// Begins a step by which nothing is written.
    fn new(unit: &ObjectId, id: &ObjectId, gvk: Gvk, action: Action) -> Self {
        Self {
            unit: unit.clone(),
            id: id.clone(),
            gvk,
            action,
            object: None,
            first: Vec::new(),
            differences: Vec::new(),
            fields: Vec::new(),
            note: None,
        }
    }
}

/// All that will happen on one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Plan {
    /// The steps, in the order of apply; prunes last, in reverse order.
    pub steps: Vec<Step>,
    /// The refusals: all that is not done.
    pub refusals: Vec<Refusal>,
    /// The holds: why nothing at all is done, or nothing to some units.
    pub holds: Vec<Hold>,
    /// Holds that would be in force, and were approved.
    pub lifted: Vec<Hold>,
    /// The inventory to write before the first write: everything that is owned, and everything that may be soon.
    pub inventory: Inventory,
}

/// Makes the plan for one cluster.
pub fn plan(rendering: &Marked, observed: &Observed, owned: &Inventory, policies: &Policies) -> Plan {
    let inputs = Inputs { rendering, observed, owned, policies };
    let mut plan = Plan { inventory: ahead(observed, owned, policies), ..Plan::default() };
    let mut units: Vec<&Unit> = rendering.units.iter().filter(|unit| policies.is_about(&unit.id)).collect();
    // Namespaces come first, because what goes into them depends on what becomes of them.
    units.sort_by_key(|unit| policies.kinds.wave(&unit.id));
    let evidence = Evidence::new(rendering, owned);
    for unit in units {
        let lost = evidence.lost_inputs(unit);
        if lost.is_empty() {
            plan.add_unit(unit, &evidence, inputs);
        } else {
            plan.hold_unit(unit, lost, inputs);
        }
    }
    prune::add(&mut plan, &evidence, inputs);
    guard::contents::check(&mut plan, inputs);
    guard::confirm::hold_back(&mut plan, inputs);
    exclusive::arrange(&mut plan, inputs);
    withdrawal::tell_replaced(&mut plan, inputs);
    loop {
        withdrawal::hold_replaced(&mut plan, inputs);
        guard::in_use::hold_back(&mut plan, inputs);
        // What a unit does not get may be what others were to make room for.
        if !transfer::hold_back(&mut plan, inputs) {
            break;
        }
    }
    guard::confirm::keep_what_may_be_needed(&mut plan, policies);
    plan.add_namespaces(observed);
    order::sort(&mut plan.steps, &rendering.units, &policies.kinds);
    if let Some(kept) = &policies.pinned {
        saved::pin(&mut plan, kept, inputs);
    }
    guard::source::check(&mut plan, inputs);
    guard::add(&mut plan, inputs);
    guard::rollout::hold_deletions(&mut plan, inputs);
    // What waits to be deleted keeps what it has.
    transfer::hold_back(&mut plan, inputs);
    plan.add_waiting(&policies.waiting);
    plan
}

fn ahead(observed: &Observed, owned: &Inventory, policies: &Policies) -> Inventory {
    let cluster = if observed.cluster.is_empty() { owned.cluster.clone() } else { observed.cluster.clone() };
    Inventory {
        installation: policies.marker.installation.clone(),
        source: policies.source.clone(),
        cluster,
        ..owned.clone()
    }
}

impl Observed {
    /// Begins with the objects of a cluster, and `cluster` for what identifies it, such as the uid of `kube-system`.
    ///
    /// A server adds defaults to what is applied, so that there [`Observed::dry_runs`] has to hold the answers of dry
    /// runs: without, each default is a difference.
    pub fn from_objects(cluster: &str, objects: impl IntoIterator<Item = Live>) -> Self {
        let live = objects.into_iter().map(|live| (live.object.id().clone(), live)).collect();
        Self { cluster: cluster.to_owned(), live, ..Self::default() }
    }

    /// Tells whether a live object is the one that another of our syncs has in its inventory.
    fn was_ours(&self, id: &ObjectId) -> bool {
        let uid = self.live.get(id).map(|live| &live.uid);
        self.elsewhere.get(id).is_some_and(|elsewhere| elsewhere.entry.uid.as_ref() == uid)
    }
}

/// Returns the owner of a live object, by its marks or, where there are none, by the inventory.
pub(crate) fn owner(live: &Live, observed: &Observed, owned: &Inventory, marker: &Marker) -> Owner {
    if !observed.is_unmarked {
        return marker.owner(&live.object);
    }
    match observed.elsewhere.get(live.object.id()) {
        Some(elsewhere) if elsewhere.is_wanted => return Owner::OtherSync(elsewhere.sync.clone()),
        _ if owned.entries.contains_key(live.object.id()) => return Owner::Us,
        Some(elsewhere) => return Owner::OtherSync(elsewhere.sync.clone()),
        None => {}
    }
    Owner::Other("somebody else: gatewright has not written this file".to_owned())
}

impl Plan {
    /// Returns the steps that change something.
    pub fn changes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.action.changes())
    }

    /// Tells whether carrying it out would change nothing.
    pub fn is_empty(&self) -> bool {
        self.changes().next().is_none()
    }

    /// Returns the units of which something was refused.
    pub fn held_units(&self) -> BTreeSet<&ObjectId> {
        self.refusals.iter().map(|refusal| &refusal.unit).collect()
    }

    /// Returns the deletions of what nobody wants any more, but those that go first.
    fn prunes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| matches!(step.action, Action::Prune(_)))
    }

    /// Refuses steps that are planned, and returns the objects that they are about.
    fn refuse(&mut self, is_refused: impl Fn(&Step) -> bool, reason: impl Fn(&Step) -> Reason) -> Vec<ObjectId> {
        let refused: Vec<Step> = self.steps.extract_if(.., |step| is_refused(step)).collect();
        let ids = refused.iter().map(|step| step.id.clone()).collect();
        let refusal = |step: Step| Refusal { reason: reason(&step), unit: step.unit, id: step.id };
        self.refusals.extend(refused.into_iter().map(refusal));
        ids
    }

    /// A unit goes as a whole or not at all: half of a data plane helps nobody.
    fn add_unit(&mut self, unit: &Unit, evidence: &Evidence<'_>, inputs: Inputs<'_>) {
        let decided = self.decided(unit, inputs);
        let is_refused = decided.iter().any(|(_, decision)| decision.is_err());
        let steps: Vec<&Step> = decided.iter().filter_map(|(_, decision)| decision.as_ref().ok()).collect();
        // Nobody is asked about what would not be done anyway.
        let waiting = if is_refused { None } else { self.waiting(unit, &steps, evidence, inputs) };
        let is_held = is_refused || waiting.is_some();
        let waits = |id: &ObjectId| waiting.as_ref().filter(|(_, held)| held.contains(id)).map(|(guard, _)| *guard);
        let refusal = |id, reason| Refusal { unit: unit.id.clone(), id, reason };
        for (id, decision) in decided {
            match decision {
                Err(reason) => self.refusals.push(refusal(id, reason)),
                Ok(_) if let Some(guard) = waits(&id) => self.refusals.push(refusal(id, Reason::Held(guard))),
                Ok(step) if is_held && step.action.changes() => self.refusals.push(refusal(id, Reason::UnitHeld)),
                Ok(step) => self.add_step(step, unit, inputs.observed),
            }
        }
    }

    /// Decides about every object of a unit.
    fn decided(&self, unit: &Unit, inputs: Inputs<'_>) -> Vec<(ObjectId, Result<Step, Reason>)> {
        let decision = Decision { unit, inputs, before: &self.steps };
        let decide = |object: &Object| match unit.generated(object.id()) {
            Some(generated) => decision.decide_generated(generated),
            None => decision.decide(object),
        };
        unit.all().map(|object| (object.id().clone(), decide(object))).collect()
    }

    fn add_step(&mut self, step: Step, unit: &Unit, observed: &Observed) {
        let known = self.inventory.entries.get(&step.id);
        let (was_adopted, known_uid) = known.map_or((false, None), |entry| (entry.adopted, entry.uid.clone()));
        let live_uid = observed.live.get(&step.id).map(|live| live.uid.clone());
        let (uid, adopted) = match &step.action {
            Action::Omit => return self.steps.push(step),
            // It was ours before the deployer came by.
            Action::AdoptFromDeployer(_) if known_uid.is_some() && known_uid == live_uid => (known_uid, was_adopted),
            // What one of our syncs has made is not adopted when it moves to another.
            Action::Adopt(_) if observed.was_ours(&step.id) => {
                (known_uid, observed.elsewhere.get(&step.id).is_some_and(|elsewhere| elsewhere.entry.adopted))
            }
            // It is not ours before it carries our mark, unless it was once.
            Action::Adopt(_) | Action::AdoptFromDeployer(_) => (known_uid, true),
            Action::Generate(it) if it.over.is_some() && known.is_none() => (None, true),
            Action::Update(_) | Action::Generate(_) | Action::Recreate(_) | Action::Unchanged => {
                (live_uid, was_adopted)
            }
            // Without a live object the entry is pending: what becomes of the create is not known yet.
            Action::CreateNamespace
            | Action::Create
            | Action::Release(_)
            | Action::DeleteFirst(_)
            | Action::Prune(_)
            | Action::Forget => (live_uid, false),
        };
        let entry = unit.entry(&step.gvk, uid, adopted);
        self.inventory.entries.insert(step.id.clone(), entry);
        self.steps.push(step);
    }
}
