//! All that this process knows of the rollouts of a sync: what is noted of them, and what its own rounds do.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use jiff::Timestamp;

use super::journal::Journal;
use super::record::{Deletions, Ledger, Record};
use super::waves::{Found, Question, Verdict, Wave};
use super::{Rollout, waves};
use crate::basics::lock::lock;
use crate::state::StateError;

/// The parts of the clusters that this process looks after; `None`: there was no round yet.
pub(super) type Parts = BTreeMap<String, Option<Part>>;

/// The part that a cluster has, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its round is under way, and has not said yet what it changes.
    Running,
    /// It has said so.
    Looked {
        /// All that is wanted there.
        target: String,
        /// The units whose pods are to be replaced, with the guard that has told them to wait.
        rolls: BTreeMap<ObjectId, Option<Guard>>,
        /// The units that stay as they are, because something of them was refused or is held.
        withheld: BTreeSet<ObjectId>,
        /// The number of units of which something is to be deleted.
        deletes: usize,
        /// The guard that has told deletions to wait.
        told: Option<Guard>,
        /// The state of its round.
        doing: Doing,
    },
    /// Nothing could be done there.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It carries out what may go.
    Going,
    /// It waits for the rounds of other clusters, to begin again.
    Waiting,
    /// It is over.
    Over,
}

impl Part {
    /// Tells whether its round is over, and something of it waits.
    pub(super) fn has_been_told_to_wait(&self) -> bool {
        match self {
            Self::Looked { rolls, told, doing: Doing::Over, .. } => told.is_some() || !rolls.is_empty(),
            _ => false,
        }
    }
}

/// The knowledge of this process.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The rollouts as they are noted, by this process or another.
    pub ledger: Ledger,
    journal: Journal,
    /// It was about clusters that are not there any more, which were forgotten for this revision.
    forgotten_for: Option<String>,
    /// Others have noted something that nobody has looked at.
    has_been_read: bool,
    /// What was kept on the clusters, once that was read.
    pub kept: Option<Vec<Record>>,
    /// The reason why it could not be read.
    pub unread: Option<Wait>,
    /// It was taken for what is noted, and does not stand in the file.
    is_unwritten: bool,
    /// The file was there when it was last read or written.
    is_noted: bool,
    /// When the newest rollout began of which this process knew at first; `None` before that.
    pub began_with: Option<Timestamp>,
    /// The clusters that did not answer when a round asked them last.
    pub silent: BTreeSet<String>,
    /// The clusters whose texts were compared with what is noted.
    pub has_caught_up: BTreeSet<String>,
    parts: Parts,
    /// The deletions on the clusters that this process has looked at, also where there are none.
    pub counted: BTreeMap<String, Deletions>,
    /// Findings about each wave since something changed: with the parts of the clusters, and without.
    found: RefCell<[BTreeMap<ObjectId, Findings>; 2]>,
}

#[derive(Debug)]
struct Findings {
    target: String,
    now: Timestamp,
    by_wave: Vec<Found>,
}

/// A cluster with what it asks about.
#[derive(Clone, Copy)]
pub(super) struct Asks<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// Everything that is to be rolled out there.
    pub target: &'a str,
    /// Now.
    pub now: Timestamp,
}

impl Known {
    /// Begins with these parts.
    pub(super) fn of(parts: Parts) -> Self {
        Self { parts, ..Self::default() }
    }

    /// Returns the parts of the clusters.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Sets the part of a cluster; returns the last one.
    pub(super) fn takes(&mut self, cluster: &str, part: Part) -> Option<Part> {
        self.found.get_mut()[0].clear();
        self.parts.insert(cluster.to_owned(), Some(part)).flatten()
    }

    /// Tells whether others have noted something since this was asked last.
    pub(super) fn has_been_read(&mut self) -> bool {
        mem::take(&mut self.has_been_read)
    }

    /// Takes what was just read for what is noted.
    fn reads(&mut self, ledger: Ledger) {
        if self.is_noted && ledger.is_unread {
            // Somebody has taken the file away, and the clusters were asked before that.
            (self.kept, self.unread) = (None, None);
        }
        self.is_noted = !ledger.is_unread;
        self.began_with.get_or_insert(ledger.newest().unwrap_or(Timestamp::MIN));
        self.ledger = ledger;
        self.has_been_read = true;
        self.has_other_notes();
    }

    /// Takes what is kept on the clusters for what is noted, where nothing is.
    fn takes_in(&mut self) {
        if self.ledger.is_unread
            && let Some(records) = &self.kept
        {
            self.ledger.units.clone_from(records);
            (self.ledger.is_unread, self.is_unwritten) = (false, true);
            self.has_other_notes();
        }
    }

    /// Forgets what was found out from what is noted.
    fn has_other_notes(&mut self) {
        self.found.get_mut().iter_mut().for_each(BTreeMap::clear);
    }

    /// Says whose turn it is with a rollout that is noted.
    pub(super) fn verdict(&self, waves: &[Wave], record: &Record, asks: Asks<'_>, with_parts: bool) -> Verdict {
        let mut found = self.found.borrow_mut();
        let of_units = &mut found[usize::from(!with_parts)];
        let is_same = |it: &Findings| it.target == asks.target && (it.now == asks.now || !waves::have_soaks(waves));
        if !of_units.get(&record.unit).is_some_and(is_same) {
            let by_wave = Found::of(waves);
            let findings = Findings { target: asks.target.to_owned(), now: asks.now, by_wave };
            of_units.insert(record.unit.clone(), findings);
        }
        let found = of_units.get(&record.unit).map(|it| it.by_wave.as_slice()).unwrap_or_default();
        self.question((waves, found), record, asks, with_parts).verdict(asks.cluster)
    }

    /// Says whose turn it is with a rollout that is not noted yet.
    pub(super) fn first_verdict(&self, waves: &[Wave], record: &Record, asks: Asks<'_>, with_parts: bool) -> Verdict {
        self.question((waves, &Found::of(waves)), record, asks, with_parts).verdict(asks.cluster)
    }

    fn question<'a>(
        &'a self,
        (waves, found): (&'a [Wave], &'a [Found]),
        record: &'a Record,
        Asks { target, now, .. }: Asks<'a>,
        with_parts: bool,
    ) -> Question<'a> {
        Question { waves, record, parts: with_parts.then_some(&self.parts), target, now, found }
    }

    /// Says whose turn it is with what a cluster is known to wait for. A change that nobody has asked for yet begins when
    /// somebody does.
    pub(super) fn expected(&self, waves: &[Wave], unit: &ObjectId, asks: Asks<'_>) -> Verdict {
        self.ledger.of(unit).map_or(Verdict::Go, |record| self.verdict(waves, record, asks, true))
    }

    /// Returns the number of units of which something is or was to be deleted on a cluster for a target, if that is known.
    pub(super) fn deleted(&self, cluster: &str, target: &str) -> Option<usize> {
        let of = |known: Option<&Deletions>| known.filter(|known| known.target == target).map(|known| known.units);
        of(self.ledger.deletions.get(cluster)).max(of(self.counted.get(cluster)))
    }

    /// Tells whether the round of a cluster may still do something while this process runs: it is under way, or waits for
    /// one that is.
    pub(super) fn is_active(&self, waves: &[Wave], cluster: &str, now: Timestamp, seen: &mut BTreeSet<String>) -> bool {
        let (target, rolls) = match self.parts.get(cluster) {
            Some(None | Some(Part::Running | Part::Looked { doing: Doing::Going, .. })) => return true,
            None | Some(Some(Part::Absent | Part::Looked { doing: Doing::Over, .. })) => return false,
            Some(Some(Part::Looked { target, rolls, doing: Doing::Waiting, .. })) => (target, rolls),
        };
        // Who waits for whoever waits for it waits for nobody.
        seen.insert(cluster.to_owned())
            && rolls.keys().any(|unit| match self.expected(waves, unit, Asks { cluster, target, now }) {
                Verdict::First | Verdict::Go => true,
                Verdict::Wait(Some(on), _) => self.is_active(waves, &on, now, seen),
                Verdict::Wait(None, _) => false,
            })
    }
}

impl Rollout {
    /// Looks at what is known, after what others have noted since. What clusters have done that are not there any more counts
    /// only against the revision that they had, where one is named.
    pub(super) fn look<T>(&self, revision: Option<&str>, look: impl FnOnce(&mut Known) -> T) -> Result<T, StateError> {
        let mut known = lock(&self.known);
        self.refresh(&mut known, revision)?;
        Ok(look(&mut known))
    }

    /// Changes what is noted of a cluster, and of others that are returned, with nobody else doing that at the same time;
    /// tells whether anything has changed. When this returns it is on the disk.
    pub(super) fn change<T>(
        &self,
        (revision, cluster): (&str, &str),
        change: impl FnOnce(&mut Known) -> (T, BTreeSet<String>),
    ) -> Result<(T, bool), StateError> {
        self.alone(|| {
            let mut known = lock(&self.known);
            self.refresh(&mut known, Some(revision))?;
            let before = known.ledger.column(cluster);
            let (result, others) = change(&mut known);
            let delta = known.ledger.changes_since(&before, &others);
            let is_unwritten = known.is_unwritten && !known.ledger.units.is_empty();
            if delta.is_empty() && !is_unwritten {
                return Ok((result, false));
            }
            known.has_other_notes();
            let Some(state) = &self.state else { return Ok((result, true)) };
            let Known { journal, ledger, forgotten_for, is_unwritten, .. } = &mut *known;
            if forgotten_for.is_none() && !*is_unwritten {
                journal.add((state, &self.sync), ledger, &delta)?;
            } else {
                journal.write((state, &self.sync), ledger)?;
            }
            *is_unwritten = false;
            known.is_noted = !known.ledger.is_unread;
            Ok((result, true))
        })
    }

    /// Reads what others have noted.
    fn refresh(&self, known: &mut Known, revision: Option<&str>) -> Result<(), StateError> {
        let Some(state) = &self.state else { return Ok(()) };
        let is_there = |cluster: &str| self.all.contains(cluster);
        if let Some(ledger) = known.journal.news(state, &self.sync)? {
            known.reads(ledger);
            known.forgotten_for = known.ledger.knows_others(is_there).then(String::new);
        }
        match &self.heads {
            Some(_) => known.takes_in(),
            None => known.ledger.is_unread = false,
        }
        // Nothing of this process is about clusters that are not there.
        if let (Some(last), Some(revision)) = (&mut known.forgotten_for, revision)
            && (last.is_empty() || last != revision)
        {
            revision.clone_into(last);
            known.ledger.forget(is_there, revision);
            known.has_other_notes();
        }
        Ok(())
    }
}
