//! What the data planes of all Gateways have in common, whichever pack renders them: what the standard says of
//! labels, ports and addresses, and what Kubernetes says of names and images.

pub mod authorities;
pub(super) mod lint;
pub(super) mod lists;
pub mod parameters;

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Subject;
use crate::spec::GATEWAY_API;
use crate::spec::gateway::Listener;
use parameters::Image;

/// Port names have at most 15 characters (RFC 6335).
const MAX_NAME: usize = 15;

/// Labels or annotations.
pub(super) type Map = BTreeMap<String, String>;

/// Labels and annotations for every object (GEP-1867), without the standard's own keys.
pub(super) fn infrastructure(subject: &Subject<'_>) -> (Map, Map) {
    let own = format!("{GATEWAY_API}/");
    let without_own =
        |map: &Map| map.iter().filter(|(key, _)| !key.starts_with(&own)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let infrastructure = subject.gateway.spec.infrastructure.clone().unwrap_or_default();
    (without_own(&infrastructure.labels), without_own(&infrastructure.annotations))
}

/// Returns the entries that say something.
pub(super) fn map<const N: usize>(entries: [(&str, &str); N]) -> Map {
    entries.into_iter().filter(|(_, value)| !value.is_empty()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Returns all layers, what stands in an earlier one first.
///
/// As the templates of control planes do: an empty text counts as nothing, so that a later layer may fill it.
pub(super) fn first_wins<const N: usize>(layers: [&Map; N]) -> Map {
    let mut all = Map::new();
    for (key, value) in layers.into_iter().flatten() {
        let first: &mut String = all.entry(key.clone()).or_default();
        if first.is_empty() {
            first.clone_from(value);
        }
    }
    all
}

/// Returns the name of a port.
pub(super) fn port_name(number: u16) -> String {
    let mut name = format!("listener-{number}");
    name.truncate(MAX_NAME);
    name
}

/// Returns the port of a listener of a set, which may leave it to the protocol.
pub(super) fn port_of_set(listener: &Listener) -> Option<u16> {
    match (listener.port, listener.protocol.as_str()) {
        (0, "HTTP") => Some(80),
        (0, "HTTPS") => Some(443),
        (0, _) => None,
        (port, _) => Some(port),
    }
}

/// Returns the address that the Gateway asks for, where the Service has a field for one.
pub(super) fn load_balancer_ip(subject: &Subject<'_>, service_type: Option<&str>) -> Result<Option<String>, String> {
    let addresses = &subject.gateway.spec.addresses;
    if service_type != Some("LoadBalancer") || addresses.is_empty() {
        return Ok(None);
    }
    let invalid = || "spec.addresses holds no IP address that a load balancer could get".to_owned();
    let is_ip = |kind: Option<&str>| kind.is_none_or(|kind| kind == "IPAddress");
    let mut wanted = addresses.iter().filter(|address| is_ip(address.kind.as_deref()));
    let (Some(address), None) = (wanted.next(), wanted.next()) else {
        let several = addresses.iter().filter(|address| is_ip(address.kind.as_deref())).count() > 1;
        return Err(if several {
            format!("spec.addresses asks for {} addresses; only one can be given", addresses.len())
        } else {
            invalid()
        });
    };
    let value = address.value.clone().unwrap_or_default();
    value.parse::<IpAddr>().map(|_| Some(value)).map_err(|_| invalid())
}

/// Returns `registry/repository:tag@digest`, without the parts that are empty.
pub(super) fn image(image: &Image) -> Result<String, String> {
    let said = |part: &Option<String>| part.clone().filter(|text| !text.is_empty());
    let repository = said(&image.repository).ok_or("an image needs a repository")?;
    let registry = said(&image.registry).map(|registry| format!("{registry}/")).unwrap_or_default();
    let tag = said(&image.tag).map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = said(&image.digest).map(|digest| format!("@{digest}")).unwrap_or_default();
    Ok(format!("{registry}{repository}{tag}{digest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_leaves_out_what_is_not_said() {
        let some = |text: &str| Some(text.to_owned());
        let mut envoy =
            Image { registry: some("ghcr.io"), repository: some("envoy"), tag: some("v1"), ..Image::default() };
        assert_eq!(image(&envoy).as_deref(), Ok("ghcr.io/envoy:v1"));
        envoy.tag = some("");
        envoy.digest = some("sha256:0");
        assert_eq!(image(&envoy).as_deref(), Ok("ghcr.io/envoy@sha256:0"));
        envoy.repository = None;
        assert!(image(&envoy).is_err());
    }
}
