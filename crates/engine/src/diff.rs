//! What differs between two states of an object, for people and for the plan.
//!
//! Compared are a live object and the *result* of a dry run, never a file and a live object: what the API server adds
//! or normalizes is on both sides. What servers write by themselves is left out. Values of Secrets never leave this
//! module.

pub mod managers;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::Place;
use crate::text::digest;
use managers::Manager;

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of a mapping.
    Field(String),
    /// The element of a list that this field identifies, with its value.
    Key(&'static str, String),
    /// The element of a list that nothing identifies.
    Index(usize),
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Where, as `spec.template.spec.containers[kgateway-proxy].image`.
    pub path: String,
    /// What is there now; `None` if nothing.
    pub before: Option<Value>,
    /// What will be there; `None` if nothing.
    pub after: Option<Value>,
    /// Who else has written there, the latest first.
    pub managers: Vec<Manager>,
    /// Where the source asks for it, as far as that was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Why it differs, where nobody is going to change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// It was worked out without a dry run of the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Why something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The source asks for something else since it was seen as it should be.
    Pending,
    /// Somebody has changed the cluster since it was seen as it should be.
    Drift,
    /// It was never seen as it should be.
    NeverMatched,
}

impl Class {
    /// Returns it in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Drift => "drift",
            Self::NeverMatched => "never matched",
        }
    }
}

/// Fields that identify the elements of a list, in the order in which they are tried. The API types that we render
/// use these as merge keys.
pub(crate) const KEYS: [&str; 6] = ["name", "containerPort", "port", "mountPath", "topologyKey", "key"];

/// Metadata that only the server writes.
const SERVER_METADATA: [&str; 7] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp"];

/// Where `kubectl apply` keeps the whole of what it has applied, secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns what differs, in the order of the fields. `ours` is our own field manager.
pub fn differences(before: &Value, after: &Value, ours: &str) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&comparable(before), &comparable(after), &mut Vec::new(), &mut found);
    found
        .into_iter()
        .map(|(path, before_value, after_value)| Difference {
            managers: managers::of_path(before, &path, ours),
            path: Path(&path).to_string(),
            before: before_value,
            after: after_value,
            place: None,
            class: None,
            estimated: false,
        })
        .collect()
}

/// Returns an object without what servers write, and with the values of a Secret replaced.
pub fn comparable(body: &Value) -> Value {
    let Value::Object(fields) = body else { return body.clone() };
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
    let mut kept = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("status", _) => continue,
            ("metadata", Value::Object(metadata)) => {
                let keep = |key: &String| !SERVER_METADATA.contains(&key.as_str());
                let mut metadata: Map<_, _> =
                    metadata.iter().filter(|(key, _)| keep(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
                let annotations = metadata.get_mut("annotations").filter(|_| kind == "Secret");
                if let Some(copy) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
                    *copy = masked(copy);
                }
                metadata.into()
            }
            (key, Value::Object(data)) if is_secret_field(kind, key) => {
                data.iter().map(|(key, value)| (key.clone(), masked(value))).collect()
            }
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

/// Tells whether what stands below a field of a kind is secret.
pub(crate) fn is_secret_field(kind: &str, field: &str) -> bool {
    kind == "Secret" && matches!(field, "data" | "stringData")
}

/// Different secrets stay different, and neither can be read. The digest is short, so that it cannot serve to guess.
pub(crate) fn masked(value: &Value) -> Value {
    Value::from(format!("*** ({})", &digest(value.to_string().as_bytes())[..6]))
}

type Found = (Vec<Segment>, Option<Value>, Option<Value>);

fn compare(before: &Value, after: &Value, path: &mut Vec<Segment>, found: &mut Vec<Found>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(before), Value::Object(after)) => {
            let fields: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for field in fields {
                path.push(Segment::Field(field.clone()));
                pair(before.get(field), after.get(field), path, found);
                path.pop();
            }
        }
        (Value::Array(before), Value::Array(after)) => compare_lists(before, after, path, found),
        _ => found.push((path.clone(), Some(before.clone()), Some(after.clone()))),
    }
}

fn pair(before: Option<&Value>, after: Option<&Value>, path: &mut Vec<Segment>, found: &mut Vec<Found>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(before, after, path, found),
        (before, after) => found.push((path.clone(), before.cloned(), after.cloned())),
    }
}

/// Elements that a key identifies are compared with each other, wherever they stand. A changed order alone is one
/// difference of the list.
fn compare_lists(before: &[Value], after: &[Value], path: &mut Vec<Segment>, found: &mut Vec<Found>) {
    let Some(key) = KEYS.into_iter().find(|key| identifies(key, before) && identifies(key, after)) else {
        for index in 0..before.len().max(after.len()) {
            path.push(Segment::Index(index));
            pair(before.get(index), after.get(index), path, found);
            path.pop();
        }
        return;
    };
    let seen = found.len();
    let find = |list: &'_ [Value], value: &Value| list.iter().find(|element| element[key] == *value).cloned();
    let added = after.iter().filter(|element| find(before, &element[key]).is_none());
    for element in before.iter().chain(added) {
        path.push(Segment::Key(key, plain(&element[key])));
        pair(find(before, &element[key]).as_ref(), find(after, &element[key]).as_ref(), path, found);
        path.pop();
    }
    if found.len() == seen {
        let order = |list: &[Value]| Value::from(list.iter().map(|element| element[key].clone()).collect::<Vec<_>>());
        found.push((path.clone(), Some(order(before)), Some(order(after))));
    }
}

/// Tells whether a field has another value in every element of a list.
pub(crate) fn identifies(key: &str, list: &[Value]) -> bool {
    let values: BTreeSet<String> = list.iter().filter_map(|element| element.get(key)).map(Value::to_string).collect();
    values.len() == list.len()
}

/// Returns the text of a value, without the quotes of a string.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A path in the words that people use.
pub(crate) struct Path<'a>(pub(crate) &'a [Segment]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(field) if field.contains(['.', '/', '[']) => write!(f, "[{field:?}]")?,
                Segment::Field(field) if index == 0 => f.write_str(field)?,
                Segment::Field(field) => write!(f, ".{field}")?,
                Segment::Key(_, value) => write!(f, "[{value}]")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let lines: Vec<String> = differences(&before, &after, "gatewright")
            .into_iter()
            .map(|d| {
                let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
                format!("{}: {} -> {}", d.path, text(d.before), text(d.after))
            })
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_the_server_writes_is_no_difference() {
        check(
            json!({"kind": "X", "metadata": {"name": "a", "uid": "1", "resourceVersion": "5"}, "status": {"a": 1}}),
            json!({"kind": "X", "metadata": {"name": "a"}}),
            &[],
        );
    }

    #[test]
    fn list_elements_are_compared_by_their_key() {
        check(
            json!({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}),
            json!({"ports": [{"name": "b", "port": 3}, {"name": "c", "port": 4}]}),
            &[
                r#"ports[a]: {"name":"a","port":1} -> -"#,
                "ports[b].port: 2 -> 3",
                r#"ports[c]: - -> {"name":"c","port":4}"#,
            ],
        );
        check(
            json!({"c": [{"name": "a"}, {"name": "b"}]}),
            json!({"c": [{"name": "b"}, {"name": "a"}]}),
            &[r#"c: ["a","b"] -> ["b","a"]"#],
        );
        check(json!({"args": ["a", "b"]}), json!({"args": ["a"]}), &[r#"args[1]: "b" -> -"#]);
    }

    #[test]
    fn keys_with_dots_are_quoted() {
        check(json!({"m": {"a.b/c": "1"}}), json!({"m": {}}), &[r#"m["a.b/c"]: "1" -> -"#]);
    }

    #[test]
    fn no_secret_value_is_shown() {
        let secret = |value: &str| json!({"kind": "Secret", "data": {"token": value}});
        let found = differences(&secret("b25l"), &secret("dHdv"), "gatewright");
        let text = format!("{found:?}");
        assert_eq!(found.len(), 1);
        assert!(!text.contains("b25l") && !text.contains("dHdv"), "{text}");
        let copy = json!({"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: "{\"data\":\"b25l\"}"}}});
        let text = format!("{:?}", differences(&copy, &json!({"kind": "Secret", "metadata": {}}), "gatewright"));
        assert!(text.contains("***") && !text.contains("b25l"), "{text}");
    }
}
