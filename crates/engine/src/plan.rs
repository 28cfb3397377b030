//! Wanted, live and owned to a plan: the complete, ordered list of what will happen on one cluster.
//!
//! Pure: everything that was seen is in [`Observed`], everything that was decided beforehand in [`Policies`].
//! Carrying out a plan takes no further decision. What we choose not to do is a [`Refusal`] with its reason; what
//! stops a whole sync on a cluster is a [`Hold`].
//!
//! Nothing without our mark is changed or deleted, and what is not deleted stays in the inventory.

pub mod guard;
pub mod order;
mod prune;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::diff::{Difference, differences};
use crate::inventory::{Entry, Inventory};
use crate::live::Live;
use crate::marks::{Marker, Owner};
use crate::object::{Gvk, Object, ObjectId};
use crate::problem::unreadable_files;
use crate::unit::{Rendering, Unit};

/// Our field manager; fixed for ever, because it is how an API server knows which fields are ours.
pub const FIELD_MANAGER: &str = "gatewright";

/// What was seen on a cluster.
#[derive(Debug, Default)]
pub struct Observed {
    /// What identifies the cluster; empty if it does not know yet.
    pub cluster: String,
    /// Whether the objects there carry our marks; where they do not, the inventory says what is ours.
    pub carries_marks: bool,
    /// All that is wanted or owned and exists.
    pub live: BTreeMap<ObjectId, Live>,
    /// What wanted objects would become, or why they cannot.
    pub rehearsed: BTreeMap<ObjectId, Result<Live, Obstacle>>,
    /// The namespaces of wanted objects.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// Objects that could not be read: nobody knows whether they exist.
    pub unknown: BTreeMap<ObjectId, String>,
}

/// Why a rehearsal failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The cluster says that the object is not valid.
    Invalid(String),
    /// The credentials do not allow it.
    Forbidden(String),
    /// The cluster has no such kind.
    NoSuchKind(String),
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

/// When an existing object without our mark may become ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adopt {
    /// Not at all.
    Never,
    /// If nobody else has marked it.
    #[default]
    IfUnowned,
    /// Even if it belongs to another tool. Never, if it belongs to another sync or installation of gatewright.
    Always,
}

/// How much may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxDelete {
    /// Units.
    pub units: usize,
    /// Percent of the units that are owned; counts only from three units on.
    pub percent: usize,
}

/// What a sync may do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting that stands for itself")]
pub struct Policies {
    /// Who we are.
    pub marker: Marker,
    /// Name of the source, for the inventory.
    pub source: String,
    /// Adoption.
    pub adopt: Adopt,
    /// Whether what was adopted may be deleted like what was made.
    pub prune_adopted: bool,
    /// Whether anything is deleted at all.
    pub prune: bool,
    /// How much may be deleted at once.
    pub max_delete: MaxDelete,
    /// Whether an empty source may empty a cluster.
    pub allow_empty: bool,
    /// Whether missing namespaces are made.
    pub create_namespaces: bool,
    /// Namespaces that may be written to; `*` is any.
    pub namespaces: BTreeSet<String>,
    /// Kinds that may be written; `*` is any.
    pub kinds: BTreeSet<String>,
    /// The units that this round is about; `None` is all.
    pub only: Option<BTreeSet<ObjectId>>,
    /// This host has not seen this cluster before, so it deletes nothing yet.
    pub first_round: bool,
    /// One problem holds the whole sync, not only what it feeds.
    pub hold_on_problem: bool,
}

/// What will be done with one object.
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
    /// It is as it should be.
    Keep,
    /// It is deleted.
    Prune(Over),
    /// It is gone already, and leaves the inventory.
    Forget,
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
    fn of(live: &Live) -> Self {
        Self { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
    }
}

impl Action {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::CreateNamespace | Self::Create => "create",
            Self::Update(_) => "update",
            Self::Adopt(_) => "adopt",
            Self::Keep => "keep",
            Self::Prune(_) => "prune",
            Self::Forget => "forget",
        }
    }

    /// Tells whether anything on the cluster changes.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Keep | Self::Forget)
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
    /// What is done.
    pub action: Action,
    /// The object to write, marks included; `None` where nothing is written.
    pub object: Option<Object>,
    /// What differs.
    pub differences: Vec<Difference>,
}

/// A step that we chose not to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Why.
    pub reason: Reason,
}

/// Why a step is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Reason {
    /// It belongs to somebody else.
    Foreign(String),
    /// The sync may not write this namespace or kind.
    NotAllowed(String),
    /// Its namespace does not exist.
    NoNamespace(String),
    /// Its namespace is being deleted.
    NamespaceTerminating(String),
    /// It is being deleted itself.
    Terminating,
    /// The cluster does not take it.
    Invalid(String),
    /// The credentials do not allow it.
    Forbidden(String),
    /// The cluster has no such kind.
    NoSuchKind(String),
    /// Rehearsing it failed.
    Failed(String),
    /// It could not be read, so nobody knows whether it exists.
    Unknown(String),
    /// A mark asks for it to be kept.
    Kept(String),
    /// It does not carry our mark any more.
    Unmarked,
    /// Its spec is broken, so what exists stays as it is.
    Broken,
    /// A file that may hold its spec, or an overlay of it, cannot be read.
    Unreadable(String),
    /// Its spec says that somebody else provisions it; what exists stays as it is.
    SelfManaged,
    /// It existed before it was ours, and the sync does not delete such objects.
    Adopted,
    /// Pruning is switched off.
    PruneDisabled,
    /// This host sees the cluster for the first time.
    FirstRound,
    /// Something else of the same unit was refused.
    UnitHeld,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(owner) => write!(f, "foreign: it belongs to {owner}"),
            Self::NotAllowed(what) => write!(f, "not allowed: {what}"),
            Self::NoNamespace(name) => {
                write!(f, "namespace {name:?} does not exist (make it, or set createNamespaces: true for the sync)")
            }
            Self::NamespaceTerminating(name) => write!(f, "namespace {name:?} is being deleted"),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Invalid(message) => write!(f, "the cluster does not take it: {message}"),
            Self::Forbidden(message) => write!(f, "the credentials do not allow it: {message}"),
            Self::NoSuchKind(kind) => write!(f, "the cluster has no {kind}"),
            Self::Failed(message) => write!(f, "cannot rehearse it: {message}"),
            Self::Unknown(message) => write!(f, "cannot read it: {message}"),
            Self::Kept(mark) => write!(f, "kept: it carries {mark}"),
            Self::Unmarked => f.write_str("kept: it does not carry our mark any more"),
            Self::Broken => f.write_str("kept: its spec is broken"),
            Self::Unreadable(file) => write!(f, "kept: {file} cannot be read, and may speak of it"),
            Self::SelfManaged => f.write_str("kept: its spec says that somebody else provisions it"),
            Self::Adopted => f.write_str("kept: it was adopted, and adopt.prune is false"),
            Self::PruneDisabled => f.write_str("kept: pruning is switched off"),
            Self::FirstRound => {
                f.write_str("kept: this host sees the cluster for the first time; the next round deletes it")
            }
            Self::UnitHeld => f.write_str("withheld: another object of the unit was refused"),
        }
    }
}

/// A guard stopped a sync on a cluster: nothing at all is done there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Which guard.
    pub guard: Guard,
    /// What it saw.
    pub message: String,
    /// How to go on.
    pub hint: String,
}

/// The guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// The source renders to nothing, but something is owned.
    EmptyRender,
    /// More would be deleted than the sync may.
    MaxDelete,
    /// Another cluster answers where this one was.
    ClusterIdentity,
    /// Another installation of gatewright owns this sync's objects.
    OtherInstallation,
    /// A problem, and the sync says that one is enough.
    Problem,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyRender => "empty-render",
            Self::MaxDelete => "max-delete",
            Self::ClusterIdentity => "cluster-identity",
            Self::OtherInstallation => "other-installation",
            Self::Problem => "problem",
        })
    }
}

/// All that will happen on one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Plan {
    /// The steps, in the order of apply; prunes last, in reverse order.
    pub steps: Vec<Step>,
    /// What is not done.
    pub refusals: Vec<Refusal>,
    /// Why nothing at all is done.
    pub holds: Vec<Hold>,
    /// The inventory to write before the first write: everything that is owned, and everything that may be soon.
    pub inventory: Inventory,
}

/// Makes the plan for one cluster.
pub fn plan(rendering: &Rendering, observed: &Observed, owned: &Inventory, policies: &Policies) -> Plan {
    let mut plan = Plan { inventory: ahead(observed, owned, policies), ..Plan::default() };
    let unreadable = unreadable_files(&rendering.problems);
    for unit in rendering.units.iter().filter(|unit| policies.is_about(&unit.id)) {
        let lost = unreadable::fed_by(unit, owned, &unreadable);
        if lost.is_empty() {
            plan.add_unit(unit, observed, owned, policies);
        } else {
            plan.hold_unit(unit, lost, observed, owned, policies);
        }
    }
    plan.add_namespaces(observed);
    prune::add(&mut plan, rendering, observed, owned, policies);
    order::sort(&mut plan.steps);
    plan.holds = guard::holds(&plan, rendering, observed, owned, policies);
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

impl Policies {
    /// Tells whether a unit is what this round is about.
    pub fn is_about(&self, unit: &ObjectId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(unit))
    }

    /// Returns why an object may not be written, if it may not: known before any request.
    pub fn forbids(&self, id: &ObjectId) -> Option<Reason> {
        let allows = |list: &BTreeSet<String>, name: &str| list.contains("*") || list.contains(name);
        if !id.namespace.is_empty() && !allows(&self.namespaces, &id.namespace) {
            return Some(Reason::NotAllowed(format!("namespace {:?} is not in allow.namespaces", id.namespace)));
        }
        (!allows(&self.kinds, &id.kind))
            .then(|| Reason::NotAllowed(format!("kind {:?} is not in allow.kinds", id.kind)))
    }
}

/// Whose a live object is, by its marks or, where there are none, by the inventory.
pub fn owner(live: &Live, observed: &Observed, owned: &Inventory, marker: &Marker) -> Owner {
    if observed.carries_marks {
        return marker.owner(&live.object);
    }
    if owned.entries.contains_key(live.object.id()) {
        return Owner::Us;
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

    /// A unit goes as a whole or not at all: half of a data plane helps nobody.
    fn add_unit(&mut self, unit: &Unit, observed: &Observed, owned: &Inventory, policies: &Policies) {
        let decide = |object: &Object| Decision { unit, observed, owned, policies }.decide(object);
        let decided: Vec<_> = unit.objects.iter().map(|object| (object.id().clone(), decide(object))).collect();
        let is_held = decided.iter().any(|(_, decision)| decision.is_err());
        for (id, decision) in decided {
            match decision {
                Err(reason) => self.refusals.push(Refusal { unit: unit.id.clone(), id, reason }),
                Ok(step) if is_held && step.action.changes() => {
                    self.refusals.push(Refusal { unit: unit.id.clone(), id, reason: Reason::UnitHeld });
                }
                Ok(step) => self.add_step(step, unit, observed),
            }
        }
    }

    fn add_step(&mut self, step: Step, unit: &Unit, observed: &Observed) {
        let uid = match &step.action {
            // It is not ours before it carries our mark, unless it was once.
            Action::Adopt(_) => self.inventory.entries.get(&step.id).and_then(|entry| entry.uid.clone()),
            // Without a live object the entry is pending: what becomes of the create is not known yet.
            Action::CreateNamespace
            | Action::Create
            | Action::Update(_)
            | Action::Keep
            | Action::Prune(_)
            | Action::Forget => observed.live.get(&step.id).map(|live| live.uid.clone()),
        };
        let files = unit.files.iter().map(ToString::to_string).collect();
        let was_adopted = self.inventory.entries.get(&step.id).is_some_and(|entry| entry.adopted);
        let adopted = match step.action {
            Action::Adopt(_) => true,
            Action::Update(_) | Action::Keep => was_adopted,
            Action::Create | Action::CreateNamespace | Action::Prune(_) | Action::Forget => false,
        };
        let entry = Entry { gvk: step.gvk.clone(), uid, unit: unit.id.clone(), adopted, files };
        self.inventory.entries.insert(step.id.clone(), entry);
        self.steps.push(step);
    }

    /// Namespaces of objects that are to be made; what they are for was decided with the objects.
    fn add_namespaces(&mut self, observed: &Observed) {
        let created = self.steps.iter().filter(|step| step.action == Action::Create);
        let namespaces: BTreeSet<String> = created.map(|step| step.id.namespace.clone()).collect();
        let is_absent = |name: &&String| observed.namespaces.get(*name) == Some(&NamespaceState::Absent);
        let steps: Vec<Step> = namespaces.iter().filter(is_absent).map(|name| namespace_step(name)).collect();
        self.steps.extend(steps);
    }
}

fn namespace_step(name: &str) -> Step {
    let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let object = Object::new(body).expect("the name of a namespace is never empty");
    let id = object.id().clone();
    Step {
        unit: id.clone(),
        id,
        gvk: object.gvk(),
        action: Action::CreateNamespace,
        object: Some(object),
        differences: Vec::new(),
    }
}

struct Decision<'a> {
    unit: &'a Unit,
    observed: &'a Observed,
    owned: &'a Inventory,
    policies: &'a Policies,
}

impl Decision<'_> {
    /// Decides what happens to one wanted object: the only place that makes this choice.
    fn decide(&self, object: &Object) -> Result<Step, Reason> {
        let id = object.id();
        if let Some(reason) = self.policies.forbids(id) {
            return Err(reason);
        }
        if let Some(message) = self.observed.unknown.get(id) {
            return Err(Reason::Unknown(message.clone()));
        }
        match self.observed.live.get(id) {
            None => self.create(object),
            Some(live) if live.is_terminating() => Err(Reason::Terminating),
            Some(live) => self.change(object, live),
        }
    }

    fn create(&self, object: &Object) -> Result<Step, Reason> {
        let namespace = &object.id().namespace;
        match self.observed.namespaces.get(namespace) {
            Some(NamespaceState::Absent) if !self.policies.create_namespaces => {
                return Err(Reason::NoNamespace(namespace.clone()));
            }
            Some(NamespaceState::Terminating) => return Err(Reason::NamespaceTerminating(namespace.clone())),
            Some(NamespaceState::Absent | NamespaceState::Present) | None => {}
        }
        self.check_rehearsal(object)?;
        Ok(self.step(object, Action::Create, Vec::new()))
    }

    fn change(&self, object: &Object, live: &Live) -> Result<Step, Reason> {
        let owner = owner(live, self.observed, self.owned, &self.policies.marker);
        let is_adoption = match (&owner, self.policies.adopt) {
            (Owner::Us, _) => false,
            (Owner::Nobody, Adopt::IfUnowned | Adopt::Always) | (Owner::Other(_), Adopt::Always) => true,
            (Owner::Nobody, Adopt::Never) => {
                return Err(Reason::Foreign("nobody that gatewright knows, and adopt.policy is never".to_owned()));
            }
            (Owner::Other(_) | Owner::OtherSync(_) | Owner::OtherInstallation(_), _) => {
                return Err(Reason::Foreign(owner.to_string()));
            }
        };
        let after = self.check_rehearsal(object)?;
        let after = after.map_or(object.body(), |after| after.object.body());
        let differences = differences(live.object.body(), after, FIELD_MANAGER);
        Ok(match (is_adoption, differences.is_empty()) {
            (true, _) => self.step(object, Action::Adopt(Over::of(live)), differences),
            (false, false) => self.step(object, Action::Update(Over::of(live)), differences),
            (false, true) => self.step(object, Action::Keep, differences),
        })
    }

    fn check_rehearsal(&self, object: &Object) -> Result<Option<&Live>, Reason> {
        match self.observed.rehearsed.get(object.id()) {
            None => Ok(None),
            Some(Ok(after)) => Ok(Some(after)),
            Some(Err(Obstacle::Invalid(message))) => Err(Reason::Invalid(message.clone())),
            Some(Err(Obstacle::Forbidden(message))) => Err(Reason::Forbidden(message.clone())),
            Some(Err(Obstacle::NoSuchKind(kind))) => Err(Reason::NoSuchKind(kind.clone())),
            Some(Err(Obstacle::Failed(message))) => Err(Reason::Failed(message.clone())),
        }
    }

    fn step(&self, object: &Object, action: Action, differences: Vec<Difference>) -> Step {
        Step {
            unit: self.unit.id.clone(),
            id: object.id().clone(),
            gvk: object.gvk(),
            action,
            object: Some(object.clone()),
            differences,
        }
    }
}
