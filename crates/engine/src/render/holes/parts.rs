//! A text with holes, read: what of it is fixed, and where values go.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Hole, Sort, ascii};
use crate::yaml;

/// A part of a text that was read.
pub(super) enum Part {
    /// A value of the template itself.
    Fixed(Value),
    Hole(usize),
    Text(Vec<Piece>),
    List(Vec<Self>),
    /// The keys are texts, or values that are.
    Map(Vec<(Self, Self)>),
}

pub(super) enum Piece {
    Fixed(String),
    Hole(usize),
}

impl Part {
    /// Reads a text; `None` if one of its holes is lost, as in a comment or as a part of a longer number, or if the
    /// template itself has something that looks like one.
    pub(super) fn read(text: &str, holes: usize) -> Option<Vec<Self>> {
        if text.matches(Hole::PREFIX).count() != holes {
            return None;
        }
        let mut found = BTreeSet::new();
        let documents = yaml::parse_values(text).ok()?;
        let parts =
            documents.into_iter().map(|document| Self::new(document, &mut found)).collect::<Option<Vec<_>>>()?;
        (found.len() == holes).then_some(parts)
    }

    fn new(value: Value, found: &mut BTreeSet<usize>) -> Option<Self> {
        let mut at = |hole: Hole| {
            found.insert(hole.index);
            Some(Self::Hole(hole.index))
        };
        match value {
            Value::Null | Value::Bool(_) => Some(Self::Fixed(value)),
            Value::Number(number) => match sorted(&number.to_string(), Sort::Plain) {
                Some(hole) => at(hole),
                None => Some(Self::Fixed(Value::Number(number))),
            },
            Value::String(text) => match sorted(&text, Sort::Quoted) {
                Some(hole) => at(hole),
                None if text.contains(Hole::PREFIX) => pieces(&text, found).map(Self::Text),
                None => Some(Self::Fixed(Value::String(text))),
            },
            Value::Array(items) => match items.as_slice() {
                [Value::String(text)] if let Some(hole) = sorted(text, Sort::List) => at(hole),
                _ => items.into_iter().map(|item| Self::new(item, found)).collect::<Option<_>>().map(Self::List),
            },
            Value::Object(fields) => match fields.keys().next().and_then(|key| sorted(key, Sort::Map)) {
                Some(hole) if fields.len() == 1 => at(hole),
                _ => {
                    let field = |(key, value): (String, Value)| {
                        Some((Self::new(Value::String(key), found)?, Self::new(value, found)?))
                    };
                    fields.into_iter().map(field).collect::<Option<_>>().map(Self::Map)
                }
            },
        }
    }

    /// Puts values in; `None` if a key is there twice.
    fn fill(&self, values: &[&str]) -> Option<Value> {
        Some(match self {
            Self::Fixed(value) => value.clone(),
            Self::Hole(index) => decoded(values.get(*index)?)?,
            Self::Text(pieces) => Value::String(joined(pieces, values)?),
            Self::List(parts) => Value::Array(parts.iter().map(|part| part.fill(values)).collect::<Option<_>>()?),
            Self::Map(fields) => {
                let mut map = Map::new();
                for (key, part) in fields {
                    let Value::String(key) = key.fill(values)? else { return None };
                    if map.insert(key, part.fill(values)?).is_some() {
                        return None;
                    }
                }
                Value::Object(map)
            }
        })
    }
}

/// Reads a value.
fn decoded(json: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(json).ok()?;
    if !has_fraction(&value) {
        return Some(value);
    }
    // `serde_json` may miss a fraction by its last digit.
    yaml::parse_values(&ascii(json)).ok()?.pop()
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn sorted(text: &str, sort: Sort) -> Option<Hole> {
    Hole::whole(text).filter(|hole| hole.sort == sort)
}

/// Puts values into every document; `None` if they do not fit, in which case the YAML itself tells why.
pub(super) fn fill_all(parts: &[Part], values: &[&str]) -> Option<Vec<Value>> {
    let documents = parts.iter().map(|part| part.fill(values)).collect::<Option<Vec<_>>>()?;
    Some(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn joined(pieces: &[Piece], values: &[&str]) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Fixed(fixed) => text.push_str(fixed),
            Piece::Hole(index) => text.push_str(&ascii(values.get(*index)?)),
        }
    }
    Some(text)
}

/// Cuts a text at its holes; `None` if one is not whole.
fn pieces(text: &str, found: &mut BTreeSet<usize>) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(Hole::PREFIX) {
        let (digits, after) = after.split_at_checked(Hole::DIGITS)?;
        let hole = Hole::read(digits)?;
        let (opening, closing) = hole.sort.brackets();
        pieces.push(Piece::Fixed(before.strip_suffix(opening)?.to_owned()));
        pieces.push(Piece::Hole(hole.index));
        found.insert(hole.index);
        rest = after.strip_prefix(closing)?;
    }
    pieces.push(Piece::Fixed(rest.to_owned()));
    Some(pieces)
}
