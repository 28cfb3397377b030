//! Values of the wrong type, said where they stand: what Kubernetes or the CRD would refuse, nothing may pass over.

#![expect(
    clippy::struct_field_names,
    clippy::zero_sized_map_values,
    reason = "names and forms are those of the operator"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec, Probe, ResourceRequirements};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{ALPHA, Reader, beta};
use crate::dynamo::model::fields;
use gatewright_engine::pack::gateway::Map as Texts;

/// The parts of a component in both versions whose types are not looked at where they are read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Component {
    replicas: Option<u32>,
    min_available: Option<u32>,
    multinode: Option<Multinode>,
    component_type: Option<String>,
    sub_component_type: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    service_name: Option<String>,
    dynamo_namespace: Option<String>,
    global_dynamo_namespace: Option<bool>,
    labels: Option<Texts>,
    annotations: Option<Texts>,
    env_from_secret: Option<String>,
    model_ref: Option<ModelRef>,
    extra_pod_metadata: Option<Metadata>,
    envs: Option<Vec<EnvVar>>,
    liveness_probe: Option<Probe>,
    readiness_probe: Option<Probe>,
    volume_mounts: Option<Vec<Mount>>,
    pod_template: Option<PodTemplateSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Multinode {
    node_count: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelRef {
    name: Option<String>,
    revision: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: Option<Texts>,
    annotations: Option<Texts>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mount {
    name: Option<String>,
    mount_point: Option<String>,
    use_as_compilation_cache: Option<bool>,
}

/// The parts of a graph.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Graph {
    labels: Option<Texts>,
    annotations: Option<Texts>,
    priority_class_name: Option<String>,
    backend_framework: Option<String>,
    envs: Option<Vec<EnvVar>>,
    env: Option<Vec<EnvVar>>,
    services: Option<BTreeMap<String, IgnoredAny>>,
    components: Option<Vec<IgnoredAny>>,
}

/// Looks at the types of a graph, or of a component that stands alone.
pub(super) fn check(reader: &mut Reader<'_>, spec: &Value, is_alone: bool) {
    if is_alone {
        return component(reader, &[], spec);
    }
    reader.typed_at::<Graph>(&[], spec);
    if reader.document.gvk.version == ALPHA {
        for (name, written) in fields(&spec["services"]) {
            component(reader, &["services".to_owned(), name], &written);
        }
        return;
    }
    for (path, written) in beta::components(spec) {
        component(reader, &path, written);
    }
}

fn component(reader: &mut Reader<'_>, path: &[String], written: &Value) {
    let written = with_quantities(written.clone());
    reader.typed_at::<Component>(path, &written);
    let below = |field: &str| -> Vec<String> { path.iter().cloned().chain([field.to_owned()]).collect() };
    let mut pod = fields(&written["extraPodSpec"]);
    let main = pod.remove("mainContainer").unwrap_or_default();
    // A pod that is written in parts has its containers elsewhere.
    reader.typed_at::<PodSpec>(&below("extraPodSpec"), &pod.into());
    let mut inner = below("extraPodSpec");
    inner.push("mainContainer".to_owned());
    reader.typed_at::<Container>(&inner, &main);
    reader.typed_at::<ResourceRequirements>(&below("resources"), &plain_resources(&written["resources"]));
}

/// Quantities of `v1alpha1` without the fields that those of Kubernetes do not have.
fn plain_resources(written: &Value) -> Value {
    let mut written = written.clone();
    for part in ["requests", "limits"] {
        written.get_mut(part).and_then(Value::as_object_mut).map(|quantities| quantities.remove("custom"));
    }
    written
}

/// Kubernetes reads a number as a quantity, too.
fn with_quantities(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(field, value)| {
                let is_quantities = ["limits", "requests", "overhead"].contains(&field.as_str());
                let value = match with_quantities(value) {
                    Value::Number(size) if field == "sizeLimit" => size.to_string().into(),
                    Value::Object(quantities) if is_quantities => {
                        Value::Object(quantities.into_iter().map(as_text).collect())
                    }
                    other => other,
                };
                (field, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(with_quantities).collect(),
        other => other,
    }
}

fn as_text((name, quantity): (String, Value)) -> (String, Value) {
    match quantity {
        Value::Number(number) => (name, number.to_string().into()),
        other => (name, other),
    }
}
