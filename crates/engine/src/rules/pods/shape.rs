//! Fields of pods whose values an API server judges by more than their type: names, mounts, volumes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::forms::{OF_NAMES, is_label, is_subdomain};
use super::{Pod, items, name};
use crate::rules::table::POD_VALUE;

pub(super) fn check(pod: &mut Pod<'_>) {
    names(pod);
    volumes(pod);
    for (list, container) in pod.containers() {
        let own = name(container);
        label(pod, &[list, own, "name"], own, "the name of a container");
        mounts(pod, &[list, own], container);
        for variable in items(&container["env"]).filter(|it| name(it).is_empty() || name(it).contains('=')) {
            let message = format!("the name of a variable of the container {own:?} is {:?}", name(variable));
            pod.add((POD_VALUE, false), &[list, own, "env"], (message, "write a name without =".to_owned()));
        }
    }
}

/// Names of other objects.
fn names(pod: &mut Pod<'_>) {
    let spec = pod.spec;
    for field in ["serviceAccountName", "priorityClassName", "runtimeClassName"] {
        if let Some(text) = spec[field].as_str().filter(|text| !text.is_empty() && !is_subdomain(text)) {
            pod.say(&[field], (format!("{field} is {text:?}, which is the name of no object"), OF_NAMES));
        }
    }
}

fn label(pod: &mut Pod<'_>, path: &[&str], text: &str, what: &str) {
    if !is_label(text) {
        let hint = "write up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit";
        pod.add((POD_VALUE, false), path, (format!("{what} is {text:?}, which is no DNS label"), hint.to_owned()));
    }
}

/// A volume has one source. What says nothing of it is an emptyDir.
fn volumes(pod: &mut Pod<'_>) {
    for volume in items(&pod.spec["volumes"]) {
        let own = name(volume);
        label(pod, &["volumes", own, "name"], own, "the name of a volume");
        let sources = volume.as_object().into_iter().flatten().filter(|(field, it)| *field != "name" && !it.is_null());
        let sources: Vec<&str> = sources.map(|(field, _)| field.as_str()).collect();
        if sources.len() > 1 {
            let message = format!("the volume {own:?} has {} sources", sources.len());
            let hint = format!("keep one of {}", sources.join(", "));
            pod.add((POD_VALUE, false), &["volumes", own], (message, hint));
        }
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
