//! Rollouts: a change that replaces pods goes to one cluster of a sync first, and to the others once it is healthy there.
//!
//! A round that is about to replace pods asks whether it is its turn. What is known of the rollout, and which cluster was
//! the first, lies in the state folder, so that the next process goes on with it; what rounds are doing is known to this
//! process alone. The first cluster stays the first until it is healthy: a correction goes there before it goes anywhere
//! else.

mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::config::settings::{self, ClusterSettings, Strategy, SyncSettings};
use crate::reconcile::model::Clusters;
use crate::report::{ClusterReport, ClusterState, Mode};
use crate::state::{State, StateError};
use record::{RECORDS, Record, Stage};

/// The rollouts of one sync, shared by its rounds.
pub struct Rollout {
    sync: String,
    /// All clusters of the sync.
    all: BTreeSet<String>,
    /// Those that may be the first, in that order: they have health.
    candidates: Vec<String>,
    /// Rounds of this process wait for each other: there is no later one.
    is_waiting: bool,
    state: State,
    parts: Mutex<BTreeMap<String, Part>>,
    changed: Notify,
    /// The means to have rounds begun again by the daemon, by cluster.
    nudges: Mutex<BTreeMap<String, Arc<Notify>>>,
}

/// The part that a cluster has, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Its round is under way, and has not said yet what it changes.
    Running,
    /// It is to replace pods: now, or when its turn comes.
    Asking,
    /// A round for this target replaces none.
    Passed(String),
    /// Nothing could be done there.
    Absent,
}

/// The answer to the question whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its own, as the first.
    First,
    /// Its own: the first is healthy, or none is needed.
    Go,
    /// That of another cluster.
    Wait {
        /// The cluster.
        on: String,
        /// The reason.
        message: String,
        /// Advice on how to go on.
        hint: String,
        /// Whether that cluster is known not to be healthy.
        is_halted: bool,
    },
}

/// The place of a cluster in a rollout, from the beginning of its round to the end.
pub struct Turn {
    rollout: Arc<Rollout>,
    cluster: String,
    /// Everything that is to be rolled out: with other files or settings it is another.
    target: String,
    revision: String,
    mode: Mode,
    now: Timestamp,
    has_ended: AtomicBool,
}

impl Rollout {
    /// Prepares the rollouts of a sync on the clusters that it selects, of which some have `rounds`. `None` if there is
    /// nobody to wait for.
    pub(crate) fn of(
        (name, sync): (&str, &SyncSettings),
        selected: &BTreeMap<&str, &ClusterSettings>,
        rounds: &Clusters,
        is_waiting: bool,
        state: &State,
    ) -> Option<Arc<Self>> {
        if sync.rollout.strategy == Strategy::All || sync.mode == settings::Mode::Report {
            return None;
        }
        let first = sync.rollout.first.as_ref();
        let is_preferred = |name: &String| {
            let labels = selected.get(name.as_str()).map(|cluster| &cluster.labels);
            first.zip(labels).is_some_and(|(first, labels)| first.selects(name, labels))
        };
        let healthy = rounds.iter().filter(|(_, cluster)| cluster.has_health()).map(|(name, _)| name.clone());
        let (mut candidates, others): (Vec<String>, Vec<String>) = healthy.partition(is_preferred);
        candidates.extend(others);
        let all = selected.keys().map(|name| (*name).to_owned());
        Self::new((name, state), all, candidates, is_waiting)
    }

    fn new(
        (sync, state): (&str, &State),
        all: impl Iterator<Item = String>,
        candidates: Vec<String>,
        is_waiting: bool,
    ) -> Option<Arc<Self>> {
        let all: BTreeSet<String> = all.collect();
        if all.len() < 2 {
            return None;
        }
        let (sync, state) = (sync.to_owned(), state.clone());
        let (parts, nudges) = (Mutex::default(), Mutex::default());
        Some(Arc::new(Self { sync, all, candidates, is_waiting, state, parts, changed: Notify::new(), nudges }))
    }

    /// Has the rounds of a cluster begun again when its turn comes.
    pub(crate) fn nudge(&self, cluster: &str, nudge: Arc<Notify>) {
        self.nudges.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster.to_owned(), nudge);
    }

    /// Returns the cluster that a plan would go to first, of those that it replaces pods on.
    pub(crate) fn first_of<'a>(&self, rolled: &[&'a str]) -> Option<&'a str> {
        let known = self.open("").ok().flatten().map(|record| record.first);
        let first =
            known.as_ref().into_iter().chain(&self.candidates).find_map(|it| rolled.iter().find(|name| *name == it));
        first.copied().filter(|_| rolled.len() > 1)
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<String, Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is noted of the last rollout. That of a cluster that is not there any more is over, unless this very
    /// revision was not healthy there: whoever takes the cluster out has not made it better.
    fn record(&self, revision: &str) -> Result<Option<Record>, StateError> {
        let record = RECORDS.load(&self.state, &[&self.sync])?;
        let is_bad = |record: &Record| matches!(record.stage, Stage::Halted(_)) && record.revision == revision;
        Ok(record.filter(|record| self.all.contains(&record.first) || is_bad(record)))
    }

    /// Returns the rollout that is not over.
    fn open(&self, revision: &str) -> Result<Option<Record>, StateError> {
        Ok(self.record(revision)?.filter(|record| record.stage != Stage::Healthy))
    }

    fn write(&self, record: &Record) -> Result<(), StateError> {
        RECORDS.write(&self.state, &[&self.sync], record)
    }

    /// Has those that wait begin another round.
    fn nudge_all(&self) {
        let asking: Vec<String> =
            self.parts().iter().filter(|(_, part)| **part == Part::Asking).map(|(name, _)| name.clone()).collect();
        let nudges = self.nudges.lock().unwrap_or_else(PoisonError::into_inner);
        asking.iter().filter_map(|name| nudges.get(name)).for_each(|nudge| nudge.notify_one());
    }
}

impl Turn {
    /// Takes part for a cluster whose round begins.
    pub(crate) fn new(
        rollout: &Arc<Rollout>,
        cluster: &str,
        (target, revision): (String, String),
        (mode, now): (Mode, Timestamp),
    ) -> Self {
        if mode == Mode::Apply {
            rollout.parts().insert(cluster.to_owned(), Part::Running);
        }
        Self {
            rollout: Arc::clone(rollout),
            cluster: cluster.to_owned(),
            target,
            revision,
            mode,
            now,
            has_ended: AtomicBool::new(false),
        }
    }

    /// Says that this round replaces no pods.
    pub(crate) fn pass(&self) {
        if self.mode == Mode::Apply {
            self.becomes(&Part::Passed(self.target.clone()));
        }
    }

    /// Asks to replace the pods of some units; the first that may is noted. Where nothing is changed only a rollout that is
    /// under way is in the way.
    pub(crate) fn ask(&self, units: &BTreeSet<ObjectId>) -> Verdict {
        if self.mode != Mode::Apply {
            return match self.rollout.open(&self.revision) {
                Ok(Some(record)) if record.first != self.cluster => record.wait(),
                Ok(_) => Verdict::Go,
                Err(error) => unknown(&error),
            };
        }
        let mut parts = self.rollout.parts();
        parts.insert(self.cluster.clone(), Part::Asking);
        let verdict = self.verdict(&parts);
        if verdict == Verdict::First {
            let (target, revision, first) = (self.target.clone(), self.revision.clone(), self.cluster.clone());
            let record = Record { target, revision, first, units: units.clone(), stage: Stage::Going, since: self.now };
            info!(sync = self.rollout.sync, cluster = self.cluster, revision = record.revision, "goes first");
            // What nobody would remember would go on to the next cluster.
            return self.rollout.write(&record).map_or_else(|error| unknown(&error), |()| verdict);
        }
        verdict
    }

    fn verdict(&self, parts: &BTreeMap<String, Part>) -> Verdict {
        let record = match self.rollout.record(&self.revision) {
            Ok(record) => record,
            Err(error) => return unknown(&error),
        };
        if let Some(record) = record {
            let is_lost = record.stage == Stage::Going && parts.get(&record.first) == Some(&Part::Absent);
            match record.stage {
                Stage::Healthy if record.target == self.target => return Verdict::Go,
                Stage::Healthy => {}
                _ if record.first == self.cluster => return Verdict::First,
                _ if is_lost => {}
                Stage::Going | Stage::Halted(_) => return record.wait(),
            }
        }
        for candidate in &self.rollout.candidates {
            match parts.get(candidate) {
                _ if *candidate == self.cluster => return Verdict::First,
                Some(Part::Absent) => {}
                Some(Part::Passed(target)) if *target == self.target => {}
                Some(Part::Running | Part::Asking | Part::Passed(_)) | None => {
                    return Verdict::Wait {
                        on: candidate.clone(),
                        message: format!("what replaces pods goes to cluster {candidate} first, and was not there yet"),
                        hint: "it follows by itself once it is healthy there".to_owned(),
                        is_halted: false,
                    };
                }
            }
        }
        Verdict::Go
    }

    /// Waits for its turn, if another round of this process decides when that is; tells whether a round is to look again:
    /// its turn has come, or it never will for another reason than was `told`.
    pub(crate) async fn comes(&self, told: &str, stop: &CancellationToken) -> bool {
        if !self.rollout.is_waiting {
            return false;
        }
        loop {
            let changed = self.rollout.changed.notified();
            {
                let parts = self.rollout.parts();
                match self.verdict(&parts) {
                    Verdict::First | Verdict::Go => return true,
                    Verdict::Wait { on, message, .. } => {
                        if !matches!(parts.get(&on), Some(Part::Running | Part::Asking)) {
                            return message != told;
                        }
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = changed => {}
            }
        }
    }

    /// Ends the round, and sees how the first cluster is if it was there.
    pub(crate) fn end(&self, report: &ClusterReport) {
        self.has_ended.store(true, Ordering::Relaxed);
        if self.mode != Mode::Apply {
            return;
        }
        if let Err(error) = self.see(report) {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note how far a rollout is");
        }
        match report.state {
            ClusterState::Done => self.pass(),
            // It waits for its turn, or for a person.
            _ if report.waits_for_rollout().is_some() => {}
            _ => self.becomes(&Part::Absent),
        }
    }

    /// Notes how the first cluster is, if this is it.
    fn see(&self, report: &ClusterReport) -> Result<(), StateError> {
        let Some(mut record) = self.rollout.open(&self.revision)?.filter(|record| record.first == self.cluster) else {
            return Ok(());
        };
        let before = record.clone();
        record.see(report, &self.target);
        if record != before {
            info!(sync = self.rollout.sync, cluster = self.cluster, stage = ?record.stage, "rollout");
            self.rollout.write(&record)?;
            self.rollout.changed.notify_waiters();
            self.rollout.nudge_all();
        }
        Ok(())
    }

    fn becomes(&self, part: &Part) {
        let before = self.rollout.parts().insert(self.cluster.clone(), part.clone());
        if before.as_ref() == Some(part) {
            return;
        }
        self.rollout.changed.notify_waiters();
        // While a rollout is under way only news of its first cluster lets others go on.
        let is_news = match self.rollout.open(&self.revision) {
            Ok(Some(record)) => record.first == self.cluster && *part == Part::Absent,
            Ok(None) | Err(_) => true,
        };
        if is_news {
            self.rollout.nudge_all();
        }
    }
}

/// Has everybody wait where nobody knows how far a rollout is: one that is halted would go on.
fn unknown(error: &StateError) -> Verdict {
    let message = format!("nobody knows how far the rollout is: {}", Chain(error));
    let hint = "mend or remove the file; without it the first cluster gets the change first again".to_owned();
    Verdict::Wait { on: String::new(), message, hint, is_halted: true }
}

impl Drop for Turn {
    /// A round that ended in a bug keeps nobody waiting.
    fn drop(&mut self) {
        if self.mode == Mode::Apply && !self.has_ended.load(Ordering::Relaxed) {
            self.becomes(&Part::Absent);
        }
    }
}
