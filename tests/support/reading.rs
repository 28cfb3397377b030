//! Objects as tests read them. kubectl takes a fifth of a second of CPU for each question, and tests ask thousands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::ApiServer;

/// Kinds as kubectl takes them, each with the API that has it and its name there. Of others kubectl itself is asked.
const KINDS: [(&str, &str, &str); 15] = [
    ("configmap", "api/v1", "configmaps"),
    ("pod", "api/v1", "pods"),
    ("secret", "api/v1", "secrets"),
    ("service", "api/v1", "services"),
    ("serviceaccount", "api/v1", "serviceaccounts"),
    ("deployment", "apis/apps/v1", "deployments"),
    ("daemonset", "apis/apps/v1", "daemonsets"),
    ("replicaset", "apis/apps/v1", "replicasets"),
    ("hpa", "apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("horizontalpodautoscaler", "apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("verticalpodautoscaler", "apis/autoscaling.k8s.io/v1", "verticalpodautoscalers"),
    ("pdb", "apis/policy/v1", "poddisruptionbudgets"),
    ("poddisruptionbudget", "apis/policy/v1", "poddisruptionbudgets"),
    ("gateway", "apis/gateway.networking.k8s.io/v1", "gateways"),
    ("gatewayparameters", "apis/gateway.kgateway.dev/v1alpha1", "gatewayparameters"),
];

/// Returns how to connect to a test cluster.
pub(crate) async fn config(kubeconfig: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the test cluster has one");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.expect("the kubeconfig of the test cluster is sound")
}

/// Waits for something on a runtime of its own: a test may have another, in which nobody may wait.
fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let make = || Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime can be made");
    let (sender, result) = mpsc::channel();
    RUNTIME.get_or_init(make).spawn(async move { drop(sender.send(work.await)) });
    result.recv().expect("the work has come to its end")
}

impl ApiServer {
    /// Reads what is at a path, such as `/api/v1/namespaces/default`, as `admin`.
    ///
    /// # Errors
    ///
    /// The server does not answer, or not with that.
    pub(crate) fn read(&self, path: &str) -> Result<Value, Error> {
        self.ask(path).map(|text| serde_json::from_str(&text).expect("an API server answers in JSON"))
    }

    /// Asks for the words at a path, such as `/readyz`.
    pub(super) fn ask(&self, path: &str) -> Result<String, Error> {
        let (client, path) = (self.client(), path.to_owned());
        wait(async move {
            let request = || Request::get(&path).body(Vec::new()).expect("paths of objects are paths");
            match client.request_text(request()).await {
                // The connection may be one to the server before it was started again.
                Err(error) if !matches!(error, Error::Api(_)) => client.request_text(request()).await,
                answer => answer,
            }
        })
    }

    /// Reads an object of a namespace, such as `configmap/edge`, with who has set what.
    #[track_caller]
    pub(crate) fn object(&self, namespace: &str, object: &str) -> Value {
        let known = object.split_once('/').and_then(|(kind, name)| Some((resource(kind)?, name)));
        let path = known.map(|((api, plural), name)| format!("/{api}/namespaces/{namespace}/{plural}/{name}"));
        path.and_then(|path| self.read(&path).ok()).unwrap_or_else(|| {
            let arguments = ["-n", namespace, "get", object, "-o", "json", "--show-managed-fields"];
            serde_json::from_str(&self.kubectl_ok(&arguments)).expect("kubectl prints JSON")
        })
    }

    /// Reads all objects of some kinds in a namespace, or in all of them if it is empty, such as `services,deployments`,
    /// without who has set what.
    #[track_caller]
    pub(crate) fn objects(&self, namespace: &str, kinds: &str) -> Vec<Value> {
        let within = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
        let list = |kind: &str| {
            let (api, plural) = resource(kind).expect("the kind is in the table");
            let list = self.read(&format!("/{api}/{within}{plural}"));
            let mut list = list.expect("the objects of a namespace can be listed");
            let (kind, version) = (list["kind"].as_str().unwrap_or_default().to_owned(), list["apiVersion"].take());
            let mut items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            for item in &mut items {
                // Those of built-in kinds do not say what they are.
                item["kind"] = json!(kind.trim_end_matches("List"));
                item["apiVersion"] = version.clone();
                item["metadata"].as_object_mut().expect("every object has it").remove("managedFields");
            }
            items
        };
        kinds.split(',').flat_map(list).collect()
    }

    fn client(&self) -> Client {
        static CLIENTS: Mutex<BTreeMap<PathBuf, Client>> = Mutex::new(BTreeMap::new());
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let kubeconfig = self.folder().join("admin.kubeconfig");
        let connect = |kubeconfig: PathBuf| async move { Client::try_from(config(&kubeconfig).await) };
        let make = || wait(connect(kubeconfig.clone())).expect("the kubeconfig of the test cluster is sound");
        clients.entry(kubeconfig.clone()).or_insert_with(make).clone()
    }
}

/// Returns the API and the name there of a kind, in the singular or the plural.
fn resource(kind: &str) -> Option<(&'static str, &'static str)> {
    let row = KINDS.iter().find(|(name, _, plural)| *name == kind || *plural == kind);
    row.map(|(_, api, plural)| (*api, *plural))
}
