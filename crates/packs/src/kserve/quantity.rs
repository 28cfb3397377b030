//! Amounts as Kubernetes writes them.

use gatewright_engine::quantity::{self, Quantity};
use serde_json::Value;

/// Returns an amount such as `64Gi` as a number of whole units.
pub(super) fn bytes(value: &Value) -> Option<i64> {
    Quantity::of(value).and_then(|amount| i64::try_from(amount.whole()).ok())
}

/// Returns a value in which every amount of resources is written as API servers write it: as text, and `2` where
/// somebody wrote `2000m`.
pub(super) fn canonical(mut pod: Value) -> Value {
    let lists = ["containers", "initContainers"]
        .map(|list| pod.get_mut(list).and_then(Value::as_array_mut).map(std::mem::take));
    let lists = lists.map(|list| list.map(|items| items.into_iter().map(container).collect::<Vec<_>>()));
    for (name, items) in ["containers", "initContainers"].into_iter().zip(lists) {
        if let Some(items) = items {
            pod[name] = items.into();
        }
    }
    pod
}

fn container(mut container: Value) -> Value {
    for part in ["limits", "requests"] {
        let amounts = container.pointer_mut(&format!("/resources/{part}")).and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(serde_json::Map::values_mut) {
            *amount = quantity::canonical(amount);
        }
    }
    container
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_written_as_servers_write_them() {
        let resources = json!({"limits": {"cpu": 6, "memory": "16Gi"}, "requests": {"cpu": "2000m", "x": "500m"}});
        let pod = canonical(json!({"containers": [{"name": "main", "resources": resources}]}));
        let expected = json!({"limits": {"cpu": "6", "memory": "16Gi"}, "requests": {"cpu": "2", "x": "500m"}});
        assert_eq!(pod["containers"][0]["resources"], expected);
        assert_eq!(bytes(&json!("1Gi")), Some(1 << 30));
        assert_eq!(bytes(&json!("much")), None);
    }
}
