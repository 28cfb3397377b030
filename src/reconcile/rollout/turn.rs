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
use super::{DELIBERATION, Doing, Part, Rollout, unknown};
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
    /// It is about some units only.
    is_partial: bool,
    now: Timestamp,
    /// The reasons for which units wait, as they were last told.
    told: Mutex<Answer>,
    has_ended: AtomicBool,
}

/// The answer to a round that asks what it may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The units that wait.
    pub waits: BTreeMap<ObjectId, Wait>,
    /// The reason why nothing may be deleted.
    pub deletions: Option<Wait>,
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
        (mode, is_partial, now): (Mode, bool, Timestamp),
    ) -> Self {
        let (rollout, cluster, told) = (Arc::clone(rollout), cluster.to_owned(), Mutex::default());
        let has_ended = AtomicBool::new(false);
        let turn = Self { rollout, cluster, target, revision, mode, is_partial, now, told, has_ended };
        if turn.takes_part() {
            turn.rollout.parts().insert(turn.cluster.clone(), Some(Part::Running));
        }
        turn
    }

    /// Tells whether others see what it is about to do: also where it is only planned, if they plan beside each other.
    fn takes_part(&self) -> bool {
        self.mode == Mode::Apply || (self.mode == Mode::Plan && self.rollout.is_waiting)
    }

    /// Asks to replace the pods of units, each with the digest of what it would become, and to delete something of a number
    /// of units; returns what waits. What may go is noted. Where nothing is changed only rollouts that are under way are in
    /// the way.
    pub(crate) fn ask(&self, units: &BTreeMap<ObjectId, String>, deletes: usize) -> Answer {
        let waits = match self.mode {
            _ if self.rollout.waves.is_empty() => Ok(BTreeMap::new()),
            Mode::Apply => self.rollout.alone(|| self.try_ask(units)),
            Mode::Plan | Mode::Report => {
                self.rollout.ledger(&self.revision).map(|mut ledger| self.decide(&mut ledger, None, units))
            }
        };
        // What nobody would remember would go on to the next cluster.
        let waits = waits.unwrap_or_else(|error| all(units, &unknown(&error)));
        if !self.takes_part() {
            return Answer { waits, deletions: None };
        }
        self.becomes(self.looked(units.keys().map(|unit| (unit.clone(), false)).collect(), deletes, Doing::Going));
        let deletions = self.rollout.deletion(&self.rollout.parts(), (&self.cluster, &self.target, deletes), self.now);
        if deletions.as_ref().is_some_and(|wait| wait.guard == Guard::RolloutDeletion) {
            self.rollout.news_after(DELIBERATION, self.now);
        }
        let answer = Answer { waits, deletions };
        lock(&self.told).clone_from(&answer);
        answer
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
            let verdict = paused.as_ref().map_or(verdict, |wait| Verdict::Wait(None, wait.clone()));
            match verdict {
                Verdict::First | Verdict::Go => {
                    if verdict == Verdict::First {
                        record.first = Some(self.cluster.clone());
                    }
                    record.wants.remove(&self.cluster);
                    record.members.insert(self.cluster.clone(), Member::going(self.now));
                }
                Verdict::Wait(_, wait) => {
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
        if let (Some(told), Some(Some(Part::Looked { deletes, .. }))) = (&told.deletions, parts.get(&self.cluster)) {
            let now = self.rollout.deletion(&parts, (&self.cluster, &self.target, *deletes), self.now);
            if now.as_ref().map(|wait| wait.guard) != Some(told.guard) {
                return Prospect::Due;
            }
            let is_under_way = |part: &Option<Part>| !matches!(part, Some(Part::Absent | Part::Looked { .. }));
            is_open = told.guard == Guard::RolloutDeletion && parts.values().any(is_under_way);
        }
        // A plan shows what would have to wait, and does not.
        for (unit, told) in told.waits.iter().filter(|_| self.mode == Mode::Apply) {
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
        if !self.takes_part() {
            return;
        }
        if self.mode == Mode::Apply
            && !self.rollout.waves.is_empty()
            && let Err(error) = self.rollout.alone(|| self.note(report))
        {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note how far rollouts are");
        }
        let waiting: BTreeMap<ObjectId, bool> =
            report.waiting_for_rollout().map(|(unit, guard)| (unit.clone(), guard != Guard::Rollout)).collect();
        let is_of_use = matches!(report.state, ClusterState::Done | ClusterState::Planned) || !waiting.is_empty();
        let deletes = match self.rollout.parts().get(&self.cluster) {
            Some(Some(Part::Looked { deletes, .. })) if self.mode == Mode::Plan || report.waits_to_delete() => *deletes,
            _ => 0,
        };
        self.becomes(if is_of_use { self.looked(waiting, deletes, doing) } else { Part::Absent });
    }

    fn looked(&self, rolls: BTreeMap<ObjectId, bool>, deletes: usize, doing: Doing) -> Part {
        Part::Looked { target: self.target.clone(), rolls, deletes, doing }
    }

    /// Notes how the units of the cluster are.
    fn note(&self, report: &ClusterReport) -> Result<(), StateError> {
        let before = self.rollout.ledger(&self.revision)?;
        let mut ledger = before.clone();
        ledger.see(&self.cluster, report, self.is_partial, self.now);
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
            Some(Some(Part::Looked { target, rolls, doing: Doing::Waiting, .. })) => (target, rolls),
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
        if self.takes_part() && !self.has_ended.load(Ordering::Relaxed) {
            self.becomes(Part::Absent);
        }
    }
}
