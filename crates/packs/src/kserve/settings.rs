//! `packs.kserve` of the config: what KServe's controller reads from its `ConfigMap` and its environment, and what it does
//! not have.

use gatewright_engine::spec::overlay::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::images::Images;
use super::parameters;

/// The release of KServe that the defaults belong to.
const RELEASE: &str = "v0.20.0";

/// `packs.kserve` of the config.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The namespace in which configs are looked up that the namespace of a service does not have.
    pub namespace: String,
    /// The prefix of the names of presets.
    pub preset_prefix: String,
    /// The Gateway that routes attach to if a service names none.
    pub gateway: GatewaySettings,
    /// Routes by the name of the model.
    pub model_routing: ModelRoutingSettings,
    /// The container that downloads models.
    pub storage_initializer: StorageSettings,
    /// Images that take the place of those of built-in presets.
    pub images: Images,
    /// Whether an `InferencePool` is also rendered in its older version, `inference.networking.x-k8s.io/v1alpha2`.
    pub alpha_pool: AlphaPool,
    /// Whether pods wait for the Secret with their certificate where nothing is encrypted.
    pub certificate_volume: CertificateVolume,
    /// The Prometheus from which autoscalers read what the workload variant autoscaler recommends.
    pub prometheus: PrometheusSettings,
    /// Parameters of every service: the shape of `LLMInferenceServiceParameters.spec`.
    #[schemars(with = "Option<parameters::Spec>")]
    pub parameters: Value,
    /// Rules that must hold for the merged parameters of every service.
    pub enforce: Vec<Bound>,
}

/// A Gateway.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewaySettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Routes by the name of the model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRoutingSettings {
    /// Whether there are any.
    pub enabled: bool,
    /// The header with the name.
    pub header: String,
}

/// The container that downloads models before a server starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StorageSettings {
    /// Its image.
    pub image: String,
    /// Its resources.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub resources: Value,
    /// The user as whom an image with a model and the server beside it run, so that the one may read the files of the
    /// other; null leaves both as they are.
    pub uid_modelcar: Option<i64>,
}

/// Whether there is a pool of the older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AlphaPool {
    /// If the cluster is known to serve it.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// Whether pods wait for the Secret with their certificate although they do not need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CertificateVolume {
    /// They start without.
    Optional,
    /// They wait, as those that KServe's controller makes. So they stay as they are when they are adopted from it.
    Required,
}

/// A Prometheus.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PrometheusSettings {
    /// Its address; without one, services cannot ask for KEDA with recommendations of the variant autoscaler.
    pub url: String,
    /// Whether its certificate is not verified.
    pub tls_insecure_skip_verify: bool,
    /// `authModes` of the trigger; empty for none.
    pub auth_modes: String,
    /// The `TriggerAuthentication` of the trigger; empty for none.
    pub trigger_auth_name: String,
    /// Its kind.
    pub trigger_auth_kind: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "kserve".to_owned(),
            preset_prefix: "kserve-".to_owned(),
            gateway: GatewaySettings::default(),
            model_routing: ModelRoutingSettings::default(),
            storage_initializer: StorageSettings::default(),
            images: Images::default(),
            alpha_pool: AlphaPool::Auto,
            certificate_volume: CertificateVolume::Optional,
            prometheus: PrometheusSettings::default(),
            parameters: Value::Null,
            enforce: Vec::new(),
        }
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self { namespace: "kserve".to_owned(), name: "kserve-ingress-gateway".to_owned() }
    }
}

impl Default for ModelRoutingSettings {
    fn default() -> Self {
        Self { enabled: true, header: "X-Gateway-Model-Name".to_owned() }
    }
}

impl Default for StorageSettings {
    fn default() -> Self {
        let resources =
            json!({"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        Self { image: format!("kserve/storage-initializer:{RELEASE}"), resources, uid_modelcar: Some(1010) }
    }
}
