//! A text of somebody else that goes on in another line could say there whatever its author likes, as if we had.

use crate::cluster::proxy::{Answer, Proxy};
use crate::cluster::shared;
use crate::program::Desk;

/// An image, the names of a Gateway, a class and a kind, and a version, each with a second line.
const SPECS: &str = r#"
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: img, namespace: infra}
spec:
  gatewayClassName: kgateway
  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: img}}
  listeners: [{name: a, port: 80, protocol: HTTP}]
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: img, namespace: infra}
spec: {kube: {envoyContainer: {image: {registry: r, repository: "x\n SPOOFED image", tag: v1}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: "b\nSPOOFED name", namespace: infra}
spec: {gatewayClassName: "k\nSPOOFED class", listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: "v1\nSPOOFED version"
kind: "K\nSPOOFED kind"
metadata: {name: c, namespace: infra}
"#;

const COMMANDS: [&str; 27] = [
    "status",
    "status -o wide",
    "status -o name",
    "status --summary",
    "tree",
    "history",
    "audit",
    "undo",
    "plan",
    "plan --verbose",
    "diff",
    "check specs",
    "check specs --format short",
    "inventory show",
    "orphans",
    "clusters",
    "events",
    "report list",
    "report show",
    "rollback quickstart --list",
    "rollout status",
    "rollout explain",
    "explain Deployment/infra/img",
    "explain Gateway/infra/b",
    "render specs",
    "sync",
    "resume quickstart",
];

/// Commands that say what a cluster has answered.
const ASKING: [&str; 12] = [
    "plan",
    "sync",
    "status",
    "diff",
    "tree",
    "events",
    "clusters",
    "orphans",
    "inventory show",
    "report show",
    "rollback quickstart --list",
    "import imported",
];

#[test]
fn a_text_of_somebody_else_begins_no_line() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.write("specs/a\nSPOOFED file.yaml", SPECS);
    desk.run(&["sync"]).exits(1).says("16 objects created");
    desk.run(&["suspend", "quickstart", "--reason", "friday\nSPOOFED reason"]).exits(0);
    let mut shown = 0;
    for command in COMMANDS {
        let run = desk.run(&command.split(' ').collect::<Vec<_>>());
        // YAML writes a text of several lines in a block, which ends where it does.
        let out = if command.starts_with("render") { "" } else { &run.out };
        shown += shown_in(out, command) + shown_in(&run.err, command);
    }
    assert!(shown >= 20, "they are shown where they are, {shown} times");
}

/// Counts them, none of which may begin a line.
#[track_caller]
fn shown_in(text: &str, command: &str) -> usize {
    let spoofed: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("SPOOFED")).collect();
    assert!(spoofed.is_empty(), "{command}: {spoofed:?}");
    text.matches("SPOOFED").count()
}

#[test]
fn what_a_cluster_answers_begins_no_line() {
    let (desk, proxy) = (Desk::quickstart("gatewright-kube.yaml"), Proxy::start(shared()));
    desk.replace("gatewright-kube.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    let mut shown = 0;
    for code in [403, 500] {
        proxy.recovers();
        proxy.answer(usize::MAX, |_| true, Answer::Refused(code, "it is so\nSPOOFED: it is not\r\nSPOOFED again"));
        for command in ASKING {
            let run = desk.run_with(&proxy.kubeconfig(), &command.split(' ').collect::<Vec<_>>());
            shown += shown_in(&run.out, command) + shown_in(&run.err, command);
        }
    }
    assert!(shown >= 20, "they are shown where they are, {shown} times");
}
