//! Labels, annotations and environments of several layers.

use serde_json::Value;

use gatewright_engine::pack::gateway::Map as Texts;

/// Reads labels or annotations.
pub(super) fn texts(value: &Value) -> Texts {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Puts named things over others of the same names.
pub(super) fn by_name(lower: Vec<Value>, higher: Vec<Value>) -> Vec<Value> {
    let is_above = |item: &Value| higher.iter().any(|above| above["name"] == item["name"]);
    let mut all: Vec<Value> = lower.into_iter().filter(|item| !is_above(item)).collect();
    all.extend(higher);
    all
}
