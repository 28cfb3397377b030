//! The place of a cluster in the rollouts of its sync, from the beginning of its round to the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::record::{Ledger, Member, Pause};
use super::waves::Verdict;
use super::{Doing, Part, Rollout, unknown};
use crate::basics::lock::lock;
use crate::report::{ClusterReport, ClusterState, Mode};
use crate::state::StateError;

/// The place of a cluster.
pub struct Turn {
    rollout: Arc<Rollout>,
    cluster: String,
    /// Everything that is to be rolled out: with other files or settings it is another.
    target: String,
    revision: String,
    mode: Mode,
    now: Timestamp,
    /// The reasons for which units wait, as they were last told.
    told: Mutex<BTreeMap<ObjectId, Wait>>,
    has_ended: AtomicBool,
}

/// The prospects of what waits.
enum Prospect {
    /// It is looked at again.
    Due,
    /// Its turn may come.
    Open,
    /// It does not come in this process.
    None,
}

impl Turn {
    /// Takes part for a cluster whose round begins.
    pub(crate) fn new(
        rollout: &Arc<Rollout>,
        cluster: &str,
        (target, revision): (String, String),
        (mode, now): (Mode, Timestamp),
    ) -> Self {
        let (rollout, cluster, told) = (Arc::clone(rollout), cluster.to_owned(), Mutex::default());
        let turn = Self { rollout, cluster, target, revision, mode, now, told, has_ended: AtomicBool::new(false) };
        if mode == Mode::Apply {
            turn.rollout.parts().insert(turn.cluster.clone(), Some(Part::Running));
        }
        turn
    }

    /// Asks to replace the pods of units, each with the digest of what it would become, and returns those that wait. What
    /// may go is noted. Where nothing is changed only rollouts that are under way are in the way.
    pub(crate) fn ask(&self, units: &BTreeMap<ObjectId, String>) -> BTreeMap<ObjectId, Wait> {
        let waits = match self.mode {
            Mode::Apply => self.rollout.alone(|| self.try_ask(units)),
            Mode::Plan | Mode::Report => {
                self.rollout.ledger(&self.revision).map(|mut ledger| self.decide(&mut ledger, None, units))
            }
        };
        // What nobody would remember would go on to the next cluster.
        let waits = waits.unwrap_or_else(|error| all(units, &unknown(&error)));
        if self.mode == Mode::Apply {
            lock(&self.told).clone_from(&waits);
            self.becomes(self.looked(units.keys().map(|unit| (unit.clone(), false)).collect(), Doing::Going));
        }
        waits
    }

    fn try_ask(&self, units: &BTreeMap<ObjectId, String>) -> Result<BTreeMap<ObjectId, Wait>, StateError> {
        let before = self.rollout.ledger(&self.revision)?;
        let mut ledger = before.clone();
        let parts = self.rollout.parts();
        let waits = self.decide(&mut ledger, Some(&parts), units);
        if ledger != before {
            self.rollout.write(&ledger)?;
        }
        Ok(waits)
    }

    /// Decides about each unit, and notes it.
    fn decide(
        &self,
        ledger: &mut Ledger,
        parts: Option<&BTreeMap<String, Option<Part>>>,
        units: &BTreeMap<ObjectId, String>,
    ) -> BTreeMap<ObjectId, Wait> {
        let mut waits = BTreeMap::new();
        let paused = ledger.paused.as_ref().map(|pause| pause.wait(&self.rollout.sync));
        for (unit, digest) in units {
            let known = ledger.units.iter_mut().find(|record| record.unit == *unit);
            let record = match known {
                Some(record) if record.target == self.target || record.wants.get(&self.cluster) == Some(digest) => {
                    record
                }
                _ => ledger.begin(unit, (&self.target, &self.revision), self.now),
            };
            let verdict = self.rollout.verdict(record, parts, (&self.cluster, &self.target), self.now);
            match (&paused, verdict) {
                (Some(wait), _) => drop(waits.insert(unit.clone(), wait.clone())),
                (None, verdict @ (Verdict::First | Verdict::Go)) => {
                    if verdict == Verdict::First {
                        record.first = Some(self.cluster.clone());
                    }
                    record.wants.remove(&self.cluster);
                    record.members.insert(self.cluster.clone(), Member::going(self.now));
                }
                (None, Verdict::Wait(_, wait)) => {
                    record.wants.insert(self.cluster.clone(), digest.clone());
                    waits.insert(unit.clone(), wait);
                }
            }
        }
        waits
    }

    /// Waits until a round is to look again, because the turn of a unit has come, or it waits for another reason than was
    /// told; `false`: in this process it never will.
    pub(crate) async fn comes(&self, stop: &CancellationToken) -> bool {
        loop {
            let changed = self.rollout.changed.notified();
            match self.prospect() {
                Prospect::Due => return true,
                Prospect::None => return false,
                Prospect::Open => {}
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = changed => {}
            }
        }
    }

    fn prospect(&self) -> Prospect {
        let Some(ledger) = self.rollout.ledger(&self.revision).ok().filter(|_| self.rollout.is_waiting) else {
            return Prospect::None;
        };
        let (parts, told) = (self.rollout.parts(), lock(&self.told));
        let mut is_open = false;
        for (unit, told) in told.iter() {
            match self.rollout.expected(&ledger, &parts, (&self.cluster, &self.target, unit), self.now) {
                _ if ledger.paused.is_some() => {}
                Verdict::Wait(_, wait) if wait != *told => return Prospect::Due,
                Verdict::First | Verdict::Go => return Prospect::Due,
                Verdict::Wait(Some(on), _) => {
                    let mut seen = BTreeSet::from([self.cluster.clone()]);
                    is_open |= self.rollout.is_active(&ledger, &parts, &on, self.now, &mut seen);
                }
                Verdict::Wait(None, _) => {}
            }
        }
        if is_open { Prospect::Open } else { Prospect::None }
    }

    /// Sees how a round has ended, before that of another cluster is waited for.
    pub(crate) fn rests(&self, report: &ClusterReport) {
        self.sees(report, Doing::Waiting);
    }

    /// Ends the round.
    pub(crate) fn end(&self, report: &ClusterReport) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.sees(report, Doing::Over);
    }

    fn sees(&self, report: &ClusterReport, doing: Doing) {
        if self.mode != Mode::Apply {
            return;
        }
        if let Err(error) = self.rollout.alone(|| self.note(report)) {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note how far rollouts are");
        }
        let waiting: BTreeMap<ObjectId, bool> =
            report.waiting_for_rollout().map(|(unit, guard)| (unit.clone(), guard != Guard::Rollout)).collect();
        let is_of_use = report.state == ClusterState::Done || !waiting.is_empty();
        self.becomes(if is_of_use { self.looked(waiting, doing) } else { Part::Absent });
    }

    fn looked(&self, rolls: BTreeMap<ObjectId, bool>, doing: Doing) -> Part {
        Part::Looked { target: self.target.clone(), rolls, doing }
    }

    /// Notes how the units of the cluster are.
    fn note(&self, report: &ClusterReport) -> Result<(), StateError> {
        let before = self.rollout.ledger(&self.revision)?;
        let mut ledger = before.clone();
        ledger.see(&self.cluster, report, self.now);
        if ledger != before {
            info!(sync = self.rollout.sync, cluster = self.cluster, revision = self.revision, "rollout goes on");
            self.rollout.write(&ledger)?;
            self.rollout.news(self.now);
            let soaks = self.rollout.waves.iter().map(|wave| wave.soak).filter(|soak| !soak.is_zero());
            soaks.for_each(|soak| self.rollout.news_after(soak, self.now));
        }
        Ok(())
    }

    fn becomes(&self, part: Part) {
        let before = self.rollout.parts().insert(self.cluster.clone(), Some(part.clone()));
        if before.flatten() != Some(part) {
            self.rollout.news(self.now);
        }
    }
}

impl Rollout {
    /// Tells whether the round of a cluster may still do something while this process runs: it is under way, or waits for
    /// one that is.
    fn is_active(
        &self,
        ledger: &Ledger,
        parts: &BTreeMap<String, Option<Part>>,
        cluster: &str,
        now: Timestamp,
        seen: &mut BTreeSet<String>,
    ) -> bool {
        let (target, rolls) = match parts.get(cluster) {
            Some(None | Some(Part::Running | Part::Looked { doing: Doing::Going, .. })) => return true,
            None | Some(Some(Part::Absent | Part::Looked { doing: Doing::Over, .. })) => return false,
            Some(Some(Part::Looked { target, rolls, doing: Doing::Waiting })) => (target, rolls),
        };
        // Who waits for whoever waits for it waits for nobody.
        seen.insert(cluster.to_owned())
            && rolls.keys().any(|unit| match self.expected(ledger, parts, (cluster, target, unit), now) {
                Verdict::First | Verdict::Go => true,
                Verdict::Wait(Some(on), _) => self.is_active(ledger, parts, &on, now, seen),
                Verdict::Wait(None, _) => false,
            })
    }
}

impl Pause {
    fn wait(&self, sync: &str) -> Wait {
        let message = format!("the rollouts of this sync are {}", self.words());
        Wait {
            guard: Guard::RolloutHalted,
            message,
            hint: format!("`gatewright rollout resume {sync}` lets them go on"),
        }
    }
}

fn all(units: &BTreeMap<ObjectId, String>, wait: &Wait) -> BTreeMap<ObjectId, Wait> {
    units.keys().map(|unit| (unit.clone(), wait.clone())).collect()
}

impl Drop for Turn {
    /// A round that ended in a bug keeps nobody waiting.
    fn drop(&mut self) {
        if self.mode == Mode::Apply && !self.has_ended.load(Ordering::Relaxed) {
            self.becomes(Part::Absent);
        }
    }
}
