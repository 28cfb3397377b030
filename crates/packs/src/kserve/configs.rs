//! The sources of configs: documents of the source, and presets that are built in.

use std::collections::BTreeMap;

use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::pack::{PackError, document, value};
use gatewright_engine::spec::{Document, Specs};
use gatewright_engine::yaml;
use serde_json::Value;

use super::NAME;
use super::merge;
use super::service::{CONFIG, GROUP};
use super::settings::Settings;
use super::versions;
use crate::json::items;

/// The presets that are built in, by their names without prefix: files of the pack.
const BUILTIN: [(&str, &str); 12] = [
    ("config-llm-template", "presets/template.yaml"),
    ("config-llm-decode-template", "presets/decode-template.yaml"),
    ("config-llm-prefill-template", "presets/prefill-template.yaml"),
    ("config-llm-worker-data-parallel", "presets/worker-data-parallel.yaml"),
    ("config-llm-decode-worker-data-parallel", "presets/decode-worker-data-parallel.yaml"),
    ("config-llm-prefill-worker-data-parallel", "presets/prefill-worker-data-parallel.yaml"),
    ("config-llm-scheduler", "presets/scheduler.yaml"),
    (LEGACY_SCHEDULER, "presets/scheduler-legacy.yaml"),
    ("config-llm-scheduler-latency-predictor", "presets/latency-predictor.yaml"),
    ("config-llm-tokenizer", "presets/tokenizer.yaml"),
    ("config-llm-router-route", "presets/router-route.yaml"),
    ("config-llm-tracing", "presets/tracing.yaml"),
];

/// The scheduler as older releases made it.
pub(super) const LEGACY_SCHEDULER: &str = "config-llm-scheduler-legacy";

/// A config that was found.
#[derive(Clone, Debug)]
pub(super) struct Config<'a> {
    /// Its title in messages.
    pub(super) title: String,
    /// The document in which it is written; none, if it is built in.
    pub(super) document: Option<&'a Document>,
    /// Its spec, cleaned.
    pub(super) spec: Value,
}

/// The reason why a config cannot be used: there is none of that name, or it has problems of its own.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// The data of the pack.
#[derive(Clone)]
pub(super) struct Builtin {
    /// Presets by their names without prefix.
    presets: BTreeMap<&'static str, Value>,
    /// The same as they are written, in the order of their names.
    pub(super) documents: Vec<Document>,
    /// The configurations of schedulers that bring none along.
    pub(super) pickers: Value,
    /// The rights of what asks the API server.
    pub(super) rules: Value,
}

/// All configs that a service can have.
pub(super) struct Configs<'a> {
    specs: &'a Specs,
    pub(super) settings: &'a Settings,
    builtin: &'a Builtin,
}

impl Builtin {
    pub(super) fn read(files: &BTreeMap<&str, &str>) -> Result<Self, PackError> {
        let written = BUILTIN.into_iter().map(|(name, file)| Ok(written(name, file, document(files, file)?)));
        let documents: Vec<Document> = written.collect::<Result<_, PackError>>()?;
        let preset = |(name, _), document: &Document| (name, merge::cleaned(&document.root.to_value()["spec"]));
        Ok(Self {
            presets: BUILTIN.into_iter().zip(&documents).map(|(it, document)| preset(it, document)).collect(),
            documents,
            pickers: value(files, "pickers.yaml")?,
            rules: value(files, "rules.yaml")?,
        })
    }
}

impl Builtin {
    /// Returns it with another preset in the place of one of its own.
    pub(super) fn with(&self, document: &Document) -> Option<Self> {
        let name = self.presets.keys().find(|name| **name == document.id.name)?;
        let mut other = self.clone();
        other.presets.insert(name, merge::cleaned(&document.root.to_value()["spec"]));
        Some(other)
    }
}

fn written(name: &str, file: &str, root: yaml::Node) -> Document {
    let id = ObjectId::new(GROUP, CONFIG, "", name);
    let gvk = Gvk::new(root.get("apiVersion").and_then(yaml::Node::as_str).unwrap_or_default(), CONFIG);
    Document { id, gvk, file: format!("{NAME}/{file}").into(), root, patched: Vec::new() }
}

impl<'a> Configs<'a> {
    pub(super) fn new(specs: &'a Specs, settings: &'a Settings, builtin: &'a Builtin) -> Self {
        Self { specs, settings, builtin }
    }

    /// Looks a config up: in the namespace of a service, in that of KServe, among those that are built in.
    pub(super) fn find(&self, name: &str, namespace: &str) -> Result<Config<'a>, Missing> {
        let namespaces = [namespace, self.specs.namespace(&self.settings.namespace)];
        for namespace in namespaces {
            let id = ObjectId::new(GROUP, CONFIG, namespace, name);
            if let Some(document) = self.specs.documents.get(&id) {
                let spec = versions::spec(document);
                return Ok(Config { title: format!("config {namespace}/{name}"), document: Some(document), spec });
            }
            if self.specs.broken.contains_key(&id) {
                return Err(Missing { message: format!("{CONFIG} {namespace}/{name} cannot be used"), hint: None });
            }
        }
        let suffix = name.strip_prefix(&self.settings.preset_prefix).unwrap_or_default();
        self.built_in(suffix).ok_or_else(|| {
            let [own, system] = namespaces;
            let places = if own == system { own.to_owned() } else { format!("{own} and {system}") };
            let message =
                format!("{CONFIG} {name:?} is not there, neither in the source (looked for in {places}) nor built in");
            let hint = "put it into the source, in the namespace of the service or in that of KServe";
            Missing { message, hint: Some(hint.to_owned()) }
        })
    }

    /// Looks a preset up, by its name without prefix. One that says only what is different from the one that would be
    /// found without it is laid over that.
    pub(super) fn preset(&self, suffix: &str, namespace: &str) -> Result<Config<'a>, Missing> {
        let name = format!("{}{suffix}", self.settings.preset_prefix);
        let found = self.find(&name, namespace)?;
        if found.document.is_none() || !is_part(&found.spec) {
            return Ok(found);
        }
        let system = self.specs.namespace(&self.settings.namespace);
        let below = match found.document {
            Some(document) if document.id.namespace != system => self.find(&name, system).ok(),
            _ => self.built_in(suffix),
        };
        let Some(below) = below else { return Ok(found) };
        let below = if is_part(&below.spec) {
            let Some(whole) = self.built_in(suffix) else { return Ok(found) };
            over(whole.spec, &below)?
        } else {
            below.spec
        };
        Ok(Config { spec: over(below, &found)?, ..found })
    }

    /// Returns an entry of a `ConfigMap` of the source: of the namespace of a service, or, for names that begin with
    /// `config-scheduler-`, of that of KServe.
    pub(super) fn entry(&self, name: &str, key: &str, namespace: &str) -> Option<String> {
        let system = name.starts_with("config-scheduler-").then(|| self.specs.namespace(&self.settings.namespace));
        std::iter::once(namespace).chain(system).find_map(|namespace| {
            let id = ObjectId::new("", "ConfigMap", namespace, name);
            let map = self.specs.unclaimed.iter().find(|document| document.id == id)?;
            map.root.at(["data", key]).and_then(yaml::Node::as_str).map(str::to_owned)
        })
    }

    pub(super) fn built_in(&self, suffix: &str) -> Option<Config<'a>> {
        let (name, spec) = self.builtin.presets.get_key_value(suffix)?;
        let mut spec = spec.clone();
        self.settings.images.apply(&mut spec);
        Some(Config { title: format!("built-in preset {name:?}"), document: None, spec })
    }
}

/// Tells whether a preset says only what is different: a whole one says of some container what runs in it or where it
/// answers, or of a route where it leads.
fn is_part(spec: &Value) -> bool {
    let pods = merge::PODS.iter().filter_map(|path| spec.pointer(&format!("/{}", path.join("/"))));
    let mut containers = pods.flat_map(|pod| items(&pod["containers"]));
    let runs = containers.any(|it| ["command", "ports"].iter().any(|field| it[field].is_array()));
    !runs && spec.pointer("/router/route/http/spec/rules").is_none()
}

fn over(below: Value, above: &Config<'_>) -> Result<Value, Missing> {
    merge::over(below, &above.spec).map_err(|error| {
        let place = error.path.join(".");
        Missing { message: format!("{} cannot be merged at {place}: {}", above.title, error.reason), hint: None }
    })
}
