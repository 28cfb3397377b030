//! Holds, for the person who decides: the guard, the steps that wait, and the command that approves them.

use gatewright_engine::plan::guard;
use jiff::Timestamp;
use serde::Serialize;

use super::board::{Board, Knowledge};
use super::cell::cut;
use super::target::{MOST, MOST_CHARACTERS};
use crate::history::approvals::{self, Approval, Asked};
use crate::report::withheld::HoldReport;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/approvals/v1alpha1";

/// A guard that stopped something on a cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hold {
    guard: guard::Guard,
    /// The units that wait; none where everything does, or all deletions.
    units: Vec<String>,
    message: String,
    hint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// The command that approves it; absent where no approval lifts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    steps: Vec<Step>,
    /// The number of steps beyond those.
    more: usize,
}

/// A step that waits.
#[derive(Serialize)]
struct Step {
    action: String,
    object: String,
}

/// Everything that waits.
#[derive(Serialize)]
pub(super) struct Approvals {
    schema: &'static str,
    /// The number of those that there are.
    total: usize,
    groups: Vec<Group>,
}

/// The same steps of a sync, on the clusters where they wait.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    sync: String,
    token: String,
    clusters: Vec<String>,
    /// The number of clusters beyond those.
    more_clusters: usize,
    hold: Hold,
    /// The approvals that were given already.
    approved: Vec<Approved>,
}

/// An approval that waits for its round.
#[derive(Serialize)]
struct Approved {
    cluster: String,
    until: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Hold {
    /// Tells of a hold of a report.
    pub(super) fn of(report: &HoldReport) -> Self {
        Self { since: report.since, ..Self::new(&report.what, report.token.as_deref()) }
    }

    fn new(hold: &guard::Hold, token: Option<&str>) -> Self {
        let step = |step: &guard::token::HeldStep| Step { action: step.action.clone(), object: step.id.to_string() };
        Self {
            guard: hold.guard,
            units: hold.unit.iter().chain(&hold.units).take(MOST).map(ToString::to_string).collect(),
            message: cut(&hold.message, MOST_CHARACTERS),
            hint: cut(&hold.hint, MOST_CHARACTERS),
            since: None,
            command: token.map(|token| format!("gatewright approve {token}")),
            steps: hold.steps.iter().take(MOST).map(step).collect(),
            more: hold.steps.len().saturating_sub(MOST),
        }
    }
}

/// Lists all that waits for approval.
pub(super) fn approvals(board: &Board, known: &Knowledge) -> Approvals {
    // What cannot be read waits all the same; the command line names the file.
    let mut waiting = approvals::waiting(&board.state).unwrap_or_default();
    waiting.retain(|asked| known.cells.get(&asked.cluster).is_some_and(|cells| cells.contains_key(&asked.sync)));
    let given = approvals::given(&board.state, board.now());
    let groups = approvals::groups(&waiting);
    let total = groups.len();
    Approvals { schema: SCHEMA, total, groups: groups.iter().take(MOST).map(|it| Group::of(it, &given)).collect() }
}

impl Group {
    fn of(group: &[&Asked], given: &[Approval]) -> Self {
        let token = approvals::token_of(group);
        let is_of_it = |approval: &&Approval| group.iter().any(|asked| asked.token == approval.token);
        let approved =
            |it: &Approval| Approved { cluster: it.cluster.clone(), until: it.until, reason: it.reason.clone() };
        Self {
            sync: group[0].sync.clone(),
            token: token.to_owned(),
            clusters: group.iter().take(MOST).map(|asked| asked.cluster.clone()).collect(),
            more_clusters: group.len().saturating_sub(MOST),
            hold: Hold::new(&group[0].hold, Some(token)),
            approved: given.iter().filter(is_of_it).take(MOST).map(approved).collect(),
        }
    }
}
