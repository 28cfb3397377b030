//! Labels and ports of all Gateways by the standard, whichever pack renders them.

use std::collections::BTreeMap;

use super::Subject;
use crate::spec::GATEWAY_API;
use crate::spec::gateway::Listener;

/// Port names have at most 15 characters (RFC 6335).
const MAX_NAME: usize = 15;

/// Labels or annotations.
pub type Map = BTreeMap<String, String>;

/// Returns labels and annotations for every object (GEP-1867), without the standard's own keys.
pub fn infrastructure(subject: &Subject<'_>) -> (Map, Map) {
    let own = format!("{GATEWAY_API}/");
    let without_own =
        |map: &Map| map.iter().filter(|(key, _)| !key.starts_with(&own)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let infrastructure = subject.gateway.spec.infrastructure.clone().unwrap_or_default();
    (without_own(&infrastructure.labels), without_own(&infrastructure.annotations))
}

/// Returns the name of a port.
pub fn port_name(number: u16) -> String {
    let mut name = format!("listener-{number}");
    name.truncate(MAX_NAME);
    name
}

/// Returns the port of a listener of a set, which may leave it to the protocol.
pub fn port_of_set(listener: &Listener) -> Option<u16> {
    match (listener.port, listener.protocol.as_str()) {
        (0, "HTTP") => Some(80),
        (0, "HTTPS") => Some(443),
        (0, _) => None,
        (port, _) => Some(port),
    }
}
