//! Names that no template sees, fields that `gateway` does not have, and values that are printed as they are.
//!
//! A name counts as known in a whole text as soon as the text binds it anywhere, and in a part that others include as
//! soon as any text does: what is reported here is certainly a mistake, and not all mistakes are found.

use std::collections::{BTreeMap, BTreeSet};

use super::super::declared::{SCOPE, gateway_fields};
use super::super::manifest::{Manifest, PART};
use super::super::texts::Text;
use crate::check::suggest;
use crate::problem::Problem;
use crate::render::calls::{Fault, callee, is_encoded};
use crate::render::syntax::{Tag, Token, tags};
use crate::text::did_you_mean;

/// Words of the language that are no names of values.
const WORDS: [&str; 18] = [
    "and", "elif", "else", "false", "False", "for", "if", "in", "is", "loop", "none", "None", "not", "null", "or",
    "self", "true", "True",
];

/// Tags whose names are none of values.
const WITHOUT_VALUES: [&str; 5] = ["block", "component", "endblock", "extends", "include"];

/// Filters after which the items of a list are what they were.
const KEEPING: [&str; 3] = ["reverse", "sort", "unique"];

/// The names that texts bind.
#[derive(Default)]
struct Bound<'a> {
    /// Each with the list of `gateway` whose items it stands for, if it is always that one.
    names: BTreeMap<&'a str, Option<&'a str>>,
    /// Names of values that have passed an encoding filter.
    encoded: BTreeSet<&'a str>,
}

impl<'a> Bound<'a> {
    fn add(&mut self, name: &'a str, list: Option<&'a str>) {
        let known = self.names.entry(name).or_insert(list);
        if *known != list {
            *known = None;
        }
    }

    fn add_all(&mut self, other: &Self) {
        for (name, list) in &other.names {
            self.add(name, *list);
        }
        self.encoded.extend(&other.encoded);
    }
}

/// A text with what can be said of it.
struct Read<'a> {
    text: &'a Text<'a>,
    tags: Vec<Tag<'a>>,
    bound: Bound<'a>,
    /// It takes names from other texts, or has components, whose names are their own.
    is_open: bool,
}

/// Returns what is wrong with the names in texts; `manifest` is that of a pack whose names are all known.
pub(super) fn wrong_names(texts: &[Text<'_>], manifest: Option<&Manifest>) -> Vec<Problem> {
    let mut read: Vec<Read<'_>> = texts.iter().map(Read::of).collect();
    let mut all = Bound::default();
    for it in &read {
        all.add_all(&it.bound);
    }
    for it in read.iter_mut().filter(|it| it.is_open) {
        it.bound.add_all(&all);
    }
    let mut problems = Vec::new();
    for it in &read {
        let mut faults = it.unencoded();
        if let Some(manifest) = manifest {
            faults.extend(it.unknown(manifest));
        }
        problems.extend(faults.into_iter().map(|fault| it.text.problem(fault)));
    }
    problems
}

impl<'a> Read<'a> {
    fn of(text: &'a Text<'a>) -> Self {
        let tags = tags(&text.template);
        let mut bound = Bound::default();
        for tag in &tags {
            bind(tag, &mut bound);
        }
        let takes = |tag: &Tag<'_>| matches!(tag.word(), Some("include" | "extends"));
        let is_open = text.file.ends_with(PART) || tags.iter().any(takes);
        Self { text, tags, bound, is_open }
    }

    /// Returns the values that are printed as they are.
    fn unencoded(&self) -> Vec<Fault> {
        let is_known = |name: &str| self.bound.encoded.contains(name) || name == "body";
        let wrong = |tag: &&Tag<'_>| tag.is_print && !is_encoded(&tag.tokens, &is_known);
        let fault = |tag: &Tag<'_>| Fault {
            line: tag.tokens.first().map_or(tag.line, |token| token.line),
            message: "a value is printed without an encoding filter".to_owned(),
            hint: Some("write it as {{ name | json }}, and an expression as {{ (a ~ b) | json }}".to_owned()),
        };
        self.tags.iter().filter(wrong).map(fault).collect()
    }

    /// Returns the names and the fields of `gateway` that are not there.
    fn unknown(&self, manifest: &Manifest) -> Vec<Fault> {
        // The arguments of a component are names in it, and nowhere else.
        if self.tags.iter().any(|tag| tag.word() == Some("component") || tag.tokens.iter().any(|it| it.is("</"))) {
            return Vec::new();
        }
        let values: Vec<&str> = manifest.values.iter().map(|value| value.name.as_str()).collect();
        let (seen, later) = values.split_at(self.text.sees.unwrap_or(values.len()).min(values.len()));
        let mut faults = Vec::new();
        for (tag, index) in self.tags.iter().flat_map(|tag| (0..tag.tokens.len()).map(move |index| (tag, index))) {
            let Some(name) = value_at(tag, index) else { continue };
            let line = tag.tokens[index].line;
            if name == "gateway" || self.bound.names.get(name).is_some_and(Option::is_some) {
                faults.extend(self.unknown_field(tag, index).map(|(message, hint)| Fault { line, message, hint }));
                continue;
            }
            let mut known = SCOPE.iter().chain(seen).copied().chain(self.bound.names.keys().copied());
            if known.clone().any(|it| it == name) {
                continue;
            }
            let hint = if later.contains(&name) {
                Some("it is computed, but further down".to_owned())
            } else {
                did_you_mean(suggest(name, known.by_ref()))
            };
            let hint = hint.or_else(|| Some(format!("in scope are {}", [&SCOPE[..], seen].concat().join(", "))));
            faults.push(Fault { line, message: format!("there is no value {name:?}"), hint });
        }
        faults
    }

    /// Says which field of `gateway`, or of an item of one of its lists, is not there.
    fn unknown_field(&self, tag: &Tag<'_>, index: usize) -> Option<(String, Option<String>)> {
        let name = tag.tokens[index].name()?;
        let field = path(&tag.tokens[index..]).into_iter().nth(1)?;
        let list = if name == "gateway" { None } else { Some((*self.bound.names.get(name)?)?) };
        let fields = gateway_fields(list)?;
        if fields.contains(&field) {
            return None;
        }
        let of = list.map_or_else(|| "gateway".to_owned(), |list| format!("an item of gateway.{list}"));
        let near = did_you_mean(suggest(field, fields.iter().copied()));
        let hint = near.unwrap_or_else(|| format!("there are {}", fields.join(", ")));
        Some((format!("{of} has no field {field:?}"), Some(hint)))
    }
}

/// Returns the name of a value that is asked for at an index of a tag.
fn value_at<'a>(tag: &Tag<'a>, index: usize) -> Option<&'a str> {
    let name = tag.tokens[index].name()?;
    let before = index.checked_sub(1).map(|at| &tag.tokens[at]);
    let is_field = before.is_some_and(|token| token.is(".") || token.is("?."));
    let is_argument = tag.tokens.get(index + 1).is_some_and(|token| token.is("="));
    let is_tag_word = index == 0 && !tag.is_print;
    let is_binding = index == 1 && matches!(tag.word(), Some("set" | "set_global"));
    let is_word = WORDS.contains(&name) || name.starts_with("__tera");
    let is_other = tag.word().is_some_and(|word| WITHOUT_VALUES.contains(&word));
    let is_none = is_field || is_argument || is_tag_word || is_binding || is_word || is_other;
    (!is_none && callee(tag, index).is_none()).then_some(name)
}

/// Returns a name with the fields that are asked for behind it.
fn path<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let [first, after @ ..] = rest
        && let Some(name) = first.name()
    {
        path.push(name);
        rest = match after {
            [dot, after @ ..] if dot.is(".") || dot.is("?.") => after,
            _ => break,
        };
    }
    path
}

/// Notes the names that a tag binds.
fn bind<'a>(tag: &Tag<'a>, bound: &mut Bound<'a>) {
    if let ([_, name, rest @ ..], Some("set" | "set_global")) = (tag.tokens.as_slice(), tag.word())
        && let Some(name) = name.name()
    {
        bound.add(name, None);
        let is_known = |name: &str| bound.encoded.contains(name);
        // What is put together between two tags is made of encoded values.
        let is_safe = rest.first().is_none_or(|first| !first.is("=")) || is_encoded(&rest[1..], &is_known);
        if is_safe {
            bound.encoded.insert(name);
        }
    }
    for (index, _) in tag.tokens.iter().enumerate().filter(|(_, token)| token.is_word(&["for"])) {
        let after = &tag.tokens[index + 1..];
        let Some(end) = after.iter().position(|token| token.is_word(&["in"])) else { continue };
        let names: Vec<&str> = after[..end].iter().filter_map(Token::name).collect();
        let list = list_of(&after[end + 1..]).filter(|_| names.len() == 1);
        for name in names {
            bound.add(name, list);
        }
    }
}

/// Returns the list of `gateway` that tokens go through, if it is one.
fn list_of<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let path = path(tokens);
    let ["gateway", list] = path[..] else { return None };
    gateway_fields(Some(list))?;
    let rest = tokens.get(path.len() * 2 - 1..)?;
    let end = rest.iter().position(|token| token.is("]") || token.is_word(&["if"])).unwrap_or(rest.len());
    let mut filters = rest[..end].iter().enumerate().filter(|(_, token)| token.is("|"));
    let keeps = filters.all(|(at, _)| rest.get(at + 1).is_some_and(|filter| filter.is_word(&KEEPING)));
    let begins = rest[..end].first().is_none_or(|first| first.is("|"));
    (keeps && begins).then_some(list)
}
