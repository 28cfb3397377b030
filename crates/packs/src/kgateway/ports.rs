//! Ports of a proxy, from listeners and parameters.

use std::collections::BTreeSet;

use gatewright_engine::pack::Subject;
use serde_json::{Value, json};

use super::parameters::Service;
use crate::gateway::lists::last_wins;
use gatewright_engine::pack::gateway::{port_name, port_of_set};

/// Ports that Envoy itself listens on: metrics, readiness, administration.
pub(super) const RESERVED: [u16; 3] = [9091, 8082, 19000];

/// Returns the ports of a Gateway in the order of the Service: those of listeners ascending, then those that only
/// the parameters name.
///
/// Whether a `ListenerSet` is admitted changes no infrastructure: kgateway opens its ports in any case.
pub(super) fn numbers(subject: &Subject<'_>, service: &Service) -> Vec<u16> {
    let own = subject.gateway.spec.listeners.iter().map(|listener| listener.port);
    let sets = subject.listener_sets.iter().flat_map(|set| &set.spec.listeners).filter_map(port_of_set);
    let listened: BTreeSet<u16> = own.chain(sets).filter(|port| *port != 0 && !RESERVED.contains(port)).collect();
    let mut ports: Vec<u16> = listened.into_iter().collect();
    for extra in &service.ports {
        if !ports.contains(&extra.port) {
            ports.push(extra.port);
        }
    }
    ports
}

pub(super) fn of_service(numbers: &[u16], service: &Service) -> Vec<Value> {
    let has_node_ports = matches!(service.kind.as_deref(), Some("NodePort" | "LoadBalancer"));
    numbers
        .iter()
        .map(|&number| {
            let mut port = json!({"name": port_name(number), "protocol": "TCP", "port": number, "targetPort": number});
            let said = service.ports.iter().find(|port| port.port == number).and_then(|port| port.node_port);
            if let Some(node_port) = said.filter(|_| has_node_ports) {
                port["nodePort"] = Value::from(node_port);
            }
            port
        })
        .collect()
}

pub(super) fn of_container(numbers: &[u16], scrape: bool) -> Vec<Value> {
    let listened =
        numbers.iter().map(|&number| json!({"name": port_name(number), "protocol": "TCP", "containerPort": number}));
    let metrics = scrape.then(|| json!({"name": "http-monitoring", "containerPort": 9091}));
    // Who names the port of the metrics in the parameters wants it in the Service; the container has it once.
    last_wins(listened.chain(metrics), &["containerPort"])
}
