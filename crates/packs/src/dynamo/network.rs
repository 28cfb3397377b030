//! The ways in which components of a graph are reached, by each other and from outside.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::model::{Component, Ingress, Type};
use super::nodes::Provider;
use super::pod::{Maker, model_hash};
use crate::json::said;

/// The labels by which the pods of a component are found.
const SELECTOR: [&str; 3] =
    ["nvidia.com/dynamo-component-type", "nvidia.com/dynamo-namespace", "nvidia.com/dynamo-component"];

pub(super) fn services(maker: &Maker<'_>) -> Vec<Value> {
    let graph = maker.graph;
    let is_made = |component: &&Component| {
        matches!(component.kind, Type::Frontend | Type::Epp) || maker.settings.provisions_discovery()
    };
    let mut services: Vec<Value> = Vec::new();
    for component in graph.components.iter().filter(is_made) {
        let mut selector = maker.pod_labels(component);
        selector.retain(|key, _| SELECTOR.contains(&key.as_str()));
        // Without a type it is still the first of the labels, so that it selects nothing of what has one.
        selector.entry(SELECTOR[0].to_owned()).or_default();
        // Grove has no label that all leaders share; the others announce nothing, so that nobody asks them.
        if component.is_multinode() && maker.provider != Provider::Grove {
            selector.insert("role".to_owned(), "leader".to_owned());
        }
        services.push(json!({
            "name": graph.child(component),
            "labels": maker.service_labels(component),
            "annotations": maker.annotations(component),
            "selector": selector,
            "ports": maker.types[component.kind.key()]["service"],
        }));
    }
    services.extend(models(maker));
    services
}

/// A Service without an address for each model, by which adapters are loaded into its workers.
fn models(maker: &Maker<'_>) -> Vec<Value> {
    let graph = maker.graph;
    let models = graph.components.iter().filter_map(|component| component.model.as_deref());
    let models: BTreeSet<&str> = models.collect();
    let service = |model: &str| {
        let hash = model_hash(model);
        let mut labels = graph.labels.clone();
        labels.insert("nvidia.com/dynamo-base-model-hash".to_owned(), hash.clone());
        labels.insert("nvidia.com/dynamo-graph-deployment-name".to_owned(), graph.name.clone());
        let mut annotations = graph.annotations.clone();
        annotations.insert("nvidia.com/dynamo-base-model".to_owned(), model.to_owned());
        json!({
            "name": format!("{}-model-{hash}", graph.name),
            "labels": labels,
            "annotations": annotations,
            "headless": true,
            "selector": {"nvidia.com/dynamo-base-model-hash": hash, "nvidia.com/dynamo-graph-deployment-name": graph.name},
            "ports": [{"name": "system", "port": 9090, "targetPort": 9090, "protocol": "TCP"}],
        })
    };
    models.into_iter().map(service).collect()
}

/// Returns the `Ingresses` and the `VirtualServices` that lead to the frontends of a graph from outside, where the graph
/// or the settings ask for them.
pub(super) fn entrances(maker: &Maker<'_>) -> (Vec<Value>, Vec<Value>) {
    let settings = &maker.settings.ingress;
    let or = |text: Option<String>, setting: &str| text.or_else(|| said(setting).map(str::to_owned));
    let (mut ingresses, mut virtual_services) = (Vec::new(), Vec::new());
    for component in maker.graph.components.iter().filter(|component| component.kind == Type::Frontend) {
        let unsaid = || Ingress { enabled: Some(true), ..Ingress::default() };
        let entrance = component.ingress.clone().unwrap_or_else(unsaid);
        if entrance.enabled != Some(true) {
            continue;
        }
        let name = entrance.host.as_ref().unwrap_or(&maker.graph.name);
        let suffix = entrance.host_suffix.as_ref().unwrap_or(&settings.host_suffix);
        let host = format!("{}{name}.{suffix}", entrance.host_prefix.unwrap_or_default());
        let name = maker.graph.child(component);
        if let Some(class) = or(entrance.class_name, &settings.controller_class_name) {
            ingresses.push(json!({
                "name": name,
                "labels": entrance.labels,
                "annotations": entrance.annotations,
                "className": class,
                "host": host,
                "tlsSecret": or(entrance.tls.and_then(|tls| tls.secret_name), &settings.controller_tls_secret_name),
            }));
        }
        let gateway = entrance.virtual_service_gateway.filter(|_| entrance.use_virtual_service == Some(true));
        if let Some(gateway) = or(gateway, &settings.virtual_service_gateway) {
            virtual_services.push(json!({"name": name, "gateway": gateway, "host": host}));
        }
    }
    (ingresses, virtual_services)
}
