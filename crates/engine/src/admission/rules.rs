//! The rules of a definition in CEL (`x-kubernetes-validations`).
//!
//! A rule about a list says nothing of the item at fault; it
//! is found by trying how much of the list breaks the rule.

use std::cell::LazyCell;

use kube_cel::{ErrorKind, ValidationError, Validator};
use serde_json::Value;

use super::definition::Version;
use super::place::Path;
use crate::check::Mistake;
use crate::yaml::Node;

thread_local! {
    /// Kubernetes' functions, made once for each thread: they cannot be shared.
    static FUNCTIONS: LazyCell<Validator> = LazyCell::new(Validator::new);
}

/// Returns the rules that a value breaks, at the places that break them.
pub(super) fn check(root: &Node, (value, before): (&Value, Option<&Value>), version: &Version) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    for error in broken(value, before, version) {
        let path = Path::of_dotted(&error.field_path);
        let path = culprit(value, &path, &error.rule, version).unwrap_or(path);
        let message = format!("{}: {}", path.text(), told(&error, version));
        let mistake = Mistake { position: path.position(root), message, hint: None, fix: None };
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    mistakes
}

/// Returns the rules that are broken. One that cannot be read here is not: the server decides.
fn broken(value: &Value, before: Option<&Value>, version: &Version) -> Vec<ValidationError> {
    let result = FUNCTIONS.with(|functions| functions.validate_compiled(&version.rules, value, before));
    let errors = result.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().filter(|error| counts(&error.kind)).collect()
}

/// Tells whether a server refuses what has failed in a way.
fn counts(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::ValidationFailure | ErrorKind::EvaluationError)
}

/// Returns what a rule says of itself; where it fails before it can say no, that is its static message or the rule.
fn told(error: &ValidationError, version: &Version) -> String {
    match error.kind {
        ErrorKind::EvaluationError => {
            message(&version.schema, &error.rule).unwrap_or_else(|| format!("it does not obey {}", error.rule))
        }
        _ => error.message.clone(),
    }
}

/// Returns the message of a rule in a schema.
fn message(schema: &Value, rule: &str) -> Option<String> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                let has_it = map.get("rule").and_then(Value::as_str) == Some(rule);
                if let Some(message) = map.get("message").and_then(Value::as_str).filter(|_| has_it) {
                    return Some(message.trim().to_owned());
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

/// Returns the item of a list with which its beginning comes to break a rule about the list. A rule that no items break as
/// well is about what is missing.
fn culprit(value: &Value, path: &Path, rule: &str, version: &Version) -> Option<Path> {
    let pointer = path.pointer();
    let length = value.pointer(&pointer)?.as_array()?.len();
    let breaks = |kept: usize| {
        let mut shorter = value.clone();
        if let Some(Value::Array(items)) = shorter.pointer_mut(&pointer) {
            items.truncate(kept);
        }
        let is_it = |error: &ValidationError| error.rule == rule && Path::of_dotted(&error.field_path) == *path;
        broken(&shorter, None, version).iter().any(is_it)
    };
    if length == 0 || breaks(0) {
        return None;
    }
    let (mut keeps, mut fails) = (0, length);
    while fails - keeps > 1 {
        let middle = keeps.midpoint(fails);
        *(if breaks(middle) { &mut fails } else { &mut keeps }) = middle;
    }
    Some(path.below(&keeps.to_string()))
}
