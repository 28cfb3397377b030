//! A service as it was written, and what its name makes of it.

use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use serde_json::{Map, Value};

use super::types::Texts;
use super::{names, versions};
use crate::json::texts;
use crate::problems;

/// The group of KServe's kinds.
pub(super) const GROUP: &str = "serving.kserve.io";

/// The kind of presets and of what `baseRefs` name.
pub(super) const CONFIG: &str = "LLMInferenceServiceConfig";

/// The annotation that takes a service out of use.
const STOP: &str = "serving.kserve.io/stop";

/// Names of Services and values of labels.
const LONGEST_NAME: usize = 63;

#[derive(Clone, Debug)]
pub(super) struct Service<'a> {
    /// As it was written.
    pub(super) document: &'a Document,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) metadata: Value,
    /// Its spec, cleaned, always with the name of a model.
    pub(super) spec: Value,
    /// `spec.router.scheduler.image` of older releases.
    pub(super) scheduler_image: Option<String>,
}

impl<'a> Service<'a> {
    /// Reads a service of either version.
    pub(super) fn read(document: &'a Document, namespace: &'a str) -> Self {
        let root = document.root.to_value();
        let mut spec = versions::spec(document);
        if !spec.is_object() {
            spec = Value::Object(Map::new());
        }
        let name = document.id.name.as_str();
        let mut metadata = root["metadata"].clone();
        metadata["namespace"] = namespace.into();
        if let Some(model) = spec.get_mut("model").and_then(Value::as_object_mut) {
            // v1alpha1 has it, and nothing reads it.
            model.remove("criticality");
        }
        let scheduler = spec.pointer_mut("/router/scheduler").and_then(Value::as_object_mut);
        let image = scheduler.and_then(|scheduler| scheduler.remove("image"));
        let scheduler_image = image.as_ref().and_then(Value::as_str).map(str::to_owned);
        if spec["model"]["name"].is_null() || spec["model"]["name"] == "" {
            spec["model"]["name"] = name.into();
        }
        Self { document, name, namespace, metadata, spec, scheduler_image }
    }

    pub(super) fn has_model(&self) -> bool {
        self.document.root.at(["spec", "model", "uri"]).is_some()
    }

    /// Tells whether it is taken out of use.
    pub(super) fn is_stopped(&self) -> bool {
        self.annotations().get(STOP).is_some_and(|text| text == "true")
    }

    pub(super) fn annotations(&self) -> Texts {
        texts(&self.metadata["annotations"])
    }

    pub(super) fn labels(&self) -> Texts {
        texts(&self.metadata["labels"])
    }

    /// Returns the name of something that belongs to it.
    pub(super) fn child(&self, suffix: &str) -> String {
        names::child(self.name, suffix)
    }

    /// Returns the name of its pool, if it makes one.
    pub(super) fn pool(&self) -> String {
        self.child("-inference-pool")
    }

    /// Returns the name of the Service before its pods.
    pub(super) fn workload_service(&self) -> String {
        self.child("-kserve-workload-svc")
    }

    /// Returns the name of the Secret with the certificate that presets mount.
    pub(super) fn certificate(&self) -> String {
        self.child("-kserve-self-signed-certs")
    }

    /// Returns a problem with a part of it.
    pub(super) fn problem(&self, path: &[&str], message: impl Into<String>) -> Problem {
        problems::problem(self.document, path, message)
    }

    /// Returns what is wrong with its name: it becomes a value of labels and a part of the names of Services.
    pub(super) fn name_problem(&self) -> Option<Problem> {
        let is_label = self.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && self.name.starts_with(|first: char| first.is_ascii_lowercase());
        let message = if self.name.len() > LONGEST_NAME {
            format!("the name has {} characters, and {LONGEST_NAME} are what a label holds", self.name.len())
        } else if !is_label {
            "the name cannot be that of a Service: it must begin with a letter, and have only small letters, digits and \
             dashes"
                .to_owned()
        } else {
            return None;
        };
        Some(self.problem(&["metadata", "name"], message).hint("choose another name; names of objects are made of it"))
    }
}
