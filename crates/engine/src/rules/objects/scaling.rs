//! The objects that scale and protect pods: `HorizontalPodAutoscalers` and `PodDisruptionBudgets`.

use serde_json::Value;

use super::services::word;
use super::values::place;
use super::{Sheet, selectors};

/// The types of metrics, each with the field that describes it.
const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

const TARGETS: [&str; 3] = ["AverageValue", "Utilization", "Value"];

/// The values of a target, of which a type of metric takes some.
const VALUES: [&str; 3] = ["averageUtilization", "averageValue", "value"];

/// The longest times of a rule for scaling, in seconds.
const LONGEST_WINDOW: i64 = 3_600;
const LONGEST_PERIOD: i64 = 1_800;

pub(super) fn autoscaler(sheet: &mut Sheet<'_>, spec: &Value) {
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if most < 1 {
        let message = format!("spec.maxReplicas is {most}");
        return sheet.say(&["spec", "maxReplicas"], (message, "write how many there may be at most"));
    }
    let least = spec["minReplicas"].as_i64().filter(|least| *least > most || *least < 1);
    if let Some(least) = least {
        let message = format!("spec.minReplicas is {least}, and spec.maxReplicas is {most}");
        sheet.say(&["spec", "minReplicas"], (message, "write a number from 1 to maxReplicas"));
    }
    reference(sheet, &["spec", "scaleTargetRef"], &spec["scaleTargetRef"]);
    for (index, entry) in spec["metrics"].as_array().into_iter().flatten().enumerate() {
        metric(sheet, &["spec", "metrics", &index.to_string()], entry);
    }
    for direction in ["scaleDown", "scaleUp"] {
        behavior(sheet, &["spec", "behavior", direction], &spec["behavior"][direction]);
    }
}

/// Says that a reference names nothing.
fn reference(sheet: &mut Sheet<'_>, path: &[&str], reference: &Value) {
    for field in ["kind", "name"] {
        if reference[field].as_str().is_none_or(str::is_empty) {
            let message = format!("{} has no {field}", place(path));
            sheet.say(&[path, &[field]].concat(), (message, "write the kind and the name of the object"));
        }
    }
}

fn metric(sheet: &mut Sheet<'_>, path: &[&str], metric: &Value) {
    let types = METRICS.map(|(ty, _)| ty);
    let ty = metric["type"].as_str().unwrap_or_default();
    let at = place(path);
    let Some((_, field)) = METRICS.into_iter().find(|(known, _)| *known == ty) else {
        if ty.is_empty() {
            let message = format!("{at} has no type, but must have {}", types.join(" or "));
            return sheet.say(path, (message, "write the type of the metric"));
        }
        return word(sheet, &[path, &["type"]].concat(), &metric["type"], &types);
    };
    for (_, other) in METRICS.into_iter().filter(|(_, other)| *other != field && !metric[*other].is_null()) {
        let message = format!("{at} has the type {ty}, and {other}");
        sheet.say(&[path, &[other]].concat(), (message, "leave out what is not of its type"));
    }
    let source = &metric[field];
    if source.is_null() {
        let message = format!("{at} has the type {ty}, and nothing below {field}");
        return sheet.say(path, (message, "say below it which metric is meant, and its target"));
    }
    let path = &[path, &[field]].concat();
    names(sheet, path, (field, source));
    target(sheet, &[path.as_slice(), &["target"]].concat(), (field, &source["target"]));
}

/// Says what of a metric is not named.
fn names(sheet: &mut Sheet<'_>, path: &[&str], (field, source): (&str, &Value)) {
    let names: &[&[&str]] = match field {
        "containerResource" => &[&["name"], &["container"]],
        "resource" => &[&["name"]],
        _ => &[&["metric", "name"]],
    };
    for name in names {
        let value = name.iter().fold(source, |value, field| &value[*field]);
        if value.as_str().is_none_or(str::is_empty) {
            let message = format!("{} has no {}", place(path), name.join("."));
            sheet.say(&[path, name].concat(), (message, "write it"));
        }
    }
    if field == "object" {
        reference(sheet, &[path, &["describedObject"]].concat(), &source["describedObject"]);
    }
}

/// Looks at what a metric is to be.
fn target(sheet: &mut Sheet<'_>, path: &[&str], (field, target): (&str, &Value)) {
    let at = place(path);
    match target["type"].as_str().filter(|ty| !ty.is_empty()) {
        Some(_) => word(sheet, &[path, &["type"]].concat(), &target["type"], &TARGETS),
        None => sheet.say(path, (format!("{at} has no type"), "write Utilization, AverageValue or Value")),
    }
    let wanted: &[&str] = match field {
        "containerResource" | "resource" => &VALUES[..2],
        "pods" => &VALUES[1..2],
        _ => &VALUES[1..],
    };
    let given = wanted.iter().filter(|value| !target[**value].is_null()).count();
    if given == 0 {
        let message = format!("{at} has no {}", wanted.join(" or "));
        sheet.say(path, (message, "write how much it is to be"));
    } else if given > 1 && field != "object" {
        let message = format!("{at} has {}, but must have one of them", wanted.join(" and "));
        sheet.say(path, (message, "leave one of them out"));
    }
    if target["averageUtilization"].as_i64().is_some_and(|percent| percent < 1) {
        let message = format!("{at}.averageUtilization is {}, but must be 1 or more", target["averageUtilization"]);
        sheet.say(&[path, &["averageUtilization"]].concat(), (message, "write a percentage of what is requested"));
    }
}

/// Looks at how fast something is scaled.
fn behavior(sheet: &mut Sheet<'_>, path: &[&str], rules: &Value) {
    word(sheet, &[path, &["selectPolicy"]].concat(), &rules["selectPolicy"], &["Disabled", "Max", "Min"]);
    within(sheet, path, ("stabilizationWindowSeconds", rules), (0, LONGEST_WINDOW));
    let Some(policies) = rules["policies"].as_array() else { return };
    if policies.is_empty() {
        let message = format!("{}.policies has no policy", place(path));
        sheet.say(&[path, &["policies"]].concat(), (message, "write one, or leave the field out"));
    }
    for (index, policy) in policies.iter().enumerate() {
        let index = index.to_string();
        let path = [path, &["policies", &index]].concat();
        match policy["type"].as_str().filter(|ty| !ty.is_empty()) {
            Some(_) => word(sheet, &[path.as_slice(), &["type"]].concat(), &policy["type"], &["Percent", "Pods"]),
            None => sheet.say(&path, (format!("{} has no type", place(&path)), "write Pods or Percent")),
        }
        within(sheet, &path, ("value", policy), (1, i64::from(i32::MAX)));
        within(sheet, &path, ("periodSeconds", policy), (1, LONGEST_PERIOD));
    }
}

fn within(sheet: &mut Sheet<'_>, path: &[&str], (field, of): (&str, &Value), (least, most): (i64, i64)) {
    if let Some(number) = of[field].as_i64().filter(|number| !(least..=most).contains(number)) {
        let message = format!("{}.{field} is {number}, but must be from {least} to {most}", place(path));
        sheet.say(&[path, &[field]].concat(), (message, "write a number in this range"));
    }
}

pub(super) fn budget(sheet: &mut Sheet<'_>, spec: &Value) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let message = "spec has minAvailable and maxUnavailable, but must have one at most".to_owned();
        sheet.say(&["spec", "maxUnavailable"], (message, "leave one of them out"));
    }
    selectors::check(sheet, &["spec", "selector"], &spec["selector"]);
    for field in ["minAvailable", "maxUnavailable"] {
        amount(sheet, &["spec", field], &spec[field], 100);
    }
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    word(sheet, &["spec", "unhealthyPodEvictionPolicy"], &spec["unhealthyPodEvictionPolicy"], &policies);
}

/// Says that a field is neither a number nor a percentage up to some limit.
pub(super) fn amount(sheet: &mut Sheet<'_>, path: &[&str], value: &Value, most: u32) {
    let is_wrong = match value {
        Value::Number(number) => number.as_i64().is_some_and(|number| number < 0),
        Value::String(text) => percentage(text).is_none_or(|percent| percent > most),
        _ => false,
    };
    if is_wrong {
        let message = format!("{} is {value}, but must be a number or a percentage", place(path));
        sheet.say(path, (message, "write 1 or \"50%\""));
    }
}

pub(super) fn percentage(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%').filter(|digits| digits.chars().all(|digit| digit.is_ascii_digit()));
    number.and_then(|digits| digits.parse().ok())
}
