//! An API server with what was wanted of it so far, and what a step on it costs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright::state::State;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Object, ObjectId};
use serde_json::Value;

use crate::cluster::etcd::Etcd;
use crate::cluster::process::Folder;
use crate::cluster::{ApiServer, Options};
use crate::cost::{self, Cost};
use crate::fleet::{self, NAMESPACES};
use crate::peers::{Peer, Programs, Step};

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
        let (cost, code) = cost::measure(&[&self.server], self.folder(), programs, &line);
        assert_eq!(code, 0, "{line:?} failed; what it said is in {}", self.folder().display());
        cost
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
