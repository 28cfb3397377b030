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
use super::deletions::{DELIBERATION, uncounted};
use super::known::{Asks, Doing, Known, Part};
use super::recall::Standing;
use super::record::{Member, Record};
use super::waves::Verdict;
use super::{Rollout, unknown};
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
    /// What is kept on the cluster itself; nothing as long as nobody has looked.
    pub(super) standing: Mutex<Option<Standing>>,
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

/// The decision about a unit for which a cluster has asked.
struct Decision {
    unit: ObjectId,
    /// Its rollout, where that begins or is not as it is noted.
    record: Option<Record>,
    verdict: Verdict,
}

impl Decision {
    fn wait(&self) -> Option<(ObjectId, Wait)> {
        match &self.verdict {
            Verdict::First | Verdict::Go => None,
            Verdict::Wait(_, wait) => Some((self.unit.clone(), wait.clone())),
        }
    }
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
        let (standing, contents) = (Mutex::default(), Mutex::default());
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
            standing,
            contents,
        };
        if turn.takes_part() {
            lock(&turn.rollout.known).takes(&turn.cluster, Part::Running);
        }
        turn
    }

    /// Says what is wanted, by the digests of all units.
    pub(crate) fn wants(&self, contents: BTreeMap<ObjectId, String>) {
        *lock(&self.contents) = Some(contents);
    }

    /// Returns the units whose change is on its way here since an earlier round. What cannot be read is told elsewhere.
    pub(crate) fn on_the_way(&self) -> BTreeSet<ObjectId> {
        let is_here = |record: &&Record| record.members.get(&self.cluster).is_some_and(Member::is_on_the_way);
        let here = |known: &mut Known| known.ledger.units.iter().filter(is_here).map(|it| it.unit.clone()).collect();
        if self.mode == Mode::Apply { self.rollout.look(None, here).unwrap_or_default() } else { BTreeSet::new() }
    }

    /// Tells whether others see what it is about to do: also where it is only planned, if they plan beside each other.
    fn takes_part(&self) -> bool {
        self.mode == Mode::Apply || (self.mode == Mode::Plan && self.rollout.is_waiting)
    }

    /// Asks for its turn with all that is to be done; returns what waits, and notes what may go. `lift` returns those of the
    /// units that wait which a person has let go. Where nothing is changed only rollouts that are under way are in the way.
    pub(crate) fn ask(&self, asked: &Asked, lift: impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>) -> Answer {
        let answer = if self.mode == Mode::Apply && !asked.is_empty(&self.rollout) {
            self.ask_and_note(asked, &lift)
        } else {
            self.rollout.look(Some(&self.revision), |known| self.answer(known, asked, &lift).0)
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

    /// Asks, and notes what becomes of it.
    fn ask_and_note(
        &self,
        asked: &Asked,
        lift: &impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>,
    ) -> Result<(Answer, BTreeSet<ObjectId>), StateError> {
        let ask = |known: &mut Known| {
            known.count(self.asks(), asked.deletes);
            let ((answer, lifted), decisions) = self.answer(known, asked, lift);
            if self.rollout.unread(known).is_some() {
                // What would be noted now would count as newer than what is kept on the clusters.
                return ((answer, lifted), BTreeSet::new());
            }
            self.carry_out(known, &asked.units, decisions);
            for unit in &lifted {
                self.lets_go(known, (unit, asked.units.get(unit)), answer.waits.get(unit).map(|wait| wait.guard));
            }
            self.news_after_soaks(known);
            ((answer, lifted), BTreeSet::new())
        };
        self.rollout.change((&self.revision, &self.cluster), ask).map(|(answered, _)| answered)
    }

    fn asks(&self) -> Asks<'_> {
        Asks { cluster: &self.cluster, target: &self.target, now: self.now() }
    }

    /// Decides about everything; returns also which units go because a person has let them.
    fn answer(
        &self,
        known: &mut Known,
        asked: &Asked,
        lift: &impl Fn(&BTreeMap<ObjectId, Wait>) -> BTreeSet<ObjectId>,
    ) -> ((Answer, BTreeSet<ObjectId>), Vec<Decision>) {
        let decisions = if self.rollout.waves.is_empty() { Vec::new() } else { self.decide(known, &asked.units) };
        let waits: BTreeMap<ObjectId, Wait> = decisions.iter().filter_map(Decision::wait).collect();
        let lifted = if waits.is_empty() { BTreeSet::new() } else { lift(&waits) };
        if self.takes_part() {
            known.looked_at(self.asks(), asked.deletes);
        }
        let deletions = self.rollout.deletion(known, self.asks(), asked.deletes);
        ((Answer { waits, deletions }, lifted), decisions)
    }

    /// Notes that a unit goes that would have had to wait: a person has let it.
    fn lets_go(&self, known: &mut Known, (unit, digest): (&ObjectId, Option<&String>), guard: Option<Guard>) {
        let Some(record) = known.ledger.of_mut(unit) else { return };
        self.goes(record, digest);
        // Whoever agrees to a beginning does not agree to whatever becomes of it.
        let is_as_it_is = guard == Some(Guard::RolloutHalted);
        if let Some(member) = record.members.get_mut(&self.cluster).filter(|_| is_as_it_is) {
            member.stays = true;
        }
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

    /// Decides about each unit.
    fn decide(&self, known: &Known, units: &BTreeMap<ObjectId, String>) -> Vec<Decision> {
        let (asks, waves) = (self.asks(), &self.rollout.waves);
        // Where nothing is changed others are not asked what they do.
        let with_parts = self.mode == Mode::Apply;
        let stopped = self.rollout.stopped(known);
        let decide = |(unit, digest): (&ObjectId, &String)| {
            let last = known.ledger.of(unit);
            let is_it = |record: &&Record| record.target == self.target || record.is_for(&self.cluster, digest);
            let (record, verdict) = match last.filter(is_it) {
                Some(record) if !record.is_to_forget(&self.cluster, digest) => {
                    (None, known.verdict(waves, record, asks, with_parts))
                }
                same => {
                    let about = ((unit, self.cluster.as_str()), (self.target.as_str(), self.revision.as_str()));
                    let begin = || Record::after(last, about.0, about.1, asks.now);
                    let mut record = same.cloned().unwrap_or_else(begin);
                    record.forget_returned(&self.cluster, digest);
                    let verdict = known.first_verdict(waves, &record, asks, with_parts);
                    (Some(record), verdict)
                }
            };
            let verdict = stopped.as_ref().map_or(verdict, |wait| Verdict::Wait(None, wait.clone()));
            Decision { unit: unit.clone(), record, verdict }
        };
        units.iter().map(decide).collect()
    }

    /// Notes what was decided.
    fn carry_out(&self, known: &mut Known, units: &BTreeMap<ObjectId, String>, decisions: Vec<Decision>) {
        for Decision { unit, record, verdict } in decisions {
            if let Some(record) = record {
                known.ledger.put(record);
            }
            let (Some(record), Some(digest)) = (known.ledger.of_mut(&unit), units.get(&unit)) else { continue };
            if verdict == Verdict::First {
                record.first = Some(self.cluster.clone());
            }
            match verdict {
                Verdict::First | Verdict::Go => self.goes(record, Some(digest)),
                Verdict::Wait(..) => drop(record.wants.insert(self.cluster.clone(), digest.clone())),
            }
        }
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
                Prospect::Come if self.take().unwrap_or(true) => return true,
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
    fn take(&self) -> Result<bool, StateError> {
        let take = |known: &mut Known| (self.take_from(known), BTreeSet::new());
        self.rollout.change((&self.revision, &self.cluster), take).map(|(has_taken, _)| has_taken)
    }

    fn take_from(&self, known: &mut Known) -> bool {
        let mut has_taken = false;
        let is_stopped = self.rollout.stopped(known).is_some();
        for unit in lock(&self.told).waits.keys().filter(|_| !is_stopped) {
            // It may be another rollout by now, of which this cluster knows nothing.
            let is_it = |record: &&Record| record.wants.contains_key(&self.cluster);
            let Some(record) = known.ledger.of(unit).filter(is_it) else { return true };
            let verdict = known.verdict(&self.rollout.waves, record, self.asks(), true);
            let Some(record) = known.ledger.of_mut(unit) else { continue };
            if verdict == Verdict::First {
                record.first = Some(self.cluster.clone());
            }
            if matches!(verdict, Verdict::First | Verdict::Go) {
                self.goes(record, None);
                has_taken = true;
            }
        }
        has_taken
    }

    fn prospect(&self) -> Prospect {
        if !self.rollout.is_waiting {
            return Prospect::None;
        }
        self.rollout.look(Some(&self.revision), |known| self.prospect_in(known)).unwrap_or(Prospect::None)
    }

    fn prospect_in(&self, known: &Known) -> Prospect {
        let (told, waves, asks) = (lock(&self.told), &self.rollout.waves, self.asks());
        let (mut is_open, mut is_stale) = (false, false);
        let is_stopped = self.rollout.stopped(known).is_some();
        if let (Some(told), Some(Some(Part::Looked { deletes, .. }))) =
            (&told.deletions, known.parts().get(&self.cluster))
        {
            if self.rollout.deletion(known, asks, *deletes).map(|wait| wait.guard) != Some(told.guard) {
                return Prospect::Due;
            }
            let is_under_way = |part: &Option<Part>| !matches!(part, Some(Part::Absent | Part::Looked { .. }));
            is_open = told.guard == Guard::RolloutDeletion && known.parts().values().any(is_under_way);
        }
        // A plan shows what would have to wait, and does not.
        for (unit, told) in told.waits.iter().filter(|_| self.mode == Mode::Apply) {
            match known.expected(waves, unit, asks) {
                _ if is_stopped => {}
                Verdict::First | Verdict::Go => return Prospect::Come,
                Verdict::Wait(_, wait) if wait.guard != told.guard => return Prospect::Due,
                Verdict::Wait(on, wait) => {
                    is_stale |= wait != *told;
                    let mut seen = BTreeSet::from([self.cluster.clone()]);
                    is_open = is_open || on.is_some_and(|on| known.is_active(waves, &on, asks.now, &mut seen));
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
        self.hears(report);
        if !self.takes_part() {
            return;
        }
        if self.mode == Mode::Apply
            && !self.rollout.waves.is_empty()
            && let Err(error) = self.note(report)
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
        let counts = self.mode == Mode::Plan || report.waits_to_delete().is_some();
        let deletes = match lock(&self.rollout.known).parts().get(&self.cluster) {
            Some(Some(Part::Looked { deletes, .. })) if counts => *deletes,
            _ => 0,
        };
        // What could not be noted waits for the next round, and not for news.
        let told = report.waits_to_delete().filter(|_| !self.is_unnoted.load(Ordering::Relaxed));
        let target = self.target.clone();
        let looked = Part::Looked { target, rolls, withheld, deletes, told, doing };
        if is_of_use {
            lock(&self.rollout.known).looked_at(self.asks(), 0);
        }
        self.becomes(if is_of_use { looked } else { Part::Absent });
    }

    /// Notes how the units of the cluster are.
    fn note(&self, report: &ClusterReport) -> Result<(), StateError> {
        let changed = report.changes_in(Mode::Apply).map(|step| &step.unit).collect();
        let note = |known: &mut Known| {
            let now = self.now();
            let trial = self.rollout.goes_back.map(|patience| Trial {
                waves: &self.rollout.waves,
                cluster: &self.cluster,
                changed,
                patience,
                now,
            });
            let on_trial = trial.as_ref().map(|trial| trial.under_way(&known.ledger)).unwrap_or_default();
            self.forget_what_is_wanted_no_more(&mut known.ledger);
            known.ledger.see(&self.cluster, report, self.is_partial, now);
            let back = trial.map(|trial| trial.judge(&on_trial, &mut known.ledger)).unwrap_or_default();
            self.news_after_soaks(known);
            (back.clone(), back)
        };
        let (back, has_changed) = self.rollout.change((&self.revision, &self.cluster), note)?;
        if has_changed {
            info!(sync = self.rollout.sync, cluster = self.cluster, revision = self.revision, "rollout goes on");
            self.rollout.news(self.now());
            self.rollout.nudge_all(&back);
        }
        Ok(())
    }

    fn becomes(&self, part: Part) {
        let before = lock(&self.rollout.known).takes(&self.cluster, part.clone());
        if before != Some(part) {
            self.rollout.news(self.now());
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
