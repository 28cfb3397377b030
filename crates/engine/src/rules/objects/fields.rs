//! Fields that a kind does not have, and values of another type than theirs.

use serde_json::Value;

use super::{Finding, Part, Sheet};
use crate::check::{self, InValue};
use crate::references;
use crate::rules::table::OBJECT_FIELD;
use crate::rules::texts::Step;
use crate::schema::{Schema, kubernetes};
use crate::yaml::Node;

pub(super) fn check(sheet: &mut Sheet<'_>) {
    let body = sheet.object.body();
    if let Some(schema) = kubernetes::of(&sheet.object.gvk()) {
        return compare(sheet, body, schema);
    }
    // The templates of pods in other kinds are Kubernetes' own; what comes of them an operator decides.
    let Some(schema) = kubernetes::pod_template() else { return };
    for template in references::templates(body, sheet.kinds) {
        compare(sheet, template, schema);
    }
    sheet.findings = std::mem::take(&mut sheet.findings).into_iter().map(Finding::weak).collect();
}

fn compare(sheet: &mut Sheet<'_>, value: &Value, schema: &Schema) {
    for mistake in check::check_rendered(&Node::of_value(value), schema) {
        add(sheet, value, mistake);
    }
}

fn add(sheet: &mut Sheet<'_>, body: &Value, (path, mistake): InValue) {
    let is_key = mistake.message.starts_with(check::UNKNOWN_FIELD);
    let newer = || format!("{} has no such field; a newer one may", kubernetes::RELEASE);
    let hint = mistake.hint.or_else(|| is_key.then(newer));
    let (steps, value) = steps(body, &path);
    sheet.add(OBJECT_FIELD, &Part { steps, value, is_key }, (mistake.message, hint));
    if let Some(finding) = sheet.findings.last_mut() {
        finding.problem.fix = mistake.fix.filter(|_| finding.problem.place != *sheet.texts.whole());
    }
}

/// Returns the steps of a path through an object, and what stands at its end.
pub(super) fn steps<'v>(body: &'v Value, path: &[String]) -> (Vec<Step>, &'v Value) {
    let (mut steps, mut value) = (Vec::new(), body);
    for part in path {
        let index = value.as_array().and_then(|_| part.trim_matches(['[', ']']).parse::<usize>().ok());
        value = index.map_or_else(|| &value[part.as_str()], |index| &value[index]);
        steps.push(match index {
            Some(index) => Step::Item(index, value["name"].as_str().map(str::to_owned)),
            None => Step::Field(part.clone()),
        });
    }
    (steps, value)
}
