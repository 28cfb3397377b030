//! What happens to one wanted object.

use serde_json::Value;

use super::policies::{Adopt, Policies};
use super::refusal::Reason;
use super::{Action, FIELD_MANAGER, NamespaceState, Observed, Obstacle, Over, Step, is_created, owner};
use crate::diff::{Difference, differences};
use crate::inventory::Inventory;
use crate::live::Live;
use crate::marks::Owner;
use crate::object::Object;
use crate::unit::Unit;

/// What a decision is made from.
pub(super) struct Decision<'a> {
    pub(super) unit: &'a Unit,
    pub(super) observed: &'a Observed,
    pub(super) owned: &'a Inventory,
    pub(super) policies: &'a Policies,
    /// What is decided already.
    pub(super) before: &'a [Step],
}

impl Decision<'_> {
    /// Decides what happens to one wanted object: the only place that makes this choice.
    pub(super) fn decide(&self, object: &Object) -> Result<Step, Reason> {
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
        self.check_rehearsal(object)?;
        let namespace = &object.id().namespace;
        match self.observed.namespaces.get(namespace) {
            Some(NamespaceState::Absent) if !self.policies.create_namespaces && !is_created(self.before, namespace) => {
                return Err(Reason::NoNamespace(namespace.clone()));
            }
            Some(NamespaceState::Terminating) => return Err(Reason::NamespaceTerminating(namespace.clone())),
            Some(NamespaceState::Absent | NamespaceState::Present) | None => {}
        }
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
            Some(Err(Obstacle::NoSuchKind(kind))) => {
                let hint = if self.is_kind_made(object) { " yet: the next round goes on" } else { "" };
                Err(Reason::NoSuchKind(format!("{kind}{hint}")))
            }
            Some(Err(Obstacle::Failed(message))) => Err(Reason::Failed(message.clone())),
        }
    }

    /// Tells whether this round makes the kind of an object.
    fn is_kind_made(&self, object: &Object) -> bool {
        let is_it = |body: &Value| {
            body.pointer("/spec/group") == Some(&object.id().group.as_str().into())
                && body.pointer("/spec/names/kind") == Some(&object.id().kind.as_str().into())
        };
        let made = self.before.iter().filter(|step| step.id.kind == "CustomResourceDefinition");
        made.filter_map(|step| step.object.as_ref()).any(|object| is_it(object.body()))
    }

    fn step(&self, object: &Object, action: Action, differences: Vec<Difference>) -> Step {
        Step {
            unit: self.unit.id.clone(),
            id: object.id().clone(),
            gvk: object.gvk(),
            action,
            object: Some(object.clone()),
            differences,
            note: self.unit.notes.get(object.id()).cloned(),
        }
    }
}
