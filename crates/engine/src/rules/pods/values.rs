//! Fields of pods that take one of a few words.

use serde_json::Value;

use super::{Pod, items, name};
use crate::check::suggest;
use crate::rules::table::POD_VALUE;
use crate::text::did_you_mean;

/// Fields of a container, and what they take.
const OF_CONTAINERS: [(&str, &[&str]); 2] = [
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
];

/// Fields of a pod.
const OF_PODS: [(&str, &[&str]); 2] = [
    ("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
    ("preemptionPolicy", &["Never", "PreemptLowerPriority"]),
];

/// Fields of a toleration.
const OF_TOLERATIONS: [(&str, &[&str]); 2] = [
    ("effect", &["NoExecute", "NoSchedule", "PreferNoSchedule", ""]),
    ("operator", &["Equal", "Exists", "Gt", "Lt", ""]),
];

/// Kinds whose pods are started again for ever.
pub(super) const LASTING: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn check(pod: &mut Pod<'_>) {
    let spec = pod.spec;
    for (field, allowed) in OF_PODS {
        word(pod, &[field], &spec[field], allowed);
    }
    restart(pod);
    for toleration in items(&spec["tolerations"]) {
        for (field, allowed) in OF_TOLERATIONS {
            word(pod, &["tolerations", field], &toleration[field], allowed);
        }
    }
    for (list, container) in pod.containers() {
        for (field, allowed) in OF_CONTAINERS {
            word(pod, &[list, name(container), field], &container[field], allowed);
        }
        for port in items(&container["ports"]) {
            word(pod, &[list, name(container), "ports", "protocol"], &port["protocol"], &PROTOCOLS);
        }
    }
}

/// Pods of some kinds are started again for ever, those of others until they are done.
fn restart(pod: &mut Pod<'_>) {
    let (id, policy) = (pod.owner.id(), &pod.spec["restartPolicy"]);
    let is_done = id.group == "batch";
    let allowed: &[&str] = match id.kind.as_str() {
        kind if LASTING.contains(&kind) => &["Always"],
        _ if is_done => &["Never", "OnFailure"],
        _ => &["Always", "Never", "OnFailure"],
    };
    word(pod, &["restartPolicy"], policy, allowed);
    if is_done && policy.as_str().is_none_or(str::is_empty) {
        let message = "the pod has no restartPolicy, which is Always by itself".to_owned();
        pod.say(&["restartPolicy"], (message, "write Never or OnFailure: pods of a Job come to an end"));
    }
}

fn word(pod: &mut Pod<'_>, path: &[&str], value: &Value, allowed: &[&str]) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty() && !allowed.contains(text)) else { return };
    let said = allowed.iter().copied().filter(|word| !word.is_empty());
    let words: Vec<&str> = said.clone().collect();
    let field = path.last().copied().unwrap_or_default();
    let message = format!("{field} is {text:?}, but must be {}", words.join(" or "));
    let hint = did_you_mean(suggest(text, said)).unwrap_or_else(|| format!("write {}", words.join(" or ")));
    let place = pod.texts.says(&[field], text);
    pod.add((POD_VALUE, false), path, (message, hint));
    if let (Some(place), Some(finding)) = (place, pod.findings.last_mut()) {
        finding.problem.place = place;
    }
}
