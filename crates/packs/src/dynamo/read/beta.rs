//! `v1beta1`: components are a list, and each has the template of its pods.

use serde_json::{Value, json};

use super::alpha::VLLM_CACHE;
use super::{MAIN, Reader, common, text};
use crate::dynamo::model::{Component, Graph, fields, list};
use crate::json::{items, texts};

pub(super) const GRAPH: [&str; 7] =
    ["annotations", "labels", "priorityClassName", "components", "env", "backendFramework", "restart"];

pub(super) const COMPONENT: [&str; 15] = [
    "name",
    "type",
    "podTemplate",
    "runtimeVersionOverride",
    "replicas",
    "minAvailable",
    "multinode",
    "sharedMemorySize",
    "modelRef",
    "scalingAdapter",
    "eppConfig",
    "compilationCache",
    "globalDynamoNamespace",
    "frontendSidecar",
    "experimental",
];
pub(super) const COMPONENT_REFUSED: [&str; 3] = ["roles", "dynamoSidecar", "topologyConstraint"];

/// Of what is experimental, a checkpoint only makes a start faster: without the operator it is an ordinary one.
const EXPERIMENTAL: [&str; 1] = ["checkpoint"];
const EXPERIMENTAL_REFUSED: [&str; 3] = ["gpuMemoryService", "failover", "grove"];

pub(super) fn graph(reader: &mut Reader<'_>, spec: &Value, graph: &mut Graph) {
    reader.only(&[], spec, &GRAPH, &super::GRAPH_REFUSED);
    graph.env = list(spec.get("env"));
    graph.components.extend(components(spec).map(|(path, written)| component(reader, path, written)));
}

/// Returns the components as they are written, each with its path.
pub(super) fn components(spec: &Value) -> impl Iterator<Item = (Vec<String>, &Value)> {
    let path = |index: usize| vec!["components".to_owned(), index.to_string()];
    items(&spec["components"]).enumerate().map(move |(index, written)| (path(index), written))
}

/// Reads a component that stands alone.
pub(super) fn alone(reader: &mut Reader<'_>, mut spec: Value, graph: &mut Graph) {
    graph.env = list(spec.get("env"));
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("env");
        fields.entry("name").or_insert_with(|| graph.name.clone().into());
    }
    graph.components.push(component(reader, Vec::new(), &spec));
}

/// Reads what a component must have in every mode: a name, and a main container where there is a template.
pub(super) fn component_basics(reader: &mut Reader<'_>, path: Vec<String>, written: &Value) -> Component {
    let name = text(&written["name"]).unwrap_or_default();
    let template = fields(&written["podTemplate"]);
    let main = items(&written["podTemplate"]["spec"]["containers"]).find(|container| container["name"] == MAIN);
    if !template.is_empty() && main.is_none() {
        let path: Vec<String> = path.iter().cloned().chain(["podTemplate".to_owned()]).collect();
        let problem = reader.problem(&path, format!("component {name:?} has no container {MAIN:?} in its podTemplate"));
        let hint = "the container that runs the component must have that name";
        reader.problems.push(problem.hint(hint));
    }
    Component { name, path, main: main.map(fields).unwrap_or_default(), ..Component::default() }
}

fn component(reader: &mut Reader<'_>, path: Vec<String>, written: &Value) -> Component {
    reader.only(&path, written, &COMPONENT, &COMPONENT_REFUSED);
    let mut component = component_basics(reader, path, written);
    common(reader, &mut component, written, "type");
    component.sub_type = component.kind.is_phase().then(|| component.kind_text.clone());
    let path: Vec<String> = component.path.iter().cloned().chain(["experimental".to_owned()]).collect();
    reader.only(&path, &written["experimental"], &EXPERIMENTAL, &EXPERIMENTAL_REFUSED);
    component.sidecar = text(&written["frontendSidecar"]);
    component.scaled = !written["scalingAdapter"].is_null();
    component.shared_memory = match &written["sharedMemorySize"] {
        Value::String(size) => Some(size.clone()),
        Value::Number(size) => Some(size.to_string()),
        _ => None,
    };
    let template = &written["podTemplate"];
    component.labels = texts(&template["metadata"]["labels"]);
    component.annotations = texts(&template["metadata"]["annotations"]);
    component.pod = fields(&template["spec"]);
    let others = items(&template["spec"]["containers"]).filter(|container| container["name"] != MAIN);
    component.pod.insert("containers".to_owned(), others.cloned().collect());
    cache(&mut component, &written["compilationCache"]);
    component
}

/// A compilation cache is a claim that is mounted.
fn cache(component: &mut Component, cache: &Value) {
    let Some(claim) = text(&cache["pvcName"]) else { return };
    // Without a path it is where vLLM has its cache, which is the only backend that uses one.
    let path = text(&cache["mountPath"]).filter(|path| !path.is_empty()).unwrap_or_else(|| VLLM_CACHE.to_owned());
    let mut mounts = list(component.main.get("volumeMounts"));
    if !mounts.iter().any(|mount| mount["mountPath"] == *path) {
        mounts.push(json!({"name": claim, "mountPath": path}));
    }
    component.main.insert("volumeMounts".to_owned(), mounts.into());
    component.mounted_claims.push(claim);
    component.cache = Some(path);
}
