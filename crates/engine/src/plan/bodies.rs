//! Objects before and after a plan, for whoever wants to read them as a diff of YAML.
//!
//! Of each object stand there the fields that we set and those that change; what others have set and keep, and what
//! servers write, is left out. As everywhere, compared are the values as they are, and shown is what a [`Masker`] leaves.

mod narrow;

use serde_json::Value;

use super::guard::token::HeldStep;
use super::recreate::compared;
use super::refusal::Reason;
use super::{Action, Observed, Obstacle, Plan, Step};
use crate::diff::comparable;
use crate::live::Live;
use crate::marks::MARKS;
use crate::mask::Masker;
use crate::object::{Gvk, Object, ObjectId};
use crate::unit::{Rendering, Unit};
use narrow::narrowed;

/// The share of an object that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// With the marks that say whose it is.
    Shown,
    /// Without them: nobody is going to set these.
    LeftOut,
}

/// An object that a plan changes, with what is secret masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bodies {
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The word for what is done with it.
    pub action: String,
    /// Whether that waits for a person, or for something else of its unit.
    pub is_held: bool,
    /// The object as it is; `None` where it is not there.
    pub before: Option<Value>,
    /// The object as it would be; `None` where it would not be there.
    pub after: Option<Value>,
}

/// Returns the objects that a plan changes, and those that it would change if nothing held it.
pub fn bodies(
    plan: &Plan,
    rendering: &Rendering,
    observed: &Observed,
    (masker, marks): (&Masker, Marks),
) -> Vec<Bodies> {
    let pairs = Pairs { rendering, observed, masker, marks };
    let steps = plan.changes().map(|step| pairs.of_step(step));
    let waits = |reason: &Reason| matches!(reason, Reason::Held(_) | Reason::UnitHeld);
    let held = plan.refusals.iter().filter(|refusal| waits(&refusal.reason)).filter_map(|it| pairs.held(plan, &it.id));
    steps.chain(held).filter(|bodies| bodies.before != bodies.after).collect()
}

/// The objects from which bodies are taken.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    rendering: &'a Rendering,
    observed: &'a Observed,
    masker: &'a Masker,
    marks: Marks,
}

impl Pairs<'_> {
    fn of_step(self, step: &Step) -> Bodies {
        let live = self.observed.live.get(&step.id).filter(|_| step.action != Action::Create);
        let (before, after) = self.shown(live, step.object.as_ref());
        let action = step.action.word().to_owned();
        Bodies { id: step.id.clone(), gvk: step.gvk.clone(), action, is_held: false, before, after }
    }

    /// Returns an object of which a plan says only that it waits.
    fn held(self, plan: &Plan, id: &ObjectId) -> Option<Bodies> {
        let live = self.observed.live.get(id);
        let steps = plan.holds.iter().flat_map(|hold| &hold.steps);
        let step = { steps }.find(|step| step.id == *id);
        let goes = |step: &HeldStep| ["prune", "delete-first"].contains(&step.action.as_str());
        let wanted = self.rendering.units.iter().flat_map(Unit::all).find(|object| object.id() == id);
        let wanted = wanted.filter(|_| !step.is_some_and(goes));
        let gvk = wanted.map(Object::gvk).or_else(|| live.map(|live| live.object.gvk()))?;
        let usual = if live.is_some() { "update" } else { "create" };
        let action = step.map_or(usual, |step| &step.action).to_owned();
        let (before, after) = self.shown(live, wanted);
        Some(Bodies { id: id.clone(), gvk, action, is_held: true, before, after })
    }

    fn shown(self, live: Option<&Live>, wanted: Option<&Object>) -> (Option<Value>, Option<Value>) {
        let wanted = wanted.map(|object| self.own(object.body()));
        let (before, after) = match (live, &wanted) {
            (Some(live), Some(wanted)) => {
                let (before, after) = self.result(live, wanted);
                (Some(before), Some(after))
            }
            (live, wanted) => (live.map(|live| self.own(live.object.body())), wanted.clone()),
        };
        narrowed(before.as_ref(), after.as_ref(), wanted.as_ref(), self.masker)
    }

    /// Returns a live object, and what it would be by a dry run; or by what is wanted, where nobody was asked.
    fn result(self, live: &Live, wanted: &Value) -> (Value, Value) {
        let body = live.object.body();
        match self.observed.dry_runs.get(live.object.id()).map(|run| &run.result) {
            Some(Ok(after)) => (self.own(body), self.own(after.object.body())),
            Some(Err(Obstacle::Immutable(immutable))) if let Some(Ok(after)) = &immutable.instead => {
                let (before, after) = compared(live, after);
                (self.own(&before), self.own(&after))
            }
            _ => (self.own(body), wanted.clone()),
        }
    }

    /// Returns an object without what is not ours to set.
    fn own(self, body: &Value) -> Value {
        let mut body = comparable(body);
        // In a folder they are not written down.
        if self.marks == Marks::LeftOut || self.observed.is_unmarked {
            for (field, key) in MARKS {
                take_out(&mut body, field, key);
            }
        }
        body
    }
}

/// Takes a label or an annotation out of an object, and the field with the last of them.
fn take_out(body: &mut Value, field: &str, key: &str) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else { return };
    if map.remove(key).is_some() && map.is_empty() {
        metadata.remove(field);
    }
}
