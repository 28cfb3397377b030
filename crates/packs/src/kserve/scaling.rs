//! Scaling: who says how many pods there are.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::service::Service;
use super::types::{Scaling, Texts, Workload, Wva};
use super::values::Unit;

/// A workload that can be scaled.
pub(super) struct Target<'a> {
    /// Its part of the merged spec.
    pub(super) workload: &'a Workload,
    /// The path of that part.
    pub(super) path: &'a [&'a str],
    /// The text after `-kserve` in the names of its objects.
    pub(super) suffix: &'a str,
    /// Version and kind.
    pub(super) kind: (&'a str, &'a str),
    /// Its name.
    pub(super) name: String,
}

/// Adds the autoscaler of a workload, if it has one.
pub(super) fn add(unit: &mut Unit<'_>, target: &Target<'_>) -> Result<(), Vec<Problem>> {
    let Some(scaling) = &target.workload.scaling else { return Ok(()) };
    let problems = mistakes(unit, target, scaling);
    if !problems.is_empty() {
        return Err(problems);
    }
    let reference = json!({"apiVersion": target.kind.0, "kind": target.kind.1, "name": target.name});
    match scaling.wva.as_ref().and_then(|wva| Some((wva, wva.hpa.as_ref()?))) {
        Some((wva, hpa)) => unit.add(
            "autoscalers",
            json!({
                "name": unit.service.child(&format!("-kserve{}-hpa", target.suffix)),
                "labels": labels(unit),
                "annotations": annotations(unit, wva),
                "target": reference,
                "min": scaling.min(),
                "max": scaling.max_replicas,
                "behavior": hpa.get("behavior"),
            }),
        ),
        None => add_scaled_object(unit, target, scaling, &reference),
    }
    Ok(())
}

impl Scaling {
    fn min(&self) -> u32 {
        self.min_replicas.unwrap_or(1)
    }
}

/// Fields that a service says of KEDA and that go into the object as they are.
const KEDA: [&str; 7] = [
    "pollingInterval",
    "cooldownPeriod",
    "idleReplicaCount",
    "fallback",
    "advanced",
    "initialCooldownPeriod",
    "triggers",
];

fn add_scaled_object(unit: &mut Unit<'_>, target: &Target<'_>, scaling: &Scaling, reference: &Value) {
    let name = unit.service.child(&format!("-kserve{}-keda", target.suffix));
    let advised = scaling.wva.as_ref().and_then(|wva| Some((wva, wva.keda.as_ref()?)));
    let keda = advised.map(|(_, keda)| keda).or(scaling.keda.as_ref());
    let mut spec = json!({
        "scaleTargetRef": reference,
        "minReplicaCount": scaling.min(),
        "maxReplicaCount": scaling.max_replicas,
    });
    for (field, value) in KEDA.into_iter().filter_map(|field| Some((field, keda?.get(field)?))) {
        spec[field] = value.clone();
    }
    let mut object = json!({"name": name, "labels": labels(unit)});
    if let Some((wva, _)) = advised {
        spec["triggers"] = json!([trigger(unit, &name)]);
        object["annotations"] = annotations(unit, wva);
    }
    object["spec"] = spec;
    unit.add("scaledObjects", object);
}

fn mistakes(unit: &Unit<'_>, target: &Target<'_>, scaling: &Scaling) -> Vec<Problem> {
    let service = unit.service;
    let path: Vec<&str> = target.path.iter().copied().chain(["scaling"]).collect();
    let at = |field: &'static str| path.iter().copied().chain([field]).collect::<Vec<_>>();
    let problem = |path: &[&str], message: &str| Service::problem(service, path, message);
    let mut problems = Vec::new();
    if target.workload.replicas.is_some() {
        let message = "replicas and scaling rule each other out: one of them says how many pods there are";
        problems.push(problem(&path, message).hint("take one of them away"));
    }
    let min = scaling.min();
    match scaling.max_replicas {
        None => problems.push(problem(&path, "scaling needs maxReplicas")),
        Some(max) if max < min || max < 1 => {
            problems.push(problem(&at("maxReplicas"), &format!("maxReplicas is {max}, below minReplicas, {min}")));
        }
        Some(_) => {}
    }
    match (&scaling.wva, &scaling.keda) {
        (None, None) | (Some(_), Some(_)) => problems.push(problem(&path, "scaling needs one of wva and keda")),
        (Some(wva), None) if wva.hpa.is_some() == wva.keda.is_some() => {
            problems.push(problem(&at("wva"), "wva needs one of hpa and keda"));
        }
        (Some(wva), None) if wva.keda.is_some() && unit.settings.prometheus.url.is_empty() => {
            let message =
                "KEDA asks Prometheus for the recommendations of the variant autoscaler, and the settings name none";
            problems.push(problem(&at("wva"), message).hint("set packs.kserve.prometheus.url"));
        }
        (None, Some(keda)) if keda.get("triggers").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
            problems.push(problem(&at("keda"), "keda needs triggers"));
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    problems
}

fn labels(unit: &Unit<'_>) -> Texts {
    let mut labels = super::workload::labels(unit.service, Some("llminferenceservice-workload"));
    // Among them may be the one by which the variant autoscaler tells accelerators apart.
    labels.extend(unit.spec.workload.labels.clone());
    labels
}

/// By what the variant autoscaler knows what it is to look after.
fn annotations(unit: &Unit<'_>, wva: &Wva) -> Value {
    let model = unit.spec.model.as_ref().and_then(|model| model.name.as_deref());
    let mut annotations = json!({"llm-d.ai/managed": "true", "llm-d.ai/model-id": model});
    if let Some(cost) = &wva.variant_cost {
        annotations["llm-d.ai/variant-cost"] = cost.as_str().into();
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
