//! The texts that objects were made of, and the place in them of something that is in an object.

mod likeness;

use std::sync::Arc;

use serde_json::Value;

use crate::object::{Object, ObjectId};
use crate::overlay::{self, Overlay};
use crate::problem::Place;
use crate::resolve::Resolved;
use crate::spec::Document;
use crate::yaml::{Content, Node, Position};

/// A document and its parameters, that which has the last word first.
pub(super) struct Texts<'a> {
    pub(super) id: &'a ObjectId,
    whole: Place,
    nodes: Vec<(&'a Arc<str>, &'a Node)>,
    overlays: &'a [&'a Overlay],
}

/// A step to a part of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(String),
    /// The item of a list, and its name if it has one: in a text it may stand somewhere else in the list.
    Item(usize, Option<String>),
}

impl<'a> Texts<'a> {
    pub(super) fn of(resolved: &'a Resolved<'_>) -> Self {
        let document = resolved.document;
        let layers = resolved.layers.iter().rev().map(|layer| (&layer.file, layer.node));
        let nodes = layers.chain([(&document.file, &document.root)]).collect();
        Self { id: &document.id, whole: document.place(), nodes, overlays: &resolved.overlays }
    }

    /// Returns those of a document that goes to a cluster as it is, but for overlays.
    pub(super) fn of_document(document: &'a Document, id: &'a ObjectId, overlays: &'a [&'a Overlay]) -> Self {
        Self { id, whole: document.place(), nodes: vec![(&document.file, &document.root)], overlays }
    }

    /// Returns where somebody has written a part of an object, its key rather than its value if `is_key`, if anybody has.
    ///
    /// A text may have no more than an inner part of the object, so the longest end of the path counts that leads to
    /// such a value. One field alone is not enough for a mapping or a list: others have such a field, too.
    pub(super) fn origin(&self, object: &Object, (steps, value): (&[Step], &Value), is_key: bool) -> Option<Place> {
        if let Some(place) = overlay::object::written(self.overlays, object.id(), &plain(steps)) {
            return Some(place);
        }
        let is_own = self.id == object.id();
        let least = if value.is_object() || value.is_array() { 2 } else { 1 };
        let is_end = |end: &&[Step]| matches!(end, [Step::Field(_), ..]) && (end.len() >= least || is_own);
        let mut ends = (0..steps.len()).map(|from| &steps[from..]).filter(is_end);
        let nodes = || overlay::object::texts(self.overlays, object.id()).chain(self.nodes.iter().copied());
        let find = |end| nodes().find_map(|(file, node)| Some(Place::at(file, ending(node, (end, value), is_key)?)));
        ends.find_map(find)
    }

    /// Returns the place of the spec as a whole.
    pub(super) fn whole(&self) -> &Place {
        &self.whole
    }

    /// Returns where a part of a pod with this spec is written: the item of a list in a path is told by its name. Where nobody
    /// has written it, that is the spec.
    pub(super) fn place(&self, spec: &Value, path: &[&str]) -> Place {
        let by_value = || {
            let (index, node) = likeness::find(spec, path, &self.nodes)?;
            Some(Place::at(self.nodes.get(index)?.0, node.position))
        };
        by_value().or_else(|| self.written(path)).unwrap_or_else(|| self.whole.clone())
    }

    /// Returns where something is written, all of the path or as much of its end as is anywhere.
    fn written(&self, path: &[&str]) -> Option<Place> {
        let find = |path: &[&str]| self.nodes.iter().find_map(|(file, node)| Some(Place::at(file, below(node, path)?)));
        // What stands in the item of another list is something else, so a path ends with its last list. Parameters may call
        // the container by another name.
        let inner = || path.get(2..).filter(|inner| inner.len() >= 2).and_then(find);
        (0..path.len()).find_map(|from| find(path.get(..path.len() - from)?)).or_else(inner)
    }

    /// Tells whether a text stands in one of the texts as the value of a field, and returns where.
    pub(super) fn says(&self, fields: &[&str], value: &str) -> Option<Place> {
        let is_it = |node: &Node| node.at(fields.iter().copied()).is_some_and(|node| node.as_str() == Some(value));
        self.nodes.iter().find_map(|(file, node)| {
            let found = first(node, &|node| is_it(node).then(|| node.at(fields.iter().copied())).flatten())?;
            Some(Place::at(file, found.position))
        })
    }
}

/// Returns the position of a path that begins anywhere in a text.
fn below(node: &Node, path: &[&str]) -> Option<Position> {
    first(node, &|node| follow(node, path)).map(|node| node.position)
}

/// Follows a path; in a list it goes to the item with that name.
fn follow<'n>(node: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, part| match &node.content {
        Content::List(items) => items.iter().find(|item| item.get("name").and_then(Node::as_str) == Some(part)),
        _ => node.get(part),
    })
}

/// Returns a path in the words of patches.
fn plain(steps: &[Step]) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::Field(field) => field.clone(),
        Step::Item(index, _) => index.to_string(),
    };
    steps.iter().map(word).collect()
}

/// Returns the position of a path that begins anywhere in a text and leads to a value.
fn ending(node: &Node, (steps, value): (&[Step], &Value), is_key: bool) -> Option<Position> {
    let here = reached(node, (steps, value), is_key);
    let below = || match &node.content {
        Content::List(items) => items.iter().find_map(|item| ending(item, (steps, value), is_key)),
        Content::Map(fields) => fields.values().find_map(|field| ending(&field.node, (steps, value), is_key)),
        _ => None,
    };
    here.or_else(below)
}

/// Follows a path. Of the items of a list, that at the index comes first, and then any that it may have been.
fn reached(node: &Node, (steps, value): (&[Step], &Value), is_key: bool) -> Option<Position> {
    let Some((step, rest)) = steps.split_first() else { return is_like(node, value).then_some(node.position) };
    match (step, &node.content) {
        (Step::Field(name), Content::Map(fields)) => {
            let field = fields.get(name)?;
            let position = reached(&field.node, (rest, value), is_key)?;
            Some(if is_key && rest.is_empty() { field.key } else { position })
        }
        (Step::Item(index, name), Content::List(items)) => {
            let own = items.get(*index).into_iter().chain(items);
            let is_it = |item: &&Node| item.get("name").and_then(Node::as_str) == name.as_deref();
            own.filter(is_it).find_map(|item| reached(item, (rest, value), is_key))
        }
        _ => None,
    }
}

/// Tells whether a value may have been made of what was written: text and numbers are as they were.
fn is_like(node: &Node, value: &Value) -> bool {
    match (&node.content, value) {
        (Content::Map(_), Value::Object(_)) | (Content::List(_), Value::Array(_)) => true,
        (Content::Map(_) | Content::List(_), _) => false,
        _ => node.to_value() == *value,
    }
}

/// Returns the first that is found for a node or for one below it.
fn first<'n>(node: &'n Node, find: &impl Fn(&'n Node) -> Option<&'n Node>) -> Option<&'n Node> {
    if let Some(found) = find(node) {
        return Some(found);
    }
    match &node.content {
        Content::List(items) => items.iter().find_map(|item| first(item, find)),
        Content::Map(fields) => fields.values().find_map(|field| first(&field.node, find)),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => None,
    }
}
