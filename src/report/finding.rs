//! The findings: everything in a report that wants attention, each with a name that stays the same for as long as it is
//! the same finding.
//!
//! A finding is what is wrong and where, and nothing that moves meanwhile: not the value of a field that differs, not the
//! words of a server, not the line of a document. What a round has put right is none.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::conflicts::Verdict;
use gatewright_engine::plan::guard::Guard;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::why;
use super::unaccepted::Unaccepted;
use super::withheld::{HoldReport, RefusalReport};
use super::{ClusterReport, ClusterState, ProblemReport, Report, StepReport, UnitReport, UnitState};
use crate::report::outcome::Outcome;

/// The subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The source could not be read.
    Source,
    /// Something is wrong in it.
    Problem,
    /// The cluster could not be asked, or nothing could be done there.
    Cluster,
    /// A guard waits.
    Hold,
    /// A unit is not healthy, or something of it failed.
    Unit,
    /// A step was not taken.
    Refusal,
    /// A step would change something, or failed to; or somebody else sets a field back again and again.
    Step,
}

/// Something that wants attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its subject.
    pub kind: Kind,
    /// Its name within a cluster, the same in every report.
    pub id: String,
    /// The unit, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ObjectId>,
    /// The object, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// The finding, in words.
    pub what: String,
    /// The time of the report in which it was seen first.
    pub since: Timestamp,
}

/// Findings of a report on a cluster, by name.
pub type Findings = BTreeMap<String, Finding>;

/// The end of the name of a finding about a unit of which something could not be done.
const FAILED: &str = " failed";

impl Finding {
    /// Tells whether something of a unit could not be done: over once it is done, whatever becomes of it.
    pub(super) fn is_of_failure(&self) -> bool {
        self.kind == Kind::Unit && self.id.ends_with(FAILED)
    }
}

impl Kind {
    /// Tells whether it is about the source, and not about a cluster.
    pub fn is_of_source(self) -> bool {
        matches!(self, Self::Source | Self::Problem)
    }
}

impl Finding {
    /// Tells whether it is a problem in a file.
    pub(super) fn is_in(&self, file: &str) -> bool {
        self.id.starts_with(&format!("problem {file} "))
    }

    /// Returns it in words, and since when it is known.
    pub fn words(&self) -> String {
        format!("{} (since {})", self.what, super::trend::time(self.since))
    }
}

/// Returns what a report has found on a cluster; what has no time yet has that of the report.
pub fn on(report: &Report, name: &str) -> Findings {
    let Some(cluster) = report.clusters.get(name) else { return Findings::new() };
    let mut all = Vec::new();
    if report.stale_source.is_some() {
        let what = format!("source {} could not be read", report.source);
        all.push((Kind::Source, STALE.to_owned(), None, None, what, report.stale_since));
    }
    for problem in report.problems.iter().filter(|problem| problem.is_on(name)) {
        let object = problem.problem.object.clone();
        all.push((Kind::Problem, problem.finding(), None, object, problem.problem.to_string(), problem.since));
    }
    all.extend(of_cluster(cluster));
    let finding = |(kind, id, unit, object, what, since): Found| {
        let since = since.unwrap_or(report.started);
        (id.clone(), Finding { kind, id, unit, object, what, since })
    };
    all.into_iter().map(finding).collect()
}

/// The name of a source that could not be read.
const STALE: &str = "source";

/// The name of Gateways that were not accepted.
const UNACCEPTED: &str = "unaccepted";

/// Kind, name, unit, object, words, and since when if that is known.
type Found = (Kind, String, Option<ObjectId>, Option<ObjectId>, String, Option<Timestamp>);

/// Tells whether something waits for its turn alone.
fn is_turn(guard: Guard) -> bool {
    matches!(guard, Guard::Rollout | Guard::RolloutDeletion | Guard::DependsOn)
}

fn of_cluster(cluster: &ClusterReport) -> Vec<Found> {
    let mut all = Vec::new();
    if let Some((id, what)) = cluster.trouble() {
        all.push((Kind::Cluster, id, None, None, what, cluster.since));
    }
    // To wait for one's turn is no news; why it does not come is.
    for hold in cluster.holds.iter().filter(|hold| !is_turn(hold.guard)) {
        let what = format!("held by guard {}: {}", hold.guard, hold.message);
        all.push((Kind::Hold, hold.finding(), hold.unit.clone(), None, what, hold.since));
    }
    // What is told again because nobody has looked was found by another report, and another cluster is not this one.
    if cluster.state == ClusterState::Suspended || cluster.is_elsewhere() {
        return all;
    }
    if let Some(Unaccepted { units, message, since, .. }) = &cluster.unaccepted {
        // It is over when the first of them is.
        all.push((Kind::Unit, UNACCEPTED.to_owned(), units.first().cloned(), None, message.clone(), *since));
    }
    for unit in cluster.units.iter().filter(|unit| unit.is_sick() && !cluster.is_unaccepted(&unit.unit)) {
        let message = unit.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        let state = if unit.state == UnitState::Failed { "has failed" } else { "is not healthy" };
        let what = format!("{} {state}{message}", unit.unit);
        all.push((Kind::Unit, unit.finding(), Some(unit.unit.clone()), None, what, unit.since));
    }
    for refusal in &cluster.refusals {
        let (unit, id) = (Some(refusal.unit.clone()), Some(refusal.id.clone()));
        let what = format!("refused {}: {}", refusal.id, why(refusal));
        all.push((Kind::Refusal, refusal.finding(), unit, id, what, refusal.since));
    }
    for step in cluster.steps.iter().filter(|step| !cluster.awaits_acceptance(step)) {
        for (path, id, what) in step.findings() {
            let since = step.later.get(&path).copied().or(step.since);
            all.push((Kind::Step, id, Some(step.unit.clone()), Some(step.id.clone()), what, since));
        }
    }
    all
}

impl ClusterReport {
    /// Returns why nothing is known of a cluster, or nothing was done there: a name, and words.
    fn trouble(&self) -> Option<(String, String)> {
        let is_trouble = self.error.is_some() || self.state == ClusterState::Unreachable;
        // Without an error it was lost on the way.
        let message = self.error.as_ref().map_or("it was lost on the way", |error| &error.message);
        let word = self.state.word();
        (is_trouble && self.state != ClusterState::Unknown)
            .then(|| (format!("cluster {word}"), format!("{word}: {message}")))
    }

    /// Tells whether another cluster answered in place of this one.
    pub fn is_elsewhere(&self) -> bool {
        self.holds.iter().any(|hold| hold.guard == Guard::ClusterIdentity)
    }

    /// Writes down since when its findings are known; what is not among them has no time.
    pub(super) fn date(&mut self, since: &BTreeMap<String, Timestamp>) {
        let known = |id: &str| since.get(id).copied();
        self.since = self.trouble().and_then(|(id, _)| known(&id));
        self.unaccepted.iter_mut().for_each(|unaccepted| unaccepted.since = known(UNACCEPTED));
        self.holds.iter_mut().for_each(|hold| hold.since = known(&hold.finding()));
        self.units.iter_mut().for_each(|unit| unit.since = known(&unit.finding()).filter(|_| unit.is_sick()));
        self.refusals.iter_mut().for_each(|refusal| refusal.since = known(&refusal.finding()));
        for step in &mut self.steps {
            let times = step.findings().into_iter().filter_map(|(path, id, _)| Some((path, known(&id)?)));
            let times: BTreeMap<String, Timestamp> = times.collect();
            step.since = times.values().min().copied();
            step.later = times.into_iter().filter(|(_, time)| Some(*time) != step.since).collect();
        }
    }
}

impl Report {
    /// Writes down since when what is wrong with the source is known.
    pub(super) fn date_source(&mut self, since: &BTreeMap<String, Timestamp>) {
        self.stale_since = self.stale_source.as_ref().and_then(|_| since.get(STALE).copied());
        self.problems.iter_mut().for_each(|problem| problem.since = since.get(&problem.finding()).copied());
    }
}

impl ProblemReport {
    /// A document may move within its file.
    fn finding(&self) -> String {
        let object = self.problem.object.as_ref().map(ObjectId::key).unwrap_or_default();
        format!("problem {} {object} {}", self.problem.place.file, self.problem.message)
    }
}

impl HoldReport {
    fn finding(&self) -> String {
        let unit = self.unit.as_ref().map(ObjectId::key).unwrap_or_default();
        format!("hold {} {unit}", self.guard)
    }
}

impl UnitReport {
    /// Tells whether it failed or is not healthy.
    pub(crate) fn is_sick(&self) -> bool {
        matches!(self.state, UnitState::Unhealthy | UnitState::Failed)
    }

    fn finding(&self) -> String {
        let word = if self.state == UnitState::Failed { FAILED } else { " unhealthy" };
        format!("unit {}{word}", self.unit.key())
    }
}

impl RefusalReport {
    fn finding(&self) -> String {
        let reason = serde_json::to_value(&self.reason).unwrap_or_default();
        let word = reason.get("reason").and_then(Value::as_str).unwrap_or_default();
        format!("refusal {} {word}", self.id.key())
    }
}

impl StepReport {
    /// Returns a path, a name and words for each path that differs; for an object that differs as a whole the path is
    /// empty.
    fn findings(&self) -> Vec<(String, String, String)> {
        let fights = self.fields.iter().filter(|field| field.verdict == Verdict::Fighting);
        let mut all: Vec<_> = fights.map(|field| self.finding("fighting", &field.path)).collect();
        if !self.is_change() || self.outcome == Some(Outcome::Done) {
            return all;
        }
        if self.differences.is_empty() {
            all.push(self.finding(self.action.word(), ""));
        }
        all.extend(self.differences.iter().map(|difference| self.finding(self.action.word(), &difference.path)));
        all
    }

    fn finding(&self, word: &str, path: &str) -> (String, String, String) {
        let name = format!("step {word} {} {path}", self.id.key());
        let what = format!("{word} {}", self.id);
        let what = if path.is_empty() { what } else { format!("{what}: {path}") };
        (path.to_owned(), name, what)
    }
}
