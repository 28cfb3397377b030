//! Fields of pods whose values an API server judges by more than their type: names, ports, probes, mounts, volumes.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Pod, items, name};
use crate::rules::table::POD_VALUE;

/// A DNS label, as of RFC 1123.
pub(super) static LABEL: LazyLock<Regex> = LazyLock::new(|| regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"));

/// Names with dots.
static SUBDOMAIN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));

/// The name of a port: up to 15 characters, of which one is a letter.
static PORT: LazyLock<Regex> = LazyLock::new(|| regex("^[a-z0-9]+(-[a-z0-9]+)*$"));

/// The value of a label.
pub(super) static LABEL_VALUE: LazyLock<Regex> =
    LazyLock::new(|| regex("^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$"));

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HANDLERS: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];
const SECONDS: [&str; 4] = ["failureThreshold", "periodSeconds", "successThreshold", "timeoutSeconds"];
const MOST_PORT: u64 = 65_535;
const LONGEST_SUBDOMAIN: usize = 253;
const LONGEST_PORT: usize = 15;

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a test reads it")
}

pub(super) fn check(pod: &mut Pod<'_>) {
    names(pod);
    volumes(pod);
    for (list, container) in pod.containers() {
        let own = name(container);
        label(pod, &[list, own, "name"], own, "the name of a container");
        ports(pod, &[list, own], container);
        mounts(pod, &[list, own], container);
        for variable in items(&container["env"]).filter(|it| name(it).is_empty() || name(it).contains('=')) {
            let message = format!("the name of a variable of the container {own:?} is {:?}", name(variable));
            pod.add((POD_VALUE, false), &[list, own, "env"], (message, "write a name without =".to_owned()));
        }
        for field in PROBES {
            probe(pod, &[list, own, field], &container[field]);
        }
    }
}

/// Names of other objects.
fn names(pod: &mut Pod<'_>) {
    let spec = pod.spec;
    for field in ["serviceAccountName", "priorityClassName", "runtimeClassName"] {
        let wrong = |text: &&str| !text.is_empty() && (!SUBDOMAIN.is_match(text) || text.len() > LONGEST_SUBDOMAIN);
        if let Some(text) = spec[field].as_str().filter(wrong) {
            let hint = "write lower-case letters, digits, dashes and dots".to_owned();
            pod.add(
                (POD_VALUE, false),
                &[field],
                (format!("{field} is {text:?}, which is the name of no object"), hint),
            );
        }
    }
}

fn label(pod: &mut Pod<'_>, path: &[&str], text: &str, what: &str) {
    if !LABEL.is_match(text) {
        let hint = "write up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit";
        pod.add((POD_VALUE, false), path, (format!("{what} is {text:?}, which is no DNS label"), hint.to_owned()));
    }
}

/// A volume has one source; what says nothing of it has none.
fn volumes(pod: &mut Pod<'_>) {
    for volume in items(&pod.spec["volumes"]) {
        let own = name(volume);
        label(pod, &["volumes", own, "name"], own, "the name of a volume");
        let sources = volume.as_object().into_iter().flatten().filter(|(field, it)| *field != "name" && !it.is_null());
        let sources: Vec<&str> = sources.map(|(field, _)| field.as_str()).collect();
        let (message, hint) = match sources[..] {
            [_] => continue,
            [] => (format!("the volume {own:?} has no source"), "write one, such as emptyDir: {}".to_owned()),
            _ => (
                format!("the volume {own:?} has {} sources", sources.len()),
                format!("keep one of {}", sources.join(", ")),
            ),
        };
        pod.add((POD_VALUE, false), &["volumes", own], (message, hint));
    }
}

fn ports(pod: &mut Pod<'_>, at: &[&str; 2], container: &Value) {
    for port in items(&container["ports"]) {
        for field in ["containerPort", "hostPort"] {
            number(pod, &[&at[..], &["ports"]].concat(), (field, &port[field]), u64::from(field == "containerPort"));
        }
        let wrong = |text: &&str| {
            let has_letter = text.contains(|char: char| char.is_ascii_lowercase());
            !PORT.is_match(text) || !has_letter || text.len() > LONGEST_PORT
        };
        if let Some(text) = port["name"].as_str().filter(wrong) {
            let message = format!("the name of a port of the container {:?} is {text:?}", at[1]);
            let hint = "write up to 15 lower-case letters, digits and dashes, at least one letter".to_owned();
            pod.add((POD_VALUE, false), &[at[0], at[1], "ports"], (message, hint));
        }
    }
}

/// Checks the number of a port, if it is one.
fn number(pod: &mut Pod<'_>, path: &[&str], (field, value): (&str, &Value), least: u64) {
    let Some(number) = value.as_number() else { return };
    if !number.as_u64().is_some_and(|number| (least..=MOST_PORT).contains(&number)) {
        let message = format!("{field} is {number}, which is no port");
        pod.add((POD_VALUE, false), path, (message, format!("write a number from 1 to {MOST_PORT}")));
    }
}

fn mounts(pod: &mut Pod<'_>, at: &[&str; 2], container: &Value) {
    let mut taken = BTreeSet::new();
    for mount in items(&container["volumeMounts"]) {
        let (own, volume) = (at[1], name(mount));
        let path = mount["mountPath"].as_str().unwrap_or_default();
        let (message, hint) = match path {
            "" => (format!("the container {own:?} mounts {volume:?} nowhere"), "write a mountPath"),
            path if !taken.insert(path) => {
                (format!("the container {own:?} mounts two volumes at {path:?}"), "give each a path of its own")
            }
            _ => continue,
        };
        pod.add((POD_VALUE, false), &[at[0], own, "volumeMounts", volume], (message, hint.to_owned()));
    }
}

fn probe(pod: &mut Pod<'_>, path: &[&str], probe: &Value) {
    let Some(fields) = probe.as_object() else { return };
    let field = path.last().copied().unwrap_or_default();
    let handlers: Vec<&str> = HANDLERS.into_iter().filter(|handler| !probe[*handler].is_null()).collect();
    if handlers.len() != 1 {
        let message = format!("{field} has {} of {}, but must have one", handlers.len(), HANDLERS.join(", "));
        pod.add((POD_VALUE, false), path, (message, "keep one of them".to_owned()));
    }
    for handler in handlers {
        number(pod, path, ("port", &probe[handler]["port"]), 1);
    }
    let written = |seconds: &&str| fields.get(*seconds).and_then(Value::as_i64);
    for seconds in SECONDS.into_iter().filter(|seconds| written(seconds).is_some_and(|number| number < 0)) {
        let message = format!("{seconds} of {field} is less than 0");
        pod.add((POD_VALUE, false), path, (message, "write 1 or more".to_owned()));
    }
    let only_once = field != "readinessProbe";
    if only_once && probe["successThreshold"].as_i64().is_some_and(|times| times > 1) {
        let message = format!("successThreshold of {field} is more than 1");
        pod.add((POD_VALUE, false), path, (message, "leave it out".to_owned()));
    }
}
