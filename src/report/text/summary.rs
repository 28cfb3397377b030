//! A report in short: a line for all clusters of which the same is to be said, and one that counts them.

use std::collections::BTreeSet;

use gatewright_engine::problem::counted;
use gatewright_engine::text::count;
use owo_colors::Style;

use super::{Writer, blast, comes_to, in_brackets};
use crate::report::brief::{Line, brief, totals};
use crate::report::{ClusterReport, ClusterState, Report, UnitState};

impl Writer {
    /// Writes a report in short.
    pub(super) fn in_short(&mut self, report: &Report) {
        self.title(report);
        self.state(report);
        if !report.problems.is_empty() {
            let all = counted(report.problems.iter().map(|it| &it.problem));
            self.painted(&format!("  {all}"), Style::new().red(), "");
        }
        let lines: Vec<Line<'_>> = report.clusters.iter().map(|(name, cluster)| line(name, cluster)).collect();
        for line in brief(&lines, self.look.verbose) {
            self.line(&format!("  {line}"));
        }
        let changes = blast(report).unwrap_or_else(|| "no changes".to_owned());
        let totals = totals(report.clusters.values().map(|cluster| cluster.state));
        self.painted(&format!("  {totals}; {changes}"), Style::new().bold(), "");
    }
}

/// Returns the line of a cluster: `held by guard max-delete; held: 24 objects to delete, 24 unchanged`.
fn line<'a>(name: &'a str, cluster: &ClusterReport) -> Line<'a> {
    let mut parts = Vec::new();
    parts.extend(cluster.overdue.clone());
    if let Some(error) = &cluster.error {
        let word = if cluster.state == ClusterState::Unreachable { "unreachable: " } else { "" };
        parts.push(format!("{word}{}{}", error.message, in_brackets(cluster.mark(cluster.since))));
    }
    parts.extend(cluster.unaccepted.as_ref().map(|unaccepted| unaccepted.message.clone()));
    let guards: BTreeSet<String> = cluster.holds.iter().map(|hold| hold.guard.to_string()).collect();
    parts.extend(guards.iter().map(|guard| format!("held by guard {guard}")));
    let sick = cluster.units.iter().filter(|unit| matches!(unit.state, UnitState::Unhealthy | UnitState::Failed));
    let sick = sick.count();
    parts.extend((sick > 0).then(|| format!("{} not healthy", count(sick, "unit"))));
    parts.extend(comes_to(cluster).map(|(word, numbers)| format!("{word}: {numbers}")));
    let is_held = !cluster.holds.is_empty() && cluster.state.rank() < ClusterState::Held.rank();
    let rank = if is_held { ClusterState::Held.rank() } else { cluster.state.rank() };
    Line { cluster: name, rank, words: parts.join("; ") }
}
