//! What is to be known of a report before anything else: what is missing from the picture, and what is wrong.

use super::{ClusterReport, Report};

/// One thing to be known first.
#[derive(Debug)]
pub(super) struct Warning {
    /// What it is: `unreachable`, `held`, `suspended`, `stale`, `problem` and so on.
    pub(super) word: &'static str,
    /// Where: a sync, a source, or a sync on a cluster.
    pub(super) place: String,
    /// What is the matter.
    pub(super) message: String,
    /// What to do, if anybody knows.
    pub(super) hint: Option<String>,
}

impl Warning {
    /// Returns all of a report, those of the whole first.
    pub(super) fn all(report: &Report) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |word, place, message, hint| all.push(Self { word, place, message, hint });
        if let Some(suspension) = &report.suspended {
            let hint = format!("`gatewright resume {}` ends that", report.sync);
            add("suspended", format!("sync {}", report.sync), suspension.words(), Some(hint));
        }
        if let Some(reason) = &report.stale_source {
            let message = format!("it could not be read, and this is its last good revision: {reason}");
            add("stale", format!("source {}", report.source), message, None);
        }
        for problem in &report.problems {
            // It says what to do itself.
            add("problem", format!("sync {}", report.sync), problem.to_string(), None);
        }
        for (name, cluster) in &report.clusters {
            all.extend(Self::of(cluster, &format!("{} on {name}", report.sync)));
        }
        all
    }

    fn of(cluster: &ClusterReport, place: &str) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |word, message, hint| all.push(Self { word, place: place.to_owned(), message, hint });
        if let Some(error) = &cluster.error {
            add(cluster.state.word(), error.message.clone(), error.hint.clone());
        }
        for remark in &cluster.remarks {
            add("note", remark.clone(), None);
        }
        for hold in &cluster.holds {
            let unit = hold.unit.as_ref().map(|unit| format!("{unit}: ")).unwrap_or_default();
            add("held", format!("guard {}: {unit}{}", hold.guard, hold.message), Some(hold.hint.clone()));
        }
        all
    }
}
