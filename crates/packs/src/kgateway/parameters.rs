//! `GatewayParameters` of `gateway.kgateway.dev/v1alpha1`.
//!
//! Types of Kubernetes itself are kept as JSON, because they go into the objects as they are; their schema is
//! Kubernetes'.

use std::collections::BTreeMap;

use gatewright_engine::spec::Resource;
use k8s_openapi::api::apps::v1::DeploymentStrategy;
use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvVar, LocalObjectReference, PodSecurityContext, Probe, ResourceRequirements,
    SecurityContext, Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::gateway::parameters::{Image, Overlay};

/// Parameters of a data plane.
pub type GatewayParameters = Resource<Spec>;

/// The parameters: either how to make a proxy, or that somebody else makes it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-one-of" = ["kube", "selfManaged"]))]
pub struct Spec {
    /// The settings from which a proxy is made.
    pub kube: Option<Kube>,
    /// Somebody else makes it: nothing is rendered.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub self_managed: Option<Value>,
}

/// The schema of a layer in a config file: layers above it may say which of the two it is.
pub(super) fn layer(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = Spec::json_schema(generator);
    schema.remove("x-gatewright-one-of");
    schema
}

/// The settings from which a proxy is made.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Kube {
    /// The Deployment.
    pub deployment: Deployment,
    /// The Envoy container.
    pub envoy_container: EnvoyContainer,
    /// The container that fetches Istio's certificates.
    pub sds_container: Option<SdsContainer>,
    /// The pods.
    pub pod_template: PodTemplate,
    /// The Service.
    pub service: Service,
    /// The `ServiceAccount`.
    pub service_account: Extra,
    /// Istio's sidecar.
    pub istio: Option<Istio>,
    /// Envoy's statistics.
    pub stats: Stats,
    /// Leaves out the security context that proxies have by default.
    pub omit_default_security_context: Option<bool>,
    /// Patch of the Deployment.
    pub deployment_overlay: Option<Overlay>,
    /// Patch of the Service.
    pub service_overlay: Option<Overlay>,
    /// Patch of the `ServiceAccount`.
    pub service_account_overlay: Option<Overlay>,
    /// Makes a `PodDisruptionBudget`.
    pub pod_disruption_budget: Option<Overlay>,
    /// Makes a `HorizontalPodAutoscaler`.
    pub horizontal_pod_autoscaler: Option<Overlay>,
    /// Makes a `VerticalPodAutoscaler`.
    pub vertical_pod_autoscaler: Option<Overlay>,
}

/// The Deployment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Deployment {
    /// Unset: the field is left to an autoscaler, or to the cluster's default of one.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// As in `apps/v1`.
    #[schemars(with = "Option<DeploymentStrategy>")]
    pub strategy: Option<Value>,
}

/// The Envoy container.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvoyContainer {
    /// The settings that Envoy starts with.
    pub bootstrap: Bootstrap,
    /// Its image.
    pub image: Image,
    /// As in `v1`.
    #[schemars(with = "Option<SecurityContext>")]
    pub security_context: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<ResourceRequirements>")]
    pub resources: Option<Value>,
    /// Arguments behind ours.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 256)))]
    pub extra_args: Vec<String>,
    /// Variables behind ours.
    #[schemars(with = "Vec<EnvVar>")]
    pub env: Vec<Value>,
    /// Mounts behind ours.
    #[schemars(with = "Vec<VolumeMount>")]
    pub extra_volume_mounts: Vec<Value>,
}

/// The settings that Envoy starts with.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// Format of the application log: `json` or `text`.
    pub log_format: Option<LogFormat>,
    /// `info` by default.
    pub log_level: Option<String>,
    /// Levels of single components.
    pub component_log_levels: BTreeMap<String, String>,
    /// The DNS resolver.
    pub dns_resolver: DnsResolver,
    /// Lets the readiness listener take connections with a PROXY header.
    pub enable_readiness_probe_proxy_protocol: Option<bool>,
}

/// Format of the application log; one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-gatewright-one-of" = ["json", "text"]))]
pub struct LogFormat {
    /// Keys and Envoy's command operators.
    pub json: Option<BTreeMap<String, Value>>,
    /// A line with Envoy's command operators.
    pub text: Option<String>,
}

/// The DNS resolver.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsResolver {
    /// Queries per UDP channel; 0 leaves the resolver to Envoy.
    #[schemars(range(min = 0))]
    pub udp_max_queries: Option<i32>,
}

/// The container that fetches Istio's certificates.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SdsContainer {
    /// Its image.
    pub image: Image,
    /// As in `v1`.
    #[schemars(with = "Option<SecurityContext>")]
    pub security_context: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<ResourceRequirements>")]
    pub resources: Option<Value>,
    /// The settings that it starts with.
    pub bootstrap: SdsBootstrap,
}

/// The settings that the SDS container starts with.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SdsBootstrap {
    /// `info` by default.
    pub log_level: Option<String>,
}

/// The pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-slips" = {
    "resources": "resources belong to a container: envoyContainer.resources",
    "env": "variables belong to a container: envoyContainer.env",
    "image": "the image belongs to a container: envoyContainer.image",
    "replicas": "replicas belong to the deployment: deployment.replicas",
    "labels": "the field is extraLabels",
    "annotations": "the field is extraAnnotations",
    "volumes": "the field is extraVolumes"
}))]
pub struct PodTemplate {
    /// Labels of the pods.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    pub extra_annotations: BTreeMap<String, String>,
    /// As in `v1`.
    #[schemars(with = "Option<PodSecurityContext>")]
    pub security_context: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Vec<LocalObjectReference>")]
    pub image_pull_secrets: Vec<Value>,
    /// As in `v1`.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// As in `v1`.
    #[schemars(with = "Option<Affinity>")]
    pub affinity: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<Vec<Toleration>>")]
    pub tolerations: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Vec<TopologySpreadConstraint>")]
    pub topology_spread_constraints: Vec<Value>,
    /// Volumes behind ours.
    #[schemars(with = "Vec<Volume>")]
    pub extra_volumes: Vec<Value>,
    /// As in `v1`.
    pub priority_class_name: Option<String>,
    /// The graceful shutdown of a pod.
    pub graceful_shutdown: GracefulShutdown,
    /// Seconds; 60 by default.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub termination_grace_period_seconds: Option<i64>,
    /// As in `v1`.
    #[schemars(with = "Option<Probe>")]
    pub startup_probe: Option<Value>,
    /// As in `v1`; it also makes Envoy answer health checks.
    #[schemars(with = "Option<Probe>")]
    pub readiness_probe: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<Probe>")]
    pub liveness_probe: Option<Value>,
}

/// The graceful shutdown of a pod: it fails its health checks, waits, and ends.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GracefulShutdown {
    /// On by default.
    pub enabled: Option<bool>,
    /// The seconds to wait; 10 by default.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub sleep_time_seconds: Option<i64>,
}

/// The Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-slips" = {
    "labels": "the field is extraLabels",
    "annotations": "the field is extraAnnotations"
}))]
pub struct Service {
    /// `LoadBalancer` by default.
    #[serde(rename = "type")]
    #[schemars(schema_with = "service_types")]
    pub kind: Option<String>,
    /// As in `v1`.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
    /// As in `v1`.
    pub load_balancer_class: Option<String>,
    /// As in `v1`.
    pub load_balancer_source_ranges: Option<Vec<String>>,
    /// As in `v1`.
    pub external_traffic_policy: Option<String>,
    /// Labels of the Service.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations of the Service.
    pub extra_annotations: BTreeMap<String, String>,
    /// Ports beside those of the listeners, and node ports of either.
    pub ports: Vec<Port>,
}

fn service_types(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]})
}

/// A port of the Service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// 1 to 65535; used where the type of the Service has node ports.
    #[schemars(range(min = 1, max = 65535))]
    pub node_port: Option<u16>,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Extra {
    /// Labels.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations.
    pub extra_annotations: BTreeMap<String, String>,
}

/// Istio's sidecar.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Istio {
    /// The sidecar.
    pub istio_proxy_container: Option<IstioProxyContainer>,
    /// Deprecated; never rendered.
    #[schemars(with = "Option<Vec<Container>>")]
    pub custom_sidecars: Option<Vec<Value>>,
}

/// Istio's sidecar container.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioProxyContainer {
    /// Its image.
    pub image: Image,
    /// As in `v1`.
    #[schemars(with = "Option<SecurityContext>")]
    pub security_context: Option<Value>,
    /// As in `v1`.
    #[schemars(with = "Option<ResourceRequirements>")]
    pub resources: Option<Value>,
    /// `warning` by default.
    pub log_level: Option<String>,
    /// The address of istiod.
    pub istio_discovery_address: Option<String>,
    /// The mesh.
    pub istio_meta_mesh_id: Option<String>,
    /// The cluster.
    pub istio_meta_cluster_id: Option<String>,
}

/// Envoy's statistics.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Stats {
    /// On by default.
    pub enabled: Option<bool>,
    /// The path that `/metrics` leads to.
    pub route_prefix_rewrite: Option<String>,
    /// Whether there is `/stats` too.
    pub enable_stats_route: Option<bool>,
    /// The path that `/stats` leads to.
    pub stats_route_prefix_rewrite: Option<String>,
    /// The statistics that are kept.
    pub matcher: Option<StatsMatcher>,
}

/// The statistics that are kept; one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-one-of" = ["inclusionList", "exclusionList"]))]
pub struct StatsMatcher {
    /// Only these.
    #[schemars(length(max = 16))]
    pub inclusion_list: Option<Vec<StringMatcher>>,
    /// All but these.
    #[schemars(length(max = 16))]
    pub exclusion_list: Option<Vec<StringMatcher>>,
}

/// The way in which a name is matched; one of the five.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-one-of" = ["exact", "prefix", "suffix", "contains", "safeRegex"]))]
pub struct StringMatcher {
    /// The whole name.
    pub exact: Option<String>,
    /// Its beginning.
    pub prefix: Option<String>,
    /// Its end.
    pub suffix: Option<String>,
    /// Any part of it.
    pub contains: Option<String>,
    /// An RE2 expression.
    pub safe_regex: Option<String>,
    /// Not for `safeRegex`.
    pub ignore_case: Option<bool>,
}
