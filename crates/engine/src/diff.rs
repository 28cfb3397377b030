//! Differences between two states of an object, for people and for the plan.
//!
//! Compared are a live object and the *result* of a dry run, never a file and a live object: what the API server adds
//! or normalizes is on both sides. What servers write by themselves is left out. Compared are the values as they are, and
//! shown is what a [`Masker`] leaves of them.

mod apart;
pub mod content;
pub mod managers;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mask::Masker;
use crate::problem::Place;
use apart::apart;
use content::{Content, ContentDifference};
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
    /// The path, as `spec.template.spec.containers[proxy].image`.
    pub path: String,
    /// The value that is there now; `None` if nothing.
    pub before: Option<Value>,
    /// The value that will be there; `None` if nothing.
    pub after: Option<Value>,
    /// The differences in meaning, where both values are texts that are documents: none if only their layout differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ContentDifference>>,
    /// The others who have written there, the latest first.
    pub managers: Vec<Manager>,
    /// The place where the source asks for it, as far as that was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The reason why it differs, where nobody is going to change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// It was worked out without a dry run of the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// The reason why something differs.
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

/// The words for documents that differ in their layout alone.
pub const SAME_CONTENT: &str = "same content, in another layout";

/// Values longer than this are folded, in characters.
const LONGEST_VALUE: usize = 100;

/// Fields that identify the elements of a list, in the order in which they are tried. The API types that we render
/// use these as merge keys.
pub(crate) const KEYS: [&str; 6] = ["name", "containerPort", "port", "mountPath", "topologyKey", "key"];

/// Metadata that only the server writes.
const SERVER_METADATA: [&str; 7] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp"];

impl Difference {
    /// Says what differs, and leaves open where that comes from.
    pub(crate) fn new(path: String, before: Option<Value>, after: Option<Value>, managers: Vec<Manager>) -> Self {
        Self { path, before, after, content: None, managers, place: None, class: None, estimated: false }
    }

    /// Tells whether both values say the same: documents that only their layout tells apart.
    pub fn is_layout(&self) -> bool {
        self.content.as_ref().is_some_and(Vec::is_empty)
    }

    /// Tells whether it means nothing to anybody: of a `spec` also the layout of a text does, because it replaces pods.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.is_layout() && !self.path.starts_with("spec")
    }
}

/// `spec.replicas: 2 -> 3`, on one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_layout() {
            return write!(f, "{}: {SAME_CONTENT}", self.path);
        }
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), folded);
        write!(f, "{}: {} -> {}", self.path, text(&self.before), text(&self.after))
    }
}

/// Writes a value as JSON, cut where it is long.
pub fn folded(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        None => text,
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

/// Returns what differs, in the order of the fields, with what is secret masked. `ours` is our own field manager.
pub fn differences(before: &Value, after: &Value, ours: &str, masker: &Masker) -> Vec<Difference> {
    let (old, new) = apart(before, after);
    if old == new {
        return Vec::new();
    }
    let difference = |Found { path, before: old, after: new, content }| {
        let managers = managers::of_path(before, &path, old.is_some(), ours);
        Difference { content, ..Difference::new(Path(&path).to_string(), old, new, managers) }
    };
    let found = Comparison::of(&old, &new, (&masker.body(&old), &masker.body(&new)), masker);
    found.into_iter().map(difference).collect()
}

/// Returns an object without what servers write. Its secrets are still in it.
pub(crate) fn comparable(body: &Value) -> Value {
    let Value::Object(fields) = body else { return body.clone() };
    let mut kept = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("status", _) => continue,
            ("metadata", Value::Object(metadata)) => {
                let keep = |key: &String| !SERVER_METADATA.contains(&key.as_str());
                metadata.iter().filter(|(key, _)| keep(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
            }
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

/// The value that is compared, and beside it what is shown of it.
#[derive(Clone, Copy)]
struct Side<'a> {
    raw: &'a Value,
    shown: &'a Value,
}

impl Side<'_> {
    fn field(self, field: &str) -> Option<Self> {
        Some(Self { raw: self.raw.get(field)?, shown: self.shown.get(field)? })
    }

    fn element(self, index: usize) -> Option<Self> {
        Some(Self { raw: self.raw.get(index)?, shown: self.shown.get(index)? })
    }

    /// Tells whether there is something to be seen inside.
    fn is_open(self) -> bool {
        self.raw.is_object() == self.shown.is_object() && self.raw.is_array() == self.shown.is_array()
    }

    /// The element of a list that a field identifies.
    fn find(self, key: &str, value: &Value) -> Option<Self> {
        let index = list(self.raw).iter().position(|element| element[key] == *value)?;
        self.element(index)
    }

    fn order(self, key: &str) -> Value {
        list(self.shown).iter().map(|element| element[key].clone()).collect()
    }
}

/// A difference that was found: masked, and by meaning where both sides are documents.
struct Found {
    path: Vec<Segment>,
    before: Option<Value>,
    after: Option<Value>,
    content: Option<Vec<ContentDifference>>,
}

/// A comparison of two values, on its way through them.
struct Comparison<'m> {
    masker: &'m Masker,
    path: Vec<Segment>,
    found: Vec<Found>,
}

impl<'m> Comparison<'m> {
    fn of(before: &Value, after: &Value, shown: (&Value, &Value), masker: &'m Masker) -> Vec<Found> {
        let mut comparison = Self { masker, path: Vec::new(), found: Vec::new() };
        comparison.compare(Side { raw: before, shown: shown.0 }, Side { raw: after, shown: shown.1 });
        comparison.found
    }

    fn compare(&mut self, before: Side<'_>, after: Side<'_>) {
        match (before.raw, after.raw) {
            (old, new) if old == new => {}
            (Value::Object(old), Value::Object(new)) if before.is_open() && after.is_open() => {
                let fields: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for field in fields {
                    self.pair(Segment::Field(field.clone()), before.field(field), after.field(field));
                }
            }
            (Value::Array(_), Value::Array(_)) if before.is_open() && after.is_open() => {
                self.compare_lists(before, after);
            }
            _ => match content::content(before, after, self.masker) {
                Some(Content { differences, shown }) => self.differing(&shown.0, &shown.1, Some(differences)),
                None => self.differing(before.shown, after.shown, None),
            },
        }
    }

    /// Two values that differ must not look the same.
    fn differing(&mut self, before: &Value, after: &Value, content: Option<Vec<ContentDifference>>) {
        let after = if before == after { Value::from(format!("{} (changed)", plain(after))) } else { after.clone() };
        self.found.push(Found { path: self.path.clone(), before: Some(before.clone()), after: Some(after), content });
    }

    fn pair(&mut self, segment: Segment, before: Option<Side<'_>>, after: Option<Side<'_>>) {
        let shown = |side: Side<'_>| side.shown.clone();
        self.path.push(segment);
        match (before, after) {
            (Some(before), Some(after)) => self.compare(before, after),
            (None, None) => {}
            (before, after) => {
                let (before, after) = (before.map(shown), after.map(shown));
                self.found.push(Found { path: self.path.clone(), before, after, content: None });
            }
        }
        self.path.pop();
    }

    /// Elements that a key identifies are compared with each other, wherever they stand. A changed order alone is one
    /// difference of the list.
    fn compare_lists(&mut self, before: Side<'_>, after: Side<'_>) {
        let (old, new) = (list(before.raw), list(after.raw));
        let Some(key) = key_of(&[old, new]) else {
            for index in 0..old.len().max(new.len()) {
                self.pair(Segment::Index(index), before.element(index), after.element(index));
            }
            return;
        };
        let seen = self.found.len();
        let added = new.iter().filter(|element| before.find(key, &element[key]).is_none());
        for element in old.iter().chain(added) {
            let segment = Segment::Key(key, plain(&element[key]));
            self.pair(segment, before.find(key, &element[key]), after.find(key, &element[key]));
        }
        if self.found.len() == seen {
            self.differing(&before.order(key), &after.order(key), None);
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the first field that identifies the elements of all these lists.
pub(crate) fn key_of(lists: &[&[Value]]) -> Option<&'static str> {
    KEYS.into_iter().find(|key| lists.iter().all(|list| identifies(key, list)))
}

/// Tells whether a field has another value in every element of a list.
fn identifies(key: &str, list: &[Value]) -> bool {
    let values: BTreeSet<String> = list.iter().filter_map(|element| element.get(key)).map(Value::to_string).collect();
    values.len() == list.len()
}

/// Returns the text of a value, without the quotes of a string.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Tells whether a path, as people write it, is another, or around it.
pub(crate) fn leads_to(path: &str, other: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A path in the words that people use.
pub struct Path<'a>(pub &'a [Segment]);

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
    use crate::mask::LAST_APPLIED;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let lines: Vec<String> = differences(&before, &after, "gatewright", &Masker::default())
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
    fn no_secret_is_shown_and_every_change_of_one_is() {
        let of =
            |value: &str| json!({"kind": "Secret", "data": {"token": value}, "list": [value, {"password": value}]});
        for masker in [Masker::default(), Masker::new([3; 32])] {
            let found = differences(&of("b25l"), &of("dHdv"), "gatewright", &masker);
            let text = format!("{found:?}");
            assert!(found.iter().all(|difference| difference.before != difference.after), "{text}");
            assert_eq!(found.len(), 3);
            assert!(!found[0].after.iter().chain(&found[0].before).any(|it| ["b25l", "dHdv"].contains(&&*plain(it))));
            assert!(!found[2].after.iter().chain(&found[2].before).any(|it| ["b25l", "dHdv"].contains(&&*plain(it))));
        }
    }

    proptest! {
        #[test]
        fn a_secret_that_changes_shows_and_cannot_be_read(
            before in "[A-Za-z0-9]{8}[A-Za-z0-9\n\"=/+ ]{0,40}[0-9a-z]",
            after in "[A-Za-z0-9]{8}[A-Za-z0-9\n\"=/+ ]{0,40}[0-9a-z]",
            key in any::<[u8; 32]>(),
        ) {
            let of = |secret: &str| json!({
                "kind": "Secret", "data": {"a": STANDARD.encode(secret)}, "stringData": {"b": secret},
                "metadata": {"name": "s", "annotations": {"copy": secret, LAST_APPLIED: json!({"data": secret}).to_string()}},
                "spec": {"env": [{"name": "A_PASSWORD", "value": secret}, {"name": "B", "value": "c"}], "args": ["--token", secret]},
            });
            let found = differences(&of(&before), &of(&after), "gatewright", &Masker::new(key));
            prop_assert_eq!(found.len(), if before == after { 0 } else { 6 });
            let text = serde_json::to_string(&found).expect("differences are plain data");
            for secret in [&before, &after] {
                for form in [secret.clone(), STANDARD.encode(secret), json!(secret).to_string()] {
                    for piece in form.as_bytes().windows(8) {
                        let piece = String::from_utf8_lossy(piece);
                        prop_assert!(!text.contains(&*piece), "{:?} in {}", piece, text);
                    }
                }
            }
            prop_assert!(found.iter().all(|difference| difference.before != difference.after));
        }
    }
}
