//! The Envoy container: image, arguments, environment.

use serde_json::{Value, json};

use super::parameters::{EnvoyContainer, PodTemplate};
use super::settings::Settings;
use super::values::Wrong;
use crate::gateway::lists::last_wins;
use crate::json::said;

/// The name of the container, which overlays of users refer to.
const CONTAINER: &str = "kgateway-proxy";
/// The variable that we write and users may add to.
pub(super) const OTEL: &str = "OTEL_RESOURCE_ATTRIBUTES";

const LEVELS: &str = "kube.envoyContainer.bootstrap.componentLogLevels";
/// Variables that we write, in their order; who writes one of these, too, takes the place of ours.
pub(super) const OWN_VARIABLES: [&str; 5] = ["POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME", "ENVOY_UID"];

pub(super) fn args(envoy: &EnvoyContainer) -> Result<Vec<String>, Wrong> {
    let mut args = vec!["--disable-hot-restart", "--service-node", "$(POD_NAME).$(POD_NAMESPACE)"];
    if let Some(level) = envoy.bootstrap.log_level.as_deref().and_then(said) {
        args.extend(["--log-level", level]);
    }
    let mut levels = Vec::new();
    for (component, level) in &envoy.bootstrap.component_log_levels {
        if component.is_empty() || level.is_empty() {
            let message = format!("componentLogLevels has an empty key or value: {component:?}: {level:?}");
            return Err(Wrong::new(LEVELS, message).below(component));
        }
        levels.push(format!("{component}:{level}"));
    }
    levels.sort();
    let levels = levels.join(",");
    if !levels.is_empty() {
        args.extend(["--component-log-level", &levels]);
    }
    Ok(args.into_iter().map(str::to_owned).chain(envoy.extra_args.iter().cloned()).collect())
}

/// Returns the environment: ours, then the users'.
pub(super) fn env(settings: &Settings, envoy: &EnvoyContainer, deployment: &str) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let (theirs_otel, theirs): (Vec<&Value>, Vec<&Value>) =
        envoy.env.iter().partition(|variable| variable["name"] == OTEL);
    let ours = [
        field(OWN_VARIABLES[0], "metadata.name"),
        field(OWN_VARIABLES[1], "metadata.namespace"),
        field(OWN_VARIABLES[2], "metadata.uid"),
        field(OWN_VARIABLES[3], "spec.nodeName"),
        json!({"name": OWN_VARIABLES[4], "value": "0"}),
        json!({"name": OTEL, "value": resource_attributes(settings, deployment, &theirs_otel)}),
    ];
    last_wins(ours.into_iter().chain(theirs.into_iter().cloned()), &["name"])
}

/// Returns the attributes that describe a proxy to a telemetry back end (OpenTelemetry's semantic conventions for
/// Kubernetes).
fn resource_attributes(settings: &Settings, deployment: &str, theirs: &[&Value]) -> String {
    let version = said(&settings.version).map(|version| format!("service.version={version}")).unwrap_or_default();
    let ours = [
        "service.namespace=$(POD_NAMESPACE)",
        "service.instance.id=$(POD_UID)",
        &version,
        "k8s.namespace.name=$(POD_NAMESPACE)",
        "k8s.pod.name=$(POD_NAME)",
        "k8s.pod.uid=$(POD_UID)",
        "k8s.node.name=$(NODE_NAME)",
        &format!("k8s.deployment.name={deployment}"),
        &format!("k8s.container.name={CONTAINER}"),
    ];
    let theirs = theirs.iter().filter_map(|variable| variable["value"].as_str());
    ours.into_iter().chain(theirs).filter_map(said).collect::<Vec<_>>().join(",")
}

/// Returns what a container does before it ends: it fails its health checks and lets connections drain.
pub(super) fn pre_stop(pods: &PodTemplate) -> Option<String> {
    if pods.graceful_shutdown.enabled != Some(true) {
        return None;
    }
    // As kgateway does: no time at all means the default.
    let seconds = pods.graceful_shutdown.sleep_time_seconds.filter(|seconds| *seconds != 0).unwrap_or(10);
    let fail = r#"wget --post-data "" -O /dev/null 127.0.0.1:19000/healthcheck/fail"#;
    Some(format!("{fail}; sleep {seconds}"))
}
