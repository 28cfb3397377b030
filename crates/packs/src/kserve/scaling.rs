//! Scaling: who says how many pods there are.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::types::{Scaling, Texts, Wva};
use super::values::Unit;
use super::workload::{self, Part};
use crate::json::{said, without_nulls};

/// The label that names the devices of a workload.
const ACCELERATOR: &str = "inference.optimization/acceleratorName";

/// Adds the autoscaler of a workload, if it has one.
pub(super) fn add(
    unit: &mut Unit<'_>,
    part: &Part<'_>,
    (version, kind): (&str, &str),
    name: &str,
) -> Result<(), Vec<Problem>> {
    let Some(scaling) = &part.workload.scaling else { return Ok(()) };
    let problems = mistakes(unit, part, scaling);
    if !problems.is_empty() {
        return Err(problems);
    }
    let reference = json!({"apiVersion": version, "kind": kind, "name": name});
    match scaling.wva.as_ref().and_then(|wva| Some((wva, wva.hpa.as_ref()?))) {
        Some((wva, hpa)) => unit.add(
            "autoscalers",
            json!({
                "name": unit.service.child(&format!("-kserve{}-hpa", part.suffix)),
                "labels": labels(unit, Some(part)),
                "annotations": annotations(unit, wva),
                "target": reference,
                "min": scaling.min(),
                "max": scaling.max_replicas,
                "behavior": hpa.get("behavior"),
            }),
        ),
        None => add_scaled_object(unit, part, scaling, &reference),
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

fn add_scaled_object(unit: &mut Unit<'_>, part: &Part<'_>, scaling: &Scaling, reference: &Value) {
    let name = unit.service.child(&format!("-kserve{}-keda", part.suffix));
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
    let mut object = json!({"name": name, "labels": labels(unit, advised.map(|_| part))});
    if let Some((wva, _)) = advised {
        spec["triggers"] = json!([trigger(unit, &name)]);
        object["annotations"] = annotations(unit, wva);
    }
    object["spec"] = spec;
    unit.add("scaledObjects", object);
}

/// Returns the labels of an autoscaler. What the variant autoscaler looks after says on which devices it runs.
fn labels(unit: &Unit<'_>, advised: Option<&Part<'_>>) -> Texts {
    let mut labels = workload::labels(unit.service, Some("llminferenceservice-workload"));
    if let Some(part) = advised {
        let name = part.workload.labels.get(ACCELERATOR).and_then(|name| said(name));
        labels.insert(ACCELERATOR.to_owned(), name.unwrap_or("unknown").to_owned());
    }
    labels
}

fn mistakes(unit: &Unit<'_>, part: &Part<'_>, scaling: &Scaling) -> Vec<Problem> {
    let problem = |field: &[&str], message: &str| {
        let path = [part.path, &["scaling"], field].concat();
        unit.service.problem(&path, message)
    };
    let mut problems = Vec::new();
    if part.workload.replicas.is_some() {
        let message = "replicas and scaling rule each other out: one of them says how many pods there are";
        problems.push(problem(&[], message).hint("take one of them away"));
    }
    let min = scaling.min();
    match scaling.max_replicas {
        None => problems.push(problem(&[], "scaling needs maxReplicas")),
        Some(max) if max < min || max < 1 => {
            problems.push(problem(&["maxReplicas"], &format!("maxReplicas is {max}, below minReplicas, {min}")));
        }
        Some(_) => {}
    }
    match (&scaling.wva, &scaling.keda) {
        (None, None) | (Some(_), Some(_)) => problems.push(problem(&[], "scaling needs wva or keda, and not both")),
        (Some(wva), None) if wva.hpa.is_some() == wva.keda.is_some() => {
            problems.push(problem(&["wva"], "wva needs hpa or keda, and not both"));
        }
        (Some(wva), None) if wva.keda.is_some() && unit.settings.prometheus.url.is_empty() => {
            let message =
                "KEDA asks Prometheus for the recommendations of the variant autoscaler, and the settings name none";
            problems.push(problem(&["wva"], message).hint("set packs.kserve.prometheus.url"));
        }
        (None, Some(keda)) if keda.get("triggers").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
            problems.push(problem(&["keda"], "keda needs triggers"));
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    problems
}

/// By what the variant autoscaler knows what it is to look after.
fn annotations(unit: &Unit<'_>, wva: &Wva) -> Value {
    let model = unit.spec.model.as_ref().and_then(|model| model.name.as_deref());
    let cost = &wva.variant_cost;
    without_nulls(json!({"llm-d.ai/managed": "true", "llm-d.ai/model-id": model, "llm-d.ai/variant-cost": cost}))
}

fn trigger(unit: &Unit<'_>, name: &str) -> Value {
    let prometheus = &unit.settings.prometheus;
    let query =
        format!("wva_desired_replicas{{variant_name={name:?},exported_namespace={:?}}}", unit.service.namespace);
    let kind = said(&prometheus.trigger_auth_kind);
    let reference = |name: &str| without_nulls(json!({"name": name, "kind": kind}));
    without_nulls(json!({
        "type": "prometheus",
        "name": "wva-desired-replicas",
        "metadata": without_nulls(json!({
            "serverAddress": prometheus.url,
            "query": query,
            "threshold": "1",
            "unsafeSsl": prometheus.tls_insecure_skip_verify.to_string(),
            "authModes": said(&prometheus.auth_modes),
        })),
        "authenticationRef": said(&prometheus.trigger_auth_name).map(reference),
    }))
}
