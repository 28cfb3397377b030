//! One round of one sync over all its clusters: beside each other, each isolated from the rest.
//!
//! A cluster that is down, slow or wrong delays and changes no other: each has a task of its own, and a bug in one
//! (a panic) is that cluster's failure.

mod fights;
mod known;
mod shelf;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::health::Demands;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::conflicts::Conflicts;
use gatewright_engine::plan::conflicts::fights::Fights;
use gatewright_engine::plan::policies::{Adopt, MaxDelete, Policies};
use gatewright_engine::plan::restore::Change;
use gatewright_engine::problem::Problem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::archive::record::Recorder;
use crate::archive::{About, Archive, runs};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::conflicts::{ConflictRule, IgnoreRule};
use crate::config::settings::{AdoptPolicy, OnProblem, SyncSettings};
use crate::rendering::{Want, Wanted, problems};
use crate::report::{ClusterReport, ClusterState, Mode, ProblemReport, Report, SCHEMA, Unclaimed};
use crate::round::{self, Conclusion, Memory, Task};
use crate::source::Snapshot;
use crate::state::State;
use crate::wait::Patience;
use shelf::Shelf;

/// The clusters of a process, by name.
pub type Clusters = BTreeMap<String, Arc<dyn Cluster>>;

/// What a round is about.
#[derive(Clone)]
pub struct Order {
    /// Name of the sync.
    pub sync: String,
    /// Its settings.
    pub settings: SyncSettings,
    /// The clusters.
    pub clusters: Clusters,
    /// The id of this installation.
    pub installation: String,
    /// Whether anything is changed.
    pub mode: Mode,
    /// The units to which the round is limited.
    pub only: Option<BTreeSet<ObjectId>>,
    /// Whether to wait for health.
    pub wait: bool,
    /// Where is kept what rounds change and render; `None` keeps nothing.
    pub archive: Option<Arc<Archive>>,
    /// What else than the source says what is wanted.
    pub cause: Option<String>,
    /// What a round has done that is to be undone, by cluster.
    pub undo: Option<BTreeMap<String, Vec<Change>>>,
}

/// Where this host remembers which clusters it has applied to.
const SEEN: &str = "seen";

/// What this host remembers of a sync on a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Seen {
    cluster: String,
}

/// Runs a round.
pub async fn run(
    order: &Order,
    snapshot: &Snapshot,
    wanted: &Wanted,
    state: &State,
    clock: &dyn Clock,
    stop: &CancellationToken,
) -> Report {
    let started = clock.now();
    let run = order.run_name(started);
    let mut tasks = JoinSet::new();
    for (name, cluster) in &order.clusters {
        let Some(want) = wanted.get(name).cloned() else { continue };
        let (sync, revision) = (order.sync.clone(), snapshot.revision.clone());
        let about = About { run: run.clone(), sync, cluster: name.clone(), revision, started };
        let target = Target::new(order, Arc::clone(cluster), want, about, state);
        let span = info_span!("cluster", sync = order.sync, cluster = name);
        tasks.spawn(target.round(stop.clone()).instrument(span));
    }
    let conclusions = collect(order, tasks).await;
    for (name, conclusion) in &conclusions {
        known::keep(order, name, conclusion, state, started);
    }
    let (problems, unclaimed) = findings(&conclusions);
    let clusters = conclusions.into_iter().map(|(name, conclusion)| (name, conclusion.report)).collect();
    remember(order, &clusters, state);
    fights::remember(order, &clusters, state);
    Report {
        schema: SCHEMA.to_owned(),
        run,
        cause: order.cause.clone(),
        partial: order.only.is_some() || order.undo.is_some(),
        suspended: None,
        sync: order.sync.clone(),
        source: order.settings.source.clone(),
        revision: snapshot.revision.clone(),
        stale_source: None,
        mode: order.mode,
        started,
        finished: finished(clock, started),
        problems,
        unclaimed,
        clusters,
    }
}

/// The clock of a host may be set back during a round; its reports do not run backwards.
fn finished(clock: &dyn Clock, started: Timestamp) -> Timestamp {
    clock.now().max(started)
}

/// One of the clusters of a round, and everything that the round needs to know there.
struct Target {
    cluster: Arc<dyn Cluster>,
    name: String,
    want: Want,
    policies: Policies,
    mode: Mode,
    patience: Option<Patience>,
    acceptance: Duration,
    memory: Option<Memory>,
    shelf: Option<Shelf>,
    recorder: Option<Arc<Recorder>>,
    undo: Option<Vec<Change>>,
}

impl Target {
    fn new(order: &Order, cluster: Arc<dyn Cluster>, want: Want, about: About, state: &State) -> Self {
        let (name, now) = (about.cluster.clone(), about.started);
        if order.undo.is_some() && order.mode == Mode::Apply {
            known::forget(order, &name, state);
        }
        let policies = order.policies(is_first_round(order, &name, cluster.as_ref(), state));
        Self {
            policies: Policies { conflicts: conflicts(order, &name, state), ..policies },
            mode: order.mode,
            patience: order.patience(),
            acceptance: order.settings.wait.timeout.0,
            memory: known::recall(order, &name, state, now),
            shelf: Shelf::of(order, about.clone()),
            recorder: order.recorder(about),
            undo: order.undo.as_ref().map(|undo| undo.get(&name).cloned().unwrap_or_default()),
            cluster,
            name,
            want,
        }
    }

    async fn round(self, stop: CancellationToken) -> (String, Conclusion) {
        let task = Task {
            want: &self.want,
            policies: &self.policies,
            mode: self.mode,
            patience: self.patience,
            acceptance: self.acceptance,
            memory: self.memory.as_ref(),
            recorder: self.recorder.as_ref(),
            undo: self.undo.as_deref(),
            stop: &stop,
        };
        let conclusion = round::run(self.cluster.as_ref(), &task).await;
        if let Some(shelf) = self.shelf {
            shelf.keep(&self.want, &conclusion).await;
        }
        (self.name, conclusion)
    }
}

async fn collect(order: &Order, mut tasks: JoinSet<(String, Conclusion)>) -> BTreeMap<String, Conclusion> {
    let mut clusters = BTreeMap::new();
    while let Some(result) = tasks.join_next().await {
        match result {
            Ok((name, conclusion)) => drop(clusters.insert(name, conclusion)),
            Err(error) => error!(sync = order.sync, %error, "a round ended in a bug"),
        }
    }
    for name in order.clusters.keys() {
        clusters.entry(name.clone()).or_insert_with(|| {
            let message = "internal error: the round ended in a bug, see the log".to_owned();
            Conclusion::of(ClusterReport::failed(
                ClusterState::Failed,
                message,
                Some("the other clusters are not affected; please report it".to_owned()),
            ))
        });
    }
    clusters
}

/// Collects what was found in the source: problems, and documents that no pack claims.
fn findings(conclusions: &BTreeMap<String, Conclusion>) -> (Vec<ProblemReport>, Vec<Unclaimed>) {
    let mut found: BTreeMap<&str, &[Problem]> = BTreeMap::new();
    let mut unclaimed: BTreeSet<Unclaimed> = BTreeSet::new();
    for (name, conclusion) in conclusions {
        if let Some(rendering) = &conclusion.rendering {
            found.insert(name, &rendering.problems);
            unclaimed.extend(rendering.unclaimed.iter().map(Unclaimed::from));
        } else if let Some(settled) = conclusion.memory.as_ref().and_then(|memory| memory.settled.as_ref()) {
            found.insert(name, &settled.problems);
            unclaimed.extend(settled.unclaimed.iter().cloned());
        }
    }
    (problems(&found), unclaimed.into_iter().collect())
}

impl Order {
    /// Names the round, if it is to change something.
    fn run_name(&self, started: Timestamp) -> String {
        let clusters: Vec<&str> = self.clusters.keys().map(String::as_str).collect();
        if self.mode == Mode::Apply { runs::name(started, &self.sync, &clusters) } else { String::new() }
    }

    /// Returns the mark of what the sync owns.
    pub fn marker(&self) -> Marker {
        Marker { installation: self.installation.clone(), sync: self.sync.clone() }
    }

    fn recorder(&self, about: About) -> Option<Arc<Recorder>> {
        let archive = self.archive.as_ref().filter(|_| self.mode == Mode::Apply);
        archive.map(|archive| Arc::new(archive.recorder(about)))
    }

    fn policies(&self, first_round: bool) -> Policies {
        let settings = &self.settings;
        Policies {
            marker: self.marker(),
            source: settings.source.clone(),
            adopt: match settings.adopt.policy {
                AdoptPolicy::Never => Adopt::Never,
                AdoptPolicy::IfUnowned => Adopt::IfUnowned,
                AdoptPolicy::Always => Adopt::Always,
            },
            adopt_deployer: settings.adopt.deployer,
            prune_adopted: settings.adopt.prune,
            prune: settings.prune.enabled,
            max_delete: self.max_delete(),
            allow_empty: settings.prune.allow_empty || self.undo.is_some(),
            create_namespaces: settings.create_namespaces,
            namespaces: settings.allow.namespaces.clone(),
            kinds: settings.allow.kinds.clone(),
            only: self.only.clone(),
            first_round,
            hold_on_problem: settings.on_problem == OnProblem::HoldSync,
            conflicts: Conflicts::default(),
        }
    }

    /// An undo deletes what the round had made that it names, and wants nothing else.
    fn max_delete(&self) -> MaxDelete {
        let settings = &self.settings.prune.max_delete;
        match self.undo {
            Some(_) => MaxDelete { units: usize::MAX, percent: 100 },
            None => MaxDelete { units: settings.units, percent: settings.percent },
        }
    }

    fn patience(&self) -> Option<Patience> {
        let wait = &self.settings.wait;
        let demands = Demands { load_balancer: wait.load_balancer };
        (wait.enabled && self.wait).then_some(Patience { timeout: wait.timeout.0, demands })
    }
}

/// Who wins where others write to our fields, and what of that was tried in vain on this cluster.
fn conflicts(order: &Order, cluster: &str, state: &State) -> Conflicts {
    let rules = order.settings.conflicts.iter().map(ConflictRule::rule).collect();
    let ignore = order.settings.ignore.iter().filter_map(IgnoreRule::rule).collect();
    // A person who undoes something corrects nothing, and waits for nothing.
    let is_undo = order.undo.is_some();
    let fights = if is_undo { Fights::default() } else { fights::remembered(order, cluster, state) };
    Conflicts { rules, ignore, fights }
}

fn memory_path(order: &Order, cluster: &str) -> String {
    format!("{SEEN}/{}/{cluster}.json", order.sync)
}

/// Says which syncs and clusters were once applied to and are not configured any more.
///
/// What they own stays where it is: taking a line out of a file must not empty a cluster.
pub fn warn_of_abandoned(config: &Config, state: &State) {
    for (sync, cluster) in seen(state) {
        let settings = config.settings.syncs.get(&sync);
        let is_selected = settings.is_some_and(|settings| config.clusters_of(settings).contains_key(cluster.as_str()));
        if !is_selected {
            warn!(sync, cluster, "not configured any more; what was applied there stays as it is");
        }
    }
}

fn seen(state: &State) -> Vec<(String, String)> {
    let list = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut seen = Vec::new();
    for folder in list(&state.path(SEEN)) {
        seen.extend(list(&folder).map(|file| (name(&folder), name(&file))));
    }
    seen.sort();
    seen
}

/// A host that has not seen a cluster before deletes nothing there yet. A directory keeps its own inventory, and works
/// with a fresh state, as in CI.
fn is_first_round(order: &Order, name: &str, cluster: &dyn Cluster, state: &State) -> bool {
    cluster.carries_marks() && state.read_json::<Seen>(memory_path(order, name)).is_none()
}

fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let done = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && report.state == ClusterState::Done);
    for (name, _) in done {
        let path = memory_path(order, name);
        if state.read_json::<Seen>(&path).is_none()
            && let Err(error) = state.write_json(&path, &Seen::default())
        {
            error!(error = %Chain(&error), "cannot remember a cluster");
        }
    }
}
