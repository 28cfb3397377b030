//! A document as it goes to Dynamo's operator.
//!
//! It is as it was written, except for what others own: replicas that a scaling adapter sets, a restart that somebody
//! asks for on a cluster, and annotations by which the operator remembers things.

use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use serde_json::Value;

use super::is_graph;
use super::read::ALPHA;
use super::settings::{Restart, Settings};
use crate::problems;

/// Annotations that the operator writes. In a source they stand because a graph was copied from a cluster; on another
/// one they would name a rollout that there never was, or a provider that it does not have.
const WRITTEN_BY_OPERATOR: [&str; 4] = [
    "nvidia.com/current-worker-hash",
    "nvidia.com/current-worker-hash-v2",
    "nvidia.com/dynamo-operator-origin-version",
    "nvidia.com/workload-provider",
];

/// Returns the document as it is applied.
pub(super) fn document(document: &Document, settings: &Settings) -> Value {
    let mut body = document.root.to_value();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.retain(|key, _| !WRITTEN_BY_OPERATOR.contains(&key.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if !is_graph(&document.id.kind) {
        return body;
    }
    if settings.restart == Restart::Drop {
        body["spec"].as_object_mut().map(|spec| spec.remove("restart"));
    }
    let is_alpha = document.gvk.version == ALPHA;
    for component in components(&mut body).into_iter().filter(|component| is_scaled(component, is_alpha)) {
        component.as_object_mut().map(|fields| fields.remove("replicas"));
    }
    body
}

/// Returns the components of a graph, whichever version it is written in, or the one that stands alone.
fn components(body: &mut Value) -> Vec<&mut Value> {
    let is_alone = body["kind"] == "DynamoComponentDeployment";
    let Some(spec) = body.get_mut("spec") else { return Vec::new() };
    if is_alone {
        return vec![spec];
    }
    let Some(spec) = spec.as_object_mut() else { return Vec::new() };
    let mut all = Vec::new();
    for (field, value) in spec {
        match (field.as_str(), value) {
            ("services", Value::Object(services)) => all.extend(services.values_mut()),
            ("components", Value::Array(components)) => all.extend(components),
            _ => {}
        }
    }
    all
}

/// Tells whether a scaling adapter owns the replicas: in `v1alpha1` it is switched on, later it is there.
fn is_scaled(component: &Value, is_alpha: bool) -> bool {
    let adapter = &component["scalingAdapter"];
    if is_alpha { adapter["enabled"] == true } else { adapter.is_object() }
}

/// Says what of a document is not done as it is written.
pub(super) fn warnings(document: &Document, settings: &Settings, is_expanded: bool) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let mut warning = |path: &[&str], message: &str, hint: &str| {
        warnings.push(problems::warning(document, path, message).hint(hint));
    };
    let is_restarted = document.root.at(["spec", "restart"]).is_some();
    if is_graph(&document.id.kind) && is_restarted && !is_expanded && settings.restart == Restart::Drop {
        warning(
            &["spec", "restart"],
            "spec.restart is left out: a graph that has it cannot be created, as on a cluster that is built again",
            "restart it on its cluster, where the field is nobody's; packs.dynamo.restart: keep applies it",
        );
    }
    if !is_expanded {
        return warnings;
    }
    let mut body = document.root.to_value();
    let components = components(&mut body);
    let is_alpha = document.gvk.version == ALPHA;
    let is_planner = |component: &Value| component["componentType"] == "planner" || component["type"] == "planner";
    if components.iter().any(|component| is_scaled(component, is_alpha)) {
        warning(
            &["spec"],
            "a scalingAdapter works through Dynamo's operator; replicas are applied as they are written",
            "let an autoscaler scale what is rendered, and leave its replicas out with ignore in the settings of the sync",
        );
    }
    if components.iter().any(|component| is_planner(component)) {
        warning(
            &["spec"],
            "a planner scales a graph through Dynamo's operator, and there is none: it will change nothing",
            "leave the planner out, or run the operator",
        );
    }
    warnings
}
