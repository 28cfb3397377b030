//! The state of an object as its controller tells it, or those who use it: by the conditions and fields that its row in
//! the table of kinds names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Health, condition_of, message, number, unseen};
use crate::kinds::row::{Refusals, Said};
use crate::object::at;

/// Reads what a controller says of the newest generation of an object.
pub(super) fn health(rule: &Said, body: &Value) -> Health {
    let said = rule.conditions.iter().find_map(|kind| condition_of(body, kind));
    if !is_newest(body, said) {
        return unseen(&rule.by);
    }
    if has_any(body, &rule.failed) {
        let why = said.or_else(|| condition_of(body, rule.reason.as_deref()?));
        return Health::Failed(why.map_or_else(|| rule.failure.clone(), |why| message(why, &rule.unready)));
    }
    if has_any(body, &rule.current) {
        return Health::Current;
    }
    match (said, &rule.phase) {
        (Some(said), _) if said["status"] == "True" => Health::Current,
        (Some(said), _) => Health::InProgress(message(said, &rule.unready)),
        (None, Some(phase)) => {
            let named = at(body, &phase.field).into_iter().find_map(Value::as_str).unwrap_or(&phase.first);
            Health::InProgress(format!("its phase is {named}"))
        }
        (None, None) => Health::InProgress(rule.unsaid.clone()),
    }
}

/// Each of those who use an object says whether they can; one that nobody uses is as it should be.
pub(super) fn refused(rule: &Refusals, body: &Value) -> Health {
    let mut conditions = at(body, &rule.at).into_iter();
    let is_refusal =
        |said: &&Value| said["status"] == "False" && rule.conditions.iter().any(|kind| said["type"] == kind.as_str());
    conditions.find(is_refusal).map_or(Health::Current, |said| Health::InProgress(message(said, &rule.unready)))
}

/// Not every release writes which generation a condition is about; where none is said, the condition counts.
fn is_newest(body: &Value, said: Option<&Value>) -> bool {
    let of_condition = said.and_then(|said| said["observedGeneration"].as_i64());
    let of_status = body.pointer("/status/observedGeneration").and_then(Value::as_i64);
    of_status.max(of_condition).is_none_or(|observed| observed >= number(body, "/metadata/generation"))
}

fn has_any(body: &Value, values: &[BTreeMap<String, Value>]) -> bool {
    values.iter().any(|all| all.iter().all(|(path, value)| at(body, path) == [value]))
}
