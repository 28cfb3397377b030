//! `mode: report`: plans on schedule, and hands that write nothing.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{Daemon, gateway, meddle_with, ours, service, versions};
use crate::cluster::ApiServer;
use crate::cluster::audit::{Audited, Request};
use crate::cluster::process::free_port;
use crate::program::Desk;

/// Writes the configuration; the sync is the same one in both modes, so that it knows what it owns.
fn configure(desk: &Desk, server: &ApiServer, port: u16, mode: &str) {
    let config = format!(
        "stateDir: state\n\
         http: {{listen: \"127.0.0.1:{port}\"}}\n\
         sources: {{specs: {{directory: {{path: specs}}}}}}\n\
         clusters: {{only: {{kubeconfig: {{path: {}}}}}}}\n\
         syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [only]}}\n    createNamespaces: true\n    \
           mode: {mode}\n    wait: {{enabled: false}}\n    schedule: {{interval: 10s, jitter: 0%}}\n",
        server.kubeconfig("admin").display()
    );
    desk.write("gatewright.yaml", &config);
}

/// The reports below the state directory, oldest first: each as JSON, and as the text beside it.
fn reports(desk: &Desk) -> Vec<(Value, String)> {
    let entries = fs::read_dir(desk.path("state/reports")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    files.sort();
    // The text is written after the JSON, so the newest may lack it for a moment.
    let read =
        |path: PathBuf| Some((fs::read_to_string(&path).ok()?, fs::read_to_string(path.with_extension("txt")).ok()?));
    let parse = |(json, text): (String, String)| (serde_json::from_str(&json).expect("a report is JSON"), text);
    files.into_iter().filter_map(read).map(parse).collect()
}

#[test]
fn a_sync_in_report_mode_says_what_it_would_do_and_does_nothing() {
    let audited = Audited::start();
    let server = &audited.server;
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    configure(&desk, server, port, "apply");
    desk.write("specs/edge.yaml", &gateway("edge", 8101));
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    desk.run(&["sync"]).exits(0).says("8 objects created, 1 namespace created");
    let before = ours(server);
    let (applied, told) = (audited.requests().len(), reports(&desk).len());
    assert!(applied > 0, "what was applied is not in the server's log, so the test would show nothing");

    // A new Gateway, and a change to one that is there.
    desk.write("specs/api.yaml", &gateway("api", 8103));
    desk.write("specs/inner.yaml", &gateway("inner", 9102));
    configure(&desk, server, port, "report");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a report", |_| reports(&desk).len() > told);
    let (json, text) = reports(&desk).pop().expect("there is one");
    assert_eq!((&json["mode"], &json["clusters"]["only"]["state"]), (&"compare".into(), &"compared".into()));
    assert!(text.contains("report: 4 objects missing, 2 objects different, 6 unchanged"), "{text}");
    desk.run(&["status"]).exits(0).says("cluster only: compared").says("Gateway shop/api");
    assert_eq!(versions(&ours(server)), versions(&before));

    // The schedule finds what nothing announces.
    meddle_with(server, "edge");
    daemon.until("a report of the drift", |_| reports(&desk).iter().any(|(_, text)| text.contains("kubectl-patch")));
    let (_, text) = reports(&desk).pop().expect("there is one");
    assert!(text.contains("targetPort: 1234 -> 8101"), "{text}");
    daemon.until("the second round", |daemon| daemon.rounds().iter().any(|round| round.cause == "schedule"));
    assert_eq!(service(server, "edge", ".spec.ports[0].targetPort"), "1234", "the drift was corrected");
    daemon.stops_within(std::time::Duration::from_secs(5));

    let requests = audited.requests().split_off(applied);
    assert!(requests.iter().any(Request::is_dry_run), "a comparison dry-runs on the server");
    let writes: Vec<&Request> = requests.iter().filter(|it| it.is_write() && !it.is_dry_run()).collect();
    assert!(writes.is_empty(), "{writes:?}");
}
