//! Specs on a cluster: what packs render something from, and what that refers to.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::marks::other_owner;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::spec::Kind;
use gatewright_engine::spec::overlay::GROUP;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};
use gatewright_engine::yaml;
use serde_json::Value;

use super::written::{document, file, reason_to_leave};
use crate::cluster::kube::KubeCluster;
use crate::cluster::{Cluster, ClusterError};

/// All that was found on a cluster.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The documents, by their file below the folder of specs.
    pub(super) documents: BTreeMap<String, Value>,
    /// Objects that are not among them, each with the reason.
    pub(super) left: BTreeMap<ObjectId, String>,
    /// Objects that another tool applies as well, each with the name of the tool.
    pub(super) applied: BTreeMap<ObjectId, String>,
    /// Kinds that could not be listed, each with the reason.
    pub(super) unread: BTreeMap<String, String>,
}

/// Reads all specs in some namespaces, or in all.
pub(super) async fn gather(cluster: &KubeCluster, packs: &Packs, namespaces: &[String]) -> Result<Found, ClusterError> {
    let mut found = Found::default();
    for (kind, is_namespaced) in served(cluster, packs).await? {
        let everywhere = [None];
        let some: Vec<Option<&str>> = namespaces.iter().map(|namespace| Some(namespace.as_str())).collect();
        let places = if is_namespaced && !some.is_empty() { &some[..] } else { &everywhere };
        for namespace in places {
            match cluster.list_all(&kind, *namespace).await {
                Ok(objects) => objects.iter().for_each(|live| found.add(live)),
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => drop(found.unread.insert(kind.to_string(), Chain(&error).to_string())),
            }
        }
    }
    found.follow(cluster, packs).await;
    found.leave_what_no_pack_renders(packs);
    found.leave_unused_classes(packs);
    Ok(found)
}

/// Returns the kinds of specs that the cluster has, each in the version that packs prefer, and whether they are in
/// namespaces.
async fn served(cluster: &KubeCluster, packs: &Packs) -> Result<Vec<(Gvk, bool)>, ClusterError> {
    let known = packs.kinds().iter().filter(|((group, _), _)| group != GROUP);
    let versions = |((group, kind), read): (&(String, String), &Kind)| -> Vec<Gvk> {
        read.versions.iter().map(|version| Gvk::new(&format!("{group}/{version}"), kind)).collect()
    };
    let kinds: Vec<(Vec<Gvk>, bool)> = known.map(|(name, read)| (versions((name, read)), read.namespaced)).collect();
    let asked: BTreeSet<Gvk> = kinds.iter().flat_map(|(versions, _)| versions.clone()).collect();
    let answer = cluster.kinds(&asked).await?;
    let first = |(versions, is_namespaced): (Vec<Gvk>, bool)| {
        let version = versions.into_iter().find(|version| answer.served.contains_key(version))?;
        Some((version, is_namespaced))
    };
    Ok(kinds.into_iter().filter_map(first).collect())
}

impl Found {
    fn add(&mut self, live: &Live) {
        let id = live.object.id();
        if let Some(reason) = reason_to_leave(live) {
            self.left.insert(id.clone(), reason);
            return;
        }
        let path = match file(id, |path| self.documents.contains_key(path)) {
            Ok(path) => path,
            Err(problem) => {
                self.left.insert(id.clone(), problem.to_string());
                return;
            }
        };
        if let Some(tool) = other_owner(live.object.body()) {
            self.applied.insert(id.clone(), tool);
        }
        self.documents.insert(path, document(live));
    }

    /// Reads the parameters in other namespaces that classes refer to.
    async fn follow(&mut self, cluster: &KubeCluster, packs: &Packs) {
        let classes = self.documents.values().filter(|document| document["kind"] == "GatewayClass");
        let named: Vec<(Gvk, ObjectId)> = classes.filter_map(|class| parameters(class, packs)).collect();
        for (kind, id) in named {
            let is_here = |document: &Value| {
                let metadata = &document["metadata"];
                document["kind"] == *id.kind && metadata["name"] == *id.name && metadata["namespace"] == *id.namespace
            };
            if self.documents.values().any(is_here) || self.left.contains_key(&id) {
                continue;
            }
            match cluster.get(&kind, &id).await {
                Ok(Some(live)) => self.add(&live),
                // The plan says that they are missing.
                Ok(None) => {}
                Err(error) => drop(self.unread.insert(id.to_string(), Chain(&error).to_string())),
            }
        }
    }

    /// Takes out what no pack makes anything of, such as Gateways of other controllers.
    fn leave_what_no_pack_renders(&mut self, packs: &Packs) {
        let mut tree = Tree::default();
        for (path, document) in &self.documents {
            tree.insert(path, yaml::to_string(document).into_bytes());
        }
        let rendering = render(&tree, packs, &Options { is_check: true, ..Options::default() });
        for (id, place) in rendering.unclaimed {
            if let Some(document) = self.documents.remove(&*place.file) {
                let class = document.pointer("/spec/gatewayClassName").and_then(Value::as_str);
                let of = class.map(|class| format!(" (class {class})")).unwrap_or_default();
                self.left.insert(id, format!("no pack renders it{of}"));
            }
        }
    }

    /// Takes out classes that a control plane makes by itself and that say nothing, and those that nothing names.
    fn leave_unused_classes(&mut self, packs: &Packs) {
        let gateways = self.documents.values().filter(|document| document["kind"] == "Gateway");
        let named: BTreeSet<String> =
            gateways.filter_map(|gateway| Some(gateway["spec"]["gatewayClassName"].as_str()?.to_owned())).collect();
        let is_builtin = |name: &str| packs.all().iter().any(|pack| pack.manifest.classes.contains_key(name));
        self.documents.retain(|_, document| {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            let says_nothing = document["spec"]["parametersRef"].is_null() && is_builtin(name);
            document["kind"] != "GatewayClass" || (named.contains(name) && !says_nothing)
        });
    }
}

/// Returns the parameters that a class refers to, if a pack knows their kind.
fn parameters(class: &Value, packs: &Packs) -> Option<(Gvk, ObjectId)> {
    let reference = &class["spec"]["parametersRef"];
    let text = |field: &str| reference[field].as_str();
    let (group, kind) = (text("group")?, text("kind")?);
    let known = packs.kinds().get(&(group.to_owned(), kind.to_owned()))?;
    let version = format!("{group}/{}", known.versions.first()?);
    Some((Gvk::new(&version, kind), ObjectId::new(group, kind, text("namespace")?, text("name")?)))
}
