//! The pack of kgateway: Gateway and `GatewayParameters` to an Envoy that takes its configuration from kgateway.
//!
//! The shape of the objects is that of kgateway's own deployer, so that a data plane can be adopted without a
//! restart; `docs/kgateway.md` lists what differs on purpose.

mod bootstrap;
mod certificates;
pub(crate) mod container;
mod istio;
mod lint;
mod names;
pub mod parameters;
mod ports;
pub mod settings;
mod values;
mod volumes;

use std::sync::Arc;

use gatewright_engine::merge::origin::{Layer, LayerName, Merged};
use gatewright_engine::merge::{Table, over};
use gatewright_engine::pack::builtin::Files;
use gatewright_engine::pack::{
    Pack, PackError, Provision, Subject, ValuesGenerator, document, settings as read_settings,
};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml::Node;
use serde_json::{Value, json};

use crate::gateway::authorities::TlsSettings;
use crate::json::said;
use crate::typed::Retyped;
use settings::{ImageSettings, Settings};

/// The class whose Gateways are waypoints.
const WAYPOINT_CLASS: &str = "kgateway-waypoint";

/// Puts the pack together.
pub(crate) fn pack(files: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    let settings: Settings = read_settings(settings)?;
    let schema = Schema::of::<parameters::GatewayParameters>().map_err(PackError::Schema)?;
    let (defaults, waypoint) = (document(files, "defaults.yaml")?, document(files, "defaults-waypoint.yaml")?);
    let authorities = TlsSettings::of_xds(settings.xds.tls.as_ref())?;
    let mut pack = Pack::new(files, schema, Arc::new(Generator { defaults, waypoint, settings, authorities }))?;
    pack.own.post_processor = Some(Arc::new(Retyped));
    Ok(pack)
}

#[derive(Clone)]
struct Generator {
    defaults: Node,
    waypoint: Node,
    settings: Settings,
    /// The certificates that `xds.tls` leads to.
    authorities: Option<String>,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, subject: &Subject<'_>) -> Merged {
        let layer = |file: &str, node| Merged::of(&Layer::new(LayerName::Builtin, file, node));
        let mut defaults = layer("kgateway/defaults.yaml", &self.defaults);
        if subject.class == WAYPOINT_CLASS {
            defaults = over(defaults, layer("kgateway/defaults-waypoint.yaml", &self.waypoint), &Table::default());
        }
        // Not a filter of the result: contexts that users give, at any layer, must survive.
        if subject.layers.iter().any(omits_security_context) {
            defaults.remove_at("kube.envoyContainer.securityContext");
        }
        over(defaults, self.images(), &Table::default())
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        if parameters.get("selfManaged").is_some() {
            return Ok(Provision::SelfManaged);
        }
        let spec: parameters::Spec = subject.read(parameters)?;
        let mut values = values::values(&self.settings, subject, parameters, &spec.kube.unwrap_or_default())?;
        if let Some(authorities) = &self.authorities {
            values["authorities"] = authorities.as_str().into();
        }
        Ok(Provision::Values(values))
    }

    fn lint(&self, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
        lint::lint(&self.settings, subject, parameters)
    }

    fn settings(&self) -> Value {
        let settings = Settings { parameters: Value::Null, enforce: Vec::new(), ..self.settings.clone() };
        serde_json::to_value(settings).unwrap_or_default()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        let settings: Settings = serde_json::from_value(settings.clone()).ok()?;
        let authorities = TlsSettings::of_xds(settings.xds.tls.as_ref()).ok().flatten();
        Some(Arc::new(Self { settings, authorities, ..self.clone() }))
    }
}

impl Generator {
    /// Returns what the settings of the pack say about images, as parameters.
    fn images(&self) -> Merged {
        let ImageSettings { registry, tag, pull_policy } = &self.settings.image;
        let policy = said(pull_policy);
        let ours = json!({"image": {"registry": registry, "tag": tag, "pullPolicy": policy}});
        let kube = json!({
            "envoyContainer": ours,
            "sdsContainer": ours,
            "istio": {"istioProxyContainer": {"image": {"pullPolicy": policy}}},
        });
        Merged::of_value(LayerName::Settings, "packs.kgateway.image", &json!({"kube": kube}))
    }
}

fn omits_security_context(layer: &Layer<'_>) -> bool {
    let flag = layer.node.at(["kube", "omitDefaultSecurityContext"]);
    flag.is_some_and(|flag| flag.content == gatewright_engine::yaml::Content::Bool(true))
}

#[cfg(test)]
mod tests;
