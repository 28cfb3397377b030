//! `v1alpha1`: components are a mapping, and a pod is put together from many fields.

use serde_json::{Value, json};

use super::{MAIN, Reader, common, text};
use crate::dynamo::model::{Component, Fields, Graph, Type, by_name, fields, list};
use crate::dynamo::pod::is_zero;
use crate::json::{items, layered, said, texts};

pub(super) const GRAPH: [&str; 8] =
    ["annotations", "labels", "priorityClassName", "pvcs", "services", "envs", "backendFramework", "restart"];

pub(super) const COMPONENT: [&str; 27] = [
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
    "frontendSidecar",
    "checkpoint",
];
pub(super) const COMPONENT_REFUSED: [&str; 3] = ["gpuMemoryService", "failover", "topologyConstraint"];

pub(super) fn graph(reader: &mut Reader<'_>, spec: &Value, graph: &mut Graph) {
    reader.only(&[], spec, &GRAPH, &super::GRAPH_REFUSED);
    graph.env = list(spec.get("envs"));
    graph.claims = reader.typed(&[], "pvcs", &spec["pvcs"]);
    for (name, service) in spec["services"].as_object().into_iter().flatten() {
        let path = vec!["services".to_owned(), name.clone()];
        graph.components.push(component(reader, name.clone(), path, service));
    }
}

/// Reads a component that stands alone.
pub(super) fn alone(reader: &mut Reader<'_>, spec: &Value, graph: &mut Graph) {
    let name = text(&spec["serviceName"]).unwrap_or_else(|| graph.name.clone());
    graph.components.push(component(reader, name, Vec::new(), spec));
}

fn component(reader: &mut Reader<'_>, name: String, path: Vec<String>, written: &Value) -> Component {
    reader.only(&path, &without_what_is_off(written), &COMPONENT, &COMPONENT_REFUSED);
    let mut component = Component { name, path, ..Component::default() };
    common(reader, &mut component, written, "componentType");
    component.sub_type = text(&written["subComponentType"]);
    // A worker for one of the two phases is what later versions call by the name of the phase.
    if component.kind == Type::Worker
        && let Some(phase) = component.sub_type.clone().filter(|phase| Type::of(phase).is_phase())
    {
        component.kind = Type::of(&phase);
        component.kind_text = phase;
    }
    component.scaled = written["scalingAdapter"]["enabled"] == true;
    let metadata = &written["extraPodMetadata"];
    component.labels = layered([&texts(&written["labels"]), &texts(&metadata["labels"])]);
    component.annotations = layered([&texts(&written["annotations"]), &texts(&metadata["annotations"])]);
    component.ingress = written.get("ingress").map(|ingress| reader.typed(&component.path, "ingress", ingress));
    component.shared_memory = match &written["sharedMemory"] {
        memory if memory["disabled"] == true => Some("0".to_owned()),
        // Of this version a size of zero says nothing.
        memory => text(&memory["size"]).filter(|size| !is_zero(size)),
    };
    component.labelled_namespace = text(&written["dynamoNamespace"]);
    let mounts = mounts(&mut component, &written["volumeMounts"]);
    pod(&mut component, written, mounts);
    sidecar(reader, &mut component, &written["frontendSidecar"]);
    component
}

/// Features that a component switches off are not asked for.
fn without_what_is_off(written: &Value) -> Value {
    let is_off = |field: &str, value: &Value| COMPONENT_REFUSED.contains(&field) && value["enabled"] == false;
    let all = fields(written).into_iter().filter(|(field, value)| !is_off(field, value));
    Value::Object(all.collect())
}

/// Claims are mounted by their name, without a volume.
fn mounts(component: &mut Component, mounts: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for mount in items(mounts) {
        let Some(claim) = mount["name"].as_str() else { continue };
        // Without a path it is where vLLM has its cache, which is the only backend that uses one.
        let path = mount["mountPoint"].as_str().and_then(said).unwrap_or(VLLM_CACHE);
        if mount["useAsCompilationCache"] == true {
            component.cache = Some(path.to_owned());
        }
        component.mounted_claims.push(claim.to_owned());
        all.push(json!({"name": claim, "mountPath": path}));
    }
    all
}

/// A frontend beside a worker is a container of its pod.
fn sidecar(reader: &mut Reader<'_>, component: &mut Component, written: &Value) {
    if written.is_null() {
        return;
    }
    let path: Vec<String> = component.path.iter().cloned().chain(["frontendSidecar".to_owned()]).collect();
    reader.only(&path, written, &["image", "command", "args", "envFromSecret", "envs"], &[]);
    let mut container = Fields::from_iter([("name".to_owned(), SIDECAR.into())]);
    for (field, name) in [("image", "image"), ("command", "command"), ("args", "args"), ("envs", "env")] {
        container.extend(written.get(field).map(|value| (name.to_owned(), value.clone())));
    }
    let source = text(&written["envFromSecret"]).map(|secret| json!([{"secretRef": {"name": secret}}]));
    container.extend(source.map(|source| ("envFrom".to_owned(), source)));
    let mut containers = list(component.pod.get("containers"));
    containers.push(container.into());
    component.pod.insert("containers".to_owned(), containers.into());
    component.sidecar = Some(SIDECAR.to_owned());
}

/// The name of the container that later versions call by its name.
const SIDECAR: &str = "sidecar-frontend";

/// The folder in which the images of vLLM have its cache.
pub(super) const VLLM_CACHE: &str = concat!("/ro", "ot/.cache/vllm");

fn pod(component: &mut Component, written: &Value, mut mounts: Vec<Value>) {
    let mut pod = fields(&written["extraPodSpec"]);
    let mut main = pod.remove("mainContainer").as_ref().map(fields).unwrap_or_default();
    main.insert("name".to_owned(), MAIN.into());
    let env = by_name(list(written.get("envs")), list(main.get("env")));
    mounts.splice(0..0, list(main.get("volumeMounts")));
    let mut sources = list(main.get("envFrom"));
    if sources.is_empty() {
        sources.extend(text(&written["envFromSecret"]).map(|secret| json!({"secretRef": {"name": secret}})));
    }
    for (field, list) in [("env", env), ("volumeMounts", mounts), ("envFrom", sources)] {
        if !list.is_empty() {
            main.insert(field.to_owned(), list.into());
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        // What the container itself says stands over it, field by field.
        let mut all = fields(&written[probe]);
        all.extend(fields(main.get(probe).unwrap_or(&Value::Null)));
        if all.is_empty() {
            main.remove(probe);
        } else {
            main.insert(probe.to_owned(), all.into());
        }
    }
    if let Some(written) = written.get("resources") {
        let own = fields(main.get("resources").unwrap_or(&Value::Null));
        main.insert("resources".to_owned(), resources_over(resources(written), own));
    }
    (component.pod, component.main) = (pod, main);
}

/// Puts what the container itself asks for, devices for example, over what its component asks for.
fn resources_over(mut lower: Value, own: Fields) -> Value {
    for (part, value) in own {
        match (lower.get_mut(&part).and_then(Value::as_object_mut), value) {
            (Some(quantities), Value::Object(own)) => quantities.extend(own),
            (_, value) => lower[&part] = value,
        }
    }
    lower
}

/// Quantities as pods have them: a GPU has a name of its own, and what is custom is no different from the rest.
fn resources(written: &Value) -> Value {
    let mut resources = Fields::new();
    for part in ["requests", "limits"] {
        let Some(quantities) = written[part].as_object() else { continue };
        let device = quantities.get("gpuType").and_then(Value::as_str).unwrap_or("nvidia.com/gpu");
        let mut named = quantities.get("custom").map(fields).unwrap_or_default();
        for (field, quantity) in quantities.iter().filter(|(field, _)| !matches!(field.as_str(), "custom" | "gpuType"))
        {
            let name = if field == "gpu" { device } else { field };
            named.insert(name.to_owned(), quantity.clone());
        }
        resources.insert(part.to_owned(), named.into());
    }
    resources.extend(written.get("claims").map(|claims| ("claims".to_owned(), claims.clone())));
    resources.into()
}
