use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use gatewright_engine::check::check;
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::config::{self, Config, environment::Environment};
use crate::history::{approvals, journal};
use crate::process::http::{bind, serve};
use crate::report::Report;

mod actions;
mod details;
mod events;
mod fleets;
mod requests;

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(Mutex<Duration>);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        "2026-11-20T12:00:00Z".parse().expect("it is a time")
    }

    fn elapsed(&self) -> Duration {
        *lock(&self.0)
    }
}

/// A dashboard over a state folder of its own, on a port of its own.
struct Desk {
    folder: tempfile::TempDir,
    config: Arc<Config>,
    board: Arc<Board>,
    clock: Arc<Still>,
    address: SocketAddr,
    stop: CancellationToken,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Returns the document, which is of its published form, strictly: a field that the form does not know is a mistake.
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}{}", self.head, self.body);
        let document: Value = serde_json::from_str(&self.body).expect("it is JSON");
        let name = document["schema"].as_str().and_then(|schema| schema.split('/').nth(1)).expect("it has a form");
        let file = format!("{}/docs/schema/{name}-v1alpha1.json", env!("CARGO_MANIFEST_DIR"));
        let form: Value = serde_json::from_slice(&std::fs::read(file).expect("it is published")).expect("it is JSON");
        let form = Schema::new(&form).expect("it is a schema");
        let roots = yaml::parse(&self.body).expect("JSON is YAML");
        let mistakes: Vec<String> = check(&roots[0], &form).into_iter().map(|mistake| mistake.message).collect();
        assert_eq!(mistakes, [""; 0], "{document:#}");
        document
    }
}

impl Desk {
    /// Starts one that knows nothing, for so many clusters.
    async fn new(clusters: usize, http: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut text =
            format!("stateDir: state\nhttp: {http}\nsources: {{specs: {{directory: {{path: specs}}}}}}\nclusters:\n");
        for number in 0..clusters {
            let region = if number % 2 == 0 { "eu" } else { "us" };
            let settings = format!("{{directory: {{path: out/{number}}}, labels: {{region: {region}}}}}");
            text += &["  ", &name(number), ": ", &settings, "\n"].concat();
        }
        text += "syncs:\n  gateways: {source: specs, clusters: {matchLabels: {}}}\n  models: {source: specs, clusters: {matchLabels: {region: eu}}}\n";
        let config = config::parse(&folder.path().join("gatewright.yaml"), &text, &Environment::default());
        let config = Arc::new(config.expect("it is right"));
        let clock = Arc::new(Still::default());
        let (stop, shared) = (CancellationToken::new(), Arc::clone(&clock) as Arc<dyn Clock>);
        let board = Arc::new(Board::new(config.state(), &shared, &Arc::default(), &stop));
        board.follow(&config);
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener knows its address");
        let token = config.settings.http.actions.then(|| make_token(&config.state()).expect("it can be written"));
        let router = router(&board, &config.settings.http, token.as_deref());
        tokio::spawn(serve(listener, router, stop.clone()));
        tokio::spawn(Arc::clone(&board).watch());
        Self { folder, config, board, clock, address, stop }
    }

    /// Lets so much time go by that files are looked at again.
    fn later(&self) {
        *lock(&self.clock.0) += Duration::from_secs(1);
    }

    /// Keeps a report as the daemon does after a round.
    fn record(&self, report: &Value) {
        let mut report: Report = serde_json::from_value(report.clone()).expect("it is a report");
        let state = self.config.state();
        journal::compare(&state, &mut report);
        journal::record(&state, &self.config.journal(), &report, |_| Ok(())).expect("it can be written");
        approvals::record(&state, &report.sync, report.partial, &report.clusters);
        self.later();
        self.board.tell();
    }

    /// Sends a request as it stands, and returns the answer.
    async fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("the server listens");
        drop(stream.write_all(request).await);
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        drop(read.expect("the server answers"));
        let answer = String::from_utf8(answer).expect("in UTF-8");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Asks for a path with these lines in the head beside the name of the host.
    async fn ask_with(&self, method: &str, path: &str, lines: &[&str]) -> Answer {
        let lines = [&["Connection: close"], lines].concat().join("\r\n");
        self.send(format!("{method} {path} HTTP/1.1\r\n{lines}\r\n\r\n").as_bytes()).await
    }

    /// Asks for a path as a program on this host does.
    async fn ask(&self, path: &str) -> Answer {
        self.ask_with("GET", path, &["Host: localhost:8085"]).await
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn name(number: usize) -> String {
    format!("c-{number:04}")
}

/// A report of one cluster.
fn report(sync: &str, cluster: &str, found: &Value) -> Value {
    json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": sync, "source": "specs", "revision": "0123456789abcdef0123456789abcdef01234567",
        "mode": "apply", "started": "2026-11-20T11:58:00Z", "finished": "2026-11-20T11:58:09Z", "problems": [], "unclaimed": [],
        "clusters": {cluster: found},
    })
}

/// The report of a cluster on which all is as it should be.
fn quiet() -> Value {
    let unit = id("gateway.networking.k8s.io", "Gateway", "infra", "edge");
    let unit = json!({"unit": unit, "state": "current", "addresses": ["10.0.0.1"], "ports": [80, 443], "pods": {"ready": 2, "wanted": 2}});
    json!({"state": "done", "steps": [], "refusals": [], "holds": [], "units": [unit], "unlisted": 6})
}

fn id(group: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"group": group, "kind": kind, "namespace": namespace, "name": name})
}

fn held() -> Value {
    let hold = json!({
        "guard": "max-delete", "message": "3 of 4 units would be deleted", "hint": "look", "token": "aaaabbbbcccc", "fleetToken": "ddddeeeeffff",
        "steps": [{"action": "prune", "id": id("", "Service", "infra", "edge")}],
    });
    json!({"state": "held", "steps": [], "refusals": [], "holds": [hold], "units": []})
}
