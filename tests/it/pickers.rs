//! Pools and their pickers on a real API server, with controllers, simulated machines and the kinds of inference.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::ownership::site::Site;
use crate::program::Desk;

/// The longest that an election may take on a machine that is busy with builds.
const LIMIT: Duration = Duration::from_mins(2);

/// The server that knows the kinds of inference.
pub(crate) fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::with_controllers();
        server.install_inference();
        server
    })
}

/// A pool, and parameters that want this many pickers with this verbosity.
fn pool(site: &Site, replicas: u16, verbosity: u8) {
    let documents = [
        json!({
            "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": {"name": "qwen3", "namespace": site.name},
            "spec": {
                "selector": {"matchLabels": {"app": "qwen3"}},
                "targetPorts": [{"number": 8000}],
                "endpointPickerRef": {"name": "qwen3-epp", "port": {"number": 9002}},
            },
        }),
        json!({
            "apiVersion": "gatewright.dev/v1alpha1", "kind": "EndpointPickerParameters",
            "metadata": {"name": "qwen3", "namespace": site.name},
            "spec": {"inferenceExtension": {"replicas": replicas, "flags": {"v": verbosity}}},
        }),
    ];
    site.spec("qwen3", &documents.map(|document| document.to_string()).join("\n---\n"));
}

/// Asking takes a program of its own each time.
const POLL: Duration = Duration::from_millis(100);

/// Waits until something is so.
#[expect(clippy::disallowed_methods, reason = "a real election takes real time")]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "{what}: not after {LIMIT:?}");
        thread::sleep(POLL);
    }
}

/// The pickers that run, with this verbosity.
fn pickers(site: &Site, verbosity: u8) -> Vec<Value> {
    let list: Value =
        serde_json::from_str(&site.kubectl(&["get", "pods", "-l", "inferencepool=qwen3-epp", "-o", "json"]))
            .expect("kubectl prints JSON");
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let is_meant = |pod: &Value| {
        let args = pod["spec"]["containers"][0]["args"].as_array().cloned().unwrap_or_default();
        let position = args.iter().position(|arg| arg == "--v");
        let flag = position.and_then(|position| args.get(position + 1)?.as_str());
        pod["status"]["phase"] == "Running" && flag == Some(verbosity.to_string().as_str())
    };
    pods.into_iter().filter(is_meant).collect()
}

/// Makes one of the pickers the leader, once all run.
fn elect(site: &Site, replicas: usize, verbosity: u8) {
    wait_until("pickers that run", || pickers(site, verbosity).len() == replicas);
    let pod = pickers(site, verbosity).swap_remove(0);
    let name = pod["metadata"]["name"].as_str().expect("it has one").to_owned();
    let conditions = ["ContainersReady", "Ready"].map(|kind| json!({"type": kind, "status": "True"}));
    let patch = json!({"status": {"conditions": conditions}}).to_string();
    site.kubectl(&["patch", "pod", &name, "--subresource=status", "--type=strategic", "-p", &patch]);
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[test]
fn of_three_pickers_that_elect_a_leader_one_has_to_be_ready() {
    let site = Site::on(server(), "wait: {timeout: 1s}");
    pool(&site, 3, 1);
    site.sync().exits(1).says("no picker is ready yet, or pods of the old version are still there");

    for verbosity in [2, 3] {
        site.configure(&site.name, "wait: {timeout: 2m}");
        pool(&site, 3, verbosity);
        thread::scope(|scope| {
            let election = scope.spawn(|| elect(&site, 3, verbosity));
            site.sync().exits(0).says("updated");
            election.join().expect("somebody was elected");
        });
        let ready: Vec<bool> = pickers(&site, verbosity).iter().map(is_ready).collect();
        assert_eq!((ready.len(), ready.iter().filter(|ready| **ready).count()), (3, 1));
        // What others wait for never comes.
        let deployment = site.get("deployment/qwen3-epp");
        let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let available = conditions.iter().find(|condition| condition["type"] == "Available");
        assert_eq!(available.map(|condition| condition["status"].clone()), Some("False".into()), "{conditions:?}");
        site.sync().exits(0).says("no changes");
    }
}

#[test]
fn what_only_several_pickers_need_goes_with_them() {
    let site = Site::on(server(), "wait: {enabled: false}");
    pool(&site, 2, 1);
    site.sync().exits(0).says("11 objects created");
    let live = site.get("inferencepool/qwen3");
    assert_eq!(live["spec"]["endpointPickerRef"]["failureMode"], "FailClose");
    pool(&site, 1, 1);
    site.sync().exits(0).says("2 objects deleted");
    site.sync().exits(0).says("no changes");
    // The pool is in the cluster already, in the version that nobody wrote: nothing moves when the source says the same.
    let old = json!({
        "apiVersion": "inference.networking.x-k8s.io/v1alpha2", "kind": "InferencePool",
        "metadata": {"name": "qwen3", "namespace": site.name},
        "spec": {
            "selector": {"app": "qwen3"}, "targetPortNumber": 8000, "extensionRef": {"name": "qwen3-epp"},
        },
    });
    site.spec("qwen3", &old.to_string());
    site.sync().exits(0).says("no changes");
}

#[test]
fn the_example_of_inference_is_planned_and_rendered() {
    let desk = Desk::empty("gatewright.yaml");
    for file in ["gatewright.yaml", "specs/pool.yaml"] {
        let text = fs::read_to_string(in_repository("examples/inference").join(file)).expect("the example is there");
        desk.write(file, &text);
    }
    desk.run(&["plan", "--detailed-exitcode"]).exits(2).says("18 objects to create, 1 namespace to create");
    desk.run(&["sync"]).exits(0).says("18 objects created");
    desk.run(&["sync"]).exits(0).says("no changes");
    let deployment = desk.read("rendered/inference/deployment-qwen3-epp.yaml");
    assert!(deployment.contains("--ha-enable-leader-election"), "{deployment}");
    let explain = ["explain", "Deployment/inference/qwen3-epp", "spec.replicas", "--sync", "inference"];
    desk.run(&explain).exits(0).says("inferenceExtension.replicas: 3 (").says("pool.yaml:");
    let parameters = "EndpointPickerParameters/inference/qwen3";
    let explain = ["explain", parameters, "inferenceExtension.replicas", "--sync", "inference"];
    desk.run(&explain).exits(0).says("inferenceExtension.replicas: 3 (").says("pool.yaml:");
}
