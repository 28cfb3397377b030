//! The fields of an `LLMInferenceService`: those of v1alpha2, and those of v1alpha1 that went away.
//!
//! These types are the schema of documents, so that a field of another name is told apart from one that says nothing.
//! Layers of a service are merged as they are written, and what comes of that is read as a [`Spec`], once. Pods, routes,
//! pools and triggers are other kinds' business, and may say anything.

#![expect(dead_code, reason = "what only templates of Go look at is nevertheless a field")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatewright_engine::spec::Resource;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::said;

/// The whole document.
pub(super) type LlmInferenceService = Resource<Spec>;

/// Labels or annotations.
pub(super) type Texts = BTreeMap<String, String>;

type Free = Map<String, Value>;

/// The part of a pod that a service says: presets say the rest, so that nothing has to be there, the containers neither.
struct PodPart;

impl JsonSchema for PodPart {
    fn schema_name() -> Cow<'static, str> {
        "PodPart".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = PodSpec::json_schema(generator);
        schema.remove("required");
        schema
    }
}

/// Its `spec`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    base_refs: Option<Vec<Named>>,
    pub(super) model: Option<Model>,
    pub(super) storage_initializer: Option<StorageInitializer>,
    pub(super) prefill: Option<Workload>,
    pub(super) router: Option<Router>,
    pub(super) tracing: Option<Tracing>,
    #[serde(flatten)]
    pub(super) workload: Workload,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workload {
    pub(super) replicas: Option<u32>,
    pub(super) scaling: Option<Scaling>,
    pub(super) parallelism: Option<Parallelism>,
    #[serde(default)]
    pub(super) labels: Texts,
    #[serde(default)]
    pub(super) annotations: Texts,
    #[schemars(with = "Option<PodPart>")]
    pub(super) template: Option<Value>,
    #[schemars(with = "Option<PodPart>")]
    pub(super) worker: Option<Value>,
    pub(super) kv_cache_offloading: Option<KvCacheOffloading>,
    #[schemars(with = "Option<RolloutStrategy>")]
    pub(super) rollout_strategy: Option<Value>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    /// Of a service that only routes there is none.
    #[schemars(required)]
    pub(super) uri: Option<String>,
    pub(super) name: Option<String>,
    /// Of v1alpha1.
    criticality: Option<String>,
    pub(super) lora: Option<Lora>,
    pub(super) confidential: Option<Confidential>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lora {
    #[serde(default)]
    #[schemars(with = "Option<Vec<Free>>")]
    pub(super) adapters: Vec<Adapter>,
    pub(super) max_rank: Option<u32>,
    pub(super) max_adapters: Option<u32>,
    pub(super) max_cpu_adapters: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Adapter {
    pub(super) name: String,
    pub(super) uri: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Confidential {
    #[schemars(required)]
    enabled: Option<bool>,
    pub(super) resource_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct StorageInitializer {
    pub(super) enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Parallelism {
    tensor: Option<u32>,
    pub(super) pipeline: Option<u32>,
    pub(super) data: Option<u32>,
    pub(super) data_local: Option<u32>,
    #[serde(rename = "dataRPCPort")]
    data_rpc_port: Option<u16>,
    expert: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KvCacheOffloading {
    #[schemars(with = "Quantity")]
    cpu: Option<Value>,
    eviction_policy: Option<String>,
    #[serde(default)]
    #[schemars(with = "Option<Vec<Free>>")]
    pub(super) secondary: Vec<Tier>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tier {
    pub(super) file_system: Option<FileSystem>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileSystem {
    pub(super) empty_dir: Option<EmptyDir>,
    pub(super) pvc: Option<Claim>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct EmptyDir {
    #[serde(default)]
    pub(super) size: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Claim {
    pub(super) spec: Option<Free>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<ClaimReference>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ClaimReference {
    pub(super) name: Option<String>,
    pub(super) path: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct RolloutStrategy {
    max_unavailable: Option<IntOrString>,
    max_surge: Option<IntOrString>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Scaling {
    pub(super) min_replicas: Option<u32>,
    pub(super) max_replicas: Option<u32>,
    pub(super) wva: Option<Wva>,
    pub(super) keda: Option<Free>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wva {
    pub(super) variant_cost: Option<String>,
    pub(super) hpa: Option<Free>,
    pub(super) keda: Option<Free>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Router {
    pub(super) route: Option<Route>,
    pub(super) gateway: Option<Gateways>,
    ingress: Option<Free>,
    pub(super) scheduler: Option<Scheduler>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Route {
    pub(super) http: Option<Http>,
    pub(super) group: Option<String>,
    weight: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Http {
    #[serde(default)]
    pub(super) refs: Vec<Named>,
    pub(super) spec: Option<Free>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Gateways {
    #[serde(default)]
    pub(super) refs: Vec<GatewayReference>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayReference {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) section_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Scheduler {
    pub(super) pool: Option<Pool>,
    #[schemars(with = "Option<PodPart>")]
    pub(super) template: Option<Value>,
    /// Of older releases.
    image: Option<String>,
    pub(super) config: Option<Config>,
    pub(super) replicas: Option<u32>,
    #[serde(default)]
    pub(super) labels: Texts,
    #[serde(default)]
    pub(super) annotations: Texts,
    pub(super) tokenizer: Option<Tokenizer>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SchedulerPool")]
pub(super) struct Pool {
    #[serde(rename = "ref")]
    pub(super) reference: Option<Named>,
    #[schemars(with = "Option<Free>")]
    pub(super) spec: Option<Value>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SchedulerConfig")]
pub(super) struct Config {
    /// A mapping, or the same as a text.
    pub(super) inline: Option<Value>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<ConfigReference>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ConfigReference {
    pub(super) name: String,
    pub(super) key: Option<String>,
    optional: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Tokenizer {
    #[schemars(with = "Option<PodPart>")]
    pub(super) template: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tracing {
    pub(super) exporter_endpoint: String,
    pub(super) sampler: String,
    pub(super) sampler_arg: String,
    pub(super) exporter: String,
}

impl Spec {
    /// Returns the address of the model, if there is one.
    pub(super) fn uri(&self) -> Option<&str> {
        self.model.as_ref()?.uri.as_deref()
    }

    /// Returns what is said of a model that is encrypted, if it is.
    pub(super) fn confidential(&self) -> Option<&Confidential> {
        self.model.as_ref()?.confidential.as_ref().filter(|confidential| confidential.enabled == Some(true))
    }

    pub(super) fn adapters(&self) -> &[Adapter] {
        self.model.as_ref().and_then(|model| model.lora.as_ref()).map_or(&[], |lora| &lora.adapters)
    }

    pub(super) fn route(&self) -> Option<&Route> {
        self.router.as_ref()?.route.as_ref()
    }

    pub(super) fn scheduler(&self) -> Option<&Scheduler> {
        self.router.as_ref()?.scheduler.as_ref()
    }

    /// Returns the configuration of the scheduler that stands in the service.
    pub(super) fn picker(&self) -> Option<&Value> {
        self.scheduler()?.config.as_ref()?.inline.as_ref()
    }

    /// Returns the pod of the tokenizer.
    pub(super) fn tokenizer(&self) -> Option<&Value> {
        self.scheduler()?.tokenizer.as_ref()?.template.as_ref()
    }
}

impl Scheduler {
    /// Returns the name of a pool that somebody else makes.
    pub(super) fn foreign_pool(&self) -> Option<&str> {
        said(&self.pool.as_ref()?.reference.as_ref()?.name)
    }
}

impl Parallelism {
    /// Tells whether several servers share the work.
    pub(super) fn is_by_data(&self) -> bool {
        [self.data, self.data_local].iter().any(|count| count.is_some_and(|count| count > 0))
    }
}
