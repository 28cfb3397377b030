//! The pack of agentgateway: Gateway and `AgentgatewayParameters` to a proxy that takes its configuration from
//! agentgateway's control plane.
//!
//! The shape of the objects is that of agentgateway's own deployer, so that a data plane can be adopted. Other
//! than there, digests in annotations are over what a proxy reads and not over the text of a template, and a mesh is
//! described by settings and not by a look at its `ConfigMap`.

mod config;
mod container;
mod identity;
mod lint;
pub mod parameters;
mod ports;
mod sense;
pub mod settings;
mod values;

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
use crate::json::{said, without_nulls};
use crate::typed::Retyped;
use settings::{ImageSettings, Settings};

/// Puts the pack together.
pub(crate) fn pack(files: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    let settings: Settings = read_settings(settings)?;
    let authorities = TlsSettings::of_xds(settings.xds.tls.as_ref())?;
    let schema = Schema::of::<parameters::AgentgatewayParameters>().map_err(PackError::Schema)?;
    let generator = Generator { defaults: document(files, "defaults.yaml")?, settings, authorities };
    let mut pack = Pack::new(files, schema, Arc::new(generator))?;
    pack.own.sense = Some(sense::mistakes);
    pack.own.post_processor = Some(Arc::new(Retyped));
    Ok(pack)
}

struct Generator {
    defaults: Node,
    settings: Settings,
    /// The certificates that `xds.tls` leads to.
    authorities: Option<String>,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        let defaults = Merged::of(&Layer::new(LayerName::Builtin, "agentgateway/defaults.yaml", &self.defaults));
        over(defaults, self.image(), &Table::default())
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let problems = sense::problems(subject, parameters);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut spec: parameters::Spec = subject.read(parameters)?;
        if config::is_catalog_ignored(parameters) {
            spec.model_catalog.sources.clear();
        }
        values::values(&self.settings, self.authorities.as_deref(), subject, &spec).map(Provision::Values)
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
        let authorities = TlsSettings::of_xds(settings.xds.tls.as_ref()).ok()?;
        Some(Arc::new(Self { defaults: self.defaults.clone(), settings, authorities }))
    }
}

impl Generator {
    /// Returns what the settings of the pack say about images, as parameters.
    fn image(&self) -> Merged {
        let ImageSettings { registry, tag, pull_policy } = &self.settings.image;
        let image = without_nulls(json!({"registry": registry, "tag": tag, "pullPolicy": said(pull_policy)}));
        Merged::of_value(LayerName::Settings, "packs.agentgateway.image", &json!({"image": image}))
    }
}
