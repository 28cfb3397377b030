//! Specs of the older version, v1alpha1, in the words of v1alpha2.
//!
//! Only pools are written otherwise: there in the words of the pool's own older version, and here in those of v1.

use gatewright_engine::spec::Document;
use gatewright_engine::yaml::Node;
use serde_json::{Map, Value, json};

use super::merge;

/// The older version of services and configs.
const OLDER: &str = "serving.kserve.io/v1alpha1";

/// Fields of a pool that only the older version has.
const OLDER_FIELDS: [&str; 2] = ["targetPortNumber", "extensionRef"];

/// Returns the spec of a service or a config, cleaned.
pub(super) fn spec(document: &Document) -> Value {
    let mut spec = merge::cleaned(&document.root.get("spec").map(Node::to_value).unwrap_or_default());
    let is_older = document.root.get("apiVersion").and_then(Node::as_str) == Some(OLDER);
    if let Some(pool) = spec.pointer_mut("/router/scheduler/pool/spec").filter(|_| is_older)
        && let Value::Object(older) = pool.take()
    {
        *pool = converted(older);
    }
    spec
}

/// Returns a field of a pool that this version does not have, so that nobody would read it.
pub(super) fn stray(pool: &Value) -> Option<&'static str> {
    OLDER_FIELDS.into_iter().find(|field| !pool[field].is_null())
}

fn converted(mut pool: Map<String, Value>) -> Value {
    let is_flat = |selector: &Value| !selector["matchLabels"].is_object();
    if let Some(labels) = pool.get_mut("selector").filter(|selector| selector.is_object() && is_flat(selector)) {
        *labels = json!({"matchLabels": labels.take()});
    }
    if let Some(port) = pool.remove("targetPortNumber") {
        pool.insert("targetPorts".to_owned(), json!([{ "number": port }]));
    }
    if let Some(Value::Object(mut picker)) = pool.remove("extensionRef") {
        if let Some(port) = picker.remove("portNumber") {
            picker.insert("port".to_owned(), json!({ "number": port }));
        }
        pool.insert("endpointPickerRef".to_owned(), picker.into());
    }
    Value::Object(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_pool_is_written_anew() {
        let older = json!({"selector": {"app": "x"}, "targetPortNumber": 8000,
                           "extensionRef": {"name": "picker", "portNumber": 9002, "failureMode": "FailOpen"}});
        let expected = json!({"selector": {"matchLabels": {"app": "x"}}, "targetPorts": [{"number": 8000}],
                              "endpointPickerRef": {"name": "picker", "port": {"number": 9002}, "failureMode": "FailOpen"}});
        assert_eq!(stray(&older), Some("targetPortNumber"));
        let Value::Object(fields) = older else { unreachable!("it is a mapping") };
        assert_eq!(converted(fields), expected);
        assert_eq!(stray(&expected), None);
    }
}
