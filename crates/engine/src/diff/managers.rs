//! The writers of a field: the `managedFields` of a live object, read for one path.
//!
//! The format is `FieldsV1` (KEP-555): `f:<field>` for fields, `k:<json>` for list elements by key, `v:<json>` for
//! elements of sets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Segment, plain};

/// Somebody who wrote a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// The name of the field manager, such as `kubectl-edit`.
    pub name: String,
    /// When it last wrote anything, RFC 3339.
    pub time: Option<String>,
}

/// Returns who else than `ours` has written at a path or below it, the latest first.
///
/// Of an element that is not there nobody knows by which keys another would name it.
pub(crate) fn of_path(body: &Value, path: &[Segment], is_there: bool, ours: &str) -> Vec<Manager> {
    let entries = body.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let mut managers: Vec<Manager> = entries
        .filter(|entry| entry["manager"] != ours && entry["fieldsV1"].is_object())
        .filter(|entry| owns(&entry["fieldsV1"], path, is_there))
        .map(|entry| Manager {
            name: entry["manager"].as_str().unwrap_or("unknown").to_owned(),
            time: entry["time"].as_str().map(str::to_owned),
        })
        .collect();
    managers.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    managers.dedup_by(|a, b| a.name == b.name);
    managers
}

/// Whether a set of fields holds a path, or a list as a whole that the path leads into.
fn owns(fields: &Value, path: &[Segment], is_there: bool) -> bool {
    let Some((segment, rest)) = path.split_first() else { return true };
    let Some(fields) = fields.as_object() else { return false };
    match segment {
        Segment::Field(field) => fields.get(&format!("f:{field}")).is_some_and(|below| {
            // An atomic value is owned as a whole: nothing below it is listed.
            below.as_object().is_some_and(serde_json::Map::is_empty) || owns(below, rest, is_there)
        }),
        Segment::Key(key, value) => fields.iter().any(|(name, below)| {
            let element = name.strip_prefix("k:").and_then(|json| serde_json::from_str::<Value>(json).ok());
            let matches = element.is_some_and(|element| match element.get(key) {
                Some(element) => plain(element) == *value,
                // The list has another key than the one that we compared by: any element may be the one.
                None => is_there,
            });
            matches && owns(below, rest, is_there)
        }),
        Segment::Index(_) => {
            fields.is_empty() || fields.keys().any(|name| name.starts_with("v:") || name.starts_with("i:"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str) -> Segment {
        Segment::Field(name.to_owned())
    }

    #[test]
    fn the_manager_of_a_field_is_named() {
        let entry =
            |manager: &str, time: &str, fields: Value| json!({"manager": manager, "time": time, "fieldsV1": fields});
        let body = json!({"metadata": {"managedFields": [
            entry("gatewright", "2026-01-01T00:00:00Z", json!({"f:spec": {"f:replicas": {}}})),
            entry("kubectl-edit", "2026-01-02T00:00:00Z", json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}})),
            entry("kubectl-scale", "2026-01-03T00:00:00Z", json!({"f:spec": {"f:replicas": {}}})),
        ]}});
        let names =
            |path: &[Segment]| of_path(&body, path, true, "gatewright").into_iter().map(|m| m.name).collect::<Vec<_>>();
        assert_eq!(names(&[field("spec"), field("replicas")]), ["kubectl-scale"]);
        assert_eq!(
            names(&[field("spec"), field("ports"), Segment::Key("port", "80".into()), field("nodePort")]),
            ["kubectl-edit"]
        );
        assert_eq!(
            names(&[field("spec"), field("ports"), Segment::Key("port", "81".into()), field("nodePort")]),
            [""; 0]
        );
        assert_eq!(names(&[field("spec"), field("type")]), [""; 0]);
    }
}
