//! A stand-in for kgateway: its kinds, and what it says and does, by hand.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::ownership::site::Site;

pub(crate) const GROUP: &str = "gateway.kgateway.dev";
pub(crate) const VERSION: &str = "gateway.kgateway.dev/v1alpha1";
pub(crate) const KIND: &str = "GatewayParameters";

/// A server with the Gateway API and kgateway's parameters, and with the garbage collector.
pub(crate) fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::with_controllers();
        server.install_gateway_api();
        server
    })
}

pub(crate) fn document(api_version: &str, kind: &str, name: &str, namespace: Option<&str>, spec: &Value) -> Value {
    let mut document = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if let Some(namespace) = namespace {
        document["metadata"]["namespace"] = namespace.into();
    }
    document
}

/// A Gateway of kgateway's own class.
pub(crate) fn gateway(namespace: &str, name: &str, port: u16) -> Value {
    let listener = json!({"name": "http", "protocol": "HTTP", "port": port});
    let spec = json!({"gatewayClassName": "kgateway", "listeners": [listener]});
    document("gateway.networking.k8s.io/v1", "Gateway", name, Some(namespace), &spec)
}

/// A reference to parameters.
pub(crate) struct Reference<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: Option<&'a str>,
}

impl Reference<'_> {
    pub(crate) fn to_value(&self) -> Value {
        let mut reference = json!({"group": GROUP, "kind": KIND, "name": self.name});
        if let Some(namespace) = self.namespace {
            reference["namespace"] = namespace.into();
        }
        reference
    }
}

pub(crate) fn generation_of(site: &Site, object: &str) -> i64 {
    site.get(object)["metadata"]["generation"].as_i64().expect("this kind counts generations")
}

/// Says of a Gateway what kgateway says when it is content with this generation.
pub(crate) fn accept(site: &Site, name: &str, generation: i64) {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({"status": {"conditions": [condition("Accepted"), condition("Programmed")]}}).to_string();
    site.kubectl(&["patch", "gateway", name, "--subresource=status", "--type=merge", "-p", &status]);
}
