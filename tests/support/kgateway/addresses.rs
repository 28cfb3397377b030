//! The addresses of a Gateway over time, as somebody sees them who watches it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::LIMIT;
use super::api::Api;
use super::reconcile::gateways;
use crate::cluster::ApiServer;

/// A watch, which misses nothing and ends with this value.
pub(crate) struct Addresses {
    runtime: Runtime,
    api: Api,
    path: String,
    seen: Arc<(Mutex<Vec<Seen>>, Condvar)>,
}

/// A state of the Gateway.
struct Seen {
    version: Value,
    addresses: Vec<String>,
}

impl Seen {
    fn of(gateway: &Value) -> Self {
        let all = gateway["status"]["addresses"].as_array().into_iter().flatten();
        let addresses = all.filter_map(|address| address["value"].as_str().map(str::to_owned)).collect();
        Self { version: gateway["metadata"]["resourceVersion"].clone(), addresses }
    }
}

impl Addresses {
    /// Begins with what a Gateway has now.
    pub(crate) fn watch(server: &ApiServer, namespace: &str, name: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let api = runtime.block_on(Api::new(&server.kubeconfig("admin")));
        let path = format!("{}/{name}", gateways(namespace));
        let now = runtime.block_on(api.get(&path)).expect("the server answers").expect("there is such a Gateway");
        let version = now["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let selector = format!("{}?fieldSelector=metadata.name%3D{name}", gateways(namespace));
        let mut events = runtime.block_on(api.watch(&selector, &version)).expect("the server takes watches");
        let seen = Arc::new((Mutex::new(vec![Seen::of(&now)]), Condvar::new()));
        let shared = Arc::clone(&seen);
        runtime.spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(gateway) | WatchEvent::Modified(gateway) | WatchEvent::Deleted(gateway) = event
                {
                    shared.0.lock().unwrap_or_else(PoisonError::into_inner).push(Seen::of(&gateway));
                    shared.1.notify_all();
                }
            }
        });
        Self { runtime, api, path, seen }
    }

    /// Returns all states that there were up to now, each once for as long as it lasted.
    pub(crate) fn seen(&self) -> Vec<Vec<String>> {
        let now = self.runtime.block_on(self.api.get(&self.path)).expect("the server answers");
        let version = now.expect("the Gateway is still there")["metadata"]["resourceVersion"].clone();
        let is_behind = |seen: &mut Vec<Seen>| !seen.iter().any(|seen| seen.version == version);
        let waited = self.seen.1.wait_timeout_while(self.lock(), LIMIT, is_behind);
        let (seen, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "the watch has ended before {version}");
        let mut states: Vec<Vec<String>> = seen.iter().map(|seen| seen.addresses.clone()).collect();
        states.dedup();
        states
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApiServer {
    /// Gives a Service the addresses that a cloud would give it, and takes those of before.
    pub(crate) fn give_ingress(&self, namespace: &str, service: &str, addresses: &[&str]) {
        let ingress: Vec<Value> = addresses.iter().map(|address| json!({"ip": address})).collect();
        let patch = json!({"status": {"loadBalancer": {"ingress": ingress}}}).to_string();
        let service = format!("service/{service}");
        let arguments = ["-n", namespace, "patch", &service, "--subresource=status", "--type=merge", "-p", &patch];
        self.kubectl_ok(&arguments);
    }
}
