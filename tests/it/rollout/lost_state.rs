//! A host that has lost its state folder: what is known of rollouts is read back from the clusters.

use std::fs;

use super::{BAD, FOLLOWERS, Fleet, fleet};
use crate::cluster::shared;

impl Fleet {
    /// Takes the state folder away, but for what says which installation it is.
    fn loses_its_state(&self) {
        for entry in fs::read_dir(self.desk.path("state")).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("it has a name").to_owned();
            if path.is_dir() {
                fs::remove_dir_all(&path).expect("a test may");
            } else if !["installation", "key"].contains(&name.as_str()) {
                fs::remove_file(&path).expect("a test may");
            }
        }
    }

    fn head(&self, arguments: &[&str]) -> String {
        let name = format!("gatewright.{}", self.sync);
        shared().kubectl_ok(&[&["-n", "gatewright-system"], arguments, &["configmap", name.as_str()]].concat())
    }

    fn version(&self) -> String {
        self.head(&["get", "-o", "jsonpath={.metadata.resourceVersion}"])
    }

    /// Writes another text, or none, where the cluster keeps what it has of rollouts.
    fn keeps(&self, text: &str) {
        self.head(&["patch", "--type=merge", "-p", &format!("{{\"data\":{{\"rollouts\":{text}}}}}")]);
    }
}

#[test]
fn what_was_halted_stays_halted_for_a_host_that_has_lost_its_state() {
    let fleet = fleet("");
    let (desk, namespace) = (&fleet.desk, &fleet.namespace);
    desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    desk.run(&["sync"]).exits(1);
    let (version, kept) = (fleet.version(), fleet.head(&["get", "-o", "jsonpath={.data.rollouts}"]));
    assert!(kept.starts_with("{\"version\":1,"), "{kept}");
    assert!(!desk.read_all("out").contains("\"rollouts\""), "a directory has nothing to lose");
    desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.version(), version, "nothing new is to be kept");

    // A command for others than the one that knows.
    fleet.loses_its_state();
    let why = format!(
        "went to cluster canary first, and is not healthy there: Gateway {namespace}/a: Deployment {namespace}/a: after 3s: "
    );
    let held = |run: &str| format!("{run}\n  Gateway {namespace}/a is held by guard rollout-halted: ");
    desk.run(&["sync", "--cluster", "lab"]).exits(3).says(&held("cluster lab")).says(&why);
    fleet.loses_its_state();
    let all = held("on 3 of 4 clusters (dr, edge, lab)");
    desk.run(&["plan"]).exits(3).says(&all).says(&why);
    desk.run(&["rollout", "pause", &fleet.sync, "--reason", "calm"]).exits(0);
    desk.run(&["rollout", "resume", &fleet.sync]).exits(0);
    desk.run(&["sync"]).exits(1).says(&all).says(&why).says("    gatewright approve ");
    desk.run(&["rollout", "status"]).exits(0).says("    not healthy on cluster canary: ");
    assert_eq!(fleet.with("such-node"), ["canary"]);

    // Who cannot read it lets nobody go.
    fleet.loses_its_state();
    fleet.keeps("\"?\"");
    let unread = desk.run(&["sync"]).exits(1);
    let unread = unread.says("is held by guard rollout-paused: nothing is noted here of how far the rollout is");
    unread.says("what is kept of it on cluster canary cannot be read: ").says(&format!("gatewright.{}", fleet.sync));
    assert_eq!(fleet.with("such-node"), ["canary"]);
    fleet.keeps(&serde_json::json!(kept).to_string());

    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.wants("podTemplate: {extraAnnotations: {edition: second}}");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ["canary", FOLLOWERS[0], FOLLOWERS[1], FOLLOWERS[2]]);
    desk.run(&["rollout", "status"]).exits(0).says(": nothing is under way\n");
    assert_ne!(fleet.head(&["get", "-o", "jsonpath={.data.rollouts}"]), kept);
}

#[test]
fn a_sync_without_rollouts_keeps_nothing_on_its_clusters() {
    let fleet = fleet("\n    rollout: {strategy: all}");
    fleet.desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.head(&["get", "-o", "jsonpath={.data.rollouts}"]), "");
}
