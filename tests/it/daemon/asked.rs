//! `gatewright sync` beside a daemon: it is asked for a round, and what it did is shown.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use super::{Daemon, gateway};
use crate::cluster::process::free_port;
use crate::program::Desk;

/// Rounds of the sync `edge` begin on New Year's Day, and whenever somebody asks.
fn desk(port: u16) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let sync = "createNamespaces: true, schedule: {cron: \"0 0 1 1 *\", window: 1m}";
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\", dashboard: false}}\n\
             sources:\n  specs: {{directory: {{path: specs, settle: 0s}}, poll: 1h}}\n  \
             others: {{directory: {{path: others, settle: 0s}}, poll: 1h}}\n\
             clusters: {{one: {{directory: {{path: one}}}}, two: {{directory: {{path: two}}}}}}\n\
             syncs:\n  edge: {{{sync}, source: specs, clusters: {{names: [one, two]}}}}\n  \
             inner: {{{sync}, source: others, clusters: {{names: [one]}}}}\n"
        ),
    );
    desk.write("specs/a.yaml", &gateway("a", 8080));
    desk.write("others/b.yaml", &gateway("b", 8090));
    desk
}

#[test]
fn a_daemon_does_the_round_that_somebody_asks_for() {
    let port = free_port();
    let desk = desk(port);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("it is ready", Daemon::is_ready);
    let run = desk.run(&["sync", "edge", "--yes"]).exits(0);
    run.complains("and begins a round of sync edge on 2 clusters").says("10 objects created");
    assert!(desk.path("one").exists() && desk.path("two").exists());
    assert_eq!(daemon.rounds().iter().filter(|round| round.sync == "inner").count(), 0, "nobody has asked for it");

    // Each time it sees what the source holds now.
    desk.replace("specs/a.yaml", "8080", "8081");
    let run = desk.run(&["sync", "edge", "-o", "json"]).exits(0);
    assert!(run.out.contains("\"update\""), "{}", run.out);
    desk.run(&["sync", "edge"]).exits(0).says("no changes");
    desk.run(&["sync", "--no-wait"]).exits(0).complains("a round of sync inner on 1 cluster");

    // What is not as a round of the daemon is done without one.
    for part in [&["--only", "Gateway/infra/a"][..], &["--full"], &["--cluster", "one"]] {
        desk.run(&[&["sync", "edge"], part].concat()).exits(1).complains("does the rounds by itself; stop it");
    }
    desk.run(&["suspend", "edge", "--reason", "friday"]).exits(0);
    let rounds = daemon.rounds().len();
    desk.run(&["sync", "edge"]).exits(3).complains("sync \"edge\" is suspended");
    assert_eq!(daemon.rounds().len(), rounds);
    daemon.stops_within(std::time::Duration::from_secs(20));
    desk.run(&["sync", "inner"]).exits(0);
}

#[test]
fn a_round_that_there_is_not_is_told_and_not_waited_for() {
    let port = free_port();
    let desk = desk(port);
    // Somebody has asked long ago, when no daemon was there.
    desk.write("state/requested/edge/old.json", "{\"id\": \"old\", \"time\": \"2026-01-01T00:00:00Z\"}");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("it is ready", Daemon::is_ready);
    desk.run(&["sync", "inner"]).exits(0);
    assert!(daemon.rounds().iter().all(|round| round.sync == "inner"), "an old request is nobody's");

    fs::rename(desk.path("specs"), desk.path("away")).expect("it is there");
    let run = desk.run(&["sync", "edge"]).exits(1);
    run.complains("no round of sync \"edge\" on one: ").complains("no round of sync \"edge\" on two: ");
    fs::rename(desk.path("away"), desk.path("specs")).expect("it is there");
    desk.run(&["sync", "edge"]).exits(0).says("objects");

    desk.write("state/rounds/edge/one", "");
    let held = File::open(desk.path("state/rounds/edge/one")).expect("it was written");
    held.lock().expect("no round is under way");
    let run = desk.run(&["sync", "edge"]).exits(1);
    let run = run.complains("no round of sync \"edge\" on one: a person is at work there");
    assert!(!run.err.contains("on two"), "nobody is at work there: {}", run.err);
    drop(held);

    // What others wait for goes first; by name it would be the last.
    desk.replace("gatewright.yaml", "edge: {", "edge: {dependsOn: [{sync: inner}], ");
    daemon.signal("HUP");
    daemon.until("the new configuration", |daemon| {
        daemon.log().iter().any(|line| line["message"] == "the configuration was read again")
    });
    desk.replace("specs/a.yaml", "8080", "8085");
    desk.replace("others/b.yaml", "8090", "8092");
    let run = desk.run(&["sync"]).exits(0);
    assert!(run.out.find("sync inner") < run.out.find("sync edge"), "{}", run.out);
    daemon.stops_within(std::time::Duration::from_secs(20));
}

#[test]
fn whoever_takes_no_requests_is_not_waited_for() {
    let desk = desk(0);
    desk.write("state/lock", "");
    let held = File::open(desk.path("state/lock")).expect("it was written");
    held.lock().expect("nobody else has it");
    desk.run(&["sync", "edge"])
        .exits(1)
        .complains("another gatewright uses the state directory, and takes no requests");
    drop(held);
    desk.run(&["sync", "edge"]).exits(0);
    let left = fs::read_dir(desk.path("state/requested/edge")).into_iter().flatten().count();
    assert_eq!(left, 0, "a daemon that starts later does nothing of its own accord");
}

#[test]
fn several_may_ask_at_once() {
    let port = free_port();
    let desk = desk(port);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("it is ready", Daemon::is_ready);
    let ask = || {
        let mut command = desk.command(&["sync", "edge"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    let asking: Vec<Child> = (0..3).map(|_| ask()).collect();
    for mut one in asking {
        assert_eq!(one.wait().expect("it ends").code(), Some(0));
    }
    daemon.stops_within(std::time::Duration::from_secs(20));
}
