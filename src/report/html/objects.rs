//! The objects of the page, by unit, with what differs.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::count;
use serde_json::{Value, json};

use crate::report::action::StepAction;
use crate::report::folded::{Differing, Paragraph};
use crate::report::outline::{Section, Sections};
use crate::report::shown::{Shown, Values, dated, tags};
use crate::report::text::{fields, why};
use crate::report::{StepReport, UnitReport};

/// The units of some clusters with their objects, and all documents together; what something is to be said of stands open.
pub(super) fn units(paragraph: &Paragraph<'_>, sections: &Sections<'_>) -> Vec<Value> {
    let cluster = &paragraph.part;
    let states: BTreeMap<&ObjectId, &UnitReport> = cluster.units.iter().map(|unit| (&unit.unit, unit)).collect();
    let mut all = BTreeMap::<Section<'_>, Vec<Value>>::new();
    for step in &cluster.steps {
        let (section, mut object) = (sections.of_step(step), object(step, paragraph));
        // A document has no other place for what is to be said of its unit.
        let said = states.get(&step.unit).and_then(|unit| unit.message.as_ref());
        if section == Section::Documents && object["message"].is_null() {
            object["message"] = json!(said);
        }
        all.entry(section).or_default().push(object);
    }
    for refusal in cluster.told_refusals() {
        all.entry(sections.of_unit(&refusal.unit)).or_default().push(json!({
            "kind": refusal.id.kind, "name": name(&refusal.id), "state": "refused", "message": why(refusal),
            "mark": cluster.mark(refusal.since), "differences": [], "fields": [],
        }));
    }
    let unit = |(section, objects): (Section<'_>, Vec<Value>)| {
        let known = if let Section::Unit(unit) = section { states.get(unit) } else { None };
        let mark = known.and_then(|unit| cluster.mark(unit.since)).unwrap_or_default();
        let message = [known.and_then(|unit| unit.message.as_deref()).unwrap_or_default(), &mark].join(" ");
        json!({
            "name": section.to_string(), "state": known.map(|unit| unit.state),
            "message": message.trim(),
            "open": objects.iter().any(|object| object["state"] != StepAction::Unchanged.word()), "objects": objects,
        })
    };
    all.into_iter().map(unit).collect()
}

fn name(id: &ObjectId) -> String {
    if id.namespace.is_empty() { id.name.clone() } else { format!("{}/{}", id.namespace, id.name) }
}

fn object(step: &StepReport, paragraph: &Paragraph<'_>) -> Value {
    let cluster = &paragraph.part;
    let marks: Vec<String> = tags(step).into_iter().map(str::to_owned).chain(cluster.mark(step.since)).collect();
    let same = step.differences.iter().map(|it| difference(dated(it, step, cluster)));
    let by_cluster = paragraph.differing(step).iter().flat_map(|Differing { path, values }| {
        let shown = move |clusters: &_, it| Shown { path: format!("{path} on {clusters}"), ..dated(it, step, cluster) };
        values.iter().map(move |(clusters, it)| difference(shown(clusters, it)))
    });
    let differences = same.chain(by_cluster);
    json!({
        "kind": step.id.kind, "name": name(&step.id), "state": step.result(), "message": step.said(),
        "mark": marks.join("; "), "differences": differences.collect::<Vec<_>>(), "fields": fields::lines(step).collect::<Vec<_>>(),
    })
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
