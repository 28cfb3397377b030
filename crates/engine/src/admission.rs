//! Admission: what an API server would refuse of a document, by the definition of its kind (CRD), without a server.
//!
//! A definition is checked in the order in which an API server checks it: fields that it does not name, types and bounds,
//! alternatives, keys of lists that are maps, and then its rules in CEL (KEP-2876). Defaults count where the server has
//! filled them in by then. What only a server can tell (what is there already, webhooks, policies) is left to its dry run.

mod alternatives;
mod definition;
mod keys;
mod place;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::check::{self, Mistake};
use crate::problem::{Place, Problem};
use crate::schema::Schema;
use crate::spec::Document;
use definition::Version;
pub use definition::{Definition, DefinitionError};

/// The definitions of kinds.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// By group and kind.
    all: BTreeMap<(String, String), Arc<Definition>>,
    /// Kinds that newer releases do not have, by group and kind, with what took their place.
    retired: BTreeMap<(String, String), String>,
}

impl Definitions {
    /// Adds one; it takes the place of another one of the same kind.
    pub fn add(&mut self, definition: Definition) {
        self.all.insert((definition.group.clone(), definition.kind.clone()), Arc::new(definition));
    }

    /// Adds a kind that newer releases do not have, and what took its place.
    pub fn retire(&mut self, group: &str, kind: &str, successor: &str) {
        self.retired.insert((group.to_owned(), kind.to_owned()), successor.to_owned());
    }

    /// Returns what took the place of a kind that newer releases do not have.
    pub(crate) fn successor(&self, group: &str, kind: &str) -> Option<&str> {
        self.retired.get(&(group.to_owned(), kind.to_owned())).map(String::as_str)
    }

    /// Returns the definition of a kind.
    pub fn of(&self, group: &str, kind: &str) -> Option<&Arc<Definition>> {
        self.all.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Returns what an API server would refuse of a document, as far as the definition of its kind is known.
    pub(crate) fn mistakes(&self, document: &Document) -> Vec<Mistake> {
        let definition = self.of(&document.id.group, &document.id.kind).filter(|it| it.release.is_none());
        definition.map(|definition| definition.check(document, None)).unwrap_or_default()
    }

    /// Returns what a server with the release that is known here would refuse of a document of a product: warnings, because
    /// another release may take it. `are_names_known`: somebody else has looked at the names of its fields.
    pub(crate) fn doubts(&self, document: &Document, are_names_known: bool) -> Vec<Problem> {
        let definition = self.of(&document.id.group, &document.id.kind);
        let Some((definition, release)) = definition.and_then(|it| Some((it, it.release?))) else { return Vec::new() };
        let Some(version) = definition.version(&document.gvk.version) else { return Vec::new() };
        let shape = if are_names_known { version.open() } else { &version.shape };
        let doubt = |Mistake { position, message, hint, fix }: Mistake| {
            let message = format!("{message}, by the definition of {release}");
            let hint = hint.unwrap_or_else(|| "with another release, name its definitions in crdFolders".to_owned());
            let problem = Problem::warning(Place::at(&document.file, position), message).about(document.id.clone());
            Problem { fix, ..problem.hint(hint) }
        };
        version.check(document, None, shape).into_iter().map(doubt).collect()
    }

    /// Takes nulls out of what a document becomes, where the definition of its kind has the field and does not allow them, as
    /// API servers do before they judge it.
    pub(crate) fn prune_nulls(&self, document: &Document, body: &mut Value) {
        let definition = self.of(&document.id.group, &document.id.kind);
        if let Some(version) = definition.and_then(|definition| definition.version(&document.gvk.version)) {
            prune_nulls(body, &version.schema);
        }
    }

    /// Returns all of them, in the order of their groups and kinds.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.all.values()
    }
}

fn prune_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let others = Some(&schema["additionalProperties"]).filter(|others| others.is_object());
            let of = |name: &str| schema["properties"].get(name).or(others);
            let is_unset = |value: &Value, schema: &Value| value.is_null() && schema["nullable"] != true;
            fields.retain(|name, value| !of(name).is_some_and(|schema| is_unset(value, schema)));
            for (name, value) in fields {
                if let Some(schema) = of(name) {
                    prune_nulls(value, schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune_nulls(item, &schema["items"])),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl FromIterator<Definition> for Definitions {
    fn from_iter<T: IntoIterator<Item = Definition>>(definitions: T) -> Self {
        let mut all = Self::default();
        definitions.into_iter().for_each(|definition| all.add(definition));
        all
    }
}

impl Definition {
    /// Returns what an API server would refuse of a document of this kind, in the order of the file. A version that the
    /// definition does not have is not judged; rules about changes are, where it is known what is there `before`.
    pub fn check(&self, document: &Document, before: Option<&Value>) -> Vec<Mistake> {
        let version = self.version(&document.gvk.version);
        version.map(|version| version.check(document, before, &version.shape)).unwrap_or_default()
    }
}

impl Version {
    /// Returns what a server would refuse, where types and bounds are those of a shape.
    fn check(&self, document: &Document, before: Option<&Value>, shape: &Schema) -> Vec<Mistake> {
        let mut mistakes = check::check(&document.root, shape);
        if !mistakes.is_empty() {
            return mistakes;
        }
        let value = self.filled(&document.value());
        mistakes = alternatives::check(&document.root, &value, self);
        mistakes.extend(keys::check(&document.root, &value, &self.schema));
        // What is said of a place already, a rule often says again.
        let is_new = |it: &Mistake| mistakes.iter().all(|mistake| mistake.position != it.position);
        let broken = rules::check(&document.root, (&value, before), self);
        let broken: Vec<Mistake> = broken.into_iter().filter(is_new).collect();
        mistakes.extend(broken);
        mistakes.sort_by_key(|mistake| mistake.position);
        mistakes
    }
}

#[cfg(test)]
mod tests;
