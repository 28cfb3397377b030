//! The place of a cluster in the rollouts of its sync, from the beginning of its round to the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::back::Trial;
use super::record::{Ledger, Member, Pause, Record};
use super::waves::Verdict;
use super::{DELIBERATION, Doing, Part, Rollout, uncounted, unknown};
use crate::basics::lock::lock;
use crate::report::{ClusterReport, ClusterState, Mode, UnitReport, UnitState};
use crate::state::StateError;

/// The place of a cluster.
pub struct Turn {
    pub(super) rollout: Arc<Rollout>,
    pub(super) cluster: String,
    /// Everything that is to be rolled out: with other files or settings it is another.
    target: String,
    pub(super) revision: String,
    pub(super) mode: Mode,
    /// It is about some units only.
    is_partial: bool,
    /// The time at which the round began, and since when that is.
    now: Timestamp,
    begun: Instant,
    /// The reasons for which units wait, as they were last told.
    told: Mutex<Answer>,
    has_ended: AtomicBool,
    /// Whether noting what it asked for has failed.
    is_unnoted: AtomicBool,
    /// The digests of what is wanted of each unit; nothing where nothing has changed since the last round.
    pub(super) contents: Mutex<Option<BTreeMap<ObjectId, String>>>,
}

/// All that a round is about to do for which others count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The units whose pods are replaced, each with the digest of what it would become.
    pub units: BTreeMap<ObjectId, String>,
    /// The units that stay as they are, because something of them was refused or is held.
    pub withheld: BTreeSet<ObjectId>,
    /// The number of units of which something is deleted.
    pub deletes: usize,
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
    /// Its turn has come, if nobody else is faster.
    Come,
    /// It is looked at again.
    Due,
    /// Its turn may come.
    Open,
    /// It does not come in this process.
    None,
}

impl Asked {
    /// Tells whether there is nothing that anybody would have to remember.
    fn is_empty(&self, rollout: &Rollout) -> bool {
        (self.units.is_empty() || rollout.waves.is_empty()) && self.deletes == 0
    }

    /// Returns the answer where nothing can be remembered.
    fn refused(&self, rollout: &Rollout, error: &StateError) -> Answer {
        let units = self.units.keys().filter(|_| !rollout.waves.is_empty());
        let waits = units.map(|unit| (unit.clone(), unknown(error))).collect();
        Answer { waits, deletions: (self.deletes > 0).then(|| uncounted(error)) }
    }
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
        let (has_ended, is_unnoted) = (AtomicBool::new(false), AtomicBool::new(false));
        let begun = Instant::now();
        let contents = Mutex::default();
        let turn = Self {
            rollout,
            cluster,
            target,
            revision,
            mode,
            is_partial,
            now,
            begun,
            told,
            has_ended,
            is_unnoted,
            contents,
        };
        if turn.takes_part() {
            turn.rollout.parts().insert(turn.cluster.clone(), Some(Part::Running));
        }
        turn
    }

    /// Says what is wanted, by the digests of all units.
    pub(crate) fn wants(&self, contents: BTreeMap<ObjectId, String>) {
        *lock(&self.contents) = Some(contents);
    }

    /// Tells whether others see what it is about to do: also where it is only planned, if they plan beside each other.
    fn takes_part(&self) -> bool {
        self.mode == Mode::Apply || (self.mode == Mode::Plan && self.rollout.is_waiting)
    }

    /// Asks for its turn with all that is to be done; returns what waits, and notes what may go. `lift` returns those of the
    /// units that wait which a person has let go. Where nothing is changed only rollouts that are under way are in the way.
    pub(crate) fn ask(&self, asked: &Asked, lift: impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>) -> Answer {
        let is_noted = self.mode == Mode::Apply && !asked.is_empty(&self.rollout);
        let answer = if is_noted {
            self.rollout.alone(|| self.try_ask(asked, &lift))
        } else {
            self.rollout.ledger(&self.revision).map(|mut ledger| self.answer(&mut ledger, asked, &lift))
        };
        self.is_unnoted.store(answer.is_err(), Ordering::Relaxed);
        // What nobody would remember would go on to the next cluster.
        let (answer, lifted) = answer.unwrap_or_else(|error| (asked.refused(&self.rollout, &error), BTreeSet::new()));
        if !self.takes_part() {
            return Answer { deletions: None, ..answer };
        }
        let guard = |unit| answer.waits.get(unit).filter(|_| !lifted.contains(unit)).map(|wait| wait.guard);
        self.becomes(Part::Looked {
            target: self.target.clone(),
            rolls: asked.units.keys().map(|unit| (unit.clone(), guard(unit))).collect(),
            withheld: asked.withheld.clone(),
            deletes: asked.deletes,
            told: answer.deletions.as_ref().map(|wait| wait.guard),
            doing: Doing::Going,
        });
        if answer.deletions.as_ref().is_some_and(|wait| wait.guard == Guard::RolloutDeletion) {
            self.rollout.news_after(DELIBERATION, self.now());
        }
        let mut told = answer.clone();
        told.waits.retain(|unit, _| !lifted.contains(unit));
        *lock(&self.told) = told;
        answer
    }

    fn try_ask(
        &self,
        asked: &Asked,
        lift: &impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>,
    ) -> Result<(Answer, BTreeSet<ObjectId>), StateError> {
        let before = self.rollout.ledger(&self.revision)?;
        let mut ledger = before.clone();
        let answer = self.answer(&mut ledger, asked, lift);
        if ledger != before {
            self.rollout.write(&ledger)?;
        }
        self.rollout.news_after_soaks(&ledger, self.now());
        Ok(answer)
    }

    /// Decides about everything; returns also which units go because a person has let them.
    fn answer(
        &self,
        ledger: &mut Ledger,
        asked: &Asked,
        lift: &impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>,
    ) -> (Answer, BTreeSet<ObjectId>) {
        let waits = if self.rollout.waves.is_empty() { BTreeMap::new() } else { self.decide(ledger, &asked.units) };
        let lifted = if waits.is_empty() { BTreeSet::new() } else { lift(&waits) };
        for record in ledger.units.iter_mut().filter(|record| lifted.contains(&record.unit)) {
            self.goes(record, asked.units.get(&record.unit));
            // Whoever agrees to a beginning does not agree to whatever becomes of it.
            let is_as_it_is = waits.get(&record.unit).is_some_and(|wait| wait.guard == Guard::RolloutHalted);
            if let Some(member) = record.members.get_mut(&self.cluster).filter(|_| is_as_it_is) {
                member.stays = true;
            }
        }
        let deletes = (self.cluster.as_str(), self.target.as_str(), asked.deletes);
        if self.takes_part() {
            self.rollout.count(ledger, deletes);
        }
        let deletions = self.rollout.deletion(ledger, deletes, self.now());
        (Answer { waits, deletions }, lifted)
    }

    /// Notes that the change of a unit is on its way here.
    fn goes(&self, record: &mut Record, digest: Option<&String>) {
        let known = record.wants.remove(&self.cluster);
        let digest = digest.cloned().or(known).unwrap_or_default();
        let is_same = |other: &String| !digest.is_empty() && *other == digest;
        // Somebody else has changed what it had: that is nothing new.
        let had = record.members.get(&self.cluster).filter(|member| is_same(&member.digest));
        let stays = had.is_some_and(|had| had.stays) || record.good.get(&self.cluster).is_some_and(is_same);
        let member = Member { stays, digest, ..Member::going(self.now()) };
        record.members.insert(self.cluster.clone(), member);
        record.back.remove(&self.cluster);
    }

    /// Returns the time now: that of the beginning, and what has passed since.
    pub(super) fn now(&self) -> Timestamp {
        let passed = Duration::from_secs(self.begun.elapsed().as_secs());
        self.now.checked_add(passed).unwrap_or(self.now)
    }

    /// Decides about each unit, and notes it.
    fn decide(&self, ledger: &mut Ledger, units: &BTreeMap<ObjectId, String>) -> BTreeMap<ObjectId, Wait> {
        let mut waits = BTreeMap::new();
        let (parts, now) = (self.rollout.parts(), self.now());
        // Where nothing is changed others are not asked what they do.
        let parts = (self.mode == Mode::Apply).then_some(&*parts);
        let paused = ledger.paused.as_ref().map(|pause| pause.wait(&self.rollout.sync));
        for (unit, digest) in units {
            let known = ledger.units.iter_mut().find(|record| record.unit == *unit);
            let record = match known {
                Some(record) if record.target == self.target || record.is_for(&self.cluster, digest) => record,
                _ => ledger.begin((unit, &self.cluster), (&self.target, &self.revision), now),
            };
            record.forget_returned(&self.cluster, digest);
            let verdict = self.rollout.verdict(record, parts, (&self.cluster, &self.target), now);
            let verdict = paused.as_ref().map_or(verdict, |wait| Verdict::Wait(None, wait.clone()));
            match verdict {
                Verdict::First | Verdict::Go => {
                    if verdict == Verdict::First {
                        record.first = Some(self.cluster.clone());
                    }
                    self.goes(record, Some(digest));
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
                // Many may wait for one place, and a round that does not get it is in vain.
                Prospect::Come if self.rollout.alone(|| self.try_take()).unwrap_or(true) => return true,
                Prospect::Come => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Prospect::Open => {}
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = changed => {}
            }
        }
    }

    /// Takes the turn of the units whose turn has come; tells whether there are any. What cannot be noted is told in the next
    /// round.
    fn try_take(&self) -> Result<bool, StateError> {
        let mut ledger = self.rollout.ledger(&self.revision)?;
        let (parts, now) = (self.rollout.parts().clone(), self.now());
        let mut has_taken = false;
        for unit in lock(&self.told).waits.keys().filter(|_| ledger.paused.is_none()) {
            // It may be another rollout by now, of which this cluster knows nothing.
            let is_it = |record: &&mut Record| record.unit == *unit && record.wants.contains_key(&self.cluster);
            let Some(record) = ledger.units.iter_mut().find(is_it) else { return Ok(true) };
            let verdict = self.rollout.verdict(record, Some(&parts), (&self.cluster, &self.target), now);
            if verdict == Verdict::First {
                record.first = Some(self.cluster.clone());
            }
            if matches!(verdict, Verdict::First | Verdict::Go) {
                self.goes(record, None);
                has_taken = true;
            }
        }
        if has_taken {
            self.rollout.write(&ledger)?;
        }
        Ok(has_taken)
    }

    fn prospect(&self) -> Prospect {
        // In this order: whoever is over has noted how it ended before, so that nobody is taken for over and not healthy.
        let parts = self.rollout.parts().clone();
        let Some(ledger) = self.rollout.ledger(&self.revision).ok().filter(|_| self.rollout.is_waiting) else {
            return Prospect::None;
        };
        let told = lock(&self.told);
        let (mut is_open, mut is_stale, time) = (false, false, self.now());
        if let (Some(told), Some(Some(Part::Looked { deletes, .. }))) = (&told.deletions, parts.get(&self.cluster)) {
            let now = self.rollout.deletion(&ledger, (&self.cluster, &self.target, *deletes), time);
            if now.as_ref().map(|wait| wait.guard) != Some(told.guard) {
                return Prospect::Due;
            }
            let is_under_way = |part: &Option<Part>| !matches!(part, Some(Part::Absent | Part::Looked { .. }));
            is_open = told.guard == Guard::RolloutDeletion && parts.values().any(is_under_way);
        }
        // A plan shows what would have to wait, and does not.
        for (unit, told) in told.waits.iter().filter(|_| self.mode == Mode::Apply) {
            match self.rollout.expected(&ledger, &parts, (&self.cluster, &self.target, unit), time) {
                _ if ledger.paused.is_some() => {}
                Verdict::First | Verdict::Go => return Prospect::Come,
                Verdict::Wait(_, wait) if wait.guard != told.guard => return Prospect::Due,
                Verdict::Wait(on, wait) => {
                    is_stale |= wait != *told;
                    let mut seen = BTreeSet::from([self.cluster.clone()]);
                    is_open |= on.is_some_and(|on| self.rollout.is_active(&ledger, &parts, &on, time, &mut seen));
                }
            }
        }
        // It may wait for one cluster after the other, and says in the end for which.
        match (is_open, is_stale) {
            (true, _) => Prospect::Open,
            (false, true) => Prospect::Due,
            (false, false) => Prospect::None,
        }
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
        let rolls: BTreeMap<ObjectId, Option<Guard>> =
            report.waiting_for_rollout().map(|(unit, guard)| (unit.clone(), Some(guard))).collect();
        let is_of_use = match report.state {
            ClusterState::Done | ClusterState::Planned | ClusterState::Stopped => true,
            // Something was done, and something failed.
            ClusterState::Failed => report.error.is_none(),
            _ => !rolls.is_empty(),
        };
        let is_withheld = |unit: &&UnitReport| unit.state == UnitState::Held && !rolls.contains_key(&unit.unit);
        let withheld = report.units.iter().filter(is_withheld).map(|unit| unit.unit.clone()).collect();
        let deletes = match self.rollout.parts().get(&self.cluster) {
            Some(Some(Part::Looked { deletes, .. }))
                if self.mode == Mode::Plan || report.waits_to_delete().is_some() =>
            {
                *deletes
            }
            _ => 0,
        };
        // What could not be noted waits for the next round, and not for news.
        let told = report.waits_to_delete().filter(|_| !self.is_unnoted.load(Ordering::Relaxed));
        let target = self.target.clone();
        let looked = Part::Looked { target, rolls, withheld, deletes, told, doing };
        if is_of_use {
            self.rollout.looked_at((&self.cluster, &self.target, 0));
        }
        self.becomes(if is_of_use { looked } else { Part::Absent });
    }

    /// Notes how the units of the cluster are.
    fn note(&self, report: &ClusterReport) -> Result<(), StateError> {
        let before = self.rollout.ledger(&self.revision)?;
        let mut ledger = before.clone();
        self.forget_what_is_wanted_no_more(&mut ledger);
        ledger.see(&self.cluster, report, self.is_partial, self.now());
        let mut back = BTreeSet::new();
        if let Some(patience) = self.rollout.goes_back {
            let changed = report.changes_in(Mode::Apply).map(|step| &step.unit).collect();
            let trial =
                Trial { waves: &self.rollout.waves, cluster: &self.cluster, changed, patience, now: self.now() };
            back = trial.judge(&before, &mut ledger);
        }
        if ledger != before {
            info!(sync = self.rollout.sync, cluster = self.cluster, revision = self.revision, "rollout goes on");
            self.rollout.write(&ledger)?;
            self.rollout.news(self.now());
            self.rollout.news_after_soaks(&ledger, self.now());
            self.rollout.nudge_all(&back);
        }
        Ok(())
    }

    fn becomes(&self, part: Part) {
        let before = self.rollout.parts().insert(self.cluster.clone(), Some(part.clone()));
        if before.flatten() != Some(part) {
            self.rollout.news(self.now());
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
            guard: Guard::RolloutPaused,
            message,
            hint: format!("`gatewright rollout resume {sync}` lets them go on"),
            why: None,
        }
    }
}

impl Drop for Turn {
    /// A round that ended in a bug keeps nobody waiting.
    fn drop(&mut self) {
        if self.takes_part() && !self.has_ended.load(Ordering::Relaxed) {
            self.becomes(Part::Absent);
        }
    }
}
