//! The values of the templates of a proxy.

use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::text::{digest, safe_name};
use serde_json::{Value, json};

use super::identity::{Istio, Spiffe};
use super::parameters::Spec;
use super::settings::Settings;
use super::{config, container, ports};
use crate::gateway::{first_wins, load_balancer_ip, map};
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
    let metadata = Metadata::new(settings, subject, &names.all);
    let (istio, spiffe) = (Istio::of(spec, &settings.istio), Spiffe::of(spec));
    let catalogs = config::catalogs(spec);
    let file = config::file(spec, spiffe.as_ref(), &catalogs);
    let pod_annotations = names.digests(authorities, subject, &file);
    Ok(json!({
        "name": names.all,
        "kind": spec.workload.kind.name(),
        "selector": metadata.selector,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "service": service(settings, subject)?,
        "config": config::sections(&file),
        "xdsCa": authorities.map(|text| json!({"name": names.xds_ca, "certificates": text})),
        "sessionKey": names.session_key.as_ref().map(|name| json!({"name": name, "labels": metadata.secret_labels})),
        "istio": istio.is_some(),
        "spiffe": spiffe.as_ref().map(Spiffe::values),
        "modelCatalog": catalogs,
        "pod": {
            "labels": metadata.pod_labels(istio.is_some()),
            "annotations": metadata.pod_annotations(&pod_annotations),
            "terminationGracePeriodSeconds": container::seconds(spec).1,
        },
        "container": {
            "image": container::image(&spec.image).map_err(fail)?,
            "pullPolicy": spec.image.pull_policy,
            "env": container::env(settings, spec, &names.all, names.session_key.as_deref(), istio.as_ref()),
            "resources": spec.resources,
        },
    }))
}

/// Returns a problem with a field of the Gateway's `spec`.
fn problem(subject: &Subject<'_>, field: &str, message: &str) -> Problem {
    let place = subject.document.place_of(&["spec", field]);
    Problem::document(place, message).about(subject.document.id.clone())
}

fn service(settings: &Settings, subject: &Subject<'_>) -> Result<Value, Vec<Problem>> {
    let numbers = ports::numbers(subject, settings.no_listeners_port);
    if numbers.is_empty() {
        let problem = problem(subject, "listeners", "no listener has a port that a proxy could open");
        let hint = "ports 15000, 15020 and 15021 are the proxy's own, and internal ports are not opened";
        return Err(vec![problem.hint(hint)]);
    }
    let address = load_balancer_ip(subject, Some("LoadBalancer"));
    let address = address.map_err(|message| vec![problem(subject, "addresses", &message)])?;
    Ok(json!({"loadBalancerIP": address, "ports": ports::of_service(&numbers)}))
}

/// The names of the objects.
struct Names {
    all: String,
    xds_ca: String,
    session_key: Option<String>,
}

impl Names {
    fn new(subject: &Subject<'_>, spec: &Spec) -> Self {
        let all = safe_name(&subject.gateway.metadata.name);
        Self {
            xds_ca: format!("{all}-xds-ca"),
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
        let mut digests = map([("checksum/config", of(&file.to_string()).as_str())]);
        if let Some(authorities) = authorities {
            digests.extend(map([("checksum/xds-ca", of(authorities).as_str())]));
        }
        if let Some(name) = &self.session_key {
            let secret = of(&format!("{}/{name}", subject.namespace));
            digests.extend(map([("checksum/session-key", secret.as_str())]));
        }
        digests
    }
}

/// Labels and annotations; what stands earlier in a list of layers wins.
struct Metadata {
    selector: Map,
    labels: Map,
    annotations: Map,
    secret_labels: Map,
    class: Map,
    infrastructure_labels: Map,
}

impl Metadata {
    fn new(settings: &Settings, subject: &Subject<'_>, name: &str) -> Self {
        let gateway = map([("gateway.networking.k8s.io/gateway-name", name)]);
        let app = map([("app.kubernetes.io/name", name), ("app.kubernetes.io/instance", name)]);
        let class = map([("gateway.networking.k8s.io/gateway-class-name", subject.class)]);
        let manager = map([("app.kubernetes.io/managed-by", settings.managed_by.as_str())]);
        let version = map([("app.kubernetes.io/version", settings.version.as_str())]);
        let (infrastructure_labels, annotations) = infrastructure(subject);
        let selector = first_wins([&app, &gateway]);
        Self {
            labels: first_wins([&version, &manager, &class, &selector, &infrastructure_labels]),
            secret_labels: first_wins([&class, &gateway]),
            annotations,
            selector,
            class,
            infrastructure_labels,
        }
    }

    /// A proxy that has its own connection to the mesh is to be left alone by it.
    fn pod_labels(&self, istio: bool) -> Map {
        let mesh = map([("istio.io/dataplane-mode", "none"), ("sidecar.istio.io/inject", "false")]);
        let mesh = if istio { mesh } else { Map::new() };
        first_wins([&self.class, &self.selector, &self.infrastructure_labels, &mesh])
    }

    fn pod_annotations(&self, digests: &Map) -> Map {
        let scraping = map([
            ("prometheus.io/path", "/metrics"),
            ("prometheus.io/port", "15020"),
            ("prometheus.io/scrape", "true"),
        ]);
        first_wins([digests, &self.annotations, &scraping])
    }
}
