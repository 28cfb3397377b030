//! Two objects without what they have in common, which is most of them: it need be neither copied nor masked.

use serde_json::{Map, Value};

use super::{KEYS, SERVER_METADATA, key_of};

/// Returns what two objects do not have in common, without what servers write.
///
/// The rest differs, and is masked, as in the whole objects.
pub(super) fn apart(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return (before.clone(), after.clone()) };
    let is_secret = [old, new].iter().any(|fields| fields.get("kind").is_some_and(|kind| kind == "Secret"));
    let divide = |key: &str, old: Option<&Value>, new: Option<&Value>| match (key, old, new) {
        ("status", ..) => (None, None),
        // An annotation may be masked as a whole, and so may all that a Secret holds.
        ("metadata", Some(Value::Object(old)), Some(Value::Object(new))) => {
            (Some(unlike(old, new)), Some(unlike(new, old)))
        }
        (_, old, new) if is_secret => (old.cloned(), new.cloned()),
        (key, old, new) => divided(key, old, new),
    };
    each(old, new, divide)
}

/// Returns both values of a field without what they have in common, nothing if that is all of them.
fn divided(key: &str, old: Option<&Value>, new: Option<&Value>) -> (Option<Value>, Option<Value>) {
    match (old, new) {
        (Some(_), Some(_)) if is_naming(key) => (old.cloned(), new.cloned()),
        (Some(old), Some(new)) if old == new => (None, None),
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let (old, new) = each(old, new, divided);
            (Some(old), Some(new))
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            let (old, new) = elements(old, new);
            (Some(old), Some(new))
        }
        (old, new) => (old.cloned(), new.cloned()),
    }
}

/// Tells whether a field says of an element of a list which one it is, or of a value beside it whether it is secret.
fn is_naming(key: &str) -> bool {
    key == "kind" || KEYS.contains(&key)
}

/// Divides the elements of two lists, if they are the same ones in the same order; else which belong together is found out
/// later. Of texts one may say that the next is secret, so that all of them are left.
fn elements(old: &[Value], new: &[Value]) -> (Value, Value) {
    let key = key_of(&[old, new]).filter(|_| old.len() == new.len());
    if !key.is_some_and(|key| old.iter().zip(new).all(|(old, new)| old[key] == new[key])) {
        return (old.into(), new.into());
    }
    let pairs = old.iter().zip(new).map(|(old, new)| match (old, new) {
        (Value::Object(old), Value::Object(new)) => each(old, new, divided),
        (old, new) => (old.clone(), new.clone()),
    });
    let (left, right): (Vec<Value>, Vec<Value>) = pairs.unzip();
    (left.into(), right.into())
}

/// Divides each field of two mappings.
fn each(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    divide: impl Fn(&str, Option<&Value>, Option<&Value>) -> (Option<Value>, Option<Value>),
) -> (Value, Value) {
    let (mut left, mut right) = (Map::new(), Map::new());
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        let (old, new) = divide(key, old.get(key), new.get(key));
        left.extend(old.map(|value| (key.clone(), value)));
        right.extend(new.map(|value| (key.clone(), value)));
    }
    (left.into(), right.into())
}

/// Returns those metadata that are not the same in others, whole.
fn unlike(own: &Map<String, Value>, others: &Map<String, Value>) -> Value {
    let is_it =
        |(key, value): &(&String, &Value)| !SERVER_METADATA.contains(&key.as_str()) && others.get(*key) != Some(*value);
    own.iter().filter(is_it).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::diff::{Comparison, Found, Path, comparable};
    use crate::mask::{LAST_APPLIED, Masker};

    /// Values of all forms, with names that mean something to a masker.
    fn value() -> impl Strategy<Value = Value> {
        let text = "(a|b|--token|password=x|token: y|PASSWORD)";
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), text.prop_map(Value::from)];
        let key = "(name|key|value|password|kind|status|data|metadata|annotations|env|a)";
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let named = |(name, value): (&str, Value)| json!({"name": name, "value": value, "password": value});
            let of_lists = proptest::sample::select(vec!["a", "b", "c", "A_PASSWORD"]);
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((of_lists, inner.clone()), 0..4)
                    .prop_map(move |list| list.into_iter().map(named).collect()),
                proptest::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// An object of some kind.
    fn body() -> impl Strategy<Value = Value> {
        let kind = prop_oneof![Just("Secret"), Just("Deployment")];
        let fields = [value(), value(), value(), value()];
        (kind, fields, "(1|2)", value()).prop_map(|(kind, [labels, applied, data, spec], uid, status)| {
            let annotations = json!({LAST_APPLIED: applied, "a": applied});
            let metadata = json!({"name": "x", "uid": uid, "labels": labels, "annotations": annotations});
            json!({"kind": kind, "metadata": metadata, "data": data, "spec": spec, "status": status})
        })
    }

    fn found(before: &Value, after: &Value) -> Vec<String> {
        let masker = Masker::new([7; 32]);
        let found = Comparison::of(before, after, (&masker.body(before), &masker.body(after)), &masker);
        let line =
            |Found { path, before, after, content }: Found| format!("{} {before:?} {after:?} {content:?}", Path(&path));
        found.into_iter().map(line).collect()
    }

    proptest! {
        #[test]
        fn what_is_apart_differs_as_the_whole_does((before, after) in (body(), body())) {
            let (old, new) = apart(&before, &after);
            prop_assert_eq!(old == new, comparable(&before) == comparable(&after));
            prop_assert_eq!(found(&old, &new), found(&comparable(&before), &comparable(&after)));
        }

        #[test]
        fn so_does_what_differs_a_little(before in body(), other in value(), place in 0..6, list in value()) {
            let list = json!([{"name": "a", "value": list}, {"name": "b", "args": ["--token", list], "key": list}]);
            let mut before = before;
            before["spec"] = json!({"list": list, "other": before["spec"]});
            let mut after = before.clone();
            match place {
                4 => after["spec"]["list"][0]["value"] = other,
                5 => after["spec"]["list"][1]["args"][1] = other,
                0 => after["spec"] = other,
                1 => after["metadata"]["annotations"]["a"] = other,
                2 => after["data"] = json!({"a": other}),
                _ => after["status"] = other,
            }
            let (old, new) = apart(&before, &after);
            prop_assert_eq!(old == new, comparable(&before) == comparable(&after));
            prop_assert_eq!(found(&old, &new), found(&comparable(&before), &comparable(&after)));
        }
    }

    #[test]
    fn what_is_the_same_is_left_out() {
        let of = |image: &str| json!({"kind": "X", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}, "image": image}});
        let left = |image: &str| json!({"kind": "X", "metadata": {}, "spec": {"image": image}});
        assert_eq!(apart(&of("1"), &of("2")), (left("1"), left("2")));
    }
}
