//! One tenant stops nobody else: hostile folders and servers beside good ones.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Daemon, gateway};
use crate::cluster::process::{command, free_port};
use crate::program::Desk;
use crate::support::git_server::{HttpsServer, Repository};

/// The most memory that the process may take, in KiB.
const MOST_MEMORY: u64 = 512 * 1024;

/// From the end of a round of the good sync to the start of the next one, and how late that may be.
const INTERVAL: Duration = Duration::from_secs(10);
const LATEST: Duration = Duration::from_secs(2);

/// The time for which the good sync is watched beside the hostile one.
const WATCHED: Duration = Duration::from_secs(45);

/// A server that sends its references byte by byte, and never comes to their end.
struct Dripping {
    port: u16,
    /// The number of conversations that were begun, and of those that the client has ended.
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Dripping {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (begun, ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (Arc::clone(&begun), Arc::clone(&ended));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (begun, ended) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
                thread::spawn(move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    drip(stream);
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Self { port, begun, ended }
    }

    fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}.git", self.port)
    }
}

/// Sends a byte from time to time until nobody listens, for two minutes at most.
fn drip(mut stream: TcpStream) {
    let mut request = [0; 4096];
    drop(stream.read(&mut request));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\
                Transfer-Encoding: chunked\r\n\r\n22\r\n001e# service=git-upload-pack\n0000\r\n";
    let mut references = String::new();
    for number in 0..30 {
        let line = format!("{:040x} refs/heads/branch-{number:04}\n", number + 1);
        references = format!("{references}{:04x}{line}", line.len() + 4);
    }
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    for byte in references.bytes().take(1_200) {
        let chunk = [b"1\r\n".as_slice(), &[byte], b"\r\n"].concat();
        if stream.write_all(&chunk).and_then(|()| stream.flush()).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

impl Daemon {
    /// Returns the most memory that the process has taken so far, in KiB.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it is running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says it");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("it is a number")
    }

    /// The times at which rounds of a sync came to their end.
    fn times(&self, sync: &str) -> Vec<Timestamp> {
        let log = self.log();
        let rounds = log.iter().filter(|line| line["message"] == "round" && line["sync"] == sync);
        rounds.filter_map(|line| line["timestamp"].as_str()?.parse().ok()).collect()
    }

    /// Tells whether a line of the log has a text anywhere.
    fn has_logged(&self, text: &str) -> bool {
        self.log().iter().any(|line| line.to_string().contains(text))
    }
}

#[test]
fn a_server_that_drips_its_references_is_given_up_and_keeps_nobody_waiting() {
    let (server, port) = (Dripping::start(), free_port());
    let desk = Desk::empty("gatewright.yaml");
    desk.write("specs/edge.yaml", &gateway("edge", 8080));
    let source = |number: usize| {
        let url = server.url(&format!("tenant-{number}"));
        format!("  tenant-{number}: {{git: {{url: \"{url}\", timeout: 2s}}, poll: 1s}}\n")
    };
    let sources: String = (0..6).map(source).collect();
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources:\n  specs: {{directory: {{path: specs}}}}\n\
             {sources}clusters: {{folder: {{directory: {{path: rendered}}}}}}\n\
             syncs:\n  good:\n    source: specs\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n"
        ),
    );
    let mut daemon = Daemon::start(&desk, port, &[]);
    // All six are asked, four at a time, and each conversation ends when its time is up.
    daemon.until("the end of all conversations", |_| server.ended.load(Ordering::Relaxed) >= 8);
    assert!(server.begun.load(Ordering::Relaxed) >= 8);
    assert!(daemon.has_logged("there was no answer within 2s"), "{}", daemon.log_tail());
    assert!(!daemon.times("good").is_empty(), "{}", daemon.log_tail());
    daemon.stops_within(Duration::from_secs(10));
    // No process is left behind.
    let began = server.begun.load(Ordering::Relaxed);
    let mut left = usize::MAX;
    for _ in 0..100 {
        left = began - server.ended.load(Ordering::Relaxed);
        if left == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(left, 0, "conversations go on after the end of the daemon");
}

/// Writes the files of a tenant who wants everything to stop.
fn hostile(desk: &Desk, edition: usize) {
    // A quarter of a megabyte that stands for gigabytes.
    for number in 0..500 {
        let map = "a: &a {k0: v, k1: v, k2: v, k3: v, k4: v, k5: v, k6: v, k7: v, k8: v}\n";
        let many = |from: &str, to: &str| format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(","));
        let bomb = format!("{map}{}{}{}{}", many("a", "b"), many("b", "c"), many("c", "d"), many("d", "e"));
        desk.write(&format!("evil/bombs/{number}.yaml"), &format!("# {edition}\n{bomb}"));
    }
    // Two nested loops of a rule over a long annotation.
    let env: Vec<String> = (0..1_000).map(|n| format!("        - {{name: v{n}, value: x}}\n")).collect();
    let parameters = format!(
        "apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: long, namespace: evil}}\n\
         spec:\n  kube:\n    envoyContainer:\n      env:\n{}",
        env.concat()
    );
    desk.write("evil/parameters.yaml", &parameters);
    let long = gateway("long", 9000)
        .replace("namespace: shop", &format!("namespace: evil, annotations: {{a: {}}}", "x".repeat(250_000)));
    let long = long.replace(
        "gatewayClassName",
        "infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: long}}\n  gatewayClassName",
    );
    desk.write("evil/long.yaml", &long);
    let list = "kube.envoyContainer.env";
    let rule = format!("{list}.all(a, {list}.all(b, !gateway.metadata.annotations.a.contains('y')))");
    let overlay = |name: &str, spec: &str| {
        format!(
            "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
        )
    };
    desk.write("evil/rule.yaml", &overlay("rule", &format!("{{enforce: [{{rule: \"{rule}\"}}]}}")));
    // Overlays of one rank are compared with each other, for each of many Gateways.
    let many: String = (0..300)
        .map(|n| {
            overlay(
                &format!("o{n}"),
                &format!("{{parameters: {{kube: {{podTemplate: {{extraLabels: {{l{n}: x}}}}}}}}}}"),
            )
        })
        .collect();
    desk.write("evil/overlays.yaml", &many);
    let gateways: String = (0..300_u16)
        .map(|n| gateway(&format!("g{n}"), 10_000 + n).replace("namespace: shop", "namespace: evil") + "---\n")
        .collect();
    desk.write("evil/gateways.yaml", &format!("# {edition}\n{gateways}"));
    // More than a team should be given.
    desk.write(
        "evil/admin.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: evil}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
         subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: evil}]\n",
    );
}

fn configure(desk: &Desk, port: u16, server: &Dripping) {
    let url = server.url("evil");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\n\
             http: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources:\n  good: {{directory: {{path: good}}, poll: 1s}}\n  evil: {{directory: {{path: evil}}, poll: 1s}}\n  \
               drip: {{git: {{url: \"{url}\", timeout: 3s}}, poll: 1s}}\n\
             clusters:\n  folder: {{directory: {{path: rendered}}}}\n\
             syncs:\n  \
               good:\n    source: good\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n    \
                 schedule: {{interval: 10s, jitter: 0s}}\n  \
               evil:\n    source: evil\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n    \
                 unclaimed: apply\n    allow: {{namespaces: [evil]}}\n    overlays: {{paths: [.]}}\n    renderTimeout: 5s\n    schedule: {{interval: 10s, jitter: 0s}}\n"
        ),
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real programs take real time")]
fn a_hostile_tenant_stops_nobody_else() {
    let (server, port) = (Dripping::start(), free_port());
    let desk = Desk::empty("gatewright.yaml");
    desk.write("good/edge.yaml", &gateway("edge", 8080));
    hostile(&desk, 0);
    configure(&desk, port, &server);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a first round of the good sync", |daemon| !daemon.times("good").is_empty());
    let started = Instant::now();
    let mut edition = 0;
    while started.elapsed() < WATCHED {
        edition += 1;
        hostile(&desk, edition);
        thread::sleep(Duration::from_secs(4));
    }
    let times = daemon.times("good");
    let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).unsigned_abs());
    let longest = gaps.max().expect("there were rounds");
    assert!(longest <= INTERVAL + LATEST, "{longest:?} between two rounds:\n{}", daemon.log_tail());
    daemon.until("what is wrong with the hostile source", |daemon| {
        daemon.has_logged("evil/bombs/") || daemon.has_logged("rendered within")
    });
    assert!(daemon.page("/healthz").is_some_and(|page| page.starts_with("HTTP/1.0 200")), "{}", daemon.log_tail());

    // A reload does not wait for what is being rendered, nor does a stop.
    hostile(&desk, 1_000);
    desk.replace("gatewright.yaml", "jitter: 0s}\n  evil", "jitter: 1ms}\n  evil");
    let reloads = |daemon: &Daemon| daemon.has_logged("the configuration was read again");
    let asked = Instant::now();
    daemon.signal("HUP");
    daemon.until("a reload", reloads);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    hostile(&desk, 1_001);
    thread::sleep(Duration::from_secs(2));
    let memory = daemon.memory();
    assert!(memory < MOST_MEMORY, "{memory} KiB");
    daemon.stops_within(Duration::from_secs(10));

    // What is left when nothing else keeps its rounds: the right that it wanted is not given.
    fs::remove_dir_all(desk.path("evil/bombs")).expect("it is there");
    for file in ["parameters", "long", "rule", "overlays", "gateways"] {
        fs::remove_file(desk.path(&format!("evil/{file}.yaml"))).expect("it is there");
    }
    let refused = desk.run(&["sync", "evil"]);
    assert!(refused.out.contains("allow.clusterKinds must name it"), "{}{}", refused.out, refused.err);
    assert!(!desk.read_all("rendered").contains("ClusterRoleBinding"));
}

/// Gateways with a misspelled field, each of which is a line of the log.
fn misspelled(edition: usize) -> String {
    let one = |number: usize| {
        gateway(&format!("edge-{number}"), 8080).replace("listeners", "listenrs") + &format!("# {edition}\n---\n")
    };
    (0..1_500).map(one).collect()
}

/// A daemon that logs a great deal, into a pipe that holds far less.
fn logging(desk: &Desk) -> Daemon {
    let port = free_port();
    desk.write("specs/edge.yaml", &misspelled(0));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
             clusters: {{folder: {{directory: {{path: rendered}}}}}}\n\
             syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n"
        ),
    );
    let wanted = desk.command(&["run"]);
    let mut program = command("setpriv");
    program.args(["--pdeathsig", "KILL", "--"]).arg(wanted.get_program()).args(wanted.get_args());
    program.current_dir(desk.path("")).stderr(Stdio::piped()).stdout(Stdio::null());
    let child = program.spawn().expect("setpriv can be run");
    desk.write("log", "");
    Daemon { child, log: desk.path("log"), port }
}

/// Has rounds, in each of which there is more to log.
fn goes_on(desk: &Desk, daemon: &mut Daemon) {
    let rounds = |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &[]).unwrap_or_default();
    for edition in 1..4 {
        let before = rounds(daemon);
        desk.write("specs/edge.yaml", &misspelled(edition));
        daemon.until("another round", |daemon| rounds(daemon) > before);
    }
    daemon.stops_within(Duration::from_secs(10));
}

#[test]
fn a_log_that_nobody_reads_keeps_no_round_waiting() {
    let desk = Desk::empty("gatewright.yaml");
    let mut daemon = logging(&desk);
    goes_on(&desk, &mut daemon);
}

/// Each line that is written is an error from then on.
#[test]
fn a_log_whose_reader_has_gone_keeps_no_round_waiting() {
    let desk = Desk::empty("gatewright.yaml");
    let mut daemon = logging(&desk);
    let rounds = |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &[]).unwrap_or_default();
    daemon.until("the first round", |daemon| rounds(daemon) > 0.0);
    drop(daemon.child.stderr.take().expect("it is a pipe"));
    goes_on(&desk, &mut daemon);
}

#[test]
fn a_repository_is_fetched_by_a_process_of_its_own_and_failures_come_back_whole() {
    let desk = Desk::empty("gatewright.yaml");
    let repository = Repository::new(&desk.path(""), "infra");
    repository.write("edge.yaml", &gateway("edge", 8080));
    repository.push();
    let server = HttpsServer::start(&desk.path(""), "sesame", "");
    desk.write("token", "sesame");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources:\n  infra:\n    git:\n      url: {}/infra.git\n      \
               auth: {{tokenFile: token, caFile: {}}}\n\
             clusters: {{folder: {{directory: {{path: rendered}}}}}}\n\
             syncs:\n  gateways:\n    source: infra\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n",
            server.url,
            server.authority.display()
        ),
    );
    desk.run(&["sync"]).exits(0).says("objects created");
    desk.run(&["sync"]).exits(0).says("no changes");
    repository.write("edge.yaml", &gateway("edge", 8081));
    repository.push();
    desk.run(&["sync"]).exits(0).says("updated");
    server.set_token("another");
    desk.run(&["sync"]).exits(1).complains("the server refused the credentials").complains("Check that the token in");
}
