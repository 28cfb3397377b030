//! Findings as the editor shows them: a range, a severity, the rule and its page, and what was probably meant.

use std::collections::BTreeMap;
use std::str::FromStr;

use gatewright_engine::problem::{Problem, Scope};
use tower_lsp_server::ls_types::{
    CodeDescription, Diagnostic, DiagnosticSeverity, NumberOrString, Position, Range, Uri,
};

use super::text::{Encoding, byte_at, end_of};
use super::workspace::{Job, Subject};
use crate::cli::check::form::message;
use crate::report::ProblemReport;

/// The name by which editors tell our diagnostics from those of others.
pub(super) const SOURCE: &str = "gatewright";

/// The folder with a page for each rule.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules");

/// Diagnostics, by file.
pub(super) type Found = BTreeMap<String, Vec<Diagnostic>>;

/// Returns what is found: of one file, or of all that have some.
pub(super) fn run(job: &Job, encoding: Encoding) -> Found {
    let findings = job.setup.findings(&job.tree);
    let mut found = Found::new();
    if let Some(subject) = &job.of {
        found.insert(subject.key.clone(), Vec::new());
    }
    let lines = job.of.as_ref().and_then(Subject::lines);
    for finding in &findings {
        let file = &*finding.problem.place.file;
        let key = match &job.of {
            Some(subject) if subject.name != file => continue,
            Some(subject) => subject.key.as_str(),
            None => file,
        };
        let line = finding.problem.place.line.saturating_sub(1);
        if lines.as_ref().is_some_and(|lines| !lines.iter().any(|lines| lines.contains(&line))) {
            continue;
        }
        let text = job.tree.text(file).unwrap_or_default();
        found.entry(key.to_owned()).or_default().push(diagnostic(finding, text, encoding));
    }
    found
}

/// Returns problems of a config file.
pub(super) fn of_config(problems: Vec<Problem>, text: &str, encoding: Encoding) -> Vec<Diagnostic> {
    let finding = |problem| ProblemReport { problem, clusters: Vec::new(), since: None };
    problems.into_iter().map(|problem| diagnostic(&finding(problem), text, encoding)).collect()
}

fn diagnostic(finding: &ProblemReport, text: &str, encoding: Encoding) -> Diagnostic {
    let Problem { place, rule, scope, .. } = &finding.problem;
    let range = match place.line {
        0 => Range::new(Position::new(0, 0), Position::new(0, 0)),
        line => {
            let start = byte_at(text, line, place.column);
            encoding.range(text, start..end_of(text, start))
        }
    };
    let page = rule.and_then(|rule| Uri::from_str(&format!("{PAGES}/{rule}.md")).ok());
    let is_warning = *scope == Scope::Warning;
    Diagnostic {
        range,
        severity: Some(if is_warning { DiagnosticSeverity::WARNING } else { DiagnosticSeverity::ERROR }),
        code: rule.map(|rule| NumberOrString::String(rule.to_string())),
        code_description: page.map(|href| CodeDescription { href }),
        source: Some(SOURCE.to_owned()),
        message: message(finding),
        ..Diagnostic::default()
    }
}

#[cfg(test)]
mod tests;
