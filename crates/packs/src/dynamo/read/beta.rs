//! `v1beta1`: components are a list, and each has the template of its pods.

use serde_json::{Value, json};

use super::texts::{by_name, texts};
use super::{MAIN, Reader, common, fields, items, text};
use crate::dynamo::model::{Component, Fields, Graph, Type};

const GRAPH: [&str; 7] =
    ["annotations", "labels", "priorityClassName", "components", "env", "backendFramework", "restart"];
const GRAPH_REFUSED: [&str; 3] = ["topologyConstraint", "experimental", "providerOverride"];

const COMPONENT: [&str; 13] = [
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
];
const COMPONENT_REFUSED: [&str; 5] =
    ["roles", "frontendSidecar", "dynamoSidecar", "topologyConstraint", "experimental"];

pub(super) fn graph(reader: &mut Reader<'_>, spec: &Fields, graph: &mut Graph) {
    reader.only(&[], spec, &GRAPH, &GRAPH_REFUSED);
    graph.labels = texts(&spec.get("labels").cloned().unwrap_or_default());
    graph.annotations = texts(&spec.get("annotations").cloned().unwrap_or_default());
    graph.priority_class = text(spec, "priorityClassName");
    graph.backend = text(spec, "backendFramework");
    graph.env = items(spec, "env");
    graph.restart = spec.get("restart").and_then(|restart| restart["id"].as_str()).map(str::to_owned);
    for (index, written) in items(spec, "components").iter().enumerate() {
        let path = vec!["components".to_owned(), index.to_string()];
        let component = component(reader, path, &fields(written));
        graph.components.push(component);
    }
}

/// Reads a component that stands alone.
pub(super) fn alone(reader: &mut Reader<'_>, mut spec: Fields, graph: &mut Graph) {
    graph.backend = spec.remove("backendFramework").and_then(|backend| Some(backend.as_str()?.to_owned()));
    graph.env = items(&spec, "env");
    spec.remove("env");
    spec.entry("name").or_insert_with(|| graph.name.clone().into());
    let component = component(reader, Vec::new(), &spec);
    graph.components.push(component);
}

/// Reads what a component must have in every mode: a name, and a main container where there is a template.
pub(super) fn component_basics(reader: &mut Reader<'_>, path: Vec<String>, written: &Fields) -> Component {
    let name = text(written, "name").unwrap_or_default();
    let template = written.get("podTemplate").map(fields).unwrap_or_default();
    let containers = items(&fields(&template.get("spec").cloned().unwrap_or_default()), "containers");
    let is_main = |container: &Value| container["name"] == MAIN;
    if !template.is_empty() && !containers.iter().any(is_main) {
        let path: Vec<String> = path.iter().cloned().chain(["podTemplate".to_owned()]).collect();
        let problem = reader.problem(&path, format!("component {name:?} has no container {MAIN:?} in its podTemplate"));
        let hint = "the container that runs the component must have that name";
        reader.problems.push(problem.hint(hint));
    }
    let main = containers.iter().find(|container| is_main(container)).map(fields).unwrap_or_default();
    Component { name, path, main, ..Component::default() }
}

fn component(reader: &mut Reader<'_>, path: Vec<String>, written: &Fields) -> Component {
    reader.only(&path, written, &COMPONENT, &COMPONENT_REFUSED);
    let mut component = component_basics(reader, path, written);
    common(reader, &mut component, written);
    component.kind_text = text(written, "type").unwrap_or_default();
    component.kind = Type::of(&component.kind_text);
    component.global = written.get("globalDynamoNamespace") == Some(&true.into());
    component.scaled = written.get("scalingAdapter").is_some_and(|adapter| !adapter.is_null());
    component.shared_memory = match written.get("sharedMemorySize") {
        Some(Value::String(size)) => Some(size.clone()),
        Some(Value::Number(size)) => Some(size.to_string()),
        _ => None,
    };
    let template = written.get("podTemplate").cloned().unwrap_or_default();
    component.labels = texts(&template["metadata"]["labels"]);
    component.annotations = texts(&template["metadata"]["annotations"]);
    let mut pod = fields(&template["spec"]);
    let others = items(&pod, "containers").into_iter().filter(|container| container["name"] != MAIN);
    let others: Vec<Value> = others.collect();
    pod.insert("containers".to_owned(), others.into());
    component.pod = pod;
    cache(&mut component, written);
    component
}

/// A compilation cache is a claim that is mounted.
fn cache(component: &mut Component, written: &Fields) {
    let Some(cache) = written.get("compilationCache").map(fields) else { return };
    let (Some(claim), Some(path)) = (text(&cache, "pvcName"), text(&cache, "mountPath")) else { return };
    let mount = json!({"name": claim, "mountPath": path});
    let mounts = by_name(items(&component.main, "volumeMounts"), vec![mount]);
    component.main.insert("volumeMounts".to_owned(), mounts.into());
    component.mounted_claims.push(claim);
    component.cache = Some(path);
}
