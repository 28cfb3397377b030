//! `Gateway` and `GatewayClass` of `gateway.networking.k8s.io`, as far as a provisioner needs them.
//!
//! Every field of the standard is known here, so that a misspelled one is found; those that change no
//! infrastructure (routes, TLS options) are kept as they are. Rules: Gateway API v1.5, GEP-1762, GEP-1867.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Resource;

/// A request for a data plane.
pub type Gateway = Resource<GatewaySpec>;

/// The spec of a Gateway: what it asks for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// The class that says who provisions it, and how.
    #[schemars(length(min = 1, max = 253))]
    pub gateway_class_name: String,
    /// The listeners of the Gateway.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub listeners: Vec<Listener>,
    /// Addresses that it wants.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub addresses: Vec<Address>,
    /// Settings for the objects that are made for it (GEP-1867).
    pub infrastructure: Option<Infrastructure>,
    /// The `ListenerSets` that may attach.
    pub allowed_listeners: Option<Value>,
    /// TLS between clients, gateway and backends (GEP-91, GEP-3155).
    pub tls: Option<Value>,
    /// Experimental (GEP-3793); changes no infrastructure.
    pub default_scope: Option<String>,
}

/// One port and what is served there.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-gatewright-slips" = {
    "name": "every listener needs a name of its own, such as \"http\"",
    "hostnames": "a listener has one hostname: hostname",
    "targetPort": "a listener has a port only; the container listens on the same one"
}))]
pub struct Listener {
    /// Unique within the Gateway.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// 1 to 65535; a `ListenerSet` may leave it out (0) where the protocol has a port of its own.
    #[schemars(range(min = 0, max = 65535))]
    pub port: u16,
    /// `HTTP`, `HTTPS`, `TLS`, `TCP`, `UDP`, or a vendor's own.
    #[schemars(length(min = 1, max = 255))]
    pub protocol: String,
    /// Changes no infrastructure.
    pub hostname: Option<String>,
    /// Certificates; read by the data plane's control plane.
    pub tls: Option<Value>,
    /// Changes no infrastructure.
    pub allowed_routes: Option<Value>,
}

/// An address that a Gateway wants.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Address {
    /// `IPAddress` (the default), `Hostname`, or a vendor's own.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Absent or empty: any.
    pub value: Option<String>,
}

/// Settings for the objects that are made for a Gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Infrastructure {
    /// For every object that is made.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// For every object that is made.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Parameters of this Gateway, in its own namespace.
    pub parameters_ref: Option<LocalRef>,
}

/// A reference within the same namespace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct LocalRef {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A kind of Gateways: who provisions them, and with which parameters.
pub type GatewayClass = Resource<GatewayClassSpec>;

/// The spec of a class.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayClassSpec {
    /// The controller that provisions its Gateways: a domain and a path.
    #[schemars(length(min = 1, max = 253))]
    pub controller_name: String,
    /// Parameters of all Gateways of the class.
    pub parameters_ref: Option<ClassRef>,
    /// For people.
    pub description: Option<String>,
}

/// A reference from an object without a namespace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ClassRef {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; needed when the kind has namespaces.
    pub namespace: Option<String>,
}
