//! The records of rollouts, in the state folder: how far the change of each unit has come.
//!
//! A part of them is kept on each cluster, too (`kept`).

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, UnitReport, UnitState};
use crate::state::{State, StateError};

use super::journal::Journal;

/// All rollouts of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Set while a person has them wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The last rollout of each unit, in the order of the units.
    #[serde(default)]
    pub units: Vec<Record>,
    /// The deletions on each cluster; what is done counts on, until something else is to be had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deletions: BTreeMap<String, Deletions>,
    /// It was begun without what is kept on the clusters, which has not been read yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unread: bool,
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
    /// The clusters that have it, and are to go back to what they had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub back: BTreeMap<String, Back>,
    /// The digest of what was last seen healthy on each cluster, of this rollout or an earlier one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub good: BTreeMap<String, String>,
}

/// The way back of a cluster: as long as that is wanted there which is to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// The digest of what is to go.
    pub digest: String,
    /// The reason.
    pub failure: Failure,
}

/// A cluster that has the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The stage that it has reached there.
    pub stage: Stage,
    /// It has an earlier change, and was not healthy with that when this rollout began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_carried: bool,
    /// It stays, however it is: a person has let it go as it is, or it was healthy with that before, and somebody else has
    /// changed it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// It has failed before it was known to be good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed_on_trial: bool,
    /// The digest of what it got.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
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
    /// It has what it had before again.
    Returned(Failure),
}

/// A change that has failed on a cluster, and is taken back there or on others of its wave.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// The cluster on which it has failed.
    pub on: String,
    /// The revision that went there, for people.
    pub revision: String,
    /// The reason.
    pub why: String,
}

impl Failure {
    /// Says why a cluster goes back.
    pub fn words(&self, cluster: &str) -> String {
        if self.on == cluster { self.why.clone() } else { format!("on cluster {}: {}", self.on, self.why) }
    }
}

impl Stage {
    /// Tells whether others have to wait for it, because the change is not good there, or on another one of its wave.
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Halted(_) | Self::Returned(_))
    }
}

/// Reads how far the rollouts of a sync are.
pub fn read(state: &State, sync: &str) -> Result<Ledger, StateError> {
    Ok(Journal::default().news(state, sync)?.unwrap_or_default())
}

/// Changes what is noted of the rollouts of a sync, with nobody else doing that at the same time.
pub fn update<T>(state: &State, sync: &str, change: impl FnOnce(&mut Ledger) -> T) -> Result<T, StateError> {
    let _lock = state.lock_rollouts(sync)?;
    let mut ledger = read(state, sync)?;
    let result = change(&mut ledger);
    Journal::default().write((state, sync), &ledger)?;
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
        for Record { unit, members, first, back, good, wants, .. } in &mut ledger.units {
            members.retain(|cluster, _| !is_back(cluster, unit));
            back.retain(|cluster, _| !is_back(cluster, unit));
            good.retain(|cluster, _| !is_back(cluster, unit));
            *first = first.take().filter(|first| !is_back(first, unit));
            // What is nowhere any more is waited for by nobody.
            if members.is_empty() {
                wants.clear();
            }
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
    /// Returns another rollout of a unit after the last one, for which a cluster asks. Clusters that are not healthy with the
    /// last one belong to this one, too: the correction is for them. Where one goes before all others, it alone counts, also
    /// on its way. On which clusters the last one was taken back is remembered until each of them asks for something else: it
    /// may be the same change.
    pub(super) fn after(
        last: Option<&Self>,
        (unit, cluster): (&ObjectId, &str),
        (target, revision): (&str, &str),
        since: Timestamp,
    ) -> Self {
        let (target, revision, wants) = (target.to_owned(), revision.to_owned(), BTreeMap::new());
        let mut next = Self {
            unit: unit.clone(),
            target,
            revision,
            since,
            first: last.and_then(|last| last.first.clone()),
            members: BTreeMap::new(),
            wants,
            back: last.map(|last| last.back.clone()).unwrap_or_default(),
            good: last.map(|last| last.good.clone()).unwrap_or_default(),
        };
        next.back.remove(cluster);
        let stays = |(name, member): &(&String, &Member)| match &next.first {
            _ if next.back.contains_key(*name) => true,
            _ if matches!(member.stage, Stage::Returned(_)) => *name != cluster,
            Some(first) => first == *name && member.stage != Stage::Healthy,
            // Whoever was on the way waits for the turn of its wave.
            None => matches!(member.stage, Stage::Halted(_)),
        };
        let carried =
            |(name, member): (&String, &Member)| (name.clone(), Member { is_carried: true, ..member.clone() });
        next.members = last.iter().flat_map(|last| &last.members).filter(stays).map(carried).collect();
        next.first = next.first.take().filter(|first| next.members.contains_key(first));
        next
    }

    /// Lets a cluster that has given back another change begin with this one.
    pub(super) fn forget_returned(&mut self, cluster: &str, digest: &str) {
        self.back.retain(|name, back| name != cluster || back.digest == *digest);
        if self.has_returned_other(cluster, digest) {
            self.members.remove(cluster);
            self.first = self.first.take().filter(|first| first != cluster);
        }
    }

    /// Tells whether a cluster has given back another change, or is to.
    pub(super) fn is_to_forget(&self, cluster: &str, digest: &str) -> bool {
        let is_other = |back: &Back| back.digest != *digest;
        self.back.get(cluster).is_some_and(is_other) || self.has_returned_other(cluster, digest)
    }

    fn has_returned_other(&self, cluster: &str, digest: &str) -> bool {
        // One without a digest may be the same.
        let is_other = |member: &Member| {
            let is_back = matches!(member.stage, Stage::Returned(_));
            is_back && !member.digest.is_empty() && member.digest != *digest
        };
        self.members.get(cluster).is_some_and(is_other)
    }

    /// Tells whether it is what a cluster waits for or has given back, whatever else is wanted by now.
    pub(super) fn is_for(&self, cluster: &str, digest: &String) -> bool {
        let is_to_go = self.back.contains_key(cluster);
        let is_back = |member: &&Member| is_to_go || matches!(member.stage, Stage::Returned(_));
        let had = self.members.get(cluster).filter(is_back).map(|member| &member.digest);
        self.wants.get(cluster).or(had) == Some(digest)
    }

    /// Tells whether somebody waits for it, or has it and is not known to be healthy.
    pub fn is_open(&self) -> bool {
        !self.wants.is_empty() || self.members.values().any(|member| member.stage != Stage::Healthy)
    }
}

impl Ledger {
    /// Begins one, where there is none.
    pub(super) fn unread() -> Self {
        Self { is_unread: true, ..Self::default() }
    }

    /// Returns the rollout of a unit.
    pub(super) fn of(&self, unit: &ObjectId) -> Option<&Record> {
        self.find(unit).ok().map(|index| &self.units[index])
    }

    /// Returns the rollout of a unit, to change it.
    pub(super) fn of_mut(&mut self, unit: &ObjectId) -> Option<&mut Record> {
        self.find(unit).ok().map(|index| &mut self.units[index])
    }

    /// Makes this the rollout of its unit.
    pub(super) fn put(&mut self, record: Record) {
        match self.find(&record.unit) {
            Ok(index) => self.units[index] = record,
            Err(index) => self.units.insert(index, record),
        }
    }

    fn find(&self, unit: &ObjectId) -> Result<usize, usize> {
        self.units.binary_search_by(|record| record.unit.cmp(unit))
    }

    /// Has the rollouts in the order of their units: an earlier version wrote them as they came.
    pub(super) fn sort(&mut self) {
        self.units.sort_by(|one, other| one.unit.cmp(&other.unit));
    }

    /// Tells whether it is about clusters that are not there any more.
    pub(super) fn knows_others(&self, is_there: impl Fn(&str) -> bool) -> bool {
        let of = |record: &Record| {
            let (back, members) = (record.back.keys(), record.members.keys());
            back.chain(members).chain(record.good.keys()).chain(record.wants.keys()).any(|name| !is_there(name))
        };
        self.units.iter().any(of) || self.deletions.keys().any(|name| !is_there(name))
    }

    /// Takes clusters out that are not there any more, unless this very revision was not healthy on them: whoever takes a
    /// cluster out has not made it better.
    pub(super) fn forget(&mut self, is_there: impl Fn(&str) -> bool, revision: &str) {
        for record in &mut self.units {
            let is_bad = |member: &Member| member.stage.has_failed() && record.revision == revision;
            record.back.retain(|cluster, _| is_there(cluster));
            record.good.retain(|cluster, _| is_there(cluster));
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
            let is_gone = unit.is_none() && !is_partial && report.state == ClusterState::Done;
            if is_gone {
                record.back.remove(cluster);
                record.good.remove(cluster);
            }
            if let Some(member) = record.members.get_mut(cluster) {
                // What is to go is not judged any more.
                if !record.back.contains_key(cluster) {
                    member.see(unit, report, now);
                }
                if member.stage == Stage::Healthy && !(member.is_carried || member.digest.is_empty()) {
                    record.good.insert(cluster.to_owned(), member.digest.clone());
                }
                // With what it had before: that says nothing of this change.
                let is_no_trial = match member.stage {
                    Stage::Healthy => member.is_carried,
                    Stage::Returned(_) => report.state == ClusterState::Done && unit.is_some_and(is_as_wanted),
                    _ => false,
                };
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
    /// Tells whether it is not known yet how it is.
    pub(super) fn is_on_the_way(&self) -> bool {
        self.stage == Stage::Going
    }

    /// Begins with a change that is on its way.
    pub(super) fn going(since: Timestamp) -> Self {
        Self {
            stage: Stage::Going,
            is_carried: false,
            stays: false,
            has_failed_on_trial: false,
            digest: String::new(),
            since,
        }
    }

    fn see(&mut self, unit: Option<&UnitReport>, report: &ClusterReport, now: Timestamp) {
        let is_over = matches!(report.state, ClusterState::Done | ClusterState::Failed);
        let stage = match (unit, &report.error) {
            // It had no time to become healthy.
            _ if report.state == ClusterState::Stopped && self.stage == Stage::Going => return,
            (Some(unit), _) if let Some(why) = sick(unit, report) => match &self.stage {
                // The round that waited for it knows most.
                Stage::Halted(_) | Stage::Returned(_) => return,
                Stage::Going | Stage::Healthy => Stage::Halted(why),
            },
            _ if matches!(self.stage, Stage::Returned(_)) => return,
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
            self.has_failed_on_trial = false;
        }
    }
}

/// Tells whether a unit is what its source says.
fn is_as_wanted(unit: &UnitReport) -> bool {
    !matches!(unit.state, UnitState::Held | UnitState::Failed) && !unit.unrendered
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
