//! The refusals and holds of a plan: what was not done, and since when, with the time that plans know nothing of.

use std::collections::BTreeMap;
use std::ops::Deref;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::token::HeldStep;
use gatewright_engine::plan::guard::{Guard, Hold};
use gatewright_engine::plan::refusal::{Reason, Refusal};
use gatewright_engine::text::listed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ClusterReport, UnitReport, UnitState};

/// Something of a plan, and since which report it is known. It reads as what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dated<T> {
    /// The refusal or hold.
    #[serde(flatten)]
    pub what: T,
    /// Since which report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A step that we chose not to take.
pub type RefusalReport = Dated<Refusal>;

/// The most objects of a hold that are named, unless all are to be shown.
pub const MOST_HELD: usize = 8;

/// A guard that stopped something.
pub type HoldReport = Dated<Hold>;

impl<T> From<T> for Dated<T> {
    fn from(what: T) -> Self {
        Self { what, since: None }
    }
}

impl ClusterReport {
    /// Tells whether something is held by a guard.
    pub(crate) fn waits_for(&self, guard: Guard) -> bool {
        self.holds.iter().any(|hold| hold.guard == guard)
    }
}

impl UnitReport {
    /// Begins the report of a unit.
    pub fn new(unit: ObjectId, state: UnitState) -> Self {
        let (message, unawaited, since, pods) = (None, None, None, None);
        let (addresses, ports, images) = (Vec::new(), Vec::new(), Vec::new());
        Self { unit, state, message, unrendered: false, addresses, ports, images, pods, unawaited, since }
    }

    /// Tells whether it was seen healthy, as its source says.
    pub fn is_healthy(&self) -> bool {
        let is_right = matches!(self.state, UnitState::Current | UnitState::Changed | UnitState::Pruned);
        is_right && self.unawaited.is_none() && !self.unrendered
    }
}

impl HoldReport {
    /// Names what it holds, in a line for each action: `prune Service infra/edge, Deployment infra/edge and 3 more`. What
    /// is adopted stands in the message.
    pub fn listed(&self, most: usize) -> Vec<String> {
        let mut actions: BTreeMap<&str, Vec<&ObjectId>> = BTreeMap::new();
        if !matches!(self.guard, Guard::Adopt | Guard::AdoptRestart) {
            self.steps.iter().for_each(|step| actions.entry(&step.action).or_default().push(&step.id));
        }
        actions.into_iter().map(|(action, ids)| format!("{action} {}", listed(ids, most))).collect()
    }
}

impl ClusterReport {
    /// Returns the units that wait for other clusters, and the guard that holds them.
    pub(crate) fn waiting_for_rollout(&self) -> impl Iterator<Item = (&ObjectId, Guard)> {
        let holds = self.holds.iter().filter(|hold| hold.guard.is_of_rollout());
        holds.flat_map(|hold| hold.unit.iter().chain(&hold.units).map(|unit| (unit, hold.guard)))
    }

    /// Returns the guard that holds what would be deleted if other clusters did not count.
    pub(crate) fn waits_to_delete(&self) -> Option<Guard> {
        let mut guards = self.holds.iter().map(|hold| hold.guard);
        guards.find(|guard| matches!(guard, Guard::MaxDeleteFleet | Guard::RolloutDeletion))
    }

    /// Returns the refusals, without those of which a hold says that it is not their turn.
    pub(super) fn told_refusals(&self) -> impl Iterator<Item = &RefusalReport> {
        self.refusals.iter().filter(|refusal| !matches!(refusal.reason, Reason::Held(guard) if guard.is_of_rollout()))
    }

    /// Names what a guard holds, as [`HoldReport::listed`] does, unless the report has the steps anyway.
    pub(super) fn withheld(&self, hold: &HoldReport, most: usize) -> Vec<String> {
        let is_shown = |first: &HeldStep| self.steps.iter().any(|step| step.id == first.id);
        if hold.steps.first().is_some_and(is_shown) { Vec::new() } else { hold.listed(most) }
    }
}

impl<T> Deref for Dated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_objects_that_are_held_some_are_named() {
        let step = |(action, name): (&str, &str)| HeldStep {
            id: ObjectId::new("", "Service", "shop", name),
            action: action.to_owned(),
            uid: None,
            wanted: None,
        };
        let steps = [("prune", "b"), ("prune", "a"), ("prune", "c"), ("delete-first", "d")].map(step).into();
        let (message, hint) = (String::new(), String::new());
        let hold =
            |guard| Hold { guard, unit: None, units: Vec::new(), message, hint, token: None, fleet_token: None, steps };
        let hold = HoldReport::from(hold(Guard::Confirm));
        let first = "delete-first Service shop/d";
        assert_eq!(hold.listed(2), [first, "prune Service shop/b, Service shop/a and 1 more"]);
        assert_eq!(hold.listed(3), [first, "prune Service shop/b, Service shop/a, Service shop/c"]);
        let adopted = Hold { guard: Guard::Adopt, ..hold.what };
        assert_eq!(HoldReport::from(adopted).listed(2), [""; 0]);
    }
}
