//! What an `LLMInferenceService` may say: the fields of v1alpha2, and those of v1alpha1 that went away.
//!
//! Nothing is read as these types; they are a schema, so that a field of another name is told apart from one that says
//! nothing. Routes, pools and triggers are other kinds' business, and may say anything.

use std::collections::BTreeMap;

use gatewright_engine::spec::Resource;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The whole document.
pub(super) type LlmInferenceService = Resource<Spec>;

type Free = Map<String, Value>;
type Texts = BTreeMap<String, String>;

/// Its `spec`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
pub(super) struct Spec {
    base_refs: Option<Vec<Named>>,
    model: Option<Model>,
    storage_initializer: Option<StorageInitializer>,
    prefill: Option<Workload>,
    router: Option<Router>,
    tracing: Option<Tracing>,
    replicas: Option<u32>,
    scaling: Option<Scaling>,
    parallelism: Option<Parallelism>,
    labels: Option<Texts>,
    annotations: Option<Texts>,
    template: Option<PodSpec>,
    worker: Option<PodSpec>,
    kv_cache_offloading: Option<KvCacheOffloading>,
    rollout_strategy: Option<RolloutStrategy>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Workload {
    replicas: Option<u32>,
    scaling: Option<Scaling>,
    parallelism: Option<Parallelism>,
    labels: Option<Texts>,
    annotations: Option<Texts>,
    template: Option<PodSpec>,
    worker: Option<PodSpec>,
    kv_cache_offloading: Option<KvCacheOffloading>,
    rollout_strategy: Option<RolloutStrategy>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Named {
    name: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Model {
    uri: String,
    name: Option<String>,
    /// Of v1alpha1.
    criticality: Option<String>,
    lora: Option<Lora>,
    confidential: Option<Confidential>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Lora {
    adapters: Option<Vec<Free>>,
    max_rank: Option<u32>,
    max_adapters: Option<u32>,
    max_cpu_adapters: Option<u32>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Confidential {
    enabled: bool,
    resource_id: Option<String>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct StorageInitializer {
    enabled: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Parallelism {
    tensor: Option<u32>,
    pipeline: Option<u32>,
    data: Option<u32>,
    data_local: Option<u32>,
    #[schemars(rename = "dataRPCPort")]
    data_rpc_port: Option<u16>,
    expert: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct KvCacheOffloading {
    cpu: Quantity,
    eviction_policy: Option<String>,
    secondary: Option<Vec<Free>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct RolloutStrategy {
    max_unavailable: Option<IntOrString>,
    max_surge: Option<IntOrString>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Scaling {
    min_replicas: Option<u32>,
    max_replicas: Option<u32>,
    wva: Option<Wva>,
    keda: Option<Free>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Wva {
    variant_cost: Option<String>,
    hpa: Option<Free>,
    keda: Option<Free>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Router {
    route: Option<Route>,
    gateway: Option<Gateways>,
    ingress: Option<Free>,
    scheduler: Option<Scheduler>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Route {
    http: Option<Http>,
    group: Option<String>,
    weight: Option<u32>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Http {
    refs: Option<Vec<Named>>,
    spec: Option<Free>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Gateways {
    refs: Option<Vec<GatewayReference>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct GatewayReference {
    name: String,
    namespace: Option<String>,
    section_name: Option<String>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Scheduler {
    pool: Option<Pool>,
    template: Option<PodSpec>,
    /// Of older releases.
    image: Option<String>,
    config: Option<Config>,
    replicas: Option<u32>,
    labels: Option<Texts>,
    annotations: Option<Texts>,
    tokenizer: Option<Tokenizer>,
}

#[derive(JsonSchema)]
#[schemars(rename = "SchedulerPool")]
#[expect(dead_code, reason = "it is a schema")]
struct Pool {
    #[schemars(rename = "ref")]
    reference: Option<Named>,
    spec: Option<Free>,
}

#[derive(JsonSchema)]
#[schemars(rename = "SchedulerConfig")]
#[expect(dead_code, reason = "it is a schema")]
struct Config {
    /// A mapping, or the same as a text.
    inline: Option<Value>,
    #[schemars(rename = "ref")]
    reference: Option<ConfigReference>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct ConfigReference {
    name: String,
    key: Option<String>,
    optional: Option<bool>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct Tokenizer {
    template: Option<PodSpec>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is a schema")]
struct Tracing {
    exporter_endpoint: Option<String>,
    sampler: Option<String>,
    sampler_arg: Option<String>,
    exporter: Option<String>,
}
