//! One round of one sync over all its clusters: beside each other, each isolated from the rest.
//!
//! A cluster that is down, slow or wrong delays and changes no other: each has a task of its own, and a bug in one
//! (a panic) is that cluster's failure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::health::Demands;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::policies::{Adopt, MaxDelete, Policies};
use gatewright_engine::plan::restore::Change;
use gatewright_engine::unit::Rendering;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::archive::record::Recorder;
use crate::archive::{About, Archive, runs, sets};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::settings::{AdoptPolicy, OnProblem, SyncSettings};
use crate::rendering::{Wanted, problems};
use crate::report::{self, ClusterReport, ClusterState, Mode, Report, SCHEMA};
use crate::round::{self, Task};
use crate::source::Snapshot;
use crate::state::State;
use crate::wait::Patience;

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
struct Memory {
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
    let marker = Marker { installation: order.installation.clone(), sync: order.sync.clone() };
    let unclaimed = wanted.values().flat_map(|rendering| &rendering.unclaimed).collect::<BTreeSet<_>>().into_iter();
    let unclaimed = unclaimed.map(|(id, place)| report::Unclaimed { id: id.clone(), place: place.clone() });
    let unclaimed = unclaimed.collect();
    let renderings = marked(wanted, &marker);
    let clusters: Vec<&str> = order.clusters.keys().map(String::as_str).collect();
    let run = if order.mode == Mode::Apply { runs::name(started, &order.sync, &clusters) } else { String::new() };
    let mut tasks = JoinSet::new();
    for (name, cluster) in &order.clusters {
        let Some(rendering) = renderings.get(name).cloned() else { continue };
        let (cluster, name, stop) = (Arc::clone(cluster), name.clone(), stop.clone());
        let policies = order.policies(&marker, is_first_round(order, &name, cluster.as_ref(), state));
        let (mode, patience, acceptance) = (order.mode, order.patience(), order.settings.wait.timeout.0);
        let (sync, revision) = (order.sync.clone(), snapshot.revision.clone());
        let about = About { run: run.clone(), sync, cluster: name.clone(), revision, started };
        let shelf = order.shelf(about.clone(), wanted.get(&name));
        let recorder = order.recorder(about);
        let undo = order.undo.as_ref().map(|undo| undo.get(&name).cloned().unwrap_or_default());
        let span = info_span!("cluster", sync = order.sync, cluster = name);
        let run = async move {
            let (recorder, undo) = (recorder.as_ref(), undo.as_deref());
            let (rendering, policies, stop) = (&*rendering, &policies, &stop);
            let task = Task { rendering, policies, mode, patience, acceptance, stop, recorder, undo };
            let report = round::run(cluster.as_ref(), &task).await;
            if shelf.is_for(&report) {
                let has_changed = report.has_changed();
                drop(spawn_blocking(move || shelf.keep(has_changed)).await);
            }
            (name, report)
        };
        tasks.spawn(run.instrument(span));
    }
    let clusters = collect(order, tasks).await;
    remember(order, &clusters, state);
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
        problems: problems(wanted),
        unclaimed,
        clusters,
    }
}

/// The clock of a host may be set back during a round; its reports do not run backwards.
fn finished(clock: &dyn Clock, started: Timestamp) -> Timestamp {
    clock.now().max(started)
}

async fn collect(order: &Order, mut tasks: JoinSet<(String, ClusterReport)>) -> BTreeMap<String, ClusterReport> {
    let mut clusters = BTreeMap::new();
    while let Some(result) = tasks.join_next().await {
        match result {
            Ok((name, report)) => drop(clusters.insert(name, report)),
            Err(error) => error!(sync = order.sync, %error, "a round ended in a bug"),
        }
    }
    for name in order.clusters.keys() {
        clusters.entry(name.clone()).or_insert_with(|| {
            let message = "internal error: the round ended in a bug, see the log".to_owned();
            ClusterReport::failed(
                ClusterState::Failed,
                message,
                Some("the other clusters are not affected; please report it".to_owned()),
            )
        });
    }
    clusters
}

/// Marks are put on last, after everything that may change an object; what clusters share they still share then.
fn marked(wanted: &Wanted, marker: &Marker) -> Wanted {
    let mut done: BTreeMap<*const Rendering, Arc<Rendering>> = BTreeMap::new();
    let of = |rendering: &Arc<Rendering>| {
        let mut rendering = Rendering::clone(rendering);
        for unit in &mut rendering.units {
            unit.map(|object| marker.mark(object));
        }
        Arc::new(rendering)
    };
    let mut once = |rendering| Arc::clone(done.entry(Arc::as_ptr(rendering)).or_insert_with(|| of(rendering)));
    wanted.iter().map(|(name, rendering)| (name.clone(), once(rendering))).collect()
}

/// What was rendered for a cluster, and where it is kept if it was applied.
struct Shelf {
    archive: Option<Arc<Archive>>,
    about: About,
    rendering: Option<Arc<Rendering>>,
}

impl Shelf {
    /// Tells whether what was rendered was applied with success.
    fn is_for(&self, report: &ClusterReport) -> bool {
        self.archive.is_some() && report.state == ClusterState::Done && report.is_well()
    }

    /// Keeps what was rendered. What cannot be kept can be rendered again.
    fn keep(&self, has_changed: bool) {
        let (Some(archive), Some(rendering)) = (&self.archive, &self.rendering) else { return };
        if let Err(error) = sets::keep(archive, &self.about, rendering, has_changed) {
            warn!(error = %Chain(&error), "cannot keep what was rendered, for a rollback");
        }
    }
}

impl Order {
    fn recorder(&self, about: About) -> Option<Arc<Recorder>> {
        let archive = self.archive.as_ref().filter(|_| self.mode == Mode::Apply);
        archive.map(|archive| Arc::new(archive.recorder(about)))
    }

    fn shelf(&self, about: About, rendering: Option<&Arc<Rendering>>) -> Shelf {
        let is_whole = self.mode == Mode::Apply && self.only.is_none() && self.undo.is_none();
        Shelf { archive: self.archive.clone().filter(|_| is_whole), about, rendering: rendering.cloned() }
    }

    fn policies(&self, marker: &Marker, first_round: bool) -> Policies {
        let settings = &self.settings;
        Policies {
            marker: marker.clone(),
            source: settings.source.clone(),
            adopt: match settings.adopt.policy {
                AdoptPolicy::Never => Adopt::Never,
                AdoptPolicy::IfUnowned => Adopt::IfUnowned,
                AdoptPolicy::Always => Adopt::Always,
            },
            adopt_deployer: settings.adopt.deployer,
            prune_adopted: settings.adopt.prune,
            prune: settings.prune.enabled,
            // An undo deletes what the round had made that it names, and wants nothing else.
            max_delete: match self.undo {
                Some(_) => MaxDelete { units: usize::MAX, percent: 100 },
                None => {
                    MaxDelete { units: settings.prune.max_delete.units, percent: settings.prune.max_delete.percent }
                }
            },
            allow_empty: settings.prune.allow_empty || self.undo.is_some(),
            create_namespaces: settings.create_namespaces,
            namespaces: settings.allow.namespaces.clone(),
            kinds: settings.allow.kinds.clone(),
            only: self.only.clone(),
            first_round,
            hold_on_problem: settings.on_problem == OnProblem::HoldSync,
        }
    }

    fn patience(&self) -> Option<Patience> {
        let wait = &self.settings.wait;
        let demands = Demands { load_balancer: wait.load_balancer };
        (wait.enabled && self.wait).then_some(Patience { timeout: wait.timeout.0, demands })
    }
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
    cluster.carries_marks() && state.read_json::<Memory>(memory_path(order, name)).is_none()
}

fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let done = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && report.state == ClusterState::Done);
    for (name, _) in done {
        let path = memory_path(order, name);
        if state.read_json::<Memory>(&path).is_none()
            && let Err(error) = state.write_json(&path, &Memory::default())
        {
            error!(error = %Chain(&error), "cannot remember a cluster");
        }
    }
}
