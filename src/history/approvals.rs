//! The holds that wait for a person, and those that a person has approved, in the state folder.
//!
//! Every round and every plan leaves behind what it holds, so that only what was really printed can be approved. An
//! approval is a file of its own, so that it can be given beside a running daemon. It counts for one sync on one
//! cluster until its time is over, and is used up as soon as one of its steps was tried. None of this is what makes it
//! safe: a token stands for exactly its steps (`plan::guard::token` in the engine), and an old file lifts nothing else.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::plan::guard::Hold;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{error, info};

use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState};
use crate::state::store::{Stamp, Store};
use crate::state::{State, StateError};

/// The holds that wait, by sync and cluster.
const ASKED: Store<Vec<Hold>> = Store::new("asked");

/// Forgets what is kept of a cluster.
pub(crate) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    ASKED.forget(state, cluster)
}

/// Keeps what is kept of a cluster under another name, the approvals that still count included.
pub(crate) fn rename_cluster(
    state: &State,
    (old, new): (&str, &str),
    now: Timestamp,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), StateError> {
    let is_of = |approval: &Approval| approval.cluster == old && is_meant(&approval.sync);
    for approval in given(state, now).into_iter().filter(is_of) {
        let token = approval.token.clone();
        GIVEN.write(state, &[&token], &Approval { cluster: new.to_owned(), ..approval })?;
    }
    ASKED.rename(state, (old, new), is_meant)
}

/// The approvals, by token.
pub(crate) const GIVEN: Store<Approval> = Store::new("approvals");

/// Something that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The sync.
    pub sync: String,
    /// The cluster.
    pub cluster: String,
    /// The token that lifts it.
    pub token: String,
    /// The guard, and the steps that it holds.
    pub hold: Hold,
}

/// The same steps of one sync, on the clusters where they wait.
pub(crate) type Group<'a> = Vec<&'a Asked>;

impl Asked {
    /// Tells whether a token stands for it: its own, or that for the same steps on every cluster.
    pub(crate) fn is_meant_by(&self, token: &str) -> bool {
        self.token == token || self.hold.fleet_token.as_deref() == Some(token)
    }

    /// Returns the token of the same steps on every cluster; its own where it was written down without one.
    pub(crate) fn fleet_token(&self) -> &str {
        self.hold.fleet_token.as_deref().unwrap_or(&self.token)
    }
}

/// A hold that a person has approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// The token.
    pub token: String,
    /// The sync.
    pub sync: String,
    /// The cluster.
    pub cluster: String,
    /// The steps that were held, and the guard that held them.
    pub hold: Hold,
    /// The reason, in the words of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the person, as far as it is known, which is no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was given.
    pub given: Timestamp,
    /// When its time is over.
    pub until: Timestamp,
}

/// Stands for what waits of a sync on a cluster: it is another one when that is.
pub(crate) fn stamp(state: &State, sync: &str, cluster: &str) -> Option<Stamp> {
    ASKED.stamp(state, &[sync, cluster])
}

/// Returns what waits, in the order of syncs and clusters; a file that cannot be read is an error.
pub(crate) fn waiting(state: &State) -> Result<Vec<Asked>, StateError> {
    let mut all = Vec::new();
    for (sync, cluster) in ASKED.targets(state) {
        let holds = ASKED.load(state, &[&sync, &cluster])?.unwrap_or_default();
        all.extend(holds.into_iter().filter_map(|hold| {
            let token = hold.token.clone()?;
            Some(Asked { sync: sync.clone(), cluster: cluster.clone(), token, hold })
        }));
    }
    Ok(all)
}

/// Puts together what is the same on several clusters, in the order in which it was found.
pub(crate) fn groups<'a>(asked: impl IntoIterator<Item = &'a Asked>) -> Vec<Group<'a>> {
    let (mut groups, mut known) = (Vec::<Group<'a>>::new(), BTreeMap::new());
    for asked in asked {
        let group = *known.entry((&asked.sync, asked.fleet_token())).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(asked);
    }
    groups
}

/// Returns what is typed to approve a group.
pub(crate) fn token_of<'a>(group: &[&'a Asked]) -> &'a str {
    if let [asked] = group { &asked.token } else { group[0].fleet_token() }
}

/// Returns the approvals whose time is not over.
pub(crate) fn given(state: &State, now: Timestamp) -> Vec<Approval> {
    let tokens = GIVEN.names(state, &[]);
    tokens.iter().filter_map(|token| GIVEN.read(state, &[token])).filter(|approval| now < approval.until).collect()
}

/// Returns the tokens that are approved for a sync on a cluster.
pub(crate) fn valid(state: &State, sync: &str, cluster: &str, now: Timestamp) -> BTreeSet<String> {
    let is_for = |approval: &Approval| approval.sync == sync && approval.cluster == cluster;
    given(state, now).into_iter().filter(is_for).map(|approval| approval.token).collect()
}

/// Records what a round or a plan holds now, and takes away the approvals that it has used up. After a round about only
/// a part of the units, what else waited still waits.
pub(crate) fn record(state: &State, sync: &str, is_partial: bool, clusters: &BTreeMap<String, ClusterReport>) {
    for (cluster, report) in clusters {
        for hold in report.lifted.iter().filter(|hold| is_used_up(hold, report)) {
            let token = hold.token.as_deref().unwrap_or_default();
            info!(sync, cluster, token, guard = %hold.guard, "an approval is used up");
            drop(GIVEN.remove(state, &[token]));
        }
        // Who has seen nothing knows nothing of what waits.
        if report.error.is_some() || matches!(report.state, ClusterState::Unreachable | ClusterState::Stopped) {
            continue;
        }
        let target = [sync, cluster.as_str()];
        let before = ASKED.read(state, &target).unwrap_or_default();
        let waiting = report.holds.iter().filter(|hold| hold.token.is_some());
        let mut holds: Vec<Hold> = waiting.map(|hold| hold.what.clone()).collect();
        if is_partial {
            let is_known = |hold: &Hold| holds.iter().any(|known| known.token == hold.token);
            let others: Vec<Hold> = before.iter().filter(|hold| !is_known(hold)).cloned().collect();
            holds.extend(others);
        }
        if holds == before {
            continue;
        }
        if holds.is_empty() {
            drop(ASKED.remove(state, &target));
        } else if let Err(error) = ASKED.write(state, &target, &holds) {
            error!(error = %Chain(&error), "cannot note what waits for approval");
        }
    }
}

/// An approval that helped nothing, because something before it failed, still counts in the next round.
fn is_used_up(hold: &Hold, report: &ClusterReport) -> bool {
    let outcome = |id| report.steps.iter().find(|step| step.id == id).and_then(|step| step.outcome.clone());
    let is_tried = |outcome: Option<Outcome>| outcome.is_some_and(|outcome| outcome != Outcome::Skipped);
    hold.steps.iter().any(|step| is_tried(outcome(step.id.clone())))
}
