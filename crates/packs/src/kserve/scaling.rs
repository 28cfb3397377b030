//! Who says how many pods there are.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::pods;
use super::service::Service;
use super::values::Unit;

/// A workload that can be scaled.
pub(super) struct Target<'a> {
    /// Its part of the merged spec.
    pub(super) workload: &'a Value,
    /// Where that is written.
    pub(super) path: &'a [&'a str],
    /// What names of its objects have after `-kserve`.
    pub(super) suffix: &'a str,
    /// Version and kind.
    pub(super) kind: (&'a str, &'a str),
    /// Its name.
    pub(super) name: String,
}

/// Adds the autoscaler of a workload, if it has one.
pub(super) fn add(unit: &mut Unit<'_>, target: &Target<'_>) -> Result<(), Vec<Problem>> {
    let scaling = &target.workload["scaling"];
    if !scaling.is_object() {
        return Ok(());
    }
    let problems = mistakes(unit, target);
    if !problems.is_empty() {
        return Err(problems);
    }
    let reference = json!({"apiVersion": target.kind.0, "kind": target.kind.1, "name": target.name});
    if scaling["wva"]["hpa"].is_object() {
        add_autoscaler(unit, target, &reference);
    } else {
        add_scaled_object(unit, target, &reference);
    }
    Ok(())
}

fn add_autoscaler(unit: &mut Unit<'_>, target: &Target<'_>, reference: &Value) {
    let scaling = &target.workload["scaling"];
    let mut autoscaler = json!({
        "name": unit.service.child(&format!("-kserve{}-hpa", target.suffix)),
        "labels": labels(unit),
        "annotations": annotations(unit, &scaling["wva"]),
        "target": reference,
        "min": scaling["minReplicas"].as_i64().unwrap_or(1),
        "max": scaling["maxReplicas"],
    });
    let behavior = &scaling["wva"]["hpa"]["behavior"];
    if behavior.is_object() {
        autoscaler["behavior"] = behavior.clone();
    }
    unit.add("autoscalers", autoscaler);
}

/// What a service says of KEDA and goes into the object as it is.
const KEDA: [&str; 7] = [
    "pollingInterval",
    "cooldownPeriod",
    "idleReplicaCount",
    "fallback",
    "advanced",
    "initialCooldownPeriod",
    "triggers",
];

fn add_scaled_object(unit: &mut Unit<'_>, target: &Target<'_>, reference: &Value) {
    let scaling = &target.workload["scaling"];
    let name = unit.service.child(&format!("-kserve{}-keda", target.suffix));
    let by_advice = scaling["wva"]["keda"].is_object();
    let keda = if by_advice { &scaling["wva"]["keda"] } else { &scaling["keda"] };
    let mut spec = json!({
        "scaleTargetRef": reference,
        "minReplicaCount": scaling["minReplicas"].as_i64().unwrap_or(1),
        "maxReplicaCount": scaling["maxReplicas"],
    });
    for field in KEDA.into_iter().filter(|field| !keda[*field].is_null()) {
        spec[field] = keda[field].clone();
    }
    let mut object = json!({"name": name, "labels": labels(unit)});
    if by_advice {
        spec["triggers"] = json!([trigger(unit, &name)]);
        object["annotations"] = annotations(unit, &scaling["wva"]);
    }
    object["spec"] = spec;
    unit.add("scaledObjects", object);
}

fn mistakes(unit: &Unit<'_>, target: &Target<'_>) -> Vec<Problem> {
    let (service, scaling) = (unit.service, &target.workload["scaling"]);
    let path: Vec<&str> = target.path.iter().copied().chain(["scaling"]).collect();
    let at = |field: &'static str| path.iter().copied().chain([field]).collect::<Vec<_>>();
    let problem = |path: &[&str], message: &str| Service::problem(service, path, message);
    let mut problems = Vec::new();
    if !target.workload["replicas"].is_null() {
        let message = "replicas and scaling rule each other out: one of them says how many pods there are";
        problems.push(problem(&path, message).hint("take one of them away"));
    }
    let max = scaling["maxReplicas"].as_i64();
    let min = scaling["minReplicas"].as_i64().unwrap_or(1);
    match max {
        None => problems.push(problem(&path, "scaling needs maxReplicas")),
        Some(max) if max < min || max < 1 => {
            problems.push(problem(&at("maxReplicas"), &format!("maxReplicas is {max}, below minReplicas, {min}")));
        }
        Some(_) => {}
    }
    let wva = &scaling["wva"];
    match (wva.is_object(), scaling["keda"].is_object()) {
        (false, false) | (true, true) => problems.push(problem(&path, "scaling needs one of wva and keda")),
        (true, false) if wva["hpa"].is_object() == wva["keda"].is_object() => {
            problems.push(problem(&at("wva"), "wva needs one of hpa and keda"));
        }
        (true, false) if wva["keda"].is_object() && unit.settings.prometheus.url.is_empty() => {
            let message =
                "KEDA asks Prometheus for the recommendations of the variant autoscaler, and the settings name none";
            problems.push(problem(&at("wva"), message).hint("set packs.kserve.prometheus.url"));
        }
        (false, true) if scaling["keda"]["triggers"].as_array().is_none_or(Vec::is_empty) => {
            problems.push(problem(&at("keda"), "keda needs triggers"));
        }
        _ => {}
    }
    problems
}

fn labels(unit: &Unit<'_>) -> Value {
    let mut labels = super::workload::labels(unit.service, Some("llminferenceservice-workload"));
    // Among them may be the one by which the variant autoscaler tells accelerators apart.
    pods::propagate(&unit.spec["labels"], &mut labels);
    labels.into()
}

/// By what the variant autoscaler knows what it is to look after.
fn annotations(unit: &Unit<'_>, wva: &Value) -> Value {
    let mut annotations = json!({"llm-d.ai/managed": "true", "llm-d.ai/model-id": unit.spec["model"]["name"]});
    if let Some(cost) = wva["variantCost"].as_str() {
        annotations["llm-d.ai/variant-cost"] = cost.into();
    }
    annotations
}

fn trigger(unit: &Unit<'_>, name: &str) -> Value {
    let prometheus = &unit.settings.prometheus;
    let query =
        format!("wva_desired_replicas{{variant_name={name:?},exported_namespace={:?}}}", unit.service.namespace);
    let mut metadata =
        json!({"serverAddress": prometheus.url, "query": query, "threshold": "1", "activationThreshold": "0"});
    if prometheus.tls_insecure_skip_verify {
        metadata["unsafeSsl"] = "true".into();
    }
    if !prometheus.auth_modes.is_empty() {
        metadata["authModes"] = prometheus.auth_modes.clone().into();
    }
    let mut trigger = json!({"type": "prometheus", "name": "wva-desired-replicas", "metricType": "AverageValue", "metadata": metadata});
    if !prometheus.trigger_auth_name.is_empty() {
        trigger["authenticationRef"] = json!({"name": prometheus.trigger_auth_name});
        if !prometheus.trigger_auth_kind.is_empty() {
            trigger["authenticationRef"]["kind"] = prometheus.trigger_auth_kind.clone().into();
        }
    }
    trigger
}
