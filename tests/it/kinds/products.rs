//! The rows of the built-in packs for kinds of products.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use gatewright::config::packs::{build, folders};
use gatewright::inventory::maintenance;
use gatewright_engine::health::{Readiness, health};
use gatewright_engine::kinds::Table;
use gatewright_engine::kinds::row::{Order, Row, Scope, Selects};
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::relations::is_made_for;
use gatewright_engine::yaml;
use serde_json::{Value, json};

const POOLS: [(&str, &str); 2] =
    [("inference.networking.k8s.io", "InferencePool"), ("inference.networking.x-k8s.io", "InferencePool")];

fn kinds() -> &'static Table {
    static PACKS: OnceLock<Packs> = OnceLock::new();
    PACKS
        .get_or_init(|| {
            build(None, &folders(&gatewright_packs::all().into(), []).expect("there are none"))
                .expect("they go together")
        })
        .table()
}

/// Checks of which kinds of packs a column says something.
#[track_caller]
fn check(column: impl Fn(&Row) -> bool, expected: &[(&str, &str)]) {
    let (builtin, expected) = (Table::builtin(), expected.iter().copied().collect::<BTreeSet<_>>());
    let found = kinds().all().filter(|(group, kind, row)| column(row) && builtin.row(group, kind) != *row);
    assert_eq!(found.map(|(group, kind, _)| (group, kind)).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn pools_come_after_the_servers_and_before_the_routes() {
    check(|row| row.order == Some(Order::Pool), &POOLS);
    check(|row| row.order.is_some() || row.wave.is_some(), &POOLS);
}

#[test]
fn what_serves_models_is_not_replaced() {
    let others = [("serving.kserve.io", "LLMInferenceService"), ("nvidia.com", "DynamoGraphDeployment")];
    check(|row| !row.recreate, &[POOLS.as_slice(), &others].concat());
}

#[test]
fn the_deletion_of_models_waits_for_a_person() {
    let names: Vec<String> = kinds().confirmed().iter().map(ToString::to_string).collect();
    let expected = [
        "DynamoComponentDeployment",
        "DynamoGraphDeployment",
        "DynamoGraphDeploymentRequest",
        "InferencePool",
        "LLMInferenceService",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StatefulSet",
    ];
    assert_eq!(names, expected);
}

#[test]
fn model_servers_are_slow() {
    let slow = [
        ("grove.io", "PodCliqueSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("nvidia.com", "DynamoComponentDeployment"),
        ("nvidia.com", "DynamoGraphDeployment"),
        ("nvidia.com", "DynamoGraphDeploymentRequest"),
        ("nvidia.com", "DynamoModel"),
        ("serving.kserve.io", "LLMInferenceService"),
    ];
    check(|row| row.slow, &slow);
}

#[test]
fn these_kinds_of_products_are_in_no_namespace() {
    let cluster = [("cert-manager.io", "ClusterIssuer"), ("serving.kserve.io", "ClusterServingRuntime")];
    check(|row| row.scope == Scope::Cluster, &cluster);
}

#[test]
fn pools_lead_to_their_picker_and_their_pods() {
    check(|row| row.selects == Selects::Pods, &POOLS);
    check(|row| !row.refers_to.is_empty(), &POOLS);
    let pool = &kinds().row("inference.networking.k8s.io", "InferencePool").refers_to[0];
    assert_eq!((pool.path.as_str(), pool.kind.as_str()), ("spec.endpointPickerRef", "Service"));
    let group = kinds().row("leaderworkerset.x-k8s.io", "LeaderWorkerSet");
    assert_eq!(group.pod_label.as_deref(), Some("leaderworkerset.sigs.k8s.io/name"));
    let templates = ["spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"];
    assert_eq!(group.templates, templates);
}

#[test]
fn a_restart_of_a_graph_is_no_drift() {
    check(|row| row.others_may_add == ["spec.restart"], &[("nvidia.com", "DynamoGraphDeployment")]);
    for (group, kind) in [
        ("gateway.kgateway.dev", "GatewayParameters"),
        ("agentgateway.dev", "AgentgatewayParameters"),
        ("nvidia.com", "DynamoGraphDeployment"),
        ("nvidia.com", "ClusterPolicy"),
    ] {
        assert!(kinds().row(group, kind).resources, "{group}/{kind}");
    }
}

#[test]
fn what_a_request_has_made_is_known_by_its_labels() {
    let makes = kinds().row("nvidia.com", "DynamoGraphDeploymentRequest").makes.as_ref().expect("it makes graphs");
    assert_eq!(makes.kind, "DynamoGraphDeployment");
    let request = |namespace| ObjectId::new("nvidia.com", "DynamoGraphDeploymentRequest", namespace, "found");
    let labels = json!({"dgdr.nvidia.com/name": "found", "dgdr.nvidia.com/namespace": "models"});
    let graph = json!({"kind": "DynamoGraphDeployment", "metadata": {"name": "found-dgd", "labels": labels}});
    assert!(is_made_for(&request("models"), makes, &graph));
    assert!(!is_made_for(&request("other"), makes, &graph));
}

/// Checks the health of an object of generation 2.
#[track_caller]
fn is(version: &str, kind: &str, status: &Value, expected: &str) {
    let body = json!({"apiVersion": version, "kind": kind, "metadata": {"generation": 2}, "status": status});
    assert_eq!(health(&body, Readiness::default(), kinds()).to_string(), expected, "{body}");
}

fn condition(kind: &str, status: &str, generation: Option<u8>) -> Value {
    json!([{"type": kind, "status": status, "message": "m", "observedGeneration": generation}])
}

#[test]
fn what_operators_serve_is_current_once_they_say_so() {
    let service = |status: Value, expected| is("serving.kserve.io/v1alpha1", "LLMInferenceService", &status, expected);
    service(Value::Null, "its operator has not said that it is ready yet");
    service(
        json!({"conditions": [{"type": "Ready", "status": "False"}]}),
        "its operator has not said that it is ready yet",
    );
    service(json!({"conditions": condition("Ready", "False", None)}), "m");
    service(json!({"conditions": condition("Ready", "True", None)}), "current");
    service(json!({"observedGeneration": 1}), "its controller has not seen the change yet");
    is("example.com/v1", "LLMInferenceService", &Value::Null, "current");
    let group = |status: Value, expected| is("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", &status, expected);
    group(Value::Null, "not all of its groups are available yet");
    group(json!({"conditions": condition("Available", "True", None)}), "current");
}

#[test]
fn a_pool_is_current_unless_a_gateway_refuses_it() {
    for version in ["inference.networking.x-k8s.io/v1alpha2", "inference.networking.k8s.io/v1"] {
        let pool = |kind: &str, status: &str, expected| {
            let parents = json!([{"conditions": condition("Other", "False", None)}, {"conditions": condition(kind, status, None)}]);
            is(version, "InferencePool", &json!({"parents": parents}), expected);
        };
        pool("Accepted", "False", "m");
        pool("ResolvedRefs", "False", "m");
        pool("Accepted", "True", "current");
        is(version, "InferencePool", &Value::Null, "current");
        let mute = json!({"parents": [{"conditions": [{"type": "Accepted", "status": "False"}]}]});
        is(version, "InferencePool", &mute, "a Gateway does not accept it");
    }
}

#[test]
fn a_graph_is_current_when_its_newest_generation_is_ready() {
    let graph = |status: Value, expected| is("nvidia.com/v1alpha1", "DynamoGraphDeployment", &status, expected);
    graph(json!({}), "its operator has not said anything about it yet");
    graph(json!({"conditions": condition("Ready", "True", Some(1))}), "its operator has not seen the change yet");
    graph(json!({"observedGeneration": 2, "conditions": condition("Ready", "False", None)}), "m");
    graph(
        json!({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "False"}]}),
        "it is not ready yet",
    );
    graph(json!({"observedGeneration": 2, "conditions": condition("Ready", "True", None)}), "current");
    graph(json!({"state": "failed", "conditions": condition("Ready", "False", Some(2))}), "m");
    graph(json!({"state": "failed"}), "its state is \"failed\"");
}

#[test]
fn a_component_and_a_model_have_conditions_of_their_own() {
    let of = |kind: &str, conditions: Value, expected| {
        is("nvidia.com/v1alpha1", kind, &json!({"conditions": conditions}), expected);
    };
    of("DynamoComponentDeployment", condition("Available", "True", None), "current");
    of("DynamoModel", condition("EndpointsReady", "False", None), "m");
}

#[test]
fn a_request_goes_through_phases() {
    let request = |spec: Value, status: Value, expected: &str| {
        let kind = "DynamoGraphDeploymentRequest";
        let body = json!({"apiVersion": "nvidia.com/v1alpha1", "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status});
        assert_eq!(health(&body, Readiness::default(), kinds()).to_string(), expected, "{body}");
    };
    request(json!({}), json!({}), "its phase is Pending");
    request(json!({}), json!({"phase": "Profiling"}), "its phase is Profiling");
    request(json!({"autoApply": true}), json!({"phase": "Ready"}), "its phase is Ready");
    request(json!({"autoApply": false}), json!({"phase": "Ready"}), "current");
    request(json!({}), json!({"phase": "Deployed"}), "current");
    request(json!({}), json!({"phase": "Failed"}), "its profiling has failed");
    request(json!({}), json!({"phase": "Failed", "conditions": condition("Succeeded", "False", None)}), "m");
    request(
        json!({}),
        json!({"phase": "Deployed", "observedGeneration": 1}),
        "its operator has not seen the change yet",
    );
}

/// Kinds that packs render, and the specs that go with them: apiVersion and kind.
const RENDERED: [(&str, &str); 47] = [
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("gateway.networking.k8s.io/v1", "GatewayClass"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.networking.k8s.io/v1", "BackendTLSPolicy"),
    ("gateway.networking.k8s.io/v1", "ListenerSet"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("gateway.networking.k8s.io/v1", "GRPCRoute"),
    ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
    ("gateway.kgateway.dev/v1alpha1", "GatewayParameters"),
    ("agentgateway.dev/v1alpha1", "AgentgatewayParameters"),
    ("v1", "PersistentVolumeClaim"),
    ("cert-manager.io/v1", "Certificate"),
    ("grove.io/v1alpha1", "PodCliqueSet"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
    ("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("monitoring.googleapis.com/v1", "PodMonitoring"),
    ("networking.gke.io/v1", "GCPBackendPolicy"),
    ("networking.gke.io/v1", "GCPRoutingExtension"),
    ("networking.gke.io/v1", "HealthCheckPolicy"),
    ("networking.istio.io/v1beta1", "DestinationRule"),
    ("networking.istio.io/v1alpha3", "EnvoyFilter"),
    ("networking.istio.io/v1", "VirtualService"),
    ("networking.k8s.io/v1", "Ingress"),
    ("nvidia.com/v1beta1", "DynamoComponentDeployment"),
    ("nvidia.com/v1beta1", "DynamoGraphDeployment"),
    ("nvidia.com/v1beta1", "DynamoGraphDeploymentRequest"),
    ("nvidia.com/v1alpha1", "DynamoGraphDeploymentScalingAdapter"),
    ("nvidia.com/v1alpha1", "DynamoModel"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceService"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig"),
];

#[test]
fn these_kinds_are_looked_for_where_nothing_says_which_there_are() {
    assert_eq!(
        maintenance::kinds(kinds(), []),
        RENDERED.into_iter().map(|(version, kind)| Gvk::new(version, kind)).collect()
    );
}

/// Every kind of the golden cases' objects, without documents that are applied as they are.
#[test]
fn every_kind_that_packs_render_is_looked_for() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let usual: BTreeSet<(String, String)> =
        maintenance::kinds(kinds(), []).into_iter().map(|kind| (kind.group, kind.kind)).collect();
    let mut seen = 0;
    for case in std::fs::read_dir(cases).expect("the cases can be listed").flatten() {
        let text = std::fs::read_to_string(case.path().join("objects.yaml")).unwrap_or_default();
        for document in yaml::parse_values(&text).expect("they are YAML") {
            let field = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
            let (kind, version) = (field("kind"), field("apiVersion"));
            let Gvk { group, .. } = Gvk::new(&version, &kind);
            let is_own = kind.is_empty() || kind == "Namespace";
            seen += usize::from(!is_own);
            assert!(is_own || usual.contains(&(group, kind.clone())), "{version} {kind} in {:?}", case.path());
        }
    }
    assert!(seen > 100, "the cases render more than {seen} objects");
}

/// Kinds that exist beside those that packs claim, by group.
const EXISTING: [(&str, &[&str]); 7] = [
    ("inference.networking.k8s.io", &["InferencePool", "InferencePoolImport"]),
    (
        "inference.networking.x-k8s.io",
        &["InferenceModel", "InferenceModelRewrite", "InferenceObjective", "InferencePool", "InferencePoolImport"],
    ),
    (
        "serving.kserve.io",
        &[
            "ClusterLocalModel",
            "ClusterServingRuntime",
            "ClusterStorageContainer",
            "InferenceGraph",
            "InferenceService",
            "LLMInferenceService",
            "LLMInferenceServiceConfig",
            "LocalModelCache",
            "LocalModelNamespaceCache",
            "LocalModelNode",
            "LocalModelNodeGroup",
            "Predictor",
            "ServingRuntime",
            "TrainedModel",
        ],
    ),
    (
        "nvidia.com",
        &[
            "ClusterPolicy",
            "DynamoCheckpoint",
            "DynamoComponent",
            "DynamoComponentDeployment",
            "DynamoGraphDeployment",
            "DynamoGraphDeploymentRequest",
            "DynamoGraphDeploymentScalingAdapter",
            "DynamoModel",
            "DynamoWorkerMetadata",
            "NVIDIADriver",
        ],
    ),
    (
        "gateway.kgateway.dev",
        &[
            "AIPolicy",
            "Backend",
            "BackendConfigPolicy",
            "DirectResponse",
            "GatewayExtension",
            "GatewayParameters",
            "HTTPListenerPolicy",
            "ListenerPolicy",
            "RoutePolicy",
            "TrafficPolicy",
            "Upstream",
        ],
    ),
    ("agentgateway.dev", &["AgentgatewayBackend", "AgentgatewayParameters", "AgentgatewayPolicy"]),
    (
        "gatewright.dev",
        &[
            "BodyBasedRouterParameters",
            "ClusterOverlay",
            "DynamoParameters",
            "EndpointPickerParameters",
            "LLMInferenceServiceParameters",
        ],
    ),
];

#[test]
fn kinds_of_products_exist_and_are_no_slips() {
    for (group, expected) in EXISTING {
        let found: Vec<&str> = kinds().all().filter(|(of, ..)| *of == group).map(|(_, kind, _)| kind).collect();
        assert_eq!(found, expected, "{group}");
    }
}
