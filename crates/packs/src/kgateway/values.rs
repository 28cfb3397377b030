//! The values of the templates of a proxy.

use gatewright_engine::merge::origin::{Merged, MergedContent};
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::text::safe_name;
use serde_json::{Value, json};

use super::names::Metadata;
use super::parameters::Kube;
use super::settings::Settings;
use super::volumes::Volumes;
use super::{bootstrap, container, istio, ports, rbac};
use crate::gateway::lists::last_wins;
use crate::gateway::{self, load_balancer_ip};

/// Ports below this one need a privilege, or a sysctl that lifts the need.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;
const UNPRIVILEGED_SYSCTL: &str = "net.ipv4.ip_unprivileged_port_start";

/// Something that is wrong with a parameter.
#[derive(Debug)]
pub(super) struct Wrong {
    /// Its path among the parameters: fields, and indices of lists.
    path: Vec<String>,
    message: String,
}

impl Wrong {
    /// Says what is wrong at a path of fields separated by dots.
    pub(super) fn new(path: &str, message: String) -> Self {
        Self { path: path.split('.').map(str::to_owned).collect(), message }
    }

    /// Says that it is one field further down, whatever the name of that has in it.
    pub(super) fn below(mut self, field: &str) -> Self {
        self.path.push(field.to_owned());
        self
    }

    fn problem(self, subject: &Subject<'_>, parameters: &Merged) -> Problem {
        let place = place(parameters, self.path.iter().map(String::as_str));
        Problem::invalid_parameters(place, self.message).about(subject.document.id.clone())
    }
}

/// Returns who set what stands at a path, or the nearest thing around it that somebody has set.
pub(super) fn place<'a>(parameters: &Merged, path: impl IntoIterator<Item = &'a str>) -> Place {
    let mut at = parameters;
    for part in path {
        let below = match &at.content {
            MergedContent::List(items) => part.parse().ok().and_then(|index: usize| items.get(index)),
            MergedContent::Map(fields) => fields.get(part),
            MergedContent::Leaf(_) => None,
        };
        let Some(below) = below else { break };
        at = below;
    }
    at.origin.place.clone()
}

/// Computes the values of all templates, or says everything that is in the way.
pub(super) fn values(
    settings: &Settings,
    subject: &Subject<'_>,
    parameters: &Merged,
    kube: &Kube,
) -> Result<Value, Vec<Problem>> {
    let wrong = |wrong: Wrong| vec![wrong.problem(subject, parameters)];
    let numbers = ports::numbers(subject, &kube.service);
    if numbers.is_empty() {
        let problem = problem(subject, "listeners", "no listener has a port that a proxy could listen on");
        return Err(vec![problem.hint(
            "ports 8082, 9091 and 19000 are the proxy's own; add a listener, or a port in spec.kube.service.ports",
        )]);
    }
    let name = safe_name(&subject.gateway.metadata.name);
    let metadata = Metadata::new(settings, subject, kube);
    let mut values = json!({
        "name": name,
        "namespace": subject.namespace,
        "selector": metadata.selector,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "serviceAccount": {"labels": metadata.account_labels, "annotations": metadata.account_annotations},
        "bootstrap": bootstrap::values(settings, subject, kube, &name),
        "service": service(subject, kube, &numbers).map_err(|message| vec![problem(subject, "addresses", &message)])?,
        "deployment": said(json!({"replicas": kube.deployment.replicas, "strategy": kube.deployment.strategy})),
        "container": container_values(settings, kube, &numbers, &name).map_err(wrong)?,
        "pod": pod(kube, &numbers),
        "rbac": rbac::values(&settings.rbac, subject, &name),
        "istio": settings.istio.auto_mtls.then(|| istio::values(kube)).transpose().map_err(wrong)?,
    });
    let volumes = Volumes::new(settings, subject, kube).map_err(wrong)?;
    values["pod"]["volumes"] = Value::Array(volumes.volumes);
    values["container"]["volumeMounts"] = Value::Array(volumes.mounts);
    if let Ok(Some(authorities)) = settings.xds.authorities() {
        values["authorities"] = Value::String(authorities);
    }
    values["service"]["labels"] = json!(metadata.service_labels);
    values["service"]["annotations"] = json!(metadata.service_annotations);
    values["pod"]["labels"] = json!(metadata.pod_labels);
    values["pod"]["annotations"] = json!(metadata.pod_annotations);
    Ok(values)
}

/// Returns a problem with a field of the Gateway's `spec`.
fn problem(subject: &Subject<'_>, field: &str, message: &str) -> Problem {
    let place = subject.document.place_of(&["spec", field]);
    Problem::document(place, message).about(subject.document.id.clone())
}

fn service(subject: &Subject<'_>, kube: &Kube, numbers: &[u16]) -> Result<Value, String> {
    let service = &kube.service;
    Ok(json!({
        "spec": said(json!({
            "type": service.kind,
            "externalTrafficPolicy": service.external_traffic_policy,
            "clusterIP": service.cluster_ip,
            "loadBalancerClass": service.load_balancer_class,
            "loadBalancerIP": load_balancer_ip(subject, service.kind.as_deref())?,
            "loadBalancerSourceRanges": service.load_balancer_source_ranges,
            "ports": ports::of_service(numbers, service),
        })),
    }))
}

fn container_values(settings: &Settings, kube: &Kube, numbers: &[u16], name: &str) -> Result<Value, Wrong> {
    let envoy = &kube.envoy_container;
    let pods = &kube.pod_template;
    Ok(json!({
        "args": container::args(envoy)?,
        "image": gateway::image(&envoy.image).map_err(|it| Wrong::new("kube.envoyContainer.image.repository", it))?,
        "pullPolicy": envoy.image.pull_policy,
        "env": container::env(settings, envoy, name),
        "ports": ports::of_container(numbers, kube.stats.enabled != Some(false)),
        "startupProbe": pods.startup_probe,
        "readinessProbe": pods.readiness_probe,
        "livenessProbe": pods.liveness_probe,
        "preStop": container::pre_stop(pods),
        "resources": envoy.resources,
        "securityContext": envoy.security_context,
    }))
}

fn pod(kube: &Kube, numbers: &[u16]) -> Value {
    let pods = &kube.pod_template;
    let constraints = last_wins(pods.topology_spread_constraints.clone(), &["topologyKey", "whenUnsatisfiable"]);
    json!({
        "spec": said(json!({
            "imagePullSecrets": last_wins(pods.image_pull_secrets.clone(), &["name"]),
            "securityContext": security_context(kube, numbers),
            "nodeSelector": pods.node_selector,
            "affinity": pods.affinity,
            "tolerations": pods.tolerations,
            "topologySpreadConstraints": constraints,
            "priorityClassName": pods.priority_class_name,
            "terminationGracePeriodSeconds": pods.termination_grace_period_seconds.filter(|seconds| *seconds != 0),
        })),
    })
}

/// The context of the pod, with the sysctl that lets Envoy listen on ports below 1024 without privileges.
fn security_context(kube: &Kube, numbers: &[u16]) -> Option<Value> {
    let context = kube.pod_template.security_context.clone();
    let needs_sysctl = numbers.iter().any(|port| *port < FIRST_UNPRIVILEGED_PORT);
    if !needs_sysctl || kube.omit_default_security_context == Some(true) {
        return context;
    }
    let mut context = context.unwrap_or_else(|| json!({}));
    let wanted = json!({"name": UNPRIVILEGED_SYSCTL, "value": "0"});
    let mut sysctls = context["sysctls"].as_array().cloned().unwrap_or_default();
    match sysctls.iter_mut().find(|sysctl| sysctl["name"] == UNPRIVILEGED_SYSCTL) {
        Some(sysctl) => *sysctl = wanted,
        None => sysctls.push(wanted),
    }
    context["sysctls"] = Value::Array(sysctls);
    Some(context)
}

/// Drops the fields that nobody said. What users wrote further down (an `emptyDir: {}`) is theirs and stays.
fn said(value: Value) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, value)| says(value)).collect()),
        other => other,
    }
}
