//! Findings in the Static Analysis Results Interchange Format (SARIF 2.1.0, OASIS), which code scanning reads.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gatewright_engine::problem::Scope;
use gatewright_engine::rules::{self, Rule};
use serde_json::{Value, json};

use super::form::{message, position};
use crate::report::ProblemReport;

/// The id of what no rule has an id for: what an API server would refuse, and what cannot be rendered.
const UNNAMED: &str = "invalid";

/// Returns a log with one run.
pub(super) fn log(findings: &[ProblemReport]) -> Value {
    let used: BTreeSet<rules::Id> = findings.iter().filter_map(|finding| finding.problem.rule).collect();
    let rules: Vec<Value> = used.into_iter().filter_map(rules::find).map(described).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "gatewright", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn described(rule: &Rule) -> Value {
    let level = if rule.severity == rules::Severity::Error { "error" } else { "warning" };
    json!({
        "id": rule.id, "name": rule.name, "shortDescription": {"text": rule.summary},
        "defaultConfiguration": {"level": level},
    })
}

fn result(finding: &ProblemReport) -> Value {
    let level = if finding.problem.scope == Scope::Warning { "warning" } else { "error" };
    let rule = finding.problem.rule.map_or_else(|| UNNAMED.to_owned(), |rule| rule.to_string());
    let (line, column) = position(finding);
    json!({
        "ruleId": rule, "level": level, "message": {"text": message(finding)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&finding.problem.place.file)},
            "region": {"startLine": line, "startColumn": column},
        }}],
    })
}

/// Writes a path as a reference (RFC 3986, section 4.2). A colon in the first part of it would make a scheme of that.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => write!(uri, "%{byte:02X}").expect("a text takes everything"),
        }
    }
    uri
}
