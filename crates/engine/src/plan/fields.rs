//! Sets of fields, as API servers write down who owns what (`FieldsV1`, KEP-555).
//!
//! A set is a tree: `f:<field>` leads to a field, `k:<json>` to the element of a list with these keys, `v:<json>` to the
//! element of a set. What leads nowhere further is owned, and what holds `.` is owned beside what is below it.

pub(super) mod leaf;

use serde_json::{Map, Value};

/// Returns the fields that are in one of two sets.
pub(super) fn union(a: &Value, b: &Value) -> Value {
    let (mut all, other) = (children(a), children(b));
    for (key, below) in other {
        let both = match all.get(&key) {
            Some(mine) => joined(mine, &below),
            None => below,
        };
        all.insert(key, both);
    }
    all.into()
}

/// Returns the fields that are in the first set and not in the second.
pub(super) fn difference(a: &Value, b: &Value) -> Value {
    let (mine, theirs) = (children(a), children(b));
    let left = mine.into_iter().filter_map(|(key, below)| {
        let other = theirs.get(&key);
        let is_left = is_member(&below) && !other.is_some_and(is_member);
        node(is_left, difference(&below, other.unwrap_or(&Value::Null))).map(|below| (key, below))
    });
    left.collect::<Map<_, _>>().into()
}

/// Returns the fields of the first set of which the second has nothing: neither them nor anything below them.
pub(super) fn without(a: &Value, b: &Value) -> Value {
    let left = children(a).into_iter().filter_map(|(key, below)| match b.get(&key) {
        None => Some((key, below)),
        Some(other) => Some(without(&below, other))
            .filter(|below| below.as_object().is_some_and(|below| !below.is_empty()))
            .map(|below| (key, below)),
    });
    left.collect::<Map<_, _>>().into()
}

/// Takes fields out of a body, and what is left empty by that.
pub(super) fn remove(body: &mut Value, fields: &Value) {
    for (key, below) in children(fields) {
        let is_whole = is_member(&below) && children(&below).is_empty();
        if let (Some(field), Some(map)) = (key.strip_prefix("f:"), body.as_object_mut()) {
            remove_field(map, field, &below, is_whole);
        } else if let Some(list) = body.as_array_mut() {
            remove_element(list, &key, &below);
        }
    }
}

/// Returns what a body has in these fields, and nothing else of it; `None` if it has nothing there.
///
/// Elements of lists stay in the order of the body.
pub(super) fn extract(body: &Value, fields: &Value) -> Option<Value> {
    let below = children(fields);
    if below.is_empty() {
        return Some(match (body, fields.get(".")) {
            // The place itself is in the set, and nothing that it holds.
            (Value::Object(_), Some(_)) => Map::new().into(),
            (Value::Array(_), Some(_)) => Vec::<Value>::new().into(),
            _ => body.clone(),
        });
    }
    match body {
        Value::Object(map) => {
            let field = |(key, below): (&String, &Value)| {
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), extract(map.get(name)?, below)?))
            };
            let found: Map<_, _> = below.iter().filter_map(field).collect();
            (is_member(fields) || !found.is_empty()).then(|| found.into())
        }
        Value::Array(list) => {
            let element = |(index, value): (usize, &Value)| {
                let (_, below) = below.iter().find(|(key, _)| position(list, key) == Some(index))?;
                extract(value, below)
            };
            let found: Vec<Value> = list.iter().enumerate().filter_map(element).collect();
            (is_member(fields) || !found.is_empty()).then(|| found.into())
        }
        _ => None,
    }
}

fn remove_field(map: &mut Map<String, Value>, field: &str, below: &Value, is_whole: bool) {
    let Some(value) = map.get_mut(field) else { return };
    if !is_whole {
        remove(value, below);
    }
    let is_empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    if is_whole || is_empty {
        map.remove(field);
    }
}

fn remove_element(list: &mut Vec<Value>, key: &str, below: &Value) {
    let Some(position) = position(list, key) else { return };
    if !is_member(below) {
        remove(&mut list[position], below);
    }
    if is_member(below) || list[position].as_object().is_some_and(Map::is_empty) {
        list.remove(position);
    }
}

/// Finds the element of a list that a set names. What people write may leave a key to its default, such as the protocol
/// of a port, so a key that is not there contradicts nothing as long as another one fits.
pub(in crate::plan) fn position(list: &[Value], key: &str) -> Option<usize> {
    let read = |prefix: &str| key.strip_prefix(prefix).and_then(|json| serde_json::from_str::<Value>(json).ok());
    if let Some(keys) = read("k:") {
        let keys = keys.as_object()?;
        let fits = |element: &Value| {
            let known = keys.iter().filter_map(|(key, value)| Some((element.get(key)?, value)));
            let (same, other): (Vec<_>, Vec<_>) = known.partition(|(mine, value)| mine == value);
            !same.is_empty() && other.is_empty()
        };
        return list.iter().position(fits);
    }
    let value = read("v:")?;
    list.iter().position(|element| *element == value)
}

fn joined(a: &Value, b: &Value) -> Value {
    node(is_member(a) || is_member(b), union(a, b)).unwrap_or_else(|| Map::new().into())
}

/// Returns the node that says what is below a place, and whether the place itself is in the set; `None` if neither is
/// anything.
fn node(is_member: bool, below: Value) -> Option<Value> {
    match (is_member, children(&below).is_empty()) {
        (false, true) => None,
        (false, false) | (true, true) => Some(below),
        (true, false) => {
            let mut below = children(&below);
            below.insert(".".to_owned(), Map::new().into());
            Some(below.into())
        }
    }
}

fn is_member(node: &Value) -> bool {
    node.as_object().is_some_and(|node| node.is_empty() || node.contains_key("."))
}

fn children(node: &Value) -> Map<String, Value> {
    let mut children = node.as_object().cloned().unwrap_or_default();
    children.remove(".");
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sets_are_joined_and_taken_from_each_other() {
        let a = json!({"f:spec": {"f:replicas": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}}});
        let b = json!({"f:spec": {"f:type": {}, "f:ports": {"k:{\"port\":80}": {"f:port": {}}}}});
        assert_eq!(difference(&a, &a), json!({}));
        assert_eq!(
            difference(&a, &b),
            json!({"f:spec": {"f:replicas": {}, "f:ports": {"k:{\"port\":80}": {}}}}),
            "the element itself is left, and nothing below it"
        );
        let both = union(&a, &b);
        assert_eq!(
            both,
            json!({"f:spec": {
                "f:replicas": {}, "f:type": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}},
            }})
        );
        assert_eq!(union(&both, &a), both);
        assert_eq!(difference(&both, &union(&b, &a)), json!({}));
        assert_eq!(
            without(&a, &b),
            json!({"f:spec": {"f:replicas": {}}}),
            "the element itself stays for what is below"
        );
        assert_eq!(without(&a, &json!({})), a);
    }

    #[test]
    fn fields_are_read_out_of_a_body() {
        let body = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]},
            "spec": {
                "replicas": 3, "type": "LoadBalancer", "selector": {"app": "edge"}, "empty": {"a": 1},
                "containers": [{"name": "b", "image": "i"}, {"name": "a", "image": "i", "tty": true}],
            },
        });
        let fields = json!({
            "f:metadata": {"f:labels": {"f:b": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}}},
            "f:spec": {
                "f:type": {}, "f:selector": {}, "f:absent": {}, "f:empty": {".": {}},
                "f:containers": {
                    "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:tty": {}},
                    "k:{\"name\":\"b\"}": {"f:image": {}}, "k:{\"name\":\"c\"}": {"f:image": {}},
                },
            },
        });
        let found = json!({
            "metadata": {"labels": {"b": "2"}, "finalizers": ["x"]},
            "spec": {
                "type": "LoadBalancer", "selector": {"app": "edge"}, "empty": {},
                "containers": [{"image": "i"}, {"name": "a", "tty": true}],
            },
        });
        assert_eq!(extract(&body, &fields), Some(found));
        assert_eq!(extract(&body, &json!({"f:status": {"f:a": {}}})), None);
    }

    #[test]
    fn fields_are_taken_out_of_a_body() {
        let mut body = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}, "finalizers": ["x", "y"]},
            "spec": {
                "replicas": 3,
                "containers": [{"name": "a", "image": "i", "tty": true}, {"name": "b"}],
            },
        });
        let fields = json!({
            "f:metadata": {
                "f:labels": {"f:a": {}}, "f:annotations": {".": {}, "f:c": {}}, "f:finalizers": {"v:\"x\"": {}},
            },
            "f:spec": {
                "f:replicas": {}, "f:absent": {},
                "f:containers": {"k:{\"name\":\"a\"}": {"f:tty": {}}, "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}},
            },
        });
        remove(&mut body, &fields);
        assert_eq!(
            body,
            json!({
                "metadata": {"labels": {"b": "2"}, "finalizers": ["y"]},
                "spec": {"containers": [{"name": "a", "image": "i"}]},
            })
        );
    }
}
