//! Syncs that depend on others, and clusters with another name, under the daemon.

use super::{Daemon, gateway};
use crate::cluster::process::free_port;
use crate::program::Desk;

/// Three syncs of one source, each of which depends on the one before; but for a new revision nothing happens for an hour.
fn three(port: u16) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let common = "createNamespaces: true, schedule: {interval: 1h, jitter: 0%}";
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
             clusters:\n  eu: {{directory: {{path: out/eu}}}}\n  mgmt: {{directory: {{path: out/mgmt}}}}\nsyncs:\n  \
             kinds: {{source: specs, path: kinds, clusters: {{names: [eu, mgmt]}}, {common}}}\n  \
             middle: {{source: specs, path: middle, clusters: {{names: [eu]}}, {common}, dependsOn: [{{sync: kinds, cluster: mgmt}}]}}\n  \
             apps: {{source: specs, path: apps, clusters: {{names: [eu]}}, {common}, dependsOn: [{{sync: middle}}]}}\n"
        ),
    );
    desk
}

#[test]
fn what_waits_for_another_sync_goes_on_when_that_is_through_and_costs_few_rounds() {
    let port = free_port();
    let desk = three(port);
    let write = |port: u16| {
        for (folder, name) in [("apps", "a"), ("middle", "m"), ("kinds", "k")] {
            desk.write(&format!("specs/{folder}/{name}.yaml"), &gateway(name, port));
        }
    };
    let has = |name: &str, text: &str| {
        let path = desk.path(&format!("out/eu/shop/service-{name}.yaml"));
        std::fs::read_to_string(path).is_ok_and(|it| it.contains(text))
    };
    write(8000);
    let mut daemon = Daemon::start(&desk, port, &[]);
    for edition in 8001..8004 {
        daemon.until("all of the edition before", |_| has("a", &(edition - 1).to_string()));
        assert!(has("m", &(edition - 1).to_string()) && has("k", &(edition - 1).to_string()));
        write(edition);
    }
    daemon.until("the last edition", |_| has("a", "8003"));

    // What the first has that is no good holds the others; nobody asks again and again whether it still is.
    write(9091);
    desk.write("specs/apps/a.yaml", &gateway("a", 8004));
    desk.write("specs/middle/m.yaml", &gateway("m", 8004));
    let is_held = |sync: &str| desk.run(&["status", sync]).out.contains("held by guard depends-on");
    daemon.until("the holds", |_| is_held("apps") && is_held("middle"));
    let rounds = |daemon: &Daemon| {
        let of = |sync| daemon.metric("gatewright_rounds_total", &[sync]).unwrap_or_default();
        of("\"apps\"") + of("\"middle\"")
    };
    let before = rounds(&daemon);
    for number in 0..5_u16 {
        // Each is a revision, and each revision a round of each.
        desk.write("specs/kinds/k.yaml", &gateway("k", 9091).replace("name: http", &format!("name: http-{number}")));
        let revision = |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &["\"kinds\""]).unwrap_or_default();
        let seen = revision(&daemon);
        daemon.until("a round of the first", |daemon| revision(daemon) > seen);
    }
    let more = rounds(&daemon) - before;
    assert!(more <= 25.0, "{more} rounds for five revisions of two syncs that wait");
    assert!(has("a", "8003") && has("m", "8003"));

    desk.write("specs/kinds/k.yaml", &gateway("k", 8005));
    daemon.until("what has waited", |_| has("a", "8004") && has("m", "8004"));
}

#[test]
fn a_cluster_with_another_name_goes_on_when_the_daemon_has_read_it() {
    let (port, desk) = (free_port(), Desk::empty("gatewright.yaml"));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
             clusters:\n  one: {{directory: {{path: out}}}}\nsyncs:\n  \
             apps: {{source: specs, clusters: {{matchLabels: {{}}}}, createNamespaces: true, schedule: {{interval: 1h, jitter: 0%}}}}\n"
        ),
    );
    desk.write("specs/a.yaml", &gateway("a", 8001));
    desk.write("specs/b.yaml", &gateway("b", 8001));
    let mut daemon = Daemon::start(&desk, port, &[]);
    let status = || desk.run(&["status"]).out;
    daemon.until("the first round", |_| status().contains("cluster one: done"));

    // A command that knows more than the daemon does nothing beside it.
    desk.replace("gatewright.yaml", "  one: {directory: {path: out}}", "  uno: {directory: {path: out}, moved: [one]}");
    desk.run(&["plan"]).exits(1).complains("cluster \"uno\" was \"one\" when that read the config file");
    std::fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    daemon.signal("HUP");
    daemon.until("what is gone from the source", |_| !desk.path("out/shop/service-b.yaml").exists());
    daemon.until("a round by the new name", |_| status().contains("cluster uno: done"));
    assert!(desk.path("state/seen/apps/uno.json").exists() && !desk.path("state/seen/apps/one.json").exists());
    assert!(desk.path("out/shop/service-a.yaml").exists());
    desk.run(&["plan"]).exits(0).says("no changes");
}
