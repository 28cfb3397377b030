//! Three daemons that share a fleet, with Leases on a real API server, whose audit log says who has changed what.

mod losses;
mod share;

use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::audit::Audited;
use crate::cluster::process::{Folder, free_port};
use crate::cluster::proxy::{Answer, Proxy};
use crate::daemon::Daemon;
use crate::program::Desk;

/// The time that a Lease counts here.
const LEASE: Duration = Duration::from_secs(6);

/// The longest that anything awaited may take on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(5);

const SYNCS: [&str; 3] = ["red", "green", "blue"];

/// A host: its folder, its way to the management cluster, and its daemon while that runs.
struct Host {
    name: &'static str,
    desk: Desk,
    proxy: Proxy,
    port: u16,
    daemon: Option<Daemon>,
    /// It cannot read its source.
    is_blind: bool,
}

struct Fleet {
    audited: Audited,
    hosts: Vec<Host>,
    /// The store by which they know of each other.
    _folder: Folder,
}

impl Fleet {
    fn new(names: &[&'static str]) -> Self {
        let (audited, folder) = (Audited::start(), Folder::new());
        let hosts = names.iter().map(|name| host(name, &audited, &folder)).collect();
        let fleet = Self { audited, hosts, _folder: folder };
        for sync in SYNCS {
            fleet.wants(sync, 8080);
        }
        fleet
    }

    /// Has a sync want a port for its Gateway, and for another one that stays.
    fn wants(&self, sync: &str, port: u16) {
        self.gateway(sync, "edge", port);
        self.gateway(sync, "stays", 9090);
    }

    /// Has a sync want a Gateway.
    fn gateway(&self, sync: &str, name: &str, port: u16) {
        let gateway = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: {sync}}}\n\
             spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: {port}, protocol: HTTP}}]}}\n"
        );
        for host in self.hosts.iter().filter(|host| !host.is_blind) {
            host.desk.write(&format!("specs/{sync}/{name}.yaml"), &gateway);
        }
    }

    fn start(&mut self) {
        self.hosts.iter_mut().for_each(Host::start);
        self.until("every sync has a host, and every host one that lives", || {
            SYNCS.iter().all(|sync| self.holder(sync).is_some() && self.port(sync) == "8080")
        });
    }

    /// The host that looks after a sync, as the Lease says.
    fn holder(&self, sync: &str) -> Option<usize> {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/gatewright-system/leases";
        let lease = self.audited.server.read(&format!("{leases}/gatewright.sync.{sync}")).unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        self.hosts.iter().position(|host| holder.starts_with(&format!("{}_", host.name)))
    }

    /// The port of the Service of a sync; empty if there is none.
    fn port(&self, sync: &str) -> String {
        let service = self.audited.server.read(&format!("/api/v1/namespaces/{sync}/services/edge")).unwrap_or_default();
        service["spec"]["ports"][0]["port"].as_u64().map(|port| port.to_string()).unwrap_or_default()
    }

    /// Waits until something holds, and shows the logs of all hosts when it does not.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "real servers take real time")]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}\n{}", self.logs());
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn logs(&self) -> String {
        let log = |host: &Host| {
            format!("{}:\n{}\n", host.name, host.daemon.as_ref().map(Daemon::log_tail).unwrap_or_default())
        };
        self.hosts.iter().map(log).collect()
    }

    /// Runs a command on a host.
    fn run(&self, host: usize, arguments: &[&str]) -> crate::program::Run {
        self.hosts[host].desk.run(arguments)
    }
}

impl Host {
    fn start(&mut self) {
        if self.daemon.is_none() {
            self.daemon = Some(Daemon::start(&self.desk, self.port, &[]));
        }
    }

    fn signal(&self, name: &'static str) {
        self.daemon.as_ref().expect("it runs").signal(name);
    }
}

fn host(name: &'static str, audited: &Audited, folder: &Folder) -> Host {
    let (desk, proxy, port) = (Desk::empty("gatewright.yaml"), Proxy::start(&audited.server), free_port());
    let (shared, seconds) = (folder.path().display(), LEASE.as_secs());
    std::fs::create_dir_all(folder.path().join("store")).expect("a test may");
    let syncs = SYNCS.map(|sync| {
        format!(
            "  {sync}: {{source: {sync}, clusters: {{names: [target]}}, createNamespaces: true, wait: {{enabled: false}}, \
             schedule: {{interval: 10s, jitter: 0%}}, prune: {{maxDelete: {{units: 0, percent: 0}}}}}}\n"
        )
    });
    let sources = SYNCS.map(|sync| format!("  {sync}: {{directory: {{path: specs/{sync}, settle: 0s}}, poll: 1s}}\n"));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources:\n{}clusters:\n  \
             management: {{kubeconfig: {{path: {}, allowInsecureTls: true, timeout: 2s}}}}\n  \
             target: {{kubeconfig: {{path: {}, timeout: 5s}}}}\n\
             hosts:\n  cluster: management\n  name: {name}\n  leaseDuration: {seconds}s\n  store: {{url: \"file://{shared}/store\"}}\n\
             syncs:\n{}",
            sources.concat(),
            proxy.kubeconfig().display(),
            audited.server.kubeconfig(name).display(),
            syncs.concat(),
        ),
    );
    Host { name, desk, proxy, port, daemon: None, is_blind: false }
}

#[test]
fn a_host_that_starts_while_the_management_cluster_is_down_waits_and_goes_on_when_it_returns() {
    let mut fleet = Fleet::new(&["host-a"]);
    let host = &mut fleet.hosts[0];
    for is_stopped in [true, false] {
        host.proxy.answer(usize::MAX, |_| true, Answer::Silent);
        host.start();
        let daemon = host.daemon.as_mut().expect("it runs");
        let is_told = |daemon: &Daemon| daemon.log_tail().contains("waits for the management cluster; nothing is done");
        daemon.until("it says what it waits for", is_told);
        assert!(!daemon.is_ready(), "it has nothing to show yet");
        assert!(daemon.metric("gatewright_build_info", &[]).is_some(), "its pages are there");
        if is_stopped {
            daemon.stops_within(LIMIT / 4);
            host.daemon = None;
            std::fs::remove_file(host.desk.path("log")).expect("it is there");
        }
    }
    assert_eq!(fleet.port("red"), "");
    fleet.hosts[0].proxy.recovers();
    fleet.until("it looks after all", || SYNCS.iter().all(|sync| fleet.port(sync) == "8080"));
    assert!(fleet.hosts[0].daemon.as_ref().is_some_and(Daemon::is_ready));
}

#[test]
fn approvals_undo_suspensions_and_reports_of_a_host_that_is_dead_count_on_the_others() {
    let mut fleet = Fleet::new(&["host-a", "host-b"]);
    fleet.start();
    let dead = fleet.holder("red").expect("somebody looks after it");
    let other = 1 - dead;

    // What the dead one did is undone by the living.
    fleet.wants("red", 8181);
    fleet.until("it is done", || fleet.port("red") == "8181");
    // A hold, and its token, which a person approves on the host that dies a moment later.
    fleet.hosts[other].desk.run(&["status"]).exits(0);
    for host in &fleet.hosts {
        std::fs::remove_file(host.desk.path("specs/green/stays.yaml")).expect("it is there");
    }
    let mut token = String::new();
    fleet.until("the deletion waits for a person", || {
        let listed = fleet.run(dead, &["approve"]).out;
        let is_token = |word: &&str| word.len() == 14 && word.matches('-').count() == 2;
        token = listed.split_whitespace().find(is_token).unwrap_or_default().to_owned();
        !token.is_empty()
    });
    fleet.run(dead, &["approve", &token]).exits(0).says("approved");
    fleet.run(dead, &["suspend", "blue", "--reason", "we look into it"]).exits(0);
    drop(fleet.hosts[dead].daemon.take());

    fleet.until("the approval counts on the living", || {
        let get = ["get", "service", "stays", "-n", "green", "--ignore-not-found", "-o", "name"];
        fleet.audited.server.kubectl_ok(&get).is_empty()
    });
    fleet.run(other, &["status"]).exits(0).says("we look into it").says("sync red");
    fleet.wants("blue", 8182);
    let history = fleet.run(other, &["history", "red"]).exits(0).out;
    let line = history.lines().find(|line| line.contains("  update ")).expect("it is in the history");
    let file = line.split_whitespace().last().expect("the report is named last");
    let run = file.rsplit('/').next().and_then(|name| name.strip_suffix(".json")).expect("a report is JSON");
    fleet.until("the living looks after it", || fleet.holder("red") == Some(other));
    fleet.run(other, &["undo", run, "--yes"]).exits(0);
    assert_eq!(fleet.port("red"), "8080");
    assert_eq!(fleet.port("blue"), "8080", "the suspension that was said on the dead host counts");
    fleet.run(other, &["resume", "blue"]).exits(0);
    fleet.until("it goes on", || fleet.port("blue") == "8182");
}

#[test]
fn a_host_that_cannot_read_the_source_sets_nothing_back_and_hosts_change_at_a_start_only() {
    let mut fleet = Fleet::new(&["host-a", "host-b"]);
    fleet.start();
    let dead = fleet.holder("red").expect("somebody looks after it");
    let other = 1 - dead;
    // One has read the first revision, and cannot read the next one.
    let (specs, away) = (fleet.hosts[other].desk.path("specs/red"), fleet.hosts[other].desk.path("away"));
    std::fs::rename(&specs, &away).expect("a test may");
    fleet.hosts[other].is_blind = true;
    fleet.wants("red", 8181);
    fleet.until("the other one has applied it", || fleet.port("red") == "8181");
    drop(fleet.hosts[dead].daemon.take());
    let blind = |fleet: &Fleet| {
        fleet.hosts[other]
            .daemon
            .as_ref()
            .expect("it runs")
            .metric("gatewright_rounds_total", &["sync=\"red\"", "result=\"not-ready\""])
    };
    fleet.until("the blind one looks after it, and does nothing", || {
        fleet.holder("red") == Some(other) && blind(&fleet).is_some_and(|rounds| rounds > 0.0)
    });
    assert_eq!(fleet.port("red"), "8181");
    std::fs::rename(&away, &specs).expect("a test may");
    fleet.hosts[other].is_blind = false;
    fleet.wants("red", 8182);
    fleet.until("it goes on once it can", || fleet.port("red") == "8182");

    let seconds = LEASE.as_secs();
    fleet.hosts[other].desk.replace("gatewright.yaml", &format!("leaseDuration: {seconds}s"), "leaseDuration: 9s");
    fleet.hosts[other].signal("HUP");
    let log = |fleet: &Fleet| fleet.hosts[other].daemon.as_ref().map(Daemon::log_tail).unwrap_or_default();
    fleet.until("it says so", || log(&fleet).contains("hosts is read at the start only"));
    fleet.wants("red", 8183);
    fleet.until("it goes on as it was", || fleet.port("red") == "8183");
}
