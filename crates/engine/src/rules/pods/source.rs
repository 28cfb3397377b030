//! The texts that a pod was made of, and the place in them of something that is in the pod.

use std::sync::Arc;

use crate::object::ObjectId;
use crate::problem::Place;
use crate::resolve::Resolved;
use crate::yaml::{Content, Node};

/// A spec and its parameters, that which has the last word first.
pub(super) struct Texts<'a> {
    pub(super) id: &'a ObjectId,
    whole: Place,
    nodes: Vec<(&'a Arc<str>, &'a Node)>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(resolved: &'a Resolved<'_>) -> Self {
        let document = resolved.document;
        let layers = resolved.layers.iter().rev().map(|layer| (&layer.file, layer.node));
        let nodes = layers.chain([(&document.file, &document.root)]).collect();
        Self { id: &document.id, whole: document.place(), nodes }
    }

    /// Returns where a part of a pod is written: the item of a list in a path is told by its name. Where nobody has written
    /// it, that is the spec.
    pub(super) fn place(&self, path: &[&str]) -> Place {
        self.written(path).unwrap_or_else(|| self.whole.clone())
    }

    /// Returns where something is written, all of the path or as much of its end as is anywhere.
    fn written(&self, path: &[&str]) -> Option<Place> {
        let find = |path: &[&str]| self.nodes.iter().find_map(|(file, node)| Some(Place::at(file, below(node, path)?)));
        // What stands in the item of another list is something else, so a path ends with its last list.
        (0..path.len()).find_map(|from| find(path.get(..path.len() - from)?))
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
fn below(node: &Node, path: &[&str]) -> Option<crate::yaml::Position> {
    first(node, &|node| follow(node, path)).map(|node| node.position)
}

/// Follows a path; in a list it goes to the item with that name.
fn follow<'n>(node: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, part| match &node.content {
        Content::List(items) => items.iter().find(|item| item.get("name").and_then(Node::as_str) == Some(part)),
        _ => node.get(part),
    })
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
