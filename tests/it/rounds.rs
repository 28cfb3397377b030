//! Rounds as a property: whatever is wanted, changed and fails, nothing is lost and nothing of others is touched.

pub(crate) mod installation;
pub(crate) mod mortal;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::memory::{MemoryCluster, Verb};
use gatewright::cluster::directory::DirectoryCluster;
use gatewright::cluster::{Cluster, Reason};
use gatewright::report::outcome::Outcome;
use gatewright::report::{ClusterReport, ClusterState, StepReport, UnitState};
use gatewright_engine::object::{Gvk, Object, ObjectId};
use proptest::prelude::*;
use serde_json::json;

use installation::{Installation, gateways};
use mortal::Mortal;
use world::{Event, World, event};

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(work);
}

/// The steps of a plan: unit, object, action and what differs.
fn steps(report: &ClusterReport) -> Vec<String> {
    let paths = |step: &StepReport| {
        step.differences.iter().map(|difference| difference.path.clone()).collect::<Vec<_>>().join(" ")
    };
    report.steps.iter().map(|step| format!("{}: {} {} {}", step.unit, step.action, step.id, paths(step))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_lost_and_rounds_converge(
        days in prop::collection::vec(prop::collection::vec(event(), 0..5), 1..5),
        adopts in any::<bool>(),
        applies_specs in any::<bool>(),
    ) {
        block_on(async {
            let mut world = World::new(adopts, applies_specs);
            for events in &days {
                for event in events {
                    world.happens(event);
                }
                world.round().await;
            }
            let failures = days.iter().flatten().filter(|event| matches!(event, Event::Fail(..) | Event::Lose(_)));
            // Each round meets a failure that is still to come, or is the last that has anything to do.
            for _ in 0..failures.count() + 3 {
                world.round().await;
            }
            world.assert_converged().await;
        });
    }
}

#[tokio::test]
async fn a_round_that_plans_again_reports_all_that_it_did() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({}));
    let service = ObjectId::new("", "Service", "infra", "edge");
    memory.fail_next(Verb::Apply, Some(service), Reason::Conflict);
    let report = installation.round(&gateways("infra", &[("edge", 80)]), &cluster).await;
    let done = |step: &&StepReport| step.action.word() == "create" && step.outcome == Some(Outcome::Done);
    assert_eq!(report.steps.iter().filter(done).count(), 5, "{report:?}");
    assert_eq!(report.units.iter().map(|unit| unit.state).collect::<Vec<_>>(), [UnitState::Changed]);
}

#[tokio::test]
async fn what_follows_a_failure_is_not_tried() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({}));
    let all = gateways("infra", &[("edge", 80), ("other", 80)]);
    let of_edge =
        || memory.objects().into_keys().filter(|id| id.name == "edge").map(|id| id.kind.clone()).collect::<Vec<_>>();

    memory.fail_next(Verb::Apply, Some(ObjectId::new("", "ConfigMap", "infra", "edge")), Reason::Forbidden);
    assert_eq!(installation.round(&all, &cluster).await.state, ClusterState::Failed);
    assert_eq!((of_edge(), memory.objects().len()), (vec!["ServiceAccount".to_owned()], 1 + 4 + 1));
    // The first round that is through is the one after which this host may delete.
    assert_eq!(installation.round(&all, &cluster).await.state, ClusterState::Done);

    memory.fail_next(Verb::Delete, Some(ObjectId::new("apps", "Deployment", "infra", "edge")), Reason::Forbidden);
    let left = gateways("infra", &[("other", 80)]);
    assert_eq!(installation.round(&left, &cluster).await.state, ClusterState::Failed);
    assert_eq!(of_edge().len(), 4, "what is left of a unit keeps what it needs");
    assert_eq!(installation.round(&left, &cluster).await.state, ClusterState::Done);
    assert_eq!(of_edge().len(), 0);
}

#[tokio::test]
async fn a_bug_on_one_cluster_is_the_trouble_of_that_cluster_alone() {
    let memories = ["a", "b", "c"].map(|name| (name.to_owned(), Arc::new(MemoryCluster::new(name))));
    let mortals = memories.clone().map(|(name, memory)| {
        let cluster: Arc<dyn Cluster> = memory;
        (name, Mortal::new(&cluster, None))
    });
    let clusters = mortals.clone().map(|(name, mortal)| (name, mortal as Arc<dyn Cluster>)).into();
    let installation = Installation::new("edge", &json!({}));
    let specs = gateways("infra", &[("edge", 80)]);
    mortals[1].1.has_a_bug();
    let reports = installation.round_on(&specs, &clusters).await;
    let states = |reports: &BTreeMap<String, ClusterReport>| reports.values().map(|it| it.state).collect::<Vec<_>>();
    assert_eq!(states(&reports), [ClusterState::Done, ClusterState::Failed, ClusterState::Done]);
    let error = reports["b"].error.clone().expect("it has failed");
    assert!(error.message.contains("the round ended in a bug"), "{error:?}");
    assert_eq!(memories.each_ref().map(|(_, memory)| memory.objects().len()), [5, 0, 5]);

    let reports = installation.round_on(&specs, &clusters).await;
    assert_eq!(states(&reports), [ClusterState::Done; 3]);
    assert_eq!(memories.map(|(_, memory)| memory.objects().len()), [5, 5, 5]);
}

#[tokio::test]
async fn what_was_done_is_reported_also_if_it_cannot_be_recorded() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({}));
    installation.round(&gateways("infra", &[("edge", 80), ("other", 80)]), &cluster).await;

    // A round that only deletes writes its inventory once, at the end.
    memory.fail_next(Verb::WriteRecord, None, Reason::Unreachable);
    let left = gateways("infra", &[("other", 80)]);
    let report = installation.round(&left, &cluster).await;
    assert_eq!(report.state, ClusterState::Unreachable);
    assert!(report.error.is_some());
    let deleted =
        report.steps.iter().filter(|step| step.action.word() == "prune" && step.outcome == Some(Outcome::Done));
    assert_eq!(deleted.count(), 4);
    assert_eq!(installation.round(&left, &cluster).await.state, ClusterState::Done);
}

#[tokio::test]
async fn a_revision_that_nobody_has_confirmed_deletes_nothing() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({}));
    let (newer, older) = (gateways("infra", &[("a", 80), ("b", 80)]), gateways("infra", &[("a", 81)]));
    installation.round(&newer, &cluster).await;
    let report = installation.round_of_memory(&older, &cluster).await;
    let held: Vec<String> = report.holds.iter().map(|hold| hold.what.guard.to_string()).collect();
    assert_eq!(held, ["older-source"], "{report:?}");
    assert!(report.holds[0].what.token.is_none(), "it ends by itself: {report:?}");
    let changed = report.steps.iter().filter(|step| step.outcome == Some(Outcome::Done));
    assert!(changed.clone().count() > 0 && changed.clone().all(|step| step.action.word() == "update"), "{report:?}");
    assert_eq!(memory.objects().keys().filter(|id| id.name == "b").count(), 4);
    let report = installation.round(&older, &cluster).await;
    assert!(report.holds.is_empty() && report.steps.iter().any(|step| step.action.word() == "prune"), "{report:?}");
}

#[tokio::test]
async fn what_was_never_adopted_is_not_taken_for_ours() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({"adopt": {"policy": "if-unowned"}}));
    installation.round(&gateways("infra", &[("other", 80)]), &cluster).await;
    let metadata = json!({"name": "edge", "namespace": "infra"});
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let theirs = memory.put(Object::new(theirs).expect("it has all that it needs"));
    memory.fail_next(Verb::Apply, Some(theirs.object.id().clone()), Reason::Forbidden);
    let report = installation.round(&gateways("infra", &[("other", 80), ("edge", 80)]), &cluster).await;
    assert_eq!(report.state, ClusterState::Failed, "{report:?}");

    let report = installation.round(&gateways("infra", &[("other", 80)]), &cluster).await;
    assert_eq!((report.state, report.refusals.len()), (ClusterState::Done, 0), "{report:?}");
    assert_eq!(memory.objects().get(theirs.object.id()), Some(&theirs));
    assert_eq!(installation.inventory(memory.as_ref()).await.entries.len(), 4);
}

#[tokio::test]
async fn what_is_not_allowed_is_not_asked_for() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({"allow": {"namespaces": ["other"]}}));
    let report = installation.round(&gateways("infra", &[("edge", 80)]), &cluster).await;
    assert_eq!(report.refusals.len(), 4, "{report:?}");
    let requests: Vec<Verb> = memory.take_requests().into_keys().collect();
    assert_eq!(requests, [Verb::Identity, Verb::Kinds, Verb::ReadRecord], "nothing is asked about what it is about");
}

#[tokio::test]
async fn a_kind_that_is_out_of_order_is_not_forgotten() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = Installation::new("edge", &json!({}));
    installation.round(&gateways("infra", &[("a", 80), ("b", 80)]), &cluster).await;
    memory.forget_kind(Gvk::new("apps/v1", "Deployment"));
    let report = installation.round(&gateways("infra", &[("b", 80)]), &cluster).await;
    let deployment = ObjectId::new("apps", "Deployment", "infra", "a");
    let refusal = report.refusals.iter().find(|refusal| refusal.id == deployment);
    let refusal = refusal.map(|refusal| refusal.reason.to_string());
    assert_eq!(refusal.as_deref(), Some("cannot read it: the cluster has no apps/v1 Deployment"));
    assert!(installation.inventory(memory.as_ref()).await.entries.contains_key(&deployment));
    assert!(report.steps.iter().all(|step| step.action.word() != "prune"), "it needs the rest of its unit: {report:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_directory_and_a_server_have_the_same_plans(
        days in prop::collection::vec(prop::collection::btree_map("[a-f]", 80_u16..84, 0..=6), 1..4),
    ) {
        block_on(async {
            let folder = tempfile::tempdir().expect("temporary folders can be made");
            let settings = json!({"prune": {"maxDelete": {"units": 9, "percent": 100}, "allowEmpty": true}});
            let sites: [(Installation, Arc<dyn Cluster>); 2] = [
                (Installation::new("edge", &settings), Arc::new(MemoryCluster::new("c"))),
                (Installation::new("edge", &settings), Arc::new(DirectoryCluster::new(folder.path().join("rendered")))),
            ];
            for day in [BTreeMap::default()].iter().chain(&days) {
                let day: Vec<(&str, u16)> = day.iter().map(|(name, port)| (name.as_str(), *port)).collect();
                let specs = gateways("infra", &day);
                let mut plans = Vec::new();
                for (installation, cluster) in &sites {
                    plans.push(steps(&installation.plan(&specs, cluster).await));
                    let report = installation.round(&specs, cluster).await;
                    assert_eq!(report.state, ClusterState::Done, "{report:?}");
                }
                assert_eq!(plans[0], plans[1]);
            }
        });
    }
}
