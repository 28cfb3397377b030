//! The place of a part of a pod in the texts that it was made of, by its name and its value: parameters may call what it
//! stands in by other names.

use serde_json::Value;

use super::first;
use crate::yaml::{Content, Node};

/// The shortest name of a field that may be the end of another one: `pullPolicy` of `imagePullPolicy`.
const SHORTEST: usize = 4;

/// Returns the node of the part at the end of a path into the spec of a pod, or of the innermost thing around it that has one.
/// The item of a list is told by its name.
pub(super) fn find<'n, T>(spec: &Value, path: &[&str], nodes: &[(T, &'n Node)]) -> Option<(usize, &'n Node)> {
    (1..=path.len()).rev().find_map(|length| {
        let value = at(spec, path.get(..length)?).filter(|value| !value.is_null())?;
        let ends = || (0..length).filter(|from| is_field(spec, path, *from)).filter_map(|from| path.get(from..length));
        let one = |is_it: fn(&str, &str) -> bool| {
            ends().filter(|end| *end != ["name"]).find_map(|end| {
                let made = |node: &'n Node| reach(node, end, is_it).filter(|node| is_made_of(value, node));
                nodes.iter().enumerate().find_map(|(index, (_, node))| Some((index, first(node, &made)?)))
            })
        };
        one(|said, field| said == field).or_else(|| one(is_alike))
    })
}

/// Follows a path into a value.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, part| match value {
        Value::Array(items) => items.iter().find(|item| item["name"] == **part),
        value => value.get(part),
    })
}

/// Tells whether a part of a path is the name of a field, and not that of an item.
fn is_field(spec: &Value, path: &[&str], index: usize) -> bool {
    path.get(..index).and_then(|before| at(spec, before)).is_some_and(Value::is_object)
}

/// Tells whether two fields may be the same by other names: one is the end of the other, as in `extraVolumes`.
fn is_alike(said: &str, field: &str) -> bool {
    let (said, field) = (said.to_lowercase(), field.to_lowercase());
    said.len().min(field.len()) >= SHORTEST && (said.ends_with(&field) || field.ends_with(&said))
}

/// Follows a path whose first field may have another name.
fn reach<'n>(node: &'n Node, path: &[&str], is_it: fn(&str, &str) -> bool) -> Option<&'n Node> {
    let (field, rest) = path.split_first()?;
    let Content::Map(fields) = &node.content else { return None };
    let mut begun = fields.iter().filter(|(name, _)| is_it(name, field)).map(|(_, field)| &field.node);
    begun.find_map(|node| super::follow(node, rest))
}

/// Tells whether all that a text says is in a value, and that it says something.
fn is_made_of(value: &Value, node: &Node) -> bool {
    match (&node.content, value) {
        (Content::Map(fields), Value::Object(of)) => {
            let is_in = |(name, node): (&str, &Node)| of.get(name).is_some_and(|value| is_made_of(value, node));
            (!fields.is_empty() || of.is_empty()) && node.fields().map(|(name, field)| (name, &field.node)).all(is_in)
        }
        (Content::List(items), Value::Array(of)) => {
            (!items.is_empty() || of.is_empty())
                && items.iter().all(|item| of.iter().any(|value| is_made_of(value, item)))
        }
        (Content::Map(_) | Content::List(_), _) => false,
        _ => node.to_value() == *value || text(&node.to_value()) == text(value),
    }
}

/// A number may have become a text, as a quantity does.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
