//! Rollouts: a change that replaces pods goes to one cluster of a sync first, or to clusters in waves, and to the others
//! once it is healthy there.
//!
//! Each unit is rolled out by itself: one that is not healthy holds back nobody else's. A round that is about to replace
//! pods asks which units may. How far each rollout is lies in the state folder ([`record`]), so that the next process goes
//! on with it, and in parts on the clusters, for one that has lost its state folder ([`recall`]); what rounds are doing is
//! known to this process alone.

mod back;
mod contents;
mod deletions;
mod finish;
mod journal;
mod kept;
mod known;
mod news;
pub(crate) mod progress;
pub mod recall;
pub mod record;
#[cfg(test)]
mod tests;
mod turn;
mod waves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use jiff::Timestamp;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::basics::lock::lock;
use crate::config::gates::{GateSettings, OnCluster};
use crate::config::rollout::{OnNewRevision, RolloutSettings, Strategy};
use crate::config::settings::{self, ClusterSettings, SyncSettings};
use crate::reconcile::model::Clusters;
use crate::source::Snapshot;
use crate::state::{State, StateError};
use contents::Contents;
use known::Known;
use news::Looks;
use recall::Heads;
use record::Record;
pub use turn::Turn;
pub(crate) use turn::{Answer, Asked};
use waves::Wave;

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
    /// A revision that comes while another one goes well waits for that.
    finishes: bool,
    /// The revision that rounds are about.
    current: Mutex<Option<Arc<Snapshot>>>,
    /// The gates of each cluster; one that cannot be asked there says why.
    gates: BTreeMap<String, Vec<OnCluster>>,
    /// The state folder, in which it is noted how far they are, for whoever goes on with them; without it they end with this
    /// process.
    state: Option<State>,
    /// All clusters, on which a part of that is kept, too; `None`: nothing is.
    heads: Option<Heads>,
    /// Held while they are read, so that they are once; when that was.
    recalled: tokio::sync::Mutex<Option<Instant>>,
    known: Mutex<Known>,
    changed: Notify,
    /// The most units that may be deleted on all clusters together.
    max_deleted: usize,
    /// The target that deletions have waited for, and since when.
    deliberated: Mutex<Option<(String, Timestamp)>>,
    /// When the news are told once more.
    alarms: Mutex<BTreeSet<Timestamp>>,
    looks: Mutex<Looks>,
    contents: Mutex<Contents>,
    /// Held by whoever notes something.
    noting: Mutex<()>,
    /// The means to have rounds begun again by the daemon, by cluster.
    nudges: Mutex<BTreeMap<String, Arc<Notify>>>,
}

/// Tells whether a change is not healthy on a cluster that a sync has left: whoever has taken it out, or misspelled its label,
/// has not made the change better for the one that is left. A record that cannot be read may say so: the round tells.
fn has_failed_elsewhere(state: &State, sync: &str, selected: &BTreeMap<&str, &ClusterSettings>) -> bool {
    let has_failed = |(cluster, member): (&String, &record::Member)| {
        !selected.contains_key(cluster.as_str()) && member.stage.has_failed()
    };
    record::read(state, sync).map_or(true, |ledger| ledger.units.iter().any(|it| it.members.iter().any(has_failed)))
}

impl Rollout {
    /// Prepares the rollouts of a sync on the clusters that it selects, of which some have `rounds`. `None` if there is
    /// nobody to wait for.
    pub(crate) fn of(
        (name, sync): (&str, &SyncSettings),
        selected: &BTreeMap<&str, &ClusterSettings>,
        rounds: &Clusters,
        is_waiting: bool,
        (state, heads): (&State, Heads),
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
        if selected.len() < 2 && !asks && !has_failed_elsewhere(state, name, selected) {
            return None;
        }
        let max_deleted = sync.prune.max_delete.fleet;
        let all = selected.keys().map(|name| (*name).to_owned());
        let notes = (name, Some(state.clone()), max_deleted);
        let rollout = Self::new(notes, all, (waves, rounds.keys()), is_waiting);
        let goes_back = sync.rollout.rollback_on_failure.then_some(sync.wait.timeout.0);
        let gates = gates(&sync.rollout, selected);
        let finishes = sync.rollout.on_new_revision == OnNewRevision::Finish && !is_waiting;
        Some(Arc::new(Self { goes_back, finishes, gates, heads: Some(heads), ..rollout }))
    }

    fn new<'a>(
        (sync, state, max_deleted): (&str, Option<State>, usize),
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
            finishes: false,
            current: Mutex::default(),
            gates: BTreeMap::new(),
            state,
            heads: None,
            recalled: tokio::sync::Mutex::default(),
            known: Mutex::new(Known::of(parts)),
            changed: Notify::new(),
            max_deleted,
            deliberated: Mutex::default(),
            alarms: Mutex::default(),
            looks: Mutex::default(),
            contents: Mutex::default(),
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
        let notes = (name, None, sync.prune.max_delete.fleet);
        let back = || Arc::new(Self::new(notes, rounds.iter().cloned(), (waves, rounds.iter()), true));
        (rounds.len() > 1).then(back)
    }

    /// Returns the same for somebody who does not keep to waves. Deletions on all clusters are counted all the same.
    pub(crate) fn without_waves(&self) -> Arc<Self> {
        let rounds: Vec<String> = lock(&self.known).parts().keys().cloned().collect();
        let (notes, nobody) = ((self.sync.as_str(), self.state.clone(), self.max_deleted), (Vec::new(), rounds.iter()));
        Arc::new(Self::new(notes, self.all.iter().cloned(), nobody, self.is_waiting))
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
            for name in &here {
                left.remove(name.as_str());
            }
            waves.extend(Some(here).filter(|here| !here.is_empty()));
        }
        waves
    }

    /// Returns the clusters that are not known to be healthy with what they got.
    fn ill(&self) -> BTreeSet<String> {
        let is_ill = |member: &record::Member| member.stage != record::Stage::Healthy;
        let of = |Record { first, members, .. }: &Record| {
            let counts = |name: &String| first.as_ref().is_none_or(|first| first == name);
            let ill = members.iter().filter(|(name, member)| counts(name) && is_ill(member));
            ill.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        self.look(None, |known| known.ledger.units.iter().flat_map(of).collect()).unwrap_or_default()
    }

    /// Says why nobody goes: rollouts are paused, or nobody knows how far they are.
    fn stopped(&self, known: &Known) -> Option<Wait> {
        let paused = known.ledger.paused.as_ref().map(|pause| {
            let message = format!("the rollouts of this sync are {}", pause.words());
            let hint = format!("`gatewright rollout resume {}` lets them go on", self.sync);
            Wait { guard: Guard::RolloutPaused, message, hint, why: None }
        });
        paused.or_else(|| self.unread(known))
    }

    /// Makes sure that nobody else notes something at the same time, in this process or another.
    fn alone<T>(&self, act: impl FnOnce() -> Result<T, StateError>) -> Result<T, StateError> {
        blocking(|| {
            let _turn = lock(&self.noting);
            let _lock = self.state.as_ref().map(|state| state.lock_rollouts(&self.sync)).transpose()?;
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
    let hint = "mend or remove the file; without it, what is kept on the clusters counts".to_owned();
    Wait { guard: Guard::RolloutPaused, message, hint, why: None }
}
