//! Objects that pass from one unit to another: the inventory says that they were made for the one, and the other wants
//! them now, as where a spec has a new name.
//!
//! Whatever would keep an object from being deleted with its unit keeps it from being changed for another one: else a
//! slip in one file would have the objects of a live Gateway overwritten by whatever else names them.

use std::collections::{BTreeMap, BTreeSet};

use super::guard::{Guard, Hold};
use super::refusal::{Reason, Severity};
use super::withdrawal::{Evidence, in_words};
use super::{Inputs, Plan, Step};
use crate::inventory::Entry;
use crate::object::ObjectId;
use crate::reading::Unclear;
use crate::text::listed;
use crate::unit::Unit;

/// The most objects that are named.
const NAMED: usize = 3;

impl<'a> Inputs<'a> {
    /// Returns the entry of an object that was made for another unit than the one that wants it now.
    ///
    /// A document that goes to the cluster as it stands is the same whichever unit it goes with.
    pub(super) fn former(self, unit: &Unit, id: &ObjectId) -> Option<&'a Entry> {
        let entry = self.owned.entries.get(id).filter(|entry| entry.unit != unit.id)?;
        let is_document = self.rendering.documents.contains(id) && unit.specs.iter().any(|spec| spec.id() == id);
        (!is_document).then_some(entry)
    }

    /// Says why an object stays with the unit of its entry, whose spec still stands in the source.
    pub(super) fn check_stays(self, id: &ObjectId, entry: &Entry) -> Result<(), Reason> {
        let rendering = self.rendering;
        if rendering.released.contains_key(&entry.unit) {
            return Err(Reason::Released(entry.unit.path()));
        }
        if rendering.broken.contains(&entry.unit) {
            return Err(Reason::Broken);
        }
        if rendering.self_managed.contains(&entry.unit) && !self.is_spec(id) {
            return Err(Reason::SelfManaged);
        }
        // The operator's own kinds are what we leave to it; everything else it makes, and perhaps out of what is there.
        if rendering.passed_on.contains(&entry.unit) && id.group != entry.unit.group {
            return Err(Reason::PassedOn);
        }
        Ok(())
    }

    /// Tells whether an object is of a kind of specs.
    pub(super) fn is_spec(self, id: &ObjectId) -> bool {
        self.rendering.spec_kinds.contains(&(id.group.clone(), id.kind.clone()))
    }
}

/// Refuses to change for a unit what was made for another one that still stands in the source, in whatever state: were
/// that in order, two would want it.
pub(super) fn check(unit: &Unit, id: &ObjectId, inputs: Inputs<'_>) -> Result<(), Reason> {
    let Some(entry) = inputs.former(unit, id) else { return Ok(()) };
    inputs.check_stays(id, entry).map_err(|reason| {
        let state = match reason {
            Reason::Released(_) => "which the source releases to its deployer",
            Reason::SelfManaged => "which somebody else provisions, as its spec says",
            Reason::PassedOn => "which is left to the operator in the cluster",
            _ => "whose spec is broken",
        };
        Reason::Foreign(format!("{}, {state}", entry.unit))
    })
}

/// Holds a unit that would get what belongs to another one of which it is not certain that it was withdrawn.
pub(super) fn waiting(
    plan: &mut Plan,
    unit: &Unit,
    steps: &[&Step],
    evidence: &Evidence<'_>,
    inputs: Inputs<'_>,
) -> Option<(Guard, BTreeSet<ObjectId>)> {
    let (mut unclear, mut former) = (BTreeSet::<Unclear>::new(), BTreeSet::new());
    let mut passes = |step: &&&Step| {
        let Some(entry) = inputs.former(unit, &step.id) else { return false };
        let Err(why) = evidence.of(&entry.unit) else { return false };
        unclear.extend(why);
        former.insert(&entry.unit);
        true
    };
    let passing: Vec<&Step> = steps.iter().filter(&mut passes).copied().collect();
    if passing.is_empty() {
        return None;
    }
    let objects: Vec<&ObjectId> = passing.iter().map(|step| &step.id).collect();
    let message = format!(
        "{} would pass to it from {}, and it is not certain that this was withdrawn: {}",
        listed(&objects, NAMED),
        listed(former, NAMED),
        in_words(&unclear)
    );
    let hint = "correct the source; if it is to have that, approve it";
    let held = passing.iter().map(|step| inputs.held(step)).collect();
    let objects = objects.into_iter().cloned().collect();
    plan.stops(Hold::on_unit(Guard::Adopt, &unit.id, message, hint, held), inputs).then_some((Guard::Adopt, objects))
}

/// Takes out of a plan what would pass from a unit that stays for now; tells whether there was any. What needs no change
/// stays with that unit in the inventory, so that it is kept, and goes, with it.
pub(super) fn hold_back(plan: &mut Plan, inputs: Inputs<'_>) -> bool {
    let mut refused: BTreeMap<ObjectId, Vec<(ObjectId, Reason)>> = BTreeMap::new();
    for (step, former) in passing(plan, inputs) {
        if step.action.changes() {
            let reason = Reason::StillNeeded(former.to_string());
            refused.entry(step.unit).or_default().push((step.id, reason));
        } else {
            plan.unwrite(&step.id, inputs.owned);
        }
    }
    for (unit, reasons) in &refused {
        plan.refuse_changes(unit, reasons, inputs.owned);
        plan.withhold(|step| step.unit == *unit, &Reason::UnitHeld);
    }
    !refused.is_empty()
}

/// Returns the steps about what passes from a unit that stays for now, with that unit, but for those that a person has let
/// pass.
fn passing<'a>(plan: &Plan, inputs: Inputs<'a>) -> Vec<(Step, &'a ObjectId)> {
    let held = plan.refusals.iter().filter(|refusal| refusal.reason.severity() > Severity::Kept);
    let held: BTreeSet<&ObjectId> = held.map(|refusal| &refusal.unit).collect();
    let is_let = |step: &Step| {
        let is_of_unit = |hold: &&Hold| hold.guard == Guard::Adopt && hold.unit.as_ref() == Some(&step.unit);
        plan.lifted.iter().filter(is_of_unit).flat_map(|hold| &hold.steps).any(|held| held.id == step.id)
    };
    let former = |step: &Step| {
        // A round about some units leaves the others as they are.
        let stays = |unit: &ObjectId| held.contains(unit) || !inputs.policies.is_about(unit);
        let is_held = |entry: &&Entry| entry.unit != step.unit && stays(&entry.unit);
        inputs.owned.entries.get(&step.id).filter(is_held)?;
        let unit = inputs.rendering.units.iter().find(|unit| unit.id == step.unit)?;
        inputs.former(unit, &step.id).map(|entry| &entry.unit)
    };
    let steps = plan.steps.iter().filter(|step| !step.action.deletes() && !is_let(step));
    steps.filter_map(|step| Some((step.clone(), former(step)?))).collect()
}
