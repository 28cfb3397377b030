//! The questions that containers are asked: probes, and hooks at their start and end.

use serde_json::Value;

use super::environment::one_of;
use super::ports::reached;
use super::{Pod, items, name, text};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];

/// The handlers of a probe, and those of a hook.
const OF_PROBES: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];
const OF_HOOKS: [&str; 4] = ["exec", "httpGet", "sleep", "tcpSocket"];

/// Numbers of probes that are not below nothing.
const COUNTS: [&str; 5] =
    ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"];

/// The field of a pod, and of a probe, that says how long it may take to end.
const GRACE: &str = "terminationGracePeriodSeconds";

/// The time that a pod has to end if it does not say how long, in seconds.
const USUAL_GRACE: i64 = 30;

pub(super) fn check(pod: &mut Pod<'_>) {
    for (list, container) in pod.containers() {
        let own = name(container);
        if list == "initContainers" && container["restartPolicy"] != "Always" {
            ended(pod, own, container);
            continue;
        }
        for field in PROBES {
            probe(pod, &[list, own, field], &container[field]);
        }
        for hook in HOOKS {
            let (path, value) = ([list, own, "lifecycle", hook], &container["lifecycle"][hook]);
            one_of(pod, &path, (hook, value), &OF_HOOKS);
            handler(pod, &path, value);
        }
    }
}

/// A container that ends before the others begin is not probed.
fn ended(pod: &mut Pod<'_>, own: &str, container: &Value) {
    for field in PROBES.into_iter().chain(["lifecycle"]).filter(|field| !container[*field].is_null()) {
        let message = format!("the init container {own:?} has {field}, and ends before the pod is there");
        pod.say(&["initContainers", own, field], (message, "leave it out, or write restartPolicy: Always"));
    }
}

fn probe(pod: &mut Pod<'_>, path: &[&str], probe: &Value) {
    let field = path.last().copied().unwrap_or_default();
    one_of(pod, path, (field, probe), &OF_PROBES);
    handler(pod, path, probe);
    for count in COUNTS.into_iter().filter(|count| probe[*count].as_i64().is_some_and(|number| number < 0)) {
        let message = format!("{count} of {field} is less than 0");
        pod.say(&[path, &[count]].concat(), (message, "write 1 or more"));
    }
    let only_once = field != "readinessProbe";
    if only_once && probe["successThreshold"].as_i64().is_some_and(|times| times > 1) {
        let message = format!("successThreshold of {field} is more than 1");
        pod.say(&[path, &["successThreshold"]].concat(), (message, "leave it out"));
    }
    let grace = &probe[GRACE];
    if !only_once && !grace.is_null() {
        let message = format!("{field} has {GRACE}, and ends no container");
        pod.say(&[path, &[GRACE]].concat(), (message, "leave it out"));
    } else if grace.as_i64().is_some_and(|seconds| seconds < 1) {
        let message = format!("{GRACE} of {field} is {grace}");
        pod.say(&[path, &[GRACE]].concat(), (message, "write 1 or more"));
    }
}

/// Checks what a probe or a hook does.
fn handler(pod: &mut Pod<'_>, path: &[&str], value: &Value) {
    let field = path.last().copied().unwrap_or_default();
    if value["exec"].is_object() && items(&value["exec"]["command"]).next().is_none() {
        pod.say(path, (format!("exec of {field} has no command"), "write the program and its arguments, as a list"));
    }
    for kind in ["grpc", "httpGet", "tcpSocket"].into_iter().filter(|kind| value[*kind].is_object()) {
        reached(pod, &[path, &[kind]].concat(), (&format!("{kind} of {field}"), &value[kind]["port"]));
    }
    let request = &value["httpGet"];
    let scheme = text(request, "scheme");
    if !["", "HTTP", "HTTPS"].contains(&scheme) {
        let message = format!("the scheme of {field} is {scheme:?}, but must be HTTP or HTTPS");
        pod.say(&[path, &["httpGet", "scheme"]].concat(), (message, "write HTTP or HTTPS"));
    }
    for header in items(&request["httpHeaders"]).map(name).filter(|header| !is_header(header)) {
        let message = format!("{field} sends the header {header:?}, which is none");
        pod.say(&[path, &["httpGet", "httpHeaders", header]].concat(), (message, "write letters, digits and dashes"));
    }
    sleep(pod, path, &value["sleep"]);
}

/// A hook sleeps no longer than the pod may take to end.
fn sleep(pod: &mut Pod<'_>, path: &[&str], sleep: &Value) {
    let grace = pod.spec[GRACE].as_i64().unwrap_or(USUAL_GRACE);
    let seconds = sleep["seconds"].as_i64().unwrap_or_default();
    if grace >= 0 && sleep.is_object() && !(0..=grace).contains(&seconds) {
        let field = path.last().copied().unwrap_or_default();
        let message = format!("{field} sleeps {seconds} seconds, and the pod has {grace} to end");
        pod.say(path, (message, "write from 0 to terminationGracePeriodSeconds, or raise that"));
    }
}

fn is_header(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
