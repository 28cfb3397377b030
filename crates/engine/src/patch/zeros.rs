//! The fields that a typed client leaves out of an object.
//!
//! Fields of plain types and lists have `omitempty` where Kubernetes' types say that they may be absent; a pointer to a
//! zero is written. So `replicas: 0` stays, and `value: ""` goes.

use serde_json::Value;

use super::types::{Field, Type};

/// Returns a value of a type without zeros, nulls and unknown fields.
pub(super) fn omit(value: Value, ty: Type) -> Value {
    match (value, ty) {
        (Value::Object(fields), Type::Struct(_)) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let known = fields.filter_map(|(name, value)| Some((ty.field(&name).ok()?, value)));
            let kept = known.map(|(field, value)| (field, of_field(value, field)));
            kept.filter(|(field, value)| !is_zero(value, field))
                .map(|(field, value)| (field.name.to_owned(), value))
                .collect()
        }
        (value, _) => value,
    }
}

fn of_field(value: Value, field: &Field) -> Value {
    match value {
        Value::Array(items) => {
            let ty = field.items().unwrap_or(Type::Other);
            items.into_iter().map(|item| omit(item, ty)).collect()
        }
        value => omit(value, field.mapping()),
    }
}

fn is_zero(value: &Value, field: &Field) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Bool(value) => !value && field.is_plain(),
        Value::String(text) => text.is_empty() && field.is_plain(),
        Value::Number(number) => number.as_f64() == Some(0.0) && field.is_plain(),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::without_zeros;
    use crate::object::Gvk;

    #[test]
    fn zeros_that_mean_nothing_are_left_out() {
        let object = json!({
            "spec": {
                "replicas": 0,
                "paused": false,
                "unknown": 1,
                "template": {"spec": {
                    "containers": [{
                        "name": "main", "args": [], "resources": {"limits": {"cpu": 0}},
                        "env": [{"name": "A", "value": ""}],
                        "securityContext": {"runAsNonRoot": false},
                        "livenessProbe": {"initialDelaySeconds": 0, "periodSeconds": 3},
                    }],
                    "nodeSelector": null,
                }},
            },
        });
        let expected = json!({
            "spec": {
                "replicas": 0,
                "template": {"spec": {
                    "containers": [{
                        "name": "main", "resources": {"limits": {"cpu": 0}},
                        "env": [{"name": "A"}],
                        "securityContext": {"runAsNonRoot": false},
                        "livenessProbe": {"periodSeconds": 3},
                    }],
                }},
            },
        });
        assert_eq!(without_zeros(object, &Gvk::new("apps/v1", "Deployment")), expected);
    }
}
