//! Values that an API server judges by more than their type: names, labels, selectors, and fields that exclude each other.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::services::word;
use super::{Sheet, services};
use crate::spec::metadata;
use crate::yaml::Node;

/// A DNS label, as of RFC 1123.
static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").expect("a test reads it"));

/// Names with dots.
pub(super) static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").expect("a test reads it")
});

/// Kinds whose pods are those of their selector.
const SELECTING: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

/// The most letters in the name of a `CronJob`: its Jobs get more behind it.
const LONGEST_CRON_JOB: usize = 52;

pub(super) fn is_label(text: &str) -> bool {
    LABEL.is_match(text)
}

pub(super) fn check(sheet: &mut Sheet<'_>) {
    let (id, body) = (sheet.object.id().clone(), sheet.object.body());
    let spec = &body["spec"];
    of_metadata(sheet, &Node::of_value(body), &[]);
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "Service") => services::check(sheet, spec),
        ("apps", kind) if SELECTING.contains(&kind) => workload(sheet, spec),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(sheet, spec),
        ("policy", "PodDisruptionBudget") => budget(sheet, spec),
        _ => {}
    }
    // Gateways are called as their standard allows, and another rule speaks of their Services.
    let is_own = *sheet.texts.id == id;
    let wants_label = matches!((id.group.as_str(), id.kind.as_str()), ("", "Namespace" | "Service"));
    if is_own && wants_label && NAME.is_match(&id.name) && !is_label(&id.name) {
        let message = format!("metadata.name is {:?}, which is no DNS label", id.name);
        sheet.say(&["metadata", "name"], (message, "write up to 63 lower-case letters, digits and dashes"));
    }
    if id.is_a("batch", "CronJob") && id.name.len() > LONGEST_CRON_JOB {
        let message = format!("metadata.name has {} letters", id.name.len());
        sheet.say(&["metadata", "name"], (message, "write 52 at most: the names of Jobs are longer"));
    }
}

/// Names, labels and annotations, of the object and of its pods.
fn of_metadata(sheet: &mut Sheet<'_>, root: &Node, below: &[&str]) {
    let is_named_freely = metadata::is_named_freely(&sheet.object.id().group);
    let is_known = |path: &[String]| is_named_freely && path.last().is_some_and(|field| field == "name");
    let mistakes = metadata::in_value(root).into_iter().filter(|(path, _)| !is_known(path));
    for (path, mistake) in mistakes {
        let is_key = mistake.message.starts_with(metadata::KEY_OF);
        let path: Vec<&str> = below.iter().copied().chain(path.iter().map(String::as_str)).collect();
        sheet.say_of(&path, is_key, (mistake.message, mistake.hint));
    }
    if below.is_empty()
        && let Some(template) = root.at(["spec", "template"])
    {
        of_metadata(sheet, template, &["spec", "template"]);
    }
}

fn workload(sheet: &mut Sheet<'_>, spec: &Value) {
    let labels = &spec["template"]["metadata"]["labels"];
    let wanted = spec["selector"]["matchLabels"].as_object();
    for (key, value) in wanted.into_iter().flat_map(Map::iter).filter(|(key, value)| labels[key.as_str()] != **value) {
        let message =
            format!("its pods do not have the label {key:?} with the value {value}, by which it selects them");
        sheet.say(&["spec", "selector", "matchLabels", key], (message, "write it below template.metadata.labels, too"));
    }
    let has_selector =
        wanted.is_some_and(|labels| !labels.is_empty()) || spec["selector"]["matchExpressions"].is_array();
    if !has_selector {
        let message = "spec.selector says nothing".to_owned();
        sheet.say(&["spec"], (message, "write below matchLabels what template.metadata.labels has"));
    }
    negative(sheet, spec, &["replicas", "minReadySeconds", "revisionHistoryLimit"]);
    if sheet.object.id().kind == "Deployment" {
        let strategy = &spec["strategy"];
        word(sheet, &["spec", "strategy", "type"], &strategy["type"], &["Recreate", "RollingUpdate"]);
        if strategy["type"] == "Recreate" && !strategy["rollingUpdate"].is_null() {
            let message = "spec.strategy.rollingUpdate does not go together with the type Recreate".to_owned();
            sheet.say(&["spec", "strategy", "rollingUpdate"], (message, "leave one of them out"));
        }
    }
}

fn negative(sheet: &mut Sheet<'_>, spec: &Value, fields: &[&str]) {
    for field in fields.iter().filter(|field| spec[**field].as_i64().is_some_and(|number| number < 0)) {
        sheet.say(&["spec", field], (format!("spec.{field} is less than 0"), "write 0 or more"));
    }
}

fn autoscaler(sheet: &mut Sheet<'_>, spec: &Value) {
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
}

fn budget(sheet: &mut Sheet<'_>, spec: &Value) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let message = "spec has minAvailable and maxUnavailable, but must have one at most".to_owned();
        sheet.say(&["spec", "maxUnavailable"], (message, "leave one of them out"));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let is_wrong = match &spec[field] {
            Value::Number(number) => number.as_i64().is_some_and(|number| number < 0),
            Value::String(text) => !is_percentage(text),
            _ => false,
        };
        if is_wrong {
            let message = format!("spec.{field} is {}, but must be a number or a percentage", spec[field]);
            sheet.say(&["spec", field], (message, "write 1 or \"50%\""));
        }
    }
}

fn is_percentage(text: &str) -> bool {
    let number = text.strip_suffix('%').filter(|digits| digits.chars().all(|digit| digit.is_ascii_digit()));
    number.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|percent| percent <= 100)
}
