//! `AgentgatewayParameters` of `agentgateway.dev/v1alpha1`.
//!
//! Few fields are typed; everything else about the objects is a patch of them. Types of Kubernetes itself are kept as
//! JSON, because they go into the objects as they are.

use gatewright_engine::spec::Resource;
use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gateway::parameters::{Image, Overlay};

/// Parameters of a data plane.
pub type AgentgatewayParameters = Resource<Spec>;

/// The parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-slips" = {
    "kube": "that is a field of GatewayParameters; here its fields stand directly below spec, or in patches",
    "replicas": "replicas belong to the patch of the Deployment: deployment.spec.replicas",
    "podTemplate": "pods are patched: deployment.spec.template",
    "deploymentOverlay": "the field is deployment",
    "serviceOverlay": "the field is service",
    "serviceAccountOverlay": "the field is serviceAccount",
    "verticalPodAutoscaler": "agentgateway makes none"
}))]
pub struct Spec {
    /// The workload that makes the pods: a Deployment unless it says otherwise.
    pub workload: Workload,
    /// The image of the proxy.
    pub image: Image,
    /// Variables of the proxy; one of ours of the same name gives way.
    #[schemars(with = "Vec<EnvVar>")]
    pub env: Vec<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<ResourceRequirements>")]
    pub resources: Option<Value>,
    /// The time that connections may take to end.
    pub shutdown: Option<Shutdown>,
    /// The log of the proxy.
    pub logging: Logging,
    /// The proxy's config file, below what the typed fields say.
    #[schemars(extend("type" = "object"))]
    pub raw_config: Option<Value>,
    /// Certificates from Istio; an empty mapping asks for them too.
    pub istio: Option<Istio>,
    /// Certificates from a SPIFFE agent on the node; an empty mapping asks for them too.
    pub spiffe: Option<Spiffe>,
    /// The costs of models; they count only in the parameters of a Gateway.
    pub model_catalog: ModelCatalog,
    /// Patch of the Deployment.
    pub deployment: Option<Overlay>,
    /// Patch of the `DaemonSet`.
    pub daemon_set: Option<Overlay>,
    /// Patch of the Service.
    pub service: Option<Overlay>,
    /// Patch of the `ServiceAccount`.
    pub service_account: Option<Overlay>,
    /// Makes a `PodDisruptionBudget`.
    pub pod_disruption_budget: Option<Overlay>,
    /// Makes a `HorizontalPodAutoscaler`.
    pub horizontal_pod_autoscaler: Option<Overlay>,
}

/// The workload that makes the pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
}

/// The kind of what makes the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// As many pods as are asked for.
    #[default]
    Deployment,
    /// One pod on each node.
    DaemonSet,
}

/// The time that connections may take to end, in seconds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Shutdown {
    /// The shortest time that the proxy waits; 0 means 10.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub min: i64,
    /// The longest time that it has; 0 means 60.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub max: i64,
}

/// The log of the proxy.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Logging {
    /// `info`, or levels by module as in `RUST_LOG`.
    pub level: Option<String>,
    /// `text` unless it says otherwise.
    pub format: Option<LogFormat>,
}

/// The format of a line of the log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// An object.
    Json,
    /// Words for people.
    Text,
}

/// Certificates from Istio. What is not said comes from the settings of the pack.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Istio {
    /// Unset: whoever says anything here wants them.
    pub enabled: Option<bool>,
    /// The address of Istio's authority.
    pub ca_address: String,
    /// The trust domain.
    pub trust_domain: String,
    /// Further trust domains whose peers are let in.
    pub additional_trust_domains: Vec<String>,
    /// The cluster.
    pub cluster_id: String,
    /// The network.
    pub network: String,
}

/// Certificates from a SPIFFE agent on the node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spiffe {
    /// Unset: whoever says anything here wants them.
    pub enabled: Option<bool>,
    /// The source of the agent's socket.
    pub source: SpiffeSource,
}

/// The source of the socket of a SPIFFE agent; at most one of `csi` and `hostPath`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SpiffeSource {
    /// The CSI driver of SPIFFE; the default.
    pub csi: Option<SpiffeCsi>,
    /// A folder of the node.
    pub host_path: Option<SpiffeHostPath>,
    /// The path at which the folder of the socket is mounted; `/spiffe-workload-api` unless it says otherwise.
    #[schemars(regex(pattern = "^/"), extend("x-gatewright-form" = "an absolute path"))]
    pub mount_path: Option<String>,
    /// The name of the socket; `spire-agent.sock` unless it says otherwise.
    pub socket_name: Option<String>,
}

/// The CSI driver of SPIFFE.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpiffeCsi {
    /// `csi.spiffe.io` unless it says otherwise.
    pub driver: Option<String>,
}

/// A folder of the node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SpiffeHostPath {
    /// Its path.
    #[schemars(length(min = 1))]
    pub path: String,
}

/// The costs of models.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelCatalog {
    /// Its sources, later entries over earlier ones.
    pub sources: Vec<ModelCatalogSource>,
}

/// The source of a part of the catalog.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCatalogSource {
    /// A `ConfigMap` beside the Gateway.
    pub config_map: Option<ModelCatalogConfigMap>,
}

/// A `ConfigMap` beside the Gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ModelCatalogConfigMap {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The key that holds the catalog; `catalog.json` unless it says otherwise.
    pub key: Option<String>,
}
