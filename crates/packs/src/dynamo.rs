//! The pack of NVIDIA Dynamo: graphs of components that serve a model together.
//!
//! By default a graph is passed on to Dynamo's operator, which runs in the cluster. Where there is none, a graph is
//! expanded: what the operator would make is worked out here and applied like everything else. That is a pure function
//! of graph, settings and what the cluster serves; what only a controller can do (profiling, loading of adapters,
//! restarts one after the other, checkpoints) is not there, and says so.

mod backend;
mod command;
mod expand;
mod fill;
mod metadata;
mod model;
mod network;
mod nodes;
mod overrides;
mod pass;
mod picker;
mod pod;
mod preflight;
mod read;
pub mod settings;
mod workload;

use std::sync::Arc;

use gatewright_engine::merge::origin::{LayerName, Merged};
use gatewright_engine::pack::builtin::Files;
use gatewright_engine::pack::{Pack, PackError, Provision, Subject, ValuesGenerator, settings as read_settings, value};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::spec::Resource;
use serde_json::Value;

use backend::Backends;
use expand::Data;
use settings::{Mode, Settings};

#[cfg(test)]
mod tests;

/// The name of the pack.
const NAME: &str = "dynamo";

/// The file of an endpoint picker's configuration.
const PICKER_KEY: &str = "epp-config-dynamo.yaml";

/// Puts the pack together.
pub(crate) fn pack(files: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    let settings: Settings = read_settings(settings)?;
    // Of the file, all is optional: parameters say only what differs.
    let schema = Schema::of::<Resource<Settings>>().map_err(PackError::Schema)?;
    let backends = backend::all(files)?;
    let types = value(files, "types.yaml")?;
    Pack::new(files, schema, Arc::new(Generator { settings, backends, types }))
}

/// Adds what else is in the way of expanding a graph that has mistakes, so that all of it can be mended at once.
fn with_the_rest(mut mistakes: Vec<Problem>, subject: &Subject<'_>) -> Vec<Problem> {
    if is_graph(&subject.document.id.kind) {
        let rest = read::understood(subject.document, subject.namespace).1;
        for problem in rest {
            if mistakes.iter().all(|mistake| mistake.message != problem.message) {
                mistakes.push(problem);
            }
        }
    }
    mistakes
}

/// The values generator. What `packs.dynamo` says is the lowest layer of parameters.
#[derive(Clone)]
struct Generator {
    settings: Settings,
    backends: Backends,
    /// `types.yaml`.
    types: Value,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        Merged::of_value(LayerName::Settings, "packs.dynamo", &self.settings.to_value())
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let settings: Settings = subject.read(parameters)?;
        let mistakes = read::mistakes(subject.document);
        if !mistakes.is_empty() {
            return Err(if is_expanded(subject, &settings) { with_the_rest(mistakes, subject) } else { mistakes });
        }
        if !is_expanded(subject, &settings) {
            return Ok(Provision::PassThrough(vec![pass::document(subject.document, &settings)]));
        }
        let problem = |message: &str, hint: &str| Err(vec![subject.problem(message).hint(hint)]);
        let kind = &subject.document.id.kind;
        if operates(subject) == Some(true) {
            return problem(
                "Dynamo's operator is at work on this cluster, and would make the same objects",
                "mode passthrough leaves them to it; mode auto expands only where there is no operator",
            );
        }
        if !is_graph(kind) {
            return problem(
                &format!("only Dynamo's operator can do what a {kind} asks for, and mode is expand"),
                "install the operator, or take the document away",
            );
        }
        let capabilities = subject.capabilities;
        let data = Data { settings: &settings, backends: &self.backends, types: &self.types, capabilities };
        expand::values(subject.document, subject.namespace, &data).map(Provision::Values)
    }

    fn lint(&self, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
        let Ok(settings) = subject.read::<Settings>(parameters) else { return Vec::new() };
        let is_expanded = is_expanded(subject, &settings);
        let mut warnings = pass::warnings(subject.document, &settings, is_expanded);
        if !is_expanded && is_graph(&subject.document.id.kind) {
            warnings.extend(read::fields::doubts(subject.document));
        }
        // Who is refused needs nothing.
        if !(is_expanded && operates(subject) == Some(true)) {
            warnings.extend(preflight::warning(subject, &settings, is_expanded));
            if is_expanded && is_graph(&subject.document.id.kind) {
                warnings.extend(preflight::unable(subject, &settings));
            }
        }
        warnings
    }

    fn settings(&self) -> Value {
        self.settings.to_value()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        let settings: Settings = serde_json::from_value(settings.clone()).ok()?;
        Some(Arc::new(Self { settings, ..self.clone() }))
    }
}

/// Tells whether a kind is one of those that can be expanded.
fn is_graph(kind: &str) -> bool {
    matches!(kind, "DynamoGraphDeployment" | "DynamoComponentDeployment")
}

/// Tells whether the operator is at work; `None` where nobody knows.
fn operates(subject: &Subject<'_>) -> Option<bool> {
    subject.capabilities.map(|capabilities| capabilities.operates(NAME))
}

/// Tells who makes the workloads. `auto` means the same as in every pack: the operator where it is seen at work, else this
/// program. What only an operator can do is left to it unless it is known that there is none.
fn is_expanded(subject: &Subject<'_>, settings: &Settings) -> bool {
    match settings.mode {
        Mode::Passthrough => false,
        Mode::Expand => true,
        Mode::Auto if is_graph(&subject.document.id.kind) => operates(subject) != Some(true),
        Mode::Auto => operates(subject) == Some(false),
    }
}
