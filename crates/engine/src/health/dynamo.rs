//! The state of what NVIDIA Dynamo's operator looks after, by the conditions and phases that it writes.

use serde_json::Value;

use super::{Health, condition_of, message, number};
use crate::object::group_kind;

/// The API group of Dynamo.
const GROUP: &str = "nvidia.com";

/// Reads the state of an object of Dynamo, or returns `None` for any other.
pub(super) fn health(body: &Value) -> Option<Health> {
    let (group, kind) = group_kind(body);
    if group != GROUP {
        return None;
    }
    match kind {
        "DynamoGraphDeployment" => Some(ready(body, &["Ready"])),
        "DynamoComponentDeployment" => Some(ready(body, &["Available", "DynamoComponentReady"])),
        "DynamoModel" => Some(ready(body, &["Ready", "EndpointsReady"])),
        "DynamoGraphDeploymentRequest" => Some(request(body)),
        _ => None,
    }
}

/// The first of these conditions that is there counts, and only for the newest generation.
fn ready(body: &Value, conditions: &[&str]) -> Health {
    let said = conditions.iter().find_map(|kind| condition_of(body, kind));
    let state = body["status"]["state"].as_str().unwrap_or_default();
    let why = || said.map_or_else(|| format!("its state is {state:?}"), |said| message(said, "it is not ready yet"));
    if !is_newest(body, said) {
        return Health::InProgress("its operator has not seen the change yet".to_owned());
    }
    if state == "failed" {
        return Health::Failed(why());
    }
    match said {
        Some(said) if said["status"] == "True" => Health::Current,
        Some(_) => Health::InProgress(why()),
        None => Health::InProgress("its operator has not said anything about it yet".to_owned()),
    }
}

/// Not every release writes which generation a condition is about; where none is said, the condition counts.
fn is_newest(body: &Value, said: Option<&Value>) -> bool {
    let of_condition = said.and_then(|said| said["observedGeneration"].as_i64());
    let of_status = body.pointer("/status/observedGeneration").and_then(Value::as_i64);
    let observed = of_status.max(of_condition);
    observed.is_none_or(|observed| observed >= number(body, "/metadata/generation"))
}

/// A request is done when the graph that it has found is there, or, where a person is to apply it, when it is found.
fn request(body: &Value) -> Health {
    let phase = body["status"]["phase"].as_str().unwrap_or("Pending");
    if !is_newest(body, None) {
        return Health::InProgress("its operator has not seen the change yet".to_owned());
    }
    let said = condition_of(body, "Succeeded").map(|said| message(said, "")).filter(|text| !text.is_empty());
    match phase {
        "Deployed" => Health::Current,
        "Ready" if body["spec"]["autoApply"] == false => Health::Current,
        "Failed" => Health::Failed(said.unwrap_or_else(|| "its profiling has failed".to_owned())),
        phase => Health::InProgress(format!("its phase is {phase}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Readiness, health};
    use serde_json::{Value, json};

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(kind: &str, spec: Value, status: Value, expected: &str) {
        let body = json!({"apiVersion": "nvidia.com/v1alpha1", "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status});
        assert_eq!(health(&body, Readiness::default()).to_string(), expected, "{body}");
    }

    fn condition(kind: &str, status: &str, generation: Option<u8>) -> Value {
        json!([{"type": kind, "status": status, "message": "m", "observedGeneration": generation}])
    }

    #[test]
    fn a_graph_is_current_when_its_newest_generation_is_ready() {
        let graph = |status: Value, expected: &str| check("DynamoGraphDeployment", json!({}), status, expected);
        graph(json!({}), "its operator has not said anything about it yet");
        graph(json!({"conditions": condition("Ready", "True", Some(1))}), "its operator has not seen the change yet");
        graph(json!({"observedGeneration": 2, "conditions": condition("Ready", "False", None)}), "m");
        graph(json!({"observedGeneration": 2, "conditions": condition("Ready", "True", None)}), "current");
        graph(json!({"state": "failed", "conditions": condition("Ready", "False", Some(2))}), "m");
        graph(json!({"state": "failed"}), "its state is \"failed\"");
    }

    #[test]
    fn a_component_and_a_model_have_conditions_of_their_own() {
        check(
            "DynamoComponentDeployment",
            json!({}),
            json!({"conditions": condition("Available", "True", None)}),
            "current",
        );
        check("DynamoModel", json!({}), json!({"conditions": condition("EndpointsReady", "False", None)}), "m");
    }

    #[test]
    fn a_request_goes_through_phases() {
        let request = |spec: Value, phase: &str, expected: &str| {
            check("DynamoGraphDeploymentRequest", spec, json!({"phase": phase}), expected);
        };
        request(json!({}), "Profiling", "its phase is Profiling");
        request(json!({"autoApply": true}), "Ready", "its phase is Ready");
        request(json!({"autoApply": false}), "Ready", "current");
        request(json!({}), "Deployed", "current");
        request(json!({}), "Failed", "its profiling has failed");
    }
}
