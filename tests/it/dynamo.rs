//! Graphs of NVIDIA Dynamo on a real API server, which has the definitions and no operator.

use std::fs;
use std::path::Path;

use gatewright_engine::object::Object;
use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, render};
use serde_json::{Value, json};

use crate::cluster::binaries::in_repository;
use crate::cluster::{ApiServer, unique};
use crate::golden;
use crate::guards::token;
use crate::ownership::site::{Site, server};

/// The number of looks for something that the server hears of a moment later.
const TRIES: usize = 200;

/// A definition that takes anything.
fn definition(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &&str| {
        let is_stored = versions.last() == Some(name);
        json!({"name": name, "served": true, "storage": is_stored, "schema": schema, "subresources": {"status": {}}})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions},
    })
}

/// Installs what graphs need; the tests here share a server, and each may be the first.
pub(crate) fn install(server: &ApiServer) {
    let both = ["v1alpha1", "v1beta1"];
    let kinds = [
        ("nvidia.com", "dynamographdeployments", "DynamoGraphDeployment", both.as_slice()),
        ("nvidia.com", "dynamocomponentdeployments", "DynamoComponentDeployment", &both),
        ("nvidia.com", "dynamographdeploymentrequests", "DynamoGraphDeploymentRequest", &both),
        ("nvidia.com", "dynamographdeploymentscalingadapters", "DynamoGraphDeploymentScalingAdapter", &both),
        ("nvidia.com", "dynamomodels", "DynamoModel", &both),
        ("grove.io", "podcliquesets", "PodCliqueSet", &["v1alpha1"]),
        ("inference.networking.k8s.io", "inferencepools", "InferencePool", &["v1"]),
        ("networking.istio.io", "virtualservices", "VirtualService", &["v1"]),
        ("networking.istio.io", "destinationrules", "DestinationRule", &["v1"]),
        ("gateway.networking.k8s.io", "httproutes", "HTTPRoute", &["v1"]),
    ];
    let mut all: Vec<String> =
        kinds.map(|(group, plural, kind, versions)| definition(group, plural, kind, versions).to_string()).into();
    let real = crate::cluster::crds::cases().join("crds/lws/leaderworkersets.yaml");
    let own = || definition("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet", &["v1"]).to_string();
    all.push(fs::read_to_string(real).unwrap_or_else(|_| own()));
    let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    server.kubectl_stdin(&arguments, &all.join("\n---\n"));
    for group in ["nvidia.com/v1beta1", "grove.io/v1alpha1", "leaderworkerset.x-k8s.io/v1", "networking.istio.io/v1"] {
        let address = format!("/apis/{group}");
        let is_there = || server.kubectl(&["get", "--raw", &address]).status.success();
        assert!((0..TRIES).any(|_| is_there()), "{address}");
    }
}

fn graph(namespace: &str, replicas: u8, more: &Value) -> String {
    let main = json!({"name": "main", "image": "registry.example.com/vllm-runtime:1.3.0"});
    let worker = json!({
        "name": "Worker", "type": "worker", "replicas": replicas, "scalingAdapter": {},
        "podTemplate": {"spec": {"containers": [main]}},
    });
    let mut graph = json!({
        "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": namespace}, "spec": {"components": [worker]},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        graph["spec"][field] = value.clone();
    }
    graph.to_string()
}

#[test]
fn what_others_own_of_a_graph_stays_and_its_deletion_waits() {
    install(server());
    let site = Site::new("prune: {allowEmpty: true, maxDelete: {units: 9, percent: 100}}");
    site.spec("chat", &graph(&site.name, 3, &json!({"restart": {"id": "1"}})));
    site.sync().exits(0).says("spec.restart is left out").says("1 object created");
    let live = || site.get("dynamographdeployment/chat");
    assert_eq!(live()["spec"]["components"][0].get("replicas"), None);
    assert_eq!(live()["spec"].get("restart"), None);

    // Somebody restarts it, and an adapter scales it: no round takes that back.
    let merge = |patch: &Value| {
        site.kubectl(&["patch", "dynamographdeployment", "chat", "--type=merge", "-p", &patch.to_string()])
    };
    merge(&json!({"spec": {"restart": {"id": "by-hand"}}}));
    site.sync().exits(0).says("no changes, 1 object up to date");
    assert_eq!(live()["spec"]["restart"]["id"], "by-hand");

    // What a request has made is not ours, whatever its name.
    let labels = json!({"dgdr.nvidia.com/name": "found", "dgdr.nvidia.com/namespace": site.name});
    let metadata = json!({"name": "found-dgd", "labels": labels});
    site.create(&json!({"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": {"components": []}}));
    site.drop(&["chat"]);
    let held = site.sync().exits(3).says("DynamoGraphDeployment").says("held by guard confirm");
    assert_eq!(live()["metadata"]["name"], "chat");
    site.run(&["approve", &token(&held)]).exits(0);
    site.sync().exits(0).says("1 object deleted");
    assert_eq!(site.get("dynamographdeployment/found-dgd")["metadata"]["name"], "found-dgd");
}

#[test]
fn a_tree_shows_the_components_of_a_graph_and_their_pods() {
    install(server());
    let site = Site::new("wait: {enabled: false}");
    site.spec("chat", &graph(&site.name, 2, &json!({})));
    site.sync().exits(0);
    let component = json!({"componentKind": "Deployment", "replicas": 2, "readyReplicas": 1});
    let status = json!({"status": {"state": "pending", "components": {"Worker": component}}}).to_string();
    let subresource = ["--subresource=status", "--type=merge", "-p", &status];
    site.kubectl(&[&["patch", "dynamographdeployment", "chat"], &subresource[..]].concat());
    let labels = json!({"nvidia.com/dynamo-graph-deployment-name": "chat", "nvidia.com/dynamo-component": "Worker"});
    let containers = json!([{"name": "main", "image": "registry.example.com/vllm-runtime:1.3.0"}]);
    site.create(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "chat-worker-0", "labels": labels},
        "spec": {"containers": containers, "automountServiceAccountToken": false},
    }));
    let tree = site.run(&["tree"]).exits(0);
    tree.says("part Worker  1 of 2 ready").says("Pod chat-worker-0  Worker  ").says("vllm-runtime:1.3.0");
}

#[test]
fn the_example_is_planned_and_applied() {
    install(server());
    let site = Site::new("");
    for name in ["llama3-70b-agg", "auto-config-llm"] {
        let path = in_repository(&format!("examples/dynamo/specs/{name}.yaml"));
        let text = fs::read_to_string(path).expect("the example can be read");
        site.spec(name, &text.replace("namespace: models", &format!("namespace: {}", site.name)));
    }
    site.run(&["plan"]).exits(0).says("2 objects to create");
    site.sync().exits(0).says("2 objects created");
    let graph = site.get("dynamographdeployment/llama3-70b-agg");
    assert_eq!(graph["spec"]["components"][1]["replicas"], 2);
    site.sync().exits(0).says("no changes, 2 objects up to date");
}

/// A request to an API server may have 3 MiB, and what etcd stores 1.5 MiB.
#[test]
fn a_definition_of_a_megabyte_is_applied() {
    let site = Site::new("unclaimed: apply");
    let group = format!("{}.example.com", unique("large"));
    let field = json!({"type": "string", "description": "what this field is for, at some length. ".repeat(25)});
    let fields: serde_json::Map<String, Value> =
        (0..1000).map(|index| (format!("field{index}"), field.clone())).collect();
    let mut large = definition(&group, "gadgets", "Gadget", &["v1"]);
    large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = fields.into();
    assert!(large.to_string().len() > 1_000_000);
    site.spec("large", &large.to_string());
    site.sync().exits(0).says("1 object created");
    site.sync().exits(0).says("no changes, 1 object up to date");
    let name = format!("gadgets.{group}");
    let stored: Value =
        serde_json::from_str(&site.kubectl(&["get", "crd", &name, "-o", "json"])).expect("kubectl prints JSON");
    assert_eq!(stored["metadata"]["annotations"].get("kubectl.kubernetes.io/last-applied-configuration"), None);
    assert_eq!(stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["field999"]["type"], "string");
}

/// Has the server look at objects, as strictly as it can, and says how many they are.
#[track_caller]
fn accepts(namespace: &str, objects: &[Object]) -> usize {
    let bodies: Vec<String> =
        objects.iter().map(|object| object.clone().in_namespace(namespace).body().to_string()).collect();
    if !bodies.is_empty() {
        let arguments = ["-n", namespace, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
        server().kubectl_stdin(&arguments, &bodies.join("\n---\n"));
    }
    bodies.len()
}

#[test]
fn everything_that_graphs_become_is_accepted() {
    install(server());
    let namespace = unique("graphs");
    server().kubectl_ok(&["create", "namespace", &namespace]);
    let mut count = 0;
    for case in golden::cases().iter().filter(|case| case.name.contains("graph")) {
        let objects = case.rendering.units.iter().flat_map(|unit| unit.objects.iter().cloned());
        count += accepts(&namespace, &objects.collect::<Vec<_>>());
    }
    assert!(count > 60, "only {count} objects were found");
}

/// Returns what becomes of a file of the real inputs where there is no operator.
fn expanded(file: &Path, settings: &Value) -> Rendering {
    let pack = gatewright_packs::pack("dynamo", settings).expect("the settings are sound");
    let packs = Packs::new(vec![pack]).expect("the pack is sound");
    let text = fs::read_to_string(file).expect("the input can be read");
    render(&Tree::from_iter([("in.yaml", text)]), &packs, &Options::default())
}

#[test]
fn real_graphs_are_expanded_or_say_why_not() {
    let folder = crate::cluster::crds::cases().join("dynamo/inputs");
    let Ok(files) = fs::read_dir(&folder) else { return };
    install(server());
    let namespace = unique("inputs");
    server().kubectl_ok(&["create", "namespace", &namespace]);
    for file in files.map(|file| file.expect("the inputs can be listed").path()) {
        let settings = json!({
            "mode": "expand", "mpi": {"sshSecretName": "mpi"},
            "infrastructure": {"prometheusEndpoint": "http://prometheus.monitoring:9090"},
        });
        let rendering = expanded(&file, &settings);
        assert_eq!((rendering.broken.len(), rendering.units.len()), (0, 1), "{file:?}: {:?}", rendering.problems);
        assert!(accepts(&namespace, &rendering.units[0].objects) >= 5, "{file:?}");
        // What is missing is said with the setting that has it.
        let bare = expanded(&file, &json!({"mode": "expand"}));
        let problems: Vec<String> = bare.problems.iter().map(ToString::to_string).collect();
        let is_said = problems.iter().any(|problem| problem.contains("mpi.sshSecretName"));
        assert_eq!(bare.units.len() == 1, !is_said, "{file:?}: {problems:?}");
    }
}
