//! Parts of a report, taken out of it without a copy of the rest: there may be a thousand clusters, with all their objects.

use std::collections::BTreeMap;

use gatewright_engine::plan::deployer::settings::Proposal;

use super::action::StepAction;
use super::{ClusterReport, Report, StepReport, UnitReport, UnitState};

impl Report {
    /// Returns what it says apart from clusters, and what is found on one of them.
    pub(crate) fn alone(&self, cluster: &str, found: ClusterReport) -> Self {
        Self { clusters: [(cluster.to_owned(), found)].into(), ..self.head() }
    }

    /// Returns what it has to tell: an object that is as it should be is counted, and not repeated in each report.
    pub(crate) fn without_unchanged(&self) -> Self {
        let clusters = self.clusters.iter().map(|(name, found)| (name.clone(), found.without_unchanged()));
        Self { clusters: clusters.collect(), ..self.head() }
    }

    fn head(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            run: self.run.clone(),
            cause: self.cause.clone(),
            partial: self.partial,
            suspended: self.suspended.clone(),
            waves: self.waves.clone(),
            sync: self.sync.clone(),
            source: self.source.clone(),
            revision: self.revision.clone(),
            stale_source: self.stale_source.clone(),
            stale_since: self.stale_since,
            next_revision: self.next_revision.clone(),
            mode: self.mode,
            started: self.started,
            finished: self.finished,
            problems: self.problems.clone(),
            unclaimed: self.unclaimed.clone(),
            clusters: BTreeMap::new(),
        }
    }
}

impl Report {
    /// Returns the settings with which live deployers have made what is there.
    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        self.clusters.values().flat_map(|cluster| cluster.proposals.clone()).collect()
    }
}

impl ClusterReport {
    /// Adds the units of an earlier report of which this one says nothing, because its round was not about them.
    #[must_use]
    pub fn over(mut self, earlier: Option<&Self>) -> Self {
        let is_open = |unit: &&UnitReport| {
            unit.state != UnitState::Pruned && self.units.iter().all(|known| known.unit != unit.unit)
        };
        let others: Vec<UnitReport> =
            earlier.into_iter().flat_map(|earlier| &earlier.units).filter(is_open).cloned().collect();
        self.units.extend(others);
        self.units.sort_by(|a, b| a.unit.cmp(&b.unit));
        self
    }

    /// Says with which settings live deployers have made what is there.
    pub(crate) fn tell_settings(&mut self, proposals: Vec<Proposal>) {
        self.notes.extend(proposals.iter().map(ToString::to_string));
        self.proposals = proposals;
    }

    /// Returns it with a count of the objects that are as they should be, in place of them; what is kept for no report is
    /// left out.
    pub(crate) fn without_unchanged(&self) -> Self {
        let steps: Vec<StepReport> = self.steps.iter().filter(|step| step.has_something_to_tell()).cloned().collect();
        Self {
            state: self.state,
            error: self.error.clone(),
            since: self.since,
            next_probe: self.next_probe,
            overdue: self.overdue.clone(),
            unlisted: self.unlisted + self.steps.len() - steps.len(),
            steps,
            refusals: self.refusals.clone(),
            holds: self.holds.clone(),
            lifted: self.lifted.clone(),
            unaccepted: self.unaccepted.clone(),
            units: self.units.clone(),
            broken: self.broken.clone(),
            notes: self.notes.clone(),
            trend: self.trend.clone(),
            ..Self::default()
        }
    }
}

impl StepReport {
    fn has_something_to_tell(&self) -> bool {
        self.action != StepAction::Unchanged || !self.fields.is_empty() || self.note.is_some()
    }
}
