//! Common parts of the data planes of several packs: addresses, images, labels, lists that the API server takes by
//! name, and the certificates of control planes.

pub mod authorities;
pub(crate) mod lint;
pub(crate) mod lists;
pub mod parameters;

use std::net::IpAddr;

use gatewright_engine::pack::Subject;
use gatewright_engine::pack::gateway::Map;
use gatewright_engine::problem::Problem;
use gatewright_engine::rules::UNSUPPORTED_ADDRESS_TYPE;

use crate::problems::problem;
use parameters::Image;

/// Returns the entries that say something.
pub(crate) fn map<const N: usize>(entries: [(&str, &str); N]) -> Map {
    entries.into_iter().filter(|(_, value)| !value.is_empty()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Returns the annotations by which Prometheus finds the metrics of a pod.
pub(crate) fn scraping(port: &str) -> Map {
    map([("prometheus.io/path", "/metrics"), ("prometheus.io/port", port), ("prometheus.io/scrape", "true")])
}

/// Returns all layers, what stands in an earlier one first.
///
/// As the templates of control planes do: an empty text counts as nothing, so that a later layer may fill it.
pub(crate) fn first_wins<const N: usize>(layers: [&Map; N]) -> Map {
    let mut all = Map::new();
    for (key, value) in layers.into_iter().flatten() {
        let first: &mut String = all.entry(key.clone()).or_default();
        if first.is_empty() {
            first.clone_from(value);
        }
    }
    all
}

/// Returns the address that the Gateway asks for, where the Service has a field for one.
pub(crate) fn load_balancer_ip(
    subject: &Subject<'_>,
    service_type: Option<&str>,
) -> Result<Option<String>, Vec<Problem>> {
    let addresses = &subject.gateway.spec.addresses;
    if service_type != Some("LoadBalancer") || addresses.is_empty() {
        return Ok(None);
    }
    let is_ip = |kind: Option<&str>| kind.is_none_or(|kind| kind == "IPAddress");
    let mut wanted = addresses.iter().filter(|address| is_ip(address.kind.as_deref()));
    let value = wanted.next().and_then(|address| address.value.clone());
    let wrong = |message: String| problem(subject.document, &["spec", "addresses"], message);
    match (value.filter(|value| value.parse::<IpAddr>().is_ok()), wanted.next()) {
        (_, Some(_)) => {
            Err(vec![wrong(format!("spec.addresses asks for {} addresses; only one can be given", addresses.len()))])
        }
        (None, None) => {
            let message = "spec.addresses holds no IP address that a load balancer could get";
            Err(vec![wrong(message.to_owned()).by(UNSUPPORTED_ADDRESS_TYPE)])
        }
        (ip, None) => Ok(ip),
    }
}

/// Returns `registry/repository:tag@digest`, without the parts that are empty.
pub(crate) fn image(image: &Image) -> Result<String, String> {
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
