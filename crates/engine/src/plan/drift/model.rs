//! The facts that the `OpenAPI` of an API server gives about its kinds, as far as an estimate needs them: how lists and
//! mappings merge (KEP-555, `x-kubernetes-list-type`) and which values the server fills in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::object::Gvk;

/// The longest chain of references that is followed in one place: a schema that refers to itself is wrong.
const DEEPEST: usize = 8;

/// The keys of schemas that concern merging and defaults; everything else is left out.
const KEPT: [&str; 10] = [
    "$ref",
    "allOf",
    "properties",
    "additionalProperties",
    "items",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-group-version-kind",
];

/// The schemas of some kinds.
#[derive(Clone, Debug, Default)]
pub struct Model {
    schemas: BTreeMap<String, Value>,
    roots: BTreeMap<Gvk, String>,
}

/// A place in a schema; one of which nothing is known is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule<'a> {
    model: &'a Model,
    at: Option<&'a Value>,
}

/// The way in which two lists become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListType {
    /// The new one stands for the old one.
    Atomic,
    /// Values are joined.
    Set,
    /// Elements with the same keys are joined.
    Map(Vec<String>),
}

impl Model {
    /// Takes what is said about some kinds out of a document of `/openapi/v3/…`, and everything that it refers to.
    pub fn add(&mut self, document: &Value, kinds: &BTreeSet<Gvk>) {
        let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) else { return };
        let mut open: Vec<String> = Vec::new();
        for (name, schema) in schemas {
            for kind in kinds.iter().filter(|kind| is_of(schema, kind)) {
                self.roots.insert(kind.clone(), name.clone());
                open.push(name.clone());
            }
        }
        while let Some(name) = open.pop() {
            let Some(schema) = schemas.get(&name).filter(|_| !self.schemas.contains_key(&name)) else { continue };
            let kept = kept(schema);
            references(&kept, &mut open);
            self.schemas.insert(name, kept);
        }
    }

    /// Tells whether a kind is one of those that every API server has.
    pub(super) fn is_built_in(&self, kind: &Gvk) -> bool {
        self.roots.get(kind).is_some_and(|name| name.starts_with("io.k8s.api."))
    }

    /// Returns what is known of a kind.
    pub(super) fn root(&self, kind: &Gvk) -> Rule<'_> {
        let at = self.roots.get(kind).and_then(|name| self.schemas.get(name));
        Rule { model: self, at }
    }
}

impl<'a> Rule<'a> {
    /// Returns the rule of a field, or of every value of a mapping.
    pub(super) fn field(self, name: &str) -> Self {
        let at = self.look(|schema| {
            let properties = schema.get("properties").and_then(|properties| properties.get(name));
            properties.or_else(|| schema.get("additionalProperties").filter(|below| below.is_object()))
        });
        Self { at, ..self }
    }

    /// Returns the rule of the elements of a list.
    pub(super) fn element(self) -> Self {
        Self { at: self.look(|schema| schema.get("items")), ..self }
    }

    /// Returns how lists merge here, if that is said.
    pub(super) fn list_type(self) -> Option<ListType> {
        let keys = || {
            let keys = self.look(|schema| schema.get("x-kubernetes-list-map-keys")).and_then(Value::as_array);
            keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        match self.look(|schema| schema.get("x-kubernetes-list-type"))?.as_str()? {
            "map" => Some(ListType::Map(keys())),
            "set" => Some(ListType::Set),
            _ => Some(ListType::Atomic),
        }
    }

    /// Tells whether a mapping stands or goes as a whole.
    pub(super) fn is_atomic(self) -> bool {
        self.look(|schema| schema.get("x-kubernetes-map-type")).is_some_and(|kind| kind == "atomic")
    }

    /// Tells whether it is a mapping of anybody's names, or a list: built-in kinds have none that are empty.
    pub(super) fn is_collection(self) -> bool {
        self.look(|schema| schema.get("additionalProperties").or_else(|| schema.get("items"))).is_some()
    }

    /// Tells whether the value is an amount, which a server writes in its own way.
    pub(super) fn is_quantity(self) -> bool {
        self.at.is_some_and(|at| reference(at).is_some_and(|name| name.ends_with("api.resource.Quantity")))
    }

    /// Returns the fields that the server fills in where the mapping is there, with their values.
    ///
    /// Schemas of built-in kinds give an empty default to every field that Go cannot leave out; those say nothing.
    pub(super) fn defaults(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let properties = self.look(|schema| schema.get("properties")).and_then(Value::as_object);
        properties.into_iter().flatten().filter_map(|(name, schema)| {
            let value = schema.get("default").filter(|value| !is_nothing(value))?;
            Some((name, value))
        })
    }

    /// Returns the first thing that a look at the schema finds, references followed.
    fn look(self, look: impl Fn(&'a Value) -> Option<&'a Value>) -> Option<&'a Value> {
        let mut at = self.at?;
        for _ in 0..DEEPEST {
            if let Some(found) = look(at) {
                return Some(found);
            }
            at = self.model.schemas.get(reference(at)?)?;
        }
        None
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Names what a schema refers to; where a description or a default stands beside it, the reference is one of `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"))?;
    direct.as_str()?.strip_prefix("#/components/schemas/")
}

fn is_of(schema: &Value, kind: &Gvk) -> bool {
    let known = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    known.into_iter().flatten().any(|known| {
        known["group"] == kind.group.as_str()
            && known["version"] == kind.version.as_str()
            && known["kind"] == kind.kind.as_str()
    })
}

/// A schema without what nobody here reads: descriptions are most of it.
fn kept(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let value = match name.as_str() {
                    "properties" => {
                        let all = value.as_object()?.iter().map(|(name, value)| (name.clone(), kept(value)));
                        all.collect::<Map<_, _>>().into()
                    }
                    "items" | "additionalProperties" | "allOf" => kept(value),
                    _ => value.clone(),
                };
                KEPT.contains(&name.as_str()).then(|| (name.clone(), value))
            };
            fields.iter().filter_map(field).collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(kept).collect(),
        value => value.clone(),
    }
}

/// Collects what a schema refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    if let Some(name) = reference(schema) {
        found.push(name.to_owned());
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|value| references(value, found)),
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
