//! The forms in which findings are printed: for people, for programs, and for what shows them beside a change.

use gatewright_engine::problem::{Problem, Scope};
use serde_json::{Value, json};

use super::text::Page;
use super::{github, sarif};
use crate::cli::format::Data;
use crate::cli::{complain_in_color, emit, print, stream};
use crate::report::{ProblemReport, junit};

/// The version of the JSON form.
const SCHEMA: &str = "gatewright.dev/check/v1alpha1";

/// The form in which findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Form {
    /// For people: findings on standard error, each with the line of its file, and a summary on standard output.
    Text,
    /// The same in one line each, for editors and `grep`.
    Short,
    /// For programs: one JSON document. docs/schema has its schema.
    Json,
    /// The same as a YAML document.
    Yaml,
    /// For code scanning: SARIF 2.1.0.
    Sarif,
    /// For whatever shows the results of tests: an error is a failure.
    Junit,
    /// For workflows of GitHub: annotations at the lines of a change.
    Github,
}

impl Form {
    /// Prints findings.
    pub(super) fn print(self, findings: &[ProblemReport], summary: &str, page: &Page<'_>) {
        match self {
            Self::Text => {
                complain_in_color(&page.full(findings));
                print(summary);
            }
            Self::Short => {
                complain_in_color(&page.short(findings));
                print(summary);
            }
            Self::Json => Data::Json.print(&document(findings)),
            Self::Yaml => Data::Yaml.print(&document(findings)),
            Self::Sarif => Data::Json.print(&sarif::log(findings)),
            Self::Junit => stream(|out| junit::write_findings(findings, out)),
            Self::Github => emit(&github::commands(findings)),
        }
    }
}

/// Returns findings as one JSON document.
fn document(findings: &[ProblemReport]) -> Value {
    let warnings = findings.iter().filter(|finding| finding.problem.scope == Scope::Warning).count();
    json!({"schema": SCHEMA, "errors": findings.len() - warnings, "warnings": warnings, "findings": findings})
}

/// Returns what a finding says apart from its place and its rule.
pub(in crate::cli) fn message(finding: &ProblemReport) -> String {
    let alone = Problem { rule: None, ..finding.problem.clone() };
    let text = ProblemReport { problem: alone, ..finding.clone() }.to_string();
    let place = format!("{}: ", finding.problem.place);
    text.strip_prefix(&place).unwrap_or(&text).to_owned()
}

/// Returns the first line and column of a finding; 1 where only the file is known.
pub(in crate::cli) fn position(finding: &ProblemReport) -> (u32, u32) {
    let place = &finding.problem.place;
    (place.line.max(1), place.column.max(1))
}
