//! Paths of settings: which fields of an object somebody means.
//!
//! Written as in a plan, `spec.template.spec.containers[proxy].image`; also understood are `[name=proxy]` for any key of
//! an element, `["a.b/c"]` for names with dots, and lists without a key for all their elements. A path means all that is
//! below it too.

use serde_json::Value;

use crate::diff::{KEYS, plain};
use crate::plan::fields::leaf::{Leaf, child, keys};

/// A path that somebody wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(String),
    /// In brackets: an element of a list by the value of a key, or a field with dots in its name.
    Bracket {
        key: Option<String>,
        value: String,
    },
}

/// The relation of a path to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// The path means the field, or something that the field is a part of.
    Within,
    /// The path means a part of the field.
    Around,
    /// Neither.
    Apart,
}

impl FieldPath {
    /// Reads a path; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            let dotted = text.trim_start_matches('/').replace('/', ".");
            return Err(format!("{text:?} begins with a slash; write {dotted:?}"));
        }
        let mut parts = Vec::new();
        let mut rest = text.strip_prefix('.').unwrap_or(text);
        while !rest.is_empty() {
            let (part, left) = if let Some(inner) = rest.strip_prefix('[') {
                bracket(inner).ok_or_else(|| format!("{text:?} has a bracket without its other half"))?
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (Part::Field(rest[..end].to_owned()), &rest[end..])
            };
            parts.push(part);
            rest = match left.strip_prefix('.') {
                Some("") => return Err(format!("{text:?} ends with a dot")),
                Some(left) => left,
                None => left,
            };
        }
        let is_empty = |part: &Part| matches!(part, Part::Field(name) if name.is_empty());
        if parts.is_empty() || parts.iter().any(is_empty) {
            return Err(format!("{text:?} is no path, such as spec.replicas"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Tells whether the path means a field of one of these bodies.
    pub(super) fn means(&self, leaf: &Leaf, bodies: [&Value; 2]) -> bool {
        bodies.into_iter().any(|body| lie(&self.parts, leaf.words(), Some(body)) == Lie::Within)
    }

    /// Tells whether the path means a field, a part of it, or something that it is a part of.
    pub(super) fn touches(&self, leaf: &Leaf, bodies: [&Value; 2]) -> bool {
        bodies.into_iter().any(|body| lie(&self.parts, leaf.words(), Some(body)) != Lie::Apart)
    }
}

/// Reads what stands in brackets, quoted or not, and returns what follows.
fn bracket(inner: &str) -> Option<(Part, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (value, left) = quoted.split_once(&format!("{quote}]"))?;
            return Some((Part::Bracket { key: None, value: value.to_owned() }, left));
        }
    }
    let (inner, left) = inner.split_once(']')?;
    let (key, value) = match inner.split_once('=') {
        Some((key, value)) => (Some(key.to_owned()), value),
        None => (None, inner),
    };
    Some((Part::Bracket { key, value: value.trim_matches(['"', '\'']).to_owned() }, left))
}

fn lie(parts: &[Part], words: &[String], value: Option<&Value>) -> Lie {
    let Some((part, parts_below)) = parts.split_first() else { return Lie::Within };
    let Some((word, words_below)) = words.split_first() else { return Lie::Around };
    let below = value.and_then(|value| child(value, word));
    match word.strip_prefix("f:") {
        Some(field) => match part {
            Part::Field(name) | Part::Bracket { key: None, value: name } if name == field => {
                lie(parts_below, words_below, below)
            }
            Part::Field(_) | Part::Bracket { .. } => Lie::Apart,
        },
        None if is_element(part, word, below) => lie(parts_below, words_below, below),
        // A list without a key: all its elements.
        None if matches!(part, Part::Field(_)) => lie(parts, words_below, below),
        None => Lie::Apart,
    }
}

fn is_element(part: &Part, word: &str, element: Option<&Value>) -> bool {
    let Part::Bracket { key, value: wanted } = part else { return false };
    let named = keys(word);
    let is = |key: &str| {
        let known = element.and_then(|element| element.get(key)).or_else(|| named.get(key));
        known.is_some_and(|known| plain(known) == *wanted)
    };
    let is_item = || element.is_some_and(|element| !element.is_object() && plain(element) == *wanted);
    match key {
        Some(key) => is(key),
        None => KEYS.into_iter().chain(named.keys().map(String::as_str)).any(is) || is_item(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fields::leaf::leaves;
    use serde_json::json;

    fn check(path: &str, expected: &[&str]) {
        let body = json!({
            "metadata": {"annotations": {"a.b/c": "1"}},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}], "args": ["--x"]},
        });
        let set = json!({
            "f:metadata": {"f:annotations": {"f:a.b/c": {}}},
            "f:spec": {
                "f:args": {},
                "f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"b\"}": {"f:image": {}}},
            },
        });
        let path = FieldPath::parse(path).expect("it is a path");
        let found: Vec<String> = leaves(&set)
            .iter()
            .filter(|leaf| path.means(leaf, [&body, &Value::Null]))
            .map(|leaf| leaf.text(&body))
            .collect();
        assert_eq!(found, expected, "{}", path.text());
    }

    #[test]
    fn a_path_means_what_is_at_it_and_below() {
        let both = ["spec.containers[a].image", "spec.containers[b].image"];
        check("spec.containers", &both);
        check(".spec.containers.image", &both);
        check("spec.args", &["spec.args"]);
        check("spec.arg", &[]);
        for path in ["spec.containers[b].image", "spec.containers[name=b]", "spec.containers[\"b\"].image"] {
            check(path, &["spec.containers[b].image"]);
        }
        for path in ["metadata.annotations[\"a.b/c\"]", "metadata.annotations['a.b/c']", "metadata.annotations[a.b/c]"]
        {
            check(path, &["metadata.annotations[\"a.b/c\"]"]);
        }
    }

    #[test]
    fn a_path_around_a_part_touches_the_whole() {
        let (leaf, body) = (Leaf::of(&["spec", "selector"]), json!({"spec": {"selector": {"app": "edge"}}}));
        let path = FieldPath::parse("spec.selector.app").expect("it is a path");
        assert_eq!((path.means(&leaf, [&body, &body]), path.touches(&leaf, [&body, &body])), (false, true));
        let other = FieldPath::parse("spec.selectors").expect("it is a path");
        assert!(!other.touches(&leaf, [&body, &body]));
    }

    #[test]
    fn what_is_no_path_is_said_to_be_none() {
        let wrong = |text: &str| FieldPath::parse(text).expect_err(text);
        assert_eq!(wrong("/spec/replicas"), "\"/spec/replicas\" begins with a slash; write \"spec.replicas\"");
        assert_eq!(wrong("spec.a[name=b"), "\"spec.a[name=b\" has a bracket without its other half");
        assert_eq!(wrong(""), "\"\" is no path, such as spec.replicas");
        assert_eq!(wrong("spec..a"), "\"spec..a\" is no path, such as spec.replicas");
        assert_eq!(wrong("spec.a."), "\"spec.a.\" ends with a dot");
    }
}
