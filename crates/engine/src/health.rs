//! Whether an object does what it was made for, read off the object alone.
//!
//! The rules are those of kstatus for the kinds that we render: a Deployment is current when its newest generation
//! is fully rolled out and available. Of other kinds the conditions are read that many of them share, and kinds that
//! never become anything (a `ConfigMap`) are current at once. A pack may know better, and says so on the object.

mod dynamo;
pub mod pods;

use std::fmt;

use serde_json::Value;

use crate::enforce;
use crate::object::group_kind;
use crate::spec::GATEWAY_API;

/// The annotation with an expression over `object` that is true once it is what it should be.
pub const HINT: &str = "gatewright.dev/health";

/// The state of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is what it should be.
    Current,
    /// It is on the way; what is awaited.
    InProgress(String),
    /// It will not get there by itself; why.
    Failed(String),
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("current"),
            Self::InProgress(what) | Self::Failed(what) => f.write_str(what),
        }
    }
}

/// What counts as healthy beyond the rules of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A Service of type `LoadBalancer` needs an address.
    pub load_balancer: bool,
}

/// Reads the state of an object.
pub fn health(body: &Value, readiness: Readiness) -> Health {
    if body.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return Health::InProgress("it is being deleted".to_owned());
    }
    if let Some(hint) = body["metadata"]["annotations"][HINT].as_str() {
        return hinted(hint, body);
    }
    if let Some(health) = dynamo::health(body) {
        return health;
    }
    match group_kind(body) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") if !is_observed(body) => {
            Health::InProgress("its controller has not seen the change yet".to_owned())
        }
        ("apps", "Deployment") => deployment(body),
        ("apps", "StatefulSet") => replicas(body, "updatedReplicas", "readyReplicas"),
        ("apps", "DaemonSet") => daemon_set(body),
        ("", "Service") if readiness.load_balancer => load_balancer(body),
        (GATEWAY_API, "Gateway" | "GatewayClass") => is_accepted(body),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            is_true(body, "Established", "the API server does not serve it yet")
        }
        ("batch", "Job") => job(body),
        ("serving.kserve.io", "LLMInferenceService") => {
            is_ready(body, "Ready", "its operator has not said that it is ready yet")
        }
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => {
            is_ready(body, "Available", "not all of its groups are available yet")
        }
        ("inference.networking.k8s.io" | "inference.networking.x-k8s.io", "InferencePool") => pool(body),
        _ => conditions(body),
    }
}

/// Asks what a pack has said of the object.
fn hinted(hint: &str, body: &Value) -> Health {
    if body.pointer("/status/observedGeneration").is_some() && !is_observed(body) {
        return Health::InProgress("its controller has not seen the change yet".to_owned());
    }
    match enforce::holds(hint, body) {
        Ok(true) => Health::Current,
        Ok(false) => Health::InProgress(format!("it is not healthy by the rule of its pack yet: {hint}")),
        Err(error) => Health::Failed(format!("its annotation {HINT} cannot be evaluated: {error}")),
    }
}

/// A control plane says whether it takes a Gateway; addresses are another matter.
fn is_accepted(body: &Value) -> Health {
    let said = condition_of(body, "Accepted");
    let observed = said.and_then(|condition| condition["observedGeneration"].as_i64()).unwrap_or_default();
    match said {
        Some(said) if observed >= number(body, "/metadata/generation") => match said["status"].as_str() {
            Some("True") => Health::Current,
            _ => Health::InProgress(format!("it is not accepted: {}", message(said, "no reason is given"))),
        },
        _ => Health::InProgress("no control plane has accepted it yet".to_owned()),
    }
}

fn is_true(body: &Value, kind: &str, otherwise: &str) -> Health {
    match condition(body, kind, "True") {
        Some(_) => Health::Current,
        None => Health::InProgress(otherwise.to_owned()),
    }
}

/// What an operator says of its newest generation, in a condition of this kind.
fn is_ready(body: &Value, kind: &str, otherwise: &str) -> Health {
    if body.pointer("/status/observedGeneration").is_some() && !is_observed(body) {
        return Health::InProgress("its controller has not seen the change yet".to_owned());
    }
    match condition_of(body, kind) {
        Some(said) if said["status"] == "True" => Health::Current,
        Some(said) => Health::InProgress(message(said, otherwise)),
        None => Health::InProgress(otherwise.to_owned()),
    }
}

/// Each Gateway that leads to a pool says whether it can; a pool that none leads to is as it should be.
fn pool(body: &Value) -> Health {
    let parents = body.pointer("/status/parents").and_then(Value::as_array).into_iter().flatten();
    let conditions = parents.filter_map(|parent| parent["conditions"].as_array()).flatten();
    let mut refused = conditions.filter(|said| said["status"] == "False");
    let refused = refused.find(|said| said["type"] == "Accepted" || said["type"] == "ResolvedRefs");
    refused.map_or(Health::Current, |said| Health::InProgress(message(said, "a Gateway does not accept it")))
}

fn job(body: &Value) -> Health {
    match (condition(body, "Failed", "True"), condition(body, "Complete", "True")) {
        (Some(failed), _) => Health::Failed(message(failed, "it has failed")),
        (None, Some(_)) => Health::Current,
        (None, None) => Health::InProgress("it is not complete yet".to_owned()),
    }
}

/// What kinds that nobody here knows say of themselves in the usual words.
fn conditions(body: &Value) -> Health {
    if body.pointer("/status/observedGeneration").is_some() && !is_observed(body) {
        return Health::InProgress("its controller has not seen the change yet".to_owned());
    }
    if let Some(stalled) = condition(body, "Stalled", "True") {
        return Health::Failed(message(stalled, "it is stalled"));
    }
    let open = condition(body, "Reconciling", "True").or_else(|| condition(body, "Ready", "False"));
    open.map_or(Health::Current, |open| Health::InProgress(message(open, "it is not ready yet")))
}

fn is_observed(body: &Value) -> bool {
    number(body, "/status/observedGeneration") >= number(body, "/metadata/generation")
}

fn deployment(body: &Value) -> Health {
    if let Some(condition) = condition(body, "Progressing", "False") {
        return Health::Failed(message(condition, "its rollout does not progress"));
    }
    if let Some(condition) = condition(body, "ReplicaFailure", "True") {
        return Health::Failed(message(condition, "its pods cannot be made"));
    }
    let rolled_out = replicas(body, "updatedReplicas", "availableReplicas");
    if rolled_out != Health::Current {
        return rolled_out;
    }
    let surplus = number(body, "/status/replicas") - number(body, "/status/updatedReplicas");
    match condition(body, "Available", "True") {
        _ if surplus > 0 => Health::InProgress(format!("pods of the old version are still there: {surplus}")),
        None if wanted(body) > 0 => Health::InProgress("it is not available yet".to_owned()),
        _ => Health::Current,
    }
}

fn replicas(body: &Value, updated: &str, ready: &str) -> Health {
    let wanted = wanted(body);
    let count = |field: &str| number(body, &format!("/status/{field}"));
    if count(updated) < wanted {
        return Health::InProgress(format!("{} of {wanted} pods are updated", count(updated)));
    }
    if count(ready) < wanted {
        return Health::InProgress(format!("{} of {wanted} pods are ready", count(ready)));
    }
    Health::Current
}

fn daemon_set(body: &Value) -> Health {
    let wanted = number(body, "/status/desiredNumberScheduled");
    let ready = number(body, "/status/numberAvailable").min(number(body, "/status/updatedNumberScheduled"));
    if ready < wanted {
        return Health::InProgress(format!("{ready} of {wanted} pods are ready"));
    }
    Health::Current
}

fn load_balancer(body: &Value) -> Health {
    let is_load_balancer = body.pointer("/spec/type").and_then(Value::as_str) == Some("LoadBalancer");
    if is_load_balancer && addresses(body).is_empty() {
        return Health::InProgress("no load balancer has given it an address".to_owned());
    }
    Health::Current
}

/// Returns the addresses under which a Service can be reached: those of the load balancer, or of the cluster.
pub fn addresses(body: &Value) -> Vec<String> {
    let ingress = body.pointer("/status/loadBalancer/ingress").and_then(Value::as_array).into_iter().flatten();
    let given = ingress.filter_map(|ingress| ingress["hostname"].as_str().or_else(|| ingress["ip"].as_str()));
    let given: Vec<String> = given.map(str::to_owned).collect();
    if !given.is_empty() || body.pointer("/spec/type").and_then(Value::as_str) == Some("LoadBalancer") {
        return given;
    }
    let own = body.pointer("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
    own.filter_map(Value::as_str).filter(|ip| *ip != "None").map(str::to_owned).collect()
}

fn wanted(body: &Value) -> i64 {
    body.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn number(body: &Value, pointer: &str) -> i64 {
    body.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn condition<'a>(body: &'a Value, kind: &str, status: &str) -> Option<&'a Value> {
    let conditions = body.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == status)
}

fn condition_of<'a>(body: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = body.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

fn message(condition: &Value, otherwise: &str) -> String {
    condition["message"].as_str().filter(|text| !text.is_empty()).unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The kinds that are known here, by the version of their group.
    fn version(kind: &str) -> &'static str {
        match kind {
            "Deployment" => "apps/v1",
            "Gateway" => "gateway.networking.k8s.io/v1",
            "InferencePool" => "inference.networking.x-k8s.io/v1alpha2",
            "Job" => "batch/v1",
            "LLMInferenceService" => "serving.kserve.io/v1alpha1",
            "LeaderWorkerSet" => "leaderworkerset.x-k8s.io/v1",
            _ => "v1",
        }
    }

    fn check(mut body: Value, expected: &str) {
        if body["apiVersion"].is_null() {
            body["apiVersion"] = version(body["kind"].as_str().unwrap_or_default()).into();
        }
        assert_eq!(health(&body, Readiness { load_balancer: true }).to_string(), expected, "{body}");
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn rollout(status: Value) -> Value {
        json!({"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status})
    }

    #[test]
    fn a_deployment_is_current_when_all_of_it_is_available() {
        let available = json!([{"type": "Available", "status": "True"}]);
        check(rollout(json!({"observedGeneration": 1})), "its controller has not seen the change yet");
        check(rollout(json!({"observedGeneration": 2, "updatedReplicas": 1})), "1 of 3 pods are updated");
        check(
            rollout(json!({"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 2})),
            "2 of 3 pods are ready",
        );
        let all = json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "availableReplicas": 3, "conditions": available});
        check(rollout(all), "pods of the old version are still there: 1");
        let all = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "conditions": available});
        check(rollout(all), "current");
        let stuck = json!([{"type": "Progressing", "status": "False", "message": "deadline exceeded"}]);
        check(rollout(json!({"observedGeneration": 2, "conditions": stuck})), "deadline exceeded");
    }

    #[test]
    fn what_operators_serve_is_current_once_they_say_so() {
        let service =
            |status: Value| json!({"kind": "LLMInferenceService", "metadata": {"generation": 2}, "status": status});
        let said = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "message": "no GPUs"}]});
        check(service(Value::Null), "its operator has not said that it is ready yet");
        check(service(said("False")), "no GPUs");
        check(service(said("True")), "current");
        check(service(json!({"observedGeneration": 1})), "its controller has not seen the change yet");
        check(json!({"kind": "LeaderWorkerSet"}), "not all of its groups are available yet");
        let pool = |status: &str| {
            let accepted = json!([{"type": "Accepted", "status": status, "message": "not allowed"}]);
            json!({"kind": "InferencePool", "status": {"parents": [{"conditions": accepted}]}})
        };
        check(pool("False"), "not allowed");
        check(pool("True"), "current");
        check(json!({"kind": "InferencePool"}), "current");
    }

    #[test]
    fn a_load_balancer_needs_an_address() {
        let service = json!({"kind": "Service", "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}});
        check(service, "no load balancer has given it an address");
        check(json!({"kind": "Service", "spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"]}}), "current");
    }

    #[test]
    fn a_gateway_is_current_when_its_newest_generation_is_accepted() {
        let gateway = |conditions: Value| json!({"kind": "Gateway", "metadata": {"generation": 2}, "status": {"conditions": conditions}});
        let accepted = |status: &str, generation: u8| json!([{"type": "Accepted", "status": status, "observedGeneration": generation, "message": "m"}]);
        check(gateway(json!([])), "no control plane has accepted it yet");
        check(gateway(accepted("True", 1)), "no control plane has accepted it yet");
        check(gateway(accepted("False", 2)), "it is not accepted: m");
        check(gateway(accepted("True", 2)), "current");
    }

    #[test]
    fn the_usual_conditions_are_read_off_any_kind() {
        let widget = |generation: u8, status: Value| json!({"kind": "Widget", "metadata": {"generation": generation}, "status": status});
        let says = |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status, "message": "m"}]});
        check(widget(1, says("Ready", "False")), "m");
        check(widget(1, says("Ready", "True")), "current");
        check(widget(1, says("Stalled", "True")), "m");
        check(widget(2, json!({"observedGeneration": 1})), "its controller has not seen the change yet");
        check(widget(2, json!({})), "current");
        let job = |kind: &str| {
            let mut job = widget(1, says(kind, "True"));
            job["kind"] = "Job".into();
            job
        };
        check(job("Complete"), "current");
        check(job("Failed"), "m");
        check(job("Suspended"), "it is not complete yet");
    }

    #[test]
    fn kinds_of_others_are_not_taken_for_ours() {
        let of = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"generation": 2}, "spec": {"type": "LoadBalancer", "replicas": 3}});
        for (version, kind) in [
            ("networking.istio.io/v1", "Gateway"),
            ("serving.knative.dev/v1", "Service"),
            ("batch.volcano.sh/v1alpha1", "Job"),
            ("apps.kruise.io/v1beta1", "StatefulSet"),
            ("apps.example.com/v1", "Deployment"),
            ("example.com/v1", "LLMInferenceService"),
        ] {
            check(of(version, kind), "current");
        }
        let mut knative = of("serving.knative.dev/v1", "Service");
        knative["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "message": "no revision"}]});
        check(knative, "no revision");
    }

    #[test]
    fn a_config_map_is_current_at_once() {
        check(json!({"kind": "ConfigMap"}), "current");
    }
}
