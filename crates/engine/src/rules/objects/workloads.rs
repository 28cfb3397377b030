//! Workloads: their selectors, and how their pods are replaced.

use serde_json::{Map, Value};

use super::Sheet;
use super::scaling::{amount, percentage};
use super::services::word;

/// Kinds whose pods are those of their selector.
pub(super) const SELECTING: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

const ROLLING: &str = "RollingUpdate";

/// The time for which a Deployment waits for progress if it does not say how long, in seconds.
const USUAL_DEADLINE: i64 = 600;

pub(super) fn check(sheet: &mut Sheet<'_>, spec: &Value) {
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
    match sheet.object.id().kind.as_str() {
        "Deployment" => deployment(sheet, spec),
        "DaemonSet" => updates(sheet, ("updateStrategy", &spec["updateStrategy"]), &["OnDelete", ROLLING]),
        "StatefulSet" => stateful_set(sheet, spec),
        _ => {}
    }
}

fn deployment(sheet: &mut Sheet<'_>, spec: &Value) {
    let strategy = &spec["strategy"];
    updates(sheet, ("strategy", strategy), &["Recreate", ROLLING]);
    if strategy["type"] == "Recreate" && !strategy["rollingUpdate"].is_null() {
        let message = "spec.strategy.rollingUpdate does not go together with the type Recreate".to_owned();
        sheet.say(&["spec", "strategy", "rollingUpdate"], (message, "leave one of them out"));
    }
    let ready = spec["minReadySeconds"].as_i64().unwrap_or_default();
    let deadline = spec["progressDeadlineSeconds"].as_i64();
    if deadline.unwrap_or(USUAL_DEADLINE) <= ready {
        let message = match deadline {
            Some(deadline) => format!("spec.progressDeadlineSeconds is {deadline}, and spec.minReadySeconds {ready}"),
            None => format!(
                "spec.minReadySeconds is {ready}, and spec.progressDeadlineSeconds is {USUAL_DEADLINE} by itself"
            ),
        };
        sheet.say(&["spec", "progressDeadlineSeconds"], (message, "write more than minReadySeconds"));
    }
}

fn stateful_set(sheet: &mut Sheet<'_>, spec: &Value) {
    let strategy = &spec["updateStrategy"];
    word(sheet, &["spec", "updateStrategy", "type"], &strategy["type"], &["OnDelete", ROLLING]);
    word(sheet, &["spec", "podManagementPolicy"], &spec["podManagementPolicy"], &["OrderedReady", "Parallel"]);
    if let Some(partition) = strategy["rollingUpdate"]["partition"].as_i64().filter(|partition| *partition < 0) {
        let message = format!("spec.updateStrategy.rollingUpdate.partition is {partition}");
        sheet.say(&["spec", "updateStrategy", "rollingUpdate", "partition"], (message, "write 0 or more"));
    }
}

/// Looks at how pods are replaced: some have to be added, or taken away, at a time.
fn updates(sheet: &mut Sheet<'_>, (field, strategy): (&str, &Value), types: &[&str]) {
    word(sheet, &["spec", field, "type"], &strategy["type"], types);
    let rolling = &strategy["rollingUpdate"];
    // More may be added than there are, and no more taken away.
    for (limit, most) in [("maxSurge", u32::MAX), ("maxUnavailable", 100)] {
        amount(sheet, &["spec", field, "rollingUpdate", limit], &rolling[limit], most);
    }
    let usual = if field == "strategy" { [1, 1] } else { [0, 1] };
    let is_none = |limit: &str, usual: u32| match &rolling[limit] {
        Value::String(text) => percentage(text) == Some(0),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => usual == 0,
    };
    if is_none("maxSurge", usual[0]) && is_none("maxUnavailable", usual[1]) {
        let message = format!("spec.{field}.rollingUpdate has 0 for maxSurge and for maxUnavailable");
        let path = ["spec", field, "rollingUpdate", "maxUnavailable"];
        sheet.say(&path, (message, "write more than 0 for one of them: otherwise no pod could be replaced"));
    }
}

fn negative(sheet: &mut Sheet<'_>, spec: &Value, fields: &[&str]) {
    for field in fields.iter().filter(|field| spec[**field].as_i64().is_some_and(|number| number < 0)) {
        sheet.say(&["spec", field], (format!("spec.{field} is less than 0"), "write 0 or more"));
    }
}
