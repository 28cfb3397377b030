//! Syncs that come to a host and go from it, each by itself.

use std::process::Stdio;

use super::{Fleet, SYNCS};
use crate::cluster::process::command;
use crate::daemon::Daemon;
use crate::program::Run;

/// Says of both Deployments of a sync that they are healthy: nobody else does so here.
fn become_healthy(fleet: &Fleet, sync: &str) {
    let status = r#"{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}"#;
    for name in ["edge", "stays"] {
        let patch = ["patch", "deployment", name, "-n", sync, "--subresource=status", "--type=merge", "-p", status];
        fleet.audited.server.kubectl_ok(&patch);
    }
}

/// Starts the first of two hosts, which applies everything; rounds of `red` by one of them wait until what they have changed is
/// healthy.
fn at_work(waiting: usize) -> Fleet {
    let mut fleet = Fleet::new(&["host-a", "host-b"]);
    let red = "red: {source: red, clusters: {names: [target]}, createNamespaces: true, wait: ";
    let (from, to) = (format!("{red}{{enabled: false}}"), format!("{red}{{timeout: 5m}}"));
    fleet.hosts[waiting].desk.replace("gatewright.yaml", &from, &to);
    fleet.hosts[0].start();
    fleet.until("all is applied", || SYNCS.iter().all(|sync| fleet.port(sync) == "8080"));
    fleet
}

#[test]
fn a_round_that_is_under_way_is_not_cut_when_another_sync_of_its_host_goes_and_comes() {
    let fleet = at_work(0);
    let rounds = |labels: &[&str]| {
        let daemon = fleet.hosts[0].daemon.as_ref().expect("it runs");
        daemon.metric("gatewright_rounds_total", &[&["sync=\"red\""], labels].concat())
    };
    let log = |fleet: &Fleet| fleet.hosts[0].daemon.as_ref().map(Daemon::log_tail).unwrap_or_default();
    assert_eq!(rounds(&["result=\"done\""]), None, "the first one waits: {}", log(&fleet));
    // A machine under load loses a Lease before anything has been tried.
    let before = rounds(&[]);
    fleet.run(1, &["sync", "blue"]).exits(0).complains("waits for host host-a, which looks after sync \"blue\"");
    fleet.until("it has come back", || fleet.holder("blue") == Some(0));
    let blue = || {
        let daemon = fleet.hosts[0].daemon.as_ref().expect("it runs");
        daemon.metric("gatewright_rounds_total", &["sync=\"blue\"", "result=\"done\""])
    };
    fleet.until("it has rounds again", || blue().is_some());
    assert_eq!(rounds(&[]), before, "{}", log(&fleet));
    become_healthy(&fleet, "red");
    fleet.until("what it has waited for has come", || rounds(&["result=\"done\""]).is_some());
    let others = rounds(&[]).unwrap_or_default() - rounds(&["result=\"done\""]).unwrap_or_default();
    assert!((others - before.unwrap_or_default()).abs() < 0.5, "{}", log(&fleet));
}

#[test]
fn a_command_over_several_syncs_gives_each_back_when_its_round_is_over() {
    let mut fleet = at_work(1);
    // The command alone knows another revision, so that it can be seen whose rounds there are.
    fleet.hosts[0].is_blind = true;
    for sync in SYNCS {
        fleet.wants(sync, 8181);
    }
    let mut command_line = fleet.hosts[1].desk.command(&["sync"]);
    let started = command_line.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut sync = started.expect("the program starts");
    fleet.until("the last one waits", || fleet.port("red") == "8181");
    fleet.until("the others are the daemon's again", || {
        ["blue", "green"].iter().all(|sync| fleet.holder(sync) == Some(0) && fleet.port(sync) == "8080")
    });
    assert_eq!(sync.try_wait().expect("it can be asked"), None, "it still waits");
    assert_eq!((fleet.holder("red"), &*fleet.port("red")), (Some(1), "8181"));
    let sent = command("kill").args(["-s", "INT", &sync.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let run = Run::of(sync.wait_with_output().expect("it ends"));
    for sync in SYNCS {
        assert!(run.out.contains(&format!("sync {sync}")), "{}", run.out);
    }
    fleet.until("so is the last one", || fleet.holder("red") == Some(0) && fleet.port("red") == "8080");
}
