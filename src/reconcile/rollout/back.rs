//! The way back of a wave on which a change has failed: each of its clusters gets what was healthy there before.
//!
//! Which clusters go back is noted with the rollout, so that the next process goes on with it. A cluster does so at the end
//! of a round of its own, and waits from then on as all others do.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::record::{Failure, Ledger, Member, Record, Stage};
use super::waves::{self, Wave};
use super::{Doing, Part, Rollout, Turn};
use crate::basics::lock::lock;
use crate::config::gates::OnCluster;
use crate::reconcile::model::RoundSettings;
use crate::report::{ClusterReport, Mode};
use crate::state::StateError;

/// Notes which clusters go back because a cluster has failed in its last round; returns the others of them.
pub(super) fn mark(
    waves: &[Wave],
    before: &Ledger,
    ledger: &mut Ledger,
    (cluster, now): (&str, Timestamp),
) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    for record in &mut ledger.units {
        let has_failed = record.members.get(cluster).is_some_and(|member| matches!(member.stage, Stage::Halted(_)));
        let was = before.of(&record.unit).and_then(|record| record.members.get(cluster));
        if has_failed && was.is_some_and(|was| waves::is_on_trial(waves, cluster, was, now)) {
            let back = waves::go_back_with(waves, record, cluster);
            others.extend(back.iter().filter(|name| *name != cluster).cloned());
            record.back.extend(back);
        }
    }
    others
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
    /// Returns the gates of this cluster, and the healthy units of a round that they are asked about: those of which it is
    /// not known yet that their change is good, and whether it was seen not to be.
    pub(crate) fn gated(&self, report: &ClusterReport) -> (&[OnCluster], Vec<(ObjectId, bool)>) {
        let gates = self.rollout.gates.get(&self.cluster).map(Vec::as_slice).unwrap_or_default();
        if gates.is_empty() || self.mode != Mode::Apply {
            return (gates, Vec::new());
        }
        let ledger = self.rollout.ledger(&self.revision).unwrap_or_default();
        let healthy = report.units.iter().filter(|unit| unit.is_healthy()).map(|unit| &unit.unit);
        let stage = |unit| Some(&ledger.of(unit)?.members.get(&self.cluster)?.stage);
        let open = healthy.filter_map(|unit| match stage(unit)? {
            Stage::Going => Some((unit.clone(), false)),
            Stage::Halted(_) => Some((unit.clone(), true)),
            Stage::Healthy | Stage::Returned(_) => None,
        });
        (gates, open.collect())
    }

    /// Returns the units that go back on this cluster, with the reason, `tried` ones left out. Where rounds wait for each
    /// other, it waits until that is certain.
    pub(crate) async fn goes_back(
        &self,
        tried: &BTreeSet<ObjectId>,
        stop: &CancellationToken,
    ) -> BTreeMap<ObjectId, String> {
        if !self.rollout.goes_back || self.mode != Mode::Apply {
            return BTreeMap::new();
        }
        loop {
            let changed = self.rollout.changed.notified();
            let (units, has_some) = self.back(tried);
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
    fn back(&self, tried: &BTreeSet<ObjectId>) -> (BTreeMap<ObjectId, String>, bool) {
        let ledger = self.rollout.ledger(&self.revision).unwrap_or_default();
        let here = ledger.units.iter().filter(|record| !tried.contains(&record.unit));
        let back = here.clone().filter(|record| record.back.contains(&self.cluster));
        let units =
            back.map(|record| (record.unit.clone(), record.failure(&self.cluster).words(&self.cluster))).collect();
        let is_member = |record: &Record| {
            record.members.get(&self.cluster).is_some_and(|member| !matches!(member.stage, Stage::Returned(_)))
        };
        (units, here.clone().any(is_member))
    }

    fn others_are_under_way(&self) -> bool {
        let is_over =
            |part: &Option<Part>| matches!(part, Some(Part::Absent | Part::Looked { doing: Doing::Over, .. }));
        self.rollout.parts().iter().any(|(name, part)| *name != self.cluster && !is_over(part))
    }

    /// Notes the units that have what they had before, and those for which there is nothing to go back to.
    pub(crate) fn went_back(&self, back: &BTreeSet<ObjectId>, stays: &BTreeSet<ObjectId>) {
        if let Err(error) = self.rollout.alone(|| self.note_back(back, stays)) {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note what was taken back");
        }
    }

    fn note_back(&self, back: &BTreeSet<ObjectId>, stays: &BTreeSet<ObjectId>) -> Result<(), StateError> {
        let mut ledger = self.rollout.ledger(&self.revision)?;
        for record in ledger.units.iter_mut().filter(|it| back.contains(&it.unit) || stays.contains(&it.unit)) {
            let failure = record.failure(&self.cluster);
            record.back.remove(&self.cluster);
            if let Some(member) = record.members.get_mut(&self.cluster).filter(|_| back.contains(&record.unit)) {
                (member.stage, member.since) = (Stage::Returned(failure), self.now());
            }
        }
        self.rollout.write(&ledger)?;
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
        self.turn.as_ref().is_some_and(|turn| turn.rollout.goes_back && turn.mode == Mode::Apply)
    }
}
