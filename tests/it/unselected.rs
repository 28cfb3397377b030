//! Clusters that a sync selects no more: by a label that somebody misspelled, or on purpose.

use std::fs;

use crate::program::Desk;

const GATEWAY: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: a, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 80, protocol: HTTP}]}
";

const CONFIG: &str = "\
stateDir: state
sources:
  specs: {directory: {path: specs, settle: 0s}}
  others: {directory: {path: others, settle: 0s}}
clusters:
  eu-1: {directory: {path: eu-1}, labels: {env: prod}}
  eu-2: {directory: {path: eu-2}, labels: {env: prod}}
  us-1: {directory: {path: us-1}, labels: {env: prod}}
syncs:
  edge: {source: specs, createNamespaces: true, clusters: {matchLabels: {env: prod}}}
  nightly: {source: others, createNamespaces: true, clusters: {names: [eu-1]}}
";

/// Three directories, of which the last has lost its place in the sync.
fn with_a_typo() -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    desk.write("specs/a.yaml", GATEWAY);
    desk.write("others/b.yaml", &GATEWAY.replace("name: a", "name: b"));
    desk.run(&["sync"]).exits(0);
    desk.replace("gatewright.yaml", "us-1}, labels: {env: prod}", "us-1}, labels: {env: prdo}");
    desk
}

#[test]
fn a_cluster_with_a_misspelled_label_is_told_of() {
    let desk = with_a_typo();
    let words = "sync edge does not select cluster us-1 any more; what was applied there stays as it is";
    let hint = "delete it: gatewright destroy edge --cluster us-1, or leave it: gatewright clusters forget us-1";
    desk.run(&["plan"]).exits(0).complains(words).complains(hint);
    desk.run(&["sync", "edge"]).exits(0).complains(words);
    let run = desk.run(&["sync", "nightly"]).exits(0);
    assert!(!run.err.contains("any more"), "it is about another sync: {}", run.err);
    desk.run(&["status"]).exits(0).says(words).says(hint);
    desk.run(&["clusters", "--offline"]).exits(0).says(words);
    let run = desk.run(&["clusters", "--offline", "-o", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("it is JSON");
    assert_eq!(json["unselected"], serde_json::json!({"edge": ["us-1"]}));
    assert!(desk.path("us-1/infra").exists(), "nothing is deleted");

    desk.replace("gatewright.yaml", "env: prdo", "env: prod");
    let run = desk.run(&["plan"]).exits(0);
    assert!(!run.err.contains("any more"), "it goes on where it was: {}", run.err);
}

#[test]
fn whoever_means_it_destroys_or_forgets() {
    let desk = with_a_typo();
    desk.replace("gatewright.yaml", "eu-2}, labels: {env: prod}", "eu-2}, labels: {env: test}");
    desk.run(&["plan"]).exits(0).complains("sync edge does not select clusters eu-2, us-1 any more");
    desk.run(&["clusters", "forget", "eu-1"]).exits(64).complains("cluster \"eu-1\" is configured, in ");
    desk.run(&["clusters", "forget", "eu-2"])
        .exits(0)
        .says("sync edge on cluster eu-2 is forgotten; what it applied there stays as it is");
    desk.run(&["plan"]).exits(0).complains("sync edge does not select cluster us-1 any more");
    desk.run(&["destroy", "edge", "--cluster", "us-1", "--yes"]).exits(0).says("nothing of it is left");
    let run = desk.run(&["plan"]).exits(0);
    assert!(!run.err.contains("any more"), "{}", run.err);
    assert!(desk.path("eu-2/infra").exists() && !desk.path("us-1/infra").exists());
}

#[test]
fn a_sync_that_is_taken_out_is_told_of_but_not_one_that_is_renamed() {
    let desk = with_a_typo();
    desk.replace("gatewright.yaml", "env: prdo", "env: prod");
    desk.replace("gatewright.yaml", "  nightly:", "  weekly: {moved: [{from: nightly}], source: others, createNamespaces: true, clusters: {names: [eu-1]}}\n  # nightly:");
    let run = desk.run(&["plan"]).exits(0);
    assert!(!run.err.contains("any more"), "{}", run.err);
    desk.run(&["sync"]).exits(0);
    let run = desk.run(&["plan"]).exits(0);
    assert!(!run.err.contains("any more"), "{}", run.err);
    let config = fs::read_to_string(desk.path("gatewright.yaml")).expect("it is there");
    let rest: Vec<&str> = config.lines().filter(|line| !line.contains("weekly")).collect();
    desk.write("gatewright.yaml", &rest.join("\n"));
    desk.run(&["plan"])
        .exits(0)
        .complains("sync weekly is not configured any more, and has applied something to cluster eu-1");
}

#[test]
fn a_sync_that_has_lost_all_its_clusters_stops_no_other() {
    let desk = Desk::empty("gatewright.yaml");
    let config = "stateDir: state\nclusterFolders: [clusters.d]\nsources: {specs: {directory: {path: specs, settle: 0s}}}\n\
                  syncs:\n  edge: {source: specs, createNamespaces: true, clusters: {matchLabels: {region: eu}}}\n  \
                  inner: {source: specs, createNamespaces: true, clusters: {matchLabels: {region: us}}}\n";
    desk.write("gatewright.yaml", config);
    desk.write("specs/a.yaml", GATEWAY);
    for (cluster, region) in [("eu-1", "eu"), ("us-1", "us")] {
        desk.write(&format!("clusters.d/{cluster}.directory.yaml"), &format!("path: ../{cluster}\n"));
        desk.write(&format!("clusters.d/{cluster}.labels.yaml"), &format!("region: {region}\n"));
    }
    desk.run(&["sync"]).exits(0);
    desk.write("clusters.d/us-1.labels.yaml", "region: su\n");
    desk.replace("specs/a.yaml", "port: 80", "port: 81");
    let words = "sync \"inner\" selects no cluster (name clusters, or select them by matchLabels; there are region=eu, \
                 region=su)";
    desk.run(&["plan"]).exits(1).complains(words);
    let run = desk.run(&["sync"]).exits(1).complains("gatewright.yaml:6:").complains(words);
    run.complains("sync inner does not select cluster us-1 any more").says("sync edge");
    let service = fs::read_dir(desk.path("eu-1/infra")).expect("it was made").flatten();
    let all: String = service.map(|file| fs::read_to_string(file.path()).expect("it is text")).collect();
    assert!(all.contains("port: 81"), "the other sync goes on: {all}");
    let run = desk.run(&["sync", "edge"]).exits(0);
    assert!(!run.err.contains("inner"), "it is about another sync: {}", run.err);
    desk.run(&["status"]).exits(0).says("sync inner does not select cluster us-1 any more");
    desk.run(&["config", "check"]).exits(64).complains(words);
}
