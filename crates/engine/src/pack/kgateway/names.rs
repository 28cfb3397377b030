//! Names, labels and annotations of the objects of a proxy.

use std::collections::BTreeMap;

use super::parameters::Kube;
use super::settings::Settings;
use crate::pack::Subject;
use crate::spec::GATEWAY_API;
use crate::text::safe_name;

pub(in crate::pack) type Map = BTreeMap<String, String>;

/// Returns the name of all objects of a Gateway: its own, or a shortened one that is as unique.
pub(in crate::pack) fn safe(name: &str) -> String {
    safe_name(name)
}

/// All labels and annotations of one proxy, `*_labels` and `*_annotations` by where they go.
pub(super) struct Metadata {
    pub(super) selector: Map,
    pub(super) labels: Map,
    pub(super) annotations: Map,
    pub(super) service_labels: Map,
    pub(super) service_annotations: Map,
    pub(super) account_labels: Map,
    pub(super) account_annotations: Map,
    pub(super) pod_labels: Map,
    pub(super) pod_annotations: Map,
}

impl Metadata {
    /// Puts them together; what stands earlier in a list of layers wins.
    pub(super) fn new(settings: &Settings, subject: &Subject<'_>, kube: &Kube) -> Self {
        let name = safe(&subject.gateway.metadata.name);
        let selector = map([
            ("app.kubernetes.io/name", name.as_str()),
            ("app.kubernetes.io/instance", &name),
            ("gateway.networking.k8s.io/gateway-name", &name),
        ]);
        let class = map([("gateway.networking.k8s.io/gateway-class-name", subject.class)]);
        let proxy = map([("kgateway", "kube-gateway"), ("app.kubernetes.io/component", "proxy")]);
        let manager = map([("app.kubernetes.io/managed-by", settings.managed_by.as_str())]);
        let version = map([("app.kubernetes.io/version", settings.version.as_str())]);
        let (infra_labels, infra_annotations) = infrastructure(subject);
        let labels = first_wins([&version, &proxy, &manager, &class, &selector, &infra_labels]);
        let pods = &kube.pod_template;
        let name = map([("gateway.kgateway.dev/gateway-full-name", subject.gateway.metadata.name.as_str())]);
        Self {
            service_labels: first_wins([&labels, &kube.service.extra_labels]),
            service_annotations: first_wins([&infra_annotations, &kube.service.extra_annotations]),
            account_labels: first_wins([&labels, &kube.service_account.extra_labels]),
            account_annotations: first_wins([&infra_annotations, &kube.service_account.extra_annotations]),
            pod_labels: first_wins([&class, &selector, &proxy, &infra_labels, &pods.extra_labels]),
            pod_annotations: first_wins([&infra_annotations, &pods.extra_annotations, &scraping(kube), &name]),
            annotations: infra_annotations,
            selector,
            labels,
        }
    }
}

/// Labels and annotations for every object (GEP-1867), without the standard's own keys.
pub(in crate::pack) fn infrastructure(subject: &Subject<'_>) -> (Map, Map) {
    let own = format!("{GATEWAY_API}/");
    let without_own =
        |map: &Map| map.iter().filter(|(key, _)| !key.starts_with(&own)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let infrastructure = subject.gateway.spec.infrastructure.clone().unwrap_or_default();
    (without_own(&infrastructure.labels), without_own(&infrastructure.annotations))
}

fn scraping(kube: &Kube) -> Map {
    match kube.stats.enabled {
        Some(false) => Map::new(),
        _ => {
            map([("prometheus.io/path", "/metrics"), ("prometheus.io/port", "9091"), ("prometheus.io/scrape", "true")])
        }
    }
}

pub(in crate::pack) fn map<const N: usize>(entries: [(&str, &str); N]) -> Map {
    entries.into_iter().filter(|(_, value)| !value.is_empty()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// As kgateway's templates do: an empty text counts as nothing, so that a later layer may fill it.
pub(in crate::pack) fn first_wins<const N: usize>(layers: [&Map; N]) -> Map {
    let mut all = Map::new();
    for (key, value) in layers.into_iter().flatten() {
        let first: &mut String = all.entry(key.clone()).or_default();
        if first.is_empty() {
            first.clone_from(value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_stays_unique() {
        assert_eq!(safe("edge"), "edge");
        assert_eq!(safe(&"a".repeat(63)).len(), 63);
        let (one, other) = (safe(&format!("{}-one", "a".repeat(70))), safe(&format!("{}-two", "a".repeat(70))));
        assert_eq!(one.len(), 63);
        assert_ne!(one, other);
    }

    #[test]
    fn a_dash_at_the_cut_is_dropped() {
        assert_eq!(safe(&format!("{}-{}", "a".repeat(49), "b".repeat(20))).len(), 62);
    }
}
