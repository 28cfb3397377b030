//! Traces and logs of the daemon, taken by a real OpenTelemetry collector.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::{Daemon, gateway};
use crate::cluster::binaries::otel_collector;
use crate::cluster::process::{Process, free_port};
use crate::program::Desk;
use crate::secrets::Secrets;

/// The longest that the end of a daemon may take whose collector is gone.
const SOON: Duration = Duration::from_secs(20);

const LIMIT: Duration = Duration::from_mins(1);

/// Starts a collector that prints all that it has understood into a file of the desk.
fn collector(desk: &Desk, port: u16) -> Process {
    let pipeline = "{receivers: [otlp], exporters: [debug]}";
    let config = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"127.0.0.1:{port}\"}}}}}}}}\n\
         exporters: {{debug: {{verbosity: detailed, use_internal_logger: false}}}}\n\
         service: {{pipelines: {{traces: {pipeline}, logs: {pipeline}}}}}\n"
    );
    desk.write("collector.yaml", &config);
    let config = format!("--config=file:{}", desk.path("collector.yaml").display());
    let mut collector = Process::start(otel_collector(), &[config], &desk.path(""));
    collector.wait_until("it listens", LIMIT, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    collector
}

fn taken(desk: &Desk) -> String {
    fs::read_to_string(desk.path("otel-collector.log")).expect("the collector has a log")
}

/// The spans by their names, each with its own id and that of its parent.
fn spans(taken: &str) -> BTreeMap<String, (String, String)> {
    let of = |span: &str| {
        let value = |name: &str| {
            let line = span.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_default();
            line.trim().trim_start_matches(':').trim().to_owned()
        };
        (value("Name"), (value("ID"), value("Parent ID")))
    };
    taken.split("\nSpan #").skip(1).map(of).collect()
}

#[test]
fn a_collector_gets_a_trace_of_each_round_and_the_log() {
    let (port, at) = (free_port(), free_port());
    let desk = Desk::empty("gatewright.yaml");
    let config = format!(
        "stateDir: state\n\
         http: {{listen: \"127.0.0.1:{port}\"}}\n\
         otlp: {{url: \"http://127.0.0.1:{at}\"}}\n\
         log: {{level: debug}}\n\
         sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
         clusters: {{only: {{directory: {{path: rendered}}}}}}\n\
         syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [only]}}\n    createNamespaces: true\n    \
           unclaimed: apply\n    schedule: {{interval: 10s, jitter: 0%}}\n",
    );
    desk.write("gatewright.yaml", &config);
    desk.write("specs/edge.yaml", &gateway("edge", 8101));
    let secrets = Secrets::fixed("traced");
    for (file, text) in secrets.specs("shop") {
        desk.write(&format!("specs/{file}"), &text);
    }
    let collector = collector(&desk, at);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a trace of the first round, and its line of the log", |_| {
        let taken = taken(&desk);
        spans(&taken).contains_key("apply") && taken.contains("Body: Str(round)")
    });
    let text = taken(&desk);
    let spans = spans(&text);
    let parent = |name: &str| {
        let (_, parent) = spans.get(name).expect(name);
        spans.iter().find(|(_, (id, _))| id == parent).map(|(name, _)| name.as_str())
    };
    assert_eq!(parent("round"), None);
    assert_eq!(parent("cluster"), Some("round"));
    for part in ["render", "observe", "apply"] {
        assert_eq!(parent(part), Some("cluster"), "{part}");
    }
    assert!(spans.contains_key("poll"), "{text}");
    for words in ["service.name: Str(gatewright)", "service.version: Str(", "sync: Str(gateways)", "revision: Str("] {
        assert!(text.contains(words), "{words}: {text}");
    }

    secrets.are_not_in(&text, "what the collector got");

    // Without a collector all goes on; that is told once.
    drop(collector);
    let untaken = "the collector does not take what is sent to it";
    let tells = |daemon: &Daemon| daemon.log().iter().filter(|line| line["message"] == untaken).count();
    daemon.until("that it is missed", |daemon| tells(daemon) > 0);
    let rounds = daemon.rounds().len();
    daemon.until("another round", |daemon| daemon.rounds().len() > rounds);
    assert!(tells(&daemon) <= 2, "once for traces, and once for the log");
    daemon.stops_within(SOON);
}
