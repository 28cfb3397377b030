//! Differences between the objects that we render and those of the real system.
//!
//! Both sides are made plain first: `status`, nulls and the empty values that a typed encoder writes mean nothing, our
//! own labels and annotations are ours, and text in a ConfigMap that is YAML or JSON is compared as what it says.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::marks::OWN_PREFIX;
use gatewright_engine::yaml;
use serde_json::{Map, Value};

use crate::cases::{Suite, is_meant};

/// Fields that a typed encoder writes although nobody has said anything, or of which nothing is left without our own.
const NOISE: [&str; 5] = ["annotations", "metadata", "resources", "rolloutStrategy", "strategy"];

/// Returns a line for everything that differs: object, path, and both values.
pub(crate) fn differences(suite: &Suite, stem: &str, rendered: Vec<Value>, expected: Vec<Value>) -> Vec<String> {
    let (mut rendered, expected) = (by_identity(suite, rendered), by_identity(suite, expected));
    rendered.retain(|id, _| !suite.leaves_out(stem, id));
    for (id, object) in &mut rendered {
        if expected.get(id).is_some_and(|expected| expected["metadata"].get("namespace").is_none())
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("namespace");
        }
    }
    let ids: BTreeSet<&String> = rendered.keys().chain(expected.keys()).collect();
    let mut lines = Vec::new();
    for id in ids {
        match (rendered.get(id), expected.get(id)) {
            (Some(rendered), Some(expected)) => compare(suite, &format!("{id}: "), rendered, expected, &mut lines),
            (Some(_), None) => lines.push(format!("{id}: rendered, and not expected")),
            (None, _) => lines.push(format!("{id}: expected, and not rendered")),
        }
    }
    lines
}

fn by_identity(suite: &Suite, objects: Vec<Value>) -> BTreeMap<String, Value> {
    let identify = |mut object: Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = format!("{} {} {}", text("/apiVersion"), text("/kind"), text("/metadata/name"));
        if text("/kind") == "ConfigMap" {
            object["data"].as_object_mut().into_iter().flatten().for_each(|(_, text)| *text = parsed(text));
        }
        object.as_object_mut().and_then(|fields| fields.remove("status"));
        (id, plain(suite, object))
    };
    objects.into_iter().map(identify).collect()
}

/// The value that a text stands for, if it is YAML or JSON with a structure.
fn parsed(text: &Value) -> Value {
    let documents = text.as_str().map(yaml::parse_values);
    match documents {
        Some(Ok(documents)) if documents.len() == 1 && (documents[0].is_object() || documents[0].is_array()) => {
            documents[0].clone()
        }
        _ => text.clone(),
    }
}

fn plain(suite: &Suite, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = plain(suite, value);
                let is_opaque = is_meant(&suite.opaque, &key) && !value.is_null();
                (key, if is_opaque { "(opaque)".into() } else { value })
            });
            let fields: Map<String, Value> = fields.filter(|(key, value)| !is_noise(key, value)).collect();
            Value::Object(fields)
        }
        Value::Array(items) => items.into_iter().map(|item| plain(suite, item)).collect(),
        other => other,
    }
}

fn is_noise(key: &str, value: &Value) -> bool {
    let is_empty = value.as_object().is_some_and(Map::is_empty);
    value.is_null()
        || key.starts_with(OWN_PREFIX)
        || (NOISE.contains(&key) && is_empty)
        || (["namespace", "type"].contains(&key) && value == "")
}

fn compare(suite: &Suite, path: &str, rendered: &Value, expected: &Value, lines: &mut Vec<String>) {
    match (rendered, expected) {
        (Value::Object(rendered), Value::Object(expected)) => {
            let keys: BTreeSet<&String> = rendered.keys().chain(expected.keys()).collect();
            for key in keys {
                let below = if path.ends_with(' ') { format!("{path}{key}") } else { format!("{path}.{key}") };
                let sort = |value: &Value| if suite.unordered.contains(key) { sorted(value) } else { value.clone() };
                let (rendered, expected) = (rendered.get(key).map(sort), expected.get(key).map(sort));
                compare_parts(suite, &below, rendered.as_ref(), expected.as_ref(), lines);
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            for index in 0..items.len().max(others.len()) {
                compare_parts(suite, &format!("{path}[{index}]"), items.get(index), others.get(index), lines);
            }
        }
        (rendered, expected) if is_equal(rendered, expected) => {}
        (rendered, expected) => {
            lines.push(format!("{path}: {} is rendered, {} expected", show(rendered), show(expected)));
        }
    }
}

fn compare_parts(
    suite: &Suite,
    path: &str,
    rendered: Option<&Value>,
    expected: Option<&Value>,
    lines: &mut Vec<String>,
) {
    match (rendered, expected) {
        (Some(rendered), Some(expected)) => compare(suite, path, rendered, expected, lines),
        (Some(rendered), None) => lines.push(format!("{path}: {} is rendered, nothing expected", show(rendered))),
        (None, Some(expected)) => lines.push(format!("{path}: nothing is rendered, {} expected", show(expected))),
        (None, None) => {}
    }
}

fn sorted(value: &Value) -> Value {
    let Value::Array(items) = value else { return value.clone() };
    let mut items = items.clone();
    items.sort_by_key(ToString::to_string);
    Value::Array(items)
}

/// The beginning of a value; a line that goes on for pages is read by nobody.
fn show(value: &Value) -> String {
    const MOST: usize = 160;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// `1` and `1.0` are one number, and a word like `n` that somebody wrote without quotes is still that word.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => match (one, other) {
            (Value::String(text), Value::Bool(_)) => yaml::parse_values(text).is_ok_and(|read| read == [other.clone()]),
            _ => one == other,
        },
    }
}
