//! The values of the templates of a proxy.

use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::text::{digest, safe_name};
use serde_json::{Value, json};

use super::identity::{Spiffe, istio};
use super::parameters::Spec;
use super::settings::Settings;
use super::{config, container, ports};
use crate::gateway::{first_wins, load_balancer_ip, map, scraping};
use crate::problems::problem;
use gatewright_engine::pack::gateway::{Map, infrastructure};

/// Computes the values of all templates, or says everything that is in the way.
///
/// With `authorities` the control plane is asked over TLS, and these vouch for it.
pub(super) fn values(
    settings: &Settings,
    authorities: Option<&str>,
    subject: &Subject<'_>,
    spec: &Spec,
) -> Result<Value, Vec<Problem>> {
    let fail = |message: String| vec![subject.problem(&message)];
    let names = Names::new(subject, spec);
    let (istio, spiffe) = (istio(spec, &settings.istio), Spiffe::of(spec));
    let catalogs = config::catalogs(spec);
    let file = config::file(spec, spiffe.as_ref(), &catalogs);
    let sections = file.as_object().into_iter().flatten().map(|(name, value)| json!({"name": name, "value": value}));
    let digests = names.digests(authorities, subject, &file);
    let metadata = Metadata::new(settings, subject, &names.all, istio.is_some(), &digests);
    Ok(json!({
        "name": names.all,
        "kind": spec.workload.kind,
        "selector": metadata.selector,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "service": service(settings, subject)?,
        "config": sections.collect::<Vec<_>>(),
        "xdsCa": authorities.map(|text| json!({"name": format!("{}-xds-ca", names.all), "certificates": text})),
        "sessionKey": names.session_key.as_ref().map(|name| json!({"name": name, "labels": metadata.secret_labels})),
        "istio": istio.is_some(),
        "spiffe": spiffe.as_ref().map(Spiffe::values),
        "modelCatalog": catalogs,
        "pod": {
            "labels": metadata.pod_labels,
            "annotations": metadata.pod_annotations,
            "terminationGracePeriodSeconds": container::seconds(spec).1,
        },
        "container": {
            "image": container::image(&spec.image).map_err(fail)?,
            "pullPolicy": spec.image.pull_policy,
            "env": container::env(settings, spec, &names.all, names.session_key.as_deref(), istio.as_deref()),
            "resources": spec.resources,
        },
    }))
}

fn service(settings: &Settings, subject: &Subject<'_>) -> Result<Value, Vec<Problem>> {
    let numbers = ports::numbers(subject, settings.no_listeners_port);
    if numbers.is_empty() {
        let message = "no listener has a port that a proxy could open";
        let problem = problem(subject.document, &["spec", "listeners"], message);
        let hint = "ports 15000, 15020 and 15021 are the proxy's own, and internal ports are not opened";
        return Err(vec![problem.hint(hint)]);
    }
    let address = load_balancer_ip(subject, Some("LoadBalancer"))?;
    Ok(json!({"loadBalancerIP": address, "ports": ports::of_service(&numbers)}))
}

/// The names of the objects.
struct Names {
    all: String,
    session_key: Option<String>,
}

impl Names {
    fn new(subject: &Subject<'_>, spec: &Spec) -> Self {
        let all = safe_name(&subject.gateway.metadata.name);
        Self {
            // Who brings a key needs none of ours.
            session_key: (!container::brings(spec, container::SESSION_KEY))
                .then(|| safe_name(&format!("{all}-session-key"))),
            all,
        }
    }

    /// Returns digests of what pods read only once, which make them restart when it changes.
    ///
    /// Of the config file it is the digest of its content, so that another way to write it rolls nobody. The key of
    /// sessions is not known here; it never changes once it is made, and so its name and namespace stand for it.
    fn digests(&self, authorities: Option<&str>, subject: &Subject<'_>, file: &Value) -> Map {
        let of = |text: &str| digest(text.as_bytes());
        let secret = self.session_key.as_ref().map(|name| format!("{}/{name}", subject.namespace));
        map([
            ("checksum/config", of(&file.to_string()).as_str()),
            ("checksum/xds-ca", &authorities.map(of).unwrap_or_default()),
            ("checksum/session-key", &secret.as_deref().map(of).unwrap_or_default()),
        ])
    }
}

/// Labels and annotations; what stands earlier in a list of layers wins.
struct Metadata {
    selector: Map,
    labels: Map,
    annotations: Map,
    secret_labels: Map,
    pod_labels: Map,
    pod_annotations: Map,
}

impl Metadata {
    fn new(settings: &Settings, subject: &Subject<'_>, name: &str, istio: bool, digests: &Map) -> Self {
        let gateway = map([("gateway.networking.k8s.io/gateway-name", name)]);
        let app = map([("app.kubernetes.io/name", name), ("app.kubernetes.io/instance", name)]);
        let class = map([("gateway.networking.k8s.io/gateway-class-name", subject.class)]);
        let manager = map([("app.kubernetes.io/managed-by", settings.managed_by.as_str())]);
        let version = map([("app.kubernetes.io/version", settings.version.as_str())]);
        let (infrastructure_labels, annotations) = infrastructure(subject);
        let selector = first_wins([&app, &gateway]);
        // A proxy that has its own connection to the mesh is to be left alone by it.
        let mesh = map([("istio.io/dataplane-mode", "none"), ("sidecar.istio.io/inject", "false")]);
        let mesh = if istio { mesh } else { Map::new() };
        Self {
            labels: first_wins([&version, &manager, &class, &selector, &infrastructure_labels]),
            secret_labels: first_wins([&class, &gateway]),
            pod_labels: first_wins([&class, &selector, &infrastructure_labels, &mesh]),
            pod_annotations: first_wins([digests, &annotations, &scraping("15020")]),
            annotations,
            selector,
        }
    }
}
