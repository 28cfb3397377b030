//! Values as lists of their parts, and two values side by side.
//!
//! Elements of lists go by the field that identifies them, as in [`crate::diff`], so that one that vanishes does not
//! shift the others.

use serde_json::Value;

use crate::diff::{Path, Segment, key_of, plain};

/// A part of a value, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The way in the words of people.
    pub(super) path: Vec<Segment>,
    /// The way as fields and indexes.
    pub(super) steps: Vec<String>,
    /// The part.
    pub(super) value: Value,
}

impl Spot {
    /// Returns the fields and indexes of the way.
    pub(super) fn steps(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(String::as_str)
    }

    /// Returns the path in the words of people.
    pub(super) fn text(&self) -> String {
        Path(&self.path).to_string()
    }

    /// Returns the beginning of the path in the words of people.
    pub(super) fn text_up_to(&self, steps: usize) -> String {
        Path(self.path.get(..steps).unwrap_or(&self.path)).to_string()
    }

    /// Returns the steps to the outermost list on the way, if there is one.
    pub(super) fn list(&self) -> Option<&[String]> {
        let end = self.path.iter().position(|segment| !matches!(segment, Segment::Field(_)))?;
        self.steps.get(..end)
    }

    /// Tells whether it has no parts itself.
    fn is_leaf(&self) -> bool {
        match &self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => true,
        }
    }
}

/// Returns the parts of a value that have no parts themselves, in order.
pub(super) fn leaves(value: &Value) -> Vec<Spot> {
    let mut spots = parts(value);
    spots.retain(Spot::is_leaf);
    spots
}

/// Returns all parts of a value but the whole, each before its own parts.
pub(super) fn parts(value: &Value) -> Vec<Spot> {
    let mut spots = Vec::new();
    collect(value, &mut Vec::new(), &mut Vec::new(), &mut spots);
    spots
}

fn collect(value: &Value, path: &mut Vec<Segment>, steps: &mut Vec<String>, spots: &mut Vec<Spot>) {
    let mut part = |segment, step, value: &Value| {
        path.push(segment);
        steps.push(step);
        spots.push(Spot { path: path.clone(), steps: steps.clone(), value: value.clone() });
        collect(value, path, steps, spots);
        path.pop();
        steps.pop();
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| part(Segment::Field(name.clone()), name.clone(), value));
        }
        Value::Array(items) => {
            let key = key_of(&[items]);
            for (index, item) in items.iter().enumerate() {
                let segment = match key {
                    Some(key) => Segment::Key(key, plain(&item[key])),
                    None => Segment::Index(index),
                };
                part(segment, index.to_string(), item);
            }
        }
        _ => {}
    }
}

/// Returns what has become of each leaf of `base`, in the order of [`leaves`]; `None` where nothing is left.
pub(super) fn fates<'a>(base: &Value, other: Option<&'a Value>) -> Vec<Option<&'a Value>> {
    let mut fates = Vec::new();
    follow(base, other, &mut fates);
    fates
}

fn follow<'a>(base: &Value, other: Option<&'a Value>, fates: &mut Vec<Option<&'a Value>>) {
    match base {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| follow(value, other.and_then(|other| other.get(name)), fates));
        }
        Value::Array(items) if !items.is_empty() => {
            let others = other.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for (item, counterpart) in items.iter().zip(counterparts(items, others)) {
                follow(item, counterpart, fates);
            }
        }
        _ => fates.push(other),
    }
}

/// Pairs the elements of two lists: by key, else from both ends towards what differs.
fn counterparts<'a>(items: &[Value], others: &'a [Value]) -> Vec<Option<&'a Value>> {
    if let Some(key) = key_of(&[items]) {
        return items.iter().map(|item| others.iter().find(|other| other.get(key) == item.get(key))).collect();
    }
    let (_, behind) = common(items, others);
    let index = |index: usize| match index {
        _ if index >= items.len() - behind => others.get(index + others.len() - items.len()),
        _ if index < others.len() - behind => others.get(index),
        _ => None,
    };
    (0..items.len()).map(index).collect()
}

/// Returns how many elements are the same at the beginning, and how many of the rest at the end.
fn common<T: PartialEq>(one: &[T], other: &[T]) -> (usize, usize) {
    let before = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let behind = one[before..].iter().rev().zip(other[before..].iter().rev());
    (before, behind.take_while(|(one, other)| one == other).count())
}

/// Returns the numbers of the lines of a text that another does not have, from 1; none for a text of one line.
pub(super) fn changed_lines(text: &str, other: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let others: Vec<&str> = other.lines().collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    if lines.len() == others.len() {
        return (1..).zip(lines.iter().zip(&others)).filter(|(_, (one, other))| one != other).map(|(n, _)| n).collect();
    }
    let (before, behind) = common(&lines, &others);
    (before + 1..=lines.len() - behind).collect()
}

/// Returns a value with one part of it replaced, or removed.
pub(super) fn replaced(root: &Value, steps: &[String], part: Option<Value>) -> Value {
    let mut root = root.clone();
    let Some((last, way)) = steps.split_last() else { return part.unwrap_or_default() };
    let around = way.iter().try_fold(&mut root, |value, step| match value {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        other => other.get_mut(step),
    });
    match (around, part) {
        (Some(Value::Object(fields)), Some(part)) => drop(fields.insert(last.clone(), part)),
        (Some(Value::Object(fields)), None) => drop(fields.remove(last)),
        (Some(Value::Array(items)), part) => {
            if let Some(index) = last.parse::<usize>().ok().filter(|index| *index < items.len()) {
                drop(items.splice(index..=index, part));
            }
        }
        _ => {}
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(base: Value, other: Value, expected: &[(&str, Value)]) {
        let spots = leaves(&base);
        let fates = fates(&base, Some(&other));
        assert_eq!(spots.len(), fates.len());
        let differing = spots.iter().zip(fates).filter(|(spot, fate)| *fate != Some(&spot.value));
        let found: Vec<_> = differing.map(|(spot, fate)| (spot.text(), fate.cloned().unwrap_or_default())).collect();
        let expected: Vec<_> = expected.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn elements_with_a_key_keep_their_fate() {
        check(
            json!({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}),
            json!({"ports": [{"name": "b", "port": 3}]}),
            &[("ports[a].name", Value::Null), ("ports[a].port", Value::Null), ("ports[b].port", json!(3))],
        );
    }

    #[test]
    fn elements_without_a_key_are_paired_from_both_ends() {
        check(json!(["a", "b", "c"]), json!(["a", "c"]), &[("[1]", Value::Null)]);
        check(json!(["a", "b", "c"]), json!(["a", "x", "c"]), &[("[1]", json!("x"))]);
        check(json!(["a", "a"]), json!(["a", "b", "a"]), &[]);
        check(json!(["a"]), json!([]), &[("[0]", Value::Null)]);
        check(json!(["a", "b"]), json!(["b"]), &[("[0]", Value::Null)]);
        check(
            json!(["a", "b", "c", "d"]),
            json!(["x", "d"]),
            &[("[0]", json!("x")), ("[1]", Value::Null), ("[2]", Value::Null)],
        );
    }

    #[test]
    fn what_becomes_something_else_is_different() {
        check(json!({"a": {}}), json!({"a": {"b": 1}}), &[("a", json!({"b": 1}))]);
        check(json!({"a": {"b": 1}}), json!({"a": "b"}), &[("a.b", Value::Null)]);
        check(json!({"m": {"x.y/z": 1}}), json!({"m": {}}), &[(r#"m["x.y/z"]"#, Value::Null)]);
    }

    #[test]
    fn a_part_can_be_replaced_or_removed() {
        let value = json!({"a": [{"b": 1}, 2]});
        let steps = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(replaced(&value, &steps("a.0.b"), Some(json!(7))), json!({"a": [{"b": 7}, 2]}));
        assert_eq!(replaced(&value, &steps("a.0"), None), json!({"a": [2]}));
        assert_eq!(replaced(&value, &steps("a.9"), None), value);
        assert_eq!(replaced(&value, &steps("a"), None), json!({}));
    }

    #[test]
    fn lines_that_differ_are_numbered() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\nc\n"), [2]);
        assert_eq!(changed_lines("a\nb\nc\n", "a\nc\n"), [2]);
        assert_eq!(changed_lines("a", "b"), [0; 0]);
    }
}
