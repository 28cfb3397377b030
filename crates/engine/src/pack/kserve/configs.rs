//! Where configs come from: documents of the source, and presets that are built in.

use std::collections::BTreeMap;

use serde_json::Value;

use super::merge;
use super::service::{CONFIG, GROUP};
use super::settings::Settings;
use crate::object::ObjectId;
use crate::spec::{Document, Specs};
use crate::yaml;

/// The presets that are built in, by their names without prefix.
const BUILTIN: [(&str, &str); 12] = [
    ("config-llm-template", include_str!("../../../../../templates/kserve/presets/template.yaml")),
    ("config-llm-decode-template", include_str!("../../../../../templates/kserve/presets/decode-template.yaml")),
    ("config-llm-prefill-template", include_str!("../../../../../templates/kserve/presets/prefill-template.yaml")),
    ("config-llm-worker-data-parallel", include_str!("../../../../../templates/kserve/presets/worker-data-parallel.yaml")),
    (
        "config-llm-decode-worker-data-parallel",
        include_str!("../../../../../templates/kserve/presets/decode-worker-data-parallel.yaml"),
    ),
    (
        "config-llm-prefill-worker-data-parallel",
        include_str!("../../../../../templates/kserve/presets/prefill-worker-data-parallel.yaml"),
    ),
    ("config-llm-scheduler", include_str!("../../../../../templates/kserve/presets/scheduler.yaml")),
    (LEGACY_SCHEDULER, include_str!("../../../../../templates/kserve/presets/scheduler-legacy.yaml")),
    (
        "config-llm-scheduler-latency-predictor",
        include_str!("../../../../../templates/kserve/presets/latency-predictor.yaml"),
    ),
    ("config-llm-tokenizer", include_str!("../../../../../templates/kserve/presets/tokenizer.yaml")),
    ("config-llm-router-route", include_str!("../../../../../templates/kserve/presets/router-route.yaml")),
    ("config-llm-tracing", include_str!("../../../../../templates/kserve/presets/tracing.yaml")),
];

/// The scheduler as older releases made it.
pub(super) const LEGACY_SCHEDULER: &str = "config-llm-scheduler-legacy";

/// A config that was found.
#[derive(Clone, Debug)]
pub(super) struct Config<'a> {
    /// What it is called in messages.
    pub(super) title: String,
    /// Where it is written; nowhere, if it is built in.
    pub(super) document: Option<&'a Document>,
    /// Its spec, cleaned.
    pub(super) spec: Value,
}

/// A config that cannot be used.
#[derive(Debug)]
pub(super) enum Missing {
    /// There is none of that name.
    Unknown(String),
    /// It has problems of its own.
    Broken(String),
}

/// All configs that a service can have.
pub(super) struct Configs<'a> {
    specs: &'a Specs,
    settings: &'a Settings,
    builtin: &'a BTreeMap<&'static str, Value>,
}

/// Reads the presets that are built in.
pub(super) fn builtin() -> Result<BTreeMap<&'static str, Value>, yaml::YamlError> {
    let read = |(name, text): (&'static str, &'static str)| {
        let document = yaml::parse_values(text)?.pop().unwrap_or_default();
        Ok((name, merge::cleaned(&document["spec"])))
    };
    BUILTIN.into_iter().map(read).collect()
}

impl<'a> Configs<'a> {
    pub(super) fn new(specs: &'a Specs, settings: &'a Settings, builtin: &'a BTreeMap<&'static str, Value>) -> Self {
        Self { specs, settings, builtin }
    }

    /// Looks a config up: in the namespace of a service, in that of KServe, among those that are built in.
    pub(super) fn find(&self, name: &str, namespace: &str) -> Result<Config<'a>, Missing> {
        let namespaces = [namespace, self.specs.namespace(&self.settings.namespace)];
        for namespace in namespaces {
            let id = ObjectId::new(GROUP, CONFIG, namespace, name);
            if let Some(document) = self.specs.documents.get(&id) {
                let spec = merge::cleaned(&document.root.get("spec").map(yaml::Node::to_value).unwrap_or_default());
                return Ok(Config { title: format!("config {namespace}/{name}"), document: Some(document), spec });
            }
            if self.specs.broken.contains_key(&id) {
                return Err(Missing::Broken(format!("{CONFIG} {namespace}/{name} cannot be used")));
            }
        }
        let suffix = name.strip_prefix(&self.settings.preset_prefix).unwrap_or_default();
        self.built_in(suffix).ok_or_else(|| {
            let [own, system] = namespaces;
            let places = if own == system { own.to_owned() } else { format!("{own} and {system}") };
            Missing::Unknown(format!("{CONFIG} {name:?} is not there, neither in the source (looked for in {places}) nor built in"))
        })
    }

    /// Returns a preset that is built in.
    pub(super) fn built_in(&self, suffix: &str) -> Option<Config<'a>> {
        let (name, spec) = self.builtin.get_key_value(suffix)?;
        Some(Config { title: format!("built-in preset {name:?}"), document: None, spec: spec.clone() })
    }
}
