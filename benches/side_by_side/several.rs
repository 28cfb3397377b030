//! The cost of a fleet: one process, several API servers on one etcd.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, json};

use crate::cluster::ApiServer;
use crate::cluster::process::{Folder, command};
use crate::cost::{self, Cost};
use crate::fleet::write_specs;
use crate::peers::Programs;
use crate::table::machine;

/// The state in which a fleet gets a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    First,
    Same,
    Changed,
    Frozen,
}

impl Step {
    /// All, in their order, with what a table calls them.
    const ALL: [(Self, &str); 4] = [
        (Self::First, "nothing is there"),
        (Self::Same, "nothing has changed"),
        (Self::Changed, "one Gateway has changed, on all"),
        (Self::Frozen, "nothing has changed, and one server is frozen"),
    ];
}

struct Fleet {
    servers: Vec<ApiServer>,
    folder: Folder,
}

/// Carries out the steps on so many API servers, and returns a Markdown table.
pub(crate) fn measure(servers: usize, gateways: usize, gatewright: &Path, programs: &Programs) -> String {
    let fleet = Fleet::start(servers, gateways);
    let mut text = format!(
        "{}\n\n| {servers} servers, {} objects on each | requests | API servers CPU s | own CPU s | peak MB | wall s |\n\
         |---|---:|---:|---:|---:|---:|\n",
        machine(),
        4 * gateways,
    );
    for (step, words) in Step::ALL {
        let cost = fleet.step(step, gatewright, programs);
        let requests: u64 = cost.requests.values().sum();
        let Cost { server_cpu, cpu, peak, wall, .. } = cost;
        writeln!(text, "| {words} | {requests} | {server_cpu:.2} | {cpu:.2} | {} | {wall:.2} |", peak / 1_000_000)
            .expect("text can be written to");
    }
    text
}

impl Fleet {
    fn start(servers: usize, gateways: usize) -> Self {
        let names: Vec<String> = (0..servers).map(|number| format!("c{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let fleet = Self { servers: ApiServer::fleet(&names), folder: Folder::new() };
        write_specs(&fleet.path("specs"), gateways);
        let clusters: Map<_, _> = fleet
            .servers
            .iter()
            .map(|server| (server.name().to_owned(), json!({"kubeconfig": {"path": server.kubeconfig("admin")}})))
            .collect();
        let config = json!({
            "stateDir": "state", "log": {"level": "warn"}, "sources": {"specs": {"directory": {"path": "specs"}}},
            "clusters": clusters,
            "syncs": {"bench": {
                "source": "specs", "clusters": {"matchLabels": {}}, "createNamespaces": true, "rollout": {"strategy": "all"},
            }},
        });
        fs::write(fleet.path("gatewright.yaml"), config.to_string()).expect("the folder can be written");
        fleet
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn step(&self, step: Step, gatewright: &Path, programs: &Programs) -> Cost {
        if step == Step::Changed {
            let path = self.path("specs/team-0/gateway-0000.yaml");
            let text = fs::read_to_string(&path).expect("it is there").replace("port: 8443", "port: 9443");
            fs::write(path, text).expect("it can be written");
        }
        let (last, others) = self.servers.split_last().expect("there are some");
        let is_frozen = step == Step::Frozen;
        let mut answering: Vec<&ApiServer> = others.iter().collect();
        answering.extend(Some(last).filter(|_| !is_frozen));
        let mut line: Vec<OsString> = vec![gatewright.into()];
        line.extend(["sync", "--yes", "--no-wait", "--config"].map(OsString::from));
        line.push(self.path("gatewright.yaml").into());
        let signal = |name: &str| {
            let sent = command("kill").args(["-s", name, &last.pid().to_string()]).status();
            assert!(!is_frozen || sent.is_ok_and(|status| status.success()));
        };
        signal(if is_frozen { "STOP" } else { "CONT" });
        let (cost, code) = cost::measure(&answering, self.folder.path(), programs, &line);
        signal("CONT");
        assert_eq!(code == 0, !is_frozen, "{line:?} ended with {code}");
        cost
    }
}
