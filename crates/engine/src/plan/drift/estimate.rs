//! The estimate of what an object would become, as far as that can be known without asking for a dry run.
//!
//! A dry run needs the right to write. Without it, what an API server does is done here: what is wanted is merged into
//! what there is, as server-side apply merges (KEP-555), amounts are written as a server writes them, and defaults are
//! filled in. What cannot be known is what webhooks change, what the server refuses, and what it chooses by itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::defaults;
use super::model::{ListType, Model, Rule};
use crate::live::Live;
use crate::plan::conflicts::same::is_same;
use crate::plan::conflicts::{Negotiated, managed_fields};
use crate::plan::fields::leaf::{is_empty, keys};
use crate::plan::fields::{position, union};
use crate::quantity::{self, places};

/// The annotation in which a server counts the templates of a `DaemonSet`, whoever it says has written that.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Returns the body that a live object would have if what was decided about it was applied.
pub fn estimated(agreed: &Negotiated, live: &Live, model: &Model) -> Value {
    let owned = managed_fields(live).iter().fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]));
    let kind = agreed.object.gvk();
    let rule = model.root(&kind);
    let amounts = places::Place::built_in(&kind.group, &kind.kind);
    let mut body = merged(&agreed.remainder(live), agreed.object.body(), FieldContext { rule, owned: &owned, amounts });
    if has_twins(&body) {
        // A server would not take that; it becomes what a dry run tries instead.
        body = agreed.laid(live);
    }
    defaults::fill(&mut body, &kind, rule);
    if let Some(count) = live.object.annotation(TEMPLATE_GENERATION) {
        body["metadata"]["annotations"][TEMPLATE_GENERATION] = count.into();
    }
    if model.is_built_in(&kind) {
        tidy(&mut body, rule);
    }
    body
}

/// Tells whether two ports of one list have one name.
fn has_twins(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(field, value)| {
            let ports = value.as_array().filter(|_| field == "ports").map_or(&[][..], Vec::as_slice);
            let names: Vec<&Value> = ports.iter().filter_map(|port| port.get("name")).collect();
            let distinct: BTreeSet<&str> = names.iter().filter_map(|name| name.as_str()).collect();
            names.len() > distinct.len() || has_twins(value)
        }),
        Value::Array(list) => list.iter().any(has_twins),
        _ => false,
    }
}

/// Takes out empty lists and mappings of anybody's names, and empty values of variables: a server does not keep them in what
/// it knows.
fn tidy(value: &mut Value, rule: Rule<'_>) {
    match value {
        Value::Object(map) => {
            for variable in map.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                variable
                    .as_object_mut()
                    .into_iter()
                    .for_each(|it| it.retain(|name, value| name != "value" || value != ""));
            }
            map.iter_mut().for_each(|(name, value)| tidy(value, rule.field(name)));
            map.retain(|name, value| !(is_empty(value) && rule.field(name).is_collection()));
        }
        Value::Array(list) => list.iter_mut().for_each(|element| tidy(element, rule.element())),
        _ => {}
    }
}

/// The facts about a place: its schema, who owns what below it, and what a server writes in its own way. The first is
/// not always to be had, the second says nothing of what nobody owns, and the third knows no kinds of others: there a
/// server writes amounts as they were written.
#[derive(Clone, Copy)]
struct FieldContext<'a> {
    rule: Rule<'a>,
    owned: &'a Value,
    amounts: places::Place,
}

impl FieldContext<'_> {
    fn field(self, name: &str) -> Self {
        Self {
            rule: self.rule.field(name),
            owned: self.owned.get(format!("f:{name}")).unwrap_or(&Value::Null),
            amounts: self.amounts.field(name),
        }
    }

    fn element(self, element: &Value) -> Self {
        let mut words = self.owned.as_object().into_iter().flatten();
        let it = words.find(|(word, _)| position(std::slice::from_ref(element), word).is_some());
        Self { rule: self.rule.element(), owned: it.map_or(&Value::Null, |(_, below)| below), ..self }
    }

    fn is_amount(self) -> bool {
        self.rule.is_quantity() || self.amounts.is_amount()
    }

    /// Returns how lists merge here: as the schema says, or else as it looks from who owns what.
    fn list_type(self) -> ListType {
        self.rule.list_type().unwrap_or_else(|| {
            let words = || self.owned.as_object().into_iter().flatten().map(|(word, _)| word.as_str());
            match words().find(|word| word.starts_with("k:")) {
                Some(word) => ListType::Map(keys(word).keys().cloned().collect()),
                None if words().any(|word| word.starts_with("v:")) => ListType::Set,
                None => ListType::Atomic,
            }
        })
    }
}

fn merged(live: &Value, wanted: &Value, place: FieldContext<'_>) -> Value {
    match (live, wanted) {
        _ if place.is_amount() && quantity::is_same(wanted, live) => live.clone(),
        (Value::Object(live), Value::Object(wanted)) if !place.rule.is_atomic() => {
            let mut all = live.clone();
            for (field, wanted) in wanted {
                let value = merged(live.get(field).unwrap_or(&Value::Null), wanted, place.field(field));
                all.insert(field.clone(), value);
            }
            all.into()
        }
        (Value::Array(live), Value::Array(wanted)) => lists(live, wanted, place),
        (Value::Null, Value::Object(_)) => merged(&Map::new().into(), wanted, place),
        (Value::Null, Value::Array(wanted)) => lists(&[], wanted, place),
        _ if place.is_amount() => quantity::canonical(wanted),
        _ if !wanted.is_array() && !wanted.is_object() && is_same(wanted, live, place.amounts) => live.clone(),
        _ => wanted.clone(),
    }
}

fn lists(live: &[Value], wanted: &[Value], place: FieldContext<'_>) -> Value {
    let keys = match place.list_type() {
        ListType::Atomic => return whole(live, wanted, place),
        ListType::Set => Vec::new(),
        ListType::Map(keys) => keys,
    };
    let is_one = |a: &Value, b: &Value| identity(a, &keys) == identity(b, &keys);
    let join = |element: &Value| {
        let known = live.iter().find(|live| is_one(live, element)).unwrap_or(&Value::Null);
        merged(known, element, place.element(element))
    };
    let is_in = |list: &[Value], element: &Value| list.iter().any(|other| is_one(other, element));
    let mut all: Vec<Value> = Vec::new();
    let mut open = live.iter().peekable();
    // What is wanted comes in its order; what only the live list has comes before the next element that both have, as
    // it stands before that or, if it has been passed, anywhere.
    for (index, element) in wanted.iter().enumerate() {
        let next = wanted[index..].iter().find(|wanted| is_in(live, wanted));
        let is_before = |other: &&Value| match next {
            Some(next) => !is_one(other, next),
            None => !is_in(wanted, other),
        };
        while let Some(other) = open.next_if(is_before) {
            if !is_in(wanted, other) {
                all.push(other.clone());
            }
        }
        open.next_if(|other| next.is_none_or(|next| is_one(element, next)) && is_in(wanted, other));
        all.push(join(element));
    }
    all.extend(open.filter(|other| !is_in(wanted, other)).cloned());
    all.into()
}

/// A list that stands as a whole: elements that say the same are as they are.
fn whole(live: &[Value], wanted: &[Value], place: FieldContext<'_>) -> Value {
    let element = |(index, wanted): (usize, &Value)| match live.get(index) {
        Some(live) if live.is_object() && is_same(wanted, live, place.amounts) => live.clone(),
        _ => merged(&Value::Null, wanted, FieldContext { rule: place.rule.element(), owned: &Value::Null, ..place }),
    };
    wanted.iter().enumerate().map(element).collect()
}

/// Returns what tells an element from the others; a protocol that is not there is TCP.
fn identity(element: &Value, keys: &[String]) -> Vec<Value> {
    if keys.is_empty() {
        return vec![element.clone()];
    }
    let default = |key: &String| if key == "protocol" { json!("TCP") } else { Value::Null };
    keys.iter().map(|key| element.get(key).cloned().unwrap_or_else(|| default(key))).collect()
}
