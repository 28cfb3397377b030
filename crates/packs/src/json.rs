//! Small things about JSON.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns a text, unless it is empty.
pub(crate) fn said(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Returns a mapping without the fields that are null.
pub(crate) fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

/// Returns the items of a list; none of what is no list.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Reads labels or annotations.
pub(crate) fn texts(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect()
}

/// Puts labels or annotations over each other, the highest last.
pub(crate) fn layered<const N: usize>(layers: [&BTreeMap<String, String>; N]) -> BTreeMap<String, String> {
    layers.into_iter().flatten().map(|(key, text)| (key.clone(), text.clone())).collect()
}

/// Changes every text in a value.
pub(crate) fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
