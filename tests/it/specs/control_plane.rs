//! A stand-in for kgateway: its kinds, and what it says and does, by hand.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::ownership::site::Site;

pub(crate) const GROUP: &str = "gateway.kgateway.dev";
pub(crate) const VERSION: &str = "gateway.kgateway.dev/v1alpha1";
pub(crate) const KIND: &str = "GatewayParameters";
/// The name under which its deployer applies.
pub(crate) const MANAGER: &str = "kgateway.dev/kgateway";

/// A server with the Gateway API and kgateway's parameters, and with the garbage collector.
pub(crate) fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::with_controllers();
        server.install_gateway_api();
        server.install_deployers();
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

/// Applies the objects of a Gateway as kgateway does when it is its own deployer, so that they belong to the Gateway.
pub(crate) fn deploy(site: &Site, name: &str, objects: &[Value]) {
    let uid = site.get(&format!("gateway/{name}"))["metadata"]["uid"].clone();
    let owner = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": name, "uid": uid, "controller": true,
    });
    let items = objects.iter().cloned().map(|mut object| {
        object["metadata"]["ownerReferences"] = json!([owner]);
        object
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()});
    let manager = format!("--field-manager={MANAGER}");
    let arguments = ["apply", "--server-side", "--force-conflicts", "--validate=false", &manager, "-f", "-"];
    site.server.kubectl_stdin(&arguments, &list.to_string());
}

/// Does what kgateway does all the time while `work` goes on: it accepts each new generation of a self-managed Gateway.
pub(crate) fn while_it_watches<T>(site: &Site, name: &str, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let gateway = site.get(&format!("gateway/{name}"));
                let generation = gateway["metadata"]["generation"].as_i64().unwrap_or_default();
                let parameters = gateway["spec"]["infrastructure"]["parametersRef"]["name"].as_str();
                let is_new = gateway["status"]["conditions"][0]["observedGeneration"] != generation;
                if let Some(parameters) = parameters.filter(|_| is_new) {
                    // It would not accept a Gateway whose parameters are not there.
                    assert!(site.get(&format!("gatewayparameters/{parameters}"))["spec"]["selfManaged"].is_object());
                    accept(site, name, generation);
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}
