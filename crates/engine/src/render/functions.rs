//! The filters that templates may call, besides Tera's own.

use std::fmt::Display;

use tera::{Kwargs, State, Tera, TeraResult, Value};

use super::holes;
use crate::text::digest;
use crate::yaml;

/// The filter without which no value can be printed.
pub(super) const ENCODING: &str = "json";

/// Our filters, each with the arguments that it has.
pub(super) const OWN: [(&str, &[&str]); 6] = [
    (ENCODING, &[]),
    ("json_text", &[]),
    ("substitute", &["from", "to"]),
    ("yaml", &[]),
    ("hash", &[]),
    ("parse_yaml", &[]),
];

/// Adds our filters, and takes away the one that would let a value in as it is.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter(ENCODING, |value: &Value, _: Kwargs, _: &State<'_>| json(value));
    tera.register_filter("json_text", |value: &Value, _: Kwargs, _: &State<'_>| json_text(value));
    tera.register_filter("substitute", substitute);
    tera.register_filter("yaml", |value: &Value, _: Kwargs, _: &State<'_>| yaml(value));
    tera.register_filter("hash", |value: &Value, _: Kwargs, _: &State<'_>| hash(value));
    tera.register_filter("parse_yaml", |text: &str, _: Kwargs, _: &State<'_>| parse_yaml(text));
    tera.register_filter("safe", |_: &Value, _: Kwargs, _: &State<'_>| -> TeraResult<Value> {
        Err(tera::Error::message("`safe` is not available: use an encoding filter, as in {{ name | json }}"))
    });
}

/// Replaces a text by another one in all texts of a value, however deep; keys of mappings stay as they are.
#[expect(clippy::needless_pass_by_value, reason = "the signature of filters")]
fn substitute(value: &Value, arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let (from, to) = (arguments.must_get::<String>("from")?, arguments.must_get::<String>("to")?);
    Ok(substituted(value, &from, &to))
}

fn substituted(value: &Value, from: &str, to: &str) -> Value {
    if let Some(text) = value.as_str() {
        return Value::from(text.replace(from, to));
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(|item| substituted(item, from, to)).collect::<Vec<_>>().into();
    }
    match value.as_map() {
        Some(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), substituted(value, from, to)));
            Value::from(fields.collect::<tera::Map>())
        }
        None => value.clone(),
    }
}

/// Encodes a value as JSON on one line, marked as a hole in the text of the template.
fn json(value: &Value) -> TeraResult<Value> {
    if value.is_undefined() {
        return Err(tera::Error::message(
            "the value is not there; a field that may be missing is asked for with {% if %}",
        ));
    }
    let cannot = |error: &dyn Display| tera::Error::message(format!("the value cannot be written as JSON: {error}"));
    let mut text = String::from(holes::BEGIN).into_bytes();
    write(value, &mut text).map_err(|error| cannot(&error))?;
    text.push(holes::END as u8);
    String::from_utf8(text).map(|text| Value::safe_string(&text)).map_err(|error| cannot(&error))
}

/// Writes a value as JSON that is a text like any other, such as a part of an argument.
fn json_text(value: &Value) -> TeraResult<String> {
    plain(value).map(|value| value.to_string())
}

/// Writes a value as a YAML text; to put that into a document, it is encoded like any other text.
fn yaml(value: &Value) -> TeraResult<String> {
    plain(value).map(|value| yaml::to_string(&value))
}

/// Returns the SHA-256 of the JSON of a value, in 64 digits: it changes whenever the value does.
fn hash(value: &Value) -> TeraResult<String> {
    plain(value).map(|value| digest(value.to_string().as_bytes()))
}

/// Reads a text that holds one YAML document.
fn parse_yaml(text: &str) -> TeraResult<Value> {
    let mut documents =
        yaml::parse_values(text).map_err(|error| tera::Error::message(format!("the text is no YAML: {error}")))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Value::try_from_serializable(&document),
        (None, _) => Ok(Value::none()),
        (Some(_), false) => Err(tera::Error::message("the text holds more than one document")),
    }
}

/// Returns a value of a template as JSON, its keys sorted.
fn plain(value: &Value) -> TeraResult<serde_json::Value> {
    let mut text = Vec::new();
    let cannot =
        |error: serde_json::Error| tera::Error::message(format!("the value cannot be written as JSON: {error}"));
    write(value, &mut text).map_err(cannot)?;
    serde_json::from_slice(&text).map_err(cannot)
}

/// Writes JSON with sorted keys: Tera's own maps differ in their order from run to run.
fn write(value: &Value, text: &mut Vec<u8>) -> serde_json::Result<()> {
    if let Some(items) = value.as_array() {
        text.push(b'[');
        for (index, item) in items.iter().enumerate() {
            separate(index, text);
            write(item, text)?;
        }
        text.push(b']');
    } else if let Some(map) = value.as_map() {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        text.push(b'{');
        for (index, (key, value)) in entries.into_iter().enumerate() {
            separate(index, text);
            match key.as_str() {
                Some(key) => serde_json::to_writer(&mut *text, key)?,
                None => serde_json::to_writer(&mut *text, &key.to_string())?,
            }
            text.push(b':');
            write(value, text)?;
        }
        text.push(b'}');
    } else if let Some(string) = value.as_str().filter(|_| value.is_safe()) {
        // What a template has put together itself may hold encoded values.
        serde_json::to_writer(text, &holes::closed(string))?;
    } else {
        serde_json::to_writer(text, value)?;
    }
    Ok(())
}

fn separate(index: usize, text: &mut Vec<u8>) {
    if index > 0 {
        text.push(b',');
    }
}
