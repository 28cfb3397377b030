//! Documents that a pack looks up while it renders a spec, such as presets: those of the source, and those that are
//! built into it.

use std::sync::Arc;

use serde_json::Value;

use super::again;
use super::inputs::{Case, Input, Kind};
use crate::pack::ValuesGenerator;
use crate::spec::{Document, Specs};
use crate::yaml::Node;

/// The documents that a unit may be made of, beside its own.
#[derive(Default)]
pub(super) struct Reads<'a> {
    /// Those of the source.
    pub(super) source: Vec<&'a Document>,
    /// Those of the pack.
    pub(super) builtin: Vec<Document>,
}

impl<'a> Reads<'a> {
    /// Returns all that there are of the kinds that a pack reads.
    pub(super) fn of(specs: &'a Specs, generator: &dyn ValuesGenerator, kinds: &[(&'a str, &'a str)]) -> Self {
        let source = kinds.iter().flat_map(|(group, kind)| specs.of_kind(group, kind)).collect();
        Self { source, builtin: generator.documents() }
    }

    /// Returns one of them.
    pub(super) fn document(&self, kind: Kind) -> Option<&Document> {
        match kind {
            Kind::Read(index) => self.source.get(index).copied(),
            Kind::Builtin(index) => self.builtin.get(index),
            Kind::Spec
            | Kind::Set(_)
            | Kind::Defaults
            | Kind::Layer(_)
            | Kind::Overlay(_)
            | Kind::Settings
            | Kind::Sync => None,
        }
    }

    /// Returns all of them.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> + use<'a> {
        let source = (0..self.source.len()).map(Kind::Read);
        source.chain((0..self.builtin.len()).map(Kind::Builtin))
    }
}

/// Tells whether a unit is made of a document: without what that says it is another one, or none.
pub(super) fn is_used(case: &Case<'_>, input: &Input) -> bool {
    let mut empty = input.root.clone();
    if let Some(spec) = empty.get_mut("spec") {
        *spec = Value::Object(serde_json::Map::new());
    }
    again::render(case, &[(input, &empty)]) != again::render(case, &[])
}

/// Returns the documents of a source with other content in one of them.
pub(super) fn specs_with(specs: &Specs, document: &Document, root: &Value) -> Specs {
    let mut specs = specs.clone();
    specs.documents.insert(document.id.clone(), changed(document, root));
    specs
}

/// Returns a generator with other content in one of its documents.
pub(super) fn generator_with(
    generator: &dyn ValuesGenerator,
    document: &Document,
    root: &Value,
) -> Option<Arc<dyn ValuesGenerator>> {
    generator.with_document(&changed(document, root))
}

fn changed(document: &Document, root: &Value) -> Document {
    Document { root: Node::of_value(root), ..document.clone() }
}
