//! One round of one sync over all its clusters: beside each other, each isolated from the rest.
//!
//! A cluster that is down, slow or wrong delays and changes no other: each has a task of its own, and a bug in one
//! (a panic) is that cluster's failure.

mod fights;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::health::Demands;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::claims::Claims;
use gatewright_engine::plan::conflicts::Conflicts;
use gatewright_engine::plan::policies::{Adopt, Confirm, MaxDelete, Policies};
use gatewright_engine::problem::Problem;
use gatewright_engine::text::digest;
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info_span, warn};

use crate::approvals;
use crate::claims::Beside;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::conflicts::{ConflictRule, IgnoreRule};
use crate::config::settings::{AdoptPolicy, OnProblem, SyncSettings};
use crate::rendering::{Wanted, problems};
use crate::report::{ClusterReport, ClusterState, Mode, ProblemReport, Report, SCHEMA, Saved, Unclaimed};
use crate::round::{self, Conclusion, Task};
use crate::seal::Key;
use crate::source::Snapshot;
use crate::state::State;
use crate::wait::Patience;
use crate::witness::{self, Witness};

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
    /// The plan that is carried out, by cluster; `None`: whatever is to be done.
    pub pinned: Option<BTreeMap<String, Saved>>,
    /// What our other syncs want, by cluster.
    pub beside: BTreeMap<String, Beside>,
    /// The key that seals inventories.
    pub key: Option<Arc<Key>>,
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
    let mut tasks = JoinSet::new();
    for (name, cluster) in &order.clusters {
        let Some(want) = wanted.get(name).cloned() else { continue };
        let (cluster, name) = (Arc::clone(cluster), name.clone());
        let witness = order.witness(&name, state);
        let approved = approvals::valid(state, &order.sync, &name, started);
        let pinned = order.pinned.as_ref().map(|pinned| pinned.get(&name).cloned().unwrap_or_default());
        let policies = Policies {
            conflicts: conflicts(order, &name, state),
            pinned: pinned.as_ref().map(|saved| saved.steps.clone()),
            approved,
            ..order.policies(&marker, &name, is_first_round(order, cluster.as_ref(), &witness))
        };
        let (mode, patience, stop) = (order.mode, order.patience(), stop.clone());
        let acceptance = order.settings.wait.timeout.0;
        let memory = recall(order, &name, state, started);
        let beside = order.beside.get(&name).cloned().unwrap_or_default();
        let span = info_span!("cluster", sync = order.sync, cluster = name);
        let run = async move {
            if let Some(refused) = other_cluster(cluster.as_ref(), pinned.as_ref()).await {
                return (name, Conclusion::of(refused));
            }
            let witness = cluster.carries_marks().then_some(&witness);
            let (policies, beside, memory, stop) = (&policies, &beside, memory.as_ref(), &stop);
            let task = Task { want: &want, policies, beside, mode, patience, acceptance, memory, witness, stop };
            (name, round::run(cluster.as_ref(), &task).await)
        };
        tasks.spawn(run.instrument(span));
    }
    let mut conclusions = collect(order, tasks).await;
    for (name, conclusion) in &mut conclusions {
        keep(order, name, conclusion, state, started);
        render(name, conclusion, wanted).await;
    }
    let (problems, unclaimed) = findings(&conclusions);
    let clusters = conclusions.into_iter().map(|(name, conclusion)| (name, conclusion.report)).collect();
    remember(order, &clusters, state);
    fights::remember(order, &clusters, state);
    approvals::note(state, &order.sync, order.only.is_some(), &clusters);
    Report {
        schema: SCHEMA.to_owned(),
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

/// A plan is for the cluster that it was made for, whatever answers by its name now.
async fn other_cluster(cluster: &dyn Cluster, pinned: Option<&Saved>) -> Option<ClusterReport> {
    let pinned = pinned?;
    let identity = cluster.identity().await.ok()?;
    // A directory gets its identity when it is first written to.
    if identity == pinned.identity || pinned.identity.is_empty() {
        return None;
    }
    let message = format!("the plan was made for cluster {}, but {identity} answers", pinned.identity);
    let hint = "nothing was changed; check the kubeconfig, and plan again".to_owned();
    Some(ClusterReport::failed(ClusterState::Failed, message, Some(hint)))
}

/// The clock of a host may be set back during a round; its reports do not run backwards.
fn finished(clock: &dyn Clock, started: Timestamp) -> Timestamp {
    clock.now().max(started)
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

/// Renders what is wanted on a cluster where the round came to an end before anybody had to: what is wrong with the
/// source is told whatever became of the cluster.
async fn render(name: &str, conclusion: &mut Conclusion, wanted: &Wanted) {
    let is_settled = conclusion.memory.as_ref().is_some_and(|memory| memory.settled.is_some());
    if let (None, false, Some(want)) = (&conclusion.rendering, is_settled, wanted.get(name)) {
        conclusion.rendering = want.rendering().await.ok();
    }
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
    /// What this host remembers of the sync on one of the clusters.
    fn witness(&self, cluster: &str, state: &State) -> Witness {
        Witness::new(state, &self.sync, cluster, self.key.clone())
    }

    fn policies(&self, marker: &Marker, cluster: &str, first_round: bool) -> Policies {
        let settings = &self.settings;
        Policies {
            marker: marker.clone(),
            cluster: cluster.to_owned(),
            source: settings.source.clone(),
            adopt: match settings.adopt.policy {
                AdoptPolicy::Never => Adopt::Never,
                AdoptPolicy::IfUnowned => Adopt::IfUnowned,
                AdoptPolicy::Always => Adopt::Always,
            },
            adopt_deployer: settings.adopt.deployer,
            prune_adopted: settings.adopt.prune,
            prune: settings.prune.enabled,
            max_delete: MaxDelete {
                units: settings.prune.max_delete.units,
                percent: settings.prune.max_delete.percent,
            },
            confirm: Confirm { kinds: settings.prune.confirm.kinds.clone(), gpus: settings.prune.confirm.gpus },
            recreate: settings.recreate.kinds.clone(),
            approved: BTreeSet::new(),
            pinned: None,
            allow_empty: settings.prune.allow_empty,
            create_namespaces: settings.create_namespaces,
            namespaces: settings.allow.namespaces.clone(),
            kinds: settings.allow.kinds.clone(),
            only: self.only.clone(),
            first_round,
            hold_on_problem: settings.on_problem == OnProblem::HoldSync,
            conflicts: Conflicts::default(),
            claims: Claims::default(),
            moved: settings.moved.iter().map(|moved| moved.from.clone()).collect(),
        }
    }

    fn patience(&self) -> Option<Patience> {
        let wait = &self.settings.wait;
        let demands = Demands { load_balancer: wait.load_balancer };
        (wait.enabled && self.wait).then_some(Patience { timeout: wait.timeout.0, demands })
    }
}

/// Where this host keeps what it knows of clusters.
const KNOWN: &str = "known";

fn known_path(order: &Order, cluster: &str) -> String {
    format!("{KNOWN}/{}/{cluster}.json", order.sync)
}

/// What is known of a cluster from earlier rounds; nothing, once a day, so that everything is compared again.
fn recall(order: &Order, cluster: &str, state: &State, now: Timestamp) -> Option<round::Memory> {
    let memory: round::Memory = state.read_json(known_path(order, cluster))?;
    let age = now.duration_since(memory.notes.proven?);
    let is_good = !age.is_negative() && age < proof_lasts(&order.sync, cluster);
    is_good.then_some(memory)
}

/// How long it lasts that all objects were compared: a day, an hour more or less, so that a fleet does not do it all at
/// once.
fn proof_lasts(sync: &str, cluster: &str) -> SignedDuration {
    let drawn = digest(format!("{sync}/{cluster}").as_bytes());
    let minutes = u8::from_str_radix(&drawn[..2], 16).map_or(0, |byte| i64::from(byte) * 120 / 255);
    SignedDuration::from_mins(23 * 60 + minutes)
}

/// Keeps what is known of a cluster. Losing it costs requests and nothing else.
fn keep(order: &Order, cluster: &str, conclusion: &Conclusion, state: &State, started: Timestamp) {
    let Some(mut memory) = conclusion.memory.clone().filter(|_| conclusion.is_new) else { return };
    memory.notes.proven = memory.notes.proven.or(Some(started));
    if let Err(error) = state.write_json(known_path(order, cluster), &memory) {
        debug!(cluster, error = %Chain(&error), "cannot keep what is known");
    }
}

/// Who wins where others write to our fields, and what of that was tried in vain on this cluster.
fn conflicts(order: &Order, cluster: &str, state: &State) -> Conflicts {
    let rules = order.settings.conflicts.iter().map(ConflictRule::rule).collect();
    let ignore = order.settings.ignore.iter().filter_map(IgnoreRule::rule).collect();
    Conflicts { rules, ignore, fights: fights::remembered(order, cluster, state) }
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
    for folder in list(&state.path(witness::FOLDER)) {
        seen.extend(list(&folder).map(|file| (name(&folder), name(&file))));
    }
    seen.sort();
    seen
}

/// A host that has not seen a cluster before deletes nothing there yet. A directory keeps its own inventory, and works
/// with a fresh state, as in CI.
fn is_first_round(order: &Order, cluster: &dyn Cluster, witness: &Witness) -> bool {
    let former = order.settings.moved.iter().any(|moved| witness.of(&moved.from).has_seen());
    cluster.carries_marks() && !witness.has_seen() && !former
}

fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let done = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && report.state == ClusterState::Done);
    for (name, _) in done {
        if let Err(error) = order.witness(name, state).note_seen() {
            error!(error = %gatewright_engine::error::Chain(&error), "cannot remember a cluster");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_not_compared_again_all_at_once() {
        let lasts: BTreeSet<SignedDuration> = (0..50).map(|n| proof_lasts("gateways", &format!("c{n}"))).collect();
        assert!(lasts.len() > 20, "{lasts:?}");
        let (least, most) = (SignedDuration::from_hours(23), SignedDuration::from_hours(25));
        assert!(lasts.iter().all(|time| (least..=most).contains(time)), "{lasts:?}");
    }
}
