//! The dashboard of a daemon that has rounds: what it answers while the fleet changes, and where it is not served.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::{Value, json};

use super::{Daemon, LIMIT};
use crate::cluster::process::free_port;
use crate::commands::obeys;
use crate::program::Desk;

const SPEC: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edge, namespace: shop}\ndata: {a: first}\n";

/// A secret beside it, which no answer may have in any form.
fn secret(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: edge, namespace: shop}}\nstringData: {{password: {value}}}\n"
    )
}

fn configure(desk: &Desk, http: &str) {
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {http}\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\n\
             clusters: {{a: {{directory: {{path: out/a}}}}, b: {{directory: {{path: out/b}}}}}}\n\
             syncs:\n  edge: {{source: specs, clusters: {{names: [a, b]}}, unclaimed: apply, createNamespaces: true}}\n"
        ),
    );
    desk.write("specs/edge.yaml", SPEC);
    desk.write("specs/secret.yaml", &secret("hunter2-once"));
}

/// Asks for a document, and holds that it is of its published form.
#[track_caller]
fn document(daemon: &Daemon, path: &str) -> Value {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, daemon.port)).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a time is given");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost:{}\r\n\r\n", daemon.port).expect("it reads");
    let answer = std::io::read_to_string(stream).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it has a head");
    assert!(head.starts_with("HTTP/1.0 200"), "{path}: {answer}");
    let hidden = ["hunter2", "aHVudGVyMi", "h1bnRlcjIt", "odW50ZXIyL"];
    assert!(!hidden.iter().any(|secret| answer.contains(secret)), "{path}: {answer}");
    let document: Value = serde_json::from_str(body).expect("it is JSON");
    let schema = document["schema"].as_str().unwrap_or_default().replace("gatewright.dev/", "").replace('/', "-");
    obeys(&schema, &document);
    document
}

#[test]
fn the_dashboard_follows_the_rounds_of_the_daemon() {
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    configure(&desk, &format!("{{listen: \"127.0.0.1:{port}\"}}"));
    let mut daemon = Daemon::start(&desk, port, &[]);
    let statuses = |daemon: &Daemon| document(daemon, "/api/v1/fleet")["syncs"][0]["statuses"].clone();
    daemon.until("it is ready", Daemon::is_ready);
    daemon.until("both clusters are as they should be", |daemon| statuses(daemon) == json!({"ok": 2}));

    let mut events = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    events.set_read_timeout(Some(LIMIT)).expect("a time is given");
    write!(events, "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").expect("it reads");
    let mut lines = BufReader::new(events).lines().map(|line| line.expect("it goes on"));
    assert!(lines.any(|line| line.starts_with("data: ")), "the first says what there is");
    let revision = |daemon: &Daemon| document(daemon, "/api/v1/fleet")["rows"][0]["cells"][0]["revision"].clone();
    let before = revision(&daemon);
    desk.write("specs/secret.yaml", &secret("hunter2-twice"));
    desk.write("specs/edge.yaml", &SPEC.replace("first", "second"));
    assert!(lines.any(|line| line.starts_with("data: ")), "a round has ended");
    daemon.until("the new revision", |daemon| revision(daemon) != before);

    let target = document(&daemon, "/api/v1/syncs/edge/clusters/a");
    assert_eq!(target["units"][0]["unit"], "ConfigMap shop/edge");
    let rounds = document(&daemon, "/api/v1/rounds?sync=edge&cluster=a");
    assert!(rounds["rounds"].as_array().is_some_and(|rounds| rounds.len() >= 2), "{rounds}");
    assert_eq!(document(&daemon, "/api/v1/rollouts")["syncs"], json!([]));
    assert_eq!(document(&daemon, "/api/v1/approvals")["total"], 0);

    // The configuration is read again, and one cluster is left.
    let text = desk.read("gatewright.yaml").replace("names: [a, b]", "names: [b]");
    desk.write("gatewright.yaml", &text);
    daemon.signal("HUP");
    daemon.until("one cluster is left", |daemon| statuses(daemon) == json!({"ok": 1}));

    // What deletes everything waits, and is told with the command that lets it.
    for name in ["edge", "secret"] {
        std::fs::remove_file(desk.path(&format!("specs/{name}.yaml"))).expect("a test may");
    }
    desk.write("specs/README.md", "nothing");
    daemon.until("something waits", |daemon| document(daemon, "/api/v1/approvals")["total"] == 1);
    let waiting = document(&daemon, "/api/v1/approvals");
    let command = waiting["groups"][0]["hold"]["command"].as_str().unwrap_or_default().to_owned();
    let token = command.strip_prefix("gatewright approve ").expect("it is typed so");
    desk.run(&["approve", token]).exits(0).says("approved until");
    daemon.stops_within(std::time::Duration::from_secs(5));
}

#[test]
fn a_dashboard_that_is_off_is_not_there() {
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    for (http, expected) in [
        (format!("{{listen: \"127.0.0.1:{port}\", dashboard: false}}"), "404"),
        (format!("{{listen: \"0.0.0.0:{port}\"}}"), "404"),
        (format!("{{listen: \"0.0.0.0:{port}\", dashboard: true}}"), "421"),
    ] {
        configure(&desk, &http);
        let mut daemon = Daemon::start(&desk, port, &[]);
        daemon.until("it is ready", Daemon::is_ready);
        for path in ["/dashboard/", "/api/v1/fleet"] {
            // Without the name of a host: whoever is there asks for one.
            let answer = daemon.page(path).unwrap_or_default();
            assert!(answer.starts_with(&format!("HTTP/1.0 {expected}")), "{http} {path}: {answer}");
        }
        assert!(daemon.page("/metrics").is_some_and(|page| page.starts_with("HTTP/1.0 200")), "{http}");
        daemon.stops_within(std::time::Duration::from_secs(5));
    }
    let wrong =
        [("{listen: off, dashboard: true}", "which is off"), ("{names: [\"http://a\"]}", "is no name of a host")];
    for (http, expected) in wrong {
        configure(&desk, http);
        desk.run(&["config", "check"]).exits(64).complains(expected);
    }
}
