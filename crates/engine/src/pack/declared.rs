//! Declarative packs: a folder is all there is to them.
//!
//! `pack.yaml` says what is claimed and which values are computed, a file has the defaults, another the schema of the
//! parameters, and templates make objects of it all. What needs more than expressions of the templates' language needs a
//! [`ValuesGenerator`] in Rust.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::manifest::Manifest;
use super::{Pack, PackError, Provision, Subject, ValuesGenerator, document, value};
use crate::merge::origin::{Layer, LayerName, Merged, MergedContent};
use crate::problem::Problem;
use crate::render::Renderer;
use crate::schema::Schema;
use crate::tree::files;
use crate::yaml::Node;

/// The names that templates see beside the values that the pack computes.
pub const SCOPE: [&str; 7] = ["gateway", "name", "namespace", "params", "resource", "said", "settings"];

/// The fields of `gateway`.
const GATEWAY: [&str; 6] = ["addresses", "annotations", "class", "labels", "listeners", "ports"];

/// The fields of the items of its lists.
const ITEMS: [(&str, &[&str]); 3] = [
    ("addresses", &["type", "value"]),
    ("listeners", &["name", "port", "protocol"]),
    ("ports", &["name", "port", "transport"]),
];

/// Returns the fields that `gateway`, or an item of one of its lists, has for templates; `None` if there is no such list.
pub(super) fn gateway_fields(list: Option<&str>) -> Option<&'static [&'static str]> {
    match list {
        None => Some(&GATEWAY),
        Some(list) => ITEMS.iter().find(|(name, _)| *name == list).map(|(_, fields)| *fields),
    }
}

impl Pack {
    /// Reads a declarative pack from a folder; `settings` as for [`Pack::declared`].
    pub fn read_dir(folder: &Path, settings: &Value) -> Result<Self, PackError> {
        let files = files::read(folder).map_err(PackError::Folder)?;
        Self::declared(&files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect(), settings)
    }

    /// Puts a declarative pack together from its files. Templates see what `settings` holds under that name.
    pub fn declared(files: &BTreeMap<&str, &str>, settings: &Value) -> Result<Self, PackError> {
        let manifest = Manifest::read(files)?;
        let defaults = manifest.defaults.as_ref().map(|name| document(files, name)).transpose()?;
        let schema = match &manifest.parameters.schema {
            Some(name) => Schema::new(&whole(value(files, name)?)).map_err(PackError::Schema)?,
            None => Schema::anything(),
        };
        let names: Vec<String> = manifest.values.iter().map(|value| value.name.clone()).collect();
        if let Some(name) = names.iter().find(|name| SCOPE.contains(&name.as_str())) {
            return Err(PackError::Taken(name.clone()));
        }
        let expressions = manifest.values.iter().map(|value| (value.name.clone(), value.value.clone()));
        let generator = Declared {
            file: format!("{}/{}", manifest.name, manifest.defaults.as_deref().unwrap_or_default()),
            pack: manifest.name.clone(),
            defaults: defaults.unwrap_or_else(|| Node::of_value(&json!({}))),
            expressions: Arc::new(Renderer::of_expressions(expressions).map_err(PackError::Template)?),
            names,
            texts: manifest.values.iter().map(|value| (value.name.clone(), value.value.clone())).collect(),
            settings: settings.clone(),
        };
        Ok(Self { is_declarative: true, ..Self::of_manifest(manifest, files, schema, Arc::new(generator))? })
    }
}

/// The values generator of a declarative pack.
#[derive(Clone)]
struct Declared {
    pack: String,
    file: String,
    defaults: Node,
    expressions: Arc<Renderer>,
    /// Of the expressions, in the order in which they are evaluated.
    names: Vec<String>,
    /// The texts of the expressions.
    texts: BTreeMap<String, String>,
    settings: Value,
}

impl Declared {
    /// Tells whether the expression of a value names one of some others.
    fn uses(&self, name: &str, others: &[&String]) -> bool {
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let mut words = self.texts.get(name).into_iter().flat_map(|text| text.split(|char| !is_part(char)));
        words.any(|word| others.iter().any(|other| *other == word))
    }
}

impl ValuesGenerator for Declared {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        Merged::of(&Layer::new(LayerName::Builtin, self.file.as_str(), &self.defaults))
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let mut values = scope(subject, parameters, &self.settings);
        let (mut problems, mut failed) = (Vec::new(), Vec::new());
        for name in &self.names {
            match self.expressions.evaluate(name, &values) {
                Ok(value) => values[name] = value,
                // What is made of a value that is not there cannot be there either, and that is no mistake of its own.
                Err(_) if self.uses(name, &failed) => failed.push(name),
                Err(error) => {
                    let message = format!("pack {:?} cannot compute {name:?}: {}", self.pack, error.line());
                    problems.push(subject.problem(&message).hint(in_scope(&values)));
                    failed.push(name);
                }
            }
        }
        if problems.is_empty() { Ok(Provision::Values(values)) } else { Err(problems) }
    }

    fn settings(&self) -> Value {
        self.settings.clone()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        Some(Arc::new(Self { settings: settings.clone(), ..self.clone() }))
    }
}

/// Names what templates can use.
pub(crate) fn in_scope(values: &Value) -> String {
    let names = values.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    format!("in scope are {}", names.collect::<Vec<_>>().join(", "))
}

/// Returns what templates see of a spec.
fn scope(subject: &Subject<'_>, parameters: &Merged, settings: &Value) -> Value {
    let mut resource = subject.document.value();
    if let Some(fields) = resource.as_object_mut() {
        fields.remove("status");
    }
    let params = match parameters.to_value() {
        Value::Null => json!({}),
        params => params,
    };
    json!({
        "name": subject.document.id.name,
        "namespace": subject.namespace,
        "resource": resource,
        "params": params,
        "said": said(parameters).unwrap_or_else(|| json!({})),
        "settings": settings,
        "gateway": subject.is_gateway().then(|| gateway(subject)),
    })
}

/// Returns the parameters without what the defaults of the pack alone say.
fn said(parameters: &Merged) -> Option<Value> {
    match &parameters.content {
        MergedContent::Map(fields) => {
            let fields = fields.iter().filter_map(|(key, below)| Some((key.clone(), said(below)?)));
            let fields: Map<String, Value> = fields.collect();
            let is_said = !fields.is_empty() || parameters.origin.layer != LayerName::Builtin;
            is_said.then_some(Value::Object(fields))
        }
        MergedContent::List(_) | MergedContent::Leaf(_) => {
            (parameters.origin.layer != LayerName::Builtin).then(|| parameters.to_value())
        }
    }
}

/// Returns what all data planes need of a Gateway, listener sets included.
fn gateway(subject: &Subject<'_>) -> Value {
    let (labels, annotations) = super::gateway::infrastructure(subject);
    let own = subject.gateway.spec.listeners.iter().map(|listener| (listener, Some(listener.port)));
    let sets = subject.listener_sets.iter().flat_map(|set| &set.spec.listeners);
    let sets = sets.map(|listener| (listener, super::gateway::port_of_set(listener)));
    let listeners: Vec<Value> = own
        .chain(sets)
        .filter_map(|(listener, port)| {
            Some(json!({"name": listener.name, "port": port?, "protocol": listener.protocol}))
        })
        .collect();
    let mut ports: Vec<Value> = Vec::new();
    for listener in &listeners {
        if !ports.iter().any(|port| port["port"] == listener["port"]) {
            let port = listener["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
            let transport = if listener["protocol"] == "UDP" { "UDP" } else { "TCP" };
            ports.push(json!({"name": super::gateway::port_name(port), "port": port, "transport": transport}));
        }
    }
    ports.sort_by_key(|port| port["port"].as_u64());
    let addresses = subject.gateway.spec.addresses.iter();
    let addresses: Vec<Value> =
        addresses.map(|address| json!({"type": address.kind, "value": address.value})).collect();
    json!({
        "class": subject.class,
        "labels": labels,
        "annotations": annotations,
        "listeners": listeners,
        "ports": ports,
        "addresses": addresses,
    })
}

/// Makes the schema of a whole document from that of its `spec`.
pub(super) fn whole(mut spec: Value) -> Value {
    let mut whole = json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "additionalProperties": true},
            // Of a ConfigMap, what stands in it is its spec.
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "status": {"additionalProperties": true},
        },
    });
    for definitions in ["$defs", "definitions"] {
        if let Some(found) = spec.as_object_mut().and_then(|fields| fields.remove(definitions)) {
            whole[definitions] = found;
        }
    }
    whole["properties"]["spec"] = spec;
    whole
}

#[cfg(test)]
mod tests;
