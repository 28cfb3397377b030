//! The examples of inference on a real API server, with controllers and a simulated machine that has GPUs: all that is
//! rendered becomes healthy, as far as pods can whose containers nobody starts.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::cluster::controllers::NODE;
use crate::pickers::wait_until;
use crate::program::Desk;
use crate::{dynamo, kserve};

const CONFIG: &str = "
stateDir: ./state
sources: {specs: {directory: {path: ./specs, settle: 0s}}}
clusters: {local: {kubeconfig: {}}}
syncs:
  inference:
    source: specs
    clusters: {names: [local]}
    createNamespaces: true
    wait: {timeout: 2m, modelTimeout: 2m}
";

/// A server with a machine on which all of it fits.
fn server() -> ApiServer {
    let server = ApiServer::with_controllers();
    let gpus = json!({"nvidia.com/gpu": "64"});
    let patch = json!({"status": {"capacity": gpus, "allocatable": gpus}}).to_string();
    server.kubectl_ok(&["patch", "node", NODE, "--subresource=status", "--type=merge", "-p", &patch]);
    server.kubectl_ok(&["label", "node", NODE, "node-role.example.com/cpu=true"]);
    server
}

/// Copies the specs of an example.
fn copy(desk: &Desk, example: &str, names: &[&str]) {
    for name in names {
        let file = in_repository("examples").join(example).join("specs").join(name);
        desk.write(&format!("specs/{name}"), &fs::read_to_string(file).expect("the example is there"));
    }
}

/// Asserts that each Deployment has all of its pods ready, and of pickers that elect a leader that one, and returns the
/// names of all.
fn available(server: &ApiServer) -> Vec<String> {
    let list = server.kubectl_ok(&["get", "deployments", "--all-namespaces", "-o", "json"]);
    let list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
    let items = list["items"].as_array().expect("it is a list");
    for item in items {
        let (wanted, status) = (item["spec"]["replicas"].as_u64(), &item["status"]);
        let wanted = if item.to_string().contains("leader-election") { Some(1) } else { wanted };
        assert!(status["availableReplicas"].as_u64() >= wanted, "{item}");
        assert_eq!(status["observedGeneration"], item["metadata"]["generation"], "{item}");
    }
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Makes one of the three pickers of the pool the leader: the simulated machine holds no elections.
fn elect(server: &ApiServer) {
    let running = || {
        let pods = ["get", "pods", "-n", "inference", "-l", "inferencepool=qwen3-epp", "-o"];
        let path = "jsonpath={.items[?(@.status.phase==\"Running\")].metadata.name}";
        server.kubectl_ok(&[&pods[..], &[path]].concat())
    };
    wait_until("a picker that runs", || !running().is_empty());
    let pods = running();
    let name = pods.split_whitespace().next().expect("one runs");
    let conditions = ["ContainersReady", "Ready"].map(|kind| json!({"type": kind, "status": "True"}));
    let patch = json!({"status": {"conditions": conditions}}).to_string();
    server.kubectl_ok(&[
        "patch",
        "pod",
        name,
        "-n",
        "inference",
        "--subresource=status",
        "--type=strategic",
        "-p",
        &patch,
    ]);
}

#[test]
fn examples_of_inference_become_healthy_with_certificates_and_without() {
    let server = server();
    server.install_inference();
    let known = ["HTTPRoute", "InferencePool", "DestinationRule"];
    let is_missing = |kind: &[&str; 6]| !known.contains(&kind[4]) || kind[2] == "v1alpha2";
    kserve::KINDS.into_iter().filter(is_missing).for_each(|kind| server.install_kind(kind));
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    let files = ["pool.yaml", "llminferenceservice.yaml", "llminferenceservice-custom-scheduler.yaml"];
    copy(&desk, "inference", &files);
    let sync = || desk.run_with(&server.kubeconfig("admin"), &["sync"]);
    thread::scope(|scope| {
        scope.spawn(|| elect(&server));
        sync().exits(0);
    });
    let names = available(&server);
    for name in ["qwen3-epp", "qwen-kserve", "qwen-kserve-router-scheduler", "opt-kserve-router-scheduler"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    sync().exits(0).says("no changes");
    let status = desk.run_with(&server.kubeconfig("admin"), &["status"]).exits(0).out;
    let line = status.lines().find(|line| line.contains("models/qwen ")).expect("the service has a line");
    assert!(line.contains("  8000  "), "its own port, and not those of its scheduler: {line}");

    let secret = ["create", "secret", "generic", "certificates", "-n", "models", "--from-literal=tls.crt=-"];
    server.kubectl_ok(&[&secret[..], &["--from-literal=tls.key=-"]].concat());
    let settings = "packs: {kserve: {parameters: {tls: {secret: certificates}}}}\n";
    desk.write("gatewright.yaml", &format!("{CONFIG}{settings}"));
    sync().exits(0);
    assert_eq!(available(&server), names);
    let get = |path: &str| {
        let path = format!("jsonpath={path}");
        server.kubectl_ok(&["get", "-n", "models", "deployment/qwen-kserve-router-scheduler", "-o", &path])
    };
    let container = get("{.spec.template.spec.containers[0]}");
    assert!(container.contains("--secure-serving") && container.contains("https"), "{container}");
    assert!(get("{.spec.template.spec.volumes}").contains("certificates"), "the certificate is mounted");
    sync().exits(0).says("no changes");
    too_many_are_asked_for(&server, &desk);
}

/// Has a plan ask for more than a quota and all nodes have.
fn too_many_are_asked_for(server: &ApiServer, desk: &Desk) {
    server.kubectl_ok(&["create", "quota", "gpus", "-n", "models", "--hard=requests.nvidia.com/gpu=9"]);
    let used = || {
        let path = "jsonpath={.status.used.requests\\.nvidia\\.com/gpu}";
        server.kubectl_ok(&["get", "quota", "gpus", "-n", "models", "-o", path])
    };
    wait_until("the quota counts the pods", || used() == "3");
    let plan = |replicas: &str| {
        desk.replace("specs/llminferenceservice.yaml", "replicas: 3", replicas);
        let plan = desk.run_with(&server.kubeconfig("admin"), &["plan"]).exits(0);
        desk.replace("specs/llminferenceservice.yaml", replicas, "replicas: 3");
        plan
    };
    let short = plan("replicas: 90");
    let short = short.says("87 nvidia.com/gpu come to what is there, and ResourceQuota gpus leaves 6 of 9");
    short.says("90 nvidia.com/gpu are asked for, and all nodes together have 64");
    let enough = plan("replicas: 9").out;
    assert!(!enough.contains("ResourceQuota") && !enough.contains("nodes together"), "{enough}");
}

#[test]
fn the_example_of_a_graph_becomes_healthy_without_an_operator() {
    let server = server();
    dynamo::install(&server);
    // Pods wait for a claim that is not there, and it for a volume.
    server.kubectl_ok(&["create", "namespace", "models"]);
    let access = json!({"accessModes": ["ReadWriteMany"], "storageClassName": ""});
    for (kind, metadata, more) in [
        (
            "PersistentVolume",
            json!({"name": "models"}),
            json!({"capacity": {"storage": "1Ti"}, "hostPath": {"path": "/models"}}),
        ),
        (
            "PersistentVolumeClaim",
            json!({"name": "models", "namespace": "models"}),
            json!({"resources": {"requests": {"storage": "1Ti"}}}),
        ),
    ] {
        let mut spec = access.clone();
        spec.as_object_mut().expect("it is a mapping").extend(more.as_object().cloned().unwrap_or_default());
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec});
        server.kubectl_stdin(&["create", "-f", "-"], &object.to_string());
    }
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", &format!("{CONFIG}packs: {{dynamo: {{mode: expand, workloadProvider: lws}}}}\n"));
    copy(&desk, "dynamo", &["llama3-70b-agg.yaml"]);
    let sync = || desk.run_with(&server.kubeconfig("admin"), &["sync"]);
    sync().exits(0);
    let names = available(&server);
    assert_eq!(names, ["llama3-70b-agg-frontend", "llama3-70b-agg-worker"]);
    sync().exits(0).says("no changes");
}
