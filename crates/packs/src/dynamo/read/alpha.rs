//! `v1alpha1`: components are a mapping, and a pod is put together from many fields.

use serde_json::{Value, json};

use super::texts::{by_name, texts};
use super::{MAIN, Reader, common, fields, items, text};
use crate::dynamo::model::{Component, Fields, Graph, Type};

const GRAPH: [&str; 8] =
    ["annotations", "labels", "priorityClassName", "pvcs", "services", "envs", "backendFramework", "restart"];
const GRAPH_REFUSED: [&str; 3] = ["topologyConstraint", "experimental", "providerOverride"];

const COMPONENT: [&str; 25] = [
    "annotations",
    "labels",
    "serviceName",
    "componentType",
    "subComponentType",
    "dynamoNamespace",
    "globalDynamoNamespace",
    "resources",
    "autoscaling",
    "envs",
    "envFromSecret",
    "volumeMounts",
    "ingress",
    "modelRef",
    "sharedMemory",
    "extraPodMetadata",
    "extraPodSpec",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "replicas",
    "multinode",
    "scalingAdapter",
    "eppConfig",
    "minAvailable",
];
const COMPONENT_REFUSED: [&str; 4] = ["checkpoint", "gpuMemoryService", "failover", "topologyConstraint"];

pub(super) fn graph(reader: &mut Reader<'_>, spec: &Fields, graph: &mut Graph) {
    reader.only(&[], spec, &GRAPH, &GRAPH_REFUSED);
    graph.labels = texts(&spec.get("labels").cloned().unwrap_or_default());
    graph.annotations = texts(&spec.get("annotations").cloned().unwrap_or_default());
    graph.priority_class = text(spec, "priorityClassName");
    graph.backend = text(spec, "backendFramework");
    graph.env = items(spec, "envs");
    graph.claims = spec.get("pvcs").map(|claims| reader.typed(&[], "pvcs", claims)).unwrap_or_default();
    graph.restart = spec.get("restart").and_then(|restart| restart["id"].as_str()).map(str::to_owned);
    for (name, service) in spec.get("services").map(fields).unwrap_or_default() {
        let path = vec!["services".to_owned(), name.clone()];
        let component = component(reader, name, path, &fields(&service));
        graph.components.push(component);
    }
}

/// Reads a component that stands alone.
pub(super) fn alone(reader: &mut Reader<'_>, mut spec: Fields, graph: &mut Graph) {
    graph.backend = spec.remove("backendFramework").and_then(|backend| Some(backend.as_str()?.to_owned()));
    let name = text(&spec, "serviceName").unwrap_or_else(|| graph.name.clone());
    let component = component(reader, name, Vec::new(), &spec);
    graph.components.push(component);
}

fn component(reader: &mut Reader<'_>, name: String, path: Vec<String>, written: &Fields) -> Component {
    reader.only(&path, written, &COMPONENT, &COMPONENT_REFUSED);
    let part = |field: &str| written.get(field).cloned().unwrap_or_default();
    let mut component = Component { name, path, ..Component::default() };
    common(reader, &mut component, written);
    component.kind_text = text(written, "componentType").unwrap_or_default();
    component.kind = Type::of(&component.kind_text);
    component.sub_type = text(written, "subComponentType");
    component.global = part("globalDynamoNamespace") == true;
    component.scaled = part("scalingAdapter")["enabled"] == true;
    let metadata = part("extraPodMetadata");
    component.labels = texts(&part("labels"));
    component.labels.extend(texts(&metadata["labels"]));
    component.annotations = texts(&part("annotations"));
    component.annotations.extend(texts(&metadata["annotations"]));
    component.ingress = written.get("ingress").map(|ingress| reader.typed(&component.path, "ingress", ingress));
    component.shared_memory = match part("sharedMemory") {
        memory if memory["disabled"] == true => Some("0".to_owned()),
        memory => memory["size"].as_str().map(str::to_owned),
    };
    mounts(&mut component, &items(written, "volumeMounts"));
    pod(&mut component, written);
    component
}

/// Claims are mounted by their name, without a volume.
fn mounts(component: &mut Component, mounts: &[Value]) {
    let mut all = Vec::new();
    for mount in mounts {
        let (Some(claim), is_cache) = (mount["name"].as_str(), mount["useAsCompilationCache"] == true) else {
            continue;
        };
        // Without a path it is where vLLM has its cache, which is the only backend that uses one.
        let path = mount["mountPoint"].as_str().filter(|path| !path.is_empty()).unwrap_or(VLLM_CACHE);
        if is_cache {
            component.cache = Some(path.to_owned());
        }
        component.mounted_claims.push(claim.to_owned());
        all.push(json!({"name": claim, "mountPath": path}));
    }
    component.main.insert("volumeMounts".to_owned(), all.into());
}

/// The folder in which the images of vLLM have its cache.
const VLLM_CACHE: &str = concat!("/ro", "ot/.cache/vllm");

fn pod(component: &mut Component, written: &Fields) {
    let mut pod = written.get("extraPodSpec").map(fields).unwrap_or_default();
    let mut main = pod.remove("mainContainer").as_ref().map(fields).unwrap_or_default();
    main.insert("name".to_owned(), MAIN.into());
    let env = by_name(items(written, "envs"), items(&main, "env"));
    let mut mounts = items(&component.main, "volumeMounts");
    mounts.extend(items(&main, "volumeMounts"));
    let mut sources = items(&main, "envFrom");
    if let Some(secret) = text(written, "envFromSecret") {
        sources.push(json!({"secretRef": {"name": secret}}));
    }
    for (field, list) in [("env", env), ("volumeMounts", mounts), ("envFrom", sources)] {
        if !list.is_empty() {
            main.insert(field.to_owned(), list.into());
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(value) = written.get(probe) {
            main.insert(probe.to_owned(), value.clone());
        }
    }
    if let Some(resources) = written.get("resources") {
        main.insert("resources".to_owned(), self::resources(resources));
    }
    (component.pod, component.main) = (pod, main);
}

/// Quantities as pods have them: a GPU has a name of its own, and what is custom is no different from the rest.
fn resources(written: &Value) -> Value {
    let mut resources = Fields::new();
    for part in ["requests", "limits"] {
        let Some(quantities) = written[part].as_object() else { continue };
        let device = quantities.get("gpuType").and_then(Value::as_str).unwrap_or("nvidia.com/gpu");
        let mut named = quantities.get("custom").map(fields).unwrap_or_default();
        for (field, quantity) in quantities {
            match field.as_str() {
                "custom" | "gpuType" => {}
                "gpu" => drop(named.insert(device.to_owned(), quantity.clone())),
                _ => drop(named.insert(field.clone(), quantity.clone())),
            }
        }
        resources.insert(part.to_owned(), named.into());
    }
    if let Some(claims) = written.get("claims") {
        resources.insert("claims".to_owned(), claims.clone());
    }
    resources.into()
}
