//! The proxy's container: image and environment.

use serde_json::{Value, json};

use super::identity::Istio;
use super::parameters::Spec;
use super::settings::Settings;
use crate::gateway::lists::last_wins;
use crate::gateway::{self, parameters::Image};

/// The variable with the key that sessions are encrypted with.
pub(super) const SESSION_KEY: &str = "SESSION_KEY";

/// Returns the time that the proxy may take to end, in seconds: at least, at most.
pub(super) fn seconds(spec: &Spec) -> (i64, i64) {
    // As agentgateway does: no time at all means the default.
    let or = |seconds: Option<i64>, default| seconds.filter(|seconds| *seconds != 0).unwrap_or(default);
    let shutdown = spec.shutdown.as_ref();
    (or(shutdown.map(|shutdown| shutdown.min), 10), or(shutdown.map(|shutdown| shutdown.max), 60))
}

/// Returns the image.
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
    istio: Option<&Istio>,
) -> Vec<Value> {
    let ours = ours(settings, spec, name, key, istio).into_iter();
    let ours = ours.filter(|(name, _)| !brings(spec, name)).map(|(name, variable)| named(name, variable));
    last_wins(ours.chain(spec.env.iter().map(without_nothing)), &["name"])
}

type Variables = Vec<(&'static str, Value)>;

fn ours(settings: &Settings, spec: &Spec, name: &str, key: Option<&str>, istio: Option<&Istio>) -> Variables {
    let value = |text: &str| json!({"value": text});
    let from = |source: Value| json!({"valueFrom": source});
    let field = |path: &str| from(json!({"fieldRef": {"fieldPath": path}}));
    let (min, max) = seconds(spec);
    let level = spec.logging.level.as_deref().filter(|level| !level.is_empty()).unwrap_or("info");
    let (scheme, authority) = match settings.xds.tls {
        Some(_) => ("https", Some(("XDS_ROOT_CA", value("/etc/xds-tls/ca.crt")))),
        None => ("http", None),
    };
    let key = key.map(|secret| (SESSION_KEY, from(json!({"secretKeyRef": {"name": secret, "key": "key"}}))));
    let mut variables = vec![
        ("TERMINATION_GRACE_PERIOD_SECONDS", value(&max.to_string())),
        ("CONNECTION_MIN_TERMINATION_DEADLINE", value(&format!("{min}s"))),
        ("NODE_NAME", field("spec.nodeName")),
        ("POD_NAMESPACE", field("metadata.namespace")),
        ("POD_NAME", field("metadata.name")),
        ("RUST_BACKTRACE", value("1")),
        ("RUST_LOG", value(level)),
    ];
    variables.extend(key);
    variables.push(("XDS_ADDRESS", value(&format!("{scheme}://{}:{}", settings.xds.host, settings.xds.port))));
    variables.extend(authority);
    variables.extend([
        ("NAMESPACE", field("metadata.namespace")),
        ("GATEWAY", value(name)),
        ("CPU_LIMIT", from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}))),
        ("INSTANCE_IP", field("status.podIP")),
        ("SERVICE_ACCOUNT", field("spec.serviceAccountName")),
    ]);
    variables.extend(istio.map(Istio::env).into_iter().flatten().map(|(name, text)| (name, value(&text))));
    variables
}

fn named(name: &str, mut variable: Value) -> Value {
    variable["name"] = Value::from(name);
    variable
}

/// An empty value is none: so every API server stores it.
fn without_nothing(variable: &Value) -> Value {
    let mut variable = variable.clone();
    if let Value::Object(fields) = &mut variable {
        fields.retain(|field, value| field != "value" || *value != "");
    }
    variable
}
