//! Amounts as Kubernetes writes them.

use gatewright_engine::quantity::{self, Quantity};
use serde_json::Value;

/// Returns an amount such as `64Gi` as a number of whole units.
pub(super) fn bytes(value: &Value) -> Option<i64> {
    Quantity::of(value).and_then(|amount| i64::try_from(amount.whole()).ok())
}

/// Writes every amount of resources of a container as API servers write it: as text, and `2` where somebody wrote `2000m`.
pub(super) fn make_canonical(container: &mut Value) {
    for part in ["limits", "requests"] {
        let amounts = container.pointer_mut(&format!("/resources/{part}")).and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(serde_json::Map::values_mut) {
            *amount = quantity::canonical(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_written_as_servers_write_them() {
        let resources = json!({"limits": {"cpu": 6, "memory": "16Gi"}, "requests": {"cpu": "2000m", "x": "500m"}});
        let mut container = json!({"name": "main", "resources": resources});
        make_canonical(&mut container);
        let expected = json!({"limits": {"cpu": "6", "memory": "16Gi"}, "requests": {"cpu": "2", "x": "500m"}});
        assert_eq!(container["resources"], expected);
        assert_eq!(bytes(&json!("1Gi")), Some(1 << 30));
        assert_eq!(bytes(&json!("much")), None);
    }
}
