//! The `JUnit` view: a suite for each sync on each cluster, a case for each object, for whatever shows tests.
//!
//! What a plan would change is a failure, because the cluster is not as the source says; in a round only what failed is.

use std::io;

use gatewright_engine::problem::Scope;
use gatewright_engine::text::count;
use serde::Serialize;
use serde_json::{Value, json};
use tera::{Context, Tera};

use super::shown::dated;
use super::text::why;
use super::warnings::with_mark;
use super::{ClusterReport, ClusterState, Mode, ProblemReport, Report, StepReport, clusters_of};
use crate::basics::sanitize;
use crate::report::outcome::Outcome;
use crate::state::suspension::Suspension;

/// A case, and the element that says why it did not pass.
#[derive(Default, Serialize)]
struct Case {
    unit: String,
    name: String,
    /// `failure`, `error` or `skipped`; empty if it passed.
    verdict: &'static str,
    kind: String,
    message: String,
    hint: String,
    /// The differences.
    lines: Vec<String>,
}

/// Writes reports as one XML document, one suite after the other.
///
/// # Errors
/// Those of what it is written to.
pub fn write(reports: &[Report], out: &mut impl io::Write) -> io::Result<()> {
    write_suites(clusters_of(reports).map(|(report, name, cluster)| suite(report, name, cluster)), out)
}

fn write_suites(suites: impl IntoIterator<Item = Value>, out: &mut impl io::Write) -> io::Result<()> {
    let mut templates = Tera::default();
    templates.set_escape_fn(escape);
    templates.add_raw_template("suite.xml", include_str!("junit/suite.xml")).map_err(io::Error::other)?;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gatewright\">\n")?;
    for suite in suites {
        let text = Context::from_serialize(&suite).and_then(|values| templates.render("suite.xml", &values));
        out.write_all(text.map_err(io::Error::other)?.as_bytes())?;
    }
    out.write_all(b"</testsuites>\n")
}

/// Writes what a check of specs has found as one suite: a case for each finding, or one that passed.
///
/// # Errors
/// Those of what it is written to.
pub fn write_findings(findings: &[ProblemReport], out: &mut impl io::Write) -> io::Result<()> {
    let case = |finding: &ProblemReport| {
        let is_warning = finding.problem.scope == Scope::Warning;
        let rule = finding.problem.rule.map_or_else(|| "invalid".to_owned(), |rule| rule.to_string());
        let verdict = if is_warning { "skipped" } else { "failure" };
        let (unit, name) = (finding.problem.place.file.to_string(), finding.problem.place.to_string());
        Case { unit, name, verdict, kind: rule, message: finding.to_string(), ..Case::default() }
    };
    let mut cases: Vec<Case> = findings.iter().map(case).collect();
    if cases.is_empty() {
        cases.push(Case { unit: "specs".to_owned(), name: "check".to_owned(), ..Case::default() });
    }
    let number = |verdict: &str| cases.iter().filter(|case| case.verdict == verdict).count();
    let suite = json!({
        "name": "check", "failures": number("failure"), "errors": 0, "skipped": number("skipped"), "time": "0.000",
        "timestamp": Value::Null, "cases": cases,
    });
    write_suites([suite], out)
}

/// Writes a text of others; what XML cannot hold at all is not left by [`sanitize::line`].
fn escape(text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let text = sanitize::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    out.write_all(text.replace('"', "&quot;").as_bytes())
}

fn suite(report: &Report, name: &str, cluster: &ClusterReport) -> Value {
    let cases = cases(report, name, cluster);
    let number = |verdict: &str| cases.iter().filter(|case| case.verdict == verdict).count();
    let seconds = report.finished.duration_since(report.started).as_secs_f64();
    let trend = cluster.trend.as_ref();
    let resolved = trend.iter().flat_map(|trend| &trend.resolved).map(|finding| ("resolved", finding));
    let unseen = trend.iter().flat_map(|trend| &trend.unseen).map(|finding| ("not looked at", finding));
    let gone = resolved.chain(unseen).map(|(word, finding)| format!("{word}: {}", finding.words()));
    json!({
        "name": format!("{} on {name}", report.sync),
        "failures": number("failure"), "errors": number("error"), "skipped": number("skipped"),
        "time": format!("{seconds:.3}"), "timestamp": report.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "trend": trend.map(|trend| json!({
            "new": trend.new, "still": trend.still, "resolved": trend.resolved.len(), "unseen": trend.unseen.len(),
            "against": trend.against,
        })),
        "cases": cases, "gone": gone.collect::<Vec<_>>(),
    })
}

/// The cases of a cluster: what is wrong with it as a whole first.
fn cases(report: &Report, name: &str, cluster: &ClusterReport) -> Vec<Case> {
    let mut cases = Vec::new();
    let source = |name: String, kind: &str, message: String, since| {
        let (unit, kind, message) = ("source".to_owned(), kind.to_owned(), with_mark(message, report.mark(since)));
        Case { unit, name, verdict: "error", kind, message, ..Case::default() }
    };
    let whole = |verdict, kind: &str, message: String| {
        let (unit, name, kind) = ("cluster".to_owned(), name.to_owned(), kind.to_owned());
        Case { unit, name, verdict, kind, message, ..Case::default() }
    };
    if let Some(reason) = &report.stale_source {
        let message = format!("it could not be read, and this is its last good revision: {reason}");
        cases.push(source(report.source.clone(), "stale", message, report.stale_since));
    }
    if let Some(error) = &cluster.error {
        let message = with_mark(error.message.clone(), cluster.mark(cluster.since));
        cases.push(whole("error", cluster.state.word(), message));
    }
    if cluster.state == ClusterState::Suspended {
        let why = report.suspended.as_ref().map(Suspension::words);
        cases.push(whole("skipped", "", why.unwrap_or_else(|| "suspended".to_owned())));
    }
    cases.extend(cluster.unaccepted.as_ref().map(|unaccepted| Case {
        unit: "cluster".to_owned(),
        name: "accepted by a control plane".to_owned(),
        hint: unaccepted.hint.clone(),
        ..failure("unaccepted".to_owned(), with_mark(unaccepted.message.clone(), cluster.mark(unaccepted.since)))
    }));
    cases.extend(cluster.holds.iter().map(|hold| Case {
        unit: hold.unit.as_ref().map_or_else(|| "cluster".to_owned(), ToString::to_string),
        name: format!("guard {}", hold.guard),
        hint: hold.hint.clone(),
        ..failure(format!("guard {}", hold.guard), with_mark(hold.message.clone(), cluster.mark(hold.since)))
    }));
    for problem in report.problems.iter().filter(|problem| problem.is_on(name)) {
        cases.push(source(problem.problem.place.to_string(), "problem", problem.to_string(), problem.since));
    }
    cases.extend(cluster.steps.iter().map(|step| case(step, cluster, report.mode)));
    cases.extend(cluster.refusals.iter().map(|refusal| Case {
        unit: refusal.unit.to_string(),
        name: refusal.id.to_string(),
        ..failure("refused".to_owned(), with_mark(why(refusal), cluster.mark(refusal.since)))
    }));
    cases
}

fn failure(kind: String, message: String) -> Case {
    Case { verdict: "failure", kind, message, ..Case::default() }
}

fn case(step: &StepReport, cluster: &ClusterReport, mode: Mode) -> Case {
    let case = Case { unit: step.unit.to_string(), name: step.id.to_string(), ..Case::default() };
    let message = match (&step.outcome, mode) {
        (Some(Outcome::Failed(why) | Outcome::Stale(why)), _) => why.clone(),
        (Some(Outcome::Skipped), _) => return Case { verdict: "skipped", message: "not tried".to_owned(), ..case },
        (None, Mode::Plan | Mode::Report) if step.is_change() => match step.differences.len() {
            0 => step.action.verb(true),
            number => format!("{}: {} differ", step.action.verb(true), count(number, "field")),
        },
        (Some(Outcome::Done) | None, _) => return case,
    };
    let lines = step.differences.iter().flat_map(|difference| dated(difference, step, cluster).plain());
    Case {
        lines: lines.map(|(_, line)| line).collect(),
        unit: case.unit,
        name: case.name,
        ..failure(step.action.word().to_owned(), with_mark(message, cluster.mark(step.since)))
    }
}
