//! A document as it goes to a cluster: what a person wrote, without what only servers write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::marks::{MANAGED_ANNOTATION, OWN_PREFIX};
use crate::object::{Object, is_secret};
use crate::problem::Problem;
use crate::spec::Document;
use crate::spec::config_map::PARAMETERS;

/// Metadata that servers write. A copy of an object that was read off a cluster has it, and it would be wrong on
/// another one: an owner by its old uid, for example, has the object collected.
const SERVER_METADATA: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The one key below our prefix that people may write: it asks for an object to be kept.
const KEEP: &str = "gatewright.dev/prune";

/// Returns a document as an object.
pub(super) fn written(document: &Document) -> Result<Object, Box<Problem>> {
    let problem = |path: &[&str], message: String| Box::new(document.problem(path, message));
    let mut body = document.root.to_value();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    // It is for us, and says nothing to anybody else.
    if let Some(annotations) = body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(PARAMETERS);
        if annotations.get(MANAGED_ANNOTATION).is_some_and(is_truth_value) {
            annotations.remove(MANAGED_ANNOTATION);
        }
    }
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        match body.pointer(&format!("/metadata/{field}")) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                if let Some(key) = map.keys().find(|key| key.starts_with(OWN_PREFIX) && *key != KEEP) {
                    return Err(problem(&path, format!("{key:?} is below {OWN_PREFIX}, which is ours")));
                }
            }
            Some(_) => return Err(problem(&path, format!("metadata.{field} is no mapping"))),
        }
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, value| !SERVER_METADATA.contains(&key.as_str()) && !value.is_null());
    }
    let object = Object::new(body).map_err(|error| problem(&[], error.to_string()))?;
    Ok(if is_secret(&object.id().group, &object.id().kind) { without_plain_text(object) } else { object })
}

fn is_truth_value(value: &Value) -> bool {
    matches!(value.as_str(), Some("true" | "false"))
}

/// Writes `stringData` of a Secret as `data`, as a server does. Otherwise a key that leaves the document would stay in the
/// cluster: a server does not remember who has written what in plain text.
fn without_plain_text(object: Object) -> Object {
    let mut body = object.body().clone();
    let Some(Value::Object(texts)) = body.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return object;
    };
    if texts.values().any(|text| !text.is_string()) || body.get("data").is_some_and(|data| !is_mapping(data)) {
        // The server says what is wrong with it.
        return object;
    }
    for (key, text) in texts {
        body["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
    Object::new(body).unwrap_or(object)
}

fn is_mapping(value: &Value) -> bool {
    value.is_object() || value.is_null()
}
