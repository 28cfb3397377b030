//! `packs.kgateway` of the config: what kgateway's controller has as flags and environment, and what it does not have.

use gatewright_engine::spec::overlay::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameters;
use crate::gateway::authorities::TlsSettings;

/// The release of kgateway that the defaults belong to.
const RELEASE: &str = "v2.4.0";

/// `packs.kgateway` of the config.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The source of images.
    pub image: ImageSettings,
    /// The address of the control plane.
    pub xds: XdsSettings,
    /// Istio's part in the pods.
    pub istio: IstioSettings,
    /// Certificates of listeners as files.
    pub listener_certificates: CertificateSettings,
    /// Rights on the API server.
    pub rbac: RbacSettings,
    /// The label `app.kubernetes.io/managed-by`.
    pub managed_by: String,
    /// The label `app.kubernetes.io/version`, and the version in telemetry; empty leaves both out.
    pub version: String,
    /// Parameters of every Gateway: the shape of `GatewayParameters.spec`, below those of classes.
    #[schemars(schema_with = "parameters::layer")]
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
    /// Host name. The default ends in a dot, so that no search domain of a pod is tried; another one is used as it is.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether the control plane is asked over TLS; without it, in plain text.
    pub tls: Option<TlsSettings>,
}

/// Istio's part in the pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct IstioSettings {
    /// Whether pods get Istio's certificates, and the two containers that fetch them.
    pub auto_mtls: bool,
}

/// Certificates of listeners as files, beside what the control plane sends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateSettings {
    /// Whether the Secrets of listeners are mounted.
    pub mount: bool,
    /// The folder that gets one folder for each of them.
    #[schemars(
        regex(pattern = r"^/[^:]*$"),
        extend("x-gatewright-form" = "an absolute path without a colon")
    )]
    pub path: String,
}

/// Rights of a proxy on the API server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RbacSettings {
    /// Whether a proxy gets a `ClusterRole`, a `ClusterRoleBinding` and a token.
    pub enabled: bool,
    /// The rules that say what it may do.
    pub rules: Vec<PolicyRule>,
}

/// A rule of a `ClusterRole`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyRule {
    /// Groups; `""` is the core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources, such as `services`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that belong to no resource.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// Verbs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: ImageSettings::default(),
            xds: XdsSettings::default(),
            istio: IstioSettings::default(),
            listener_certificates: CertificateSettings::default(),
            rbac: RbacSettings::default(),
            managed_by: "gatewright".to_owned(),
            version: RELEASE.to_owned(),
            parameters: Value::Null,
            enforce: Vec::new(),
        }
    }
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self { registry: "cr.kgateway.dev".to_owned(), tag: RELEASE.to_owned(), pull_policy: "IfNotPresent".to_owned() }
    }
}

impl Default for XdsSettings {
    fn default() -> Self {
        Self { host: "kgateway.kgateway-system.svc.cluster.local.".to_owned(), port: 9977, tls: None }
    }
}

impl Default for CertificateSettings {
    fn default() -> Self {
        Self { mount: false, path: "/etc/gateway-certificates".to_owned() }
    }
}

impl Default for RbacSettings {
    /// Returns rules for what discovery of endpoints takes, and for nothing that is secret.
    fn default() -> Self {
        let watch = |group: &str, resource: &str| PolicyRule {
            api_groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
            ..PolicyRule::default()
        };
        Self { enabled: false, rules: vec![watch("", "services"), watch("discovery.k8s.io", "endpointslices")] }
    }
}
