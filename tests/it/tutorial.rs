//! The tutorial, step after step, on a real API server with controllers: each step becomes what its text says.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::program::Desk;

/// One source whose folder holds one step after the other. A step may replace all Gateways of the one before.
const CONFIG: &str = "
stateDir: ./state
sources: {tutorial: {directory: {path: ./specs}}}
clusters: {local: {kubeconfig: {}}}
syncs:
  tutorial:
    source: tutorial
    clusters: {names: [local]}
    prune: {maxDelete: {percent: 100}}
    wait: {timeout: 1m}
";

/// A Gateway: its name, the proxies that it has, and the ports of its Service.
type Expected = (&'static str, u64, &'static [u64]);

const STEPS: [(&str, &[Expected]); 8] = [
    ("01-first", &[("my-api-gateway", 1, &[80, 443])]),
    ("02-port", &[("my-api-gateway", 1, &[8080, 443])]),
    ("03-certificate", &[("api-gateway", 1, &[443])]),
    ("04-replicas", &[("large", 5, &[8080]), ("medium", 3, &[8080]), ("small", 2, &[8080])]),
    ("05-placement", &[("my-api-gateway", 3, &[8080])]),
    // These say no number, so the one before them stays.
    ("06-image-and-resources", &[("my-api-gateway", 3, &[8080])]),
    ("07-service", &[("my-api-gateway", 3, &[8080])]),
    ("08-layers", &[("my-api-gateway", 5, &[8080])]),
];

struct Step<'a> {
    server: &'a ApiServer,
    gateway: &'a str,
}

impl Step<'_> {
    fn get(&self, kind: &str) -> Value {
        let json = self.server.kubectl_ok(&["get", kind, self.gateway, "-o", "json"]);
        serde_json::from_str(&json).expect("kubectl prints JSON")
    }

    fn pods(&self) -> Vec<Value> {
        let selector = format!("gateway.networking.k8s.io/gateway-name={}", self.gateway);
        let json = self.server.kubectl_ok(&["get", "pods", "-l", &selector, "-o", "json"]);
        let list: Value = serde_json::from_str(&json).expect("kubectl prints JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    fn assert_rolled_out(&self, replicas: u64, ports: &[u64]) {
        let deployment = self.get("deployment");
        assert_eq!(deployment["spec"]["replicas"], replicas, "{deployment}");
        assert_eq!(deployment["status"]["availableReplicas"], replicas, "{deployment}");
        let service = self.get("service");
        let found = service["spec"]["ports"].as_array().into_iter().flatten();
        let found: BTreeSet<u64> = found.filter_map(|port| port["port"].as_u64()).collect();
        assert_eq!(found, ports.iter().copied().collect(), "{service}");
        let open = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().into_iter().flatten();
        let open: Vec<u64> = open.filter_map(|port| port["containerPort"].as_u64()).collect();
        assert!(ports.iter().all(|port| open.contains(port)), "{open:?} are not all of {ports:?}");
    }

    /// Checks the subject of a step, beside replicas and ports.
    fn assert_special(&self, step: &str) {
        let (deployment, service) = (self.get("deployment"), self.get("service"));
        let pod = &deployment["spec"]["template"]["spec"];
        let proxy = &pod["containers"][0];
        match step {
            "03-certificate" => assert!(!pod.to_string().contains("api-example-com"), "nothing is mounted: {pod}"),
            "04-replicas" if self.gateway == "large" => {
                let rolling = json!({"maxSurge": 1, "maxUnavailable": 0});
                assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"], rolling);
            }
            "05-placement" => {
                let mut nodes: Vec<_> = self.pods().iter().map(|pod| pod["spec"]["nodeName"].to_string()).collect();
                nodes.sort();
                assert_eq!(nodes, POOL.map(|node| format!("{node:?}")), "each is on its own machine of the pool");
            }
            "06-image-and-resources" => {
                let image = proxy["image"].as_str().unwrap_or_default();
                assert!(image.starts_with("ghcr.io/example/envoy-wrapper:"), "{image}");
                assert_eq!(proxy["imagePullPolicy"], "Always");
                let requests = json!({"cpu": "500m", "memory": "256Mi"});
                assert_eq!(proxy["resources"], json!({"requests": requests, "limits": {"memory": "1Gi"}}));
                assert_eq!(pod["imagePullSecrets"], json!([{"name": "ghcr"}]));
                assert_eq!(pod.get("nodeSelector"), None, "what a step does not say any more is gone");
            }
            "07-service" => {
                assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
                let cloud = &service["metadata"]["annotations"]["service.beta.kubernetes.io/aws-load-balancer-type"];
                assert_eq!(*cloud, "external");
                assert!(proxy["image"].as_str().is_some_and(|image| image.starts_with("cr.kgateway.dev/")));
            }
            "08-layers" => assert_layers(pod, &service),
            _ => {}
        }
    }
}

/// The table of the tutorial's last step.
fn assert_layers(pod: &Value, service: &Value) {
    let proxy = &pod["containers"][0];
    let image = proxy["image"].as_str().unwrap_or_default();
    assert!(image.starts_with("ghcr.io/example/envoy-wrapper@sha256:b5bb9d80"), "{image}");
    let arguments = proxy["args"].as_array().cloned().unwrap_or_default();
    let added = [json!("--concurrency"), json!("2"), json!("--drain-time-s"), json!("30")];
    assert!(arguments.windows(4).any(|window| window == added), "{arguments:?}");
    assert_eq!(proxy["resources"]["requests"], json!({"cpu": "2", "memory": "256Mi"}));
    assert_eq!(pod["nodeSelector"], json!({"example.com/pool": "gateways", "kubernetes.io/arch": "arm64"}));
    assert_eq!(service["spec"]["type"], "NodePort");
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 30080);
    let annotations = service["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("aws-load-balancer"), "{annotations}");
}

/// The machines for gateways, which keep others away.
const POOL: [&str; 3] = ["pool-0", "pool-1", "pool-2"];

fn machines(server: &ApiServer) {
    let size = json!({"cpu": "100", "memory": "1Ti", "pods": "100"});
    let node = |name| {
        let labels = json!({"kubernetes.io/hostname": name, "example.com/pool": "gateways"});
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [{"key": "example.com/pool", "value": "gateways", "effect": "NoSchedule"}]},
            "status": {"allocatable": size, "capacity": size},
        })
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": POOL.map(node)});
    server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &list.to_string());
    // Without a taint: what no step tolerates has to find a machine too, in the end one of that kind.
    server.kubectl_ok(&["label", "node", crate::cluster::controllers::NODE, "kubernetes.io/arch=arm64"]);
}

/// Puts the files of a step where the source is; tells what is there from then on.
fn take(desk: &Desk, step: &str) {
    let folder = desk.path("specs");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("a temporary folder can be written");
    }
    for file in fs::read_dir(in_repository("examples/tutorial").join(step)).expect("the step is there") {
        let path = file.expect("the step can be listed").path();
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        desk.write(&format!("specs/{name}"), &fs::read_to_string(&path).expect("a step is text"));
    }
}

#[test]
fn every_step_becomes_what_its_text_says() {
    let server = ApiServer::with_controllers();
    machines(&server);
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    let run = |arguments: &[&str]| desk.run_with(&server.kubeconfig("admin"), arguments);
    for (step, gateways) in STEPS {
        take(&desk, step);
        if step == "08-layers" {
            server.kubectl_ok(&["label", "node", crate::cluster::controllers::NODE, "example.com/pool=gateways"]);
        }
        run(&["sync"]).exits(0);
        let names = server.kubectl_ok(&["get", "deployments", "-o", "jsonpath={.items[*].metadata.name}"]);
        let expected: Vec<&str> = gateways.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, expected.join(" "), "{step}");
        for (gateway, replicas, ports) in gateways {
            let state = Step { server: &server, gateway };
            state.assert_rolled_out(*replicas, ports);
            state.assert_special(step);
        }
        run(&["sync"]).exits(0).says("no changes");
    }
    let steps = fs::read_dir(in_repository("examples/tutorial")).expect("the tutorial is there");
    let folders = steps.flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(folders, STEPS.len(), "every step is tried");
}
