//! A pod as a program writes it that knows its type: what says nothing is not there.
//!
//! The operator reads what users write into such types and writes it again, so that an empty list of theirs is gone.

use serde_json::Value;

/// Numbers of probes that are not written when they are zero.
const NUMBERS: [&str; 5] =
    ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"];

/// Switches that are not written when they are off.
const SWITCHES: [&str; 7] = ["hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"];

/// Mappings that are not written when they are empty.
const MAPPINGS: [&str; 7] = ["annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"];

/// Takes out of a pod, or of a part of one, what says nothing.
pub(super) fn as_typed(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(field, value)| (field, as_typed(value)));
            Value::Object(fields.filter(|(field, value)| !says_nothing(field, value)).collect())
        }
        Value::Array(items) => items.into_iter().map(as_typed).collect(),
        other => other,
    }
}

fn says_nothing(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && MAPPINGS.contains(&field),
        Value::Bool(switch) => !switch && SWITCHES.contains(&field),
        Value::Number(number) => number.as_u64() == Some(0) && NUMBERS.contains(&field),
        Value::String(text) => text.is_empty() && field == "value",
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
        });
        let typed = json!({
            "volumes": [{"name": "a", "emptyDir": {}}],
            "containers": [{"env": [{"name": "A"}], "securityContext": {"privileged": false}}],
        });
        assert_eq!(as_typed(written), typed);
    }
}
