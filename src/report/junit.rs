//! The `JUnit` view: a suite for each sync on each cluster, a case for each object, for whatever shows tests.
//!
//! What a plan would change is a failure, because the cluster is not as the source says; in a round only what failed is.

use std::fmt::Write as _;
use std::io;

use gatewright_engine::text::count;

use super::shown::dated;
use super::text::why;
use super::{ClusterReport, ClusterState, Mode, Report, StepReport};
use crate::basics::sanitize;
use crate::report::outcome::Outcome;

/// The result of one case.
enum Verdict {
    Passed,
    /// The text is sanitized already.
    Failed {
        kind: String,
        message: String,
        text: String,
    },
    Error {
        kind: &'static str,
        message: String,
    },
    Skipped(String),
}

struct Case {
    unit: String,
    name: String,
    verdict: Verdict,
}

/// Writes reports as one XML document.
pub fn write(reports: &[Report]) -> String {
    let mut out = Vec::new();
    // Memory takes everything.
    drop(write_to(reports, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes reports as one XML document, one suite after the other.
///
/// # Errors
/// Those of what it is written to.
pub fn write_to(reports: &[Report], out: &mut impl io::Write) -> io::Result<()> {
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gatewright\">\n")?;
    for report in reports {
        for (name, cluster) in &report.clusters {
            let mut text = String::new();
            suite(&mut text, report, name, &cases(report, name, cluster));
            out.write_all(text.as_bytes())?;
        }
    }
    out.write_all(b"</testsuites>\n")
}

fn suite(out: &mut String, report: &Report, cluster: &str, cases: &[Case]) {
    let number = |is_it: fn(&Verdict) -> bool| cases.iter().filter(|case| is_it(&case.verdict)).count();
    let seconds = report.finished.duration_since(report.started).as_secs_f64();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\" \
         timestamp=\"{}\">",
        xml(&format!("{} on {cluster}", report.sync)),
        cases.len(),
        number(|verdict| matches!(verdict, Verdict::Failed { .. })),
        number(|verdict| matches!(verdict, Verdict::Error { .. })),
        number(|verdict| matches!(verdict, Verdict::Skipped(_))),
        report.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
    );
    properties(out, &report.clusters[cluster]);
    for Case { unit, name, verdict } in cases {
        let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", xml(unit), xml(name));
        let _ = match verdict {
            Verdict::Passed => writeln!(out, "/>"),
            Verdict::Skipped(why) => writeln!(out, "><skipped message=\"{}\"/></testcase>", xml(why)),
            Verdict::Error { kind, message } => {
                writeln!(out, "><error type=\"{kind}\" message=\"{}\"/></testcase>", xml(message))
            }
            Verdict::Failed { kind, message, text } => {
                let (kind, message) = (xml(kind), xml(message));
                writeln!(out, "><failure type=\"{kind}\" message=\"{message}\">{}</failure></testcase>", escaped(text))
            }
        };
    }
    gone(out, &report.clusters[cluster]);
    *out += "  </testsuite>\n";
}

/// Writes how many findings have come and gone.
fn properties(out: &mut String, cluster: &ClusterReport) {
    let Some(trend) = &cluster.trend else { return };
    *out += "    <properties>\n";
    let numbers = [("new", trend.new), ("still", trend.still), ("resolved", trend.resolved.len())];
    for (name, number) in numbers.into_iter().chain([("unseen", trend.unseen.len())]) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "      <property name=\"{name}\" value=\"{number}\"/>");
    }
    if let Some(against) = trend.against {
        let _ = writeln!(out, "      <property name=\"against\" value=\"{against}\"/>");
    }
    *out += "    </properties>\n";
}

/// Writes which findings are gone, and which nobody knows any more.
fn gone(out: &mut String, cluster: &ClusterReport) {
    let Some(trend) = &cluster.trend else { return };
    let resolved = trend.resolved.iter().map(|finding| ("resolved", finding));
    let lines = resolved.chain(trend.unseen.iter().map(|finding| ("not looked at", finding)));
    let lines: Vec<String> = lines.map(|(word, finding)| xml(&format!("{word}: {}", finding.words()))).collect();
    if !lines.is_empty() {
        let _ = writeln!(out, "    <system-out>{}</system-out>", lines.join("\n"));
    }
}

/// The cases of a cluster: what is wrong with it as a whole first.
fn cases(report: &Report, name: &str, cluster: &ClusterReport) -> Vec<Case> {
    let whole = |verdict| Case { unit: "cluster".to_owned(), name: name.to_owned(), verdict };
    let mut cases = Vec::new();
    if let Some(reason) = &report.stale_source {
        let message = format!("it could not be read, and this is its last good revision: {reason}");
        let verdict = Verdict::Error { kind: "stale", message: marked(message, report.mark(report.stale_since)) };
        cases.push(Case { unit: "source".to_owned(), name: report.source.clone(), verdict });
    }
    if let Some(error) = &cluster.error {
        let message = marked(error.message.clone(), cluster.mark(cluster.since));
        cases.push(whole(Verdict::Error { kind: cluster.state.word(), message }));
    }
    if cluster.state == ClusterState::Suspended {
        let why = report.suspended.as_ref().map(crate::state::suspension::Suspension::words);
        cases.push(whole(Verdict::Skipped(why.unwrap_or_else(|| "suspended".to_owned()))));
    }
    for hold in &cluster.holds {
        let unit = hold.unit.as_ref().map_or_else(|| "cluster".to_owned(), ToString::to_string);
        let message = marked(hold.message.clone(), cluster.mark(hold.since));
        let kind = format!("guard {}", hold.guard);
        let text = sanitize::line(&hold.hint).into_owned();
        let verdict = Verdict::Failed { kind: kind.clone(), message, text };
        cases.push(Case { unit, name: kind, verdict });
    }
    for problem in report.problems.iter().filter(|problem| problem.is_on(name)) {
        let verdict =
            Verdict::Error { kind: "problem", message: marked(problem.to_string(), report.mark(problem.since)) };
        cases.push(Case { unit: "source".to_owned(), name: problem.problem.place.to_string(), verdict });
    }
    cases.extend(cluster.steps.iter().map(|step| Case {
        unit: step.unit.to_string(),
        name: step.id.to_string(),
        verdict: verdict(step, cluster, report.mode),
    }));
    cases.extend(cluster.refusals.iter().map(|refusal| {
        let message = marked(why(refusal), cluster.mark(refusal.since));
        let verdict = Verdict::Failed { kind: "refused".to_owned(), message, text: String::new() };
        Case { unit: refusal.unit.to_string(), name: refusal.id.to_string(), verdict }
    }));
    cases
}

fn verdict(step: &StepReport, cluster: &ClusterReport, mode: Mode) -> Verdict {
    let failed = |message: String| Verdict::Failed {
        kind: step.action.word().to_owned(),
        message: marked(message, cluster.mark(step.since)),
        text: differences(step, cluster),
    };
    match (&step.outcome, mode) {
        (Some(Outcome::Failed(why) | Outcome::Stale(why)), _) => failed(why.clone()),
        (Some(Outcome::Skipped), _) => Verdict::Skipped("not tried".to_owned()),
        (None, Mode::Plan | Mode::Report) if step.is_change() => {
            let verb = step.action.verb(true);
            failed(match step.differences.len() {
                0 => verb,
                number => format!("{verb}: {} differ", count(number, "field")),
            })
        }
        (Some(Outcome::Done) | None, _) => Verdict::Passed,
    }
}

/// A message, and since when it is known.
fn marked(message: String, mark: Option<String>) -> String {
    match mark {
        Some(mark) => format!("{message} ({mark})"),
        None => message,
    }
}

fn differences(step: &StepReport, cluster: &ClusterReport) -> String {
    let mut out = String::new();
    for (_, line) in step.differences.iter().flat_map(|difference| dated(difference, step, cluster).plain()) {
        out += &sanitize::line(&line);
        out.push('\n');
    }
    out
}

/// Returns a text of others for an attribute; what XML cannot hold at all is not left by [`sanitized`].
fn xml(text: &str) -> String {
    escaped(&sanitize::line(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
