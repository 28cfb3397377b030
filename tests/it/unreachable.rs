//! Clusters that do not answer: what they cost, what is said of them, and how they come back.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::process::{command, free_port};
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::cluster::{ApiServer, shared, unique};
use crate::commands::obeys_the_schema;
use crate::daemon::Daemon;
use crate::program::Desk;

/// Accepts connections and never says a word; counts them.
fn black_hole() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = listener.local_addr().expect("a bound socket has an address");
    let count = Arc::new(AtomicUsize::new(0));
    let of_thread = Arc::clone(&count);
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            of_thread.fetch_add(1, Ordering::Relaxed);
            open.push(stream);
        }
    });
    (address, count)
}

fn gateway(namespace: &str, name: &str, port: usize) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: {port}, protocol: HTTP}}]}}\n"
    )
}

#[test]
fn several_syncs_on_a_dead_cluster_pay_for_it_once() {
    let (address, count) = black_hole();
    let desk = Desk::empty("gatewright.yaml");
    let kubeconfig = serde_json::json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("https://{address}")}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    });
    desk.write("dead.kubeconfig", &kubeconfig.to_string());
    let sync = |name: &str| {
        format!("  {name}: {{source: specs, path: {name}, clusters: {{matchLabels: {{}}}}, createNamespaces: true}}\n")
    };
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: ./state\nsources: {{specs: {{directory: {{path: ./specs, settle: 0s}}}}}}\nclusters:\n  \
               dead: {{kubeconfig: {{path: dead.kubeconfig, timeout: 1s}}}}\n  near: {{directory: {{path: ./near}}}}\n\
             syncs:\n{}{}{}",
            sync("a"),
            sync("b"),
            sync("c")
        ),
    );
    for name in ["a", "b", "c"] {
        desk.write(&format!("specs/{name}/edge.yaml"), &gateway("shop", name, 8080));
    }
    desk.run(&["plan", "a"]).exits(4);
    let once = count.swap(0, Ordering::Relaxed);
    assert!(once > 0, "it was asked");

    let run = desk.run(&["sync"]).exits(4);
    assert_eq!(run.out.matches("\n  unreachable: ").count(), 3, "{}", run.out);
    // The first round in the folder asks, too, whether both are one cluster, and what is kept there of rollouts.
    assert!(count.load(Ordering::Relaxed) <= 2 * once + 1, "{count:?} after {once}: {}", run.out);
    assert!(["a", "b", "c"].iter().all(|name| desk.path(&format!("near/shop/service-{name}.yaml")).exists()));
    let status = desk.run(&["status"]).exits(0);
    assert_eq!(status.out.matches("  cluster dead: unreachable at ").count(), 3, "{}", status.out);
    assert!(!status.out.contains("failed") && !status.out.contains("asked again"), "{}", status.out);
}

/// Two syncs on an API server behind a proxy and in a folder, under a daemon.
struct Far {
    desk: Desk,
    proxy: Proxy,
    namespace: String,
    syncs: [String; 2],
    port: u16,
}

impl Far {
    fn new() -> Self {
        let (proxy, desk, namespace) = (Proxy::start(shared()), Desk::empty("gatewright.yaml"), unique("far"));
        let (syncs, port) = (["a", "b"].map(|name| format!("{namespace}-{name}")), free_port());
        let far = Self { desk, proxy, namespace, syncs, port };
        far.want(8080);
        let sync = |name: &String| {
            format!(
                "  {name}: {{source: specs, path: {name}, clusters: {{names: [far, near]}}, createNamespaces: true, \
                 wait: {{enabled: false}}, rollout: {{strategy: all}}, schedule: {{interval: 10m}}}}\n"
            )
        };
        far.desk.write(
            "gatewright.yaml",
            &format!(
                "stateDir: ./state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
                 sources: {{specs: {{directory: {{path: ./specs, settle: 0s}}, poll: 1s}}}}\nclusters:\n  \
                   far: {{kubeconfig: {{path: {}, allowInsecureTls: true, timeout: 1s}}}}\n  \
                   near: {{directory: {{path: ./near}}}}\nsyncs:\n{}{}",
                far.proxy.kubeconfig().display(),
                sync(&far.syncs[0]),
                sync(&far.syncs[1]),
            ),
        );
        far
    }

    /// Wants this port of the Gateways of both syncs.
    fn want(&self, port: usize) {
        for sync in &self.syncs {
            self.desk.write(&format!("specs/{sync}/edge.yaml"), &gateway(&self.namespace, sync, port));
        }
    }

    fn is_near(&self, port: usize) -> bool {
        let text = |sync: &String| self.desk.path(&format!("near/{}/service-{sync}.yaml", self.namespace));
        let has = |sync| fs::read_to_string(text(sync)).is_ok_and(|text| text.contains(&format!("port: {port}\n")));
        self.syncs.iter().all(has)
    }

    fn is_far(&self, port: usize) -> bool {
        let path = "jsonpath={.items[*].spec.ports[*].port}";
        let ports = shared().kubectl(&["get", "services", "-n", &self.namespace, "-o", path]);
        String::from_utf8_lossy(&ports.stdout) == format!("{port} {port}")
    }

    /// The rounds of each sync on the cluster that got no answer.
    fn unanswered(&self, daemon: &Daemon) -> [usize; 2] {
        let is_one = |line: &&Value, sync: &String| {
            line["message"] == "round" && line["sync"] == **sync && line["cluster"] == "far" && line["unreachable"] == 1
        };
        let log = daemon.log();
        [0, 1].map(|place| log.iter().filter(|line| is_one(line, &self.syncs[place])).count())
    }
}

#[test]
fn a_cluster_that_does_not_answer_costs_a_probe_now_and_then() {
    let far = Far::new();
    let mut daemon = Daemon::start(&far.desk, far.port, &[]);
    daemon.until("the first rounds", |_| far.is_near(8080) && far.is_far(8080));
    far.proxy.answer(usize::MAX, |_| true, Answer::Silent);
    far.want(8101);
    daemon.until("rounds without an answer", |daemon| far.unanswered(daemon).iter().all(|rounds| *rounds > 0));

    // Whatever is pushed meanwhile, and however often, nobody asks it but the probe.
    let asked = far.proxy.seen().len();
    for port in 8102..8106 {
        let before = far.unanswered(&daemon);
        far.want(port);
        daemon.until("a round in the folder and one that ends at once", |daemon| {
            far.is_near(port) && far.unanswered(daemon).iter().zip(before).all(|(now, before)| *now > before)
        });
    }
    let probes: Vec<String> = far.proxy.seen()[asked..].iter().map(|seen| seen.path.clone()).collect();
    assert!(probes.len() <= 3 && probes.iter().all(|path| path == "/version"), "{probes:?}");
    it_is_told(&far, &daemon);

    // When it is back the rounds begin by themselves: the next ones of the schedule are minutes away.
    far.proxy.recovers();
    daemon.until("the rounds after the outage", |_| far.is_far(8105));
    assert!(daemon.log().iter().any(|line| line["message"] == "the cluster answers again"));
    let labels = [r#"cluster="far""#];
    daemon.until("word of the return", |daemon| daemon.metric("gatewright_cluster_up", &labels) == Some(1.0));
    assert_eq!(daemon.metric("gatewright_cluster_unreachable_since_timestamp_seconds{", &labels), None);
    // What a round has written is there before its report is.
    daemon.until("reports of the rounds after the outage", |_| {
        let status = far.desk.run(&["status"]).exits(0);
        !status.out.contains("unreachable") && !status.out.contains("asked again")
    });
}

fn it_is_told(far: &Far, daemon: &Daemon) {
    let status = far.desk.run(&["status", "--cluster", "far"]).exits(0);
    assert_eq!(status.out.matches("  cluster far: unreachable at ").count(), 2, "{}", status.out);
    assert_eq!(status.out.matches("asked again at ").count(), 2, "{}", status.out);
    let json = far.desk.run(&["status", "--format", "json"]).exits(0).out;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    for sync in &far.syncs {
        let report = &json["syncs"][sync]["far"];
        obeys_the_schema(report);
        let cluster = &report["clusters"]["far"];
        assert_eq!(cluster["state"], "unreachable");
        assert!(cluster["since"].is_string() && cluster["nextProbe"].is_string(), "{cluster}");
        assert!(cluster["since"].as_str() < report["started"].as_str(), "{report}");
    }
    let labels = [r#"cluster="far""#];
    assert_eq!(daemon.metric("gatewright_cluster_up", &labels), Some(0.0));
    let since = daemon.metric("gatewright_cluster_unreachable_since_timestamp_seconds{", &labels);
    assert!(since.is_some_and(|time| time > 1.7e9), "{since:?}");
}

/// The usual timeout of a request is 30 seconds, and the service manager waits for 90.
#[test]
fn a_stop_does_not_wait_for_long_for_a_write_that_gets_no_answer() {
    let far = Far::new();
    far.desk.replace("gatewright.yaml", "allowInsecureTls: true, timeout: 1s", "allowInsecureTls: true");
    let mut daemon = Daemon::start(&far.desk, far.port, &[]);
    daemon.until("the first rounds", |_| far.is_near(8080) && far.is_far(8080));
    // The inventory is written; the first object is not.
    let is_meant = |seen: &Seen| seen.is_write() && seen.path.contains("/services/");
    far.proxy.answer(usize::MAX, is_meant, Answer::Silent);
    let before = far.proxy.seen().len();
    far.want(8101);
    daemon.until("a write without an answer", |_| far.proxy.seen()[before..].iter().any(is_meant));
    daemon.stops_within(Duration::from_mins(1));
    assert!(!far.is_far(8101));

    far.proxy.recovers();
    let mut daemon = Daemon::start(&far.desk, far.port, &[]);
    daemon.until("what was not written", |_| far.is_far(8101));
    daemon.stops_within(Duration::from_mins(1));
}

/// A process that is stopped still has its port open: connections are made, and nothing comes back.
#[test]
fn a_frozen_api_server_is_unreachable_until_it_goes_on() {
    let server = ApiServer::fleet(&["frozen"]).pop().expect("there is one");
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    let kubeconfig = server.kubeconfig("admin");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: ./state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: ./specs, settle: 0s}}, poll: 1s}}}}\nclusters:\n  \
               far: {{kubeconfig: {{path: {}, timeout: 1s}}}}\n  near: {{directory: {{path: ./near}}}}\n\
             syncs: {{edges: {{source: specs, clusters: {{matchLabels: {{}}}}, createNamespaces: true, wait: {{enabled: false}}, \
             rollout: {{strategy: all}}, schedule: {{interval: 10m}}}}}}\n",
            kubeconfig.display()
        ),
    );
    let freeze = |signal: &str| {
        let sent = command("kill").args(["-s", signal]).arg(server.pid().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal} cannot be sent");
    };
    let has = |port: &str| {
        let ports = server.kubectl(&["get", "service", "edge", "-n", "shop", "-o", "jsonpath={.spec.ports[*].port}"]);
        ports.stdout == port.as_bytes()
    };
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8100));
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the first rounds", |_| has("8100"));
    freeze("STOP");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8101));
    daemon.until("word of it", |_| desk.run(&["status"]).exits(0).out.contains("  cluster far: unreachable at "));
    daemon.until("the round elsewhere", |_| desk.read("near/shop/service-edge.yaml").contains("port: 8101\n"));
    freeze("CONT");
    daemon.until("what it has missed", |_| has("8101"));
}
