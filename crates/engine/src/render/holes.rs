//! Filled templates to values, without reading the same YAML a thousand times.
//!
//! Two Gateways that take the same branches of a template differ only in the values that were put in. So the filters
//! mark values where they enter a text. The text around them, with something of the same sort in the place of each
//! ([`Sort`]), is read once; after that only the values are. That also means that no value is ever read as YAML, and
//! so none can change the structure of a document.
//!
//! What comes out depends on nothing but the text and the values. A text that holes do not fit into (a value as one
//! half of a number, one below a tag) is read as the YAML that it is, every time.

mod parts;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::yaml::{self, YamlError};
use parts::{Part, fill_all};

/// The characters where a value begins and ends. Neither stands in JSON nor, as text of a template, in YAML.
pub(super) const BEGIN: char = '\u{1}';
pub(super) const END: char = '\u{2}';

/// More texts than any pack has branches for; beyond that a template prints something of its own every time.
const MAX_TEXTS: usize = 256;

const WRITABLE: &str = "a `String` takes all that is written";

/// The sort of a value, as far as the text around it can tell the difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A number, a boolean or null.
    Plain,
    Quoted,
    List,
    Map,
}

impl Sort {
    const ALL: [Self; 4] = [Self::Plain, Self::Quoted, Self::List, Self::Map];

    fn of(json: &str) -> Self {
        match json.as_bytes().first() {
            Some(b'"') => Self::Quoted,
            Some(b'[') => Self::List,
            Some(b'{') => Self::Map,
            _ => Self::Plain,
        }
    }

    /// Returns the text before and after the number in the place of the value.
    fn brackets(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Quoted => ("\"", "\""),
            Self::List => ("[\"", "\"]"),
            Self::Map => ("{\"", "\":0}"),
        }
    }
}

/// The place of a value: which one, and of what sort.
///
/// In a text it is a number of 20 digits, one that no Kubernetes field can hold, because it takes more than 63 bits.
#[derive(Clone, Copy)]
struct Hole {
    index: usize,
    sort: Sort,
}

impl Hole {
    const PREFIX: &str = "1000000000000";
    const DIGITS: usize = 7;
    const MAX: usize = 1_000_000;

    fn write(self, text: &mut String) {
        let (before, after) = self.sort.brackets();
        let sort = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or_default();
        let number = sort * Self::MAX + self.index;
        write!(text, "{before}{}{number:07}{after}", Self::PREFIX).expect(WRITABLE);
    }

    /// Reads the digits behind the prefix.
    fn read(digits: &str) -> Option<Self> {
        let number: usize = digits.parse().ok()?;
        Some(Self { index: number % Self::MAX, sort: *Sort::ALL.get(number / Self::MAX)? })
    }

    /// Reads a text that is nothing but the number.
    fn whole(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        if digits.len() == Self::DIGITS { Self::read(digits) } else { None }
    }
}

/// The texts that were read before.
#[derive(Default)]
pub(super) struct Texts {
    known: Mutex<Cache>,
}

/// By length and text, because texts of one template have long beginnings in common. `None` for a text that holes do
/// not fit into.
type Cache = BTreeMap<(usize, String), Option<Arc<Vec<Part>>>>;

impl Texts {
    /// Reads a filled template.
    pub(super) fn read(&self, filled: &str) -> Result<Vec<Value>, YamlError> {
        let Some((text, values)) = split(filled) else { return yaml::parse_values(filled) };
        let parts = self.parts(text, values.len());
        match parts.and_then(|parts| fill_all(&parts, &values)) {
            Some(documents) => Ok(documents),
            None => yaml::parse_values(&closed(filled)),
        }
    }

    fn parts(&self, text: String, holes: usize) -> Option<Arc<Vec<Part>>> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (text.len(), text);
        if let Some(parts) = lock().get(&key) {
            return parts.clone();
        }
        let parts = Part::read(&key.1, holes).map(Arc::new);
        let mut known = lock();
        if known.len() >= MAX_TEXTS {
            known.clear();
        }
        known.insert(key, parts.clone());
        parts
    }
}

/// Returns the text as YAML, each value as JSON in ASCII.
pub(super) fn closed(filled: &str) -> String {
    let mut text = String::with_capacity(filled.len());
    for (index, part) in filled.split([BEGIN, END]).enumerate() {
        match index % 2 {
            0 => text.push_str(part),
            _ => text.push_str(&ascii(part)),
        }
    }
    text
}

/// Escapes what is not ASCII, so that nothing in a value is a line break or an indicator, whatever the parser.
///
/// Not as JSON does it, in two halves, where one escape can name the character: some parsers take YAML only.
fn ascii(json: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii() && c != '\u{7f}';
    if json.chars().all(is_plain) {
        return Cow::Borrowed(json);
    }
    let mut ascii = String::with_capacity(json.len() * 2);
    for c in json.chars() {
        match u32::from(c) {
            _ if is_plain(c) => ascii.push(c),
            code @ 0..=0xffff => write!(ascii, "\\u{code:04x}").expect(WRITABLE),
            code => write!(ascii, "\\U{code:08x}").expect(WRITABLE),
        }
    }
    Cow::Owned(ascii)
}

/// Takes the values out of a filled template and leaves holes.
fn split(filled: &str) -> Option<(String, Vec<&str>)> {
    let mut pieces = filled.split(BEGIN);
    let mut text = pieces.next()?.to_owned();
    let mut values = Vec::new();
    for piece in pieces {
        let (value, rest) = piece.split_once(END)?;
        Hole { index: values.len(), sort: Sort::of(value) }.write(&mut text);
        text.push_str(rest);
        values.push(value);
    }
    (values.len() < Hole::MAX && !text.contains(END)).then_some((text, values))
}

#[cfg(test)]
mod tests;
