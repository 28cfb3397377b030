//! The kinds of the Gateway API and of kgateway, for API servers under test.
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

const GATEWAY_API: &str = "gateway.networking.k8s.io";

impl ApiServer {
    /// Makes the kinds known; to be called once for a server.
    pub(crate) fn install_gateway_api(&self) {
        KINDS.into_iter().for_each(|kind| self.install_kind(kind));
    }

    /// Makes a kind known: file below `crds`, group, version, plural, kind, scope. Without the file it takes everything.
    pub(crate) fn install_kind(&self, kind: [&str; 6]) {
        let [file, group, _, plural, ..] = kind;
        let text = fs::read_to_string(cases().join("crds").join(file)).unwrap_or_else(|_| minimal(kind).to_string());
        self.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &text);
        // Its first conditions may take a moment, and without any kubectl does not wait.
        let name = format!("crd/{plural}.{group}");
        self.kubectl_ok(&["wait", "--for=create", &name, "--timeout=60s"]);
        let conditions = "jsonpath={.status.conditions}";
        self.kubectl_ok(&["wait", &format!("--for={conditions}"), &name, "--timeout=60s"]);
        self.kubectl_ok(&["wait", "--for=condition=Established", &name, "--timeout=60s"]);
    }
}

/// Returns the folder with cases of real systems, whether or not it is there.
#[expect(clippy::disallowed_methods, reason = "the one switch for where cases are, for the person who runs them")]
pub(crate) fn cases() -> PathBuf {
    std::env::var_os("GATEWRIGHT_CASES").map_or_else(|| in_repository("../shared/goldens"), PathBuf::from)
}

fn minimal([_, group, version, plural, kind, scope]: [&str; 6]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": version, "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // Groups of Kubernetes are reserved for those whom it has approved.
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group, "scope": scope, "versions": [version],
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        },
    })
}
