//! The route to a service.

use serde_json::{Value, json};

use super::pods::list_items;
use super::settings::AlphaPool;
use super::types::{Adapter, GatewayReference};
use super::values::Unit;
use crate::json::{items, said, without_nulls};

/// The annotation of a preset whose servers answer to the names that routes by model use.
pub(super) const MODEL_ROUTING: &str = "serving.kserve.io/model-based-routing-enabled";

/// The group of pools in their older version.
pub(super) const ALPHA_GROUP: &str = "inference.networking.x-k8s.io";

/// Adds the route, if the service has one of its own.
pub(super) fn add(unit: &mut Unit<'_>, adapters: &[Adapter]) {
    let http = unit.spec.route().and_then(|route| route.http.as_ref()).filter(|http| http.refs.is_empty());
    let Some(mut spec) = http.and_then(|http| http.spec.clone()) else { return };
    let gateways = unit.spec.router.as_ref().and_then(|router| router.gateway.as_ref());
    if let Some(gateways) = gateways.filter(|gateways| !gateways.refs.is_empty()) {
        spec.insert("parentRefs".to_owned(), gateways.refs.iter().map(parent).collect());
    }
    if let Some(rules) = spec.get_mut("rules").and_then(Value::as_array_mut) {
        let header = &unit.settings.model_routing.header;
        let answers = unit.spec.workload.annotations.get(MODEL_ROUTING).is_some_and(|text| text == "true");
        if !answers || !unit.settings.model_routing.enabled {
            strip(rules, header);
        }
        for rule in rules {
            list_items(rule, "backendRefs").for_each(|backend| lead(unit, backend));
            duplicate(rule, header, adapters, unit.service.namespace);
        }
    }
    let labels = super::workload::labels(unit.service, Some("llminferenceservice-router"));
    let name = unit.service.child("-kserve-route");
    unit.add("routes", json!({"name": name, "labels": labels, "spec": spec}));
}

fn parent(gateway: &GatewayReference) -> Value {
    without_nulls(json!({
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": gateway.name,
        "namespace": gateway.namespace.as_deref().and_then(said),
        "sectionName": gateway.section_name.as_deref().and_then(said),
    }))
}

/// Leads what is meant for the pool of the service to where its requests are to go.
fn lead(unit: &Unit<'_>, backend: &mut Value) {
    if backend["kind"] != "InferencePool" || backend["name"] != unit.service.pool().as_str() {
        return;
    }
    let Some(scheduler) = unit.spec.scheduler() else {
        backend["group"] = "".into();
        backend["kind"] = "Service".into();
        backend["name"] = unit.service.workload_service().into();
        return;
    };
    backend["group"] = "inference.networking.k8s.io".into();
    match scheduler.foreign_pool() {
        Some(pool) => backend["name"] = pool.into(),
        None if unit.settings.alpha_pool == AlphaPool::Always => backend["group"] = ALPHA_GROUP.into(),
        None => {}
    }
}

fn is_by_model(found: &Value, header: &str) -> bool {
    items(&found["headers"]).any(|it| it["name"] == header)
}

/// Takes away what routes by the name of the model. As with the controller a rule is left only where it matches something
/// else: one without any match goes, too.
fn strip(rules: &mut Vec<Value>, header: &str) {
    rules.retain_mut(|rule| {
        let Some(matches) = rule.get_mut("matches").and_then(Value::as_array_mut) else { return false };
        matches.retain(|it| !is_by_model(it, header));
        !matches.is_empty()
    });
}

/// Routes the names of adapters to where that of the model is routed to.
fn duplicate(rule: &mut Value, header: &str, adapters: &[Adapter], namespace: &str) {
    let Some(matches) = rule.get_mut("matches").and_then(Value::as_array_mut) else { return };
    let by_model: Vec<Value> = matches.iter().filter(|it| is_by_model(it, header)).cloned().collect();
    for model in by_model {
        for adapter in adapters {
            let mut copy = model.clone();
            for found in list_items(&mut copy, "headers").filter(|found| found["name"] == header) {
                found["value"] = format!("publishers/{namespace}/models/{}", adapter.name).into();
            }
            matches.push(copy);
        }
    }
}
