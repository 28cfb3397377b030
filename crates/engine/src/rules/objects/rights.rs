//! Rights: the rules of roles, and who gets them.

use serde_json::Value;

use super::Sheet;
use super::values::place;
use crate::check::suggest;
use crate::rules::pods::forms::{OF_NAMES, is_subdomain};
use crate::text::did_you_mean;

const GROUP: &str = "rbac.authorization.k8s.io";
const ACCOUNT: &str = "ServiceAccount";
const SUBJECTS: [&str; 3] = ["Group", ACCOUNT, "User"];

/// Fields of a rule about objects.
const OF_OBJECTS: [&str; 3] = ["apiGroups", "resourceNames", "resources"];

pub(super) fn role(sheet: &mut Sheet<'_>, body: &Value) {
    let is_of_namespace = sheet.object.id().kind == "Role";
    for (index, rule) in body["rules"].as_array().into_iter().flatten().enumerate() {
        of_rule(sheet, &["rules", &index.to_string()], (rule, is_of_namespace));
    }
    let aggregation = &body["aggregationRule"];
    if aggregation.is_object() && is_empty(&aggregation["clusterRoleSelectors"]) {
        let message = "aggregationRule selects no roles".to_owned();
        let hint = "write below clusterRoleSelectors which labels they have";
        sheet.say(&["aggregationRule", "clusterRoleSelectors"], (message, hint));
    }
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn of_rule(sheet: &mut Sheet<'_>, path: &[&str], (rule, is_of_namespace): (&Value, bool)) {
    let at = place(path);
    let mut say = |field: &str, (message, hint): (&str, &str)| {
        sheet.say(&[path, &[field]].concat(), (format!("{at} {message}"), hint));
    };
    if is_empty(&rule["verbs"]) {
        say("verbs", ("has no verbs", "write what is allowed, such as [get, list, watch]"));
    }
    if is_empty(&rule["nonResourceURLs"]) {
        if is_empty(&rule["apiGroups"]) {
            say("apiGroups", ("has no apiGroups", "write the groups of the objects, [\"\"] for the first of them"));
        }
        if is_empty(&rule["resources"]) {
            say("resources", ("has no resources", "write the objects in the plural, such as [pods]"));
        }
        return;
    }
    let hint = "write it into a rule of a ClusterRole that has nothing but verbs beside it";
    if is_of_namespace {
        say("nonResourceURLs", ("has nonResourceURLs, which are in no namespace", hint));
    } else if OF_OBJECTS.iter().any(|field| !is_empty(&rule[*field])) {
        say("nonResourceURLs", ("has nonResourceURLs and objects", hint));
    }
}

pub(super) fn binding(sheet: &mut Sheet<'_>, body: &Value) {
    let is_of_namespace = sheet.object.id().kind == "RoleBinding";
    let kinds: &[&str] = if is_of_namespace { &["ClusterRole", "Role"] } else { &["ClusterRole"] };
    let reference = &body["roleRef"];
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    kind(sheet, &["roleRef"], (text("kind"), kinds));
    if !["", GROUP].contains(&text("apiGroup")) {
        let message = format!("roleRef.apiGroup is {:?}, which has no roles", text("apiGroup"));
        sheet.say(&["roleRef", "apiGroup"], (message, "write rbac.authorization.k8s.io"));
    }
    if text("name").is_empty() {
        sheet.say(&["roleRef", "name"], ("roleRef has no name".to_owned(), "write the name of the role"));
    }
    for (index, it) in body["subjects"].as_array().into_iter().flatten().enumerate() {
        subject(sheet, &["subjects", &index.to_string()], (it, is_of_namespace));
    }
}

/// Says that a kind is none of those that may stand there.
fn kind(sheet: &mut Sheet<'_>, path: &[&str], (kind, kinds): (&str, &[&str])) {
    if !kinds.contains(&kind) {
        let words = kinds.join(" or ");
        let message = format!("{}.kind is {kind:?}, but must be {words}", place(path));
        let hint = did_you_mean(suggest(kind, kinds.iter().copied())).unwrap_or_else(|| format!("write {words}"));
        sheet.say(&[path, &["kind"]].concat(), (message, &hint));
    }
}

fn subject(sheet: &mut Sheet<'_>, path: &[&str], (subject, is_of_namespace): (&Value, bool)) {
    let at = place(path);
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    let is_account = text("kind") == ACCOUNT;
    kind(sheet, path, (text("kind"), &SUBJECTS));
    let mut say = |field: &str, message: String, hint: &str| {
        sheet.say(&[path, &[field]].concat(), (format!("{at} {message}"), hint));
    };
    let name = text("name");
    if name.is_empty() {
        say("name", "has no name".to_owned(), "write whom the rights are for");
    } else if is_account && !is_subdomain(name) {
        say("name", format!("has the name {name:?}, which is the name of no ServiceAccount"), OF_NAMES);
    }
    if is_account && !is_of_namespace && text("namespace").is_empty() {
        let hint = "write the namespace of the ServiceAccount";
        say("namespace", "has no namespace".to_owned(), hint);
    }
    let group = text("apiGroup");
    let is_right = group.is_empty() || !is_account && group == GROUP;
    if !is_right && SUBJECTS.contains(&text("kind")) {
        say("apiGroup", format!("has the apiGroup {group:?}, which has no {}", text("kind")), "leave it out");
    }
}
