//! One round of one sync over all its clusters: beside each other, each isolated from the rest.
//!
//! A cluster that is down, slow or wrong delays and changes no other: each has a task of its own, and a bug in one
//! (a panic) is that cluster's failure.

mod back;
mod fights;
mod known;
mod origins;
mod passes;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::plan::guard::Guard;
use gatewright_engine::problem::Problem;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::basics::clock::Clock;
use crate::cluster::{Cluster, budget};
use crate::config::Config;
use crate::desired::capabilities;
use crate::desired::rendering::{Want, Wanted, problems};
use crate::history::approvals;
use crate::history::archive::{About, runs};
use crate::inventory::audit;
use crate::reconcile::model::{Conclusion, Order, RoundSettings, Target};
use crate::reconcile::phase::Phase;
use crate::reconcile::{drift, gates, round};
use crate::report::{ClusterReport, ClusterState, Mode, ProblemReport, Report, Saved, StepReport, Unclaimed};
use crate::source::Snapshot;
use crate::state::{State, StateError};

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
    let run = run_name(order, started);
    // Whoever may be waited for is known before the first round begins.
    let mut rounds = Vec::new();
    for (name, cluster) in &order.clusters {
        let Some(want) = wanted.get(name).cloned() else { continue };
        let (run, sync, revision) = (run.clone(), order.sync.clone(), snapshot.revision.clone());
        let about = About { run, sync, cluster: name.clone(), revision, started };
        let settings = settings::of(order, cluster.as_ref(), (want, snapshot), about, state, stop);
        let span = info_span!("cluster", sync = order.sync, cluster = name);
        rounds.push(on_cluster(order.target(name, cluster), settings).instrument(span));
    }
    let tasks = rounds.into_iter().collect::<JoinSet<_>>();
    let mut wanted = wanted.clone();
    let keep = |name: &str, conclusion: &mut Conclusion| known::keep(order, name, conclusion, state, started);
    let mut conclusions = collect(order, tasks, &mut wanted, keep).await;
    let wanted = &wanted;
    for (name, conclusion) in &mut conclusions {
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
    let partial = order.only.is_some() || order.undo.is_some();
    let waves = waves(order, &clusters);
    if order.mode != Mode::Report {
        approvals::record(state, &order.sync, partial, &clusters);
    }
    Report {
        run,
        cause: order.cause.clone(),
        partial,
        waves,
        revision: snapshot.revision.clone(),
        // The clock of a host may be set back during a round; its reports do not run backwards.
        finished: clock.now().max(started),
        problems,
        unclaimed,
        clusters,
        ..Report::about((&order.sync, &order.settings.source), told_mode(order), started)
    }
}

/// Returns the clusters in the order in which a plan would reach them, if they are not reached at once.
fn waves(order: &Order, clusters: &BTreeMap<String, ClusterReport>) -> Vec<Vec<String>> {
    let rollout = order.rollout.as_ref().filter(|_| order.mode == Mode::Plan && order.undo.is_none());
    let rolls = |report: &ClusterReport| {
        report.steps.iter().any(StepReport::rolls_pods) || report.waits_for(Guard::RolloutApproval)
    };
    let rolled: Vec<&str> = clusters.iter().filter(|(_, it)| rolls(it)).map(|(name, _)| name.as_str()).collect();
    rollout.map(|rollout| rollout.order(&rolled)).filter(|waves| waves.len() > 1).unwrap_or_default()
}

/// Names the round, if it is to change something.
fn run_name(order: &Order, started: Timestamp) -> String {
    let clusters: Vec<&str> = order.clusters.keys().map(String::as_str).collect();
    if order.mode == Mode::Apply { runs::name(started, &order.sync, &clusters) } else { String::new() }
}

/// Returns the mode that is reported: a plan where a report is of directories alone, because in them everything is
/// ours, or nobody's.
fn told_mode(order: &Order) -> Mode {
    let is_planned = order.mode == Mode::Report && order.clusters.values().all(|cluster| !cluster.carries_marks());
    if is_planned { Mode::Plan } else { order.mode }
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

/// The end of the round on a cluster: the name of the cluster, what was wanted there, and the conclusion.
type Ended = (String, Want, Conclusion);

/// Runs the round on a cluster, once it is known what that can do.
async fn on_cluster((name, cluster, breaker): Target, mut settings: RoundSettings) -> Ended {
    let mut conclusion = if let Some(report) = breaker.as_ref().and_then(|breaker| breaker.refuses()) {
        Conclusion::of(report)
    } else {
        let mut conclusion = let_through(cluster.as_ref(), &mut settings).await;
        if let Some(breaker) = breaker {
            breaker.note(&mut conclusion.report);
        }
        conclusion
    };
    if let Some(turn) = &settings.turn {
        turn.end(&conclusion.report);
    }
    if settings.may_go_back() {
        back::take_back(cluster.as_ref(), &mut settings, &mut conclusion).await;
    }
    round::kept::keep(cluster.as_ref(), &settings, &mut conclusion).await;
    (name, settings.want, conclusion)
}

async fn let_through(cluster: &dyn Cluster, settings: &mut RoundSettings) -> Conclusion {
    let stop = settings.stop.clone();
    let wants = std::iter::once(&mut settings.want).chain(settings.siblings.wants_mut());
    let refused = tokio::select! {
        biased;
        () = stop.cancelled() => Some(Conclusion::stopped()),
        completed = capabilities::complete(wants, cluster) => completed.err().map(|it| Conclusion::failed(&it)),
    };
    match refused {
        Some(refused) => refused,
        None => in_turn(cluster, settings).await,
    }
}

/// Runs the round, and again each time that the turn of something has come that waits for other clusters.
async fn in_turn(cluster: &dyn Cluster, settings: &mut RoundSettings) -> Conclusion {
    let mut earlier: Option<ClusterReport> = None;
    loop {
        let mut conclusion = budget::together(Box::pin(conclude(cluster, settings))).await;
        settings.place.leave();
        let report = &conclusion.report;
        let waits = report.waiting_for_rollout().next().is_some() || report.waits_to_delete().is_some();
        conclusion.report = passes::joined(earlier.take(), conclusion.report);
        let Some(turn) = settings.turn.as_ref().filter(|_| waits) else { return conclusion };
        turn.rests(&conclusion.report);
        settings.teller.tell(Phase::Turn);
        round::kept::keep(cluster, settings, &mut conclusion).await;
        if !turn.comes(&settings.stop).await || settings.suspension.look() {
            return conclusion;
        }
        // What is done of a plan that is carried out as it was made is done.
        if let Some(pinned) = &mut settings.policies.pinned {
            let done: BTreeSet<_> = passes::done(&conclusion.report).collect();
            pinned.retain(|step| !done.contains(&step.id));
        }
        earlier = Some(conclusion.report);
    }
}

async fn conclude(cluster: &dyn Cluster, settings: &RoundSettings) -> Conclusion {
    if let Some(refused) = other_cluster(cluster, settings.pinned.as_ref()).await {
        return Conclusion::of(refused);
    }
    if settings.mode == Mode::Report {
        return drift::run(cluster, settings).await;
    }
    let mut conclusion = round::run(cluster, settings).await;
    gates::judge(settings, &mut conclusion.report).await;
    if let Some(history) = &settings.history {
        history.end(&settings.want, &conclusion).await;
    }
    conclusion
}

/// Waits for the rounds, and keeps what each of them knows as soon as it is over: in a large fleet that is not to be in
/// memory for all clusters until the last one has ended.
async fn collect(
    order: &Order,
    mut tasks: JoinSet<Ended>,
    wanted: &mut Wanted,
    keep: impl Fn(&str, &mut Conclusion),
) -> BTreeMap<String, Conclusion> {
    let mut clusters = BTreeMap::new();
    while let Some(result) = tasks.join_next().await {
        match result {
            Ok((name, want, mut conclusion)) => {
                if let Some(listener) = &order.listener {
                    listener(&name, Phase::Over);
                }
                keep(&name, &mut conclusion);
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

/// Says which syncs and clusters were once applied to and are not configured any more.
///
/// What they own stays where it is: taking a line out of a file must not empty a cluster.
pub fn warn_of_abandoned(config: &Config, state: &State) {
    if !config.knows_all_clusters() {
        return;
    }
    let mut seen = audit::SEEN.targets(state);
    seen.sort();
    for (sync, cluster) in seen {
        let settings = config.settings.syncs.get(&sync);
        let is_selected = settings.is_some_and(|settings| config.clusters_of(settings).contains_key(cluster.as_str()));
        if !is_selected {
            warn!(sync, cluster, "not configured any more; what was applied there stays as it is");
        }
    }
}

/// Forgets what rounds have noted of a cluster.
pub(super) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    known::forget_cluster(state, cluster)?;
    fights::forget_cluster(state, cluster)
}

/// Keeps what rounds have noted of a cluster under another name.
pub(super) fn rename_cluster(state: &State, names: (&str, &str)) -> Result<(), StateError> {
    known::rename_cluster(state, names)?;
    fights::rename_cluster(state, names)
}

fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let done = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && report.state == ClusterState::Done);
    for (name, _) in done {
        if let Err(error) = settings::audit(order, name, state).record_seen() {
            error!(error = %gatewright_engine::error::Chain(&error), "cannot remember a cluster");
        }
    }
}
