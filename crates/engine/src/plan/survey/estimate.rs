//! What an object would become, as far as that can be known without asking for a dry run.
//!
//! A dry run needs the right to write. Without it, what an API server does is done here: what is wanted is merged into
//! what there is, as server-side apply merges (KEP-555), amounts are written as a server writes them, and defaults are
//! filled in. What cannot be known is what webhooks change, what the server refuses, and what it chooses by itself.

use serde_json::{Map, Value, json};

use super::amount::canonical;
use super::defaults;
use super::model::{ListType, Model, Rule};
use crate::live::Live;
use crate::plan::conflicts::table::is_same;
use crate::plan::conflicts::{Negotiated, managed_fields};
use crate::plan::fields::leaf::keys;
use crate::plan::fields::{position, union};

/// Returns the body that a live object would have if what was settled about it was applied.
pub fn estimated(agreed: &Negotiated, live: &Live, model: &Model) -> Value {
    let owned = managed_fields(live).iter().fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]));
    let kind = agreed.object.gvk();
    let rule = model.root(&kind);
    let mut body = merged(&agreed.remainder(live), agreed.object.body(), Place { rule, owned: &owned });
    defaults::fill(&mut body, &kind, rule);
    body
}

/// What is known of a place: its schema, and who owns what below it. The one is not always to be had, and the other says
/// nothing of what nobody owns.
#[derive(Clone, Copy)]
struct Place<'a> {
    rule: Rule<'a>,
    owned: &'a Value,
}

impl<'a> Place<'a> {
    fn field(self, name: &str) -> Self {
        Self { rule: self.rule.field(name), owned: self.owned.get(format!("f:{name}")).unwrap_or(&Value::Null) }
    }

    fn element(self, element: &Value) -> Self {
        let mut words = self.owned.as_object().into_iter().flatten();
        let it = words.find(|(word, _)| position(std::slice::from_ref(element), word).is_some());
        Self { rule: self.rule.element(), owned: it.map_or(&Value::Null, |(_, below)| below) }
    }

    /// How lists merge here: as the schema says, or else as it looks from who owns what.
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

fn merged(live: &Value, wanted: &Value, place: Place<'_>) -> Value {
    match (live, wanted) {
        _ if is_same(wanted, live) && !wanted.is_object() && !wanted.is_array() => live.clone(),
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
        _ if place.rule.is_quantity() => canonical(wanted),
        _ => wanted.clone(),
    }
}

fn lists(live: &[Value], wanted: &[Value], place: Place<'_>) -> Value {
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
    let is_wanted = |element: &Value| wanted.iter().any(|wanted| is_one(wanted, element));
    let mut all: Vec<Value> = Vec::new();
    let mut open = live.iter().peekable();
    // What is wanted comes in its order, and what only the live list has stays before what it stood before.
    for element in wanted {
        let is_ahead = open.clone().any(|live| is_one(live, element));
        while let Some(other) = open.next_if(|live| !is_wanted(live) || (is_ahead && !is_one(live, element))) {
            if !is_wanted(other) {
                all.push(other.clone());
            }
        }
        open.next_if(|live| is_one(live, element));
        all.push(join(element));
    }
    all.extend(open.filter(|live| !is_wanted(live)).cloned());
    all.into()
}

/// A list that stands as a whole: elements that say the same are as they are.
fn whole(live: &[Value], wanted: &[Value], place: Place<'_>) -> Value {
    let element = |(index, wanted): (usize, &Value)| match live.get(index) {
        Some(live) if live.is_object() && is_same(wanted, live) => live.clone(),
        _ => merged(&Value::Null, wanted, Place { rule: place.rule.element(), owned: &Value::Null }),
    };
    wanted.iter().enumerate().map(element).collect()
}

/// What tells an element from the others; a protocol that is not there is TCP.
fn identity(element: &Value, keys: &[String]) -> Vec<Value> {
    if keys.is_empty() {
        return vec![element.clone()];
    }
    let default = |key: &String| if key == "protocol" { json!("TCP") } else { Value::Null };
    keys.iter().map(|key| element.get(key).cloned().unwrap_or_else(|| default(key))).collect()
}
