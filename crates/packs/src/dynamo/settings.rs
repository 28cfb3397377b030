//! `packs.dynamo` of the config: what Dynamo's operator has in its own configuration, and how graphs are provisioned.
//!
//! The names are those of the operator's configuration, so that a part of it can be copied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metadata::DISCOVERY;
use super::model::Graph;

/// `packs.dynamo` of the config, beside `parameters`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The program that makes workloads of a graph.
    pub mode: Mode,
    /// The treatment of `spec.restart` of a graph that is passed on.
    pub restart: Restart,
    /// The kind of workloads of an expanded graph.
    pub workload_provider: WorkloadProvider,
    /// The addresses of the platform; what is empty is not told to pods.
    pub infrastructure: Infrastructure,
    /// The way in which components find each other.
    pub discovery: Discovery,
    /// The orchestrators that schedule pods together.
    pub orchestrators: Orchestrators,
    /// The access to frontends from outside.
    pub ingress: IngressSettings,
    /// The way in which nodes of one model reach each other where they use MPI.
    pub mpi: Mpi,
    /// The Gateway in front of endpoint pickers.
    pub inference_gateway: InferenceGateway,
    /// The mesh around the pods.
    pub service_mesh: ServiceMesh,
    /// Service accounts of components that ask the API server; an empty name has one made for each graph.
    pub service_accounts: ServiceAccounts,
    /// The version of the operator for which graphs were made; pods under Grove name it in an annotation. Empty: none.
    pub operator_version: String,
}

/// The program that makes workloads of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Dynamo's operator in the cluster; the graph is applied as it is.
    #[default]
    Passthrough,
    /// This program; there must be no operator.
    Expand,
    /// The operator where it is seen at work, else this program; also where nobody can look.
    Auto,
}

/// The treatment of `spec.restart` of a graph that is passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Restart {
    /// It is left out, so that a graph can be created again and whoever restarts it on a cluster keeps the field.
    #[default]
    Drop,
    /// It is applied as it stands; a graph that has it cannot be created.
    Keep,
}

/// The kind of workloads of an expanded graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkloadProvider {
    /// Grove where the cluster serves it and the graph does not refuse it, else as with `lws`.
    #[default]
    Auto,
    /// One `PodCliqueSet`.
    Grove,
    /// A `Deployment` for what fits on a node, a `LeaderWorkerSet` for what does not.
    Lws,
    /// `Deployments` only.
    Deployment,
}

/// The addresses of the platform.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Infrastructure {
    /// Address of NATS.
    pub nats_address: String,
    /// Endpoints of etcd, which discovery by etcd needs.
    pub etcd_address: String,
    /// URL of the model express server.
    #[serde(rename = "modelExpressURL")]
    pub model_express_url: String,
    /// URL of the Prometheus that a planner asks.
    pub prometheus_endpoint: String,
}

/// The way in which components find each other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Discovery {
    /// By what.
    pub backend: DiscoveryBackend,
    /// Whether a service account with its rights, Services and labels are made for discovery by Kubernetes.
    pub provision: bool,
}

/// By what components find each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DiscoveryBackend {
    /// `EndpointSlice` and `DynamoWorkerMetadata` objects.
    #[default]
    Kubernetes,
    /// Keys in etcd.
    Etcd,
}

/// The orchestrators that schedule pods together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Orchestrators {
    /// Grove.
    pub grove: Grove,
    /// KAI scheduler.
    pub kai: Kai,
}

/// Settings of Grove.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Grove {
    /// The time for which a gang may be incomplete before it is ended; a duration of Go.
    pub termination_delay: String,
}

/// Settings of the KAI scheduler.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Kai {
    /// The queue of graphs that name none; empty leaves their scheduler alone.
    pub queue: String,
}

/// The access to frontends from outside.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct IngressSettings {
    /// Class of Ingresses; empty makes none where a graph does not ask for one.
    pub controller_class_name: String,
    /// The suffix of host names.
    pub host_suffix: String,
    /// Secret with the certificate of every Ingress; empty for none.
    #[serde(rename = "controllerTLSSecretName")]
    pub controller_tls_secret_name: String,
    /// Istio's Gateway of `VirtualServices`; empty makes none where a graph does not ask for one.
    pub virtual_service_gateway: String,
}

/// The way in which nodes of one model reach each other where they use MPI.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Mpi {
    /// Secret with the pair of keys for SSH; it must be in the namespace of each graph that needs it.
    pub ssh_secret_name: String,
}

/// The Gateway in front of endpoint pickers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct InferenceGateway {
    /// Its name; empty makes no `HTTPRoute`.
    pub gateway_name: String,
    /// Its namespace; empty for that of the graph.
    pub gateway_namespace: String,
}

/// The mesh around the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceMesh {
    /// None.
    #[default]
    None,
    /// Istio, which must be told that endpoint pickers sign their own certificates.
    Istio,
}

/// Service accounts of components that ask the API server. One that is named must be there.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ServiceAccounts {
    /// Of planners.
    pub planner: String,
    /// Of endpoint pickers.
    pub epp: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            restart: Restart::default(),
            workload_provider: WorkloadProvider::default(),
            infrastructure: Infrastructure::default(),
            discovery: Discovery::default(),
            orchestrators: Orchestrators::default(),
            ingress: IngressSettings::default(),
            mpi: Mpi::default(),
            inference_gateway: InferenceGateway::default(),
            service_mesh: ServiceMesh::default(),
            service_accounts: ServiceAccounts::default(),
            operator_version: "1.3.0".to_owned(),
        }
    }
}

impl Default for ServiceAccounts {
    /// Returns the accounts that the chart of Dynamo's operator makes, under which its own pods run.
    fn default() -> Self {
        Self { planner: "planner-serviceaccount".to_owned(), epp: "epp-serviceaccount".to_owned() }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self { backend: DiscoveryBackend::Kubernetes, provision: true }
    }
}

impl Default for Grove {
    fn default() -> Self {
        Self { termination_delay: "15m0s".to_owned() }
    }
}

impl Default for IngressSettings {
    fn default() -> Self {
        Self {
            controller_class_name: String::new(),
            host_suffix: "local".to_owned(),
            controller_tls_secret_name: String::new(),
            virtual_service_gateway: String::new(),
        }
    }
}

impl Settings {
    /// Tells whether objects and labels for discovery by Kubernetes are made.
    pub(super) fn provisions_discovery(&self) -> bool {
        self.discovery.provision && self.discovery.backend == DiscoveryBackend::Kubernetes
    }

    /// Returns the settings for a graph, which may say itself by what its components find each other.
    pub(super) fn of_graph(&self, graph: &Graph) -> Self {
        let mut settings = self.clone();
        match graph.switch(DISCOVERY) {
            Some("etcd") => settings.discovery.backend = DiscoveryBackend::Etcd,
            Some("kubernetes") => settings.discovery.backend = DiscoveryBackend::Kubernetes,
            _ => {}
        }
        settings
    }

    /// Tells whether what stands at a path says nothing.
    pub(super) fn is_unset(&self, path: &str) -> bool {
        let settings = self.to_value();
        let found = path.split('.').try_fold(&settings, |value, part| value.get(part));
        found.is_none_or(|value| value.is_null() || value == "")
    }

    /// Returns the settings as expressions see them.
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
