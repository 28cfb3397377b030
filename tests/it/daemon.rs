//! The daemon, as a service manager runs it: the real program, its signals, its pages and its log.

mod actions;
mod alerts;
mod asked;
mod cluster_secrets;
mod dashboard;
mod dependencies;
mod finish;
mod fleet;
mod folders;
mod gathered;
mod moves;
mod notifications;
mod otlp;
mod report;
mod rollout;
mod service;
mod source;
mod stop;
mod tenants;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use serde_json::Value;

use crate::cluster::ApiServer;
use crate::cluster::process::command;
use crate::program::Desk;

/// The longest that anything awaited may take: an interval and a round, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(5);

/// The pause between two looks at whether it has happened.
const POLL: Duration = Duration::from_millis(100);

/// The number of lines that the log of a failed test is cut to.
const LOG_TAIL_LINES: usize = 30;

/// A running daemon, which ends with this value or with the test, whichever is first.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
    port: u16,
}

/// The words of the log about one round.
#[derive(Debug, PartialEq, Eq)]
struct Round {
    sync: String,
    cluster: String,
    cause: String,
    revision: String,
    changes: String,
}

impl Daemon {
    /// Starts it; the configuration of the desk has to make it listen on `port`.
    pub(crate) fn start(desk: &Desk, port: u16, environment: &[(&str, &OsStr)]) -> Self {
        let log = desk.path("log");
        let output = File::options().create(true).append(true).open(&log).expect("the desk can be written");
        let wanted = desk.command(&["run"]);
        // The kernel ends it with the thread of the test, should that not come to drop it.
        let mut command = command("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(wanted.get_program()).args(wanted.get_args());
        command.current_dir(wanted.get_current_dir().expect("a desk runs its programs in its folder"));
        for (name, value) in wanted.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(environment.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        Self { child: command.spawn().expect("setpriv, which ties servers to the tests, can be run"), log, port }
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &'static str) {
        self.signaller(name)();
    }

    /// Returns what sends a signal when the time has come.
    pub(crate) fn signaller(&self, name: &'static str) -> impl Fn() + Send + Sync + 'static {
        let process = self.child.id().to_string();
        move || {
            let sent = command("kill").args(["-s", name, &process]).status();
            assert!(sent.is_ok_and(|status| status.success()), "{name} cannot be sent to {process}");
        }
    }

    /// Waits until something holds, and shows the log when it does not, or when the daemon ends.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "real servers take real time")]
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().expect("the state of a child can be asked for");
            assert!(ended.is_none(), "the daemon ended ({ended:?}) before {what}:\n{}", self.log_tail());
            assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}:\n{}", self.log_tail());
            thread::sleep(POLL);
        }
    }

    /// Asks it to stop, and holds that it does so in time and in peace.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(crate) fn stops_within(&mut self, limit: Duration) {
        self.signal("TERM");
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the state of a child can be asked for") {
                assert_eq!(status.code(), Some(0), "{status}:\n{}", self.log_tail());
                return;
            }
            assert!(started.elapsed() < limit, "it goes on after SIGTERM:\n{}", self.log_tail());
            thread::sleep(POLL);
        }
    }

    /// Asks for a page and returns all that comes back; nothing while nobody listens.
    fn page(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Returns the memory that it takes now, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().expect("the kernel counts it")
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.page("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.0 200"))
    }

    /// Sums up a metric over all label sets that have these labels, each as it is written on the page.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let page = self.page("/metrics")?;
        let of_name = page.lines().filter_map(|line| line.strip_prefix(name));
        let lines = of_name.filter(|rest| labels.iter().all(|label| rest.contains(label)));
        let values: Vec<f64> = lines.filter_map(|rest| rest.rsplit_once(' ')?.1.parse().ok()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Every line of the log that is whole; each is a JSON object.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).expect("the log was made at the start");
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        whole.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The rounds so far, by their summaries in the log.
    fn rounds(&self) -> Vec<Round> {
        let round = |line: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let spans = line["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
            let cause = spans.iter().map(|span| text(&span["cause"])).collect();
            Round {
                sync: text(&line["sync"]),
                cluster: text(&line["cluster"]),
                cause,
                revision: text(&line["revision"]),
                changes: text(&line["changes"]),
            }
        };
        self.log().iter().filter(|line| line["message"] == "round").map(round).collect()
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only for a child that has been waited for already, and then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A Gateway of the class that every cluster with kgateway has, in the namespace `shop`.
pub(crate) fn gateway(name: &str, port: u16) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\n\
         kind: Gateway\n\
         metadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  \
           gatewayClassName: kgateway\n  \
           listeners: [{{name: http, protocol: HTTP, port: {port}}}]\n"
    )
}

/// A value of a Service in the namespace `shop`, by its JSON path; empty if there is none, or no server.
pub(crate) fn service(server: &ApiServer, name: &str, path: &str) -> String {
    let service = server.read(&format!("/api/v1/namespaces/shop/services/{name}")).unwrap_or_default();
    let pointer = path.replace(['.', '['], "/").replace(']', "");
    match service.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Does what a person in a hurry does to a Service: no spec says it, and no round may leave it there.
pub(crate) fn meddle_with(server: &ApiServer, name: &str) {
    let patch = r#"[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1234}]"#;
    server.kubectl_ok(&["patch", "service", name, "-n", "shop", "--type", "json", "-p", patch]);
    assert_eq!(service(server, name, ".spec.ports[0].targetPort"), "1234");
}

/// All objects on a server that bear the label by which we list ours.
fn ours(server: &ApiServer) -> BTreeMap<ObjectId, Live> {
    let kinds = "serviceaccounts,configmaps,services,deployments";
    let is_ours = |item: &Value| item["metadata"]["labels"].get("gatewright.dev/sync").is_some();
    let items = server.objects("", kinds).into_iter().filter(is_ours);
    let live = |item| Live::new(item).expect("a server has whole objects");
    items.map(live).map(|live| (live.object.id().clone(), live)).collect()
}

/// The versions of objects, which change with every write.
fn versions(objects: &BTreeMap<ObjectId, Live>) -> BTreeMap<&ObjectId, &str> {
    objects.iter().map(|(id, live)| (id, live.resource_version.as_str())).collect()
}
