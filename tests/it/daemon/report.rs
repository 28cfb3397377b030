//! `mode: report`: plans on schedule, and hands that write nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::{Daemon, gateway, meddle_with, ours, service, versions};
use crate::cluster::etcd::Etcd;
use crate::cluster::process::{Folder, free_port};
use crate::cluster::{ApiServer, Options};
use crate::program::Desk;

/// A server that writes down every request that could change something, and by whom.
struct Audited {
    server: ApiServer,
    log: PathBuf,
    _folder: Folder,
}

impl Audited {
    fn start() -> Self {
        let folder = Folder::new();
        let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
                     - {level: None, verbs: [get, list, watch]}\n\
                     - {level: Metadata, omitStages: [RequestReceived]}\n";
        fs::write(&policy, rules).expect("a new folder can be written");
        let args =
            vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
        let server = ApiServer::start_on(&Arc::new(Etcd::start()), Options { args, ..Options::default() });
        Self { server, log, _folder: folder }
    }

    /// Our requests so far that could change something: verb and path. A dry run is asked for in the path.
    fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).expect("the server writes what it was told to write");
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("the server writes JSON"));
        let ours =
            events.filter(|event| event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("gatewright/")));
        ours.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect()
    }
}

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
    assert_eq!((&json["mode"], &json["clusters"]["only"]["state"]), (&"plan".into(), &"planned".into()));
    assert!(text.contains("plan: 4 objects to create, 2 objects to update, 6 unchanged"), "{text}");
    desk.run(&["status"]).exits(0).says("cluster only: planned").says("Gateway shop/api");
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
    assert!(!requests.is_empty(), "a plan rehearses on the server");
    let writes: Vec<&String> = requests.iter().filter(|request| !request.contains("dryRun=All")).collect();
    assert_eq!(writes, [""; 0]);
}
