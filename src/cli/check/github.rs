//! Findings as commands of a GitHub workflow, which shows them at the lines of a change.

use gatewright_engine::problem::Scope;

use super::form::{message, position};
use crate::basics::sanitize;
use crate::report::ProblemReport;

/// Returns a command for each finding, each on a line of its own.
pub(super) fn commands(findings: &[ProblemReport]) -> String {
    findings.iter().map(command).collect()
}

fn command(finding: &ProblemReport) -> String {
    let word = if finding.problem.scope == Scope::Warning { "warning" } else { "error" };
    let (line, column) = position(finding);
    let rule = finding.problem.rule.map(|rule| format!(",title={rule}")).unwrap_or_default();
    let file = property(&finding.problem.place.file);
    format!("::{word} file={file},line={line},col={column}{rule}::{}\n", data(&message(finding)))
}

/// Writes a text that ends with the line.
fn data(text: &str) -> String {
    sanitize::line(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Writes a text that ends with a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
