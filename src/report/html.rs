//! The HTML view: one file with everything in it, for all clusters at once, that needs no network and no server.
//!
//! It is written piece by piece, so that a large fleet takes no more memory than its reports. What others have named is
//! escaped, and a policy in the page lets nothing run or load but the one script and the one style that are ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_engine::object::ObjectId;
use gatewright_engine::text::count;
use sha2::{Digest, Sha256};

use super::shown::{Line, Shown, Values, shown};
use super::text::{fields, why};
use super::{ClusterReport, ClusterState, Report, StepReport, UnitReport, UnitState};
use crate::apply::Outcome;
use crate::inert;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Writes reports as one page.
///
/// # Errors
/// Whatever `out` cannot take.
pub fn write(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    head(out)?;
    warnings(reports, out)?;
    overview(reports, out)?;
    filter(reports, out)?;
    writeln!(out, "<main id=\"objects\">")?;
    for report in reports {
        for (name, cluster) in &report.clusters {
            section(report, name, cluster, out)?;
        }
    }
    writeln!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>")
}

fn head(out: &mut impl Write) -> io::Result<()> {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy =
        format!("default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'");
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>gatewright report</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<header><h1>gatewright report</h1></header>"
    )
}

/// What is missing from the picture, and what is wrong with it, before anything else.
fn warnings(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let all: Vec<Warning> = reports.iter().flat_map(warnings_of).collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section aria-labelledby=\"first\"><h2 id=\"first\">To be known first</h2><ul class=\"warnings\">")?;
    for Warning { word, place, message, hint } in all {
        let hint = if hint.is_empty() { String::new() } else { format!("<br><small>{}</small>", Safe(&hint)) };
        writeln!(out, "<li><strong>{word}</strong> <bdi>{}</bdi>: {}{hint}</li>", Safe(&place), Safe(&message))?;
    }
    writeln!(out, "</ul></section>")
}

struct Warning {
    word: String,
    place: String,
    message: String,
    hint: String,
}

fn warnings_of(report: &Report) -> Vec<Warning> {
    let warning = |word: &str, place: String, message: String, hint: Option<&str>| Warning {
        word: word.to_owned(),
        place,
        message,
        hint: hint.unwrap_or_default().to_owned(),
    };
    let mut all = Vec::new();
    if let Some(suspension) = &report.suspended {
        all.push(warning("suspended", format!("sync {}", report.sync), suspension.words(), None));
    }
    if let Some(reason) = &report.stale_source {
        let message = format!("it could not be read, and this is its last good revision: {reason}");
        all.push(warning("stale", format!("source {}", report.source), message, None));
    }
    all.extend(report.problems.iter().map(|problem| {
        let hint = problem.problem.hint.as_deref();
        warning("problem", format!("sync {}", report.sync), problem.to_string(), hint)
    }));
    for (name, cluster) in &report.clusters {
        let place = || format!("{} on {name}", report.sync);
        let error = cluster.error.as_ref();
        all.extend(
            error.map(|error| warning(cluster.state.word(), place(), error.message.clone(), error.hint.as_deref())),
        );
        all.extend(cluster.holds.iter().map(|hold| {
            let unit = hold.unit.as_ref().map(|unit| format!("{unit}: ")).unwrap_or_default();
            let message = format!("guard {}: {unit}{}", hold.guard, hold.message);
            warning("held", place(), message, Some(&hold.hint))
        }));
    }
    all
}

fn overview(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<section aria-labelledby=\"overview\"><h2 id=\"overview\">Clusters</h2><div class=\"wide\" tabindex=\"0\" \
         role=\"region\" aria-labelledby=\"overview\"><table><thead><tr><th scope=\"col\">sync</th><th scope=\"col\">\
         cluster</th><th scope=\"col\">state</th><th scope=\"col\">changes</th><th scope=\"col\">unchanged</th>\
         <th scope=\"col\">refused</th><th scope=\"col\">revision</th><th scope=\"col\">time</th></tr></thead><tbody>"
    )?;
    for report in reports {
        for (name, cluster) in &report.clusters {
            let state = cluster.state.word();
            let is_known = cluster.error.is_none() && cluster.state != ClusterState::Suspended;
            let changes = if is_known { cluster.changes().join(", ") } else { "unknown".to_owned() };
            writeln!(
                out,
                "<tr><td>{}</td><th scope=\"row\">{}</th><td class=\"{state}\">{state}</td><td>{changes}</td><td>{}</td>\
                 <td>{}</td><td>{}</td><td>{}</td></tr>",
                Safe(&report.sync),
                Safe(name),
                cluster.unchanged(),
                cluster.not_done().1,
                Safe(&report.revision),
                report.finished.strftime("%Y-%m-%d %H:%M:%SZ"),
            )?;
        }
    }
    writeln!(out, "</tbody></table></div></section>")
}

/// What can be chosen from: the clusters, kinds and states that there are.
fn filter(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let (mut clusters, mut kinds, mut states) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (name, cluster) in reports.iter().flat_map(|report| &report.clusters) {
        clusters.insert(name.as_str());
        for step in &cluster.steps {
            kinds.insert(step.id.kind.as_str());
            states.insert(state_of(step));
        }
        for refusal in &cluster.refusals {
            kinds.insert(refusal.id.kind.as_str());
            states.insert("refused");
        }
    }
    writeln!(
        out,
        "<form role=\"search\" id=\"filter\" aria-label=\"Filter objects\"><label>Name <input type=\"search\" id=\"name\" \
         autocomplete=\"off\" spellcheck=\"false\"></label>"
    )?;
    for (id, label, choices) in [("cluster", "Cluster", clusters), ("kind", "Kind", kinds), ("state", "State", states)]
    {
        write!(out, "<label>{label} <select id=\"{id}\"><option value=\"\">all</option>")?;
        for choice in choices {
            write!(out, "<option>{}</option>", Safe(choice))?;
        }
        writeln!(out, "</select></label>")?;
    }
    writeln!(out, "<button type=\"reset\">Show all</button> <output id=\"count\"></output></form>")
}

/// One sync on one cluster, unit by unit; those of which something is to be said stand open.
fn section(report: &Report, name: &str, cluster: &ClusterReport, out: &mut impl Write) -> io::Result<()> {
    let mut units: BTreeMap<&ObjectId, Vec<Entry<'_>>> = BTreeMap::new();
    for step in &cluster.steps {
        units.entry(&step.unit).or_default().push(Entry::of(step));
    }
    for refusal in &cluster.refusals {
        let entry = Entry { id: &refusal.id, state: "refused", message: Some(why(refusal)), step: None };
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
        let message = known.and_then(|unit| unit.message.as_deref()).unwrap_or_default();
        writeln!(
            out,
            "<details{open}><summary><bdi>{}</bdi> <span class=\"{word}\">{word}</span> <small>{}</small></summary><ul>",
            Safe(&unit.to_string()),
            Safe(message)
        )?;
        entries.iter().try_for_each(|entry| object(entry, out))?;
        writeln!(out, "</ul></details>")?;
    }
    writeln!(out, "</section>")
}

/// One object in the list of its unit.
struct Entry<'a> {
    id: &'a ObjectId,
    state: &'static str,
    message: Option<String>,
    step: Option<&'a StepReport>,
}

impl<'a> Entry<'a> {
    fn of(step: &'a StepReport) -> Self {
        let message = match &step.outcome {
            Some(Outcome::Failed(why)) => Some(why.clone()),
            Some(Outcome::Stale(why)) => Some(format!("changed meanwhile: {why}")),
            Some(Outcome::Skipped | Outcome::Done) | None => step.note.clone(),
        };
        Self { id: &step.id, state: state_of(step), message, step: Some(step) }
    }
}

/// The word by which an object can be filtered: what is done with it, or that this went wrong.
fn state_of(step: &StepReport) -> &'static str {
    match (&step.outcome, step.action.as_str()) {
        (Some(Outcome::Failed(_) | Outcome::Stale(_)), _) => "failed",
        (Some(Outcome::Skipped), _) => "not tried",
        (_, "create") => "create",
        (_, "generate") => "generate",
        (_, "update") => "update",
        (_, "adopt") => "adopt",
        (_, "recreate") => "recreate",
        (_, "release-first") => "release-first",
        (_, "release") => "release",
        (_, "prune") => "prune",
        (_, "forget") => "forget",
        (_, "omit") => "omit",
        _ => "keep",
    }
}

fn word(state: UnitState) -> &'static str {
    match state {
        UnitState::Current => "current",
        UnitState::Changed => "changed",
        UnitState::Pending => "pending",
        UnitState::Unhealthy => "unhealthy",
        UnitState::Held => "held",
        UnitState::Failed => "failed",
        UnitState::Pruned => "pruned",
    }
}

fn object(entry: &Entry<'_>, out: &mut impl Write) -> io::Result<()> {
    let Entry { id, state, message, step } = entry;
    let kind = Safe(&id.kind);
    let name = if id.namespace.is_empty() { id.name.clone() } else { format!("{}/{}", id.namespace, id.name) };
    write!(out, "<li data-kind=\"{kind}\" data-state=\"{state}\"><b>{state}</b> {kind} <bdi>{}</bdi>", Safe(&name))?;
    if let Some(message) = message {
        write!(out, " <small>{}</small>", Safe(message))?;
    }
    let Some(step) = step.filter(|step| !step.differences.is_empty() || !step.fields.is_empty()) else {
        return writeln!(out, "</li>");
    };
    write!(out, "<dl>")?;
    for difference in &step.differences {
        let Shown { path, by, values } = shown(difference, &step.fields);
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

/// A text of others, for between tags and for quoted attributes.
struct Safe<'a>(&'a str);

impl Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = inert::line(self.0);
        let mut rest = &*text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            write!(f, "&#{};", rest.as_bytes()[at])?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}
