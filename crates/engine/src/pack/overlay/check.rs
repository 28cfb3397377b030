//! Checks of what an overlay must not say.

use serde_json::Value;

use super::OverlayParameter;
use crate::marks::OWN_PREFIX;
use crate::object::Object;
use crate::yaml::{Content, Node, Position};

/// Kinds that run the pods of a unit; it has one of them.
pub(super) const WORKLOADS: [&str; 2] = ["Deployment", "DaemonSet"];

/// Returns everything that is wrong with an overlay for an object, as far as it can be seen without patching.
pub(super) fn faults(overlay: &Node, object: &Object) -> Vec<(Position, String)> {
    let mut faults = Vec::new();
    let metadata = overlay.get("metadata");
    let others = |node: &Node, known: [&str; 2]| {
        let fields: Vec<_> = node.fields().filter(|(name, _)| !known.contains(name)).collect();
        fields.into_iter().map(|(name, field)| (field.key, name.to_owned())).collect::<Vec<_>>()
    };
    for (position, name) in others(overlay, ["metadata", "spec"]) {
        faults.push((position, format!("has {name:?}, but only metadata and spec of an object can be changed")));
    }
    for (position, name) in metadata.map(|node| others(node, ["labels", "annotations"])).unwrap_or_default() {
        faults.push((position, format!("has metadata.{name}, but only labels and annotations can be changed there")));
    }
    for (key, field) in metadata.into_iter().flat_map(Node::fields).flat_map(|(_, field)| field.node.fields()) {
        if key.starts_with(OWN_PREFIX) {
            faults.push((field.key, format!("sets {key:?}, and all below {OWN_PREFIX} is ours")));
        } else if !matches!(field.node.content, Content::String(_) | Content::Null) {
            faults.push((field.node.position, format!("sets {key:?} to something else than text")));
        }
    }
    if let Some(spec) = overlay.get("spec") {
        let kind = &object.id().kind;
        match spec.content {
            Content::Null => {}
            Content::Map(_) if object.body().get("spec").is_some() => {}
            Content::Map(_) => faults.push((spec.position, format!("has a spec, but a {kind} has none"))),
            _ => faults.push((spec.position, "has a spec that is no mapping".to_owned())),
        }
    }
    faults
}

/// Tells whether a patch has changed which pods a workload counts as its own: an API server would refuse that, or worse,
/// take it for another workload's.
pub(super) fn is_other_selector(before: &Object, after: &Value) -> bool {
    WORKLOADS.contains(&before.id().kind.as_str()) && before.body()["spec"]["selector"] != after["spec"]["selector"]
}

/// Says that there is nothing for an overlay to change; the unit may run its pods in another way.
pub(super) fn no_object(overlay: &OverlayParameter, workload: Option<&str>) -> String {
    match workload.filter(|_| WORKLOADS.contains(&overlay.kind.as_str())) {
        Some(workload) => format!("is for a {}, but this Gateway runs as a {workload}", overlay.kind),
        None => format!("is for a {}, but this Gateway has none", overlay.kind),
    }
}
