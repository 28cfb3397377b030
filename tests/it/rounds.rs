//! Rounds as a property: whatever is wanted, changed and fails, nothing is lost and nothing of others is touched.

pub(crate) mod installation;
pub(crate) mod mortal;
mod world;

use std::sync::Arc;

use gatewright::cluster::Cluster;
use gatewright::cluster::directory::DirectoryCluster;
use gatewright::cluster::memory::MemoryCluster;
use gatewright::report::{ClusterReport, ClusterState};
use proptest::prelude::*;
use serde_json::json;

use installation::{Installation, gateways};
use world::{Event, World, event};

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(work);
}

/// What a plan comes to: unit, object, action and what differs.
fn steps(report: &ClusterReport) -> Vec<String> {
    let paths = |step: &gatewright::report::StepReport| {
        step.differences.iter().map(|difference| difference.path.clone()).collect::<Vec<_>>().join(" ")
    };
    report.steps.iter().map(|step| format!("{}: {} {} {}", step.unit, step.action, step.id, paths(step))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn nothing_is_lost_and_rounds_converge(days in prop::collection::vec(prop::collection::vec(event(), 0..5), 1..5)) {
        block_on(async {
            let mut world = World::new();
            for events in &days {
                events.iter().for_each(|event| world.happens(event));
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
            for day in [Default::default()].iter().chain(&days) {
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
