//! Overlays as they are on a cluster: each expression in their texts becomes a value of the cluster.
//!
//! That is done after they were read, and in one text at a time, so that a value can end no text, name no field and
//! direct no patch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Overlay;
use super::expression::{Expression, OPEN, Part, parts};
use crate::check::suggest;
use crate::problem::{Place, Problem, Scope};
use crate::selector::ClusterFacts;
use crate::spec::Document;
use crate::spec::overlay::ClusterOverlay;
use crate::yaml::{Content, Field, Node, Position};

/// A text of an overlay with an expression in it.
#[derive(Clone, Debug)]
pub(super) struct Hole {
    /// Its path in the document.
    path: Vec<String>,
    parts: Vec<Part>,
}

/// A value of a cluster in an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// The place of the text with the expression.
    pub at: Place,
    /// The expression.
    pub expression: String,
    /// The origin of the value.
    pub from: ValueOrigin,
}

/// The origin of a value of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    /// A field of the config file, by its path.
    Config(Vec<String>),
    /// A place in a table.
    Table(Place),
}

/// An overlay that lacks a value on a cluster.
pub(super) enum Unfilled {
    /// Nothing is known of the cluster but that the overlay selects it.
    Untried(Vec<Problem>),
    /// The cluster does not have it.
    Lacking(Vec<Problem>),
}

/// A value that is missing.
struct Missing {
    why: String,
    near: Option<String>,
}

impl Overlay {
    /// Finds the texts that are to be filled, and the expressions that cannot be.
    pub(super) fn find_holes(&mut self) -> Vec<Problem> {
        let mut finder =
            Finder { overlay: self, path: vec!["spec".to_owned()], holes: Vec::new(), problems: Vec::new() };
        finder.spec();
        let Finder { holes, problems, .. } = finder;
        self.holes = holes;
        problems
    }

    /// Tells whether it takes a value of its cluster.
    pub(super) fn takes_values(&self) -> bool {
        self.holes.iter().flat_map(|hole| &hole.parts).any(|part| matches!(part, Part::Expression(_)))
    }

    /// Returns what it takes of a cluster, or lacks there: where it is the same, the overlay is.
    pub(super) fn taken(&self, cluster: &ClusterFacts) -> Vec<Result<String, String>> {
        let texts = self.holes.iter().map(|hole| self.text(hole, cluster));
        texts.map(|text| text.map(|node| node.to_value().to_string()).map_err(|problem| problem.to_string())).collect()
    }

    /// Returns it with the values of a cluster in place of its expressions.
    pub(super) fn filled(self: &Arc<Self>, cluster: &ClusterFacts) -> Result<Arc<Self>, Unfilled> {
        if self.holes.is_empty() {
            return Ok(Arc::clone(self));
        }
        let (mut overlay, mut problems) = (Self::clone(self), Vec::new());
        for hole in &self.holes {
            match self.text(hole, cluster) {
                Ok(text) => {
                    overlay.filled.extend(self.origins(hole, cluster));
                    if let Some(node) = node_mut(&mut overlay.document.root, &hole.path) {
                        *node = text;
                    }
                }
                Err(problem) => problems.push(*problem),
            }
        }
        if problems.is_empty() {
            match overlay.document.read_with_nulls::<ClusterOverlay>() {
                Ok(filled) => overlay.spec = filled.spec,
                Err(problem) => problems.push(*problem),
            }
        }
        match (problems.is_empty(), cluster.is_example) {
            (true, _) => Ok(Arc::new(overlay)),
            (false, false) => Err(Unfilled::Lacking(problems)),
            (false, true) => Err(Unfilled::Untried(problems.into_iter().map(untried).collect())),
        }
    }

    /// Returns a text with its values: what is one expression and nothing else becomes the value itself.
    fn text(&self, hole: &Hole, cluster: &ClusterFacts) -> Result<Node, Box<Problem>> {
        let path: Vec<&str> = hole.path.iter().map(String::as_str).collect();
        let fail = |expression: &Expression, missing: Missing| {
            let message = format!("{{{{ {expression} }}}} has no value: {}", missing.why);
            Box::new(self.document.problem(&path, message).meant(missing.near.as_deref()))
        };
        let content = if let [Part::Expression(expression)] = hole.parts.as_slice() {
            let value = self.value(expression, cluster).and_then(whole);
            value.map_err(|missing| fail(expression, missing))?
        } else {
            let mut text = String::new();
            for part in &hole.parts {
                match part {
                    Part::Text(part) => text.push_str(part),
                    Part::Expression(expression) => {
                        let value = self.value(expression, cluster).and_then(|value| within(&value));
                        text.push_str(&value.map_err(|missing| fail(expression, missing))?);
                    }
                }
            }
            Content::String(text)
        };
        let position = self.document.root.at(path.iter().copied()).map(|node| node.position).unwrap_or_default();
        Ok(Node { position, content }.shifted(&|_| position))
    }

    fn value(&self, expression: &Expression, cluster: &ClusterFacts) -> Result<Content, Missing> {
        let text = |text: &String| Content::String(text.clone());
        let of = |thing: &str, key: &str, all: &BTreeMap<String, String>| {
            all.get(key).map(text).ok_or_else(|| Missing {
                why: format!("the cluster has no {thing} {key:?}"),
                near: suggest(key, all.keys().map(String::as_str)).map(str::to_owned),
            })
        };
        match expression {
            Expression::Name => Ok(text(&cluster.name)),
            Expression::Label(key) => of("label", key, &cluster.labels),
            Expression::Annotation(key) => of("annotation", key, &cluster.annotations),
            Expression::Value(path) => {
                let found = self.table.as_ref().map(|table| table.get(&cluster.name, path));
                let found = found.unwrap_or_else(|| Err("the overlay has no table".to_owned()));
                found.map(|(node, _)| node.content.clone()).map_err(Missing::because)
            }
        }
    }

    /// Returns the origins of the values in a text.
    fn origins(&self, hole: &Hole, cluster: &ClusterFacts) -> Vec<Filled> {
        let path: Vec<&str> = hole.path.iter().map(String::as_str).collect();
        let at = self.document.place_of(&path);
        let config = |steps: &[&str]| {
            let steps = ["clusters", &cluster.name].into_iter().chain(steps.iter().copied());
            ValueOrigin::Config(steps.map(str::to_owned).collect())
        };
        let origin = |part: &Part| {
            let Part::Expression(expression) = part else { return None };
            let from = match expression {
                Expression::Name => config(&[]),
                Expression::Label(key) => config(&["labels", key]),
                Expression::Annotation(key) => config(&["annotations", key]),
                Expression::Value(path) => ValueOrigin::Table(self.table.as_ref()?.get(&cluster.name, path).ok()?.1),
            };
            Some(Filled { at: at.clone(), expression: expression.to_string(), from })
        };
        hole.parts.iter().filter_map(origin).collect()
    }
}

impl Missing {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), near: None }
    }
}

/// Returns a value that stands for a whole text.
fn whole(value: Content) -> Result<Content, Missing> {
    let node = Node { position: Position::default(), content: value };
    let directive = directive(&node).map(|name| format!("it has a field {name:?}, and a value directs no patch"));
    match directive {
        _ if node.content == Content::Null => Err(Missing::because("it is null")),
        Some(why) => Err(Missing::because(why)),
        None => Ok(node.content),
    }
}

/// Returns a value as a part of a text.
fn within(value: &Content) -> Result<String, Missing> {
    match value {
        Content::String(text) => Ok(text.clone()),
        Content::Bool(value) => Ok(value.to_string()),
        Content::Number(value) => Ok(value.to_string()),
        Content::Null => Err(Missing::because("it is null")),
        Content::List(_) | Content::Map(_) => {
            Err(Missing::because(format!("it is of type {}, and only text fits into a text", value.type_name())))
        }
    }
}

/// Returns the name of a field, at any depth, that a strategic patch would obey.
fn directive(node: &Node) -> Option<&str> {
    let named = node.fields().map(|(name, _)| name).find(|name| name.starts_with('$'));
    let below = || node.items().iter().chain(node.fields().map(|(_, field)| &field.node)).find_map(directive);
    named.or_else(below)
}

fn untried(problem: Problem) -> Problem {
    let message = format!("not tried: {}", problem.message);
    Problem {
        message,
        scope: Scope::Warning,
        hint: Some("name a config file that has the cluster".to_owned()),
        ..problem
    }
}

pub(super) fn node_mut<'a>(node: &'a mut Node, path: &[impl AsRef<str>]) -> Option<&'a mut Node> {
    path.iter().try_fold(node, |node, step| match &mut node.content {
        Content::List(items) => items.get_mut(step.as_ref().parse::<usize>().ok()?),
        Content::Map(fields) => fields.get_mut(step.as_ref()).map(|field| &mut field.node),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => None,
    })
}

/// Whether a text may be filled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Filled,
    Plain,
}

/// The search for texts with expressions.
struct Finder<'a> {
    overlay: &'a Overlay,
    path: Vec<String>,
    holes: Vec<Hole>,
    problems: Vec<Problem>,
}

impl Finder<'_> {
    fn spec(&mut self) {
        let document: &Document = &self.overlay.document;
        for (name, field) in document.root.get("spec").into_iter().flat_map(Node::fields) {
            match name {
                // Rules have a language of their own, and a table has values, which are not filled again.
                "enforce" | "values" => {}
                "parameters" => self.field(name, field, Texts::Filled),
                "specPatches" | "objectPatches" => self.patches(name, &field.node),
                _ => self.field(name, field, Texts::Plain),
            }
        }
    }

    fn patches(&mut self, list: &str, node: &Node) {
        self.path.push(list.to_owned());
        for (index, item) in node.items().iter().enumerate() {
            self.path.push(index.to_string());
            for (name, field) in item.fields() {
                match &field.node.content {
                    Content::List(_) if name == "patch" => self.operations(&field.node),
                    _ if name == "patch" => self.field(name, field, Texts::Filled),
                    _ => self.field(name, field, Texts::Plain),
                }
            }
            self.path.pop();
        }
        self.path.pop();
    }

    /// Of an operation its value may be filled, and not the path that it leads to.
    fn operations(&mut self, patch: &Node) {
        self.path.push("patch".to_owned());
        for (index, operation) in patch.items().iter().enumerate() {
            self.path.push(index.to_string());
            for (name, field) in operation.fields() {
                self.field(name, field, if name == "value" { Texts::Filled } else { Texts::Plain });
            }
            self.path.pop();
        }
        self.path.pop();
    }

    fn field(&mut self, name: &str, field: &Field, texts: Texts) {
        self.path.push(name.to_owned());
        if name.contains(OPEN) {
            self.refuse(Place::at(&self.overlay.document.file, field.key), "the name of a field");
        }
        // The words of patches themselves, such as $patch, are no values.
        self.node(&field.node, if name.starts_with('$') { Texts::Plain } else { texts });
        self.path.pop();
    }

    fn node(&mut self, node: &Node, texts: Texts) {
        for (name, field) in node.fields() {
            self.field(name, field, texts);
        }
        for (index, item) in node.items().iter().enumerate() {
            self.path.push(index.to_string());
            self.node(item, texts);
            self.path.pop();
        }
        let Some(text) = node.as_str().filter(|text| text.contains(OPEN)) else { return };
        let place = self.overlay.document.at(node.position);
        if texts == Texts::Plain {
            return self.refuse(place, &self.path.join("."));
        }
        match parts(text) {
            Ok(parts) => self.hole(place, parts),
            Err(message) => self.problem(place, message),
        }
    }

    fn hole(&mut self, place: Place, parts: Vec<Part>) {
        let is_value = |part: &Part| matches!(part, Part::Expression(Expression::Value(_)));
        if self.overlay.table.is_none() && parts.iter().any(is_value) {
            self.problem(
                place,
                "the overlay has no table: its values are said, or their file is named, in spec.values".to_owned(),
            );
        }
        self.holes.push(Hole { path: self.path.clone(), parts });
    }

    fn refuse(&mut self, place: Place, what: &str) {
        self.problem(place, format!("an expression cannot stand in {what}, only in values of parameters and patches"));
    }

    fn problem(&mut self, place: Place, message: String) {
        self.problems.push(Problem::document(place, message).about(self.overlay.document.id.clone()));
    }
}

#[cfg(test)]
mod tests;
