//! The way back of a wave on which a change has failed: each of its clusters gets what was healthy there before.
//!
//! Which clusters go back is noted with the rollout, so that the next process goes on with it. A cluster does so at the end
//! of a round of its own, and waits from then on as all others do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::known::{Doing, Known, Part};
use super::record::{Back, Failure, Ledger, Member, Record, Stage};
use super::waves::{self, Wave};
use super::{Rollout, Turn};
use crate::basics::lock::lock;
use crate::config::gates::OnCluster;
use crate::reconcile::model::RoundSettings;
use crate::report::{ClusterReport, Mode};
use crate::state::StateError;

/// The gates of a cluster, and the units about which they are asked, each with whether it was seen not to be good.
pub(crate) type Gated<'a> = (&'a [OnCluster], Vec<(ObjectId, bool)>);

/// The trial of a change on a cluster, at the end of a round there.
pub(super) struct Trial<'a> {
    /// The waves of the sync.
    pub waves: &'a [Wave],
    /// The cluster.
    pub cluster: &'a str,
    /// The units that the round has changed, and so has waited for.
    pub changed: BTreeSet<&'a ObjectId>,
    /// For how long the others have time to become healthy.
    pub patience: Duration,
    /// Now.
    pub now: Timestamp,
}

impl Trial<'_> {
    /// Returns the units whose change was still being watched on the cluster before this round.
    pub(super) fn under_way(&self, before: &Ledger) -> BTreeSet<ObjectId> {
        let is_on_trial = |record: &&Record| {
            let member = record.members.get(self.cluster);
            member.is_some_and(|member| waves::is_on_trial(self.waves, self.cluster, member, self.now))
        };
        before.units.iter().filter(is_on_trial).map(|record| record.unit.clone()).collect()
    }

    /// Notes what has failed on the cluster of what was under way or is known to have failed, and which clusters go back for
    /// it; returns the others of them.
    pub(super) fn judge(&self, under_way: &BTreeSet<ObjectId>, ledger: &mut Ledger) -> BTreeSet<String> {
        let mut others = BTreeSet::new();
        for record in &mut ledger.units {
            if !self.has_failed(record, under_way.contains(&record.unit)) {
                continue;
            }
            let failure = record.failure(self.cluster);
            for name in waves::go_back_with(self.waves, record, self.cluster) {
                let digest = record.members.get(&name).map(|member| member.digest.clone()).unwrap_or_default();
                record.back.entry(name.clone()).or_insert(Back { digest, failure: failure.clone() });
                others.extend(Some(name).filter(|name| *name != self.cluster));
            }
        }
        others
    }

    /// Tells whether a change has failed here: what was not waited for has the same time as what was.
    fn has_failed(&self, record: &mut Record, was_on_trial: bool) -> bool {
        let Some(member) = record.members.get_mut(self.cluster) else { return false };
        if !matches!(member.stage, Stage::Halted(_)) || record.back.contains_key(self.cluster) {
            return false;
        }
        member.has_failed_on_trial |= was_on_trial;
        let is_late = member.since.checked_add(self.patience).is_ok_and(|end| end <= self.now);
        member.has_failed_on_trial && (is_late || self.changed.contains(&record.unit))
    }
}

impl Record {
    /// Says why a cluster goes back: what is wrong there, or on another one.
    fn failure(&self, cluster: &str) -> Failure {
        let of = |(name, member): (&String, &Member)| match &member.stage {
            Stage::Halted(why) => Some(Failure { on: name.clone(), revision: self.revision.clone(), why: why.clone() }),
            Stage::Returned(failure) => Some(failure.clone()),
            Stage::Going | Stage::Healthy => None,
        };
        let own = self.members.get_key_value(cluster).and_then(of);
        own.or_else(|| self.members.iter().find_map(of)).unwrap_or_default()
    }
}

impl Turn {
    /// Tells whether something may be taken back here.
    pub(crate) fn may_go_back(&self) -> bool {
        self.rollout.goes_back.is_some() && self.mode == Mode::Apply
    }

    /// Returns the gates of this cluster, and the healthy units of a round that they are asked about: those of which it is
    /// not known yet that their change is good, and whether it was seen not to be.
    pub(crate) fn gated(&self, report: &ClusterReport) -> Result<Gated<'_>, StateError> {
        let gates = self.rollout.gates.get(&self.cluster).map(Vec::as_slice).unwrap_or_default();
        if gates.is_empty() || self.mode != Mode::Apply {
            return Ok((gates, Vec::new()));
        }
        let healthy = report.units.iter().filter(|unit| unit.is_healthy()).map(|unit| &unit.unit);
        let open = |known: &mut Known| {
            let stage = |unit| Some(&known.ledger.of(unit)?.members.get(&self.cluster)?.stage);
            let open = healthy.filter_map(|unit| match stage(unit)? {
                Stage::Going => Some((unit.clone(), false)),
                Stage::Halted(_) => Some((unit.clone(), true)),
                Stage::Healthy | Stage::Returned(_) => None,
            });
            open.collect()
        };
        Ok((gates, self.rollout.look(Some(&self.revision), open)?))
    }

    /// Returns the units that go back on this cluster, with the reason, of those that `may`. Where rounds wait for each
    /// other, it waits until that is certain.
    pub(crate) async fn goes_back(
        &self,
        may: impl Fn(&ObjectId) -> bool,
        stop: &CancellationToken,
    ) -> BTreeMap<ObjectId, String> {
        if !self.may_go_back() {
            return BTreeMap::new();
        }
        loop {
            let changed = self.rollout.changed.notified();
            let (units, has_some) = self.back(&may);
            if !units.is_empty() || !has_some || !self.rollout.is_waiting || !self.others_are_under_way() {
                return units;
            }
            tokio::select! {
                () = stop.cancelled() => return BTreeMap::new(),
                () = changed => {}
            }
        }
    }

    /// Returns the units that go back here, and whether there are any that may yet. What cannot be read was told.
    fn back(&self, may: &impl Fn(&ObjectId) -> bool) -> (BTreeMap<ObjectId, String>, bool) {
        let words = |record: &Record| Some(record.back.get(&self.cluster)?.failure.words(&self.cluster));
        let is_member = |record: &Record| {
            record.members.get(&self.cluster).is_some_and(|member| !matches!(member.stage, Stage::Returned(_)))
        };
        let back = |known: &mut Known| {
            let ledger = &known.ledger;
            let here = ledger.units.iter().filter(|record| may(&record.unit) && ledger.paused.is_none());
            let back = here.clone().filter(|record| self.still_wants_what_is_to_go(record));
            let units = back.filter_map(|record| Some((record.unit.clone(), words(record)?))).collect();
            (units, here.clone().any(is_member))
        };
        self.rollout.look(Some(&self.revision), back).unwrap_or_default()
    }

    /// Returns the units that were taken back here, or are about to be. What cannot be read holds what replaces pods.
    pub(crate) fn taken_back(&self) -> BTreeSet<ObjectId> {
        let is_returned = |member: &Member| matches!(member.stage, Stage::Returned(_));
        let is_back = |record: &&Record| {
            record.back.contains_key(&self.cluster) || record.members.get(&self.cluster).is_some_and(is_returned)
        };
        let back =
            |known: &mut Known| known.ledger.units.iter().filter(is_back).map(|record| record.unit.clone()).collect();
        self.rollout.look(Some(&self.revision), back).unwrap_or_default()
    }

    /// Tells whether that is still wanted which is to go; another content has not failed. A round that was over at once has found
    /// that nothing else is wanted.
    fn still_wants_what_is_to_go(&self, record: &Record) -> bool {
        let is_same = |contents: &BTreeMap<ObjectId, String>| {
            contents.get(&record.unit) == record.back.get(&self.cluster).map(|back| &back.digest)
        };
        record.members.contains_key(&self.cluster) && lock(&self.contents).as_ref().is_none_or(is_same)
    }

    /// Forgets the way back of units of which something else is wanted here.
    pub(super) fn forget_what_is_wanted_no_more(&self, ledger: &mut Ledger) {
        for record in &mut ledger.units {
            if record.back.contains_key(&self.cluster) && !self.still_wants_what_is_to_go(record) {
                record.back.remove(&self.cluster);
            }
        }
    }

    fn others_are_under_way(&self) -> bool {
        let is_over =
            |part: &Option<Part>| matches!(part, Some(Part::Absent | Part::Looked { doing: Doing::Over, .. }));
        lock(&self.rollout.known).parts().iter().any(|(name, part)| *name != self.cluster && !is_over(part))
    }

    /// Notes the units that have what they had before, and those for which there is nothing to go back to.
    pub(crate) fn went_back(&self, back: &BTreeSet<ObjectId>, stays: &BTreeSet<ObjectId>) {
        if let Err(error) = self.note_back(back, stays) {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note what was taken back");
        }
    }

    fn note_back(&self, back: &BTreeSet<ObjectId>, stays: &BTreeSet<ObjectId>) -> Result<(), StateError> {
        let note = |known: &mut Known| {
            let of_them = |it: &&mut Record| back.contains(&it.unit) || stays.contains(&it.unit);
            for record in known.ledger.units.iter_mut().filter(of_them) {
                let Some(Back { failure, .. }) = record.back.remove(&self.cluster) else { continue };
                if let Some(member) = record.members.get_mut(&self.cluster).filter(|_| back.contains(&record.unit)) {
                    (member.stage, member.since) = (Stage::Returned(failure), self.now());
                }
            }
            ((), BTreeSet::new())
        };
        self.rollout.change((&self.revision, &self.cluster), note)?;
        self.rollout.news(self.now());
        Ok(())
    }
}

impl Rollout {
    /// Has the daemon begin rounds of clusters that go back.
    pub(super) fn nudge_all(&self, clusters: &BTreeSet<String>) {
        let nudges = lock(&self.nudges);
        for nudge in clusters.iter().filter_map(|cluster| nudges.get(cluster)) {
            nudge.notify_one();
        }
    }
}

impl RoundSettings {
    /// Tells whether something on the cluster may go back to what it had.
    pub(crate) fn may_go_back(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::may_go_back)
    }
}
