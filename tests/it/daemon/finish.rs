//! A revision that comes while another one is rolled out: the daemon finishes that first.

use serde_json::Value;

use super::Daemon;
use crate::cluster::process::free_port;
use crate::program::Desk;

const CLUSTERS: [&str; 3] = ["a", "b", "c"];

/// Three directories, of which `a` is the first wave; the others wait for a person.
fn desk(port: u16, when: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let folders = CLUSTERS.map(|name| format!("  {name}: {{directory: {{path: out/{name}}}}}\n")).concat();
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\nclusters:\n{folders}syncs:\n  \
             gateways:\n    source: specs\n    clusters: {{matchLabels: {{}}}}\n    createNamespaces: true\n    \
             schedule: {{interval: 10s, jitter: 0%}}\n    rollout:\n      onNewRevision: {when}\n      waves:\n        \
             - {{clusters: {{names: [a]}}}}\n        - {{clusters: {{names: [b, c]}}, approval: true}}\n"
        ),
    );
    desk
}

fn wants(desk: &Desk, edition: &str) {
    desk.write(
        "specs/a.yaml",
        &format!(
            "{}  infrastructure: {{parametersRef: {{group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}}}\n---\n\
             apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: p, namespace: shop}}\n\
             spec: {{kube: {{podTemplate: {{extraAnnotations: {{edition: {edition}}}}}}}}}\n",
            super::gateway("a", 8080)
        ),
    );
}

/// The clusters that have an edition.
fn with(desk: &Desk, edition: &str) -> Vec<&'static str> {
    let path = |name: &&str| format!("out/{name}/shop/deployment-a.yaml");
    let has = |name: &&str| {
        desk.path(&path(name)).exists() && desk.read(&path(name)).contains(&format!("edition: {edition}"))
    };
    CLUSTERS.into_iter().filter(has).collect()
}

/// The first edition is everywhere, and the second on its way: `b` and `c` wait for a person.
fn under_way(when: &str) -> (Desk, Daemon) {
    let port = free_port();
    let desk = desk(port, when);
    wants(&desk, "first");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("what is made for the first time", |_| with(&desk, "first").len() == 3);
    wants(&desk, "second");
    daemon.until("the first wave", |_| with(&desk, "second") == ["a"]);
    daemon.until("that others wait", |_| desk.run(&["status"]).out.contains("rollout-approval"));
    (desk, daemon)
}

#[test]
fn a_revision_that_comes_meanwhile_waits_for_the_end() {
    let (desk, mut daemon) = under_way("finish");
    wants(&desk, "third");
    let waits = |daemon: &Daemon| {
        let says_so = |line: &&Value| line["message"] == "the newest revision waits until this one is rolled out";
        daemon.log().iter().filter(says_so).count()
    };
    daemon.until("that the next revision waits, in two rounds of each", |daemon| waits(daemon) >= 6);
    assert_eq!((with(&desk, "second"), with(&desk, "third")), (vec!["a"], vec![]));

    desk.run(&["rollout", "approve", "gateways", "--yes"]).exits(0);
    daemon.until("the second edition, and then the third", |_| with(&desk, "third") == ["a"]);
    assert_eq!(with(&desk, "second"), ["b", "c"], "it was finished before");
}

#[test]
fn otherwise_the_newest_is_begun_at_once() {
    let (desk, mut daemon) = under_way("restart");
    wants(&desk, "third");
    daemon.until("the third edition", |_| with(&desk, "third") == ["a"]);
    assert_eq!(with(&desk, "first"), ["b", "c"]);
}
