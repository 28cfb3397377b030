//! Objects as a program writes them that knows their types: what says nothing is not there, and amounts are as API servers
//! write them.
//!
//! Controllers read what users write into such types and write it again, so that an empty list of theirs is gone.

use gatewright_engine::object::Object;
use gatewright_engine::pack::{ObjectPostProcessor, Subject};
use gatewright_engine::problem::Problem;
use gatewright_engine::quantity::canonical;
use serde_json::{Map, Value};

/// Groups whose objects controllers hold as types; others are patched as plain data.
const TYPED: [&str; 4] = ["", "apps", "autoscaling", "policy"];

/// Numbers that are not written when they are zero.
const NUMBERS: [&str; 7] = [
    "failureThreshold",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "periodSeconds",
    "successThreshold",
    "timeoutSeconds",
];

/// Switches that are not written when they are off.
const SWITCHES: [&str; 9] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];

/// Lists of things whose value is not written when it is empty.
const VALUES: [&str; 2] = ["env", "tolerations"];

/// Mappings that are not written when they are empty.
const MAPPINGS: [&str; 7] = ["annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"];

/// Writes objects once more, as a controller does that holds them as types.
pub(crate) struct Retyped;

impl ObjectPostProcessor for Retyped {
    fn process(&self, subject: &Subject<'_>, objects: Vec<Object>) -> Result<Vec<Object>, Vec<Problem>> {
        let again = |object: Object| {
            if !TYPED.contains(&object.id().group.as_str()) || object.body().get("spec").is_none() {
                return Ok(object);
            }
            let mut body = object.into_body();
            body["spec"] = as_typed(body["spec"].take());
            make_canonical(&mut body["spec"]);
            Object::new(body).map_err(|error| vec![subject.problem(&error.to_string())])
        };
        objects.into_iter().map(again).collect()
    }
}

/// Writes each amount of a spec as API servers do.
fn make_canonical(value: &mut Value) {
    let all = |amounts: &mut Value| {
        amounts.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(|amount| *amount = canonical(amount));
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_canonical),
        Value::Object(fields) => {
            for (field, value) in fields {
                match field.as_str() {
                    "limits" | "requests" | "overhead" => all(value),
                    "sizeLimit" | "divisor" | "averageValue" => *value = canonical(value),
                    _ => make_canonical(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes out of a pod, or of a part of one, what says nothing.
pub(crate) fn as_typed(value: Value) -> Value {
    below("", value)
}

/// The same below a field: the keys of labels and annotations are no fields, whatever they are called.
fn below(parent: &str, value: Value) -> Value {
    match value {
        Value::Object(fields) if MAPPINGS.contains(&parent) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(field, value)| (below(&field, value), field));
            let said = fields.filter(|(value, field)| !says_nothing((parent, field), value));
            Value::Object(said.map(|(value, field)| (field, value)).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| below(parent, item)).collect(),
        other => other,
    }
}

fn says_nothing((parent, field): (&str, &str), value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && MAPPINGS.contains(&field),
        Value::Bool(switch) => !switch && SWITCHES.contains(&field),
        Value::Number(number) => number.as_u64() == Some(0) && NUMBERS.contains(&field),
        Value::String(text) => text.is_empty() && field == "value" && VALUES.contains(&parent),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_says_nothing_is_gone_and_what_is_a_choice_stays() {
        let written = json!({
            "tolerations": [], "hostNetwork": false, "nodeSelector": {}, "volumes": [{"name": "a", "emptyDir": {}}],
            "containers": [{"env": [{"name": "A", "value": ""}], "securityContext": {"privileged": false}, "tty": null}],
            "annotations": {"value": "", "paused": "", "gone": null}, "httpHeaders": [{"name": "A", "value": ""}],
        });
        let typed = json!({
            "volumes": [{"name": "a", "emptyDir": {}}],
            "containers": [{"env": [{"name": "A"}], "securityContext": {"privileged": false}}],
            "annotations": {"value": "", "paused": ""}, "httpHeaders": [{"name": "A", "value": ""}],
        });
        assert_eq!(as_typed(written), typed);
    }

    #[test]
    fn amounts_are_written_as_servers_write_them() {
        let mut spec = json!({
            "overhead": {"cpu": "1000m"}, "volumes": [{"emptyDir": {"sizeLimit": "0.5Gi"}}],
            "containers": [{"resources": {"limits": {"cpu": 1, "memory": "1024Mi"}, "claims": [{"name": "1000m"}]}}],
        });
        make_canonical(&mut spec);
        let expected = json!({
            "overhead": {"cpu": "1"}, "volumes": [{"emptyDir": {"sizeLimit": "512Mi"}}],
            "containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "1000m"}]}}],
        });
        assert_eq!(spec, expected);
    }
}
