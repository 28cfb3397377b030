//! The programs that are measured, and the command that carries out a step.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::ValueEnum;
use gatewright_engine::object::Object;
use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::cluster::binaries::{Binaries, in_repository};
use crate::cluster::process::command;
use crate::fleet::address;
use crate::site::Site;

/// Somebody who can bring objects to an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// `gatewright sync`, from specs.
    Gatewright,
    /// `kubectl apply --server-side`, from one file with all objects.
    Kubectl,
    /// `helm upgrade --install`, from a chart with one file for each Gateway.
    Helm,
    /// The library that Flux applies with, from one file with all objects.
    Flux,
    /// The same creations as prepared requests: the limit of the API server.
    Sender,
}

/// The task of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Nothing is there yet.
    First,
    /// Everything is as it should be.
    Same,
    /// The same, and it is only to be reported, by somebody who may ask for dry runs.
    Report,
    /// The same, by somebody who may only read.
    Estimate,
    /// Somebody has changed one object in a hundred.
    Drift,
    /// One Gateway in ten is not wanted any more.
    Prune,
}

impl Step {
    /// All, in their order.
    pub(crate) const ALL: [Self; 6] = [Self::First, Self::Same, Self::Report, Self::Estimate, Self::Drift, Self::Prune];
}

impl Peer {
    /// Tells whether the peer has a way to do it.
    pub(crate) fn can(self, step: Step) -> bool {
        match self {
            Self::Gatewright => true,
            _ if matches!(step, Step::Report | Step::Estimate) => false,
            Self::Helm | Self::Flux => true,
            // It prunes across namespaces only after a client-side apply.
            Self::Kubectl => step != Step::Prune,
            Self::Sender => step == Step::First,
        }
    }

    /// Returns what has to be built for it beside what the test cluster has.
    fn program(self) -> Option<&'static str> {
        match self {
            Self::Gatewright | Self::Kubectl => None,
            Self::Helm => Some("helm"),
            Self::Flux => Some("staged"),
            Self::Sender => Some("sender"),
        }
    }
}

/// The paths of the programs.
#[derive(Debug)]
pub(crate) struct Programs {
    gatewright: PathBuf,
    built: BTreeMap<String, PathBuf>,
}

impl Programs {
    /// Builds what is needed, which takes minutes the first time.
    pub(crate) fn build(peers: &[Peer], gatewright: PathBuf) -> Self {
        let mut build = command(in_repository("benches/peers/build"));
        build.arg("measure").args(peers.iter().filter_map(|peer| peer.program())).stderr(Stdio::inherit());
        let output = build.output().expect("benches/peers/build can be run, which takes bash");
        assert!(output.status.success(), "benches/peers/build failed; its output is above");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = lines.lines().filter_map(|line| line.split_once(' '));
        Self { gatewright, built: named.map(|(name, path)| (name.to_owned(), path.into())).collect() }
    }

    /// Returns one of those that were built.
    pub(crate) fn built(&self, name: &str) -> &Path {
        self.built.get(name).expect("it was asked for")
    }

    /// Writes what the peer reads, and returns the command that carries out a step with it.
    pub(crate) fn command(&self, peer: Peer, step: Step, site: &Site) -> Vec<OsString> {
        let path = |name: &str| site.folder().join(name).into_os_string();
        let kubeconfig = site.server.kubeconfig("admin").into_os_string();
        match peer {
            Peer::Gatewright => {
                fs::write(path("gatewright.yaml"), config(site, step).to_string()).expect("the folder can be written");
                line(&self.gatewright, &["sync", "--yes", "--no-wait", "--config"], [path("gatewright.yaml")])
            }
            Peer::Kubectl => {
                fs::write(path("all.yaml"), manifests(&site.wanted)).expect("the folder can be written");
                let arguments = ["apply", "--server-side", "--force-conflicts"];
                let files = ["-f".into(), path("all.yaml"), "--kubeconfig".into(), kubeconfig];
                line(&Binaries::locate().kubectl, &arguments, files)
            }
            Peer::Helm => {
                write_chart(&site.folder().join("chart"), &site.wanted);
                let arguments = ["upgrade", "--install", "--namespace=default", "--server-side=true"];
                let files =
                    ["--force-conflicts".into(), "--kubeconfig".into(), kubeconfig, "bench".into(), path("chart")];
                line(self.built("helm"), &arguments, files)
            }
            Peer::Flux => {
                fs::write(path("all.yaml"), manifests(&site.wanted)).expect("the folder can be written");
                line(self.built("staged"), &[], [kubeconfig, path("all.yaml"), path("inventory.json")])
            }
            Peer::Sender => {
                fs::write(path("requests"), requests(&site.wanted)).expect("the folder can be written");
                let certificate = path("apiserver.crt");
                line(
                    self.built("sender"),
                    &[&site.server.url(), &site.server.token("admin")],
                    [certificate, path("requests")],
                )
            }
        }
    }
}

fn line(program: &Path, arguments: &[&str], files: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let arguments = arguments.iter().map(OsString::from);
    std::iter::once(program.as_os_str().to_owned()).chain(arguments).chain(files).collect()
}

/// The guard against large deletions is off, because one Gateway in ten is a large deletion.
fn config(site: &Site, step: Step) -> Value {
    let user = if step == Step::Estimate { "viewer" } else { "admin" };
    let mode = if matches!(step, Step::Report | Step::Estimate) { "report" } else { "apply" };
    json!({
        "stateDir": site.folder().join("state"), "log": {"level": "warn"},
        "sources": {"specs": {"directory": {"path": site.specs()}}},
        "clusters": {"bench": {"kubeconfig": {"path": site.server.kubeconfig(user)}}},
        "syncs": {site.marker.sync.as_str(): {
            "source": "specs", "clusters": {"names": ["bench"]}, "mode": mode,
            "prune": {"maxDelete": {"units": 100_000, "percent": 100}},
        }},
    })
}

fn manifests(objects: &[Object]) -> String {
    let documents: Vec<String> = objects.iter().map(|object| yaml::to_string(object.body())).collect();
    format!("---\n{}", documents.join("---\n"))
}

/// Writes a chart whose templates have nothing to fill in.
fn write_chart(folder: &Path, objects: &[Object]) {
    if folder.exists() {
        fs::remove_dir_all(folder).expect("a folder of our own can be removed");
    }
    fs::create_dir_all(folder.join("templates")).expect("the folder can be written");
    let chart = "apiVersion: v2\nname: bench\nversion: 0.1.0\n";
    fs::write(folder.join("Chart.yaml"), chart).expect("the folder can be written");
    for (number, objects) in objects.chunks(4).enumerate() {
        let text = manifests(objects);
        assert!(!text.contains("{{"), "Helm would take it for a template");
        fs::write(folder.join(format!("templates/{number:04}.yaml")), text).expect("the folder can be written");
    }
}

/// Writes a line for each object, with the condition that gatewright puts on a creation.
fn requests(objects: &[Object]) -> String {
    let line = |object: &Object| {
        let mut body = object.body().clone();
        body["metadata"]["resourceVersion"] = "1".into();
        format!("{}\n", json!({"path": address(object), "body": body}))
    };
    objects.iter().map(line).collect()
}
