//! Objects that exist because an overlay speaks of them.

use serde_json::{Value, json};

use super::check::WORKLOADS;
use crate::object::Object;

/// The kinds that can be made.
pub(in crate::pack) const MADE: [&str; 3] = ["HorizontalPodAutoscaler", "PodDisruptionBudget", "VerticalPodAutoscaler"];

/// Returns the workload of a unit.
pub(super) fn workload(objects: &[Object]) -> Option<&Object> {
    WORKLOADS.into_iter().find_map(|kind| objects.iter().find(|object| object.id().kind == kind))
}

/// Makes an object of a kind for a workload: with its name, its labels, and a spec that refers to it. Says why if there
/// is none to be made.
pub(super) fn create(kind: &str, workload: Option<&Object>) -> Result<Object, String> {
    let workload = workload.ok_or_else(|| format!("is about a {kind}, but there is nothing that it could be for"))?;
    let body = workload.body();
    let target = json!({"apiVersion": body["apiVersion"], "kind": body["kind"], "name": body["metadata"]["name"]});
    let (api_version, spec) = match kind {
        "PodDisruptionBudget" => ("policy/v1", json!({"selector": body["spec"]["selector"]})),
        "HorizontalPodAutoscaler" if workload.id().kind == "DaemonSet" => {
            return Err(
                "is for a Deployment, but this Gateway runs as a DaemonSet, whose size is that of the cluster".into()
            );
        }
        "HorizontalPodAutoscaler" => ("autoscaling/v2", json!({"scaleTargetRef": target})),
        "VerticalPodAutoscaler" => ("autoscaling.k8s.io/v1", json!({"targetRef": target})),
        _ => return Err(format!("is about a {kind}, which this pack does not know how to make")),
    };
    let mut made = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": body["metadata"]["name"]},
        "spec": spec,
    });
    if let labels @ Value::Object(_) = &body["metadata"]["labels"] {
        made["metadata"]["labels"] = labels.clone();
    }
    Object::new(made).map_err(|error| error.to_string())
}
