//! Fields that choose the nodes of pods: selectors, affinity, tolerations, and how pods are spread.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Pod, items, text};
use crate::spec::metadata::{is_label_key, is_label_value};

/// The greatest weight of a preference.
const MOST_WEIGHT: i64 = 100;

const KEY_HINT: &str = "write the key of a label, such as topology.kubernetes.io/zone";

pub(super) fn check(pod: &mut Pod<'_>) {
    let spec = pod.spec;
    for (key, value) in spec["nodeSelector"].as_object().into_iter().flat_map(Map::iter) {
        label_key(pod, &["nodeSelector", key], key, "nodeSelector");
        if value.as_str().is_some_and(|value| !is_label_value(value)) {
            let message = format!("nodeSelector asks for the label {key:?} with the value {value}, which no label has");
            let hint = "write up to 63 letters, digits, dashes, underscores and dots, no sign at an end";
            pod.say(&["nodeSelector", key], (message, hint));
        }
    }
    items(&spec["tolerations"]).for_each(|it| toleration(pod, it));
    node_affinity(pod, &spec["affinity"]["nodeAffinity"]);
    for field in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(pod, (field, &spec["affinity"][field]));
    }
    spread(pod, &spec["topologySpreadConstraints"]);
}

fn label_key(pod: &mut Pod<'_>, path: &[&str], key: &str, place: &str) {
    if !is_label_key(key) {
        let what = if key.is_empty() { "no key".to_owned() } else { format!("the key {key:?}, which no label has") };
        pod.say(path, (format!("{place} has {what}"), KEY_HINT));
    }
}

fn toleration(pod: &mut Pod<'_>, toleration: &Value) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let path = ["tolerations"];
    if key.is_empty() && operator != "Exists" {
        pod.say(&path, ("a toleration has no key".to_owned(), "write a key, or operator: Exists for all taints"));
    } else if !key.is_empty() {
        label_key(pod, &path, key, "a toleration");
    }
    if operator == "Exists" && !text(toleration, "value").is_empty() {
        let message = format!("the toleration of {key:?} has operator Exists and a value");
        pod.say(&path, (message, "leave out the value, or write operator: Equal"));
    }
    if !toleration["tolerationSeconds"].is_null() && text(toleration, "effect") != "NoExecute" {
        let message = format!("the toleration of {key:?} has tolerationSeconds and not the effect NoExecute");
        pod.say(&path, (message, "write effect: NoExecute, or leave out tolerationSeconds"));
    }
}

fn node_affinity(pod: &mut Pod<'_>, affinity: &Value) {
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = &required["nodeSelectorTerms"];
    if required.is_object() && items(terms).next().is_none() {
        let message = "nodeAffinity requires none of any nodes: it has no nodeSelectorTerms".to_owned();
        pod.say(&["affinity", "nodeAffinity"], (message, "add a term, or leave the requirement out"));
    }
    let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"];
    for term in items(preferred) {
        weight(pod, "nodeAffinity", term);
    }
    for term in items(terms).chain(items(preferred).map(|term| &term["preference"])) {
        for expression in items(&term["matchExpressions"]) {
            requirement(pod, "nodeAffinity", expression, &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
        }
    }
}

fn pod_affinity(pod: &mut Pod<'_>, (field, affinity): (&str, &Value)) {
    let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"];
    items(preferred).for_each(|term| weight(pod, field, term));
    let required = items(&affinity["requiredDuringSchedulingIgnoredDuringExecution"]);
    for term in required.chain(items(preferred).map(|term| &term["podAffinityTerm"])) {
        label_key(pod, &["affinity", field], text(term, "topologyKey"), &format!("the topologyKey of {field}"));
        for selector in ["labelSelector", "namespaceSelector"] {
            of_selector(pod, &["affinity", field], (field, &term[selector]));
        }
    }
}

/// Checks a selector of labels.
fn of_selector(pod: &mut Pod<'_>, path: &[&str], (field, selector): (&str, &Value)) {
    for key in selector["matchLabels"].as_object().into_iter().flat_map(Map::keys) {
        label_key(pod, path, key, field);
    }
    for expression in items(&selector["matchExpressions"]) {
        requirement(pod, field, expression, &["In", "NotIn", "Exists", "DoesNotExist"]);
    }
}

fn weight(pod: &mut Pod<'_>, field: &str, term: &Value) {
    if !term["weight"].as_i64().is_some_and(|weight| (1..=MOST_WEIGHT).contains(&weight)) {
        let message = format!("a preference of {field} has the weight {}", term["weight"]);
        pod.say(&["affinity", field], (message, "write a weight from 1 to 100"));
    }
}

fn requirement(pod: &mut Pod<'_>, field: &str, expression: &Value, operators: &[&str]) {
    let (key, operator) = (text(expression, "key"), text(expression, "operator"));
    let path: &[&str] = if field == SPREAD { &[SPREAD] } else { &["affinity", field] };
    label_key(pod, path, key, field);
    let values = items(&expression["values"]).count();
    let (message, hint) = match operator {
        _ if !operators.contains(&operator) => {
            (format!("{field} has the operator {operator:?} for {key:?}"), operators.join(", "))
        }
        "In" | "NotIn" if values == 0 => {
            (format!("{field} asks for {key:?} {operator} no values"), "values".to_owned())
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            (format!("{field} asks for {key:?} {operator}, and has values"), "In or NotIn, or no values".to_owned())
        }
        "Gt" | "Lt" if values != 1 => {
            (format!("{field} asks for {key:?} {operator} {values} values"), "one".to_owned())
        }
        _ => return,
    };
    pod.say(path, (message, &format!("write {hint}")));
}

const SPREAD: &str = "topologySpreadConstraints";

fn spread(pod: &mut Pod<'_>, constraints: &Value) {
    let mut taken = BTreeSet::new();
    for constraint in items(constraints) {
        let (key, answer) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        let (message, hint) = match (&constraint["maxSkew"], answer) {
            _ if key.is_empty() => (format!("{SPREAD} has no topologyKey"), KEY_HINT),
            (skew, _) if skew.as_i64() < Some(1) => (format!("maxSkew for {key:?} is {skew}"), "write 1 or more"),
            (_, "DoNotSchedule" | "ScheduleAnyway") if !taken.insert((key, answer)) => {
                (format!("{SPREAD} says {answer} of {key:?} twice"), "keep one of the two")
            }
            (_, "ScheduleAnyway") if !constraint["minDomains"].is_null() => (
                format!("{SPREAD} has minDomains for {key:?}, and schedules anyway"),
                "leave it out, or write whenUnsatisfiable: DoNotSchedule",
            ),
            (_, "DoNotSchedule" | "ScheduleAnyway") => {
                of_selector(pod, &[SPREAD], (SPREAD, &constraint["labelSelector"]));
                continue;
            }
            _ => (
                format!("whenUnsatisfiable for {key:?} is {answer:?}"),
                "write whenUnsatisfiable: DoNotSchedule or ScheduleAnyway",
            ),
        };
        pod.say(&[SPREAD], (message, hint));
    }
}
