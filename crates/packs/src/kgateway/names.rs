//! Names, labels and annotations of the objects of a proxy.

use gatewright_engine::pack::Subject;
use gatewright_engine::text::safe_name;

use super::parameters::Kube;
use super::settings::Settings;
use crate::gateway::{first_wins, map, scraping};
use gatewright_engine::pack::gateway::{Map, infrastructure};

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
        let name = safe_name(&subject.gateway.metadata.name);
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
        let scraping = if kube.stats.enabled == Some(false) { Map::new() } else { scraping("9091") };
        let name = map([("gateway.kgateway.dev/gateway-full-name", subject.gateway.metadata.name.as_str())]);
        Self {
            service_labels: first_wins([&labels, &kube.service.extra_labels]),
            service_annotations: first_wins([&infra_annotations, &kube.service.extra_annotations]),
            account_labels: first_wins([&labels, &kube.service_account.extra_labels]),
            account_annotations: first_wins([&infra_annotations, &kube.service_account.extra_annotations]),
            pod_labels: first_wins([&class, &selector, &proxy, &infra_labels, &pods.extra_labels]),
            pod_annotations: first_wins([&infra_annotations, &pods.extra_annotations, &scraping, &name]),
            annotations: infra_annotations,
            selector,
            labels,
        }
    }
}
