//! The settings of a round on one cluster: what is asked for all of them, and what this host remembers of this one.

use std::sync::Arc;

use gatewright_engine::health::Readiness;
use gatewright_engine::inventory::Applied;
use gatewright_engine::kinds::name::KindName;
use gatewright_engine::plan::conflicts::Conflicts;
use gatewright_engine::plan::conflicts::fights::Fights;
use gatewright_engine::plan::policies::{Confirm, MaxDelete, Policies};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{fights, known};
use crate::cluster::Cluster;
use crate::config;
use crate::config::conflicts::{ConflictRule, IgnoreRule};
use crate::config::settings::OnProblem;
use crate::desired::rendering::Want;
use crate::history::approvals;
use crate::history::archive::About;
use crate::history::archive::record::Recorder;
use crate::history::journal;
use crate::inventory::audit::Audit;
use crate::reconcile::aliases::Names;
use crate::reconcile::depends::Waiting;
use crate::reconcile::events::EventRecorder;
use crate::reconcile::model::{Order, RoundSettings, WaitPolicy};
use crate::reconcile::phase::Teller;
use crate::reconcile::render_history::RenderHistory;
use crate::reconcile::rollout::Turn;
use crate::report::{Mode, Saved};
use crate::source::Snapshot;
use crate::state::State;
use crate::state::suspension::Watch;

/// Puts them together. An undo that is carried out has what is known of the cluster forgotten.
pub(super) fn of(
    order: &Order,
    cluster: &dyn Cluster,
    (want, snapshot): (Want, &Snapshot),
    about: About,
    state: &State,
    stop: &CancellationToken,
) -> RoundSettings {
    let (name, now) = (about.cluster.clone(), about.started);
    if order.undo.is_some() && order.mode == Mode::Apply {
        known::forget(order, &name, state);
    }
    let audit = audit(order, &name, state);
    let last = (order.mode == Mode::Report).then(|| journal::before(state, &order.sync, &name)).flatten();
    let pinned = order.pinned.as_ref().map(|pinned| pinned.get(&name).cloned().unwrap_or_default());
    let first_round = is_first_round(order, cluster, &audit);
    let policies = policies(order, snapshot, &about, pinned.as_ref(), (state, first_round));
    // What is put back in an incident waits for nobody.
    let target = want.target().or_else(|| order.cause.clone().map(|cause| (cause.clone(), cause)));
    let rollout = order.rollout.as_ref().filter(|_| order.undo.is_none()).zip(target);
    let turn =
        rollout.map(|(rollout, target)| Turn::new(rollout, &name, target, (order.mode, order.only.is_some(), now)));
    let waiting = waiting(order, &want, &about, state);
    // In a directory everything is ours, or nobody's.
    let is_planned = order.mode == Mode::Report && !cluster.carries_marks();
    RoundSettings {
        history: RenderHistory::of(order, about.clone(), &want),
        want,
        policies,
        mode: if is_planned { Mode::Plan } else { order.mode },
        wait_policy: wait_policy(order),
        acceptance: order.settings.wait.timeout.0,
        last_round: known::recall(order, &name, state, now),
        is_trusting: last.as_ref().is_some_and(|last| known::is_proven(order, &name, last, now)),
        last,
        siblings: order.siblings.get(&name).cloned().unwrap_or_default(),
        names: names(order, &name, state),
        audit: cluster.carries_marks().then_some(audit),
        events: events(order, &about),
        recorder: recorder(order, about),
        undo: order.undo.as_ref().map(|undo| undo.get(&name).cloned().unwrap_or_default()),
        pinned,
        turn,
        waiting,
        bodies: order.bodies,
        place: order.places.for_round(),
        teller: Teller::new(order.listener.as_ref(), &name),
        suspension: Watch::new(state, &order.sync),
        stop: stop.clone(),
    }
}

/// Returns the syncs that come first. What no source says, such as an undo or a destroy, waits for nobody.
fn waiting(order: &Order, want: &Want, about: &About, state: &State) -> Option<Waiting> {
    let is_of_source = order.undo.is_none() && !matches!(want, Want::Ready(_));
    is_of_source.then(|| Waiting {
        dependencies: Arc::clone(&order.dependencies),
        state: state.clone(),
        sync: order.sync.clone(),
        cluster: about.cluster.clone(),
        revision: about.revision.clone(),
        now: about.started,
    })
}

/// Returns the record that this host keeps of the sync on one of the clusters.
pub(super) fn audit(order: &Order, cluster: &str, state: &State) -> Audit {
    Audit::new(state, &order.sync, cluster, order.key.clone())
}

/// A cluster as one of those of the config file. A sync that only reports makes and prunes nothing there.
fn names(order: &Order, name: &str, state: &State) -> Names {
    let is_noted = order.mode == Mode::Apply;
    let aliases =
        if order.settings.mode == config::settings::Mode::Apply { Arc::clone(&order.aliases) } else { Arc::default() };
    Names { aliases, name: name.to_owned(), state: state.clone(), is_noted }
}

fn recorder(order: &Order, about: About) -> Option<Arc<Recorder>> {
    let archive = order.archive.as_ref().filter(|_| order.mode == Mode::Apply);
    archive.map(|archive| Arc::new(archive.recorder(about)))
}

fn events(order: &Order, about: &About) -> Option<EventRecorder> {
    let is_told = order.settings.events && order.mode == Mode::Apply;
    let (run, cause, started) = (about.run.clone(), order.cause.clone(), about.started);
    is_told.then(|| EventRecorder { run, cause, started, begun: Instant::now() })
}

fn policies(
    order: &Order,
    snapshot: &Snapshot,
    about: &About,
    pinned: Option<&Saved>,
    (state, first_round): (&State, bool),
) -> Policies {
    let settings = &order.settings;
    // Names what is applied, for whoever finds it in the inventory. What is undone or rolled back comes from no source.
    let (address, revision) = (snapshot.address_of(&settings.path), snapshot.revision.clone());
    Policies {
        kinds: order.kinds.clone(),
        cluster: about.cluster.clone(),
        source: settings.source.clone(),
        applying: Applied { address, place: snapshot.place.clone(), revision, committed: snapshot.committed },
        is_polled: snapshot.is_polled,
        adopt: settings.adopt.policy,
        adopt_deployer: settings.adopt.deployer,
        prune_adopted: settings.adopt.prune,
        prune: settings.prune.enabled,
        max_delete: max_delete(order),
        confirm: confirm(order),
        recreate: settings.recreate.kinds.iter().map(|kind| KindName::read(kind)).collect(),
        approved: approvals::valid(state, &order.sync, &about.cluster, about.started),
        pinned: pinned.map(|saved| saved.steps.clone()),
        allow_empty: settings.prune.allow_empty || order.undo.is_some(),
        create_namespaces: settings.create_namespaces,
        allow: settings.allow.policy(),
        only: order.only.clone(),
        first_round,
        hold_on_problem: settings.on_problem == OnProblem::HoldSync,
        conflicts: conflicts(order, &about.cluster, state),
        renamed_from: settings.moved.iter().map(|former| former.from.clone()).collect(),
        ..Policies::new(order.marker())
    }
}

fn confirm(order: &Order) -> Confirm {
    let settings = &order.settings.prune.confirm;
    let named = settings.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| KindName::read(kind)).collect());
    Confirm { kinds: named.unwrap_or_else(|| order.kinds.confirmed()), gpus: settings.gpus }
}

/// An undo deletes what the round had made that it names, and wants nothing else.
fn max_delete(order: &Order) -> MaxDelete {
    match order.undo {
        Some(_) => MaxDelete { units: usize::MAX, percent: 100, fleet: usize::MAX },
        None => order.settings.prune.max_delete,
    }
}

fn wait_policy(order: &Order) -> Option<WaitPolicy> {
    let wait = &order.settings.wait;
    let readiness = Readiness { load_balancer: wait.load_balancer };
    let wait_policy = WaitPolicy { timeout: wait.timeout.0, model_timeout: wait.model_timeout.0, readiness };
    (wait.enabled && order.wait).then_some(wait_policy)
}

/// Returns who wins where others write to our fields, and what of that was tried in vain on this cluster.
fn conflicts(order: &Order, cluster: &str, state: &State) -> Conflicts {
    let rules = order.settings.conflicts.iter().map(ConflictRule::rule).collect();
    let ignore = order.settings.ignore.iter().filter_map(IgnoreRule::rule).collect();
    // A person who undoes something corrects nothing, and waits for nothing.
    let is_undo = order.undo.is_some();
    let fights = if is_undo { Fights::default() } else { fights::remembered(order, cluster, state) };
    Conflicts { rules, ignore, fights, masker: order.masker.clone() }
}

/// A host that has not seen a cluster before deletes nothing there yet. A directory keeps its own inventory, and works
/// with a fresh state, as in CI.
fn is_first_round(order: &Order, cluster: &dyn Cluster, audit: &Audit) -> bool {
    let former = order.settings.moved.iter().any(|moved| audit.of(&moved.from).has_seen());
    cluster.carries_marks() && !audit.has_seen() && !former
}
