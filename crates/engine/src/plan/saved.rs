//! A plan that was looked at, and is carried out later: exactly that, or nothing of the unit.
//!
//! What is kept of a step says what it would do and to what: identity, uid and fingerprint of the live object, digest of
//! the wanted one, and what differs. It is no body, and can be carried around. When the plan is carried out everything
//! is looked at again, and a unit goes ahead only if its steps come out the same; what nobody has seen is not done.
//! Another commit or a status that was written meanwhile changes none of that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::guard::token::HeldStep;
use super::refusal::{Reason, Refusal};
use super::{Action, Inputs, Observed, Plan, Step};
use crate::diff::Difference;
use crate::fingerprint;
use crate::inventory::Inventory;
use crate::live::Live;
use crate::mask::Masker;
use crate::object::ObjectId;

/// A step of a plan that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedStep {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// The word for what is done with it.
    pub action: String,
    /// The uid of the live object, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The fingerprint, which changes when somebody touches the live object; writing its status does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The digest of what is wanted, if something is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The differences; what may be secret is masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// A note on what else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Returns what is to be kept of a plan: every step that changes something, and those that wait for approval.
pub fn saved(plan: &Plan, observed: &Observed, masker: &Masker) -> Vec<SavedStep> {
    let of = |step: &Step| SavedStep {
        differences: step.differences.clone(),
        note: step.note.clone(),
        ..held(&step.unit, &HeldStep::of(step, observed, masker), observed)
    };
    let mut steps: Vec<SavedStep> = plan.steps.iter().filter(|step| is_kept(&step.action)).map(of).collect();
    let waits = plan.refusals.iter().filter(|refusal| matches!(refusal.reason, Reason::Held(_) | Reason::UnitHeld));
    let units: BTreeMap<&ObjectId, &ObjectId> = waits.map(|refusal| (&refusal.id, &refusal.unit)).collect();
    for hold in plan.holds.iter().filter(|hold| hold.is_of_units()) {
        let unit = |step: &HeldStep| hold.unit.as_ref().or_else(|| units.get(&step.id).copied());
        steps.extend(hold.steps.iter().filter_map(|step| Some(held(unit(step)?, step, observed))));
    }
    steps
}

/// A namespace that is made for objects belongs to them.
fn is_kept(action: &Action) -> bool {
    action.changes() && *action != Action::CreateNamespace
}

fn held(unit: &ObjectId, step: &HeldStep, observed: &Observed) -> SavedStep {
    SavedStep {
        unit: unit.clone(),
        id: step.id.clone(),
        action: step.action.clone(),
        uid: step.uid.clone(),
        fingerprint: observed.live.get(&step.id).map(touched),
        wanted: step.wanted.clone(),
        differences: Vec::new(),
        note: None,
    }
}

/// Returns the fingerprint that tells whether an object was touched; for one that nobody keeps a record of, such as a
/// file, its version.
fn touched(live: &Live) -> String {
    let has_record = live.object.body().pointer("/metadata/managedFields").is_some();
    let print = fingerprint::of(live.object.body()).filter(|_| has_record);
    print.map_or_else(|| live.resource_version.clone(), |print| print.to_string())
}

/// Takes everything out of a plan that is not exactly as it was kept.
pub(super) fn pin(plan: &mut Plan, kept: &[SavedStep], inputs: Inputs<'_>) {
    let Inputs { observed, owned, policies, .. } = inputs;
    let by_unit = |steps: &[SavedStep]| {
        let mut units: BTreeMap<ObjectId, Vec<SavedStep>> = BTreeMap::new();
        for step in steps {
            units.entry(step.unit.clone()).or_default().push(step.clone());
        }
        units
    };
    let (before, now) = (by_unit(kept), by_unit(&saved(plan, observed, &policies.conflicts.masker)));
    let mut refused: BTreeMap<ObjectId, Reason> = BTreeMap::new();
    for (unit, steps) in &before {
        if let Some(what) = changed(steps, now.get(unit).map_or(&[], Vec::as_slice)) {
            refused.insert(unit.clone(), Reason::Stale(what));
        }
    }
    let others = now.keys().filter(|unit| !before.contains_key(*unit));
    refused.extend(others.map(|unit| (unit.clone(), Reason::NotInPlan)));
    for (unit, reason) in refused {
        plan.leave(&unit, &reason, owned);
    }
    // Namespaces are made for what goes into them.
    let used: BTreeSet<String> = plan.changes().map(|step| step.id.namespace.clone()).collect();
    plan.steps.retain(|step| step.action != Action::CreateNamespace || used.contains(&step.id.name));
}

/// Says what is not as it was when a plan was made; nothing if everything is.
fn changed(before: &[SavedStep], now: &[SavedStep]) -> Option<String> {
    for old in before {
        let Some(new) = now.iter().find(|new| new.id == old.id && new.action == old.action) else {
            return Some(format!("to {} {} is not what would be done now", old.action, old.id));
        };
        if new.uid != old.uid || new.fingerprint != old.fingerprint {
            return Some(format!("{} was changed on the cluster", old.id));
        }
        if new.wanted != old.wanted {
            return Some(format!("{} is rendered differently", old.id));
        }
        // What waits for approval shows no differences.
        let is_shown = !old.differences.is_empty() && !new.differences.is_empty();
        if is_shown && new.differences != old.differences {
            return Some(format!("{} differs in another way", old.id));
        }
    }
    let is_new = |new: &&SavedStep| !before.iter().any(|old| old.id == new.id && old.action == new.action);
    now.iter().find(is_new).map(|new| format!("to {} {} would be done now too", new.action, new.id))
}

impl Plan {
    /// Takes all changes of a unit out of the plan. Where nothing would be changed a unit that moved is still named.
    fn leave(&mut self, unit: &ObjectId, reason: &Reason, owned: &Inventory) {
        let left = self.refuse(|step| step.unit == *unit && step.action.changes(), |_| reason.clone());
        if left.is_empty() && matches!(reason, Reason::Stale(_)) {
            self.refusals.push(Refusal { unit: unit.clone(), id: unit.clone(), reason: reason.clone() });
        }
        for id in left {
            self.unwrite(&id, owned);
        }
    }

    /// Takes an object that was written down ahead and does not come to be out of the inventory again.
    pub(super) fn unwrite(&mut self, id: &ObjectId, owned: &Inventory) {
        match owned.entries.get(id) {
            Some(entry) => drop(self.inventory.entries.insert(id.clone(), entry.clone())),
            None => drop(self.inventory.entries.remove(id)),
        }
    }
}
