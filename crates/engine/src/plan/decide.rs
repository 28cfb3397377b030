//! The decision about one wanted object.

use serde_json::Value;

use super::conflicts::{Negotiated, Verdict};
use super::deployer::{Awaited, FromDeployer, GatewayState, held_by, other_owner, patch};
use super::drift::leave_out_chosen;
use super::exclusive::is_taken;
use super::guard::adopt::system;
use super::namespaces::is_created;
use super::policies::Adopt;
use super::recreate::{Immutable, compared, consent};
use super::refusal::Reason;
use super::{Action, Generate, Inputs, NamespaceState, Obstacle, Over, Step, transfer};
use crate::diff::{Difference, differences};
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, Owner};
use crate::object::Object;
use crate::text::count;
use crate::unit::Unit;
use crate::unit::generated::Generated;

/// The data from which a decision is made.
pub(super) struct Decision<'a> {
    pub(super) unit: &'a Unit,
    pub(super) inputs: Inputs<'a>,
    /// The steps that are decided already.
    pub(super) before: &'a [Step],
}

impl Decision<'_> {
    /// Decides what happens to one wanted object: the only place that makes this choice.
    pub(super) fn decide(&self, object: &Object) -> Result<Step, Reason> {
        let id = object.id();
        if let Some(reason) = self.inputs.policies.forbids(id) {
            return Err(reason);
        }
        transfer::check(self.unit, id, self.inputs)?;
        if self.inputs.observed.unchanged.contains(id) {
            return Ok(self.step(object, Action::Unchanged, Vec::new()));
        }
        if let Some(message) = self.inputs.observed.unknown.get(id) {
            return Err(Reason::Unknown(message.clone()));
        }
        match self.inputs.observed.live.get(id) {
            None => self.create(object),
            Some(live) if live.is_terminating() => {
                Err(Reason::NotGone(format!("; a round makes it again once it is gone{}", finalizers(live))))
            }
            Some(live) => self.change(object, live),
        }
    }

    /// Decides about an object with a generated value: where it has one it is kept, and never where it would be
    /// a file.
    pub(super) fn decide_generated(&self, generated: &Generated) -> Result<Step, Reason> {
        let object = &generated.object;
        if self.inputs.observed.is_unmarked {
            let note = format!("{}, and never written to a file", generated.promise());
            let step = self.step(object, Action::Omit, Vec::new());
            return Ok(Step { object: None, note: Some(note), ..step });
        }
        if self.inputs.observed.unchanged.contains(object.id()) {
            return self.decide(object);
        }
        let live = self.inputs.observed.live.get(object.id());
        if let Some(kept) = live.and_then(|live| generated.kept(live)) {
            return self.decide(&kept);
        }
        let step = self.decide(object)?;
        let over = match step.action {
            Action::Update(over) | Action::Adopt(over) => Some(over),
            Action::Unchanged => live.map(Over::of),
            // What a deployer holds has its value, or else it can be made when it is ours.
            Action::AdoptFromDeployer(_) => return Ok(step),
            _ => None,
        };
        let action = Action::Generate(Box::new(Generate { value: generated.value.clone(), over }));
        Ok(Step { action, note: Some(generated.promise()), ..step })
    }

    fn create(&self, object: &Object) -> Result<Step, Reason> {
        if let Some((times, rest)) = self.inputs.policies.conflicts.fights.deleted(object.id()) {
            let until = match rest {
                0 => "the next round makes it again".to_owned(),
                rest => format!("it is left alone for {rest} more rounds"),
            };
            return Err(Reason::DeletedAgain(format!(
                "{times} rounds have made it, and it is gone each time; {until}"
            )));
        }
        self.check_dry_run(object)?;
        let namespace = &object.id().namespace;
        match self.inputs.observed.namespaces.get(namespace) {
            Some(NamespaceState::Absent)
                if !self.inputs.policies.create_namespaces && !is_created(self.before, namespace) =>
            {
                return Err(Reason::NoNamespace(namespace.clone()));
            }
            Some(NamespaceState::Terminating) => return Err(Reason::NamespaceTerminating(namespace.clone())),
            Some(NamespaceState::Absent | NamespaceState::Present) | None => {}
        }
        let remade = self.inputs.policies.conflicts.fights.remade(object.id());
        let note = remade.map(|(times, rest)| {
            let rest = count(rest as usize, "round");
            format!(
                "deleted again and again: {times} rounds have made it, with this one; then it is left alone for {rest}"
            )
        });
        let step = self.step(object, Action::Create, Vec::new());
        Ok(Step { note: note.or_else(|| step.note.clone()), ..step })
    }

    fn change(&self, object: &Object, live: &Live) -> Result<Step, Reason> {
        if let Some(manager) = held_by(self.unit, object.id(), live, self.inputs.observed.gateways.get(&self.unit.id)) {
            return self.adopt_from_deployer(object, live, &manager);
        }
        let owner = self.inputs.owner(live);
        let is_adoption = match (&owner, self.inputs.policies.adopt) {
            (Owner::Us, _) => false,
            (Owner::OtherSync(sync), _) if self.is_handed_over(sync, object)? => true,
            (Owner::Nobody | Owner::Other(_), _) if let Some(system) = system(live) => {
                return Err(Reason::Foreign(system.to_owned()));
            }
            (Owner::Nobody, Adopt::Confirm | Adopt::IfUnowned | Adopt::Always) | (Owner::Other(_), Adopt::Always) => {
                true
            }
            (Owner::Nobody, Adopt::Never) => {
                return Err(Reason::Foreign("nobody that gatewright knows, and adopt.policy is never".to_owned()));
            }
            (Owner::Other(_) | Owner::OtherSync(_) | Owner::OtherInstallation(_), _) => {
                return Err(Reason::Foreign(owner.to_string()));
            }
        };
        if let Some(Err(Obstacle::Immutable(immutable))) = self.answer(object)
            && !is_adoption
        {
            return self.recreate(object, live, immutable);
        }
        let agreed = self.inputs.observed.agreed(self.unit, object, live, self.inputs.policies)?;
        let after = self.check_dry_run(object)?.map_or(agreed.object.body(), |after| after.object.body());
        let mut differences = self.differences(live.object.body(), after);
        leave_out_chosen(&mut differences, agreed.object.body());
        // What another writer has laid out in his way is no difference; what we have written is kept to the letter.
        differences.retain(|difference| !(is_adoption && difference.changes_nothing()));
        let action = match (is_adoption, differences.is_empty() && !agreed.is_due) {
            (true, _) => Action::Adopt(Over::of(live)),
            (false, false) => Action::Update(Over::of(live)),
            (false, true) => Action::Unchanged,
        };
        let step = self.agreed(&agreed, action, differences);
        let moves = if let Owner::OtherSync(sync) = &owner { Some(sync) } else { None };
        let note = moves.map(|sync| format!("moves here from sync {sync:?}"));
        Ok(Step { note: note.or(step.note.clone()), ..step })
    }

    /// A step that does what was agreed; where nothing is written nothing comes before it.
    fn agreed(&self, agreed: &Negotiated, action: Action, differences: Vec<Difference>) -> Step {
        let fields = agreed.reported(&differences, &self.inputs.policies.conflicts.fights);
        // What somebody has added and the server would add by itself need not be removed.
        let is_removal = fields.iter().any(|field| field.verdict == Verdict::Removed);
        let is_needed = action.changes() && (agreed.is_due || is_removal);
        let first = if is_needed { agreed.first.clone() } else { Vec::new() };
        Step { first, fields, ..self.step(&agreed.object, action, differences) }
    }

    /// Tells whether another of our syncs leaves an object to this one.
    fn is_handed_over(&self, sync: &str, object: &Object) -> Result<bool, Reason> {
        if self.inputs.policies.renamed_from.contains(sync) {
            return Ok(true);
        }
        let theirs = self.inputs.observed.elsewhere.get(object.id()).filter(|it| it.sync == sync).map(|it| &it.entry);
        let given_up = self.inputs.policies.claims.is_given_up(sync, (object.id(), &self.unit.id), theirs);
        given_up.map_err(|why| Reason::Foreign(format!("{}, {why}", Owner::OtherSync(sync.to_owned()))))
    }

    /// Returns the step that replaces an object where a field cannot be changed, if it may be replaced and can be.
    fn recreate(&self, object: &Object, live: &Live, immutable: &Immutable) -> Result<Step, Reason> {
        if self.inputs.observed.suspicion.is_some() {
            return Err(Reason::SuspectInventory);
        }
        let fields = immutable.fields.join(", ");
        let refuse = |what: &str| Err(Reason::Immutable(format!("{fields} cannot be changed; {what}")));
        if let Err(what) = consent(object, live, self.inputs.policies) {
            return refuse(&what);
        }
        let after = match &immutable.instead {
            Some(Ok(after)) => after,
            Some(Err(message)) => return refuse(&format!("and it cannot be replaced: {message}")),
            None => return refuse("its replacement was not dry-run yet; the next round will"),
        };
        let (before, after) = compared(live, after);
        let differences = self.differences(&before, &after);
        let note = format!("deleted and created again, because {fields} cannot be changed");
        Ok(Step { note: Some(note), ..self.step(object, Action::Recreate(Over::of(live)), differences) })
    }

    fn adopt_from_deployer(&self, object: &Object, live: &Live, manager: &str) -> Result<Step, Reason> {
        let refuse = |what: &str| Reason::LiveDeployer(format!("{manager} provisions it for {}; {what}", self.unit.id));
        let awaits = self.awaits().map_err(|what| refuse(&what))?;
        if !self.inputs.policies.adopt_deployer {
            return Err(refuse("`gatewright adopt` takes it over"));
        }
        if let Some(other) = other_owner(self.unit, live).or_else(|| system(live).map(str::to_owned)) {
            return Err(Reason::Foreign(other));
        }
        // Whoever its owner is, its marks tell whose it is.
        match self.inputs.policies.marker.owner(&live.object.clone().without_metadata("ownerReferences")) {
            Owner::Us | Owner::Nobody => {}
            Owner::Other(_) if self.inputs.policies.adopt == Adopt::Always => {}
            other @ (Owner::Other(_) | Owner::OtherSync(_) | Owner::OtherInstallation(_)) => {
                return Err(Reason::Foreign(other.to_string()));
            }
        }
        let after = self.check_dry_run(object)?.map_or(object.body(), |after| after.object.body());
        let mut differences = self.differences(live.object.body(), after);
        differences.retain(|difference| !difference.changes_nothing());
        let forbidden = self.unit.forbidden_label(object.id());
        // Once the Gateway is told it would be deleted, so that is not waited for.
        let awaits = awaits.filter(|_| forbidden.is_none());
        let condition = awaits.as_ref().map(|gateway| format!(", once {} is accepted as self-managed", gateway.id));
        let note = format!("adopted from {manager}{}", condition.unwrap_or_default());
        let first = patch(live, object, manager, forbidden);
        let action = Action::AdoptFromDeployer(Box::new(FromDeployer { over: Over::of(live), awaits }));
        Ok(Step { note: Some(note), first, ..self.step(object, action, differences) })
    }

    /// Returns what must be accepted before anything of this unit is adopted; or why that cannot be.
    fn awaits(&self) -> Result<Option<Awaited>, String> {
        if let Some(gateway) = self.unit.specs.iter().find(|object| *object.id() == self.unit.id) {
            let parameters = gateway.body().pointer("/spec/infrastructure/parametersRef").cloned();
            let (id, gvk) = (gateway.id().clone(), gateway.gvk());
            return Ok(Some(Awaited { id, gvk, parameters: parameters.unwrap_or_default() }));
        }
        let can_be_told = self.unit.deployer.as_ref().is_some_and(|deployer| deployer.told_by.is_some());
        match self.inputs.observed.gateways.get(&self.unit.id) {
            Some(GatewayState::Absent | GatewayState::SelfManaged { accepted: true }) => Ok(None),
            Some(GatewayState::SelfManaged { accepted: false }) => {
                Err("it has not seen yet that the Gateway is self-managed, and the next round looks again".to_owned())
            }
            Some(GatewayState::Unknown(message)) => Err(format!("its Gateway cannot be read: {message}")),
            Some(GatewayState::Deployed) | None if can_be_told => {
                Err("set specs: apply for the sync, which makes it self-managed, and run `gatewright adopt`".to_owned())
            }
            Some(GatewayState::Deployed) | None => {
                Err("it cannot be told to leave that to others, so take the Gateway out of the source".to_owned())
            }
        }
    }

    /// The answer to the dry runs of an object, if there were any.
    fn answer(&self, object: &Object) -> Option<&Result<Live, Obstacle>> {
        self.inputs.observed.dry_runs.get(object.id()).map(|run| &run.result)
    }

    fn check_dry_run(&self, object: &Object) -> Result<Option<&Live>, Reason> {
        match self.answer(object) {
            None => Ok(None),
            Some(Ok(after)) => Ok(Some(after)),
            // Something of ours has its place, and may go first.
            Some(Err(Obstacle::Invalid(message)))
                if message.contains("already allocated")
                    && is_taken(object, self.inputs.observed, self.inputs.owned) =>
            {
                Ok(None)
            }
            Some(Err(Obstacle::Invalid(message))) => Err(Reason::Invalid(message.clone())),
            Some(Err(Obstacle::Immutable(immutable))) => {
                let what = "it is not ours yet, and never deleted for that: change it by hand";
                Err(Reason::Immutable(format!("{} cannot be changed; {what}", immutable.fields.join(", "))))
            }
            Some(Err(Obstacle::Forbidden(message))) => Err(Reason::Forbidden(message.clone())),
            Some(Err(Obstacle::NoSuchKind(kind))) => {
                let hint = if self.is_kind_made(object) { " yet: the next round goes on" } else { "" };
                Err(Reason::NoSuchKind(format!("{kind}{hint}")))
            }
            Some(Err(Obstacle::Stale(message) | Obstacle::Failed(message))) => Err(Reason::Failed(message.clone())),
        }
    }

    /// Tells whether this round makes the kind of an object.
    fn is_kind_made(&self, object: &Object) -> bool {
        let is_it = |body: &Value| {
            body.pointer("/spec/group") == Some(&object.id().group.as_str().into())
                && body.pointer("/spec/names/kind") == Some(&object.id().kind.as_str().into())
        };
        let made = self.before.iter().filter(|step| step.id.is_a("apiextensions.k8s.io", "CustomResourceDefinition"));
        made.filter_map(|step| step.object.as_ref()).any(|object| is_it(object.body()))
    }

    fn differences(&self, before: &Value, after: &Value) -> Vec<Difference> {
        differences(before, after, FIELD_MANAGER, &self.inputs.policies.conflicts.masker)
    }

    fn step(&self, object: &Object, action: Action, differences: Vec<Difference>) -> Step {
        let note = self.unit.notes.get(object.id()).cloned();
        let step = Step::new(&self.unit.id, object.id(), object.gvk(), action);
        Step { object: Some(object.clone()), differences, note, ..step }
    }
}

/// Says what keeps an object that is being deleted, if anything does.
pub(super) fn finalizers(live: &Live) -> String {
    let names = live.object.body().pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" (kept until then by metadata.finalizers: {})", names.join(", "))
    }
}
