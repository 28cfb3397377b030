//! Tests of the engine with these packs.

mod bugs;
mod defaults;
mod explain;
mod nulls;
mod objects;
mod pods;
mod presets;

use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use serde_json::Value;

/// Returns one pack with its usual settings.
fn only(name: &str) -> Packs {
    Packs::new(vec![crate::pack(name, &Value::Null).expect("it is sound")]).expect("it is sound")
}

/// Kinds that exist beside those that the packs claim, by group.
const NEIGHBORS: [(&str, &str); 6] = [
    ("agentgateway.dev", "AgentgatewayBackend AgentgatewayPolicy"),
    (
        "gateway.kgateway.dev",
        "AIPolicy Backend BackendConfigPolicy DirectResponse GatewayExtension HTTPListenerPolicy ListenerPolicy \
         RoutePolicy TrafficPolicy Upstream",
    ),
    ("inference.networking.k8s.io", "InferencePoolImport"),
    ("inference.networking.x-k8s.io", "InferenceModel InferenceModelRewrite InferenceObjective InferencePoolImport"),
    ("nvidia.com", "ClusterPolicy DynamoCheckpoint DynamoComponent DynamoWorkerMetadata NVIDIADriver"),
    (
        "serving.kserve.io",
        "ClusterLocalModel ClusterServingRuntime ClusterStorageContainer InferenceGraph InferenceService \
         LocalModelCache LocalModelNamespaceCache LocalModelNode LocalModelNodeGroup Predictor ServingRuntime \
         TrainedModel",
    ),
];

#[test]
fn no_kind_that_exists_is_called_a_slip_for_another() {
    let packs = crate::all().into_iter().map(|pack| crate::pack(pack.name, &Value::Null).expect("it is sound"));
    let packs = Packs::new(packs.collect()).expect("they go together");
    for (group, kinds) in NEIGHBORS {
        for kind in kinds.split(' ') {
            let text = format!("{{apiVersion: {group}/v1, kind: {kind}, metadata: {{name: a}}}}");
            let source = Source::load(&Tree::from_iter([("a.yaml", text)]), &packs, None);
            assert_eq!(source.specs.problems, [], "{group}/{kind}");
        }
    }
}
