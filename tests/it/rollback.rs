//! A rollback of a fleet in an incident: every cluster goes back to what was healthy on it.

use std::fs;
use std::process::{Child, Stdio};

use crate::program::Run;
use crate::rollout::{BAD, Fleet, fleet};

const ALL: [&str; 4] = ["canary", "dr", "edge", "lab"];

fn edition(name: &str) -> String {
    format!("podTemplate: {{extraAnnotations: {{edition: {name}}}}}")
}

impl Fleet {
    /// Has an edition everywhere.
    fn has(&self, name: &str) {
        self.wants(&edition(name));
        self.desk.run(&["sync"]).exits(0);
        assert_eq!(self.with(&format!("edition: {name}")), ALL);
    }

    /// Begins a round of what never becomes healthy, and returns once it waits for that.
    fn begins(&self) -> Child {
        let mut sync = self.desk.command(&["sync"]);
        let mut round = sync.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        while self.with("such-node").is_empty() && round.try_wait().is_ok_and(|ended| ended.is_none()) {}
        round
    }

    /// Has time for nothing to become healthy.
    fn is_impatient(&self) {
        self.desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    }

    fn rollback(&self, arguments: &[&str]) -> Run {
        self.desk.run(&[&["rollback", self.sync.as_str()], arguments].concat())
    }

    /// The lines of the list, without those that name clusters.
    fn sets(&self) -> Vec<String> {
        let list = self.rollback(&["--list"]).exits(0);
        list.out.lines().filter(|line| !line.starts_with("cluster ")).map(str::to_owned).collect()
    }
}

#[test]
fn each_cluster_goes_back_to_what_was_healthy_there() {
    let fleet = fleet("");
    let (desk, namespace) = (&fleet.desk, &fleet.namespace);
    desk.run(&["sync"]).exits(0);
    let none = fleet.rollback(&[]).exits(1);
    none.complains("on all 4 clusters: no earlier set was healthy there").complains("has no earlier set");
    fleet.has("second");
    fleet.wants(BAD);
    fleet.is_impatient();
    desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.with("such-node"), ["canary"]);
    // One more try that is no better.
    fleet.wants("podTemplate: {nodeSelector: {no: such-node, nor: such-zone}}");
    desk.run(&["sync"]).exits(1);

    let never = format!("(Gateway {namespace}/a was never healthy with it)");
    let run = fleet.rollback(&["--dry-run"]).exits(0);
    run.says("  plan: 1 object to update").complains("on all 4 clusters: back to ").complains(&never);
    assert_eq!(fleet.with("such-node"), ["canary"], "nothing is done yet");
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.rollback(&[]).exits(0).says("1 object updated").complains("is suspended");
    assert_eq!((fleet.with("such-node"), fleet.with("edition: second")), (vec![], ALL.to_vec()));
    // Once more is no step further back.
    fleet.rollback(&[]).exits(0).says("no changes");
    assert_eq!(fleet.with("edition: second"), ALL);
    desk.run(&["sync"]).exits(3);

    // The source still says it: nobody gets it but the first.
    desk.run(&["resume", &fleet.sync]).exits(0);
    fleet.is_impatient();
    desk.run(&["sync"]).exits(1);
    assert_eq!((fleet.with("such-node"), fleet.with("edition: second").len()), (vec!["canary"], 3));
}

#[test]
fn a_rollout_that_is_aborted_goes_back_from_where_it_has_come() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.has("second");
    fleet.wants(BAD);
    fleet.is_impatient();
    desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.with("such-node"), ["canary"]);
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    desk.run(&["rollout", "abort", &fleet.sync]).exits(0).says("1 object updated").complains("is suspended");
    assert_eq!((fleet.with("such-node"), fleet.with("edition: second")), (vec![], ALL.to_vec()));
    desk.run(&["sync"]).exits(3).complains("is suspended");
}

#[test]
fn what_was_taken_back_by_hand_is_nothing_to_go_back_to() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.has("second");
    fleet.has("third");
    desk.run(&["rollout", "abort", &fleet.sync])
        .exits(1)
        .complains("no change of sync")
        .complains("gatewright rollback ");
    for again in [false, true] {
        fleet.rollback(&[]).exits(0);
        assert_eq!(fleet.with("edition: second"), ALL, "again: {again}");
        let sets = fleet.sets();
        assert!(sets[0].ends_with(", taken back") && sets[1].ends_with("  <- rollback went here"), "{sets:#?}");
    }
    desk.run(&["resume", &fleet.sync]).exits(0);
    fleet.has("fourth");
    fleet.rollback(&[]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL, "the third was taken back, too");

    desk.run(&["resume", &fleet.sync]).exits(0);
    fleet.has("fifth");
    let undo = desk.run(&["undo"]).exits(0);
    let run =
        undo.out.lines().next().and_then(|line| line.split_whitespace().last()).expect("it lists the newest first");
    desk.run(&["undo", run]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL);
    desk.run(&["resume", &fleet.sync]).exits(0);
    fleet.has("sixth");
    fleet.rollback(&[]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL, "the fifth was undone");
    // The source may want what was taken back.
    desk.run(&["resume", &fleet.sync]).exits(0);
    fleet.has("fifth");
    fleet.has("seventh");
    fleet.rollback(&[]).exits(0);
    assert_eq!(fleet.with("edition: fifth"), ALL);
}

#[test]
fn a_round_that_was_killed_has_tried_what_it_has_not_seen_healthy() {
    let fleet = fleet("");
    fleet.desk.run(&["sync"]).exits(0);
    fleet.has("second");
    fleet.wants(BAD);
    let mut round = fleet.begins();
    round.kill().expect("it is running");
    round.wait().expect("it is killed");
    fleet.rollback(&[]).exits(0);
    assert_eq!((fleet.with("such-node"), fleet.with("edition: second")), (vec![], ALL.to_vec()));
}

#[test]
fn a_round_that_waits_for_something_to_become_healthy_gives_way() {
    let fleet = fleet("");
    fleet.desk.run(&["sync"]).exits(0);
    fleet.has("second");
    fleet.wants(BAD);
    fleet.desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 10h");
    let round = fleet.begins();
    fleet.rollback(&[]).exits(0).complains("waits for the round");
    let round = Run::of(round.wait_with_output().expect("it ends"));
    round.says("1 object updated").says("goes to cluster canary first");
    assert_eq!((fleet.with("such-node"), fleet.with("edition: second")), (vec![], ALL.to_vec()));
}

#[test]
fn what_was_healthy_and_is_wrong_all_the_same_goes_back_by_one() {
    let fleet = fleet("");
    fleet.desk.run(&["sync"]).exits(0);
    fleet.has("second");
    fleet.has("third");
    let all = "on all 4 clusters: back to ";
    fleet.rollback(&["--dry-run"]).exits(0).complains(all).complains("(healthy)");
    // What changes one cluster alone is taken back there alone.
    let overlay = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: lab}\n\
                   spec: {clusters: {names: [lab]}, parameters: {kube: {podTemplate: {extraAnnotations: {only: lab}}}}}\n";
    fleet.desk.write("specs/lab.yaml", overlay);
    fleet.desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("only: lab"), ["lab"]);
    fs::rename(fleet.desk.path("specs"), fleet.desk.path("gone")).expect("it is there");
    let run = fleet.rollback(&[]).exits(0).complains("on cluster lab: back to ");
    run.complains("on 3 of 4 clusters (canary, dr, edge): ").complains(" stays, as nothing newer has come there");
    assert_eq!((fleet.with("only: lab"), fleet.with("edition: third")), (vec![], ALL.to_vec()));
}

#[test]
fn no_number_of_failures_drives_out_what_was_healthy() {
    let fleet = fleet("");
    let config = fleet.desk.read("gatewright.yaml");
    fleet.desk.write("gatewright.yaml", &format!("rollback: {{keep: 3}}\n{config}"));
    fleet.has("first");
    fleet.has("second");
    fleet.is_impatient();
    for number in 1..=5 {
        fleet.wants(&format!("podTemplate: {{nodeSelector: {{no: such-node-{number}}}}}"));
        fleet.desk.run(&["sync"]).exits(1);
    }
    let sets = fleet.sets();
    assert_eq!(sets.len(), 12, "{sets:?}");
    assert_eq!(sets.iter().filter(|line| line.ends_with("  healthy  <- rollback goes here")).count(), 4, "{sets:?}");
    assert_eq!(sets.iter().filter(|line| line.ends_with("  healthy")).count(), 4, "{sets:?}");
    for cluster in ALL {
        let folder = fleet.desk.path(&format!("state/rendered/{}/{cluster}", fleet.sync));
        let files = fs::read_dir(folder).expect("it is there").count();
        assert_eq!(files, 3 + 1, "three sets and their index");
    }
    fleet.desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.rollback(&[]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL);
}

#[test]
fn the_way_back_goes_through_the_waves_in_reverse() {
    let waves = "[{clusters: {names: [lab]}}, {clusters: {names: [canary]}, soak: 1h}, \
                 {clusters: {names: [dr, edge]}, approval: true}]";
    let fleet = fleet(&format!("\n    rollout: {{waves: {waves}}}"));
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.is_impatient();
    fleet.wants(BAD);
    desk.run(&["sync", "--skip-waves", "--reason", "a trial"]).exits(1);
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.wants(&edition("second"));
    desk.run(&["sync", "--skip-waves", "--reason", "a trial"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL);

    // Neither the hour nor a person is waited for, but health is.
    fleet.is_impatient();
    let order = "  in waves: on 2 clusters (dr, edge); on canary; on lab, each once it is healthy on those before\n";
    fleet.rollback(&["--to", "1", "--dry-run"]).exits(0).says(order);
    fleet.rollback(&["--to", "1"]).exits(1).says("cluster lab\n").says("held by guard rollout-halted: rollback to ");
    assert_eq!(fleet.with("such-node"), ["canary", "dr", "edge"]);
    fleet.rollback(&["--to", "1", "--now"]).exits(1);
    assert_eq!(fleet.with("such-node"), ALL);
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.rollback(&["--to", "0"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL);
}

#[test]
fn what_was_not_taken_back_goes_on_as_it_was() {
    let waves =
        "[{clusters: {names: [lab]}, soak: 1h}, {clusters: {names: [canary]}}, {clusters: {names: [dr, edge]}}]";
    let fleet = fleet(&format!("\n    rollout: {{waves: {waves}}}"));
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    for name in ["second", "third"] {
        fleet.wants(&edition(name));
        desk.run(&["sync", "--skip-waves", "--reason", "a trial"]).exits(0);
    }
    fleet.wants(&edition("fourth"));
    desk.run(&["sync"]).says("stays there for 1h first");
    assert_eq!(fleet.with("edition: fourth"), ["lab"]);

    // It had not come there: nothing changes, and nobody else has waited long enough for that.
    fleet.rollback(&["--cluster", "canary"]).exits(0).says("no changes");
    desk.run(&["resume", &fleet.sync]).exits(0);
    desk.run(&["sync"]).says("stays there for 1h first");
    assert_eq!(fleet.with("edition: fourth"), ["lab"]);

    // Some clusters of the waves are waited for by nobody else, and a set that is damaged is in the way of no other.
    let folder = desk.path(&format!("state/rendered/{}/dr", fleet.sync));
    for entry in fs::read_dir(&folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.file_name().is_some_and(|name| name != "index") {
            fs::write(path, "damaged").expect("it can be written");
        }
    }
    // Where none can be read nothing is wanted, which is not that everything is to go.
    fleet.rollback(&["--cluster", "dr", "--now"]).exits(1).complains("is damaged").complains("nothing was changed");
    assert_eq!(fleet.with("edition: third"), ["canary", "dr", "edge"]);
    fleet.rollback(&["--cluster", "lab,dr"]).exits(1).complains("cluster dr: ").complains("is damaged");
    assert_eq!(fleet.with("edition: third"), ALL);
    desk.run(&["resume", &fleet.sync]).exits(0);
    desk.run(&["sync"]).says("stays there for 1h first");
    assert_eq!(fleet.with("edition: fourth"), ["lab"]);
}

#[test]
fn a_set_of_a_source_that_was_broken_is_passed_over() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.has("second");
    // The other one is broken for one revision, and comes back with the change that is taken back.
    let other = |port| crate::errors::gateway(&fleet.namespace, "b", port);
    desk.write("specs/b.yaml", &other(8081));
    desk.run(&["sync"]).exits(0);
    desk.write("specs/b.yaml", "kind: [");
    fleet.wants(&edition("third"));
    desk.run(&["sync"]).exits(1);
    desk.write("specs/b.yaml", &other(8085));
    desk.run(&["sync"]).exits(0);
    fleet.rollback(&[]).exits(0);
    assert_eq!(fleet.with("edition: second"), ALL);
    let service = desk.read(&format!("out/lab/{}/service-b.yaml", fleet.namespace));
    assert!(service.contains("8081"), "{service}");
}
