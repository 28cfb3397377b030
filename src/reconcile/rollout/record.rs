//! The record of a rollout, in the state folder.

use std::collections::BTreeSet;

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::report::{ClusterReport, ClusterState, UnitReport, UnitState};
use crate::state::store::Store;

/// The last rollout of each sync.
pub(super) const RECORDS: Store<Record> = Store::new("rollouts");

/// A rollout, as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Everything that is rolled out.
    pub target: String,
    /// The revision, for people.
    pub revision: String,
    /// The cluster that it goes to first.
    pub first: String,
    /// The units whose pods are replaced there.
    pub units: BTreeSet<ObjectId>,
    /// The stage that it has reached.
    pub stage: Stage,
    /// When it began.
    pub since: Timestamp,
}

/// The stage of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// It is on its way to the first cluster.
    Going,
    /// The first cluster is healthy with it: all others may follow.
    Healthy,
    /// The first cluster is not healthy with it, for this reason.
    Halted(String),
}

impl Record {
    /// Has the others wait.
    pub(super) fn wait(&self) -> Verdict {
        let Self { first, revision, stage, .. } = self;
        let (message, hint) = match stage {
            Stage::Halted(why) => (
                format!("{revision} went to cluster {first} first, and is not healthy there: {why}"),
                format!(
                    "correct the source: the correction goes to {first} first, too; or approve it for the others as it is"
                ),
            ),
            Stage::Going | Stage::Healthy => (
                format!("{revision} goes to cluster {first} first, and is not known to be healthy there yet"),
                format!("it follows by itself once {first} is healthy; or approve it as it is"),
            ),
        };
        Verdict::Wait { on: first.clone(), message, hint, is_halted: matches!(stage, Stage::Halted(_)) }
    }

    /// Sees how the first cluster is after a round for a target.
    pub(super) fn see(&mut self, report: &ClusterReport, target: &str) {
        let units: Vec<&UnitReport> = report.units.iter().filter(|unit| self.units.contains(&unit.unit)).collect();
        if let Some(why) = units.iter().find_map(|unit| sick(unit)) {
            // The round that waited for it knows most.
            if !matches!(self.stage, Stage::Halted(_)) {
                self.stage = Stage::Halted(why);
            }
            return;
        }
        let is_well = |unit: &&UnitReport| {
            matches!(unit.state, UnitState::Current | UnitState::Changed | UnitState::Pruned)
                && unit.unawaited.is_none()
        };
        match (report.state, &report.error) {
            (ClusterState::Done, _) if units.iter().all(is_well) => {
                (self.stage, self.target) = (Stage::Healthy, target.to_owned());
            }
            // Something of it may be there, and something not.
            (ClusterState::Failed, Some(error)) if self.stage == Stage::Going => {
                self.stage = Stage::Halted(error.message.clone());
            }
            _ => {}
        }
    }
}

/// Says why a unit is no reason to go on.
fn sick(unit: &UnitReport) -> Option<String> {
    let is_sick = matches!(unit.state, UnitState::Unhealthy | UnitState::Failed | UnitState::Held);
    let message = unit.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    is_sick.then(|| format!("{}{message}", unit.unit))
}
