//! The state that a daemon begins with while its source cannot be read: the last that anybody has applied here.

use std::fs;
use std::time::Duration;

use super::{Daemon, gateway};
use crate::cluster::process::{Folder, free_port};
use crate::program::Desk;
use crate::support::git_server::Repository;

/// Writes the configuration: one sync, on a directory.
fn configure(desk: &Desk, port: u16, source: &str) {
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources: {{specs: {{{source}, poll: 1s}}}}\n\
             clusters: {{folder: {{directory: {{path: rendered}}}}}}\nsyncs:\n  gateways: {{source: specs, \
             clusters: {{names: [folder]}}, createNamespaces: true, schedule: {{interval: 10s, jitter: 0%}}}}\n"
        ),
    );
}

/// Starts a daemon, waits for a round of it, and stops it.
fn has_a_round(desk: &Desk, port: u16) {
    let mut daemon = Daemon::start(desk, port, &[]);
    daemon.until("a round", |daemon| daemon.metric("gatewright_rounds_total", &["\"done\""]) > Some(0.0));
    daemon.stops_within(Duration::from_secs(10));
}

fn rendered(desk: &Desk, name: &str) -> Option<String> {
    fs::read_to_string(desk.path(&format!("rendered/shop/service-{name}.yaml"))).ok()
}

#[test]
fn a_daemon_starts_with_what_was_applied_by_hand_while_its_source_is_down() {
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    configure(&desk, port, "directory: {path: specs}");
    desk.write("specs/a.yaml", &gateway("a", 80));
    has_a_round(&desk, port);
    desk.write("specs/b.yaml", &gateway("b", 80));
    desk.run(&["plan"]).exits(0).says("4 objects to create");
    desk.run(&["sync"]).exits(0).says("4 objects created");
    fs::rename(desk.path("specs"), desk.path("away")).expect("it is there");
    has_a_round(&desk, port);
    assert!(rendered(&desk, "a").is_some() && rendered(&desk, "b").is_some(), "an older truth has deleted it");
}

#[test]
fn a_daemon_starts_with_the_commit_of_a_plan_that_was_applied() {
    let (desk, port, folder) = (Desk::empty("gatewright.yaml"), free_port(), Folder::new());
    let repository = Repository::new(folder.path(), "specs");
    let url = repository.bare.display().to_string();
    configure(&desk, port, &format!("git: {{url: {url:?}}}"));
    repository.write("a.yaml", &gateway("a", 80));
    repository.push();
    has_a_round(&desk, port);
    repository.write("b.yaml", &gateway("b", 80));
    repository.push();
    desk.run(&["plan", "--out", "plan.json"]).exits(0).says("4 objects to create");
    repository.write("b.yaml", &gateway("b", 81));
    repository.push();
    desk.run(&["apply", "plan.json"]).exits(0).says("4 objects created");
    fs::rename(&repository.bare, folder.path().join("away")).expect("it is there");
    has_a_round(&desk, port);
    assert!(rendered(&desk, "b").is_some_and(|text| text.contains("port: 80\n")), "an older truth has deleted it");
}
