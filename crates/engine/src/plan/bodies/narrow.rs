//! Two states of an object without what is neither ours nor changes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::diff::{key_of, plain};
use crate::mask::Masker;

/// Both states of a value.
type Both = (Option<Value>, Option<Value>);

/// Returns what is shown of two states: what is wanted, and what differs, masked.
pub(super) fn narrowed(before: Option<&Value>, after: Option<&Value>, wanted: Option<&Value>, masker: &Masker) -> Both {
    let (old, new) = (before.map(|body| masker.body(body)), after.map(|body| masker.body(body)));
    both(Side::of(before, old.as_ref()), Side::of(after, new.as_ref()), wanted)
}

/// A value as it is, and as it is shown.
#[derive(Clone, Copy)]
struct Side<'a> {
    raw: &'a Value,
    shown: &'a Value,
}

impl<'a> Side<'a> {
    fn of(raw: Option<&'a Value>, shown: Option<&'a Value>) -> Option<Self> {
        Some(Self { raw: raw?, shown: shown? })
    }

    fn fields(self) -> Option<BTreeMap<&'a String, Self>> {
        let (raw, shown) = (self.raw.as_object()?, self.shown.as_object()?);
        let of = |(key, raw): (&'a String, &'a Value)| Some((key, Self { raw, shown: shown.get(key)? }));
        raw.iter().map(of).collect()
    }

    fn elements(self) -> Option<Vec<Self>> {
        let (raw, shown) = (self.raw.as_array()?, self.shown.as_array()?);
        (raw.len() == shown.len()).then(|| raw.iter().zip(shown).map(|(raw, shown)| Self { raw, shown }).collect())
    }
}

fn both(before: Option<Side<'_>>, after: Option<Side<'_>>, wanted: Option<&Value>) -> Both {
    match (before, after) {
        (None, None) => (None, None),
        (Some(gone), None) => (Some(gone.shown.clone()), None),
        (None, Some(new)) => (None, Some(added(new, wanted))),
        (Some(old), Some(new)) if old.raw == new.raw && wanted.is_none() => (None, None),
        (Some(old), Some(new)) => paired(old, new, wanted),
    }
}

/// Returns what is shown of a value that is there in both states.
fn paired(old: Side<'_>, new: Side<'_>, wanted: Option<&Value>) -> Both {
    if let (Some(left), Some(right)) = (old.fields(), new.fields()) {
        let (mut before, mut after) = (Map::new(), Map::new());
        let added = right.keys().filter(|key| !left.contains_key(*key));
        for key in left.keys().chain(added) {
            let wanted = wanted.and_then(|wanted| wanted.get(key));
            let (old, new) = both(left.get(key).copied(), right.get(key).copied(), wanted);
            before.extend(old.map(|value| ((*key).clone(), value)));
            after.extend(new.map(|value| ((*key).clone(), value)));
        }
        // Of what is not wanted nothing may be left.
        let is_left = |shown: &Map<String, Value>, raw: &Value| {
            wanted.is_some() || !shown.is_empty() || raw.as_object().is_none_or(Map::is_empty)
        };
        let (is_before, is_after) = (is_left(&before, old.raw), is_left(&after, new.raw));
        return (is_before.then(|| before.into()), is_after.then(|| after.into()));
    }
    if let (Some(left), Some(right)) = (old.elements(), new.elements())
        && let Some(key) = key_of(&[old.raw, new.raw].map(|list| list.as_array().map_or(&[][..], Vec::as_slice)))
    {
        let (before, after) = elements(key, (&left, &right), wanted);
        // Their order alone may differ.
        let is_order = before == after && old.raw != new.raw;
        return if is_order { (Some(old.shown.clone()), Some(new.shown.clone())) } else { (before, after) };
    }
    // Two values that differ must not look the same.
    let is_masked = old.raw != new.raw && old.shown == new.shown;
    let after = if is_masked { format!("{} (changed)", plain(new.shown)).into() } else { new.shown.clone() };
    (Some(old.shown.clone()), Some(after))
}

/// Elements that a key identifies are narrowed each with its counterpart, and stand where they stood.
fn elements(key: &str, (left, right): (&[Side<'_>], &[Side<'_>]), wanted: Option<&Value>) -> Both {
    let name = |side: &Side<'_>| side.raw[key].to_string();
    let is_it = |side: &Side<'_>, value: &Value| value[key] == side.raw[key];
    let of = |side: &Side<'_>| wanted?.as_array()?.iter().find(|element| is_it(side, element));
    let others: BTreeMap<String, Side<'_>> = right.iter().map(|side| (name(side), *side)).collect();
    let named = |value: Option<Value>, side: &Side<'_>| {
        let mut value = value?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert(key.to_owned(), side.shown[key].clone());
        }
        Some(value)
    };
    let mut pairs: BTreeMap<String, Option<Value>> = BTreeMap::new();
    let mut before = Vec::new();
    for side in left {
        let (old, new) = both(Some(*side), others.get(&name(side)).copied(), of(side));
        before.extend(named(old, side));
        pairs.insert(name(side), new);
    }
    let new = |side: &Side<'_>| pairs.remove(&name(side)).unwrap_or_else(|| both(None, Some(*side), of(side)).1);
    let after: Vec<Option<Value>> = right.iter().map(new).collect();
    let after: Vec<Value> = after.into_iter().zip(right).filter_map(|(value, side)| named(value, side)).collect();
    (Some(before.into()), Some(after.into()))
}

/// Returns what is shown of a value that is new: without what a server has filled in.
fn added(new: Side<'_>, wanted: Option<&Value>) -> Value {
    let Some(wanted) = wanted else { return new.shown.clone() };
    if let (Some(fields), Some(wanted)) = (new.fields(), wanted.as_object()) {
        let own = fields.into_iter().filter_map(|(key, side)| Some((key.clone(), added(side, Some(wanted.get(key)?)))));
        return own.collect::<Map<_, _>>().into();
    }
    match (new.elements(), wanted.as_array()) {
        (Some(elements), Some(list)) if elements.len() == list.len() => {
            elements.into_iter().zip(list).map(|(side, wanted)| added(side, Some(wanted))).collect()
        }
        _ => new.shown.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check([before, after, wanted]: [Value; 3], expected: (Value, Value)) {
        let (old, new) = narrowed(Some(&before), Some(&after), Some(&wanted), &Masker::default());
        assert_eq!((old.unwrap_or_default(), new.unwrap_or_default()), expected);
    }

    #[test]
    fn what_others_have_set_and_keep_is_left_out() {
        check(
            [
                json!({"spec": {"replicas": 1, "clusterIP": "10.0.0.1"}, "other": 1}),
                json!({"spec": {"replicas": 2, "clusterIP": "10.0.0.1"}, "other": 1}),
                json!({"spec": {"replicas": 2}}),
            ],
            (json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 2}})),
        );
    }

    #[test]
    fn what_changes_is_shown_whoever_has_set_it() {
        check(
            [json!({"spec": {"a": 1, "b": 2}}), json!({"spec": {"a": 3, "c": 4}}), json!({"spec": {}})],
            (json!({"spec": {"a": 1, "b": 2}}), json!({"spec": {"a": 3, "c": 4}})),
        );
    }

    #[test]
    fn elements_with_a_key_are_narrowed_one_by_one() {
        let ours = |port: u16, probe: &str| json!({"name": "http", "port": port, "probe": probe});
        check(
            [
                json!([{"name": "theirs", "port": 1}, ours(80, "server"), {"name": "gone", "port": 3}]),
                json!([ours(81, "server"), {"name": "theirs", "port": 1}, {"name": "new", "port": 2, "default": true}]),
                json!([{"name": "http", "port": 81}, {"name": "new", "port": 2}]),
            ],
            (
                json!([{"name": "http", "port": 80}, {"name": "gone", "port": 3}]),
                json!([{"name": "http", "port": 81}, {"name": "new", "port": 2}]),
            ),
        );
        let swapped = [json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}, {"name": "a"}])];
        check([swapped[0].clone(), swapped[1].clone(), json!([])], (swapped[0].clone(), swapped[1].clone()));
        // An element of somebody else that changes keeps its name.
        check(
            [json!([{"name": "x", "a": 1, "b": 1}]), json!([{"name": "x", "a": 2, "b": 1}]), json!([])],
            (json!([{"name": "x", "a": 1}]), json!([{"name": "x", "a": 2}])),
        );
    }

    #[test]
    fn what_is_new_is_shown_without_defaults() {
        let (created, wanted) =
            (json!({"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}]}), json!({"a": {"b": 1}, "d": [{"e": 1}]}));
        assert_eq!(narrowed(None, Some(&created), Some(&wanted), &Masker::default()), (None, Some(wanted)));
    }

    #[test]
    fn a_secret_that_changes_shows_and_cannot_be_read() {
        let of = |text: &str| json!({"kind": "Secret", "data": {"a": text}, "spec": {"password": text}});
        for masker in [Masker::default(), Masker::new([3; 32])] {
            let (before, after) = (of("b25l"), of("dHdv"));
            let (old, new) = narrowed(Some(&before), Some(&after), Some(&after), &masker);
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            assert!(old["data"]["a"] != new["data"]["a"] && old["spec"]["password"] != new["spec"]["password"]);
            assert!(!format!("{old}{new}").contains("b25l") && !format!("{old}{new}").contains("dHdv"));
        }
    }

    /// Values of all forms, with names that mean something to a masker.
    fn value() -> impl Strategy<Value = Value> {
        let text = "(a|b|--token|password=x|PASSWORD)";
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), text.prop_map(Value::from)];
        let key = "(name|key|port|value|password|kind|data|a)";
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn two_states_look_the_same_only_if_they_are(before in value(), after in value(), wanted in value()) {
            let masker = Masker::new([7; 32]);
            let (old, new) = narrowed(Some(&before), Some(&after), Some(&wanted), &masker);
            prop_assert_eq!(old == new, before == after, "{:?} {:?}", old, new);
        }
    }
}
