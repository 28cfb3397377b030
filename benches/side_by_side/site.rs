//! An API server with what was wanted of it so far, and what a step on it costs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gatewright::state::State;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Object, ObjectId};
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::etcd::Etcd;
use crate::cluster::process::{Folder, command};
use crate::cluster::{ApiServer, Options};
use crate::fleet::{self, NAMESPACES};
use crate::peers::{Peer, Programs, Step};

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

/// An API server, and a folder for what a peer reads.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) server: ApiServer,
    /// The mark that gatewright gives its objects here.
    pub(crate) marker: Marker,
    /// The objects that the API server should have after the next step.
    pub(crate) wanted: Vec<Object>,
    gateways: usize,
    specs: Folder,
}

impl Site {
    /// Starts an API server, which has nothing but the namespaces.
    pub(crate) fn new(gateways: usize) -> Self {
        // Beside what is usual it needs a node port for each port of each Service.
        let args = [
            "--service-node-port-range=20000-32767",
            "--max-requests-inflight=1000",
            "--max-mutating-requests-inflight=500",
        ];
        let options = Options { args: args.map(str::to_owned).to_vec(), ..Options::default() };
        let server = ApiServer::start_on(&Arc::new(Etcd::start()), options);
        for index in 0..NAMESPACES {
            server.kubectl_ok(&["create", "namespace", &fleet::namespace(index)]);
        }
        let state = State::open(server.folder().join("state"));
        let installation = state.make_installation().expect("the folder can be written");
        let marker = Marker { installation, sync: "bench".to_owned() };
        let mut site = Self { server, marker, wanted: Vec::new(), gateways, specs: Folder::new() };
        site.want(gateways);
        site
    }

    /// Returns where files for peers are.
    pub(crate) fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// Returns where the specs are.
    pub(crate) fn specs(&self) -> PathBuf {
        self.specs.path().join("specs")
    }

    fn want(&mut self, gateways: usize) {
        fleet::write_specs(&self.specs(), gateways);
        self.wanted = fleet::objects(gateways, &self.marker);
    }

    /// Makes it so that the step has something to do.
    pub(crate) fn prepare(&mut self, step: Step) {
        match step {
            Step::First | Step::Same | Step::Report | Step::Estimate => {}
            Step::Drift => self.stray(),
            Step::Prune => self.want(self.gateways - self.gateways.div_ceil(10)),
        }
    }

    fn stray(&self) {
        for (object, patch) in fleet::drift(&self.wanted) {
            let (id, patch) = (object.id(), patch.to_string());
            let what = format!("{}/{}", id.kind.to_lowercase(), id.name);
            let args =
                ["patch", "--type=merge", "--field-manager=kubectl-patch", "-n", &id.namespace, &what, "-p", &patch];
            self.server.kubectl_ok(&args);
        }
    }

    /// Has the peer carry out a step.
    pub(crate) fn measure(&self, peer: Peer, step: Step, programs: &Programs) -> Cost {
        let line = programs.command(peer, step, self);
        self.settle();
        let requests = self.requests();
        let cpu = self.ticks();
        let usage = self.run(programs, &line);
        #[expect(clippy::cast_precision_loss, reason = "no step takes weeks")]
        let server_cpu = (self.ticks() - cpu) as f64 / 100.0;
        assert_eq!(usage.code, 0, "{line:?} failed; what it said is in {}", self.folder().display());
        let mut spent = self.requests();
        for (verb, count) in &mut spent {
            *count -= requests.get(verb).copied().unwrap_or_default();
        }
        spent.retain(|_, count| *count > 0);
        Cost { requests: spent, server_cpu, cpu: usage.cpu, peak: usage.peak, wall: usage.wall }
    }

    fn run(&self, programs: &Programs, line: &[OsString]) -> Usage {
        let result = self.folder().join("usage.json");
        let mut measured = command(programs.built("measure"));
        // A home of its own for caches, and no more of the environment than a peer needs.
        measured.arg(&result).args(line).env("HOME", self.folder()).env_remove("KUBECONFIG");
        measured.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let status = measured.status().expect("what measures can be run");
        assert!(status.success(), "{line:?} cannot be measured");
        let text = fs::read_to_string(result).expect("it was written a moment ago");
        serde_json::from_str(&text).expect("it is what measure writes")
    }

    /// Waits until the API server has nothing to do any more for those before.
    fn settle(&self) {
        for _ in 0..MOST_BREATHS {
            let before = self.ticks();
            thread::sleep(BREATH);
            if self.ticks() - before < IDLE {
                return;
            }
        }
    }

    /// Returns the CPU time of the API server in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.server.pid())).expect("the server runs");
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>()).unwrap_or_default();
        // In user mode and in the kernel: fields 14 and 15, of which the first two are cut off.
        [11, 12].iter().map(|index| fields[*index].parse::<u64>().expect("a number of ticks")).sum()
    }

    /// Returns how many requests the API server has had so far, by verb.
    fn requests(&self) -> BTreeMap<String, u64> {
        let text = self.server.kubectl_ok(&["get", "--raw", "/metrics"]);
        let mut counts = BTreeMap::new();
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
            *counts.entry(format!("{}{dry}{failed}", label("verb"))).or_default() += count;
        }
        counts
    }

    /// Checks that what is wanted is there as it is wanted, and nothing else of its kind.
    pub(crate) fn assert_as_wanted(&self) {
        let is_ours = |object: &Object| ["Deployment", "ConfigMap"].contains(&object.id().kind.as_str());
        let wanted: BTreeMap<&ObjectId, &Object> =
            self.wanted.iter().filter(|object| is_ours(object)).map(|object| (object.id(), object)).collect();
        let mut found = 0;
        for (kind, path, field) in [
            ("Deployment", "/apis/apps/v1/deployments", "/spec/replicas"),
            ("ConfigMap", "/api/v1/configmaps", "/data"),
        ] {
            let list = self.server.kubectl_ok(&["get", "--raw", path]);
            let list: Value = serde_json::from_str(&list).expect("the server sends JSON");
            for live in list["items"].as_array().expect("a list has items") {
                let of = |key: &str| live["metadata"][key].as_str().unwrap_or_default().to_owned();
                let group = if kind == "Deployment" { "apps" } else { "" };
                let id = ObjectId::new(group, kind, &of("namespace"), &of("name"));
                if !id.namespace.starts_with("team-") || id.name == "kube-root-ca.crt" {
                    continue;
                }
                found += 1;
                let Some(object) = wanted.get(&id) else { unreachable!("{id} should be gone") };
                assert_eq!(live.pointer(field), object.body().pointer(field), "{id}");
            }
        }
        assert_eq!(found, wanted.len(), "every object is there");
    }
}
