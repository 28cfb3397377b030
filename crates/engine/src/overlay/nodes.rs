//! The nodes that a patch has made, with positions: what is as it was keeps its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::yaml::{Content, Field, Node, Position};

/// Makes a node of a value; what was not there before gets the position that `place` finds for its path.
pub(super) fn node(before: &Node, value: &Value, place: impl FnMut(&[String]) -> Position) -> Node {
    Maker { place, path: Vec::new() }.node(Some(before), value)
}

struct Maker<F> {
    place: F,
    path: Vec<String>,
}

impl<F: FnMut(&[String]) -> Position> Maker<F> {
    fn node(&mut self, before: Option<&Node>, value: &Value) -> Node {
        if let Some(before) = before.filter(|before| before.to_value() == *value) {
            return before.clone();
        }
        let is_alike = |before: &&Node| match before.content {
            Content::Map(_) => value.is_object(),
            Content::List(_) => value.is_array(),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => false,
        };
        let before = before.filter(is_alike);
        let position = before.map_or_else(|| (self.place)(&self.path), |before| before.position);
        let content = match value {
            Value::Array(items) => {
                let known = before.map(Node::items).unwrap_or_default();
                Content::List(items.iter().enumerate().map(|(index, item)| self.item(known, index, item)).collect())
            }
            Value::Object(fields) => {
                let known: BTreeMap<&str, &Field> = before.into_iter().flat_map(Node::fields).collect();
                let field = |(key, value): (&String, &Value)| (key.clone(), self.field(known.get(&**key), key, value));
                Content::Map(fields.iter().map(field).collect())
            }
            leaf => Node::of_value(leaf).content,
        };
        Node { position, content }
    }

    /// An item may have moved.
    fn item(&mut self, known: &[Node], index: usize, item: &Value) -> Node {
        let before = known.iter().find(|before| before.to_value() == *item).or_else(|| known.get(index));
        self.path.push(index.to_string());
        let node = self.node(before, item);
        self.path.pop();
        node
    }

    fn field(&mut self, before: Option<&&Field>, key: &str, value: &Value) -> Field {
        self.path.push(key.to_owned());
        let key = before.map_or_else(|| (self.place)(&self.path), |field| field.key);
        let node = self.node(before.map(|field| &field.node), value);
        self.path.pop();
        Field { key, node }
    }
}
