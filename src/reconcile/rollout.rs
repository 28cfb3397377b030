//! Rollouts: a change that replaces pods goes to one cluster of a sync first, or to clusters in waves, and to the others
//! once it is healthy there.
//!
//! Each unit is rolled out by itself: one that is not healthy holds back nobody else's. A round that is about to replace
//! pods asks which units may. How far each rollout is lies in the state folder ([`record`]), so that the next process goes
//! on with it; what rounds are doing is known to this process alone.

mod back;
pub mod record;
#[cfg(test)]
mod tests;
mod turn;
mod waves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use gatewright_engine::text::count;
use jiff::Timestamp;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

use crate::basics::lock::lock;
use crate::config::gates::{GateSettings, OnCluster};
use crate::config::rollout::{RolloutSettings, Strategy};
use crate::config::settings::{self, ClusterSettings, SyncSettings};
use crate::reconcile::model::Clusters;
use crate::state::{State, StateError};
use record::{Deletions, LEDGERS, Ledger, Record};
pub use turn::Turn;
pub(crate) use turn::{Answer, Asked};
use waves::{Question, Verdict, Wave};

/// The rollouts of one sync, shared by its rounds.
pub struct Rollout {
    sync: String,
    /// All clusters of the sync.
    all: BTreeSet<String>,
    waves: Vec<Wave>,
    /// Rounds of this process wait for each other: there is no later one.
    is_waiting: bool,
    /// A wave on which a change has failed goes back; for how long it has to become healthy.
    goes_back: Option<Duration>,
    /// The gates of each cluster; one that cannot be asked there says why.
    gates: BTreeMap<String, Vec<OnCluster>>,
    notes: Notes,
    /// The notes as they were last read: everybody who waits reads them at every piece of news.
    last_read: Mutex<Option<(Vec<u8>, Ledger)>>,
    /// The parts of the clusters that this process looks after; `None`: there was no round yet.
    parts: Mutex<BTreeMap<String, Option<Part>>>,
    changed: Notify,
    /// The most units that may be deleted on all clusters together.
    max_deleted: usize,
    /// The deletions on the clusters that this process has looked at, also where there are none.
    counted: Mutex<BTreeMap<String, Deletions>>,
    /// The target that deletions have waited for, and since when.
    deliberated: Mutex<Option<(String, Timestamp)>>,
    /// When the news are told once more.
    alarms: Mutex<BTreeSet<Timestamp>>,
    /// Held by whoever notes something.
    noting: Mutex<()>,
    /// The means to have rounds begun again by the daemon, by cluster.
    nudges: Mutex<BTreeMap<String, Arc<Notify>>>,
}

/// The place where it is noted how far the rollouts are.
enum Notes {
    /// In the state folder, for whoever goes on with them.
    Kept(State),
    /// In memory: they end with this process.
    Own(Mutex<Ledger>),
}

/// The part that a cluster has, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
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
enum Doing {
    /// It carries out what may go.
    Going,
    /// It waits for the rounds of other clusters, to begin again.
    Waiting,
    /// It is over.
    Over,
}

impl Part {
    /// Tells whether its round is over, and something of it waits.
    fn has_been_told_to_wait(&self) -> bool {
        match self {
            Self::Looked { rolls, told, doing: Doing::Over, .. } => told.is_some() || !rolls.is_empty(),
            _ => false,
        }
    }
}

/// The time that deletions wait for clusters of which nothing is known.
const DELIBERATION: Duration = Duration::from_mins(2);

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
        if sync.mode == settings::Mode::Report {
            return None;
        }
        let has_health = |name: &str| rounds.get(name).is_some_and(|cluster| cluster.has_health());
        let waves = match sync.rollout.strategy {
            Strategy::Canary => waves::of(&sync.rollout, selected, has_health),
            Strategy::All => Vec::new(),
        };
        let asks = !sync.rollout.gates.is_empty() || sync.rollout.rollback_on_failure;
        if selected.len() < 2 && !asks {
            return None;
        }
        let max_deleted = sync.prune.max_delete.fleet;
        let all = selected.keys().map(|name| (*name).to_owned());
        let notes = (name, Notes::Kept(state.clone()), max_deleted);
        let rollout = Self::new(notes, all, (waves, rounds.keys()), is_waiting);
        let goes_back = sync.rollout.rollback_on_failure.then_some(sync.wait.timeout.0);
        let gates = gates(&sync.rollout, selected);
        Some(Arc::new(Self { goes_back, gates, ..rollout }))
    }

    fn new<'a>(
        (sync, notes, max_deleted): (&str, Notes, usize),
        all: impl Iterator<Item = String>,
        (waves, rounds): (Vec<Wave>, impl Iterator<Item = &'a String>),
        is_waiting: bool,
    ) -> Self {
        let all: BTreeSet<String> = all.collect();
        let parts = rounds.map(|name| (name.clone(), None)).collect();
        Self {
            sync: sync.to_owned(),
            all,
            waves,
            is_waiting,
            goes_back: None,
            gates: BTreeMap::new(),
            notes,
            last_read: Mutex::default(),
            parts: Mutex::new(parts),
            changed: Notify::new(),
            max_deleted,
            counted: Mutex::default(),
            deliberated: Mutex::default(),
            alarms: Mutex::default(),
            noting: Mutex::default(),
            nudges: Mutex::default(),
        }
    }

    /// Prepares the way back: a rollback goes through waves that were set in reverse, and remembers nothing of it. Without
    /// them, or without `waits`, it goes everywhere at once.
    pub(crate) fn back(
        (name, sync): (&str, &SyncSettings),
        selected: &BTreeMap<&str, &ClusterSettings>,
        rounds: &[String],
        waits: bool,
    ) -> Option<Arc<Self>> {
        let is_set = waits && sync.rollout.strategy == Strategy::Canary && !sync.rollout.waves.is_empty();
        let waves = if is_set { waves::back(&sync.rollout, selected, rounds) } else { Vec::new() };
        let notes = (name, Notes::Own(Mutex::default()), sync.prune.max_delete.fleet);
        let back = || Arc::new(Self::new(notes, rounds.iter().cloned(), (waves, rounds.iter()), true));
        (rounds.len() > 1).then(back)
    }

    /// Returns the same for somebody who does not keep to waves. Deletions on all clusters are counted all the same.
    pub(crate) fn without_waves(&self) -> Arc<Self> {
        let notes = match &self.notes {
            Notes::Kept(state) => Notes::Kept(state.clone()),
            Notes::Own(_) => Notes::Own(Mutex::default()),
        };
        let (all, rounds) = (self.all.iter().cloned(), self.parts().keys().cloned().collect::<Vec<_>>());
        let nobody = (Vec::new(), rounds.iter());
        Arc::new(Self::new((&self.sync, notes, self.max_deleted), all, nobody, self.is_waiting))
    }

    /// Has the rounds of a cluster begun again when its turn comes.
    pub(crate) fn nudge(&self, cluster: &str, nudge: Arc<Notify>) {
        lock(&self.nudges).insert(cluster.to_owned(), nudge);
    }

    /// Returns the clusters on which a plan replaces pods in the order in which it would reach them.
    pub(crate) fn order(&self, rolled: &[&str]) -> Vec<Vec<String>> {
        let mut left: BTreeSet<&str> = rolled.iter().copied().collect();
        let mut waves = Vec::new();
        for wave in &self.waves {
            let mut here: Vec<String> =
                wave.clusters.iter().filter(|name| left.contains(name.as_str())).cloned().collect();
            if wave.is_canary {
                let ill = self.ill();
                let first = here.iter().position(|name| ill.contains(name)).unwrap_or_default();
                here = here.into_iter().skip(first).take(1).collect();
            }
            left.retain(|name| !here.iter().any(|it| it == name));
            waves.extend(Some(here).filter(|here| !here.is_empty()));
        }
        waves
    }

    /// Returns the clusters that are not known to be healthy with what they got.
    fn ill(&self) -> BTreeSet<String> {
        let ledger = self.ledger("").unwrap_or_default();
        let is_ill = |member: &record::Member| member.stage != record::Stage::Healthy;
        let members = ledger.units.into_iter().flat_map(|Record { first, mut members, .. }| {
            members.retain(|name, _| first.as_ref().is_none_or(|first| first == name));
            members
        });
        members.filter(|(_, member)| is_ill(member)).map(|(name, _)| name).collect()
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<String, Option<Part>>> {
        lock(&self.parts)
    }

    /// Returns what is noted of the rollouts.
    fn ledger(&self, revision: &str) -> Result<Ledger, StateError> {
        let mut ledger = match &self.notes {
            Notes::Kept(state) => self.read(state)?,
            Notes::Own(ledger) => lock(ledger).clone(),
        };
        ledger.forget(|cluster| self.all.contains(cluster), revision);
        Ok(ledger)
    }

    fn read(&self, state: &State) -> Result<Ledger, StateError> {
        let Some(bytes) = state.read(LEDGERS.path(&[&self.sync]))? else { return Ok(Ledger::default()) };
        let mut last = lock(&self.last_read);
        match &*last {
            Some((known, ledger)) if *known == bytes => Ok(ledger.clone()),
            _ => {
                let ledger = LEDGERS.parse(state, &[&self.sync], &bytes)?;
                Ok(last.insert((bytes, ledger)).1.clone())
            }
        }
    }

    fn write(&self, ledger: &Ledger) -> Result<(), StateError> {
        match &self.notes {
            Notes::Kept(state) => LEDGERS.write(state, &[&self.sync], ledger)?,
            Notes::Own(own) => lock(own).clone_from(ledger),
        }
        Ok(())
    }

    /// Says whose turn it is with the change of a unit.
    fn verdict(
        &self,
        record: &Record,
        parts: Option<&BTreeMap<String, Option<Part>>>,
        (cluster, target): (&str, &str),
        now: Timestamp,
    ) -> Verdict {
        Question { waves: &self.waves, record, parts, cluster, target, now }.verdict()
    }

    /// Says whose turn it is with what a cluster is known to wait for. A change that nobody has asked for yet begins when
    /// somebody does.
    fn expected(
        &self,
        ledger: &Ledger,
        parts: &BTreeMap<String, Option<Part>>,
        (cluster, target, unit): (&str, &str, &ObjectId),
        now: Timestamp,
    ) -> Verdict {
        match ledger.of(unit) {
            Some(record) => self.verdict(record, Some(parts), (cluster, target), now),
            None => Verdict::Go,
        }
    }

    /// Counts the units of which something is to be deleted on a cluster. As long as the same is to be had there, what was
    /// deleted counts on.
    fn count(&self, ledger: &mut Ledger, (cluster, target, units): (&str, &str, usize)) {
        self.looked_at((cluster, target, units));
        if units > 0 {
            Deletions::add(&mut ledger.deletions, (cluster, target, units));
        }
    }

    /// Notes that a cluster was looked at.
    fn looked_at(&self, deletes: (&str, &str, usize)) {
        Deletions::add(&mut lock(&self.counted), deletes);
    }

    /// Returns the number of units of which something is or was to be deleted on a cluster for a target, if that is known.
    fn counted(&self, ledger: &Ledger, cluster: &str, target: &str) -> Option<usize> {
        let of = |known: Option<&Deletions>| known.filter(|known| known.target == target).map(|known| known.units);
        of(ledger.deletions.get(cluster)).max(of(lock(&self.counted).get(cluster)))
    }

    /// Says why nothing may be deleted on a cluster, if so: it is too much on all clusters together, or that is not known
    /// yet.
    fn deletion(
        &self,
        ledger: &Ledger,
        (cluster, target, number): (&str, &str, usize),
        now: Timestamp,
    ) -> Option<Wait> {
        if number == 0 {
            return None;
        }
        let known: BTreeMap<&String, Option<usize>> =
            self.all.iter().map(|name| (name, self.counted(ledger, name, target))).collect();
        let units = |(name, units): (&&String, &Option<usize>)| {
            let units = units.unwrap_or_default();
            if *name == cluster { number.max(units) } else { units }
        };
        let deleting: Vec<usize> = known.iter().map(units).filter(|units| *units > 0).collect();
        let parts = self.parts();
        let is_open = |name: &str| parts.get(name).is_some_and(|part| !matches!(part, Some(Part::Absent)));
        let unknown = known.iter().find(|(name, units)| **name != cluster && units.is_none() && is_open(name));
        if let Some((name, _)) = unknown.filter(|_| self.deliberates(target, now)) {
            let message = format!(
                "how much is deleted on all clusters together is not known yet: cluster {name} was not looked at"
            );
            let hint = "it is deleted by itself once that is known, unless it is too much".to_owned();
            return Some(Wait { guard: Guard::RolloutDeletion, message, hint, why: None });
        }
        self.too_much(deleting.iter().sum(), deleting.len())
    }

    fn too_much(&self, all: usize, clusters: usize) -> Option<Wait> {
        if all <= self.max_deleted || clusters < 2 {
            return None;
        }
        let (units, max) = (count(all, "unit"), self.max_deleted);
        let message = format!(
            "objects of {units} would be deleted on {clusters} clusters, and {max} are allowed on all together"
        );
        let hint =
            "check the source; if they are to go, approve it, or raise prune.maxDelete.fleet for the sync".to_owned();
        Some(Wait { guard: Guard::MaxDeleteFleet, message, hint, why: None })
    }

    /// Tells whether deletions for a target wait for clusters of which nothing is known, which is not for ever.
    fn deliberates(&self, target: &str, now: Timestamp) -> bool {
        let mut known = lock(&self.deliberated);
        let (_, since) = match known.take() {
            Some(known) if known.0 == target => known,
            _ => (target.to_owned(), now),
        };
        *known = Some((target.to_owned(), since));
        since.checked_add(DELIBERATION).is_ok_and(|end| now < end)
    }

    /// Tells those that wait in this process, and has rounds begun again where something waits for another reason than was
    /// told, or for none any more.
    fn news(&self, now: Timestamp) {
        self.changed.notify_waiters();
        let nudges = lock(&self.nudges);
        if nudges.is_empty() {
            return;
        }
        let parts = self.parts().clone();
        let waiting = || {
            let parts = parts.iter().filter_map(|(cluster, part)| Some((cluster, part.as_ref()?)));
            parts.filter(|(_, part)| part.has_been_told_to_wait())
        };
        if waiting().next().is_none() {
            return;
        }
        // What cannot be read was told, and the next round looks again.
        let Ok(ledger) = self.ledger("") else { return };
        for (cluster, part) in waiting() {
            if let Some(nudge) = nudges.get(cluster).filter(|_| self.is_due(&ledger, &parts, (cluster, part), now)) {
                nudge.notify_one();
            }
        }
    }

    /// Tells whether a round on a cluster would say something else than the last one. What a person has stopped waits for
    /// the next round.
    fn is_due(
        &self,
        ledger: &Ledger,
        parts: &BTreeMap<String, Option<Part>>,
        (cluster, part): (&str, &Part),
        now: Timestamp,
    ) -> bool {
        let Part::Looked { target, rolls, deletes, told, .. } = part else { return false };
        let goes_on = |(unit, told): (&ObjectId, &Option<Guard>)| {
            let is_stopped = ledger.paused.is_some() || *told == Some(Guard::RolloutPaused);
            !is_stopped
                && match self.expected(ledger, parts, (cluster, target, unit), now) {
                    Verdict::First | Verdict::Go => true,
                    Verdict::Wait(_, wait) => Some(wait.guard) != *told,
                }
        };
        let deletion = || self.deletion(ledger, (cluster, target, *deletes), now).map(|wait| wait.guard);
        rolls.iter().any(goes_on) || (told.is_some() && deletion() != *told)
    }

    /// Tells the news once more later on.
    fn news_after(self: &Arc<Self>, pause: Duration, now: Timestamp) {
        let (Ok(runtime), Ok(end)) = (Handle::try_current(), now.checked_add(pause)) else { return };
        if !lock(&self.alarms).insert(end) {
            return;
        }
        let rollout = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            lock(&rollout.alarms).remove(&end);
            rollout.news(end);
        });
    }

    /// Tells the news once more when clusters have been healthy for long enough, if somebody waits for that.
    fn news_after_soaks(self: &Arc<Self>, ledger: &Ledger, now: Timestamp) {
        for record in ledger.units.iter().filter(|record| !record.wants.is_empty()) {
            for end in waves::soaks(&self.waves, record).filter(|end| *end > now) {
                self.news_after(Duration::try_from(now.duration_until(end)).unwrap_or_default(), now);
            }
        }
    }

    /// Makes sure that nobody else notes something at the same time, in this process or another.
    fn alone<T>(&self, act: impl FnOnce() -> Result<T, StateError>) -> Result<T, StateError> {
        blocking(|| {
            let _turn = lock(&self.noting);
            let _lock = match &self.notes {
                Notes::Kept(state) => Some(state.lock_rollouts(&self.sync)?),
                Notes::Own(_) => None,
            };
            act()
        })
    }
}

/// Returns the gates of each cluster.
fn gates(settings: &RolloutSettings, selected: &BTreeMap<&str, &ClusterSettings>) -> BTreeMap<String, Vec<OnCluster>> {
    let of = |(name, cluster): (&&str, &&ClusterSettings)| {
        let facts = cluster.facts(name);
        let about = settings.gates.iter().filter(|gate| gate.is_about(&facts));
        let on = |gate: &GateSettings| gate.on(&facts).map_err(|why| format!("gate {}: {why}", gate.name));
        ((*name).to_owned(), about.map(on).collect())
    };
    selected.iter().map(of).collect()
}

/// Does what may take a second, without keeping others from their work.
fn blocking<T>(act: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(act),
        _ => act(),
    }
}

/// Has everybody wait where nobody knows how far a rollout is: one that is halted would go on.
fn unknown(error: &StateError) -> Wait {
    let message = format!("nobody knows how far the rollout is: {}", Chain(error));
    let hint = "mend or remove the file; without it the first cluster gets the change first again".to_owned();
    Wait { guard: Guard::RolloutPaused, message, hint, why: None }
}

/// Has deletions wait where nobody knows how much was deleted on other clusters.
fn uncounted(error: &StateError) -> Wait {
    let message = format!("nobody knows how much is deleted on all clusters together: {}", Chain(error));
    let hint = "mend or remove the file; or approve what is deleted here".to_owned();
    Wait { guard: Guard::MaxDeleteFleet, message, hint, why: None }
}
