//! Secrets in documents that can be read, with their positions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use serde_json::Value;

use super::{END, offset};
use crate::mask::names::{is_nearly_secret, is_secret_field};
use crate::mask::{LAST_APPLIED, is_telling, texts};
use crate::yaml::{Content, Field, Node, Position};

/// The fields of a Secret, or of a reference to one, that may be shown.
const SHOWN: [&str; 9] = ["apiVersion", "kind", "type", "immutable", "metadata", "name", "namespace", "group", "items"];

/// The same of its metadata.
const SHOWN_METADATA: [&str; 4] = ["name", "namespace", "generateName", "labels"];

/// A secret part of a text: from a position up to where the next thing begins.
#[derive(Debug)]
pub(super) struct Part {
    from: Position,
    to: Position,
}

/// What has been found so far.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The beginning of each key and each value.
    starts: BTreeSet<Position>,
    /// The lines of which it is known what they are.
    known: BTreeSet<u32>,
    /// The beginning of each secret.
    found: Vec<Position>,
    /// The secrets as they read.
    pub secrets: Vec<String>,
    /// The names of fields so far, and whether they are nearly those of secrets: most of them come again and again.
    names: BTreeMap<String, bool>,
}

/// The reasons for which the parts of a value may be secret.
#[derive(Clone, Copy, Default)]
struct Within {
    /// All of it is.
    is_secret: bool,
    /// It belongs to a Secret.
    of_secret: bool,
}

impl Walk {
    /// Goes through documents.
    pub(super) fn of(documents: &[Node]) -> Self {
        let mut walk = Self::default();
        for document in documents {
            walk.value(document, Within::default());
        }
        walk
    }

    /// Returns the secret parts.
    pub(super) fn parts(&self) -> Vec<Part> {
        let after = |from: Position| self.starts.range((Bound::Excluded(from), Bound::Unbounded)).next().copied();
        let found: BTreeSet<&Position> = self.found.iter().collect();
        found.into_iter().map(|from| Part { from: *from, to: after(*from).unwrap_or(END) }).collect()
    }

    /// Returns the lines of which it is known what they are.
    pub(super) fn known(&self) -> Vec<u32> {
        self.known.iter().copied().collect()
    }

    fn value(&mut self, node: &Node, within: Within) {
        // A text of several lines may begin on a line that is a document of its own.
        let is_text = node.as_str().is_some_and(|text| text.contains('\n'));
        if is_text {
            self.starts.insert(node.position)
        } else {
            self.start(node.position)
        };
        match &node.content {
            Content::Map(_) => self.map(node, within),
            Content::List(items) => self.list(items, within),
            Content::String(text) => self.text(node, text, within),
            Content::Number(number) if within.is_secret => self.add(node.position, number.to_string()),
            Content::Null | Content::Bool(_) | Content::Number(_) => {}
        }
    }

    fn start(&mut self, position: Position) -> bool {
        self.known.insert(position.line);
        self.starts.insert(position)
    }

    fn text(&mut self, node: &Node, text: &str, within: Within) {
        if within.is_secret && is_telling(&Value::from(text)) {
            self.add(node.position, text.to_owned());
        } else {
            self.secrets.extend(texts::secrets(text).into_iter().map(|range| text[range].to_owned()));
        }
    }

    fn add(&mut self, position: Position, secret: String) {
        self.found.push(position);
        self.secrets.push(secret);
    }

    fn map(&mut self, node: &Node, within: Within) {
        let of_secret = within.of_secret || is_like_secret(node);
        let names_secret = |field: &Field| field.node.as_str().is_some_and(is_nearly_secret);
        let is_pair = node.fields().any(|(key, field)| is_name(key) && names_secret(field));
        for (key, field) in node.fields() {
            self.start(field.key);
            let is_other = is_pair && !is_name(key) && is_leaf(&field.node) && !names_secret(field);
            let is_named = self.is_named(key, &field.node);
            let is_secret = within.is_secret || is_other || is_named || of_secret && !SHOWN.contains(&key);
            let is_metadata = of_secret && key == "metadata";
            if is_metadata && !is_secret {
                self.metadata(&field.node);
            } else {
                self.value(&field.node, Within { is_secret, of_secret: of_secret && key == "items" });
            }
        }
    }

    /// Tells whether a field holds a secret, by its name.
    fn is_named(&mut self, key: &str, node: &Node) -> bool {
        let is_text = |node: &Node| node.as_str().is_some();
        match &node.content {
            Content::String(_) => key == LAST_APPLIED || self.is_near(key),
            Content::Number(number) => is_secret_field(key, &Value::Number(number.clone())),
            Content::List(items) => items.iter().all(is_text) && self.is_near(key),
            Content::Map(_) => key.eq_ignore_ascii_case("stringData"),
            Content::Null | Content::Bool(_) => false,
        }
    }

    fn is_near(&mut self, name: &str) -> bool {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let is_near = is_nearly_secret(name);
        self.names.insert(name.to_owned(), is_near);
        is_near
    }

    fn metadata(&mut self, node: &Node) {
        self.start(node.position);
        for (key, field) in node.fields() {
            self.start(field.key);
            self.value(&field.node, Within { is_secret: !SHOWN_METADATA.contains(&key), of_secret: false });
        }
    }

    /// What follows a flag that names a secret is one.
    fn list(&mut self, items: &[Node], within: Within) {
        let mut is_awaited = false;
        for item in items {
            let text = item.as_str().unwrap_or_default();
            let is_secret = within.is_secret || is_awaited && !text.starts_with('-');
            is_awaited = text.starts_with('-') && is_nearly_secret(text.trim_start_matches('-'));
            self.value(item, Within { is_secret, ..within });
        }
    }
}

impl Part {
    /// Tells whether it ends before a line.
    pub(super) fn ends_above(&self, number: u32) -> bool {
        self.to.line < number
    }

    /// Tells whether it begins before a line, or in it.
    pub(super) fn begins_by(&self, number: u32) -> bool {
        self.from.line <= number
    }

    /// Returns the range of a line, in bytes, that belongs to it.
    pub(super) fn on(&self, number: u32, line: &str) -> Option<Range<usize>> {
        if number < self.from.line || number > self.to.line {
            return None;
        }
        let start = if number == self.from.line { offset(line, self.from.column) } else { indent(line) };
        let end = if number == self.to.line { offset(line, self.to.column) } else { line.len() };
        let held = line.get(start..end)?.trim_end_matches(BETWEEN);
        // Before the next thing there is often nothing but its indentation.
        (!held.trim_start_matches(BETWEEN).is_empty()).then(|| start..start + held.len())
    }
}

/// The characters between two things.
const BETWEEN: [char; 8] = [' ', '\t', ',', '-', '?', '"', '\'', '{'];

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Tells whether a field of a pair may be the one that names what the other sets.
fn is_name(key: &str) -> bool {
    let is_near = |word, most| strsim::damerau_levenshtein(&key.to_lowercase(), word) <= most;
    // Others differ by more, and to compare takes time.
    (2..=6).contains(&key.chars().count()) && (is_near("name", 2) || is_near("key", 1))
}

fn is_leaf(node: &Node) -> bool {
    matches!(node.content, Content::String(_) | Content::Number(_))
}

/// Tells whether a mapping is a Secret, or might be one if it was written well.
fn is_like_secret(node: &Node) -> bool {
    let is_word = |(_, field): (&str, &Field)| field.node.as_str().is_some_and(is_kind);
    let has = |key: &str| node.get(key).is_some();
    node.fields().any(is_word) || has("data") && has("apiVersion") && !has("kind")
}

/// The longest word that may mean the kind of a Secret, in bytes.
const LONGEST_KIND: usize = 40;

/// Tells whether a word may mean the kind, or the type of one.
pub(super) fn is_kind(word: &str) -> bool {
    if word.len() >= LONGEST_KIND {
        return false;
    }
    let word = word.to_lowercase();
    let is_near = || strsim::damerau_levenshtein(&word, "secret") <= 2;
    matches!(&*word, "opaque" | "secretlist" | "stringdata") || (4..=8).contains(&word.chars().count()) && is_near()
}
