//! Whether an object does what it was made for, read off the object alone.
//!
//! The rules are those of kstatus for the kinds that we render: a Deployment is current when its newest generation
//! is fully rolled out and available. Which rule a kind has stands in the table of kinds. Of kinds without a row the
//! conditions are read that many of them share, and kinds that never become anything (a `ConfigMap`) are current at once.
//! A pack may know better, and says so in its rows, or on the object.

pub mod pods;
mod said;

use std::fmt;

use serde_json::Value;

use crate::enforce;
use crate::kinds;
use crate::kinds::row::Health as Rule;
use crate::object::group_kind;

/// The annotation with an expression over `object` that is true once it is what it should be.
pub const HINT: &str = "gatewright.dev/health";

/// The annotation with what to say as long as that is not so.
pub const HINT_MESSAGE: &str = "gatewright.dev/health-message";

/// The message where nobody has said another one: an expression says nothing to who has to mend the object.
const UNEXPLAINED: &str = "it is not healthy yet by the rule of its pack";

/// The words for a Gateway of which no control plane has said anything.
pub const UNANSWERED: &str = "no control plane has accepted it yet";

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

/// Requirements for health beyond the rules of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A Service of type `LoadBalancer` needs an address.
    pub load_balancer: bool,
}

/// Reads the state of an object.
pub fn health(body: &Value, readiness: Readiness, kinds: &kinds::Table) -> Health {
    if body.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return Health::InProgress("it is being deleted".to_owned());
    }
    if let Some(hint) = body["metadata"]["annotations"][HINT].as_str() {
        let message = body["metadata"]["annotations"][HINT_MESSAGE].as_str();
        return expressed((hint, message), body, &format!("annotation {HINT}"));
    }
    let (group, kind) = group_kind(body);
    match &kinds.row(group, kind).health {
        Rule::Deployment | Rule::StatefulSet | Rule::DaemonSet if !is_observed(body) => unseen("controller"),
        Rule::Deployment => deployment(body),
        Rule::StatefulSet => replicas(body, "updatedReplicas", "readyReplicas"),
        Rule::DaemonSet => daemon_set(body),
        Rule::Service if readiness.load_balancer => load_balancer(body),
        Rule::Accepted => is_accepted(body),
        Rule::Established => match condition(body, "Established", "True") {
            Some(_) => Health::Current,
            None => Health::InProgress("the API server does not serve it yet".to_owned()),
        },
        Rule::Job => job(body),
        Rule::Said(rule) => said::health(rule, body),
        Rule::Refusals(rule) => said::refused(rule, body),
        Rule::Current(rule) => expressed((&rule.current, rule.message.as_deref()), body, "rule of health"),
        Rule::Service | Rule::Conditions => conditions(body),
    }
}

/// Asks what a pack has said.
fn expressed((expression, message): (&str, Option<&str>), body: &Value, place: &str) -> Health {
    if body.pointer("/status/observedGeneration").is_some() && !is_observed(body) {
        return unseen("controller");
    }
    match enforce::holds(expression, body) {
        Ok(true) => Health::Current,
        Ok(false) => Health::InProgress(message.unwrap_or(UNEXPLAINED).to_owned()),
        Err(error) => Health::Failed(format!("its {place} cannot be evaluated: {error}")),
    }
}

fn unseen(by: &str) -> Health {
    Health::InProgress(format!("its {by} has not seen the change yet"))
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
        _ => Health::InProgress(UNANSWERED.to_owned()),
    }
}

fn job(body: &Value) -> Health {
    match (condition(body, "Failed", "True"), condition(body, "Complete", "True")) {
        (Some(failed), _) => Health::Failed(message(failed, "it has failed")),
        (None, Some(_)) => Health::Current,
        (None, None) => Health::InProgress("it is not complete yet".to_owned()),
    }
}

/// Returns the health that kinds that nobody here knows report of themselves in the usual words.
fn conditions(body: &Value) -> Health {
    if body.pointer("/status/observedGeneration").is_some() && !is_observed(body) {
        return unseen("controller");
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
            "Job" => "batch/v1",
            _ => "v1",
        }
    }

    fn check(mut body: Value, expected: &str) {
        if body["apiVersion"].is_null() {
            body["apiVersion"] = version(body["kind"].as_str().unwrap_or_default()).into();
        }
        assert_eq!(
            health(&body, Readiness { load_balancer: true }, &kinds::Table::builtin()).to_string(),
            expected,
            "{body}"
        );
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
            ("networking.example.com/v1", "Gateway"),
            ("serving.knative.dev/v1", "Service"),
            ("batch.volcano.sh/v1alpha1", "Job"),
            ("apps.kruise.io/v1beta1", "StatefulSet"),
            ("apps.example.com/v1", "Deployment"),
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
