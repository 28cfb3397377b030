//! The objects of the page, by unit, with what differs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::count;

use super::Safe;
use crate::report::outcome::Outcome;
use crate::report::shown::{Line, Shown, Values, dated, tags};
use crate::report::text::{fields, why};
use crate::report::{ClusterReport, Report, StepReport, UnitReport, UnitState};

/// One sync on one cluster, unit by unit; those of which something is to be said stand open.
pub(super) fn section(report: &Report, name: &str, cluster: &ClusterReport, out: &mut impl Write) -> io::Result<()> {
    let mut units: BTreeMap<&ObjectId, Vec<Entry<'_>>> = BTreeMap::new();
    for step in &cluster.steps {
        units.entry(&step.unit).or_default().push(Entry::of(step, cluster));
    }
    for refusal in &cluster.refusals {
        let mark = cluster.mark(refusal.since);
        let entry = Entry { id: &refusal.id, state: "refused", message: Some(why(refusal)), mark, step: None };
        units.entry(&refusal.unit).or_default().push(entry);
    }
    let states: BTreeMap<&ObjectId, &UnitReport> = cluster.units.iter().map(|unit| (&unit.unit, unit)).collect();
    if units.is_empty() {
        return Ok(());
    }
    let (cluster_name, sync) = (Safe(name), Safe(&report.sync));
    writeln!(out, "<section data-cluster=\"{cluster_name}\"><h2>{sync} on {cluster_name}</h2>")?;
    for (unit, entries) in units {
        let is_quiet = entries.iter().all(|entry| entry.state == "keep");
        let open = if is_quiet { "" } else { " open" };
        let known = states.get(unit);
        let word = known.map_or("", |unit| word(unit.state));
        let mark = known.and_then(|unit| cluster.mark(unit.since)).unwrap_or_default();
        let message = known.and_then(|unit| unit.message.as_deref()).unwrap_or_default();
        writeln!(
            out,
            "<details{open}><summary><bdi>{}</bdi> <span class=\"{word}\">{word}</span> <small>{}</small></summary><ul>",
            Safe(&unit.to_string()),
            Safe([message, &mark].join(" ").trim())
        )?;
        entries.iter().try_for_each(|entry| object(entry, cluster, out))?;
        writeln!(out, "</ul></details>")?;
    }
    writeln!(out, "</section>")
}

/// One object in the list of its unit.
struct Entry<'a> {
    id: &'a ObjectId,
    state: &'a str,
    message: Option<String>,
    /// Since when.
    mark: Option<String>,
    step: Option<&'a StepReport>,
}

impl<'a> Entry<'a> {
    fn of(step: &'a StepReport, cluster: &ClusterReport) -> Self {
        let message = match &step.outcome {
            Some(Outcome::Failed(why)) => Some(why.clone()),
            Some(Outcome::Stale(why)) => Some(format!("changed meanwhile: {why}")),
            Some(Outcome::Skipped | Outcome::Done) | None => step.note.clone(),
        };
        let tags = tags(step).into_iter().map(str::to_owned);
        let marks: Vec<String> = tags.chain(cluster.mark(step.since)).collect();
        let mark = (!marks.is_empty()).then(|| marks.join("; "));
        Self { id: &step.id, state: state_of(step), message, mark, step: Some(step) }
    }
}

/// The word by which an object can be filtered: what is done with it, or that this went wrong.
pub(super) fn state_of(step: &StepReport) -> &str {
    match &step.outcome {
        Some(Outcome::Failed(_) | Outcome::Stale(_)) => "failed",
        Some(Outcome::Skipped) => "not tried",
        Some(Outcome::Done) | None => &step.action,
    }
}

fn word(state: UnitState) -> &'static str {
    match state {
        UnitState::Current => "current",
        UnitState::Changed => "changed",
        UnitState::Pending => "pending",
        UnitState::Different => "different",
        UnitState::Unhealthy => "unhealthy",
        UnitState::Held => "held",
        UnitState::Failed => "failed",
        UnitState::Pruned => "pruned",
    }
}

fn object(entry: &Entry<'_>, cluster: &ClusterReport, out: &mut impl Write) -> io::Result<()> {
    let Entry { id, state, message, mark, step } = entry;
    let (kind, state) = (Safe(&id.kind), Safe(state));
    let name = if id.namespace.is_empty() { id.name.clone() } else { format!("{}/{}", id.namespace, id.name) };
    write!(out, "<li data-kind=\"{kind}\" data-state=\"{state}\"><b>{state}</b> {kind} <bdi>{}</bdi>", Safe(&name))?;
    if let Some(message) = message {
        write!(out, " <small>{}</small>", Safe(message))?;
    }
    if let Some(mark) = mark {
        write!(out, " <small>{mark}</small>")?;
    }
    let Some(step) = step.filter(|step| !step.differences.is_empty() || !step.fields.is_empty()) else {
        return writeln!(out, "</li>");
    };
    write!(out, "<dl>")?;
    for difference in &step.differences {
        let Shown { path, by, values } = dated(difference, step, cluster);
        write!(out, "<dt>{} <small>{}</small></dt>", Safe(&path), Safe(&by))?;
        match values {
            Values::Pair(before, after) => {
                write!(out, "{}{}", side("del", before.as_deref()), side("ins", after.as_deref()))?;
            }
            Values::Lines { lines, more } => {
                for Line { is_new, text } in lines {
                    write!(out, "{}", side(if is_new { "ins" } else { "del" }, Some(&text)))?;
                }
                if more > 0 {
                    write!(out, "<dd><small>{} more</small></dd>", count(more, "line"))?;
                }
            }
        }
    }
    for line in fields::lines(step) {
        write!(out, "<dt><small>{}</small></dt><dd></dd>", Safe(&line))?;
    }
    writeln!(out, "</dl></li>")
}

/// A value that goes or comes.
fn side(tag: &str, value: Option<&str>) -> String {
    value.map(|value| format!("<dd><{tag}>{}</{tag}></dd>", Safe(value))).unwrap_or_default()
}
