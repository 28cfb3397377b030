//! An ML platform with KServe on three clusters: a first service with its scheduler, a mistake that `check` finds, and an
//! upgrade that goes to one cluster first.
//!
//! One cluster is an API server with a machine full of GPUs; the others are directories.

use std::fs;

use serde_json::json;

use super::json_of;
use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::cluster::controllers::NODE;
use crate::kserve;
use crate::program::Desk;
use crate::terminal::Terminal;

const CONFIG: &str = "
stateDir: ./state
sources: {models: {directory: {path: ./specs}}}
clusters:
  gpu-1: {kubeconfig: {}, labels: {gpus: a100}}
  gpu-2: {directory: {path: ./rendered/gpu-2}, labels: {gpus: a100}}
  gpu-3: {directory: {path: ./rendered/gpu-3}, labels: {gpus: l4}}
packs:
  kserve:
    images: {}
syncs:
  models:
    source: models
    clusters: {matchExpressions: [{key: gpus, operator: Exists}]}
    createNamespaces: true
    wait: {timeout: 1m, modelTimeout: 1m}
";

const SERVICE: &str = "specs/llminferenceservice.yaml";

/// A cluster with the kinds of KServe and GPUs, on which its controller does not run.
fn server() -> ApiServer {
    let server = ApiServer::with_controllers();
    for kind in kserve::KINDS {
        server.install_kind(kind);
    }
    let gpus = json!({"nvidia.com/gpu": "16"});
    let patch = json!({"status": {"capacity": gpus, "allocatable": gpus}}).to_string();
    server.kubectl_ok(&["patch", "node", NODE, "--subresource=status", "--type=merge", "-p", &patch]);
    server
}

#[test]
fn an_ml_platform_with_kserve_on_three_clusters() {
    let (server, desk) = (server(), Desk::empty("unused.yaml"));
    let terminal = Terminal::new(&desk, &server.kubeconfig("admin"));
    let example = in_repository("examples/inference/specs/llminferenceservice.yaml");
    terminal.write(SERVICE, &fs::read_to_string(example).expect("the example is there"));

    // The first contact takes no config file.
    terminal.ok("gatewright check specs").says("10 objects from 1 spec");
    terminal.ok("gatewright plan specs").says("+ create Deployment models/qwen-kserve-router-scheduler");

    // With one it goes to three clusters, and is healthy.
    terminal.write("gatewright.yaml", CONFIG);
    terminal.ok("gatewright config check");
    terminal.ok("gatewright plan").says("on 3 of 3 clusters change: 34 objects to create");
    terminal.ok("gatewright sync");
    let tree = terminal.ok("gatewright tree --cluster gpu-1").says("InferencePool models/qwen-inference-pool");
    tree.says("Deployment models/qwen-kserve-router-scheduler  current");
    terminal.ok("gatewright status").says("LLMInferenceService models/qwen  changed");
    assert!(desk.path("rendered/gpu-3/models/deployment-qwen-kserve.yaml").exists());

    a_mistake_is_found(&terminal, &desk);
    an_upgrade_goes_to_one_first(&terminal, &desk, &server);
}

/// Before anybody commits it, and with the line.
fn a_mistake_is_found(terminal: &Terminal<'_>, desk: &Desk) {
    let good = desk.read(SERVICE);
    terminal.ok(&format!("sed -i 's/scheduler: /schduler: /' {SERVICE}"));
    let check = terminal.run("gatewright check specs").exits(1);
    check.complains(SERVICE).complains("unknown field \"schduler\"").complains("did you mean \"scheduler\"?");
    // What is there stays there while it is wrong.
    terminal.run("gatewright sync").exits(1);
    let scheduler = "rendered/gpu-2/models/deployment-qwen-kserve-router-scheduler.yaml";
    assert!(desk.path(scheduler).exists());
    terminal.ok("gatewright check specs --fix");
    assert_eq!(desk.read(SERVICE), good, "it is mended, and nothing else of the file has changed");
    terminal.ok("gatewright sync").says("no changes");

    // A model that is too large for the GPUs that it asks for is told as well.
    terminal.ok(&format!("sed -i 's/nvidia.com\\/gpu: \"1\"/nvidia.com\\/gpu: 1.5/' {SERVICE}"));
    terminal.run("gatewright check specs").exits(1).complains(SERVICE).complains("nvidia.com/gpu");
    terminal.write(SERVICE, &good);
}

/// Another scheduler: who says what is asked of `explain`, and the plan says in which order it comes.
fn an_upgrade_goes_to_one_first(terminal: &Terminal<'_>, desk: &Desk, server: &ApiServer) {
    let field = "spec.template.spec.containers[main].image";
    let explain =
        format!("gatewright explain Deployment/models/qwen-kserve-router-scheduler '{field}' -f specs --format json");
    assert_ne!(json_of(&terminal.ok(&explain))["fields"], json!([]));
    let image = "registry.example.com/llm-d/scheduler:v0.11.0";
    terminal.ok(&format!("sed -i 's|images: {{}}|images: {{scheduler: \"{image}\"}}|' gatewright.yaml"));
    let plan = terminal.ok("gatewright plan").says(image).says("(replaces pods)");
    plan.says("first on cluster gpu-1, on the others once it is healthy there");
    terminal.ok("gatewright diff > upgrade.diff; echo \"exit code $?\"").says("exit code 1");
    let diff = desk.read("upgrade.diff");
    assert!(diff.contains(&format!("+        image: {image}")) || diff.contains(image), "{diff}");
    terminal.ok("gatewright sync");
    let path = "jsonpath={.spec.template.spec.containers[0].image}";
    let live = ["-n", "models", "get", "deployment", "qwen-kserve-router-scheduler", "-o", path];
    assert_eq!(server.kubectl_ok(&live), image);
    for cluster in ["gpu-2", "gpu-3"] {
        let file = format!("rendered/{cluster}/models/deployment-qwen-kserve-router-scheduler.yaml");
        assert!(desk.read(&file).contains(image), "{cluster}");
    }
    terminal.ok("gatewright rollout status").says("nothing is under way");
    terminal.ok("gatewright sync").says("no changes");
}
