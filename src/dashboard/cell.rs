//! A cell of the matrix: how a sync stands on a cluster after its last round, in so few words that a thousand fit.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::plan::guard::Guard;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::report::status::json_word;
use crate::report::{ClusterReport, ClusterState, Mode, Report, UnitState, finding};

/// The most characters of a message that stand in a matrix; details have all of it.
const MOST_CHARACTERS: usize = 240;

/// The sum of a sync on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cell {
    /// The sync.
    pub sync: String,
    /// The worst that is to be said.
    pub status: Status,
    /// The state in which the last round ended.
    pub state: ClusterState,
    /// Whether it was to change anything; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// The revision of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Since when the oldest finding is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The number of findings: what wants attention.
    pub findings: usize,
    /// The number of objects that are not as the source says.
    pub drift: usize,
    /// The number of objects that the last round has changed.
    pub changed: usize,
    /// The number of units in each state.
    pub units: BTreeMap<String, usize>,
    /// The guards that hold something.
    pub guards: BTreeSet<Guard>,
    /// The number of holds that a person can lift.
    pub waiting: usize,
    /// A word on what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The worst that is to be said of a sync on a cluster, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    /// Nobody answered.
    Unreachable,
    /// Something failed.
    Failed,
    /// A unit is not healthy.
    Unhealthy,
    /// A guard holds something, until a person has looked.
    Held,
    /// Something is not as the source says.
    Drift,
    /// A round was told to stop before it was through.
    Stopped,
    /// It waits for its turn.
    Waiting,
    /// There are no rounds, because somebody has suspended the sync.
    Suspended,
    /// There was no round yet.
    Unknown,
    /// All is as the source says.
    Ok,
}

impl Cell {
    /// Sums up the last report of a sync on a cluster.
    pub(super) fn of((sync, cluster): (&str, &str), report: Option<&Report>) -> Self {
        let Some((report, found)) = report.and_then(|report| Some((report, report.clusters.get(cluster)?))) else {
            return Self::unknown(sync);
        };
        let findings = finding::on(report, cluster);
        let message = findings.values().find(|it| !it.kind.is_of_source()).or_else(|| findings.values().next());
        let mut units = BTreeMap::new();
        found.units.iter().for_each(|unit| *units.entry(json_word(&unit.state)).or_default() += 1);
        let drift = drift(report.mode, found);
        Self {
            sync: sync.to_owned(),
            status: Status::of(found, drift),
            state: found.state,
            mode: Some(report.mode),
            finished: Some(report.finished),
            revision: Some(report.revision.clone()),
            since: findings.values().map(|finding| finding.since).min(),
            findings: findings.len(),
            drift,
            changed: found.changes_in(Mode::Apply).count(),
            units,
            guards: found.holds.iter().map(|hold| hold.guard).collect(),
            waiting: found.holds.iter().filter(|hold| hold.token.is_some()).count(),
            message: message.map(|finding| cut(&finding.what, MOST_CHARACTERS)),
        }
    }

    fn unknown(sync: &str) -> Self {
        let (mode, finished, revision, since, message) = (None, None, None, None, None);
        let (units, guards) = (BTreeMap::new(), BTreeSet::new());
        let (status, state, sync) = (Status::Unknown, ClusterState::Unknown, sync.to_owned());
        let (findings, drift, changed, waiting) = (0, 0, 0, 0);
        Self {
            sync,
            status,
            state,
            mode,
            finished,
            revision,
            since,
            findings,
            drift,
            changed,
            units,
            guards,
            waiting,
            message,
        }
    }
}

impl Status {
    fn of(found: &ClusterReport, drift: usize) -> Self {
        let has = |state: UnitState| found.units.iter().any(|unit| unit.state == state);
        // To wait for one's turn is as it should be.
        let is_turn = |guard: Guard| matches!(guard, Guard::Rollout | Guard::RolloutDeletion | Guard::DependsOn);
        match found.state {
            ClusterState::Unreachable => Self::Unreachable,
            ClusterState::Failed => Self::Failed,
            ClusterState::Suspended => Self::Suspended,
            ClusterState::Unknown => Self::Unknown,
            _ if has(UnitState::Failed) => Self::Failed,
            _ if has(UnitState::Unhealthy) => Self::Unhealthy,
            _ if found.holds.iter().any(|hold| !is_turn(hold.guard)) => Self::Held,
            ClusterState::Stopped => Self::Stopped,
            _ if !found.holds.is_empty() => Self::Waiting,
            ClusterState::Held => Self::Held,
            _ if drift > 0 => Self::Drift,
            ClusterState::Done | ClusterState::Planned | ClusterState::Compared => Self::Ok,
        }
    }
}

/// Counts the objects that are not as the source says, now that the round is over.
fn drift(mode: Mode, found: &ClusterReport) -> usize {
    let changes = found.steps.iter().filter(|step| step.is_change()).count();
    let mended = if mode == Mode::Apply { found.changes_in(mode).count() } else { 0 };
    changes - mended + found.not_done().1
}

/// Returns a text, or as much of it as there is room for.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
