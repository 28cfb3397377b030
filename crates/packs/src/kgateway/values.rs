//! The values of the templates of a proxy.

use gatewright_engine::merge::origin::{Merged, MergedContent};
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::text::safe_name;
use serde_json::{Value, json};

use super::names::Metadata;
use super::parameters::Kube;
use super::settings::Settings;
use super::volumes::Volumes;
use super::{bootstrap, container, istio, ports};
use crate::gateway::lists::last_wins;
use crate::gateway::{self, load_balancer_ip};
use crate::problems::problem;

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

    /// It stands where the parameter was set, or the nearest thing around it that somebody has set.
    fn problem(self, subject: &Subject<'_>, parameters: &Merged) -> Problem {
        let mut at = parameters;
        for part in &self.path {
            let below = match &at.content {
                MergedContent::List(items) => part.parse().ok().and_then(|index: usize| items.get(index)),
                MergedContent::Map(_) | MergedContent::Leaf(_) => at.get(part),
            };
            let Some(below) = below else { break };
            at = below;
        }
        Problem::invalid_parameters(at.origin.place.clone(), self.message).about(subject.document.id.clone())
    }
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
        let message = "no listener has a port that a proxy could listen on";
        let problem = problem(subject.document, &["spec", "listeners"], message);
        return Err(vec![problem.hint(
            "ports 8082, 9091 and 19000 are the proxy's own; add a listener, or a port in spec.kube.service.ports",
        )]);
    }
    let name = safe_name(&subject.gateway.metadata.name);
    let metadata = Metadata::new(settings, subject, kube);
    let service = service(subject, kube, &numbers)?;
    let mut container = container_values(settings, kube, &numbers, &name).map_err(wrong)?;
    let istio = settings.istio.auto_mtls.then(|| istio::values(kube)).transpose().map_err(wrong)?;
    let volumes = Volumes::new(settings, subject, kube).map_err(wrong)?;
    container["volumeMounts"] = volumes.mounts.into();
    // A namespace has no dot, so no two Gateways of a cluster share a name; and it has at most 142 bytes.
    let role = format!("kgateway-proxy.{}.{name}", subject.namespace);
    Ok(json!({
        "name": name,
        "namespace": subject.namespace,
        "selector": metadata.selector,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "serviceAccount": {"labels": metadata.account_labels, "annotations": metadata.account_annotations},
        "bootstrap": bootstrap::values(settings, subject, kube, &name),
        "service": {"spec": service, "labels": metadata.service_labels, "annotations": metadata.service_annotations},
        "deployment": said(json!({"replicas": kube.deployment.replicas, "strategy": kube.deployment.strategy})),
        "container": container,
        "pod": {
            "spec": pod(kube, &numbers),
            "volumes": volumes.volumes,
            "labels": metadata.pod_labels,
            "annotations": metadata.pod_annotations,
        },
        "rbac": settings.rbac.enabled.then(|| json!({"name": role, "rules": settings.rbac.rules})),
        "istio": istio,
    }))
}

fn service(subject: &Subject<'_>, kube: &Kube, numbers: &[u16]) -> Result<Value, Vec<Problem>> {
    let service = &kube.service;
    Ok(said(json!({
        "type": service.kind,
        "externalTrafficPolicy": service.external_traffic_policy,
        "clusterIP": service.cluster_ip,
        "loadBalancerClass": service.load_balancer_class,
        "loadBalancerIP": load_balancer_ip(subject, service.kind.as_deref())?,
        "loadBalancerSourceRanges": service.load_balancer_source_ranges,
        "ports": ports::of_service(numbers, service),
    })))
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
    said(json!({
        "imagePullSecrets": last_wins(pods.image_pull_secrets.clone(), &["name"]),
        "securityContext": security_context(kube, numbers),
        "nodeSelector": pods.node_selector,
        "affinity": pods.affinity,
        "tolerations": pods.tolerations,
        "topologySpreadConstraints": constraints,
        "priorityClassName": pods.priority_class_name,
        "terminationGracePeriodSeconds": pods.termination_grace_period_seconds.filter(|seconds| *seconds != 0),
    }))
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
