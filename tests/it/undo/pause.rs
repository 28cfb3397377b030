//! `suspend` and `resume`, by hand and beside a running daemon.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::{FREELY, as_set, run_of};
use crate::cluster::process::free_port;
use crate::daemon::{Daemon, gateway, meddle_with, service};
use crate::ownership::site::Site;
use crate::program::Desk;

#[test]
fn a_suspended_sync_has_no_round_but_by_express_wish() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.run(&["suspend", &site.name, "--reason", "change freeze", "--for", "2h"]).exits(0).says("change freeze");
    site.sync().exits(3).complains("is suspended").complains("until 2").complains("change freeze");
    assert_eq!(site.left_of("edge"), [""; 0]);
    site.run(&["plan"]).exits(0).says("4 objects to create").says("change freeze");
    site.run(&["status"]).exits(0).says(&format!("sync {}: suspended", site.name)).says("change freeze");
    site.run(&["status", "--format", "json"]).exits(0).says("\"reason\":\"change freeze\"");

    site.run(&["sync", "--even-if-suspended"]).exits(64).complains("--reason");
    let run = site.run(&["sync", "--even-if-suspended", "--reason", "urgent"]).exits(0).says("4 objects created");
    run.says("by hand while suspended: urgent");
    site.sync().exits(3);
    site.run(&["resume", &site.name]).exits(0).says("change freeze");
    site.run(&["resume", &site.name]).exits(0).says("it was not suspended");
    site.sync().exits(0).says("no changes");

    site.run(&["suspend", &site.name, "--for", "1ms"]).exits(0).says("no reason given");
    site.sync().exits(0).says("no changes");
    site.run(&["suspend", "nobody"]).exits(64).complains("there is no sync \"nobody\"");
}

#[test]
fn a_daemon_leaves_a_suspended_sync_alone_until_it_is_over() {
    let server = crate::ownership::site::server();
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    let config = format!(
        "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources: {{specs: {{directory: {{path: specs}}}}}}\n\
         clusters: {{only: {{kubeconfig: {{path: {}}}}}}}\nsyncs:\n  pausing:\n    source: specs\n    \
         clusters: {{names: [only]}}\n    createNamespaces: true\n    wait: {{enabled: false}}\n    \
         schedule: {{interval: 10s, jitter: 0%}}\n",
        server.kubeconfig("admin").display()
    );
    desk.write("gatewright.yaml", &config);
    let text = |port| gateway("pausing", port);
    desk.write("specs/pausing.yaml", &text(80));
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the objects", |_| service(server, "pausing", ".spec.ports[0].port") == "80");

    desk.run(&["suspend", "pausing", "--reason", "a person is at work"]).exits(0);
    let rests =
        |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &["result=\"suspended\""]).unwrap_or_default();
    daemon.until("a round that was none", |daemon| rests(daemon) > 0.0);
    assert_eq!(daemon.metric("gatewright_sync_suspended", &["sync=\"pausing\""]), Some(1.0));
    meddle_with(server, "pausing");
    desk.write("specs/pausing.yaml", &text(81));
    let before = rests(&daemon);
    daemon.until("the same for the new revision", |daemon| rests(daemon) > before);
    assert_eq!(service(server, "pausing", ".spec.ports[0].targetPort"), "1234", "nothing was corrected");
    desk.run(&["status"]).exits(0).says("suspended").says("a person is at work").says("Gateway shop/pausing");
    desk.run(&["history"]).exits(0).says("suspended");

    desk.run(&["resume", "pausing"]).exits(0);
    daemon.until("the new port", |_| service(server, "pausing", ".spec.ports[0].port") == "81");
    daemon.until("the metric", |daemon| daemon.metric("gatewright_sync_suspended", &["pausing"]) == Some(0.0));

    // It ends by itself.
    let before = rests(&daemon);
    desk.run(&["suspend", "pausing", "--for", "8s"]).exits(0);
    desk.write("specs/pausing.yaml", &text(82));
    daemon.until("a pause", |daemon| rests(daemon) > before);
    assert_eq!(service(server, "pausing", ".spec.ports[0].port"), "81");
    daemon.until("its end", |_| service(server, "pausing", ".spec.ports[0].port") == "82");

    // What nobody can read is no leave to go on.
    fs::write(desk.path("state/suspended/pausing.json"), "{").expect("a test may");
    desk.write("specs/pausing.yaml", &text(83));
    daemon.until("the error", |daemon| daemon.log().iter().any(|line| line["level"] == "ERROR"));
    assert_eq!(service(server, "pausing", ".spec.ports[0].port"), "82");
    desk.run(&["sync"]).exits(1).complains("`gatewright resume pausing` or `suspend` writes it again");
    desk.run(&["resume", "pausing"]).exits(0);
    daemon.until("the end of it", |_| service(server, "pausing", ".spec.ports[0].port") == "83");
}

#[test]
fn a_daemon_leaves_alone_what_was_undone() {
    let server = crate::ownership::site::server();
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    let config = format!(
        "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources: {{specs: {{directory: {{path: specs}}}}}}\n\
         clusters: {{only: {{kubeconfig: {{path: {}}}}}}}\nsyncs:\n  undoing:\n    source: specs\n    \
         clusters: {{names: [only]}}\n    createNamespaces: true\n    wait: {{enabled: false}}\n    \
         schedule: {{interval: 10s, jitter: 0%}}\n",
        server.kubeconfig("admin").display()
    );
    desk.write("gatewright.yaml", &config);
    desk.write("specs/one.yaml", &gateway("undoing-one", 80));
    desk.write("specs/two.yaml", &gateway("undoing-two", 80));
    desk.run(&["sync"]).exits(0).says("8 objects created");
    fs::remove_file(desk.path("specs/two.yaml")).expect("it is there");
    let pruned = run_of(&desk.run(&["sync"]).exits(0).says("4 objects deleted"));
    let undone = run_of(&desk.run(&["undo", &pruned]).exits(0).says("4 objects created"));
    let uid = service(server, "undoing-two", ".metadata.uid");

    let mut daemon = Daemon::start(&desk, port, &[]);
    let rests =
        |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &["result=\"suspended\""]).unwrap_or_default();
    daemon.until("rounds that were none", |daemon| rests(daemon) > 1.0);
    assert_eq!(service(server, "undoing-two", ".metadata.uid"), uid);
    desk.run(&["resume", "undoing"]).exits(0);
    daemon.until("its deletion", |_| service(server, "undoing-two", ".metadata.uid").is_empty());

    // The daemon need not be stopped for an undo, and the person need not be quick.
    desk.run(&["undo", &pruned]).exits(0).says("4 objects created").complains("is suspended");
    let (uid, before) = (service(server, "undoing-two", ".metadata.uid"), rests(&daemon));
    daemon.until("rounds that are none", |daemon| rests(daemon) > before + 1.0);
    assert_eq!(service(server, "undoing-two", ".metadata.uid"), uid);
    desk.run(&["rollback", "undoing", "--to", &undone]).exits(64).complains("has no set");
    desk.run(&["rollback", "undoing", "--to", "0"]).exits(0).says("4 objects deleted");
    desk.run(&["undo", &pruned]).exits(0).says("4 objects created");

    // Who is at work keeps the daemon's rounds away.
    let state = gatewright::state::State::open(desk.path("state"));
    let lock = state.lock_round("undoing", "only").expect("it can be written");
    desk.run(&["resume", "undoing"]).exits(0);
    let is_kept_away = |line: &serde_json::Value| line["message"] == "no round, because a person is at work there";
    daemon.until("a round that was kept away", |daemon| daemon.log().iter().any(is_kept_away));
    assert!(!service(server, "undoing-two", ".metadata.uid").is_empty());
    drop(lock);
    daemon.until("its deletion again", |_| service(server, "undoing-two", ".metadata.uid").is_empty());
}

#[test]
fn a_daemon_leaves_a_hundred_objects_alone_that_were_undone_beside_it() {
    let (site, port) = (Site::new(""), free_port());
    site.configure(&site.name, &format!("schedule: {{interval: 10s, jitter: 0%}}, {FREELY}"));
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}http: {{listen: \"127.0.0.1:{port}\"}}\n"));
    let names: Vec<String> = (0..25).map(|number| format!("edge-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    site.want(&names, 80);
    site.want(&["stays"], 80);
    site.sync().exits(0).says("104 objects created");
    let before = as_set(&site);

    let kubeconfig = site.server.kubeconfig("admin");
    let mut daemon = Daemon::start(&site.desk, port, &[("KUBECONFIG", kubeconfig.as_os_str())]);
    let rounds = |daemon: &Daemon, result: &str| {
        daemon.metric("gatewright_rounds_total", &[&format!("result=\"{result}\"")]).unwrap_or_default()
    };
    daemon.until("a round in which nothing has changed", |daemon| rounds(daemon, "done") > 0.0);
    site.drop(&names);
    daemon.until("their end", |_| as_set(&site).len() == 4);
    let list = site.run(&["undo"]).exits(0).says("prune 100").out;
    let pruned = list.lines().find(|line| line.contains("prune 100")).and_then(|line| line.rsplit(' ').next());
    let pruned = pruned.expect("it has a name");
    site.run(&["undo", pruned]).exits(0).says("100 objects created").complains("is suspended");
    assert_eq!(as_set(&site), before);

    let (uids, done, suspended) = (site.versions(), rounds(&daemon, "done"), rounds(&daemon, "suspended"));
    daemon.until("rounds that are none", |daemon| rounds(daemon, "suspended") > suspended + 1.0);
    assert_eq!((rounds(&daemon, "done"), site.versions()), (done, uids));
    site.run(&["resume", &site.name]).exits(0);
    daemon.until("their end again", |_| as_set(&site).len() == 4);
}

#[test]
fn a_round_that_is_under_way_is_undone_when_it_is_over() {
    let site = Site::new(FREELY);
    site.want(&["edge"], 80);
    site.sync().exits(0);
    site.want(&["edge"], 81);
    let changed = run_of(&site.sync().exits(0).says("2 objects updated"));
    // As it is while a daemon is still at work on it.
    let (after, later) = (site.desk.path(&format!("state/undo/{changed}/c/after")), site.desk.path("after"));
    fs::rename(&after, &later).expect("it is there");
    let state = gatewright::state::State::open(site.desk.path("state"));
    let lock = state.lock_round(&site.name, "c").expect("it can be written");

    let mut command = site.desk.command(&["undo", &changed]);
    command.env("KUBECONFIG", site.server.kubeconfig("admin")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut undo = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(undo.stderr.take().expect("it is piped")).read_line(&mut line).expect("it is text");
    assert!(line.contains("waits for the round of sync"), "{line}");
    fs::rename(&later, &after).expect("it is there");
    drop(lock);
    let status = undo.wait().expect("it ends");
    assert!(status.success(), "{status}");
    assert_eq!(site.get("service/edge")["spec"]["ports"][0]["port"], 80);
}
