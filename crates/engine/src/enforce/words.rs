//! The meanings of the names in a rule, by the schemas of what it is about.
//!
//! A field that is not set makes a rule not apply, so that one that does not exist must be found here: otherwise a
//! misspelled rule would never be broken.

use std::collections::BTreeSet;

use crate::check::suggest;
use crate::schema::{Found, Schema};
use crate::spec::{GATEWAY_API, Kinds};

/// The variable that holds the Gateway.
pub(super) const GATEWAY: &str = "gateway";

/// The variable that holds all merged parameters.
pub(super) const PARAMS: &str = "params";

/// The variable that holds the spec, whatever it is.
pub(super) const RESOURCE: &str = "resource";

/// The variable that holds an object of a cluster, in an expression about its health.
pub(super) const OBJECT: &str = "object";

/// The variable that holds what is known of the cluster.
pub(super) const CLUSTER: &str = "cluster";

/// The meanings of the names in a rule.
#[derive(Debug)]
pub struct Vocabulary<'a> {
    parameters: Vec<&'a Schema>,
    gateway: Option<&'a Schema>,
    /// The possible beginnings of names, beside the fields of parameters.
    roots: &'static [&'static str],
}

/// The meaning of a path: what stands there.
pub(super) enum Meaning<'a> {
    /// Something of one of these types, in the words of JSON schema; none is any.
    Types(BTreeSet<&'a str>),
    /// Anything.
    Anything,
    /// Nothing; perhaps this name was meant.
    Unknown(Option<&'a str>),
}

impl Meaning<'_> {
    /// Tells whether it is certainly a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::Types(types) if types.len() == 1 && types.contains("array"))
    }
}

impl<'a> Vocabulary<'a> {
    /// Puts together what a rule about parameters of some kinds can name.
    pub fn new(parameters: impl IntoIterator<Item = &'a Schema>, kinds: &'a Kinds) -> Self {
        let gateway = kinds.get(&(GATEWAY_API.to_owned(), "Gateway".to_owned())).map(|kind| &kind.schema);
        Self { parameters: parameters.into_iter().collect(), gateway, roots: &[GATEWAY, RESOURCE, PARAMS, CLUSTER] }
    }

    /// Returns what an expression about an object of any kind can name.
    pub(crate) fn of_object() -> Self {
        Self { parameters: Vec::new(), gateway: None, roots: &[OBJECT] }
    }

    /// Puts together what a rule about any parameters can name.
    pub(crate) fn of_all(kinds: &'a Kinds) -> Self {
        let parameters = kinds.values().filter(|kind| kind.is_parameters).map(|kind| &kind.schema);
        Self::new(parameters, kinds)
    }

    /// Returns the names that a path can begin with.
    pub(super) fn roots(&self) -> impl Iterator<Item = &'a str> {
        let fields = self.parameters.iter().filter_map(|schema| match schema.follow(["spec"]) {
            Found::Rule(rule) => Some(rule.properties.keys().map(String::as_str)),
            Found::Anything | Found::Unknown => None,
        });
        fields.flatten().chain(self.roots.iter().copied())
    }

    pub(super) fn is_root(&self, name: &str) -> bool {
        self.roots().any(|root| root == name)
    }

    /// Says what stands at a path.
    pub(super) fn look_up(&self, path: &[String]) -> Meaning<'a> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [root, ..] if *root == OBJECT && self.roots.contains(&OBJECT) => Meaning::Anything,
            [CLUSTER] | [CLUSTER, "labels"] => Meaning::Types(BTreeSet::from(["object"])),
            [CLUSTER, "name"] | [CLUSTER, "labels", _] => Meaning::Types(BTreeSet::from(["string"])),
            [CLUSTER, wrong, ..] => Meaning::Unknown(suggest(wrong, ["name", "labels"])),
            // Specs of all kinds are looked at; each has a schema of its own.
            [RESOURCE, ..] => Meaning::Anything,
            [GATEWAY, below @ ..] => in_schemas(self.gateway.into_iter(), &[], below),
            [PARAMS, parts @ ..] | parts => in_schemas(self.parameters.iter().copied(), &["spec"], parts),
        }
    }
}

/// Looks a path up in several schemas; one that knows it is enough.
fn in_schemas<'a>(schemas: impl Iterator<Item = &'a Schema>, prefix: &[&str], parts: &[&str]) -> Meaning<'a> {
    let path: Vec<&str> = prefix.iter().chain(parts).copied().collect();
    let mut types = BTreeSet::new();
    let mut is_known = false;
    let mut near: Option<(usize, Option<&str>)> = None;
    for schema in schemas {
        match schema.follow(path.iter().copied()) {
            Found::Anything => return Meaning::Anything,
            Found::Rule(rule) if !rule.any_of.is_empty() => return Meaning::Anything,
            Found::Rule(rule) => {
                is_known = true;
                types.extend(rule.types.iter().map(String::as_str));
            }
            Found::Unknown => near = near.max(Some(nearest(schema, &path))),
        }
    }
    if is_known { Meaning::Types(types) } else { Meaning::Unknown(near.and_then(|(_, near)| near)) }
}

/// Says how far a path leads, and which field was perhaps meant there.
fn nearest<'a>(schema: &'a Schema, path: &[&str]) -> (usize, Option<&'a str>) {
    let leads = |end: &usize| matches!(schema.follow(path[..*end].iter().copied()), Found::Rule(_));
    let end = (0..path.len()).rev().find(leads).unwrap_or_default();
    let fields = match schema.follow(path[..end].iter().copied()) {
        Found::Rule(rule) => rule.properties.keys().map(String::as_str).collect(),
        Found::Anything | Found::Unknown => Vec::new(),
    };
    (end, suggest(path[end], fields))
}
