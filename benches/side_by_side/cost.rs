//! The cost of a command: what it needs itself, and what it has API servers do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use crate::cluster::ApiServer;
use crate::cluster::process::command;
use crate::peers::Programs;

/// The API server's own requests, made at its own times: resources, a verb, and a document that it reads every five
/// seconds.
const OWN_BUSINESS: [(&str, &str); 4] =
    [("resource", "leases"), ("resource", "ipaddresses"), ("verb", "WATCH"), ("subresource", "openapi/v3")];

/// An API server that is idle uses less than this in [`BREATH`], in the kernel's ticks of 10 ms.
const IDLE: u64 = 3;
const BREATH: Duration = Duration::from_millis(500);
const MOST_BREATHS: usize = 60;

/// The cost of a step.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    /// The number of requests that the API server got, by verb; dry runs and failures apart.
    pub(crate) requests: BTreeMap<String, u64>,
    /// Seconds of CPU of the API server.
    pub(crate) server_cpu: f64,
    /// Seconds of CPU of the peer.
    pub(crate) cpu: f64,
    /// The most memory that the peer had at once, in bytes.
    pub(crate) peak: u64,
    /// Seconds from the start of the peer to its end.
    pub(crate) wall: f64,
}

/// The figures that `measure` writes down.
#[derive(Debug, Deserialize)]
struct Usage {
    wall: f64,
    cpu: f64,
    peak: u64,
    code: i32,
}

/// Runs a command, with a folder as its home, and returns what it cost and its exit code. The servers are idle before.
pub(crate) fn measure(servers: &[&ApiServer], folder: &Path, programs: &Programs, line: &[OsString]) -> (Cost, i32) {
    for server in servers {
        settle(server);
    }
    let all_requests = || servers.iter().flat_map(|server| requests(server));
    let all_ticks = || servers.iter().map(|server| ticks(server)).sum::<u64>();
    let (before, cpu) = (sums(all_requests()), all_ticks());
    let usage = run(folder, programs, line);
    #[expect(clippy::cast_precision_loss, reason = "no step takes weeks")]
    let server_cpu = (all_ticks() - cpu) as f64 / 100.0;
    let mut spent = sums(all_requests());
    for (verb, count) in &mut spent {
        *count -= before.get(verb).copied().unwrap_or_default();
    }
    spent.retain(|_, count| *count > 0);
    (Cost { requests: spent, server_cpu, cpu: usage.cpu, peak: usage.peak, wall: usage.wall }, usage.code)
}

fn run(folder: &Path, programs: &Programs, line: &[OsString]) -> Usage {
    let result = folder.join("usage.json");
    let mut measured = command(programs.built("measure"));
    // A home of its own for caches, and no more of the environment than a peer needs.
    measured.arg(&result).args(line).env("HOME", folder).env_remove("KUBECONFIG");
    measured.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let status = measured.status().expect("what measures can be run");
    assert!(status.success(), "{line:?} cannot be measured");
    let text = fs::read_to_string(result).expect("it was written a moment ago");
    serde_json::from_str(&text).expect("it is what measure writes")
}

/// Waits until an API server has nothing to do any more for those before.
fn settle(server: &ApiServer) {
    for _ in 0..MOST_BREATHS {
        let before = ticks(server);
        thread::sleep(BREATH);
        if ticks(server) - before < IDLE {
            return;
        }
    }
}

/// Returns the CPU time of an API server in ticks of 10 ms.
fn ticks(server: &ApiServer) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("the server runs");
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>()).unwrap_or_default();
    // In user mode and in the kernel: fields 14 and 15, of which the first two are cut off.
    [11, 12].iter().map(|index| fields[*index].parse::<u64>().expect("a number of ticks")).sum()
}

/// Returns the requests that an API server has had so far, by verb; the same verb may come more than once.
fn requests(server: &ApiServer) -> Vec<(String, u64)> {
    let text = server.kubectl_ok(&["get", "--raw", "/metrics"]);
    let mut counts = Vec::new();
    for (labels, count) in
        text.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")?.split_once("} "))
    {
        let label = |name: &str| {
            let labels = labels.split_once(&format!("{name}=\""));
            labels.and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default()
        };
        if OWN_BUSINESS.iter().any(|(name, value)| label(name) == *value) {
            continue;
        }
        let dry = if label("dry_run").is_empty() { "" } else { "+dry" };
        let failed = if label("code").starts_with('4') { " 4xx" } else { "" };
        let count: f64 = count.parse().expect("a number of requests");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "requests are counted")]
        let count = count as u64;
        counts.push((format!("{}{dry}{failed}", label("verb")), count));
    }
    counts
}

fn sums(counts: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (verb, count) in counts {
        *sums.entry(verb).or_default() += count;
    }
    sums
}
