//! As much of JSON patch (RFC 6902) as a cluster in memory needs: fields of mappings are added, replaced and removed.

use serde_json::Value;

/// Applies operations in order; `None` if one of them cannot be carried out.
pub(super) fn patched(mut body: Value, operations: &[Value]) -> Option<Value> {
    for operation in operations {
        let (parent, field) = operation["path"].as_str()?.rsplit_once('/')?;
        let field = field.replace("~1", "/").replace("~0", "~");
        let parent = body.pointer_mut(parent)?.as_object_mut()?;
        match operation["op"].as_str()? {
            "remove" => drop(parent.remove(&field)?),
            "replace" if !parent.contains_key(&field) => return None,
            "add" | "replace" => drop(parent.insert(field, operation.get("value")?.clone())),
            _ => return None,
        }
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_are_carried_out_in_order() {
        let body = json!({"metadata": {"labels": {"a/b": "1"}, "ownerReferences": []}});
        let operations = [
            json!({"op": "remove", "path": "/metadata/ownerReferences"}),
            json!({"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"}),
            json!({"op": "add", "path": "/spec", "value": {}}),
        ];
        assert_eq!(patched(body.clone(), &operations), Some(json!({"metadata": {"labels": {"a/b": "2"}}, "spec": {}})));
        for operation in [
            json!({"op": "remove", "path": "/spec"}),
            json!({"op": "replace", "path": "/spec", "value": 1}),
            json!({"op": "add", "path": "/spec/a", "value": 1}),
            json!({"op": "test", "path": "/metadata", "value": 1}),
        ] {
            assert_eq!(patched(body.clone(), &[operation]), None);
        }
    }
}
