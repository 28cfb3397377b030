//! The pack of agentgateway: Gateway and `AgentgatewayParameters` to a proxy that takes its configuration from
//! agentgateway's control plane.
//!
//! The shape of the objects is that of agentgateway's own deployer, so that a data plane can be taken over. Other
//! than there, digests in annotations are over what a proxy reads and not over the text of a template, and a mesh is
//! described by settings and not by a look at its `ConfigMap`.

mod config;
mod container;
mod identity;
mod lint;
pub mod parameters;
mod ports;
mod sense;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::gateway::authorities::TlsSettings;
use super::{Pack, PackError, Subject, ValuesGenerator, document};
use crate::merge::origin::{Layer, LayerName, Merged};
use crate::merge::{Table, over};
use crate::problem::Problem;
use crate::schema::Schema;
use crate::spec::overlay::Bound;
use crate::yaml::Node;

const FILES: [(&str, &str); 8] = [
    ("pack.yaml", include_str!("../../../../templates/agentgateway/pack.yaml")),
    ("defaults.yaml", include_str!("../../../../templates/agentgateway/defaults.yaml")),
    ("serviceaccount.yaml", include_str!("../../../../templates/agentgateway/serviceaccount.yaml")),
    ("configmap.yaml", include_str!("../../../../templates/agentgateway/configmap.yaml")),
    ("xds-ca.yaml", include_str!("../../../../templates/agentgateway/xds-ca.yaml")),
    ("secret.yaml", include_str!("../../../../templates/agentgateway/secret.yaml")),
    ("service.yaml", include_str!("../../../../templates/agentgateway/service.yaml")),
    ("workload.yaml", include_str!("../../../../templates/agentgateway/workload.yaml")),
];

/// The release of agentgateway that the defaults belong to.
const RELEASE: &str = "v1.5.0";

/// `packs.agentgateway` of the config, beside `parameters`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Where images come from.
    pub image: ImageSettings,
    /// Where the control plane answers.
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
    /// What must hold for the merged parameters of every Gateway.
    pub enforce: Vec<Bound>,
}

/// Where images come from.
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

/// Where the control plane answers.
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
    /// Where Istio's authority answers.
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

/// Returns the built-in pack.
pub(super) fn pack(settings: &Value) -> Result<Pack, PackError> {
    let files = BTreeMap::from(FILES);
    let settings: Settings = match settings {
        Value::Null => Settings::default(),
        settings => serde_json::from_value(settings.clone()).map_err(PackError::Settings)?,
    };
    let authorities = settings.xds.tls.as_ref().map(TlsSettings::authorities).transpose();
    let authorities = authorities.map_err(PackError::Authorities)?;
    let schema = Schema::of::<parameters::AgentgatewayParameters>().map_err(PackError::Schema)?;
    let generator = Generator { defaults: document(&files, "defaults.yaml")?, settings, authorities };
    let mut pack = Pack::new(&files, schema, Arc::new(generator))?;
    pack.own.sense = Some(sense::mistakes);
    Ok(pack)
}

/// The values generator.
struct Generator {
    defaults: Node,
    settings: Settings,
    /// The certificates that `xds.tls` leads to.
    authorities: Option<String>,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, _subject: &Subject<'_>, _above: &[Layer<'_>]) -> Merged {
        let defaults = Merged::of(&Layer::new(LayerName::Builtin, "agentgateway/defaults.yaml", &self.defaults));
        over(defaults, self.image(), &Table::default())
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Option<Value>, Vec<Problem>> {
        let problems = sense::problems(subject, parameters);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut spec: parameters::Spec = serde_json::from_value(parameters.to_value())
            .map_err(|error| vec![subject.problem(&format!("cannot use the merged parameters: {error}"))])?;
        if config::is_catalog_ignored(parameters) {
            spec.model_catalog.sources.clear();
        }
        values::values(&self.settings, self.authorities.as_deref(), subject, &spec).map(Some)
    }

    fn lint(&self, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
        lint::lint(subject, parameters)
    }

    fn settings(&self) -> Value {
        let settings = Settings { parameters: Value::Null, enforce: Vec::new(), ..self.settings.clone() };
        serde_json::to_value(settings).unwrap_or_default()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        let settings: Settings = serde_json::from_value(settings.clone()).ok()?;
        let authorities = settings.xds.tls.as_ref().map(TlsSettings::authorities).transpose().ok()?;
        Some(Arc::new(Self { defaults: self.defaults.clone(), settings, authorities }))
    }
}

impl Generator {
    /// What the settings of the pack say about images, as parameters.
    fn image(&self) -> Merged {
        let ImageSettings { registry, tag, pull_policy } = &self.settings.image;
        let mut image = json!({"registry": registry, "tag": tag});
        if !pull_policy.is_empty() {
            image["pullPolicy"] = Value::from(pull_policy.as_str());
        }
        Merged::of_value(LayerName::Settings, "packs.agentgateway.image", &json!({"image": image}))
    }
}
