//! Values that an API server judges by more than their type: names, labels, selectors, and fields that exclude each other.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Sheet, claims, contents, ingresses, jobs, networks, rights, scaling, services, workloads};
use crate::spec::metadata;
use crate::yaml::Node;

/// A DNS label, as of RFC 1123.
static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").expect("a test reads it"));

/// Names with dots.
pub(super) static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").expect("a test reads it")
});

/// The most letters in the name of a `CronJob`: its Jobs get more behind it.
const LONGEST_CRON_JOB: usize = 52;

pub(super) fn is_label(text: &str) -> bool {
    LABEL.is_match(text)
}

/// Returns a path for people, with the places in lists in brackets.
pub(super) fn place(path: &[&str]) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let shown = |part: &&str| if is_index(part) { format!("[{part}]") } else { format!(".{part}") };
    path.iter().map(shown).collect::<String>().trim_start_matches('.').to_owned()
}

pub(super) fn check(sheet: &mut Sheet<'_>) {
    let (id, body) = (sheet.object.id().clone(), sheet.object.body());
    of_metadata(sheet, &Node::of_value(body), &[]);
    of_kind(sheet, (&id.group, &id.kind), body);
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

/// Judges the fields that only objects of a kind have.
fn of_kind(sheet: &mut Sheet<'_>, (group, kind): (&str, &str), body: &Value) {
    let spec = &body["spec"];
    match (group, kind) {
        ("", "ConfigMap" | "Secret") => contents::check(sheet, body),
        ("", "PersistentVolumeClaim") => claims::check(sheet, &["spec"], spec),
        ("", "Pod") => workloads::containers(sheet, &["spec"], spec),
        ("", "Service") => services::check(sheet, spec),
        ("apps", kind) if workloads::SELECTING.contains(&kind) => workloads::check(sheet, spec),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::autoscaler(sheet, spec),
        ("batch", "CronJob") => jobs::scheduled(sheet, spec),
        ("batch", "Job") => jobs::check(sheet, &["spec"], spec),
        ("networking.k8s.io", "Ingress") => ingresses::check(sheet, spec),
        ("networking.k8s.io", "NetworkPolicy") => networks::check(sheet, spec),
        ("policy", "PodDisruptionBudget") => scaling::budget(sheet, spec),
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => rights::role(sheet, body),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => rights::binding(sheet, body),
        _ => {}
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
