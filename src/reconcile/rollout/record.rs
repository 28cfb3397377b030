//! The records of rollouts, in the state folder: how far the change of each unit has come.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, UnitReport, UnitState};
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The rollouts of each sync.
pub(super) const LEDGERS: Store<Ledger> = Store::new("rollouts");

/// All rollouts of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Set while a person has them wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The last rollout of each unit.
    #[serde(default)]
    pub units: Vec<Record>,
    /// The deletions on each cluster; what is done counts on, until something else is to be had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deletions: BTreeMap<String, Deletions>,
}

/// The deletions on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletions {
    /// All that is wanted there.
    pub target: String,
    /// The number of units of which something was to be deleted for that.
    pub units: usize,
}

/// A pause of all rollouts of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The words of whoever asked for it.
    pub reason: String,
    /// The name of whoever did, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it began.
    pub since: Timestamp,
}

/// The rollout of a change of one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The unit.
    pub unit: ObjectId,
    /// Everything that was rolled out with it.
    pub target: String,
    /// The revision, for people.
    pub revision: String,
    /// When it began.
    pub since: Timestamp,
    /// The cluster that got it before all others, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The clusters that have it.
    pub members: BTreeMap<String, Member>,
    /// Those that wait for it, with the digest of what they would get: as long as that stays, it is the same rollout,
    /// whatever else a later revision changes.
    pub wants: BTreeMap<String, String>,
}

/// A cluster that has the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The stage that it has reached there.
    pub stage: Stage,
    /// It has an earlier change, and was not healthy with that when this rollout began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_carried: bool,
    /// Since when.
    pub since: Timestamp,
}

/// The state of a cluster that has the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It is on its way there.
    Going,
    /// It is healthy.
    Healthy,
    /// It is not healthy, for this reason.
    Halted(String),
}

/// Reads how far the rollouts of a sync are.
pub fn read(state: &State, sync: &str) -> Result<Ledger, StateError> {
    Ok(LEDGERS.load(state, &[sync])?.unwrap_or_default())
}

/// Changes what is noted of the rollouts of a sync, with nobody else doing that at the same time.
pub fn update<T>(state: &State, sync: &str, change: impl FnOnce(&mut Ledger) -> T) -> Result<T, StateError> {
    let _lock = state.lock_rollouts(sync)?;
    let mut ledger = read(state, sync)?;
    let result = change(&mut ledger);
    LEDGERS.write(state, &[sync], &ledger)?;
    Ok(result)
}

/// Forgets that clusters have the changes of units that were taken back there.
pub fn start_over(state: &State, sync: &str, back: &BTreeMap<&str, BTreeSet<&ObjectId>>) -> Result<(), StateError> {
    let is_back = |cluster: &str, unit: &ObjectId| back.get(cluster).is_some_and(|units| units.contains(unit));
    let has_one = |record: &Record| record.members.keys().any(|cluster| is_back(cluster, &record.unit));
    if !read(state, sync)?.units.iter().any(has_one) {
        return Ok(());
    }
    update(state, sync, |ledger| {
        for Record { unit, members, first, .. } in &mut ledger.units {
            members.retain(|cluster, _| !is_back(cluster, unit));
            *first = first.take().filter(|first| !is_back(first, unit));
        }
    })
}

/// Tells whether a cluster is not healthy with a change that is rolled out with a target.
pub fn is_halted(ledger: &Ledger, cluster: &str, target: &str) -> bool {
    let records = ledger.units.iter().filter(|record| record.target == target);
    records.filter_map(|record| record.members.get(cluster)).any(|member| matches!(member.stage, Stage::Halted(_)))
}

impl Deletions {
    /// Adds what is to be deleted on a cluster, if that is more than was counted for the same target.
    pub(super) fn add(known: &mut BTreeMap<String, Self>, (cluster, target, units): (&str, &str, usize)) {
        let before = known.get(cluster).filter(|known| known.target == target).map_or(0, |known| known.units);
        known.insert(cluster.to_owned(), Self { target: target.to_owned(), units: units.max(before) });
    }
}

impl Pause {
    /// Says since when, and why.
    pub fn words(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        format!("paused{by} since {}: {}", self.since.strftime("%F %T UTC"), self.reason)
    }
}

impl Record {
    /// Tells whether somebody waits for it, or has it and is not known to be healthy.
    pub fn is_open(&self) -> bool {
        !self.wants.is_empty() || self.members.values().any(|member| member.stage != Stage::Healthy)
    }
}

impl Ledger {
    /// Returns the rollout of a unit.
    pub(super) fn of(&self, unit: &ObjectId) -> Option<&Record> {
        self.units.iter().find(|record| record.unit == *unit)
    }

    /// Begins another rollout of a unit. Clusters that are not healthy with the last one belong to this one, too: the
    /// correction is for them. Where one goes before all others, it alone counts, also on its way.
    pub(super) fn begin(&mut self, unit: &ObjectId, (target, revision): (&str, &str), since: Timestamp) -> &mut Record {
        let index = self.units.iter().position(|record| record.unit == *unit);
        let (mut first, mut members) =
            index.map(|index| self.units.swap_remove(index)).map(|last| (last.first, last.members)).unwrap_or_default();
        members.retain(|name, member| match &first {
            Some(first) => first == name && member.stage != Stage::Healthy,
            // Whoever was on the way waits for the turn of its wave.
            None => matches!(member.stage, Stage::Halted(_)),
        });
        first = first.filter(|first| members.contains_key(first));
        for member in members.values_mut() {
            member.is_carried = true;
        }
        let (target, revision, wants) = (target.to_owned(), revision.to_owned(), BTreeMap::new());
        self.units.push(Record { unit: unit.clone(), target, revision, since, first, members, wants });
        self.units.last_mut().expect("it was just put there")
    }

    /// Takes clusters out that are not there any more, unless this very revision was not healthy on them: whoever takes a
    /// cluster out has not made it better.
    pub(super) fn forget(&mut self, is_there: impl Fn(&str) -> bool, revision: &str) {
        for record in &mut self.units {
            let is_bad = |member: &Member| matches!(member.stage, Stage::Halted(_)) && record.revision == revision;
            record.members.retain(|cluster, member| is_there(cluster) || is_bad(member));
            record.wants.retain(|cluster, _| is_there(cluster));
        }
        self.deletions.retain(|cluster, _| is_there(cluster));
    }

    /// Sees how the units of a cluster are after a round, which may have been about some units only.
    pub(super) fn see(&mut self, cluster: &str, report: &ClusterReport, is_partial: bool, now: Timestamp) {
        let of_unit = |unit: &ObjectId| report.units.iter().find(|it| it.unit == *unit);
        let waits = |unit: &ObjectId| report.waiting_for_rollout().any(|(it, _)| it == unit);
        for record in self.units.iter_mut().filter(|record| !waits(&record.unit)) {
            let unit = of_unit(&record.unit);
            if let Some(member) = record.members.get_mut(cluster) {
                member.see(unit, report, now);
                // With what it had before: that says nothing of this change.
                let is_no_trial = member.is_carried && member.stage == Stage::Healthy;
                let is_gone = unit.is_none() && !is_partial && report.state == ClusterState::Done;
                if is_no_trial || is_gone {
                    record.members.remove(cluster);
                    record.first = record.first.take().filter(|first| first != cluster);
                }
            }
            if (unit.is_some() || !is_partial) && report.state == ClusterState::Done {
                // A later revision does not want it any more, or a person has let it go on.
                record.wants.remove(cluster);
            }
        }
        self.units.retain(|record| !(record.members.is_empty() && record.wants.is_empty()));
    }
}

impl Member {
    /// Begins with a change that is on its way.
    pub(super) fn going(since: Timestamp) -> Self {
        Self { stage: Stage::Going, is_carried: false, since }
    }

    fn see(&mut self, unit: Option<&UnitReport>, report: &ClusterReport, now: Timestamp) {
        let is_over = matches!(report.state, ClusterState::Done | ClusterState::Failed);
        let stage = match (unit, &report.error) {
            // It had no time to become healthy.
            _ if report.state == ClusterState::Stopped && self.stage == Stage::Going => return,
            (Some(unit), _) if let Some(why) = sick(unit, report) => match &self.stage {
                // The round that waited for it knows most.
                Stage::Halted(_) => return,
                Stage::Going | Stage::Healthy => Stage::Halted(why),
            },
            (Some(unit), None) if is_over && unit.is_healthy() => Stage::Healthy,
            // Something of it may be there, and something not.
            (_, Some(error)) if report.state == ClusterState::Failed && self.stage == Stage::Going => {
                Stage::Halted(error.message.clone())
            }
            // A round may have been about other units.
            _ => return,
        };
        if self.stage != stage {
            (self.stage, self.since) = (stage, now);
        }
    }
}

/// Says why a unit is no reason to go on.
fn sick(unit: &UnitReport, report: &ClusterReport) -> Option<String> {
    let is_sick = matches!(unit.state, UnitState::Unhealthy | UnitState::Failed);
    let failed = || {
        let mut steps = report.steps.iter().filter(|step| step.unit == unit.unit);
        steps.find_map(|step| match &step.outcome {
            Some(Outcome::Failed(why) | Outcome::Stale(why)) => Some(format!("{}: {why}", step.id)),
            _ => None,
        })
    };
    let message = unit.message.clone().or_else(failed).map(|message| format!(": {message}")).unwrap_or_default();
    is_sick.then(|| format!("{}{message}", unit.unit))
}
