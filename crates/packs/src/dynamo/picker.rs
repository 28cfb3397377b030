//! The endpoint picker of a graph: its configuration, the pool that it picks from, and the route that leads there.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::PICKER_KEY;
use super::model::{Component, Type};
use super::pod::{Maker, picker_config};
use super::settings::ServiceMesh;
use crate::json::said;

/// The version and kind of an endpoint picker's configuration, for whoever reads it.
const CONFIG: (&str, &str) = ("inference.networking.x-k8s.io/v1alpha1", "EndpointPickerConfig");

/// Returns the values of all that an endpoint picker needs, or nothing where the graph has none.
pub(super) fn values(maker: &Maker<'_>) -> Value {
    let graph = maker.graph;
    let is_picker = |component: &&Component| component.kind == Type::Epp;
    let Some(component) = graph.components.iter().find(is_picker) else { return Value::Null };
    let service = graph.child(component);
    let labels = json!({
        "nvidia.com/dynamo-graph-deployment-name": graph.name,
        "nvidia.com/dynamo-component": component.name,
        "nvidia.com/dynamo-component-type": component.kind_text,
    });
    let config = component.picker.as_ref().and_then(|picker| picker.config.as_ref());
    let gateway = &maker.settings.inference_gateway;
    let namespace = said(&gateway.gateway_namespace).unwrap_or(&graph.namespace);
    let route = said(&gateway.gateway_name)
        .map(|name| json!({"name": format!("{}-route", graph.name), "gateway": name, "gatewayNamespace": namespace}));
    let is_meshed = maker.settings.service_mesh == ServiceMesh::Istio;
    json!({
        "labels": labels,
        "service": service,
        "pool": format!("{}-pool", graph.name),
        "dynamoNamespace": graph.dynamo_namespace(component),
        "config": config.map(|config| json!({
            "name": picker_config(graph, component).0,
            "key": PICKER_KEY,
            "text": text(config),
        })),
        "route": route,
        "destinationRule": is_meshed.then(|| format!("{service}.{}.svc.cluster.local", graph.namespace)),
    })
}

/// Writes a configuration as the file that the endpoint picker reads.
fn text(config: &Value) -> String {
    let mut config = config.clone();
    config["apiVersion"] = CONFIG.0.into();
    config["kind"] = CONFIG.1.into();
    yaml::to_string(&config)
}
