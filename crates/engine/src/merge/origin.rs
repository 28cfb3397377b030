//! The origin of each merged value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::problem::Place;
use crate::yaml::{Content, Node};

/// The layers of parameters, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerName {
    /// The defaults of a pack.
    #[serde(rename = "built-in")]
    Builtin,
    /// The config file.
    Settings,
    /// The parameters of a `GatewayClass`.
    Class,
    /// The parameters of a Gateway.
    Gateway,
    /// The parameters of a spec that is no Gateway.
    Parameters,
    /// A `ClusterOverlay`.
    Overlay,
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One contribution to the parameters.
#[derive(Clone, Debug)]
pub struct Layer<'a> {
    /// Its name.
    pub name: LayerName,
    /// The file that it stands in.
    pub file: Arc<str>,
    /// Its content.
    pub node: &'a Node,
}

impl<'a> Layer<'a> {
    /// Puts a layer together.
    pub fn new(name: LayerName, file: impl Into<Arc<str>>, node: &'a Node) -> Self {
        Self { name, file: file.into(), node }
    }

    /// Returns the place of something that the layer says.
    pub fn place_of(&self, node: &Node) -> Place {
        Place::at(&self.file, node.position)
    }
}

/// The layer that set a value, and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The layer.
    pub layer: LayerName,
    /// The place.
    pub place: Place,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.layer, self.place)
    }
}

/// A value that remembers who set each part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The value.
    pub content: MergedContent,
    /// The layer that set it, and the place. Of a mapping or an appended list: who mentioned it first.
    pub origin: Origin,
}

/// The content of a [`Merged`].
#[derive(Clone, Debug, PartialEq)]
pub enum MergedContent {
    /// Anything without parts.
    Leaf(Value),
    /// A list.
    List(Vec<Merged>),
    /// A mapping.
    Map(BTreeMap<String, Merged>),
}

impl Merged {
    /// Returns a value that says nothing.
    pub fn empty() -> Self {
        let origin = Origin { layer: LayerName::Builtin, place: Place::file("") };
        Self { content: MergedContent::Leaf(Value::Null), origin }
    }

    /// Reads a layer.
    pub fn of(layer: &Layer<'_>) -> Self {
        let node = layer.node;
        let place = layer.place_of(node);
        let below = |node| Self::of(&Layer { node, ..layer.clone() });
        let content = match &node.content {
            Content::List(items) => MergedContent::List(items.iter().map(below).collect()),
            Content::Map(fields) => {
                let fields = fields.iter().filter(|(_, field)| field.node.content != Content::Null);
                MergedContent::Map(fields.map(|(key, field)| (key.clone(), below(&field.node))).collect())
            }
            _ => MergedContent::Leaf(node.to_value()),
        };
        Self { content, origin: Origin { layer: layer.name, place } }
    }

    /// Makes a value that one place set as a whole.
    pub fn of_value(layer: LayerName, file: &str, value: &Value) -> Self {
        let below = |value| Self::of_value(layer, file, value);
        let content = match value {
            Value::Array(items) => MergedContent::List(items.iter().map(below).collect()),
            Value::Object(fields) => {
                MergedContent::Map(fields.iter().map(|(key, value)| (key.clone(), below(value))).collect())
            }
            leaf => MergedContent::Leaf(leaf.clone()),
        };
        Self { content, origin: Origin { layer, place: Place::file(file) } }
    }

    /// Returns a field.
    pub fn get(&self, field: &str) -> Option<&Self> {
        match &self.content {
            MergedContent::Map(fields) => fields.get(field),
            MergedContent::Leaf(_) | MergedContent::List(_) => None,
        }
    }

    /// Follows a path of fields separated by dots.
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |merged, field| merged.get(field))
    }

    /// Follows fields and indexes, as [`Node::at`] does.
    pub(crate) fn part<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        path.into_iter().try_fold(self, |merged, step| match &merged.content {
            MergedContent::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => merged.get(step),
        })
    }

    /// Returns the items of a list or the fields of a mapping.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match &self.content {
            MergedContent::Leaf(_) => Vec::new(),
            MergedContent::List(items) => items.iter().collect(),
            MergedContent::Map(fields) => fields.values().collect(),
        }
    }

    /// Returns the value without its origins.
    pub fn to_value(&self) -> Value {
        match &self.content {
            MergedContent::Leaf(value) => value.clone(),
            MergedContent::List(items) => items.iter().map(Self::to_value).collect(),
            MergedContent::Map(fields) => fields.iter().map(|(key, field)| (key.clone(), field.to_value())).collect(),
        }
    }

    /// Removes what stands at a path of fields separated by dots.
    pub fn remove_at(&mut self, path: &str) {
        match (path.split_once('.'), &mut self.content) {
            (Some((field, below)), MergedContent::Map(fields)) => {
                if let Some(merged) = fields.get_mut(field) {
                    merged.remove_at(below);
                }
            }
            _ => self.remove(path),
        }
    }

    pub(super) fn remove(&mut self, field: &str) {
        if let MergedContent::Map(fields) = &mut self.content {
            fields.remove(field);
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.content == MergedContent::Leaf(Value::Null)
    }

    /// An empty list or mapping.
    pub(super) fn is_empty(&self) -> bool {
        match &self.content {
            MergedContent::List(items) => items.is_empty(),
            MergedContent::Map(fields) => fields.is_empty(),
            MergedContent::Leaf(_) => false,
        }
    }

    /// The value that a Go field has when nobody has set it.
    pub fn is_zero(&self) -> bool {
        match &self.content {
            MergedContent::Leaf(Value::String(text)) => text.is_empty(),
            MergedContent::Leaf(Value::Number(number)) => number.as_f64() == Some(0.0),
            MergedContent::Leaf(value) => matches!(value, Value::Null | Value::Bool(false)),
            MergedContent::List(_) | MergedContent::Map(_) => self.is_empty(),
        }
    }
}
