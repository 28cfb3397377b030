//! Workloads: their selectors, and how their pods are replaced.

use serde_json::{Map, Value};

use super::scaling::{amount, percentage};
use super::services::word;
use super::values::place;
use super::{Sheet, claims, selectors};

/// Kinds whose pods are those of their selector.
pub(super) const SELECTING: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

const ROLLING: &str = "RollingUpdate";

/// The time for which a Deployment waits for progress if it does not say how long, in seconds.
const USUAL_DEADLINE: i64 = 600;

pub(super) fn check(sheet: &mut Sheet<'_>, spec: &Value) {
    selector(sheet, spec);
    containers(sheet, &["spec", "template", "spec"], &spec["template"]["spec"]);
    negative(sheet, (&["spec"], spec), &["replicas", "minReadySeconds", "revisionHistoryLimit"]);
    match sheet.object.id().kind.as_str() {
        "Deployment" => deployment(sheet, spec),
        "DaemonSet" => updates(sheet, ("updateStrategy", &spec["updateStrategy"]), &["OnDelete", ROLLING]),
        "StatefulSet" => stateful_set(sheet, spec),
        _ => {}
    }
}

/// Looks at which pods are its own: those of its template have to be among them.
fn selector(sheet: &mut Sheet<'_>, spec: &Value) {
    let (path, selector) = (["spec", "selector"], &spec["selector"]);
    let wanted = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if wanted.is_none_or(Map::is_empty) && expressions.is_empty() {
        let message = "spec.selector says nothing".to_owned();
        return sheet.say(&["spec"], (message, "write below matchLabels what template.metadata.labels has"));
    }
    let before = sheet.findings.len();
    selectors::check(sheet, &path, selector);
    if sheet.findings.len() > before {
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    for (key, value) in wanted.into_iter().flat_map(Map::iter).filter(|(key, value)| labels[key.as_str()] != **value) {
        let message =
            format!("its pods do not have the label {key:?} with the value {value}, by which it selects them");
        sheet.say(&["spec", "selector", "matchLabels", key], (message, "write it below template.metadata.labels, too"));
    }
    for (index, expression) in expressions.iter().enumerate().filter(|(_, it)| !selectors::is_met(it, labels)) {
        let (key, operator) = (&expression["key"], expression["operator"].as_str().unwrap_or_default());
        let message = format!(
            "the labels of its pods are not what spec.selector.matchExpressions[{index}] asks for: {key} {operator}"
        );
        let at = index.to_string();
        let hint = "write below template.metadata.labels what it wants";
        sheet.say(&["spec", "selector", "matchExpressions", &at], (message, hint));
    }
}

/// Says that pods have no containers.
pub(super) fn containers(sheet: &mut Sheet<'_>, path: &[&str], spec: &Value) {
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        let message = format!("{} has no containers", place(path));
        sheet.say(&[path, &["containers"]].concat(), (message, "write one, with a name and an image"));
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
    for (index, claim) in spec["volumeClaimTemplates"].as_array().into_iter().flatten().enumerate() {
        claims::check(sheet, &["spec", "volumeClaimTemplates", &index.to_string(), "spec"], &claim["spec"]);
    }
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

/// Says which counts are below nothing.
pub(super) fn negative(sheet: &mut Sheet<'_>, (path, spec): (&[&str], &Value), fields: &[&str]) {
    for field in fields.iter().filter(|field| spec[**field].as_i64().is_some_and(|number| number < 0)) {
        let message = format!("{}.{field} is less than 0", place(path));
        sheet.say(&[path, &[field]].concat(), (message, "write 0 or more"));
    }
}
