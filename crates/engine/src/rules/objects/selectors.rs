//! Selectors of labels, and whether they select what they are for.

use serde_json::{Map, Value};

use super::Sheet;
use super::values::place;
use crate::spec::metadata::{is_label_key, is_label_value};

const KEY_HINT: &str = "write the key of a label, such as app.kubernetes.io/name";
const VALUE_HINT: &str = "write up to 63 letters, digits, dashes, underscores and dots, no sign at an end";

/// Checks a selector. What is not there selects as its kind says.
pub(super) fn check(sheet: &mut Sheet<'_>, path: &[&str], selector: &Value) {
    labels(sheet, &[path, &["matchLabels"]].concat(), &selector["matchLabels"]);
    for (index, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        requirement(sheet, &[path, &["matchExpressions", &index.to_string()]].concat(), expression);
    }
}

/// Checks labels that are wanted.
pub(super) fn labels(sheet: &mut Sheet<'_>, path: &[&str], labels: &Value) {
    let at = place(path);
    for (key, value) in labels.as_object().into_iter().flat_map(Map::iter) {
        let (path, value) = ([path, &[key.as_str()]].concat(), value.as_str().unwrap_or_default());
        if !is_label_key(key) {
            sheet.say_of(&path, true, (format!("{at} has {key:?}, which is no key of a label"), None));
        } else if !is_label_value(value) {
            let message = format!("{at} has {key:?} with {value:?}, which is no value of a label");
            sheet.say(&path, (message, "write what the labels of the pods have"));
        }
    }
}

fn requirement(sheet: &mut Sheet<'_>, path: &[&str], expression: &Value) {
    let at = place(path);
    let [key, operator] = ["key", "operator"].map(|field| expression[field].as_str().unwrap_or_default());
    let values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !is_label_key(key) {
        let message = format!("{at} has the key {key:?}, which is no key of a label");
        sheet.say(&[path, &["key"]].concat(), (message, KEY_HINT));
    }
    if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
        let message = format!("{at} has the value {value:?}, which is no value of a label");
        sheet.say(&[path, &["values"]].concat(), (message, VALUE_HINT));
    }
    let (message, hint) = match operator {
        "In" | "NotIn" if values.is_empty() => (format!("{at} is {operator} of no values"), "write at least one"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            (format!("{at} has the operator {operator}, and values"), "write In or NotIn, or no values")
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => return,
        _ => (format!("{at} has the operator {operator:?}"), "write In, NotIn, Exists or DoesNotExist"),
    };
    sheet.say(&[path, &["operator"]].concat(), (message, hint));
}

/// Tells whether labels are as an expression wants them.
pub(super) fn is_met(expression: &Value, labels: &Value) -> bool {
    let own = &labels[expression["key"].as_str().unwrap_or_default()];
    let is_among = || expression["values"].as_array().is_some_and(|values| values.contains(own));
    match expression["operator"].as_str() {
        Some("In") => is_among(),
        Some("NotIn") => !is_among(),
        Some("Exists") => own.is_string(),
        Some("DoesNotExist") => !own.is_string(),
        _ => true,
    }
}
