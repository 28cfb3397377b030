//! The status that controllers report in a simulation: all is well once the newest generation was brought about.

use gatewright_engine::kinds::has_pods;
use gatewright_engine::object::ObjectId;
use gatewright_engine::spec::GATEWAY_API;
use serde_json::{Value, json};

/// Tells whether a controller brings about what objects like this one say, which takes a while.
pub(super) fn has_controller(id: &ObjectId) -> bool {
    is_workload(id) || is_accepted(id) || id.is_a("", "Service")
}

fn is_workload(id: &ObjectId) -> bool {
    id.group == "apps" && has_pods(&id.kind)
}

fn is_accepted(id: &ObjectId) -> bool {
    id.group == GATEWAY_API && ["Gateway", "GatewayClass"].contains(&id.kind.as_str())
}

/// Returns the status of an object whose controller has brought about this generation, zero for none; `None` if nobody
/// reports on objects like it.
pub(super) fn status(id: &ObjectId, body: &Value, observed: i64) -> Option<Value> {
    let pods = if observed > 0 { body.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1) } else { 0 };
    if is_workload(id) {
        let available = if observed > 0 { "True" } else { "False" };
        return Some(json!({
            "observedGeneration": observed, "replicas": pods, "updatedReplicas": pods, "readyReplicas": pods,
            "availableReplicas": pods, "currentNumberScheduled": pods, "desiredNumberScheduled": pods,
            "updatedNumberScheduled": pods, "numberReady": pods, "numberAvailable": pods,
            "conditions": [{"type": "Available", "status": available}],
        }));
    }
    if observed == 0 {
        return None;
    }
    if is_accepted(id) {
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "observedGeneration": observed});
        return Some(json!({"conditions": [condition("Accepted"), condition("Programmed")]}));
    }
    let is_balanced = id.is_a("", "Service") && body.pointer("/spec/type").is_some_and(|kind| kind == "LoadBalancer");
    is_balanced.then(|| json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}))
}
