//! Offline validation of what people write: structure first, with the place of every mistake.
//!
//! All mistakes of a document are found in one pass. A mistake says what stands there and what is needed; a hint
//! says what was probably meant. What a schema cannot say (unique names, references that lead somewhere) is checked
//! where the meaning is known: in [`crate::spec`] and [`crate::resolve`].

use serde_json::Value;

use crate::problem::{Fix, Place, Problem};
use crate::schema::{Additional, Found, Range, Rule, Schema, Size};
use crate::text::did_you_mean;
use crate::yaml::{Content, Field, Node, Position};

/// One mistake in one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its place in the file.
    pub position: Position,
    /// The mistake, beginning with the path of the field.
    pub message: String,
    /// A hint at what was probably meant.
    pub hint: Option<String>,
    /// The mechanical mending, if there is only one.
    pub fix: Option<Fix>,
}

impl Mistake {
    /// Returns it as a problem with the document at a place.
    pub(crate) fn at(self, place: Place) -> Problem {
        Problem { hint: self.hint, fix: self.fix, ..Problem::document(place, self.message) }
    }
}

/// Checks a value against a schema and returns every mistake, in the order of the file.
pub fn check(node: &Node, schema: &Schema) -> Vec<Mistake> {
    mistakes(Walk::new(schema, Mode::Whole).all(node, schema.root(), &mut Vec::new()))
}

/// A mistake in something that was not read from a file: where in it that is, and the mistake.
pub(crate) type InValue = (Vec<String>, Mistake);

/// The words by which a mistake begins that is about the name of a field.
pub(crate) const UNKNOWN_FIELD: &str = "unknown field";

/// Checks an object that is to go to an API server, which has more ways to write the same than people should use.
///
/// What is missing is not told: of Kubernetes' own kinds a server fills in more than their schemas say. Nor is what was
/// written, because an object may hold what nobody else is to see.
pub(crate) fn check_rendered(node: &Node, schema: &Schema) -> Vec<InValue> {
    Walk::new(schema, Mode::Rendered).all(node, schema.root(), &mut Vec::new())
}

/// Checks a layer of something: what the schema says of the field `field`, and no more than a part of it.
///
/// What is required may stand in another layer; only the items of lists have to be whole. `written` is the path that
/// messages begin with.
pub(crate) fn check_layer(node: &Node, schema: &Schema, field: &str, written: &[&str]) -> Vec<Mistake> {
    let Found::Rule(rule) = schema.follow([field]) else { return Vec::new() };
    let mut path = written.iter().map(|&part| part.to_owned()).collect();
    mistakes(Walk::new(schema, Mode::Layer).all(node, rule, &mut path))
}

fn mistakes(found: Vec<InValue>) -> Vec<Mistake> {
    found.into_iter().map(|(_, mistake)| mistake).collect()
}

/// The most names with which a misspelled one is compared.
const MOST_COMPARED: usize = 1000;

/// Returns the candidate that is closest to what was written, if any is close.
pub fn suggest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(&written.to_lowercase(), &candidate.to_lowercase());
    let most = 1 + written.len() / 4;
    // What is longer or shorter by more cannot be near; to compare it takes time where there are thousands.
    let fitting = candidates.into_iter().filter(|candidate| candidate.len().abs_diff(written.len()) <= most);
    let best = fitting.take(MOST_COMPARED).map(|candidate| (distance(candidate), candidate)).min()?;
    // A word of which nothing is left is another word.
    (best.0 <= most && (best.0 == 0 || best.0 < written.chars().count())).then_some(best.1)
}

/// Returns the only candidate that can have been meant by what was written: a slip for it, and for no other one.
pub(crate) fn only<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(&written.to_lowercase(), &candidate.to_lowercase());
    // What suggestions are made of is wider: nothing else may come into question at all.
    let mut near: Vec<&str> =
        candidates.into_iter().filter(|candidate| distance(candidate) <= 1 + written.len() / 4).collect();
    // Only its case is wrong.
    if near.iter().filter(|candidate| distance(candidate) == 0).count() == 1 {
        near.retain(|candidate| distance(candidate) == 0);
    }
    let mut near = near.into_iter();
    let only = near.next().filter(|_| near.next().is_none())?;
    (distance(only) <= 1 + written.len() / 8).then_some(only)
}

/// The nature of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A document, or an item of a list in a layer.
    Whole,
    /// A layer of something: required fields may be absent.
    Layer,
    /// An object as it goes to an API server.
    Rendered,
}

struct Walk<'a> {
    schema: &'a Schema,
    mistakes: Vec<InValue>,
    mode: Mode,
}

impl<'a> Walk<'a> {
    fn new(schema: &'a Schema, mode: Mode) -> Self {
        Self { schema, mistakes: Vec::new(), mode }
    }

    fn all(mut self, node: &'a Node, rule: &'a Rule, path: &mut Vec<String>) -> Vec<InValue> {
        self.value(node, rule, path);
        self.mistakes.sort_by_key(|(_, mistake)| mistake.position);
        self.mistakes
    }

    fn value(&mut self, node: &'a Node, rule: &'a Rule, path: &mut Vec<String>) {
        let rule = self.schema.resolve(rule);
        if !rule.any_of.is_empty() {
            return self.alternatives(node, rule, path);
        }
        if !fits(&node.content, &rule.types) {
            return self.other_type(node, rule, path);
        }
        self.allowed_values(node, rule, path);
        match &node.content {
            Content::Map(_) => self.object(node, rule, path),
            Content::List(items) => self.list(node, items, rule, path),
            Content::String(value) => self.string(node, value, rule, path),
            Content::Number(number) => self.number(node, number.as_f64(), rule, path),
            Content::Null | Content::Bool(_) => {}
        }
    }

    fn other_type(&mut self, node: &Node, rule: &Rule, path: &[String]) {
        let is_rendered = self.mode == Mode::Rendered;
        // A server takes nothing for what was not written, and the number of a quantity with its decimals.
        let is_fine = match node.content {
            Content::Null => true,
            Content::Number(_) => rule.form.is_some(),
            _ => false,
        };
        if is_rendered && is_fine {
            return;
        }
        let needed = rule.form.clone().unwrap_or_else(|| any(&rule.types));
        let found = if is_rendered { with_article(node.content.type_name()) } else { described(&node.content) };
        let hint = if rule.form.is_some() { None } else { type_hint(&node.content, &rule.types) };
        self.add((node.position, path), format!("{} is {found}, but must be {needed}", text(path)), hint);
    }

    /// The alternative with the fewest mistakes is the one that was meant.
    fn alternatives(&mut self, node: &'a Node, rule: &'a Rule, path: &mut Vec<String>) {
        let mut best: Option<Vec<InValue>> = None;
        for alternative in &rule.any_of {
            let mut walk = Walk { mistakes: Vec::new(), ..*self };
            walk.value(node, alternative, path);
            if best.as_ref().is_none_or(|best| walk.mistakes.len() < best.len()) {
                best = Some(walk.mistakes);
            }
        }
        self.mistakes.extend(best.unwrap_or_default());
    }

    fn object(&mut self, node: &'a Node, rule: &'a Rule, path: &mut Vec<String>) {
        for (key, field) in node.fields() {
            path.push(key.to_owned());
            match (rule.properties.get(key), &rule.additional) {
                // In Kubernetes an explicit null is the same as nothing at all.
                (Some(_), _) if field.node.content == Content::Null => {}
                (None, Additional::Obeying(_)) if self.schema.takes_nulls && field.node.content == Content::Null => {}
                (Some(below), _) => self.value(&field.node, below, path),
                (None, Additional::Obeying(below)) => self.value(&field.node, below, path),
                (None, Additional::Free) => {}
                (None, Additional::Forbidden) => self.unknown(key, field, rule, path),
            }
            path.pop();
        }
        if self.mode != Mode::Whole {
            return;
        }
        for missing in rule.required.iter().filter(|name| node.get(name).is_none_or(|n| n.content == Content::Null)) {
            let message = format!("{} has no {missing:?}", text(path));
            self.add((node.position, path), message, rule.slips.get(missing).cloned());
        }
        self.one_of(node, rule, path);
    }

    /// Of some fields there must be exactly one. A field of an unknown name may be the one that was meant.
    fn one_of(&mut self, node: &Node, rule: &Rule, path: &[String]) {
        if rule.one_of.is_empty() {
            return;
        }
        let said = node.fields().filter(|(_, field)| field.node.content != Content::Null);
        let is_listed = |key: &str| rule.one_of.iter().any(|name| name == key);
        let (mut listed, others): (Vec<_>, Vec<_>) = said.partition(|(key, _)| is_listed(key));
        listed.sort_by_key(|(_, field)| field.key);
        let needed = format!("exactly one of {}", rule.one_of.join(", "));
        if let [_, .., (_, last)] = listed.as_slice() {
            let names: Vec<&str> = listed.iter().map(|(key, _)| *key).collect();
            self.add(
                (last.key, path),
                format!("{} has {}, but must have {needed}", text(path), names.join(" and ")),
                None,
            );
        } else if listed.is_empty() && others.iter().all(|(key, _)| rule.properties.contains_key(*key)) {
            self.add((node.position, path), format!("{} must have {needed}", text(path)), None);
        }
    }

    fn unknown(&mut self, key: &str, field: &Field, rule: &Rule, path: &[String]) {
        let parent = &path[..path.len() - 1];
        let near = suggest(key, rule.properties.keys().map(String::as_str));
        let hint = rule.slips.get(key).cloned().or_else(|| did_you_mean(near));
        let only = only(key, rule.properties.keys().map(String::as_str)).filter(|_| !rule.slips.contains_key(key));
        let fix = only.map(|only| Fix { old: key.to_owned(), new: only.to_owned() });
        let message = format!("{UNKNOWN_FIELD} {key:?} in {}", text(parent));
        self.mistakes.push((path.to_vec(), Mistake { position: field.key, message, hint, fix }));
    }

    fn list(&mut self, node: &'a Node, items: &'a [Node], rule: &'a Rule, path: &mut Vec<String>) {
        self.size(node, items.len(), &rule.count, "items", path);
        let Some(below) = &rule.items else { return };
        let mode = self.mode;
        self.mode = if mode == Mode::Layer { Mode::Whole } else { mode };
        for (index, item) in items.iter().enumerate() {
            path.push(format!("[{index}]"));
            self.value(item, below, path);
            path.pop();
        }
        self.mode = mode;
    }

    fn string(&mut self, node: &Node, value: &str, rule: &Rule, path: &[String]) {
        self.size(node, value.chars().count(), &rule.length, "characters", path);
        let Some(pattern) = rule.pattern.as_ref().filter(|pattern| !pattern.is_match(value)) else { return };
        let message = match &rule.form {
            Some(form) => format!("{} is {value:?}, but must be {form}", text(path)),
            None => format!("{} is {value:?}, which does not match {pattern}", text(path)),
        };
        self.add((node.position, path), message, None);
    }

    fn number(&mut self, node: &Node, value: Option<f64>, rule: &Rule, path: &[String]) {
        let needed = value.and_then(|value| outside(value, &rule.range).or_else(|| outside(value, &rule.format)));
        if let (Some(value), Some(needed)) = (value, needed) {
            self.add((node.position, path), format!("{} is {value}, but must be {needed}", text(path)), None);
        }
    }

    fn size(&mut self, node: &Node, size: usize, bounds: &Size, what: &str, path: &[String]) {
        let size = size as u64;
        let message = match bounds {
            Size { min: Some(min), .. } if size < *min => format!("at least {min}"),
            Size { max: Some(max), .. } if size > *max => format!("at most {max}"),
            _ => return,
        };
        self.add((node.position, path), format!("{} has {size} {what}, but must have {message}", text(path)), None);
    }

    fn allowed_values(&mut self, node: &Node, rule: &Rule, path: &[String]) {
        if rule.values.is_empty() || rule.values.contains(&node.to_value()) {
            return;
        }
        let names: Vec<&str> = rule.values.iter().filter_map(Value::as_str).collect();
        let near = node.as_str().and_then(|written| suggest(written, names.iter().copied()));
        let listed = names.join(", ");
        let message = format!("{} is {}, but must be one of {listed}", text(path), described(&node.content));
        self.add((node.position, path), message, did_you_mean(near));
    }

    fn add(&mut self, (position, path): (Position, &[String]), message: String, hint: Option<String>) {
        self.mistakes.push((path.to_vec(), Mistake { position, message, hint, fix: None }));
    }
}

/// Says what a number that is out of bounds must be.
fn outside(value: f64, range: &Range) -> Option<String> {
    match (range.min, range.max) {
        (Some(min), Some(max)) if value < min || value > max => Some(format!("between {min} and {max}")),
        (Some(min), None) if value < min => Some(format!("at least {min}")),
        (None, Some(max)) if value > max => Some(format!("at most {max}")),
        _ => None,
    }
}

fn fits(content: &Content, types: &[String]) -> bool {
    let name = match content.type_name() {
        "list" => "array",
        name => name,
    };
    types.is_empty() || types.iter().any(|ty| ty == name || (ty == "number" && name == "integer"))
}

/// Writes a path as `spec.listeners[0].port`.
fn text(path: &[String]) -> String {
    if path.is_empty() {
        return "the document".to_owned();
    }
    let mut text = String::new();
    for part in path {
        if !text.is_empty() && !part.starts_with('[') {
            text.push('.');
        }
        text.push_str(part);
    }
    text
}

fn described(content: &Content) -> String {
    match content {
        Content::Null => "null".to_owned(),
        Content::Bool(value) => format!("the boolean {value}"),
        Content::Number(value) => format!("the number {value}"),
        Content::String(value) if value.len() > 60 => "a long string".to_owned(),
        Content::String(value) => format!("the string {value:?}"),
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "an object".to_owned(),
    }
}

fn with_article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {type_name}")
}

fn any(types: &[String]) -> String {
    let names = types.iter().map(|ty| match ty.as_str() {
        "array" => "a list",
        "object" => "an object",
        "integer" => "an integer",
        "string" => "a string",
        "boolean" => "true or false",
        "number" => "a number",
        other => other,
    });
    names.collect::<Vec<_>>().join(" or ")
}

fn type_hint(content: &Content, types: &[String]) -> Option<String> {
    let wants = |name: &str| types.iter().any(|ty| ty == name);
    match content {
        Content::Bool(_) | Content::Number(_) if wants("string") => {
            Some("put it in quotes; YAML reads yes, on, 0644 and 1e3 as booleans and numbers".to_owned())
        }
        Content::String(text)
            if (wants("integer") && text.parse::<i64>().is_ok())
                || (wants("boolean") && text.parse::<bool>().is_ok()) =>
        {
            Some("remove the quotes".to_owned())
        }
        _ => None,
    }
}
