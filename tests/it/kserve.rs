//! KServe's services on real API servers: their objects are accepted, and what becomes of them in time.

use gatewright_engine::object::Object;
use serde_json::{Value, json};

use crate::cases;
use crate::cluster::ApiServer;
use crate::golden;
use crate::program::{Desk, Run};

/// Kinds that services come with: file below `crds`, group, version, plural, kind, scope. Some are in no file.
pub(crate) const KINDS: [[&str; 6]; 10] = [
    [
        "inference/inference.networking.k8s.io_inferencepools.yaml",
        "inference.networking.k8s.io",
        "v1",
        "inferencepools",
        "InferencePool",
        "Namespaced",
    ],
    [
        "inference/inference.networking.x-k8s.io_inferencepools.yaml",
        "inference.networking.x-k8s.io",
        "v1alpha2",
        "inferencepools",
        "InferencePool",
        "Namespaced",
    ],
    [
        "lws/leaderworkersets.yaml",
        "leaderworkerset.x-k8s.io",
        "v1",
        "leaderworkersets",
        "LeaderWorkerSet",
        "Namespaced",
    ],
    ["", "gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", "Namespaced"],
    ["", "serving.kserve.io", "v1alpha2", "llminferenceservices", "LLMInferenceService", "Namespaced"],
    ["", "serving.kserve.io", "v1alpha2", "llminferenceserviceconfigs", "LLMInferenceServiceConfig", "Namespaced"],
    ["", "gateway.networking.k8s.io", "v1", "backendtlspolicies", "BackendTLSPolicy", "Namespaced"],
    ["", "networking.istio.io", "v1beta1", "destinationrules", "DestinationRule", "Namespaced"],
    ["", "keda.sh", "v1alpha1", "scaledobjects", "ScaledObject", "Namespaced"],
    ["", "cert-manager.io", "v1", "certificates", "Certificate", "Namespaced"],
];

/// The objects of all cases that are about services, by the name of their case.
fn objects() -> Vec<(String, Vec<Object>)> {
    let mut found = Vec::new();
    for suite in cases::suites(&cases::folders()).into_iter().filter(|suite| suite.name == "kserve") {
        found.extend(suite.cases().iter().map(|(stem, folder)| (stem.clone(), suite.case(stem, folder).objects())));
    }
    for case in golden::cases() {
        let units = case.rendering.units.iter().filter(|unit| unit.id.kind == "LLMInferenceService");
        let objects: Vec<Object> = units.flat_map(|unit| unit.objects.clone()).collect();
        found.extend((!objects.is_empty()).then_some((case.name.clone(), objects)));
    }
    found
}

#[test]
fn an_api_server_accepts_all_that_becomes_of_services() {
    let server = ApiServer::start();
    for kind in KINDS {
        server.install_kind(kind);
    }
    for namespace in ["llm", "models"] {
        server.kubectl_ok(&["create", "namespace", namespace]);
    }
    let cases = objects();
    assert!(cases.len() >= 10, "only {} cases were found", cases.len());
    for (case, objects) in cases {
        // What cannot be applied says so with its name.
        let items: Vec<&Value> = objects.iter().map(Object::body).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let arguments = ["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-o", "name", "-f", "-"];
        let names =
            if objects.is_empty() { String::new() } else { server.kubectl_stdin(&arguments, &list.to_string()) };
        assert_eq!(names.lines().count(), objects.len(), "{case}: {names}");
    }
}

const CONFIG: &str = "
stateDir: ./state
sources: {models: {directory: {path: ./specs}}}
clusters: {local: {kubeconfig: {}}}
syncs:
  models:
    source: models
    clusters: {names: [local]}
    createNamespaces: true
    prune: {maxDelete: {percent: 100}}
    wait: {timeout: 1m}
";

const SERVICE: &str = "
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: llama, namespace: models}
spec:
  model: {uri: \"hf://meta-llama/Llama-3.1-8B\", name: llama}
  replicas: 3
  router:
    route: {}
    scheduler: {}
";

/// The lines of the tree of the service, by how they begin.
const TREE: [&str; 6] = [
    "LLMInferenceService models/llama",
    "HTTPRoute models/llama-kserve-route  ",
    "InferencePool models/llama-inference-pool  current",
    "Service models/llama-epp-service  current",
    "Deployment models/llama-kserve-router-scheduler  current  ",
    "Pod llama-kserve-router-scheduler-",
];

#[test]
fn a_service_becomes_available_is_scaled_and_loses_its_scheduler() {
    let server = ApiServer::with_controllers();
    for kind in KINDS {
        server.install_kind(kind);
    }
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    desk.write("specs/llama.yaml", SERVICE);
    let sync = || desk.run_with(&server.kubeconfig("admin"), &["sync"]);
    let get = |what: &str, path: &str| {
        let path = format!("jsonpath={path}");
        server.kubectl_ok(&["get", "-n", "models", "--ignore-not-found", what, "-o", &path])
    };
    let available = |name: &str| get(&format!("deployment/{name}"), "{.status.availableReplicas}");
    sync().exits(0);
    assert_eq!(
        (available("llama-kserve"), available("llama-kserve-router-scheduler")),
        ("3".to_owned(), "1".to_owned())
    );
    assert_eq!(
        get("inferencepools.inference.networking.k8s.io/llama-inference-pool", "{.metadata.name}"),
        "llama-inference-pool"
    );
    sync().exits(0).says("no changes");
    leads(
        &desk
            .run_with(&server.kubeconfig("admin"), &["tree", "--only", "LLMInferenceService/models/llama"])
            .exits(0)
            .out,
        &TREE,
    );

    desk.replace("specs/llama.yaml", "replicas: 3", "replicas: 5");
    sync().exits(0);
    assert_eq!(available("llama-kserve"), "5");

    let custom = "scheduler: {template: {containers: [{name: main, image: \"registry.example.com/scheduler:2\"}]}}";
    desk.replace("specs/llama.yaml", "scheduler: {}", custom);
    sync().exits(0);
    let image = "{.spec.template.spec.containers[0].image}";
    assert_eq!(get("deployment/llama-kserve-router-scheduler", image), "registry.example.com/scheduler:2");
    assert_eq!(available("llama-kserve-router-scheduler"), "1");

    // A pool serves routes, so somebody has to agree.
    desk.replace("specs/llama.yaml", custom, "gateway: {}");
    let held = sync().exits(3).says("guard confirm").out;
    let token = held.split("gatewright approve ").nth(1).and_then(|rest| rest.split_whitespace().next());
    desk.run_with(&server.kubeconfig("admin"), &["approve", token.expect("a token lifts it")]).exits(0);
    sync().exits(0);
    let left =
        server.kubectl_ok(&["get", "deploy,service,sa,role,rolebinding,inferencepools", "-n", "models", "-o", "name"]);
    assert!(!left.contains("scheduler") && !left.contains("epp") && !left.contains("pool"), "{left}");
    assert_eq!(available("llama-kserve"), "5");
    assert_eq!(get("httproute/llama-kserve-route", "{.spec.rules[0].backendRefs[0].kind}"), "Service");
}

/// Finds texts in a tree, each behind the one before.
#[track_caller]
fn leads(tree: &str, texts: &[&str]) {
    let mut depth = None;
    for text in texts {
        let line = tree.lines().find(|line| line.contains(text));
        let found = line.and_then(|line| line.find(text));
        assert!(found > depth, "{text:?} is not behind the one before it:\n{tree}");
        depth = found;
    }
}

/// A stand-in for KServe's controller: a Deployment that is known by its label, with a pod.
const OPERATOR: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: llmisvc-controller-manager, namespace: kserve, labels: {control-plane: llmisvc-controller-manager}}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: manager, image: registry.example.com/manager:1}]}
";

#[test]
fn a_service_is_left_to_an_operator_that_is_at_work() {
    let server = ApiServer::with_controllers();
    for kind in KINDS {
        server.install_kind(kind);
    }
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", &CONFIG.replace("wait: {timeout: 1m}", "wait: {enabled: false}"));
    desk.write("specs/llama.yaml", SERVICE);
    let run = |arguments: &[&str]| desk.run_with(&server.kubeconfig("admin"), arguments);
    let plan = || run(&["plan", "--detailed-exitcode"]);
    // The kind alone does nothing.
    run(&["sync"]).exits(0).says("create Deployment models/llama-kserve");
    let there = || server.kubectl_ok(&["get", "deploy,llminferenceservices", "-n", "models", "-o", "name"]);
    let before = there();
    server.kubectl_ok(&["create", "namespace", "kserve"]);
    server.kubectl_stdin(&["apply", "-f", "-"], OPERATOR);
    let deployment = "deployment/llmisvc-controller-manager";
    server.kubectl_ok(&["wait", "-n", "kserve", "--for=condition=Available", deployment, "--timeout=60s"]);
    let planned = plan().exits(2).says("create LLMInferenceService models/llama").out;
    assert!(!planned.contains("delete"), "{planned}");
    assert!(planned.contains("11 objects: kept: its spec is left to the operator"), "{planned}");
    run(&["sync"]).exits(0).says("1 object created");
    run(&["sync"]).exits(0).says("no changes");
    // What serves goes on serving until the operator takes it over.
    assert_eq!(there(), format!("{before}llminferenceservice.serving.kserve.io/llama\n"));

    // To provision beside it is refused, and nothing is touched.
    desk.write("gatewright.yaml", &(desk.read("gatewright.yaml") + "packs: {kserve: {parameters: {mode: expand}}}\n"));
    plan().exits(1).says("KServe's controller is at work in this cluster");
    assert_eq!(there(), format!("{before}llminferenceservice.serving.kserve.io/llama\n"));
}

/// Nobody renders a config by itself, so nobody else would ever see a slip in it.
#[test]
fn a_misspelled_field_of_a_config_is_told() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "specs/config.yaml",
        "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceServiceConfig\n\
         metadata: {name: team, namespace: models}\nspec: {replica: 2, template: {containers: [{name: main, images: x}]}}\n",
    );
    let run = Run::of(desk.without_config(&["check", "specs"]).output().expect("the program starts"));
    let said = format!("{}{}", run.out, run.err);
    for name in ["replica", "images"] {
        assert!(said.contains(&format!("unknown field \"{name}\"")), "{name}: {said}");
    }
}
