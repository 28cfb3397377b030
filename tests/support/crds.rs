//! Kinds of the Gateway API, of kgateway, and of what belongs to inference, for API servers under test.
//!
//! The real ones come from a folder of cases beside the repository, whose place `GATEWRIGHT_CASES` says.
//! Where there is none, kinds of the same names that take everything do.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::ApiServer;
use super::binaries::in_repository;

/// The kinds: file below `crds`, group, version, plural, kind, scope.
const KINDS: [[&str; 6]; 4] = [
    ["standard/gatewayclasses.yaml", GATEWAY_API, "v1", "gatewayclasses", "GatewayClass", "Cluster"],
    ["standard/gateways.yaml", GATEWAY_API, "v1", "gateways", "Gateway", "Namespaced"],
    ["standard/listenersets.yaml", GATEWAY_API, "v1", "listenersets", "ListenerSet", "Namespaced"],
    [
        "kgateway/gatewayparameters.yaml",
        "gateway.kgateway.dev",
        "v1alpha1",
        "gatewayparameters",
        "GatewayParameters",
        "Namespaced",
    ],
];

/// The other kinds that controllers of Gateways deal with.
const DEPLOYERS: [[&str; 6]; 2] = [
    ["", "autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler", "Namespaced"],
    [
        "agentgateway/agentgatewayparameters.yaml",
        "agentgateway.dev",
        "v1alpha1",
        "agentgatewayparameters",
        "AgentgatewayParameters",
        "Namespaced",
    ],
];

/// Pools, and what is rendered beside their pickers. Where no file has the kind, one that takes everything does.
const INFERENCE: [[&str; 6]; 11] = [
    [
        "inference/inference.networking.k8s.io_inferencepools.yaml",
        "inference.networking.k8s.io",
        "v1",
        "inferencepools",
        "InferencePool",
        "Namespaced",
    ],
    [
        "inference/inference.networking.x-k8s.io_inferenceobjectives.yaml",
        "inference.networking.x-k8s.io",
        "v1alpha2",
        "inferenceobjectives",
        "InferenceObjective",
        "Namespaced",
    ],
    ["standard/httproutes.yaml", GATEWAY_API, "v1", "httproutes", "HTTPRoute", "Namespaced"],
    ["", "monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor", "Namespaced"],
    ["", "monitoring.googleapis.com", "v1", "podmonitorings", "PodMonitoring", "Namespaced"],
    ["", "monitoring.googleapis.com", "v1", "clusterpodmonitorings", "ClusterPodMonitoring", "Cluster"],
    ["", GKE, "v1", "gcpbackendpolicies", "GCPBackendPolicy", "Namespaced"],
    ["", GKE, "v1", "healthcheckpolicies", "HealthCheckPolicy", "Namespaced"],
    ["", GKE, "v1", "gcproutingextensions", "GCPRoutingExtension", "Namespaced"],
    ["", ISTIO, "v1 v1beta1", "destinationrules", "DestinationRule", "Namespaced"],
    ["", ISTIO, "v1alpha3", "envoyfilters", "EnvoyFilter", "Namespaced"],
];

const GATEWAY_API: &str = "gateway.networking.k8s.io";
const GKE: &str = "networking.gke.io";
const ISTIO: &str = "networking.istio.io";

impl ApiServer {
    /// Makes the kinds known; to be called once for a server.
    pub(crate) fn install_gateway_api(&self) {
        self.install(&KINDS);
    }

    /// Makes known what else controllers of Gateways deal with; to be called once for a server.
    pub(crate) fn install_deployers(&self) {
        self.install(&DEPLOYERS);
    }

    /// Makes known what belongs to inference; to be called once for a server.
    pub(crate) fn install_inference(&self) {
        self.install(&INFERENCE);
    }

    fn install(&self, kinds: &[[&str; 6]]) {
        for kind in kinds {
            self.install_kind(*kind);
        }
    }

    /// Makes a kind known: file below `crds`, group, version, plural, kind, scope. Without the file it takes everything.
    pub(crate) fn install_kind(&self, kind: [&str; 6]) {
        let [file, group, _, plural, ..] = kind;
        let text = fs::read_to_string(cases().join("crds").join(file)).unwrap_or_else(|_| minimal(kind).to_string());
        self.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &text);
        self.await_kind(&format!("{plural}.{group}"));
    }

    /// Waits until the kind of a definition may be used.
    pub(crate) fn await_kind(&self, definition: &str) {
        // Its first conditions may take a moment, and without any kubectl does not wait.
        let name = format!("crd/{definition}");
        self.kubectl_ok(&["wait", "--for=create", &name, "--timeout=60s"]);
        let conditions = "jsonpath={.status.conditions}";
        self.kubectl_ok(&["wait", &format!("--for={conditions}"), &name, "--timeout=60s"]);
        self.kubectl_ok(&["wait", "--for=condition=Established", &name, "--timeout=60s"]);
    }
}

/// Returns the folder with cases of real systems that has definitions of kinds, whether or not it is there.
#[expect(clippy::disallowed_methods, reason = "the one switch for where cases are, for the person who runs them")]
pub(crate) fn cases() -> PathBuf {
    let named = std::env::var_os("GATEWRIGHT_CASES").unwrap_or_default();
    let mut folders = std::env::split_paths(&named);
    folders.find(|folder| folder.join("crds").is_dir()).unwrap_or_else(|| in_repository("../shared/goldens"))
}

fn minimal([_, group, versions, plural, kind, scope]: [&str; 6]) -> Value {
    // Of kgateway's parameters one field is as the real ones have it: a number, and not `null`.
    let fields: &[&str] = if kind == "GatewayParameters" { &["spec", "kube", "deployment"] } else { &[] };
    let below = |properties: &Value| json!({"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": true});
    let innermost = match fields {
        [] => json!({}),
        _ => json!({"replicas": {"type": "integer", "format": "int32", "minimum": 0}}),
    };
    let properties = fields.iter().rev().fold(innermost, |inner, field| json!({*field: below(&inner)}));
    let schema = json!({"openAPIV3Schema": below(&properties)});
    let version = |(index, version)| {
        let is_first = index == 0;
        json!({"name": version, "served": true, "storage": is_first, "schema": schema, "subresources": {"status": {}}})
    };
    let versions: Vec<Value> = versions.split(' ').enumerate().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // Groups of Kubernetes are reserved for those whom it has approved.
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group, "scope": scope, "versions": versions,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        },
    })
}
