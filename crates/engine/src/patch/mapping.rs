//! Merges a mapping of a patch into one of an object.

use std::mem::discriminant;

use serde_json::{Map, Value};

use super::fault::{Fault, Mistake, Side};
use super::list::{self, Items, Merged, Rules};
use super::order::arrange;
use super::types::Type;

/// The directive that says what becomes of the mapping that it stands in.
pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_PLAIN: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Merges a mapping into one of a type.
pub(super) fn merge(mut object: Fields, mut patch: Fields, ty: Type) -> Result<Fields, Mistake> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => Err(Fault::Directive(directive).into()),
        };
    }
    retain(&mut object, &mut patch).map_err(|mistake| mistake.below(RETAIN))?;
    put_lists_in_order(&mut object, &mut patch, ty)?;
    for (field, value) in patch {
        merge_field(&mut object, &field, value, ty).map_err(|mistake| mistake.below(&field))?;
    }
    Ok(object)
}

/// Drops fields that `$retainKeys` does not name.
fn retain(object: &mut Fields, patch: &mut Fields) -> Result<(), Mistake> {
    let names = match patch.remove(RETAIN) {
        None => return Ok(()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err(Fault::MustBeList(Side::Patch).into()),
    };
    if names.iter().any(|name| name.is_array() || name.is_object()) {
        return Err(Fault::Incomparable.into());
    }
    let is_retained = |field: &String| names.iter().any(|name| name == field.as_str());
    let is_directive = |field: &String| field.starts_with(DELETE_PLAIN) || field.starts_with(ORDER);
    let set = patch.iter().filter(|(field, value)| !value.is_null() && !is_directive(field));
    if let Some((field, _)) = set.into_iter().find(|(field, _)| !is_retained(field)) {
        return Err(Fault::NotRetained(field.clone()).into());
    }
    object.retain(|field, _| is_retained(field));
    Ok(())
}

/// Merges the lists for which there is a `$setElementOrder`, and puts them in that order.
fn put_lists_in_order(object: &mut Fields, patch: &mut Fields, ty: Type) -> Result<(), Mistake> {
    let directives: Vec<String> = patch.keys().filter(|field| field.starts_with(ORDER)).cloned().collect();
    for directive in directives {
        let Some(wanted) = patch.remove(&directive) else { continue };
        let in_directive = |mistake: Mistake| mistake.below(&directive);
        let field = list_named_by(&directive, ORDER).map_err(|fault| in_directive(fault.into()))?;
        let wanted = into_list(wanted, Side::Patch).map_err(in_directive)?;
        let in_field = |mistake: Mistake| mistake.below(field);
        let rules = Rules::of(ty, field).map_err(|fault| in_field(fault.into()))?;
        let before = object.remove(field).map(|value| into_list(value, Side::Object)).transpose().map_err(in_field)?;
        let change = patch.remove(field).map(|value| into_list(value, Side::Patch)).transpose().map_err(in_field)?;
        if before.is_none() && change.is_none() {
            continue;
        }
        let wanted = rules.ids(&wanted, Side::Patch).map_err(in_directive)?;
        let list = in_order(before, change, &wanted, &rules).map_err(in_field)?;
        object.insert(field.to_owned(), Value::Array(list));
    }
    Ok(())
}

/// Merges a list, if both sides have it, and puts it into the wanted order.
fn in_order(
    object: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    wanted: &[Value],
    rules: &Rules,
) -> Result<Vec<Value>, Mistake> {
    if !list::has_order_of(wanted, patch.as_deref().unwrap_or_default(), rules)? {
        return Err(Fault::OtherOrder.into());
    }
    let kind = list::kind(object.iter().chain(&patch).flatten())?;
    if rules.key.is_none() && (kind == Items::Mappings || wanted.iter().any(|id| id.is_array() || id.is_object())) {
        return Err(Fault::KeylessList.into());
    }
    let side = if object.is_none() { Side::Patch } else { Side::Object };
    let before = rules.ids(object.as_deref().unwrap_or_default(), Side::Object)?;
    let merged = match (object, patch) {
        (Some(object), Some(patch)) if rules.merges => list::merge(object, patch, rules, false)?,
        (Some(_), Some(patch)) => Merged { items: patch, before },
        (Some(object), None) => Merged { items: object, before },
        (None, patch) => Merged { items: patch.into_iter().flatten().filter_map(without_directives).collect(), before },
    };
    Ok(arrange(rules.items(merged.items, side)?, wanted, &merged.before)?)
}

fn into_list(value: Value, side: Side) -> Result<Vec<Value>, Mistake> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(Fault::MustBeList(side).into()),
    }
}

/// Returns the field that a directive such as `$setElementOrder/containers` is about.
fn list_named_by<'a>(directive: &'a str, prefix: &str) -> Result<&'a str, Fault> {
    directive.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or(Fault::IncompleteDirective)
}

/// Merges the value of one field of a patch.
fn merge_field(object: &mut Fields, field: &str, value: Value, ty: Type) -> Result<(), Mistake> {
    let deletes = field.starts_with(DELETE_PLAIN);
    let field = if deletes { list_named_by(field, DELETE_PLAIN)? } else { field };
    let merged = match (object.remove(field), value) {
        (_, Value::Null) => None,
        (None, _) if deletes => None,
        (Some(Value::Object(object)), Value::Object(patch)) => {
            let field = ty.field(field)?;
            let merged = if field.replaces { patch } else { merge(object, patch, field.mapping())? };
            Some(Value::Object(merged))
        }
        (Some(Value::Array(object)), Value::Array(patch)) => {
            let rules = Rules::of(ty, field)?;
            let joins = rules.merges || deletes;
            let items = if joins { list::merge(object, patch, &rules, deletes)?.items } else { patch };
            Some(Value::Array(items))
        }
        (Some(object), value) if deletes && !is_same_type(&object, &value) => Some(object),
        // What deletes something deletes nothing any more.
        (_, value) => without_directives(without_nulls(value)),
    };
    if let Some(value) = merged {
        object.insert(field.to_owned(), value);
    }
    Ok(())
}

/// Tells whether two values are of one type; whole numbers and others are of two.
pub(super) fn is_same_type(a: &Value, b: &Value) -> bool {
    discriminant(a) == discriminant(b) && a.is_f64() == b.is_f64()
}

/// Takes out what is set to nothing: it counts as not set, and is never written to a cluster.
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(field, value)| (field, without_nulls(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        plain => plain,
    }
}

/// Returns what is left of a value that is new without mappings that are directives.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            Some(fields.into_iter().filter_map(|(field, value)| Some((field, without_directives(value)?))).collect())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        plain => Some(plain),
    }
}

/// Returns a merged value without what strategic merging leaves behind in parts that are new: nulls, and directives
/// that met nothing. An API server, too, drops them when it reads the result as a type.
pub(super) fn finished(value: Value) -> Value {
    let is_directive =
        |field: &str| [DIRECTIVE, RETAIN, DELETE_PLAIN, ORDER].iter().any(|name| field.starts_with(name));
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(field, value)| !value.is_null() && !is_directive(field));
            kept.map(|(field, value)| (field, finished(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(finished).collect(),
        plain => plain,
    }
}
