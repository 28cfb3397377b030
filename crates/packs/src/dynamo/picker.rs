//! The endpoint picker of a graph: its configuration, the pool that it picks from, and the route that leads there.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::PICKER_KEY;
use super::model::{Component, Graph, Picker, Type};
use super::pod::{Maker, picker_config};
use super::settings::ServiceMesh;

/// The version and kind of an endpoint picker's configuration, for whoever reads it.
const CONFIG: (&str, &str) = ("inference.networking.x-k8s.io/v1alpha1", "EndpointPickerConfig");

/// Returns the component that is the endpoint picker.
pub(super) fn of(graph: &Graph) -> Option<&Component> {
    graph.components.iter().find(|component| component.kind == Type::Epp)
}

/// Says why a graph with an endpoint picker cannot be expanded.
pub(super) fn missing(component: &Component) -> Option<&'static str> {
    let is_there = |picker: &Picker| picker.config.is_some() || picker.config_map_ref.is_some();
    let has_picker = component.picker.as_ref().is_some_and(is_there);
    (!has_picker).then_some("eppConfig has neither config nor configMapRef")
}

/// Returns the values of all that an endpoint picker needs, or nothing where the graph has none.
pub(super) fn values(maker: &Maker<'_>) -> Value {
    let graph = maker.graph;
    let Some(component) = of(graph) else { return Value::Null };
    let service = graph.child(component);
    let labels = json!({
        "nvidia.com/dynamo-graph-deployment-name": graph.name,
        "nvidia.com/dynamo-component": component.name,
        "nvidia.com/dynamo-component-type": component.kind_text,
    });
    let config = component.picker.as_ref().and_then(|picker| picker.config.as_ref());
    let gateway = &maker.settings.inference_gateway;
    let route = (!gateway.gateway_name.is_empty()).then(|| {
        let namespace =
            if gateway.gateway_namespace.is_empty() { &graph.namespace } else { &gateway.gateway_namespace };
        json!({"name": format!("{}-route", graph.name), "gateway": gateway.gateway_name, "gatewayNamespace": namespace})
    });
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
