//! `packs.agentgateway` of the config: what agentgateway's controller has as flags and environment.

use gatewright_engine::spec::overlay::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameters;
use crate::gateway::authorities::TlsSettings;

/// The release of agentgateway that the defaults belong to.
const RELEASE: &str = "v1.5.0";

/// `packs.agentgateway` of the config, beside `parameters`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The source of images.
    pub image: ImageSettings,
    /// The address of the control plane.
    pub xds: XdsSettings,
    /// The port of the Service of a Gateway without listeners, so that its load balancer and address stay; 0 for none.
    pub no_listeners_port: u16,
    /// The mesh around the proxies.
    pub istio: IstioSettings,
    /// The label `app.kubernetes.io/managed-by`.
    pub managed_by: String,
    /// The label `app.kubernetes.io/version`; empty leaves it out.
    pub version: String,
    /// Parameters of every Gateway: the shape of `AgentgatewayParameters.spec`, below those of classes.
    #[schemars(with = "Option<parameters::Spec>")]
    pub parameters: Value,
    /// Rules that must hold for the merged parameters of every Gateway.
    pub enforce: Vec<Bound>,
}

/// The source of images.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ImageSettings {
    /// The registry.
    pub registry: String,
    /// The tag.
    pub tag: String,
    /// The pull policy; empty leaves it to the cluster.
    pub pull_policy: String,
}

/// The address of the control plane.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct XdsSettings {
    /// Host name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether the control plane is asked over TLS; without it, in plain text.
    pub tls: Option<TlsSettings>,
}

/// The mesh around the proxies: what parameters do not say of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct IstioSettings {
    /// Whether Gateways whose parameters say nothing about Istio get certificates from it.
    pub enabled: bool,
    /// The address of Istio's authority.
    pub ca_address: String,
    /// The trust domain.
    pub trust_domain: String,
    /// The cluster; empty leaves it to the proxy.
    pub cluster_id: String,
    /// The network; empty leaves it to the proxy.
    pub network: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: ImageSettings::default(),
            xds: XdsSettings::default(),
            no_listeners_port: 443,
            istio: IstioSettings::default(),
            managed_by: "gatewright".to_owned(),
            version: RELEASE.trim_start_matches('v').to_owned(),
            parameters: Value::Null,
            enforce: Vec::new(),
        }
    }
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self { registry: "cr.agentgateway.dev".to_owned(), tag: RELEASE.to_owned(), pull_policy: String::new() }
    }
}

impl Default for XdsSettings {
    fn default() -> Self {
        Self { host: "agentgateway.agentgateway-system.svc.cluster.local".to_owned(), port: 9978, tls: None }
    }
}

impl Default for IstioSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            ca_address: "https://istiod.istio-system.svc:15012".to_owned(),
            trust_domain: "cluster.local".to_owned(),
            cluster_id: String::new(),
            network: String::new(),
        }
    }
}
