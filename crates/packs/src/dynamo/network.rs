//! The ways in which components of a graph are reached, by each other and from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::model::{Component, Type};
use super::nodes::Provider;
use super::pod::{Maker, model_hash};

/// Returns the Services of a graph.
pub(super) fn services(maker: &Maker<'_>) -> Vec<Value> {
    let graph = maker.graph;
    let is_made = |component: &&Component| {
        matches!(component.kind, Type::Frontend | Type::Epp) || maker.settings.provisions_discovery()
    };
    let mut services: Vec<Value> = Vec::new();
    for component in graph.components.iter().filter(is_made) {
        let Some(ports) = maker.types[component.kind.key()].get("service") else { continue };
        let (labels, _) = maker.metadata(component);
        let mut selector: BTreeMap<String, String> = ["dynamo-component-type", "dynamo-namespace", "dynamo-component"]
            .iter()
            .map(|key| format!("nvidia.com/{key}"))
            .filter_map(|key| Some((key.clone(), labels.get(&key)?.clone())))
            .collect();
        // Grove has no label that all leaders share; the others announce nothing, so that nobody asks them.
        if component.is_multinode() && maker.provider != Provider::Grove {
            selector.insert("role".to_owned(), "leader".to_owned());
        }
        services.push(json!({
            "name": graph.child(component),
            "labels": labels,
            "annotations": graph.annotations,
            "selector": selector,
            "ports": ports,
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

/// The objects that lead to a frontend from outside.
pub(super) struct Entrances {
    pub(super) ingresses: Vec<Value>,
    pub(super) virtual_services: Vec<Value>,
}

/// Returns what leads to the frontends of a graph from outside, where the graph or the settings ask for it.
pub(super) fn entrances(maker: &Maker<'_>) -> Entrances {
    let mut entrances = Entrances { ingresses: Vec::new(), virtual_services: Vec::new() };
    let frontends = maker.graph.components.iter().filter(|component| component.kind == Type::Frontend);
    for component in frontends {
        let entrance = Entrance::of(maker, component);
        if let Some(class) = entrance.class.filter(|_| entrance.is_enabled) {
            entrances.ingresses.push(json!({
                "name": maker.graph.child(component),
                "labels": entrance.labels,
                "annotations": entrance.annotations,
                "className": class,
                "host": entrance.host,
                "tlsSecret": entrance.tls,
            }));
        }
        if let Some(gateway) = entrance.gateway.filter(|_| entrance.is_enabled) {
            entrances.virtual_services.push(json!({
                "name": maker.graph.child(component),
                "gateway": gateway,
                "host": entrance.host,
            }));
        }
    }
    entrances
}

/// The way to a frontend as the graph describes it, and as the settings do where the graph says nothing.
struct Entrance {
    is_enabled: bool,
    class: Option<String>,
    gateway: Option<String>,
    host: String,
    tls: Option<String>,
    labels: Value,
    annotations: Value,
}

impl Entrance {
    fn of(maker: &Maker<'_>, component: &Component) -> Self {
        let settings = &maker.settings.ingress;
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (class, gateway) = (some(&settings.controller_class_name), some(&settings.virtual_service_gateway));
        let tls = some(&settings.controller_tls_secret_name);
        let Some(said) = &component.ingress else {
            let host = format!("{}.{}", maker.graph.name, settings.host_suffix);
            let (labels, annotations) = (Value::Null, Value::Null);
            return Self { is_enabled: true, class, gateway, host, tls, labels, annotations };
        };
        let said = said.clone();
        let name = said.host.as_ref().unwrap_or(&maker.graph.name);
        let suffix = said.host_suffix.as_ref().unwrap_or(&settings.host_suffix);
        let own_gateway = said.virtual_service_gateway.filter(|_| said.use_virtual_service == Some(true));
        Self {
            is_enabled: said.enabled == Some(true),
            class: said.class_name.or(class),
            gateway: own_gateway.or(gateway),
            host: format!("{}{name}.{suffix}", said.host_prefix.unwrap_or_default()),
            tls: said.tls.and_then(|tls| tls.secret_name).or(tls),
            labels: said.labels,
            annotations: said.annotations,
        }
    }
}
