//! The pack of KServe's `LLMInferenceService`: the objects that its controller would make of one.
//!
//! A service is merged with presets and configs that are documents of the source, as KServe looks them up in a cluster;
//! where the source has none, the presets of this pack are taken. Where the controller is at work in the cluster, the
//! service goes there as it is. `docs/kserve.md` lists what is rendered, and what differs on purpose.

mod cache;
mod combine;
mod configs;
mod devices;
mod gotemplate;
pub mod images;
mod lora;
mod merge;
mod migrate;
mod names;
pub mod parameters;
mod picker;
mod pods;
mod presets;
mod quantity;
mod route;
mod scaling;
mod scheduler;
mod service;
pub mod settings;
mod storage;
mod tls;
mod tracing;
mod trust;
mod types;
mod values;
mod versions;
mod workload;

use std::sync::Arc;

use gatewright_engine::merge::origin::{LayerName, Merged};
use gatewright_engine::pack::builtin::Files;
use gatewright_engine::pack::{Pack, PackError, Provision, Subject, ValuesGenerator, settings as read_settings};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::spec::Document;
use gatewright_engine::yaml::Node;
use serde_json::{Value, json};

use combine::combine;
use configs::{Builtin, Configs};
use parameters::{LlmInferenceServiceParameters, Mode};
use service::Service;
use settings::{AlphaPool, Settings};
use tls::Certificates;
use values::Unit;

/// The name, as in `packs.kserve` of the config.
const NAME: &str = "kserve";

/// The kind of services.
const KIND: &str = "LLMInferenceService";

/// Returns the pack, made of its files.
pub(crate) fn pack(files: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    let settings: Settings = read_settings(settings)?;
    let schema = Schema::of::<LlmInferenceServiceParameters>().map_err(PackError::Schema)?;
    let services = Schema::of::<types::LlmInferenceService>().map_err(PackError::Schema)?;
    let generator = Generator { settings, builtin: Arc::new(Builtin::read(files)?) };
    Ok(Pack::new(files, schema, Arc::new(generator))?.with_schema(KIND, services))
}

struct Generator {
    settings: Settings,
    builtin: Arc<Builtin>,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        let defaults = json!({"mode": Mode::default(), "schedulerPreset": "current"});
        Merged::of_value(LayerName::Builtin, "built into the pack kserve", &defaults)
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let choices: parameters::Spec = subject.read(parameters)?;
        let service = Service::read(subject.document, subject.namespace);
        if passes_on(&service, subject, choices.mode)? {
            return Ok(Provision::PassThrough(self.documents(subject)));
        }
        self.expand(service, subject, &choices).map(|(values, _)| Provision::Values(values))
    }

    fn lint(&self, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
        let Ok(choices) = subject.read::<parameters::Spec>(parameters) else { return Vec::new() };
        let service = Service::read(subject.document, subject.namespace);
        if passes_on(&service, subject, choices.mode).unwrap_or(true) {
            return Vec::new();
        }
        self.expand(service, subject, &choices).map(|(_, warnings)| warnings).unwrap_or_default()
    }

    fn settings(&self) -> Value {
        let settings = Settings { parameters: Value::Null, enforce: Vec::new(), ..self.settings.clone() };
        serde_json::to_value(settings).unwrap_or_default()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        let settings: Settings = serde_json::from_value(settings.clone()).ok()?;
        Some(Arc::new(Self { settings, builtin: Arc::clone(&self.builtin) }))
    }

    fn documents(&self) -> Vec<Document> {
        self.builtin.documents.clone()
    }

    fn with_document(&self, document: &Document) -> Option<Arc<dyn ValuesGenerator>> {
        Some(Arc::new(Self { settings: self.settings.clone(), builtin: Arc::new(self.builtin.with(document)?) }))
    }
}

impl Generator {
    /// Returns what goes to the cluster for the controller: the service, and the configs that it names. These come to
    /// the namespace of the service, where the controller looks first; of several services that name one, the first
    /// brings it along.
    fn documents(&self, subject: &Subject<'_>) -> Vec<Value> {
        let configs = Configs::new(subject.specs, &self.settings, &self.builtin);
        let is_first = |name: &str| {
            let mut services = subject.specs.of_kind(service::GROUP, KIND);
            let first = services.find(|it| it.id.namespace == subject.namespace && names(it).any(|it| it == name));
            first.is_none_or(|first| first.id == subject.document.id)
        };
        let found = names(subject.document).filter(|name| is_first(name));
        let found = found.filter_map(|name| configs.find(name, subject.namespace).ok()?.document);
        let bodies = found.map(|document| {
            let mut body = document.root.to_value();
            body["metadata"]["namespace"] = subject.namespace.into();
            body
        });
        std::iter::once(subject.document.root.to_value()).chain(bodies).collect()
    }

    fn expand(
        &self,
        mut service: Service<'_>,
        subject: &Subject<'_>,
        choices: &parameters::Spec,
    ) -> Result<(Value, Vec<Problem>), Vec<Problem>> {
        let certificates = Certificates::read(choices.tls.as_ref())
            .map_err(|message| vec![subject.problem(&format!("its parameters cannot be used: {message}"))])?;
        let data = (&self.settings, &*self.builtin);
        if service.is_stopped() {
            let values = Unit::new(&service, &types::Spec::default(), data, &certificates).finished();
            return Ok((values, Vec::new()));
        }
        if let Some(problem) = service.name_problem() {
            return Err(vec![problem]);
        }
        let configs = Configs::new(subject.specs, &self.settings, &self.builtin);
        let scheduler = choices.scheduler_preset.as_deref();
        let spec = combine(&mut service, &configs, scheduler, certificates.is_on())?;
        let mut unit = Unit::new(&service, &spec, data, &certificates);
        unit.token = choices.hugging_face_token.as_ref();
        unit.trust = choices.scheduler_trust.as_ref();
        unit.is_legacy = scheduler == Some("legacy");
        unit.has_alpha_pool = match self.settings.alpha_pool {
            AlphaPool::Always => true,
            AlphaPool::Never => false,
            AlphaPool::Auto => subject.capabilities.is_some_and(|it| it.serves(route::ALPHA_GROUP, "InferencePool")),
        };
        unit.values()
    }
}

/// Decides who makes the objects of a service: KServe's controller, or this program. Never both.
fn passes_on(service: &Service<'_>, subject: &Subject<'_>, mode: Mode) -> Result<bool, Vec<Problem>> {
    let operates = subject
        .capabilities
        .is_some_and(|capabilities| capabilities.serves(service::GROUP, KIND) && capabilities.operates(NAME));
    match mode {
        Mode::Passthrough => Ok(true),
        Mode::Auto => Ok(operates),
        Mode::Expand if !operates => Ok(false),
        Mode::Expand => {
            let message = "the mode is expand, and KServe's controller is at work in this cluster: both would make the same objects";
            Err(vec![service.problem(&[], message).hint("take the mode away, or stop the controller")])
        }
    }
}

/// Returns the names of the configs that a service asks for.
fn names(service: &Document) -> impl Iterator<Item = &str> {
    let references = service.root.at(["spec", "baseRefs"]).map(Node::items).unwrap_or_default();
    references.iter().filter_map(|reference| reference.get("name")?.as_str())
}

#[cfg(test)]
mod tests;
