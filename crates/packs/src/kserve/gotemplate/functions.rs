//! The functions that templates may call: those that Go brings along, and those that KServe adds.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::super::{names, quantity};
use super::data::{Holds, Item};
use crate::json::{items, said, without_nulls};

const KNOWN: &str = "and, or, not, eq, ne, lt, le, gt, ge, len, index, print, printf, ChildName, kvTransferConfig and \
                     shutdownTimeout";

pub(super) fn call(name: &str, arguments: &[Item]) -> Result<Item, String> {
    let values: Vec<&Value> = arguments.iter().map(|item| &item.value).collect();
    match (name, values.as_slice()) {
        ("not", [_]) => Ok(Item::plain(!arguments[0].is_true())),
        ("eq", [first, rest @ ..]) if !rest.is_empty() => equal(first, rest).map(Item::plain),
        ("ne", [first, second]) => equal(first, &[second]).map(|equal| Item::plain(!equal)),
        ("lt", [first, second]) => compare(first, second).map(|order| Item::plain(order.is_lt())),
        ("le", [first, second]) => compare(first, second).map(|order| Item::plain(order.is_le())),
        ("gt", [first, second]) => compare(first, second).map(|order| Item::plain(order.is_gt())),
        ("ge", [first, second]) => compare(first, second).map(|order| Item::plain(order.is_ge())),
        ("len", [value]) => length(value).map(Item::plain),
        ("index", [value, keys @ ..]) => index(value, keys).map(|value| Item { value, holds: Holds::Any }),
        ("print", values) => print(values).map(Item::plain),
        ("printf", [Value::String(format), rest @ ..]) => printf(format, rest).map(Item::plain),
        ("ChildName", [Value::String(parent), Value::String(suffix)]) => Ok(Item::plain(names::child(parent, suffix))),
        ("kvTransferConfig", [spec]) => kv_transfer_config(spec).map(Item::plain),
        ("shutdownTimeout", [spec, Value::Number(pre_stop)]) => {
            Ok(Item::plain(shutdown_timeout(spec, pre_stop.as_i64().unwrap_or_default())))
        }
        (name, _) if KNOWN.split([',', ' ']).any(|known| known == name) => {
            Err(format!("{name} cannot be called with these arguments"))
        }
        (name, _) => Err(format!("there is no function {name:?}; presets can use {KNOWN}")),
    }
}

/// Returns a value as it is printed.
pub(super) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Err("the value is not set".to_owned()),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) => Err("a list cannot be printed".to_owned()),
        Value::Object(_) => Err("a mapping cannot be printed".to_owned()),
    }
}

fn equal(first: &Value, rest: &[&Value]) -> Result<bool, String> {
    for other in rest {
        match (first, other) {
            (Value::Bool(first), Value::Bool(other)) if first == other => return Ok(true),
            (Value::Bool(_), Value::Bool(_)) => {}
            _ if compare(first, other)?.is_eq() => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

fn compare(first: &Value, second: &Value) -> Result<Ordering, String> {
    match (first, second) {
        (Value::String(first), Value::String(second)) => Ok(first.cmp(second)),
        (Value::Number(first), Value::Number(second)) => {
            let order = first.as_f64().unwrap_or_default().partial_cmp(&second.as_f64().unwrap_or_default());
            order.ok_or_else(|| "these numbers have no order".to_owned())
        }
        _ => Err("values of two types cannot be compared".to_owned()),
    }
}

fn length(value: &Value) -> Result<usize, String> {
    match value {
        Value::String(text) => Ok(text.len()),
        Value::Array(items) => Ok(items.len()),
        Value::Object(fields) => Ok(fields.len()),
        _ => Err("len needs a text, a list or a map".to_owned()),
    }
}

fn index(value: &Value, keys: &[&Value]) -> Result<Value, String> {
    let mut found = value;
    for key in keys {
        let next = match key {
            Value::String(key) => found.get(key),
            Value::Number(index) => index.as_u64().and_then(|index| found.get(usize::try_from(index).ok()?)),
            _ => None,
        };
        found = next.ok_or_else(|| format!("there is nothing at {key}"))?;
    }
    Ok(found.clone())
}

/// Go puts a blank between two values of which neither is a text.
fn print(values: &[&Value]) -> Result<String, String> {
    let mut printed = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 && !value.is_string() && !values[index - 1].is_string() {
            printed.push(' ');
        }
        printed.push_str(&text(value)?);
    }
    Ok(printed)
}

fn printf(format: &str, arguments: &[&Value]) -> Result<String, String> {
    let (mut printed, mut arguments, mut chars) = (String::new(), arguments.iter(), format.chars());
    while let Some(char) = chars.next() {
        if char != '%' {
            printed.push(char);
            continue;
        }
        let verb = chars.next().ok_or("the format ends with %")?;
        if verb == '%' {
            printed.push('%');
            continue;
        }
        let value = arguments.next().ok_or("the format has more verbs than there are arguments")?;
        match (verb, value) {
            ('s', Value::String(_)) | ('d', Value::Number(_)) | ('t', Value::Bool(_)) | ('v', _) => {
                printed.push_str(&text(value)?);
            }
            ('q', Value::String(text)) => printed.push_str(&Value::from(text.as_str()).to_string()),
            _ => return Err(format!("%{verb} cannot print {value}")),
        }
    }
    match arguments.next() {
        None => Ok(printed),
        Some(_) => Err("there are more arguments than the format has verbs".to_owned()),
    }
}

/// Returns the option of vLLM that moves its cache of keys and values to memory and disks.
///
/// Its quotes are escaped, because presets put it into an assignment of a shell script.
fn kv_transfer_config(spec: &Value) -> Result<String, String> {
    if spec.is_null() {
        return Ok(String::new());
    }
    let cpu = quantity::bytes(&spec["cpu"]).ok_or("its cpu is no quantity, such as 64Gi")?;
    let tiers = items(&spec["secondary"]).enumerate().filter(|(_, tier)| tier["fileSystem"].is_object());
    let tiers: Vec<Value> =
        tiers.map(|(index, _)| json!({"root_dir": format!("/mnt/kv-cache-{index}"), "type": "fs"})).collect();
    let extra = without_nulls(json!({
        "cpu_bytes_to_use": cpu,
        "spec_name": "TieringOffloadingSpec",
        "eviction_policy": spec["evictionPolicy"].as_str().and_then(said),
        "secondary_tiers": Some(tiers).filter(|tiers| !tiers.is_empty()),
    }));
    let config =
        json!({"kv_connector": "OffloadingConnector", "kv_connector_extra_config": extra, "kv_role": "kv_both"});
    Ok(format!("--kv-transfer-config '{}'", config.to_string().replace('"', "\\\"")))
}

/// Returns how many seconds a server has for requests at work: what is left of the grace period of its pod after the
/// hook before the signal, less five for the end of the process itself.
fn shutdown_timeout(pod: &Value, pre_stop: i64) -> i64 {
    let grace = pod["terminationGracePeriodSeconds"].as_i64().unwrap_or(60);
    grace.saturating_sub(pre_stop).saturating_sub(grace.min(5)).max(0)
}
