//! Rounds in this process that are undone: those that end at any of their side effects, and those that grow old.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crate::support::memory::{MemoryCluster, Verb};
use gatewright::cluster::{Cluster, Reason};
use gatewright::history::archive::record::file_name;
use gatewright::report::outcome::Outcome;
use gatewright::report::{ClusterReport, ClusterState};
use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::refusal::Reason as Why;
use serde_json::{Value, json};

use crate::rounds::installation::{Installation, Specs, gateways};
use crate::rounds::mortal::{Death, End, Mortal, Side};

fn installation() -> Installation {
    Installation::new("edge", &json!({"prune": {"maxDelete": {"units": 9, "percent": 100}}})).keeping()
}

fn memory() -> (Arc<MemoryCluster>, Arc<dyn Cluster>) {
    let memory = Arc::new(MemoryCluster::new("c"));
    (Arc::clone(&memory), memory)
}

fn before() -> Specs {
    gateways("infra", &[("changes", 80), ("goes", 80), ("stays", 80)])
}

/// The specs of the round that ends before its time.
fn after() -> Specs {
    gateways("infra", &[("changes", 81), ("comes", 80), ("stays", 80)])
}

/// The objects that are there, without what no two objects have in common.
fn bodies(memory: &MemoryCluster) -> BTreeMap<ObjectId, Value> {
    let body = |live: Live| live.object.into_body();
    memory.objects().into_iter().filter(|(id, _)| id.kind != "Namespace").map(|(id, live)| (id, body(live))).collect()
}

/// Asserts that all that was not refused is as it was, and that only what nobody can know is refused.
#[track_caller]
fn assert_undone(undone: &ClusterReport, was: &BTreeMap<ObjectId, Value>, memory: &MemoryCluster) {
    let is_refused = |id: &ObjectId| undone.refusals.iter().any(|refusal| refusal.id == *id);
    let known = |all: BTreeMap<ObjectId, Value>| -> BTreeMap<_, _> {
        all.into_iter().filter(|(id, _)| !is_refused(id)).collect()
    };
    assert_eq!(known(bodies(memory)), known(was.clone()), "{undone:?}");
    for refusal in &undone.refusals {
        let reason = refusal.reason.to_string();
        assert!(reason.starts_with("not undone: the round ended before it could note what it"), "{reason}");
    }
    assert!(undone.refusals.len() <= 8, "what was noted can be undone: {undone:?}");
}

#[tokio::test]
async fn a_round_that_ends_anywhere_can_be_undone() {
    let mut deaths = 0;
    for end in [End::Killed, End::CutOff] {
        for side in [Side::Before, Side::After] {
            for at in 1.. {
                let (installation, (memory, cluster)) = (installation(), memory());
                installation.round(&before(), &cluster).await;
                let (was, known) = (bodies(&memory), installation.runs().len());
                let mortal = Mortal::new(&cluster, Some(Death { at, side, end }));
                let dying: Arc<dyn Cluster> = Arc::clone(&mortal) as Arc<dyn Cluster>;
                let survived = mortal.survives(installation.round(&after(), &dying)).await;
                let runs = installation.runs();
                if runs.len() > known {
                    let undone = installation.undo(&runs[0], &cluster).await;
                    assert_eq!(undone.state, ClusterState::Done, "{undone:?}");
                    assert_undone(&undone, &was, &memory);
                    let again = installation.undo(&runs[0], &cluster).await;
                    assert!(!again.has_changed(), "{again:?}");
                } else {
                    assert_eq!(bodies(&memory), was, "what was changed was not written down before");
                }
                // The next round goes on as if nothing had been.
                installation.round(&after(), &cluster).await;
                let last = installation.round(&after(), &cluster).await;
                assert_eq!((last.state, last.has_changed()), (ClusterState::Done, false), "{last:?}");
                deaths += 1;
                if survived {
                    assert!(at > 12, "a round has more side effects than {at}");
                    break;
                }
            }
        }
    }
    assert!(deaths > 48, "{deaths}");
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_touched() {
    let (installation, (memory, cluster)) = (installation(), memory());
    installation.round(&before(), &cluster).await;
    let was = memory.objects();
    // There is no room for one object, so nothing of its unit goes on from there.
    let service = ObjectId::new("", "Service", "infra", "changes");
    let file = file_name(&service, 1);
    let next = installation.next_run("edge.test");
    fs::create_dir_all(installation.folder().join(&next).join("test").join(&file)).expect("a test may");
    let report = installation.round(&after(), &cluster).await;
    assert_eq!(report.state, ClusterState::Failed, "{report:?}");
    let outcome = |id: &ObjectId| report.steps.iter().find(|step| step.id == *id).and_then(|step| step.outcome.clone());
    let Some(Outcome::Failed(message)) = outcome(&service) else { unreachable!("{report:?}") };
    assert!(message.contains("without which nothing is changed or deleted") && message.contains(&file), "{message}");
    let deployment = ObjectId::new("apps", "Deployment", "infra", "changes");
    assert_eq!(outcome(&deployment), Some(Outcome::Skipped));
    for id in [&service, &deployment] {
        assert_eq!(memory.objects().get(id), was.get(id), "nothing was sent");
    }
    assert_eq!(installation.round(&after(), &cluster).await.state, ClusterState::Done);
}

#[tokio::test]
async fn a_round_whose_answer_was_lost_is_not_taken_for_that_of_others() {
    let (installation, (memory, cluster)) = (installation(), memory());
    installation.round(&before(), &cluster).await;
    let was = bodies(&memory);
    let service = ObjectId::new("", "Service", "infra", "changes");
    memory.lose_next_answer(Verb::Apply, Some(service.clone()));
    installation.round(&after(), &cluster).await;
    let runs = installation.runs();
    let undone = installation.undo(&runs[0], &cluster).await;
    let refused: Vec<&ObjectId> = undone.refusals.iter().map(|refusal| &refusal.id).collect();
    assert_eq!(refused, [&service], "{undone:?}");
    assert!(matches!(undone.refusals[0].reason, Why::NotUndone(_)));
    assert_undone(&undone, &was, &memory);
}

#[tokio::test]
async fn records_are_kept_as_long_as_the_settings_say() {
    let (installation, (_, cluster)) = (installation(), memory());
    for port in 80..84 {
        installation.round(&gateways("infra", &[("edge", port)]), &cluster).await;
    }
    installation.wait(Duration::from_hours(24 * 29));
    installation.round(&gateways("infra", &[("edge", 84)]), &cluster).await;
    assert_eq!(installation.runs().len(), 5);
    installation.round(&gateways("infra", &[("edge", 84)]), &cluster).await;
    assert_eq!(installation.runs().len(), 5, "who changes nothing leaves nothing");
    installation.wait(Duration::from_hours(24 * 2));
    installation.expire();
    assert_eq!(installation.runs().len(), 3, "the newest stay whatever their age");
    installation.wait(Duration::from_hours(24 * 300));
    installation.expire();
    assert_eq!(installation.runs().len(), 3);
}

#[tokio::test]
async fn an_undo_that_plans_again_reports_all_that_it_did_and_nothing_else() {
    let (installation, (memory, cluster)) = (installation(), memory());
    installation.round(&before(), &cluster).await;
    let was = bodies(&memory);
    installation.round(&after(), &cluster).await;
    let runs = installation.runs();
    // Somebody else is faster with one object, after others were done.
    memory.fail_next(Verb::Apply, Some(ObjectId::new("apps", "Deployment", "infra", "goes")), Reason::Conflict);
    let undone = installation.undo(&runs[0], &cluster).await;
    assert_eq!((undone.state, bodies(&memory) == was), (ClusterState::Done, true), "{undone:?}");
    let done = |action: &str| {
        let steps =
            undone.steps.iter().filter(|step| step.action.word() == action && step.outcome == Some(Outcome::Done));
        steps.count()
    };
    assert_eq!((done("create"), done("update"), done("prune")), (4, 2, 4), "{undone:?}");
    assert_eq!(undone.steps.len(), 10, "each once: {undone:?}");
}
