//! The report of what a round saw, did and refused: one value, built while working, with views in text and JSON.
//!
//! The JSON view is this value; its form is versioned by [`SCHEMA`].

pub mod action;
pub mod blast;
pub(crate) mod brief;
pub mod diff;
mod exit_code;
pub mod finding;
pub(crate) mod folded;
pub mod form;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod merged;
pub mod outcome;
pub mod outline;
mod parts;
pub mod shown;
pub(crate) mod status;
pub mod text;
pub mod trend;
pub mod unaccepted;
pub mod unified;
pub mod warnings;
pub mod withheld;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use gatewright_engine::diff::{Class, Difference};
use gatewright_engine::health::pods::Count;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::Plan;
use gatewright_engine::plan::bodies::Bodies;
use gatewright_engine::plan::conflicts::FieldVerdict;
use gatewright_engine::plan::deployer::settings::Proposal;
use gatewright_engine::plan::drift::history::Baseline;
use gatewright_engine::plan::guard::Hold;
use gatewright_engine::plan::saved::SavedStep;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::text::listed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::report::outcome::Outcome;
use crate::state::suspension::Suspension;
use action::StepAction;
use trend::Trend;
use unaccepted::Unaccepted;
use withheld::{HoldReport, RefusalReport};

/// The version of the JSON view.
pub const SCHEMA: &str = "gatewright.dev/report/v1alpha1";

/// The revision of a round that wants nothing: a sync is destroyed.
pub(crate) const NOTHING: &str = "nothing";

/// One round of one sync over its clusters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct Report {
    /// The version of this form.
    pub schema: String,
    /// The name of this round, by which it can be undone; absent if nothing was to be changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The reason why a person asked for it: `undo of RUN`, `rollback to DIGEST`, or why a suspended sync had a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// It was about a part of what the sync wants: some units, or what another round had done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The reason why there was no round: somebody has suspended the sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// The clusters on which a plan replaces pods, in the order in which it would reach them; empty if that is at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Vec<String>>,
    /// The sync.
    pub sync: String,
    /// The source.
    pub source: String,
    /// The revision that was in force.
    pub revision: String,
    /// The reason why the source could not be asked this time, if so: the revision is the last good one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_source: Option<String>,
    /// Since which report it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Timestamp>,
    /// The newer revision that waits until the rollout of this one is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_revision: Option<String>,
    /// Whether anything was to be changed.
    pub mode: Mode,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// The problems of the source.
    pub problems: Vec<ProblemReport>,
    /// Documents that no pack claims.
    pub unclaimed: Vec<Unclaimed>,
    /// The reports of what happened, by cluster.
    pub clusters: BTreeMap<String, ClusterReport>,
}

/// Whether anything was to be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: this is what would happen.
    #[default]
    Plan,
    /// Yes.
    Apply,
    /// Nothing, and not by this installation: this is how things stand.
    #[serde(rename = "compare")]
    Report,
}

/// Something that is wrong with the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemReport {
    /// The problem.
    #[serde(flatten)]
    pub problem: Problem,
    /// The clusters on which it is, because of the overlays there; empty if it is on all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Since which report it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A document that no pack claims.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unclaimed {
    /// The object.
    pub id: ObjectId,
    /// Its place in the source.
    pub place: Place,
}

/// One round on one cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The state in which the round ended.
    pub state: ClusterState,
    /// The failure that stopped it, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Since which report it cannot be asked, or fails as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When a cluster that does not answer is asked again; until then its rounds send nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_probe: Option<Timestamp>,
    /// The reason why this report is older than it should be; only the last known state of a fleet says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue: Option<String>,
    /// The steps of the plan.
    pub steps: Vec<StepReport>,
    /// The number of objects that are as they should be and not among the steps: the history does not repeat them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unlisted: usize,
    /// The refusals.
    pub refusals: Vec<RefusalReport>,
    /// Guards that stopped everything, or one unit.
    pub holds: Vec<HoldReport>,
    /// Holds that would have applied, and were approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<Hold>,
    /// The Gateways that were to be adopted and that no control plane has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaccepted: Option<Unaccepted>,
    /// The state of every unit.
    pub units: Vec<UnitReport>,
    /// Specs that have a mistake: what belongs to them was not looked at.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<ObjectId>,
    /// Notes on how this was found out, such as what the credentials did not allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "remarks")]
    pub notes: Vec<String>,
    /// Both sides of every object, as they looked, for the next drift report.
    #[serde(skip)]
    pub baseline: Baseline,
    /// The findings that have come and gone since the report before; absent where nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
    /// The part of a plan that may be saved, to be carried out later.
    #[serde(skip)]
    pub saved: Saved,
    /// The objects that a plan changes, as they are and as they would be, where somebody has asked for them.
    #[serde(skip)]
    pub bodies: Vec<Bodies>,
    /// The settings of packs with which live deployers have made what is there; the notes say the same.
    #[serde(skip)]
    pub proposals: Vec<Proposal>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde asks")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

/// The part of a plan on one cluster that may be saved.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// The identity of the cluster.
    pub identity: String,
    /// The steps.
    pub steps: Vec<SavedStep>,
}

/// The state in which a round on a cluster ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// As planned.
    Done,
    /// Planned, and nothing was to be changed.
    #[default]
    Planned,
    /// Compared, and nothing was planned.
    Compared,
    /// A guard stopped it.
    Held,
    /// Something failed.
    Failed,
    /// Nobody answered.
    Unreachable,
    /// It was told to stop before it was through.
    Stopped,
    /// There was none, because the sync is suspended.
    Suspended,
    /// There was none yet; only the last known state of a fleet says so.
    Unknown,
}

/// The failure that stopped a round on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The failure, and its reason.
    pub message: String,
    /// Advice on what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One step and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReport {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// The place of its spec in the source, if it has one there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The action, or in a drift report the standing.
    pub action: StepAction,
    /// The reason why it is missing or extra, in a drift report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The differences.
    pub differences: Vec<Difference>,
    /// The decisions about fields that others write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldVerdict>,
    /// A note on what else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its outcome; absent in a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Whether what stood there was deleted, although the step was not done in the end. It may have been put back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Since which report it differs or fails; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The paths of which a later report was the first to say that they differ, and when that was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub later: BTreeMap<String, Timestamp>,
}

/// The state of one unit on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    /// The spec.
    pub unit: ObjectId,
    /// Its state.
    pub state: UnitState,
    /// A message on what is wrong or awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its source lacks it or cannot be read, and it stays as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrendered: bool,
    /// The addresses at which it can be reached.
    pub addresses: Vec<String>,
    /// On which ports.
    pub ports: Vec<u16>,
    /// The images that its pods are to run, sorted; none of a unit that was not rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Its pods; absent where it has none, or they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Count>,
    /// A message on what is not healthy of it, or why nobody knows, where the round did not wait for its health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unawaited: Option<String>,
    /// Since which report it is unhealthy or failed; absent if it is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The state of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitState {
    /// As it should be, and it was so before.
    Current,
    /// It was changed, and is as it should be.
    Changed,
    /// It would be changed.
    Pending,
    /// It is not as the source says, and nobody here is to change that.
    Different,
    /// It is applied, and not healthy.
    Unhealthy,
    /// Something was refused, so it stays as it is.
    Held,
    /// Something failed.
    Failed,
    /// It was deleted.
    Pruned,
}

impl From<&(ObjectId, Place)> for Unclaimed {
    fn from((id, place): &(ObjectId, Place)) -> Self {
        Self { id: id.clone(), place: place.clone() }
    }
}

impl ProblemReport {
    /// Tells whether a cluster has it.
    pub fn is_on(&self, cluster: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|name| name == cluster)
    }
}

impl fmt::Display for ProblemReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clusters.as_slice() {
            [] => self.problem.fmt(f),
            clusters => write!(f, "{}; on {}", self.problem, named(clusters)),
        }
    }
}

/// Names clusters: `cluster a`, `clusters a, b`, and no more than a line has room for.
pub fn named(clusters: &[String]) -> String {
    const MOST: usize = 8;
    let word = if clusters.len() == 1 { "cluster" } else { "clusters" };
    format!("{word} {}", listed(clusters, MOST))
}

/// Returns what reports say of each cluster, with its name.
fn clusters_of(reports: &[Report]) -> impl Iterator<Item = (&Report, &str, &ClusterReport)> {
    reports.iter().flat_map(|report| report.clusters.iter().map(move |(name, it)| (report, name.as_str(), it)))
}

impl Report {
    /// Begins a report that says nothing yet: of which sync and source, in which mode, and when.
    pub fn about((sync, source): (&str, &str), mode: Mode, now: Timestamp) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            sync: sync.to_owned(),
            source: source.to_owned(),
            revision: "no revision".to_owned(),
            mode,
            started: now,
            finished: now,
            ..Self::default()
        }
    }

    /// Reports that there is no round on a cluster, because the sync is suspended; `last` says how things stand there.
    pub fn suspended(last: Option<Self>, sync: (&str, &str), cluster: &str, why: Suspension, now: Timestamp) -> Self {
        let mode = last.as_ref().map_or(Mode::Apply, |last| last.mode);
        let empty = Self::about(sync, mode, now);
        let revision = last.as_ref().map_or_else(|| empty.revision.clone(), |last| last.revision.clone());
        let units = last.and_then(|mut last| last.clusters.remove(cluster)).map(|report| report.units);
        let state = ClusterState::Suspended;
        let report = ClusterReport { state, units: units.unwrap_or_default(), ..ClusterReport::default() };
        let clusters = BTreeMap::from([(cluster.to_owned(), report)]);
        Self { suspended: Some(why), revision, clusters, ..empty }
    }

    /// Tells whether its round wanted what the source says, and not what an earlier round did or rendered.
    pub fn is_of_source(&self) -> bool {
        let others = ["undo of ", "rollback to "];
        !self.cause.as_deref().is_some_and(|cause| others.iter().any(|other| cause.starts_with(other)))
    }

    /// Counts the steps that changed something, or in a plan would change something, by action.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for step in self.clusters.values().flat_map(|cluster| cluster.changes_in(self.mode)) {
            *counts.entry(step.done_word()).or_default() += 1;
        }
        counts
    }

    /// Tells whether anything was changed.
    pub fn has_changed(&self) -> bool {
        self.mode == Mode::Apply && !self.counts().is_empty()
    }

    /// Tells whether a plan would change something; where a guard holds it, it would not.
    pub fn has_changes(&self) -> bool {
        let clusters = self.clusters.values().filter(|cluster| cluster.state != ClusterState::Held);
        clusters.flat_map(|cluster| &cluster.steps).any(StepReport::is_change)
    }
}

impl StepReport {
    /// Begins the report of a step.
    pub fn new(unit: ObjectId, id: ObjectId, action: StepAction, note: Option<String>) -> Self {
        let (place, class, outcome, fields, differences) = (None, None, None, Vec::new(), Vec::new());
        let (deleted, since, later) = (false, None, BTreeMap::new());
        Self { unit, id, place, action, class, differences, fields, note, outcome, deleted, since, later }
    }

    /// Tells whether there is anything to be told: the object does not stay as it is, or others write to its fields.
    pub fn is_news(&self) -> bool {
        self.action != StepAction::Unchanged || !self.fields.is_empty()
    }

    /// Tells whether the step is about to change the cluster, or has.
    pub fn is_change(&self) -> bool {
        self.action.is_change()
    }
}

impl ClusterReport {
    /// Begins a report with what was planned.
    pub fn of(plan: &Plan) -> Self {
        let step = |step: &gatewright_engine::plan::Step| StepReport {
            differences: step.differences.clone(),
            fields: step.fields.clone(),
            ..StepReport::new(step.unit.clone(), step.id.clone(), (&step.action).into(), step.note.clone())
        };
        Self {
            state: if plan.is_stopped() { ClusterState::Held } else { ClusterState::Planned },
            steps: plan.steps.iter().map(step).collect(),
            refusals: plan.refusals.iter().cloned().map(RefusalReport::from).collect(),
            holds: plan.holds.iter().cloned().map(HoldReport::from).collect(),
            lifted: plan.lifted.clone(),
            ..Self::default()
        }
    }

    /// Reports a cluster on which nothing could be planned.
    pub fn failed(state: ClusterState, message: String, hint: Option<String>) -> Self {
        Self { error: Some(Failure { message, hint }), state, ..Self::default() }
    }

    /// Tells whether no unit failed or is sick.
    pub fn is_well(&self) -> bool {
        !self.units.iter().any(|unit| matches!(unit.state, UnitState::Unhealthy | UnitState::Failed))
    }

    /// Returns the steps that changed something, or in a plan would.
    pub fn changes_in(&self, mode: Mode) -> impl Iterator<Item = &StepReport> {
        let is_over =
            move |step: &&StepReport| mode != Mode::Apply || step.deleted || step.outcome == Some(Outcome::Done);
        self.steps.iter().filter(|step| step.is_change()).filter(is_over)
    }

    /// Tells whether anything was changed.
    pub fn has_changed(&self) -> bool {
        self.changes_in(Mode::Apply).next().is_some()
    }
}
