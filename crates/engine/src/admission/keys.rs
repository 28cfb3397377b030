//! Lists that Kubernetes treats as maps or sets: no two items may have the same key.

use std::collections::BTreeMap;

use serde_json::Value;

use super::place::Path;
use crate::check::Mistake;
use crate::yaml::Node;

/// Returns the items of lists whose key an earlier item has.
pub(super) fn check(root: &Node, value: &Value, schema: &Value) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    walk(root, (value, schema), &Path::default(), &mut mistakes);
    mistakes
}

fn walk(root: &Node, (value, schema): (&Value, &Value), path: &Path, mistakes: &mut Vec<Mistake>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let below = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                walk(root, (field, below), &path.below(key), mistakes);
            }
        }
        Value::Array(items) => {
            mistakes.extend(repeated(root, items, schema, path));
            for (index, item) in items.iter().enumerate() {
                walk(root, (item, &schema["items"]), &path.below(&index.to_string()), mistakes);
            }
        }
        _ => {}
    }
}

fn repeated(root: &Node, items: &[Value], schema: &Value, path: &Path) -> Vec<Mistake> {
    let keys: Vec<&str> = match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        }
        Some("set") => Vec::new(),
        _ => return Vec::new(),
    };
    let mut seen = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let said: Vec<String> = if keys.is_empty() {
            vec![item.to_string()]
        } else {
            keys.iter().filter_map(|key| Some(format!("{key} {}", item.get(key)?))).collect()
        };
        let what = if keys.is_empty() { "value".to_owned() } else { said.join(", ") };
        let first = *seen.entry(said).or_insert(index);
        if first == index {
            continue;
        }
        let it = path.below(&index.to_string());
        let message = format!("{} has the same {what} as {}", it.text(), path.below(&first.to_string()).text());
        mistakes.push(Mistake { position: it.position(root), message, hint: None, fix: None });
    }
    mistakes
}
