//! The warnings of a report, to be known before anything else: what is missing from it, and what is wrong.

use jiff::Timestamp;
use serde::Serialize;

use super::text::in_brackets;
use super::withheld::MOST_HELD;
use super::{ClusterReport, Report};

/// Returns all of a report, each in a line.
pub fn lines(report: &Report) -> Vec<String> {
    let line = |warning: Warning| format!("{} {}: {}", warning.word, warning.place, warning.message);
    Warning::all(report).into_iter().map(line).collect()
}

/// One thing to be known first.
#[derive(Debug, Serialize)]
pub(super) struct Warning {
    /// The kind of warning: `unreachable`, `held`, `suspended`, `stale`, `problem` and so on.
    pub(super) word: &'static str,
    /// The place: a sync, a source, or a sync on a cluster.
    pub(super) place: String,
    /// The problem, and since when if that is known.
    pub(super) message: String,
    /// Advice on what to do, if anybody knows.
    pub(super) hint: Option<String>,
    /// The held objects, where they stand nowhere else.
    pub(super) held: Vec<String>,
}

impl Warning {
    /// Returns all of a report, those of the whole first.
    pub(super) fn all(report: &Report) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |word, place, message, hint| all.push(Self { word, place, message, hint, held: Vec::new() });
        let dated = |message: String, since: Option<Timestamp>| with_mark(message, report.mark(since));
        if let Some(suspension) = &report.suspended {
            let hint = format!("`gatewright resume {}` ends that", report.sync);
            add("suspended", format!("sync {}", report.sync), suspension.words(), Some(hint));
        }
        if let Some(reason) = &report.stale_source {
            let message = format!("it could not be read, and this is its last good revision: {reason}");
            add("stale", format!("source {}", report.source), dated(message, report.stale_since), None);
        }
        for problem in &report.problems {
            // It says what to do itself.
            add("problem", format!("sync {}", report.sync), dated(problem.to_string(), problem.since), None);
        }
        let mut of_clusters: Vec<Self> = Vec::new();
        for (name, cluster) in &report.clusters {
            for warning in Self::of(cluster, &format!("{} on {name}", report.sync)) {
                // What is the same on several clusters is said once, with all of them.
                match of_clusters.iter_mut().find(|known| known.is_like(&warning)) {
                    Some(known) => known.place.extend([", ", name.as_str()]),
                    None => of_clusters.push(warning),
                }
            }
        }
        all.extend(of_clusters);
        all
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.word, &self.message, &self.hint, &self.held) == (other.word, &other.message, &other.hint, &other.held)
    }

    fn of(cluster: &ClusterReport, place: &str) -> Vec<Self> {
        let mut all = Vec::new();
        let new = |word, message, hint| Self { word, place: place.to_owned(), message, hint, held: Vec::new() };
        let mut add = |word, message, hint| all.push(new(word, message, hint));
        if let Some(error) = &cluster.error {
            let message = with_mark(error.message.clone(), cluster.mark(cluster.since));
            add(cluster.state.word(), message, error.hint.clone());
        }
        if let Some(overdue) = &cluster.overdue {
            add(
                "overdue",
                overdue.clone(),
                Some("is the daemon running? `gatewright status` and its log say more".to_owned()),
            );
        }
        for note in &cluster.notes {
            add("note", note.clone(), None);
        }
        if let Some(unaccepted) = &cluster.unaccepted {
            let message = with_mark(unaccepted.message.clone(), cluster.mark(unaccepted.since));
            add("unaccepted", message, Some(unaccepted.hint.clone()));
        }
        for hold in &cluster.holds {
            let unit = hold.unit.as_ref().map(|unit| format!("{unit}: ")).unwrap_or_default();
            let message = format!("guard {}: {unit}{}", hold.guard, hold.message);
            let warning = new("held", with_mark(message, cluster.mark(hold.since)), Some(hold.hint.clone()));
            all.push(Self { held: cluster.withheld(hold, MOST_HELD), ..warning });
        }
        all
    }
}

/// Adds to a message since when it is known.
pub(super) fn with_mark(message: String, mark: Option<String>) -> String {
    message + &in_brackets(mark)
}
