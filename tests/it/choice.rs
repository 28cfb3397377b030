//! The clusters that a command is about: by name, by pattern and by label.

use crate::program::{Desk, Run};

const GATEWAY: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
";

const CONFIG: &str = "stateDir: ./state
sources: {specs: {directory: {path: ./specs, settle: 0s}}}
clusters:
  eu-1: {directory: {path: ./eu-1}, labels: {region: eu}}
  eu-2: {directory: {path: ./eu-2}, labels: {region: eu, tier: test}}
  us-1: {directory: {path: ./us-1}, labels: {region: us}}
  us-2: {directory: {path: ./us-2}, labels: {region: us}}
syncs:
  edges: {source: specs, clusters: {names: [eu-1, eu-2, us-1]}, createNamespaces: true}
  others: {source: specs, clusters: {names: [us-2]}, createNamespaces: true}
";

fn desk() -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    desk.write("specs/edge.yaml", GATEWAY);
    desk
}

/// The clusters that a run tells of, alone or with others.
fn told(run: &Run) -> Vec<&str> {
    run.out.lines().flat_map(named).collect()
}

fn named(line: &str) -> Vec<&str> {
    match (line.trim().strip_prefix("cluster "), line.trim().strip_prefix("on all ")) {
        (Some(one), _) => vec![one.split(':').next().unwrap_or(one)],
        (None, Some(all)) => {
            let names = all.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            names.map(|(names, _)| names.split(", ").collect()).unwrap_or_default()
        }
        (None, None) => Vec::new(),
    }
}

#[test]
fn clusters_are_chosen_by_name_pattern_and_label() {
    let desk = desk();
    for (arguments, expected) in [
        (&["--cluster", "eu-*"][..], &["eu-1", "eu-2"][..]),
        (&["--cluster", "us-2,eu-1"], &["eu-1", "us-2"]),
        (&["-l", "region=eu,tier!=test"], &["eu-1"]),
        (&["--selector", "region in (us)"], &["us-1", "us-2"]),
        (&["edges", "--cluster", "us-*"], &["us-1"]),
        (&["edges", "-l", "region=us"], &["us-1"]),
    ] {
        let plan = desk.run(&[&["plan"], arguments].concat()).exits(0);
        assert_eq!(told(&plan), expected, "{arguments:?}");
        assert_eq!(told(&desk.run(&[&["status"], arguments].concat()).exits(0)), expected, "{arguments:?}");
    }
    desk.run(&["sync", "-l", "region=eu"]).exits(0);
    assert!(desk.path("eu-1/infra").exists() && !desk.path("us-1").exists() && !desk.path("us-2").exists());
}

/// An empty choice is a slip, and never all clusters.
#[test]
fn where_no_cluster_is_left_nothing_is_done() {
    let desk = desk();
    for (arguments, complaint) in [
        (&["--cluster", "ap-*"][..], "no cluster has a name like \"ap-*\"\n  looked at: eu-1, eu-2, us-1, us-2"),
        (&["edges", "--cluster", "*-9"], "no cluster has a name like \"*-9\"\n  looked at: eu-1, eu-2, us-1\n"),
        (&["-l", "region=ap"], "none of the clusters has these labels\n  looked at: eu-1, eu-2, us-1, us-2"),
        (&["edges", "--cluster", "us-1", "-l", "tier"], "none of the clusters has these labels\n  looked at: us-1"),
        (&["--cluster", "eu-11"], "there is no cluster \"eu-11\"\n  did you mean \"eu-1\"?"),
        (&["edges", "--cluster", "us-2"], "sync \"edges\" does not select cluster \"us-2\""),
        (&["-l", "region in eu"], "is no requirement of labels: write region=eu"),
    ] {
        desk.run(&[&["sync"], arguments].concat()).exits(64).complains(complaint);
    }
    assert!(["eu-1", "eu-2", "us-1", "us-2"].iter().all(|name| !desk.path(name).exists()));
}
