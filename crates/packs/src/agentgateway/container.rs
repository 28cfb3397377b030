//! The proxy's container: image and environment.

use serde_json::{Value, json};

use super::parameters::Spec;
use super::settings::Settings;
use crate::gateway::lists::last_wins;
use crate::gateway::{self, parameters::Image};
use crate::json::said;

/// The variable with the key that sessions are encrypted with.
pub(super) const SESSION_KEY: &str = "SESSION_KEY";

/// Returns the time that the proxy may take to end, in seconds: at least, at most.
pub(super) fn seconds(spec: &Spec) -> (i64, i64) {
    // As agentgateway does: no time at all means the default.
    let or = |seconds: Option<i64>, default| seconds.filter(|seconds| *seconds != 0).unwrap_or(default);
    let shutdown = spec.shutdown.as_ref();
    (or(shutdown.map(|shutdown| shutdown.min), 10), or(shutdown.map(|shutdown| shutdown.max), 60))
}

pub(super) fn image(image: &Image) -> Result<String, String> {
    // Agentgateway writes it between quotes of YAML, where a line break is a space. There is no such image either way;
    // what is there already stays as it is.
    gateway::image(image).map(|image| image.replace('\n', " "))
}

/// Tells whether users bring a variable of this name.
pub(super) fn brings(spec: &Spec, name: &str) -> bool {
    spec.env.iter().any(|variable| variable["name"] == name)
}

/// Returns the environment: ours but for what users bring themselves, then the users'.
pub(super) fn env(
    settings: &Settings,
    spec: &Spec,
    name: &str,
    key: Option<&str>,
    istio: Option<&[(&str, String)]>,
) -> Vec<Value> {
    let ours = ours(settings, spec, name, key, istio).into_iter();
    let ours = ours.filter(|variable| variable["name"].as_str().is_some_and(|name| !brings(spec, name)));
    last_wins(ours.chain(spec.env.iter().map(without_nothing)), &["name"])
}

fn ours(
    settings: &Settings,
    spec: &Spec,
    name: &str,
    key: Option<&str>,
    istio: Option<&[(&str, String)]>,
) -> Vec<Value> {
    let value = |name: &str, text: &str| json!({"name": name, "value": text});
    let from = |name: &str, source: Value| json!({"name": name, "valueFrom": source});
    let field = |name: &str, path: &str| from(name, json!({"fieldRef": {"fieldPath": path}}));
    let (min, max) = seconds(spec);
    let level = spec.logging.level.as_deref().and_then(said).unwrap_or("info");
    let (scheme, authority) = match settings.xds.tls {
        Some(_) => ("https", Some(value("XDS_ROOT_CA", "/etc/xds-tls/ca.crt"))),
        None => ("http", None),
    };
    let mut variables = vec![
        value("TERMINATION_GRACE_PERIOD_SECONDS", &max.to_string()),
        value("CONNECTION_MIN_TERMINATION_DEADLINE", &format!("{min}s")),
        field("NODE_NAME", "spec.nodeName"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("POD_NAME", "metadata.name"),
        value("RUST_BACKTRACE", "1"),
        value("RUST_LOG", level),
    ];
    variables.extend(key.map(|secret| from(SESSION_KEY, json!({"secretKeyRef": {"name": secret, "key": "key"}}))));
    variables.push(value("XDS_ADDRESS", &format!("{scheme}://{}:{}", settings.xds.host, settings.xds.port)));
    variables.extend(authority);
    variables.extend([
        field("NAMESPACE", "metadata.namespace"),
        value("GATEWAY", name),
        from("CPU_LIMIT", json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}})),
        field("INSTANCE_IP", "status.podIP"),
        field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    ]);
    variables.extend(istio.into_iter().flatten().map(|(name, text)| value(name, text)));
    variables
}

/// An empty value is none: so every API server stores it.
fn without_nothing(variable: &Value) -> Value {
    let mut variable = variable.clone();
    if let Value::Object(fields) = &mut variable {
        fields.retain(|field, value| field != "value" || *value != "");
    }
    variable
}
