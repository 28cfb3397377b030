//! Ports of the Service, from listeners.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::pack::Subject;
use gatewright_engine::spec::Metadata;
use serde_json::{Value, json};

use gatewright_engine::pack::gateway::{port_name, port_of_set};

/// Ports that the proxy itself listens on: metrics, readiness, administration.
pub(super) const RESERVED: [u16; 3] = [15020, 15021, 15000];

/// An annotation of a Gateway or `ListenerSet`: the ports of its own listeners on which nothing is to listen, because
/// other listeners of the same proxy lead to them.
pub(super) const INTERNAL: &str = "agentgateway.dev/internal-ports";

/// Returns the ports of the Service, ascending; `none` is that of a Gateway without listeners, 0 for no such port.
pub(super) fn numbers(subject: &Subject<'_>, none: u16) -> Vec<u16> {
    let gateway = subject.gateway;
    let mut is_internal = BTreeMap::new();
    add(&gateway.metadata, gateway.spec.listeners.iter().map(|listener| listener.port), &mut is_internal);
    for set in subject.listener_sets {
        add(&set.metadata, set.spec.listeners.iter().filter_map(port_of_set), &mut is_internal);
    }
    if is_internal.is_empty() && none != 0 {
        return vec![none];
    }
    let open = is_internal.into_iter().filter(|(port, internal)| !internal && !RESERVED.contains(port));
    open.map(|(port, _)| port).collect()
}

/// Adds the ports of one object. Of two listeners on one port the first decides: those of the Gateway go before those
/// of sets.
fn add(metadata: &Metadata, ports: impl Iterator<Item = u16>, is_internal: &mut BTreeMap<u16, bool>) {
    let ports: BTreeSet<u16> = ports.collect();
    let internal = internal(metadata, &ports).unwrap_or_default();
    for port in ports {
        is_internal.entry(port).or_insert(internal.contains(&port));
    }
}

/// Reads the annotation; one mistake and, as in the control plane, none of it counts. The error is that mistake.
pub(super) fn internal(metadata: &Metadata, own: &BTreeSet<u16>) -> Result<BTreeSet<u16>, String> {
    let said = metadata.annotations.as_ref().and_then(|annotations| annotations.get(INTERNAL));
    let parts = said.into_iter().flat_map(|said| said.split(',')).map(str::trim).filter(|part| !part.is_empty());
    let port = |part: &str| match part.parse::<u16>() {
        Ok(port) if own.contains(&port) => Ok(port),
        Ok(port) if port != 0 => Err(format!("no listener here has port {port}")),
        _ => Err(format!("{part:?} is no port")),
    };
    parts.map(port).collect()
}

pub(super) fn of_service(numbers: &[u16]) -> Vec<Value> {
    let port = |&number| json!({"name": port_name(number), "protocol": "TCP", "port": number, "targetPort": number});
    numbers.iter().map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, expected: Result<&[u16], &str>) {
        let annotations = BTreeMap::from([(INTERNAL.to_owned(), said.to_owned())]);
        let metadata = Metadata { annotations: Some(annotations), ..Metadata::default() };
        let expected = expected.map(|ports| ports.iter().copied().collect()).map_err(str::to_owned);
        assert_eq!(internal(&metadata, &BTreeSet::from([80, 8080])), expected, "{said:?}");
    }

    #[test]
    fn internal_ports_are_those_of_own_listeners() {
        check("", Ok(&[]));
        check(" 80, ,8080", Ok(&[80, 8080]));
        check("80,81", Err("no listener here has port 81"));
        check("80,http", Err("\"http\" is no port"));
        check("0", Err("\"0\" is no port"));
        check("65536", Err("\"65536\" is no port"));
    }
}
