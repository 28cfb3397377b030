//! One round of one sync over all its clusters: beside each other, each isolated from the rest.
//!
//! A cluster that is down, slow or wrong delays and changes no other: each has a task of its own, and a bug in one
//! (a panic) is that cluster's failure.

mod fights;
mod known;
mod origins;
mod render_history;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::health::Readiness;
use gatewright_engine::inventory::Applied;
use gatewright_engine::marks::Marker;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::claims::Claims;
use gatewright_engine::plan::conflicts::Conflicts;
use gatewright_engine::plan::conflicts::fights::Fights;
use gatewright_engine::plan::policies::{Adopt, Confirm, MaxDelete, Policies};
use gatewright_engine::plan::restore::Change;
use gatewright_engine::problem::Problem;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::basics::clock::Clock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::conflicts::{ConflictRule, IgnoreRule};
use crate::config::settings::{self, AdoptPolicy, OnProblem, SyncSettings};
use crate::desired::capabilities;
use crate::desired::rendering::{Want, Wanted, problems};
use crate::desired::siblings::Siblings;
use crate::history::approvals;
use crate::history::archive::record::Recorder;
use crate::history::archive::{About, Archive, runs};
use crate::history::journal;
use crate::inventory::audit::{self, Audit};
use crate::inventory::hmac::Key;
use crate::reconcile::aliases::{Aliases, Names};
use crate::reconcile::drift;
use crate::reconcile::round::{self, Conclusion, LastRound, Task};
use crate::reconcile::wait::WaitPolicy;
use crate::report::{ClusterReport, ClusterState, Mode, ProblemReport, Report, SCHEMA, Saved, Unclaimed};
use crate::source::Snapshot;
use crate::state::State;
use render_history::RenderHistory;

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
    /// Whether everything is compared, whatever is known from earlier rounds.
    pub full: bool,
    /// Whether to wait for health.
    pub wait: bool,
    /// The plan that is carried out, by cluster; `None`: whatever is to be done.
    pub pinned: Option<BTreeMap<String, Saved>>,
    /// What our other syncs want, by cluster.
    pub siblings: BTreeMap<String, Siblings>,
    /// The key that signs inventories.
    pub key: Option<Arc<Key>>,
    /// What is shown of values that may be secret.
    pub masker: Masker,
    /// Where is kept what rounds change and render; `None` keeps nothing.
    pub archive: Option<Arc<Archive>>,
    /// What else than the source says what is wanted.
    pub cause: Option<String>,
    /// What a round has done that is to be undone, by cluster.
    pub undo: Option<BTreeMap<String, Vec<Change>>>,
    /// All clusters that something is applied to, by any sync.
    pub aliases: Arc<Aliases>,
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
        let mut target = Target::new(order, Arc::clone(cluster), want, about, state);
        target.policies.applying = applying(order, snapshot);
        target.policies.is_polled = snapshot.is_polled;
        let span = info_span!("cluster", sync = order.sync, cluster = name);
        tasks.spawn(target.round(stop.clone()).instrument(span));
    }
    let mut wanted = wanted.clone();
    let mut conclusions = collect(order, tasks, &mut wanted).await;
    let wanted = &wanted;
    for (name, conclusion) in &mut conclusions {
        known::keep(order, name, conclusion, state, started);
        // Whoever asks for the end does not wait for this.
        stop.run_until_cancelled(render(name, conclusion, wanted)).await;
        if let Some(rendering) = &conclusion.rendering {
            conclusion.report.broken.clone_from(&rendering.broken);
            origins::specs(&mut conclusion.report, rendering);
        }
    }
    // While something is being changed nobody waits for this.
    if order.mode != Mode::Apply {
        stop.run_until_cancelled(origins::fields(&mut conclusions, wanted)).await;
    }
    let (problems, unclaimed) = findings(&conclusions);
    let clusters = conclusions.into_iter().map(|(name, conclusion)| (name, conclusion.report)).collect();
    remember(order, &clusters, state);
    fights::remember(order, &clusters, state);
    if order.mode != Mode::Report {
        approvals::record(state, &order.sync, order.only.is_some() || order.undo.is_some(), &clusters);
    }
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
        stale_since: None,
        mode: order.told_mode(),
        started,
        finished: finished(clock, started),
        problems,
        unclaimed,
        clusters,
    }
}

/// Names what is applied, for whoever finds it in the inventory. What is undone or rolled back comes from no source.
fn applying(order: &Order, snapshot: &Snapshot) -> Applied {
    let (address, revision) = (snapshot.address_of(&order.settings.path), snapshot.revision.clone());
    Applied { address, revision, committed: snapshot.committed }
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

/// How the round on a cluster ended: its name, and what was wanted there.
type Ended = (String, Want, Conclusion);

/// One of the clusters of a round, and everything that the round needs to know there.
struct Target {
    cluster: Arc<dyn Cluster>,
    name: String,
    want: Want,
    policies: Policies,
    mode: Mode,
    wait_policy: Option<WaitPolicy>,
    acceptance: Duration,
    last_round: Option<LastRound>,
    last: Option<journal::LastDrift>,
    is_trusting: bool,
    history: Option<RenderHistory>,
    recorder: Option<Arc<Recorder>>,
    undo: Option<Vec<Change>>,
    siblings: Siblings,
    audit: Audit,
    pinned: Option<Saved>,
    names: Names,
}

impl Target {
    fn new(order: &Order, cluster: Arc<dyn Cluster>, want: Want, about: About, state: &State) -> Self {
        let (name, now) = (about.cluster.clone(), about.started);
        if order.undo.is_some() && order.mode == Mode::Apply {
            known::forget(order, &name, state);
        }
        let audit = order.audit(&name, state);
        let is_compared = order.mode == Mode::Report;
        let last = is_compared.then(|| journal::before(state, &order.sync, &name)).flatten();
        let pinned = order.pinned.as_ref().map(|pinned| pinned.get(&name).cloned().unwrap_or_default());
        let policies = Policies {
            conflicts: conflicts(order, &name, state),
            pinned: pinned.as_ref().map(|saved| saved.steps.clone()),
            approved: approvals::valid(state, &order.sync, &name, now),
            ..order.policies(&name, is_first_round(order, cluster.as_ref(), &audit))
        };
        Self {
            policies,
            mode: order.mode,
            wait_policy: order.wait_policy(),
            acceptance: order.settings.wait.timeout.0,
            last_round: known::recall(order, &name, state, now),
            is_trusting: last.as_ref().is_some_and(|last| known::is_proven(order, &name, last, now)),
            last,
            history: RenderHistory::of(order, about.clone()),
            recorder: order.recorder(about),
            undo: order.undo.as_ref().map(|undo| undo.get(&name).cloned().unwrap_or_default()),
            siblings: order.siblings.get(&name).cloned().unwrap_or_default(),
            audit,
            pinned,
            names: order.names(&name, state),
            cluster,
            name,
            want,
        }
    }

    /// Runs the round, once it is known what the cluster can do.
    async fn round(mut self, stop: CancellationToken) -> Ended {
        let wants = std::iter::once(&mut self.want).chain(self.siblings.wants_mut());
        let refused = tokio::select! {
            biased;
            () = stop.cancelled() => Some(round::stopped()),
            completed = capabilities::complete(wants, self.cluster.as_ref()) => completed.err().map(|it| round::failed(&it)),
        };
        if let Some(report) = refused {
            return (self.name, self.want, Conclusion::of(report));
        }
        let want = self.want.clone();
        let (name, conclusion) = self.conclude(stop).await;
        (name, want, conclusion)
    }

    async fn conclude(self, stop: CancellationToken) -> (String, Conclusion) {
        if let Some(refused) = other_cluster(self.cluster.as_ref(), self.pinned.as_ref()).await {
            return (self.name, Conclusion::of(refused));
        }
        if self.mode == Mode::Report && self.cluster.carries_marks() {
            let (want, policies, siblings) = (&self.want, &self.policies, &self.siblings);
            let (last, is_trusting) = (self.last.as_ref(), self.is_trusting);
            let task = drift::Task { want, policies, siblings, last, is_trusting, stop: &stop };
            return (self.name, drift::run(self.cluster.as_ref(), &task).await);
        }
        let task = Task {
            want: &self.want,
            policies: &self.policies,
            // In a directory everything is ours, or nobody's.
            mode: if self.mode == Mode::Report { Mode::Plan } else { self.mode },
            wait_policy: self.wait_policy,
            acceptance: self.acceptance,
            last_round: self.last_round.as_ref(),
            siblings: &self.siblings,
            audit: self.cluster.carries_marks().then_some(&self.audit),
            names: &self.names,
            recorder: self.recorder.as_ref(),
            undo: self.undo.as_deref(),
            stop: &stop,
        };
        let conclusion = round::run(self.cluster.as_ref(), &task).await;
        if let Some(history) = self.history {
            history.keep(&self.want, &conclusion).await;
        }
        (self.name, conclusion)
    }
}

async fn collect(order: &Order, mut tasks: JoinSet<Ended>, wanted: &mut Wanted) -> BTreeMap<String, Conclusion> {
    let mut clusters = BTreeMap::new();
    while let Some(result) = tasks.join_next().await {
        match result {
            Ok((name, want, conclusion)) => {
                wanted.insert(name.clone(), want);
                clusters.insert(name, conclusion);
            }
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
    let is_no_change = conclusion.last_round.as_ref().is_some_and(|last_round| last_round.no_change.is_some());
    if let (None, false, Some(want)) = (&conclusion.rendering, is_no_change, wanted.get(name)) {
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
        } else if let Some(no_change) =
            conclusion.last_round.as_ref().and_then(|last_round| last_round.no_change.as_ref())
        {
            found.insert(name, &no_change.problems);
            unclaimed.extend(no_change.unclaimed.iter().cloned());
        }
    }
    (problems(&found), unclaimed.into_iter().collect())
}

impl Order {
    /// Has an archive keep what the round changes; its key is that of the fingerprints, too.
    pub fn keep_in(&mut self, archive: Arc<Archive>) {
        self.masker = archive.vault().masker().clone();
        self.archive = Some(archive);
    }

    /// Names the round, if it is to change something.
    fn run_name(&self, started: Timestamp) -> String {
        let clusters: Vec<&str> = self.clusters.keys().map(String::as_str).collect();
        if self.mode == Mode::Apply { runs::name(started, &self.sync, &clusters) } else { String::new() }
    }

    /// What is reported of directories alone is a plan: in them everything is ours, or nobody's.
    fn told_mode(&self) -> Mode {
        let is_planned = self.mode == Mode::Report && self.clusters.values().all(|cluster| !cluster.carries_marks());
        if is_planned { Mode::Plan } else { self.mode }
    }

    /// Returns the mark of what the sync owns.
    pub fn marker(&self) -> Marker {
        Marker { installation: self.installation.clone(), sync: self.sync.clone() }
    }

    /// What this host remembers of the sync on one of the clusters.
    fn audit(&self, cluster: &str, state: &State) -> Audit {
        Audit::new(state, &self.sync, cluster, self.key.clone())
    }

    /// A cluster as one of those of the config file. A sync that only reports makes and prunes nothing there.
    fn names(&self, name: &str, state: &State) -> Names {
        let is_noted = self.mode == Mode::Apply;
        let aliases =
            if self.settings.mode == settings::Mode::Apply { Arc::clone(&self.aliases) } else { Arc::default() };
        Names { aliases, name: name.to_owned(), state: state.clone(), is_noted }
    }

    fn recorder(&self, about: About) -> Option<Arc<Recorder>> {
        let archive = self.archive.as_ref().filter(|_| self.mode == Mode::Apply);
        archive.map(|archive| Arc::new(archive.recorder(about)))
    }

    fn policies(&self, cluster: &str, first_round: bool) -> Policies {
        let settings = &self.settings;
        Policies {
            marker: self.marker(),
            cluster: cluster.to_owned(),
            known_cluster: String::new(),
            twin: None,
            source: settings.source.clone(),
            applying: Applied::default(),
            is_polled: true,
            adopt: match settings.adopt.policy {
                AdoptPolicy::Never => Adopt::Never,
                AdoptPolicy::Confirm => Adopt::Confirm,
                AdoptPolicy::IfUnowned => Adopt::IfUnowned,
                AdoptPolicy::Always => Adopt::Always,
            },
            adopt_deployer: settings.adopt.deployer,
            prune_adopted: settings.adopt.prune,
            prune: settings.prune.enabled,
            max_delete: self.max_delete(),
            confirm: Confirm { kinds: settings.prune.confirm.kinds.clone(), gpus: settings.prune.confirm.gpus },
            recreate: settings.recreate.kinds.clone(),
            approved: BTreeSet::new(),
            pinned: None,
            allow_empty: settings.prune.allow_empty || self.undo.is_some(),
            create_namespaces: settings.create_namespaces,
            allow: settings.allow.policy(),
            only: self.only.clone(),
            first_round,
            hold_on_problem: settings.on_problem == OnProblem::HoldSync,
            conflicts: Conflicts::default(),
            claims: Claims::default(),
            renamed_from: settings.moved.iter().map(|moved| moved.from.clone()).collect(),
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

    fn wait_policy(&self) -> Option<WaitPolicy> {
        let wait = &self.settings.wait;
        let readiness = Readiness { load_balancer: wait.load_balancer };
        let wait_policy = WaitPolicy { timeout: wait.timeout.0, model_timeout: wait.model_timeout.0, readiness };
        (wait.enabled && self.wait).then_some(wait_policy)
    }
}

/// Who wins where others write to our fields, and what of that was tried in vain on this cluster.
fn conflicts(order: &Order, cluster: &str, state: &State) -> Conflicts {
    let rules = order.settings.conflicts.iter().map(ConflictRule::rule).collect();
    let ignore = order.settings.ignore.iter().filter_map(IgnoreRule::rule).collect();
    // A person who undoes something corrects nothing, and waits for nothing.
    let is_undo = order.undo.is_some();
    let fights = if is_undo { Fights::default() } else { fights::remembered(order, cluster, state) };
    Conflicts { rules, ignore, fights, masker: order.masker.clone() }
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
    for folder in list(&state.path(audit::FOLDER)) {
        seen.extend(list(&folder).map(|file| (name(&folder), name(&file))));
    }
    seen.sort();
    seen
}

/// A host that has not seen a cluster before deletes nothing there yet. A directory keeps its own inventory, and works
/// with a fresh state, as in CI.
fn is_first_round(order: &Order, cluster: &dyn Cluster, audit: &Audit) -> bool {
    let former = order.settings.moved.iter().any(|moved| audit.of(&moved.from).has_seen());
    cluster.carries_marks() && !audit.has_seen() && !former
}

fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let done = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && report.state == ClusterState::Done);
    for (name, _) in done {
        if let Err(error) = order.audit(name, state).record_seen() {
            error!(error = %gatewright_engine::error::Chain(&error), "cannot remember a cluster");
        }
    }
}
