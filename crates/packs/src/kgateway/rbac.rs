//! Rights of a proxy on the API server, for what runs beside Envoy and asks there.

use gatewright_engine::pack::Subject;
use serde_json::{Value, json};

use super::settings::RbacSettings;

/// Returns the values of `ClusterRole` and `ClusterRoleBinding` for the proxy called `name`.
///
/// A namespace has no dot, so no two Gateways of a cluster share a name; and it has at most 142 bytes.
pub(super) fn values(settings: &RbacSettings, subject: &Subject<'_>, name: &str) -> Option<Value> {
    let name = format!("kgateway-proxy.{}.{name}", subject.namespace);
    settings.enabled.then(|| json!({"name": name, "rules": settings.rules}))
}
