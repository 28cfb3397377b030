//! A graph to the values of all templates: what Dynamo's operator would make of it.

use std::collections::BTreeMap;

use gatewright_engine::problem::Problem;
use gatewright_engine::selector::Capabilities;
use gatewright_engine::spec::Document;
use serde_json::{Value, json};

use super::backend::{self, Backends, Obstacle};
use super::model::{Claim, Component, Graph, Picker, Type};
use super::nodes::Provider;
use super::pod::{Maker, Part, discovery_account};
use super::settings::{DiscoveryBackend, Settings};
use super::workload::{self, clique_set, deployment, leader_worker_set};
use super::{network, overrides, picker, read};

/// The data with which a graph is expanded.
pub(super) struct Data<'a> {
    pub(super) settings: &'a Settings,
    pub(super) backends: &'a Backends,
    /// `types.yaml`.
    pub(super) types: &'a Value,
    /// The capabilities of the cluster; nothing is known where none was asked.
    pub(super) capabilities: Option<&'a Capabilities>,
}

/// Returns the values of all templates, or everything that is in the way.
pub(super) fn values(document: &Document, namespace: &str, data: &Data<'_>) -> Result<Value, Vec<Problem>> {
    let mut graph = read::read(document, namespace)?;
    let wrong = |path: &[String], message: String| read::problem(document, path, message);
    let wanted = data.settings.workload_provider;
    let provider = workload::provider(&graph, wanted, data.capabilities).map_err(|message| {
        vec![wrong(&[], message).hint("packs.dynamo.workloadProvider says which workloads are made")]
    })?;
    if provider != Provider::Grove {
        let env = graph.env.clone();
        for component in &mut graph.components {
            overrides::apply(component, &env).map_err(|message| vec![wrong(&component.path, message)])?;
        }
    }
    if let Some((component, message)) = workload::too_long(&graph, provider) {
        return Err(vec![wrong(&component.path, message)]);
    }
    let settings = data.settings.of_graph(&graph);
    let maker = Maker { settings: &settings, graph: &graph, types: data.types, provider };
    let (mut parts, mut problems) = (Vec::new(), Vec::new());
    for component in &graph.components {
        match part(&maker, data, component) {
            Ok(part) => parts.push(part),
            Err(found) => {
                let path = if found.of_graph { &["backendFramework".to_owned()] } else { component.path.as_slice() };
                let problem = Problem { hint: found.hint, ..wrong(path, found.message) };
                // What the whole graph says is wrong once, not once for each component.
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    problems.extend(platform(&graph, &settings).into_iter().map(|message| wrong(&[], message)));
    if !problems.is_empty() {
        return Err(problems);
    }
    all(&maker, &parts).map_err(|message| vec![wrong(&[], message)])
}

fn part<'a>(maker: &Maker<'_>, data: &Data<'a>, component: &'a Component) -> Result<Part<'a>, Obstacle> {
    let hinted = |message: String, hint: String| Obstacle { message, hint: Some(hint), of_graph: false };
    let backend = backend::of(data.backends, maker.graph, component)?;
    let is_there = |picker: &Picker| picker.config.is_some() || picker.config_map_ref.is_some();
    if component.kind == Type::Epp && !component.picker.as_ref().is_some_and(is_there) {
        let message = "eppConfig has neither config nor configMapRef";
        let hint = "the picker that brings its own configuration is made by the operator only";
        return Err(hinted(message.to_owned(), hint.to_owned()));
    }
    if !component.is_multinode() {
        return Ok(Part { component, backend, launch: None });
    }
    let (name, nodes) = (&component.name, component.nodes);
    // What runs no known backend is started on each node as it is written.
    let Some(known) = backend else { return Ok(Part { component, backend, launch: None }) };
    let launch = known.launch(&maker.scope(component, backend))?;
    if let Some(launch) = launch
        && let Some(path) = launch.requires.iter().find(|path| data.settings.is_unset(path))
    {
        let way = &launch.name;
        return Err(format!("component {name:?} is on {nodes} nodes by {way}, and packs.dynamo.{path} is empty").into());
    }
    if let Some(launch) = launch.filter(|launch| !launch.refused.is_empty()) {
        let message = format!("component {name:?} is on {nodes} nodes, and {}", launch.refused);
        return Err(hinted(message, "with mode passthrough Dynamo's operator takes care of it".to_owned()));
    }
    Ok(Part { component, backend, launch })
}

/// Says what a graph needs of the platform and what the settings do not name.
fn platform(graph: &Graph, settings: &Settings) -> Option<String> {
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
    let (ingresses, virtual_services) = network::entrances(maker);
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
        "ingresses": ingresses,
        "virtualServices": virtual_services,
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
