//! The objects of the page, by unit, with what differs.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::count;
use serde_json::{Value, json};

use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::shown::{Shown, Values, dated, tags};
use crate::report::text::{fields, why};
use crate::report::{ClusterReport, StepReport, UnitReport};

/// The units of a cluster with their objects; those of which something is to be said stand open.
pub(super) fn units(cluster: &ClusterReport) -> Vec<Value> {
    let mut units: BTreeMap<&ObjectId, Vec<Value>> = BTreeMap::new();
    for step in &cluster.steps {
        units.entry(&step.unit).or_default().push(object(step, cluster));
    }
    for refusal in &cluster.refusals {
        units.entry(&refusal.unit).or_default().push(json!({
            "kind": refusal.id.kind, "name": name(&refusal.id), "state": "refused", "message": why(refusal),
            "mark": cluster.mark(refusal.since), "differences": [], "fields": [],
        }));
    }
    let states: BTreeMap<&ObjectId, &UnitReport> = cluster.units.iter().map(|unit| (&unit.unit, unit)).collect();
    let unit = |(unit, objects): (&ObjectId, Vec<Value>)| {
        let known = states.get(unit);
        let mark = known.and_then(|unit| cluster.mark(unit.since)).unwrap_or_default();
        let message = [known.and_then(|unit| unit.message.as_deref()).unwrap_or_default(), &mark].join(" ");
        json!({
            "name": unit.to_string(), "state": known.map(|unit| unit.state),
            "message": message.trim(),
            "open": objects.iter().any(|object| object["state"] != StepAction::Unchanged.word()), "objects": objects,
        })
    };
    units.into_iter().map(unit).collect()
}

fn name(id: &ObjectId) -> String {
    if id.namespace.is_empty() { id.name.clone() } else { format!("{}/{}", id.namespace, id.name) }
}

fn object(step: &StepReport, cluster: &ClusterReport) -> Value {
    let message = match &step.outcome {
        Some(Outcome::Failed(why)) => Some(why.clone()),
        Some(Outcome::Stale(why)) => Some(format!("changed meanwhile: {why}")),
        Some(Outcome::Skipped | Outcome::Done) | None => step.note.clone(),
    };
    let marks: Vec<String> = tags(step).into_iter().map(str::to_owned).chain(cluster.mark(step.since)).collect();
    let differences = step.differences.iter().map(|it| difference(dated(it, step, cluster)));
    json!({
        "kind": step.id.kind, "name": name(&step.id), "state": state_of(step), "message": message,
        "mark": marks.join("; "), "differences": differences.collect::<Vec<_>>(), "fields": fields::lines(step).collect::<Vec<_>>(),
    })
}

/// The word by which an object can be filtered: what is done with it, or that this went wrong.
pub(super) fn state_of(step: &StepReport) -> &str {
    match &step.outcome {
        Some(Outcome::Failed(_) | Outcome::Stale(_)) => "failed",
        Some(Outcome::Skipped) => "not tried",
        Some(Outcome::Done) | None => step.action.word(),
    }
}

/// A field with its values, or lines of them, that go and come.
fn difference(Shown { path, by, values }: Shown) -> Value {
    let side = |is_new: bool, text: String| json!({"tag": if is_new { "ins" } else { "del" }, "text": text});
    let (sides, more): (Vec<Value>, _) = match values {
        Values::Pair(before, after) => {
            let (before, after) = (before.map(|text| side(false, text)), after.map(|text| side(true, text)));
            (before.into_iter().chain(after).collect(), None)
        }
        Values::Lines { lines, more } => {
            let lines = lines.into_iter().map(|line| side(line.is_new, line.text));
            (lines.collect(), (more > 0).then(|| count(more, "line")))
        }
    };
    json!({"path": path, "by": by, "sides": sides, "more": more})
}
