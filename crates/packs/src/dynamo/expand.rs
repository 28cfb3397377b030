//! A graph to the values of all templates: what Dynamo's operator would make of it.

use std::collections::BTreeMap;

use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use serde_json::{Value, json};

use super::backend::{self, Backends, Launch};
use super::model::{Claim, Component, Graph, Type};
use super::nodes::Provider;
use super::pod::{Maker, Part, discovery_account};
use super::settings::{DiscoveryBackend, Settings};
use super::workload::{self, Serves, clique_set, deployment, leader_worker_set};
use super::{network, picker, read};

/// The data with which a graph is expanded.
pub(super) struct Data<'a> {
    pub(super) settings: &'a Settings,
    pub(super) backends: &'a Backends,
    /// `types.yaml`.
    pub(super) types: &'a Value,
    /// The kinds that the cluster serves.
    pub(super) serves: Serves<'a>,
}

/// Returns the values of all templates, or everything that is in the way.
pub(super) fn values(document: &Document, namespace: &str, data: &Data<'_>) -> Result<Value, Vec<Problem>> {
    let graph = read::read(document, namespace)?;
    let wrong = |path: &[String], message: String| {
        let path: Vec<&str> = std::iter::once("spec").chain(path.iter().map(String::as_str)).collect();
        Problem::document(document.place_of(&path), message).about(document.id.clone())
    };
    let provider = workload::provider(&graph, data.settings.workload_provider, data.serves).map_err(|message| {
        vec![wrong(&[], message).hint("packs.dynamo.workloadProvider says which workloads are made")]
    })?;
    if let Some((component, message)) = workload::too_long(&graph, provider) {
        return Err(vec![wrong(&component.path, message)]);
    }
    let maker = Maker { settings: data.settings, graph: &graph, types: data.types, provider };
    let (mut parts, mut problems) = (Vec::new(), Vec::new());
    for component in &graph.components {
        match part(&maker, data, component) {
            Ok(part) => parts.push(part),
            Err(found) => {
                let mut path = component.path.clone();
                if found.of_graph {
                    path = vec!["backendFramework".to_owned()];
                }
                let problem = wrong(&path, found.message);
                let problem = found.hint.map_or(problem.clone(), |hint| problem.hint(hint));
                // What the whole graph says is wrong once, not once for each component.
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    problems.extend(platform(&graph, data.settings).into_iter().map(|message| wrong(&[], message)));
    if !problems.is_empty() {
        return Err(problems);
    }
    all(&maker, &parts).map_err(|message| vec![wrong(&[], message)])
}

/// The reason why a component cannot be expanded.
struct Obstacle {
    message: String,
    hint: Option<String>,
    of_graph: bool,
}

impl Obstacle {
    fn new(message: impl Into<String>, hint: &str) -> Self {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        Self { message: message.into(), hint, of_graph: false }
    }
}

fn part<'a>(maker: &Maker<'_>, data: &Data<'a>, component: &'a Component) -> Result<Part<'a>, Obstacle> {
    let unclear = |it: backend::Unclear| Obstacle { message: it.message, hint: it.hint, of_graph: !it.in_command };
    let backend = backend::of(data.backends, maker.graph, component).map_err(unclear)?.map(|(name, _)| name);
    let backend = backend.and_then(|name| data.backends.get(name));
    if component.kind == Type::Epp
        && let Some(message) = picker::missing(component)
    {
        return Err(Obstacle::new(
            message,
            "the picker that brings its own configuration is made by the operator only",
        ));
    }
    if !component.is_multinode() {
        return Ok(Part { component, backend, launch: None });
    }
    let Some(known) = backend else {
        let names = data.backends.values().map(|backend| backend.module.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!(
            "component {:?} is on {} nodes, and its command runs no known backend",
            component.name, component.nodes
        );
        return Err(Obstacle::new(message, &format!("a worker runs python3 -m with one of {names}")));
    };
    let launch = known.launch(&maker.scope(component, backend)).map_err(|message| Obstacle::new(message, ""))?;
    if let Some((launch, path)) = launch.and_then(|launch| Some((launch, unset(data.settings, launch)?))) {
        let (name, nodes, way) = (&component.name, component.nodes, &launch.name);
        let message = format!("component {name:?} is on {nodes} nodes by {way}, and packs.dynamo.{path} is empty");
        return Err(Obstacle::new(message, ""));
    }
    Ok(Part { component, backend, launch })
}

/// Returns a setting that a launch needs and that is empty.
pub(super) fn unset<'a>(settings: &Settings, launch: &'a Launch) -> Option<&'a str> {
    let settings = settings.to_value();
    let is_empty = |path: &&String| {
        let found = path.split('.').try_fold(&settings, |value, part| value.get(part));
        found.is_none_or(|value| value.is_null() || value == "")
    };
    launch.requires.iter().find(is_empty).map(String::as_str)
}

/// Says what a graph needs of the platform and what the settings do not name.
pub(super) fn platform(graph: &Graph, settings: &Settings) -> Option<String> {
    let is_lost =
        settings.discovery.backend == DiscoveryBackend::Etcd && settings.infrastructure.etcd_address.is_empty();
    is_lost.then(|| {
        let name = &graph.name;
        format!("components of {name:?} find each other by etcd, and packs.dynamo.infrastructure.etcdAddress is empty")
    })
}

fn all(maker: &Maker<'_>, parts: &[Part<'_>]) -> Result<Value, String> {
    let graph = maker.graph;
    let (mut deployments, mut sets, mut cliques) = (Vec::new(), Vec::new(), Value::Null);
    if maker.provider == Provider::Grove {
        cliques = clique_set(maker, parts)?;
    } else {
        for part in parts {
            if part.component.is_multinode() {
                sets.push(leader_worker_set(maker, *part)?);
            } else {
                deployments.push(deployment(maker, *part)?);
            }
        }
    }
    let entrances = network::entrances(maker);
    Ok(json!({
        "graph": graph.name,
        "namespace": graph.namespace,
        "accounts": accounts(maker),
        "claims": claims(graph),
        "configMaps": files(maker, parts),
        "services": network::services(maker),
        "deployments": deployments,
        "leaderWorkerSets": sets,
        "cliqueSet": cliques,
        "picker": picker::values(maker),
        "ingresses": entrances.ingresses,
        "virtualServices": entrances.virtual_services,
    }))
}

/// The service accounts that are made for a graph, and what each is for.
fn accounts(maker: &Maker<'_>) -> Vec<Value> {
    let (graph, settings) = (maker.graph, maker.settings);
    let mut accounts = Vec::new();
    if settings.provisions_discovery() {
        accounts.push(json!({"name": discovery_account(graph), "for": "discovery"}));
    }
    for component in &graph.components {
        let (named, purpose) = match component.kind {
            Type::Planner => (&settings.service_accounts.planner, "planner"),
            Type::Epp => (&settings.service_accounts.epp, "epp"),
            _ => continue,
        };
        if named.is_empty() && !component.pod.contains_key("serviceAccountName") {
            accounts.push(json!({"name": graph.child(component), "for": purpose}));
        }
    }
    accounts
}

/// The `PersistentVolumeClaims` that a graph asks to be made.
fn claims(graph: &Graph) -> Vec<Value> {
    let claim = |claim: &Claim| {
        json!({
            "name": claim.name,
            "storageClass": claim.storage_class,
            "size": claim.size,
            "accessMode": claim.volume_access_mode,
        })
    };
    graph.claims.iter().filter(|claim| claim.create == Some(true)).map(claim).collect()
}

/// The files that ways to launch a model need.
fn files(maker: &Maker<'_>, parts: &[Part<'_>]) -> Vec<Value> {
    let launches = parts.iter().filter_map(|part| part.launch);
    let files: BTreeMap<&String, _> = launches.flat_map(|launch| &launch.files).collect();
    let name = |end: &String| format!("{}-{end}", maker.graph.name);
    files.into_iter().map(|(end, data)| json!({"name": name(end), "data": data})).collect()
}
