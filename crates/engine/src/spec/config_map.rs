//! `ConfigMaps` as parameters: each key of `data` holds YAML, and is a field of what they say.
//!
//! Most `ConfigMaps` of a source are nobody's business here. Only one that a Gateway, a class or another spec refers to is
//! read as parameters, and only if a pack says that its parameters may be `ConfigMaps`.

use std::collections::BTreeSet;

use super::{Document, Kinds, Specs, validate};
use crate::object::ObjectId;
use crate::problem::Problem;
use crate::yaml::{self, Content, Field, Node, Position};

/// The annotation of a spec that names its parameters.
pub(crate) const PARAMETERS: &str = "gatewright.dev/parameters";

/// The kind.
const CONFIG_MAP: (&str, &str) = ("", "ConfigMap");

/// Tells whether documents of a kind are parameters only where something refers to them.
pub(crate) fn is_shared(group: &str, kind: &str) -> bool {
    (group, kind) == CONFIG_MAP
}

impl Specs {
    /// Reads those `ConfigMaps` as parameters that something refers to.
    pub(super) fn read_config_maps(&mut self, kinds: &Kinds) {
        let Some(kind) = kinds.get(&(CONFIG_MAP.0.to_owned(), CONFIG_MAP.1.to_owned())) else { return };
        let wanted = self.referred();
        let (found, others) = std::mem::take(&mut self.unclaimed).into_iter().partition(|document: &Document| {
            let id = &document.id;
            is_shared(&id.group, &id.kind) && wanted.contains(&self.config_map(&id.namespace, &id.name))
        });
        self.unclaimed = others;
        let found: Vec<Document> = found;
        for mut document in found {
            document.id = self.config_map(&document.id.namespace, &document.id.name);
            let mut problems = Vec::new();
            document.root = with_spec(&document, &mut problems);
            if problems.is_empty() {
                problems = validate(&document, kind, &self.definitions);
            }
            let is_broken = !problems.is_empty();
            self.problems.extend(problems);
            self.place(document, is_broken);
        }
    }

    /// Returns the `ConfigMaps` that something refers to.
    fn referred(&self) -> BTreeSet<ObjectId> {
        let mut referred = BTreeSet::new();
        for document in self.documents.values().chain(&self.broken_documents) {
            for path in [&["spec", "infrastructure", "parametersRef"][..], &["spec", "parametersRef"]] {
                let Some(reference) = document.root.at(path.iter().copied()) else { continue };
                let text = |field: &str| reference.get(field).and_then(Node::as_str).unwrap_or_default();
                if is_shared(text("group"), text("kind")) {
                    let namespace = Some(text("namespace")).filter(|said| !said.is_empty());
                    referred.insert(self.config_map(namespace.unwrap_or(&document.id.namespace), text("name")));
                }
            }
            if let Some(name) = document.root.at(["metadata", "annotations", PARAMETERS]).and_then(Node::as_str) {
                referred.insert(self.config_map(&document.id.namespace, name));
            }
        }
        referred
    }

    fn config_map(&self, namespace: &str, name: &str) -> ObjectId {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        ObjectId::new(CONFIG_MAP.0, CONFIG_MAP.1, self.namespace(namespace), name)
    }
}

/// Returns a `ConfigMap` with a `spec`: what stands in its keys.
fn with_spec(document: &Document, problems: &mut Vec<Problem>) -> Node {
    let mut root = document.root.clone();
    let Some(data) = document.root.get("data") else { return root };
    let mut spec = data.clone();
    if let Content::Map(fields) = &mut spec.content {
        for (key, field) in fields {
            match read(field) {
                Ok(node) => field.node = node,
                Err((position, message)) => {
                    let message = format!("data.{key} holds no YAML: {message}");
                    problems.push(Problem::document(document.at(position), message).about(document.id.clone()));
                }
            }
        }
    }
    if let Content::Map(fields) = &mut root.content {
        let key = fields.get("data").map(|field| field.key).unwrap_or_default();
        fields.insert("spec".to_owned(), Field { key, node: spec });
    }
    root
}

/// Reads the YAML in a text, every position where it stands in the file.
fn read(field: &Field) -> Result<Node, (Position, String)> {
    let start = field.node.position;
    let Some(text) = field.node.as_str() else { return Err((start, "it is no text".to_owned())) };
    let above = start.line.saturating_sub(1);
    let shift = |position: Position| Position { line: position.line + above, column: position.column };
    let mut documents = yaml::parse(text).map_err(|error| (shift(error.position), error.message))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(node), true) => Ok(node.shifted(&shift)),
        (None, _) => Ok(Node { position: start, content: Content::Null }),
        (Some(_), false) => Err((start, "it holds more than one document".to_owned())),
    }
}
