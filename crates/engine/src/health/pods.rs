//! The reason why a workload is not ready: what its worst pod says, and the last complaint about it.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition;

/// Pods of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Those that are ready.
    pub ready: u64,
    /// Those that are wanted.
    pub wanted: u64,
}

impl Count {
    /// Reads off a workload its pods; `None` of anything else, and while its controller has not seen the newest change.
    pub fn of(body: &Value) -> Option<Self> {
        let (ready, wanted, otherwise) = match body["kind"].as_str()? {
            "Deployment" | "StatefulSet" => ("/status/readyReplicas", "/spec/replicas", 1),
            "DaemonSet" => ("/status/numberReady", "/status/desiredNumberScheduled", 0),
            _ => return None,
        };
        let number = |path: &str| body.pointer(path).and_then(Value::as_u64);
        super::is_observed(body)
            .then(|| Self { ready: number(ready).unwrap_or_default(), wanted: number(wanted).unwrap_or(otherwise) })
    }
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { ready: self.ready.saturating_add(other.ready), wanted: self.wanted.saturating_add(other.wanted) }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pods", self.ready, self.wanted)
    }
}

/// The trouble with a pod; worse trouble is greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// Its severity.
    pub grade: Grade,
    /// In the words of who has seen it.
    pub what: String,
}

/// The severity of the state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It may only take a while.
    Slow,
    /// It has no machine to run on.
    Unscheduled,
    /// Something has failed.
    Failing,
}

/// Reasons to wait that every pod has for a while.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Returns the pod that is worst off, and what is wrong with it; of several the first. `None`: all are ready, or there are
/// none.
pub fn worst<'a>(pods: impl IntoIterator<Item = &'a Value>) -> Option<(&'a Value, Trouble)> {
    let mut worst: Option<(&Value, Trouble)> = None;
    for pod in pods {
        let Some(trouble) = trouble(pod) else { continue };
        if worst.as_ref().is_none_or(|(_, known)| known.grade < trouble.grade) {
            worst = Some((pod, trouble));
        }
    }
    worst
}

/// Returns what is wrong with a pod.
pub fn trouble(pod: &Value) -> Option<Trouble> {
    let status = &pod["status"];
    if status["phase"] == "Failed" {
        let what = words("it has failed", text(status, "reason"), text(status, "message"));
        return Some(Trouble { grade: Grade::Failing, what });
    }
    let containers = ["initContainerStatuses", "containerStatuses"].into_iter();
    let containers = containers.filter_map(|field| status[field].as_array()).flatten();
    let mut found: Vec<Trouble> = containers.filter_map(container).collect();
    found.extend(unscheduled(pod));
    // Of equally bad ones the first container counts: the others may wait for it.
    let worst = found.into_iter().rev().max_by_key(|trouble| trouble.grade);
    let is_ready = condition(pod, "Ready", "True").is_some();
    worst.or_else(|| (!is_ready).then(|| Trouble { grade: Grade::Slow, what: "it is not ready".to_owned() }))
}

fn container(status: &Value) -> Option<Trouble> {
    let name = text(status, "name");
    let waiting = &status["state"]["waiting"];
    if waiting.is_object() {
        let (reason, message) = (text(waiting, "reason"), text(waiting, "message"));
        let grade = if USUAL.contains(&reason) || reason.is_empty() { Grade::Slow } else { Grade::Failing };
        let mut what = words(&format!("container {name} waits"), reason, message);
        if let Some(ended) = ended(&status["lastState"]["terminated"]) {
            what = format!("{what}; before it {ended}");
        }
        return Some(Trouble { grade, what });
    }
    if let Some(ended) = ended(&status["state"]["terminated"]) {
        return Some(Trouble { grade: Grade::Failing, what: format!("container {name} {ended}") });
    }
    let is_up = status["ready"] == true || status["state"]["terminated"].is_object();
    (!is_up).then(|| Trouble { grade: Grade::Slow, what: format!("container {name} is not ready") })
}

/// Returns how a container has ended, if not well.
fn ended(terminated: &Value) -> Option<String> {
    let code = terminated["exitCode"].as_i64().filter(|code| *code != 0)?;
    Some(words(&format!("ended with exit code {code}"), text(terminated, "reason"), text(terminated, "message")))
}

fn unscheduled(pod: &Value) -> Option<Trouble> {
    let condition = condition(pod, "PodScheduled", "False")?;
    let what = words("it is not scheduled", text(condition, "reason"), text(condition, "message"));
    Some(Trouble { grade: Grade::Unscheduled, what })
}

/// Returns the newest warning among some events, in words.
pub fn newest_warning<'a>(events: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    let warnings = events.into_iter().filter(|event| event["type"] == "Warning");
    let newest = warnings.max_by_key(|event| time(event))?;
    let (reason, message) = (text(newest, "reason"), text(newest, "message"));
    Some(if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") })
}

/// When an event happened last; all times are in one form, whose order is that of text.
fn time(event: &Value) -> &str {
    let of_series = event.pointer("/series/lastObservedTime").and_then(Value::as_str);
    let times = [of_series, event["lastTimestamp"].as_str(), event["eventTime"].as_str()];
    times.into_iter().flatten().max().unwrap_or_else(|| text(&event["metadata"], "creationTimestamp"))
}

fn words(what: &str, reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => what.to_owned(),
        ("", text) | (text, "") => format!("{what}: {text}"),
        (reason, message) => format!("{what}: {reason} ({message})"),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(status: Value, expected: Option<&str>) {
        let found = trouble(&json!({"status": status}));
        assert_eq!(found.map(|trouble| trouble.what).as_deref(), expected, "{status}");
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn containers(states: Value) -> Value {
        json!({"containerStatuses": states})
    }

    #[test]
    fn a_pod_says_what_keeps_it() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        check(json!({"conditions": ready, "containerStatuses": [{"name": "a", "ready": true}]}), None);
        check(json!({}), Some("it is not ready"));
        let image = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""});
        check(
            containers(json!([{"name": "a", "ready": false}, {"name": "b", "state": {"waiting": image}}])),
            Some("container b waits: ImagePullBackOff (Back-off pulling image \"x\")"),
        );
        let killed = json!({"exitCode": 137, "reason": "OOMKilled"});
        check(
            containers(json!([{
                "name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": killed},
            }])),
            Some("container a waits: CrashLoopBackOff; before it ended with exit code 137: OOMKilled"),
        );
        check(
            containers(json!([{"name": "a", "state": {"terminated": killed}}])),
            Some("container a ended with exit code 137: OOMKilled"),
        );
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        check(containers(json!([{"name": "a", "state": creating}])), Some("container a waits: ContainerCreating"));
        let nowhere =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]);
        check(json!({"conditions": nowhere}), Some("it is not scheduled: Unschedulable (0/1 nodes)"));
        check(
            json!({"phase": "Failed", "reason": "Evicted", "message": "no disk"}),
            Some("it has failed: Evicted (no disk)"),
        );
        // An init container that has done its work is not ready, and rightly so.
        let done = json!({"initContainerStatuses": [{"name": "i", "ready": false, "state": {"terminated": {"exitCode": 0}}}], "conditions": ready});
        check(done, None);
        check(json!({"containerStatuses": "nonsense", "conditions": [5]}), Some("it is not ready"));
    }

    #[test]
    fn the_worst_pod_is_quoted() {
        let pod = |name: &str, reason: &str| json!({"metadata": {"name": name}, "status": {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": reason}}}]}});
        let pods = [pod("one", "ContainerCreating"), pod("two", "ErrImagePull"), pod("three", "CrashLoopBackOff")];
        let (worst, trouble) = worst(&pods).expect("none is ready");
        assert_eq!((worst["metadata"]["name"].as_str(), trouble.grade), (Some("two"), Grade::Failing));
    }

    #[test]
    fn the_newest_warning_counts() {
        let event = |kind: &str, time: &str, message: &str| json!({"type": kind, "lastTimestamp": time, "reason": "R", "message": message});
        let events = [
            event("Warning", "2026-01-01T00:00:02Z", "older"),
            event("Warning", "2026-01-01T00:00:03Z", "newer"),
            event("Normal", "2026-01-01T00:00:04Z", "fine"),
            json!({"type": "Warning", "eventTime": "2026-01-01T00:00:01.000000Z", "reason": "R"}),
        ];
        assert_eq!(newest_warning(&events).as_deref(), Some("R: newer"));
        assert_eq!(newest_warning(&events[2..]).as_deref(), Some("R"));
        assert_eq!(newest_warning(&events[2..3]), None);
    }
}
