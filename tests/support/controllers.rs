//! The programs that make objects come alive: the controllers of Kubernetes, its scheduler, and simulated machines.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::ApiServer;
use super::binaries::{Binaries, in_repository};
use super::process::Process;

/// The only machine of a test cluster.
pub(crate) const NODE: &str = "node-0";

/// Starts all that it takes for a Deployment to become Available, and waits for the [`node`] to take Pods.
pub(crate) fn start(server: &ApiServer) -> Vec<Process> {
    let binaries = Binaries::locate();
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig("admin").display());
    let start = |program, args: Vec<String>| Process::start(program, &args, server.folder());
    let manager = start(
        &binaries.kube_controller_manager,
        vec![
            kubeconfig.clone(),
            format!("--service-account-private-key-file={}", server.key().display()),
            "--use-service-account-credentials=false".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            // A new Node takes no Pods until this controller has looked at it.
            "--node-monitor-period=1s".to_owned(),
        ],
    );
    let scheduler = start(
        &binaries.kube_scheduler,
        vec![kubeconfig.clone(), "--leader-elect=false".to_owned(), "--secure-port=0".to_owned()],
    );
    // A kwok that was killed still holds the Node, and the next one would wait until its lease has run out.
    server.kubectl_ok(&["delete", "lease", NODE, "-n", "kube-node-lease", "--ignore-not-found"]);
    let mut kwok = start(&binaries.kwok, kwok_args(kubeconfig));
    kwok.wait_until("Node that takes Pods", Duration::from_mins(1), || {
        let state = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}{.spec.taints}";
        server.kubectl_ok(&["get", "node", NODE, "-o", state]) == "True"
    });
    vec![manager, scheduler, kwok]
}

fn kwok_args(kubeconfig: String) -> Vec<String> {
    let mut args = vec![
        kubeconfig,
        "--manage-all-nodes=true".to_owned(),
        "--node-ip=127.0.0.1".to_owned(),
        "--cidr=10.128.0.0/16".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    let stages = fs::read_dir(in_repository("tests/cluster/kwok/stages")).expect("the repository has stages for kwok");
    for stage in stages {
        args.push(format!("--config={}", stage.expect("a folder that opens can be read").path().display()));
    }
    args
}

/// Returns the Node of a test cluster, which is never the reason why a Pod does not fit.
pub(crate) fn node() -> serde_json::Value {
    let size = json!({"cpu": "1000", "memory": "4Ti", "pods": "10000"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        "status": {"allocatable": size, "capacity": size},
    })
}
