//! Volumes and their mounts: modes, files, paths, and where they come from.

use serde_json::Value;

use super::environment::one_of;
use super::{Pod, items, name, text};
use crate::rules::table::POD_VALUE;

/// The types of a file of the host.
const HOST_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// Sources of a projected volume.
const PROJECTED: [&str; 6] =
    ["clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"];

/// Fields without which a source leads nowhere.
const NEEDED: [(&str, &str); 7] = [
    ("configMap", "name"),
    ("csi", "driver"),
    ("hostPath", "path"),
    ("nfs", "path"),
    ("nfs", "server"),
    ("persistentVolumeClaim", "claimName"),
    ("secret", "secretName"),
];

/// The greatest mode of a file.
const MOST_MODE: i64 = 0o777;

/// The shortest life of a token, in seconds.
const SHORTEST_TOKEN: i64 = 600;

pub(super) fn check(pod: &mut Pod<'_>) {
    for volume in items(&pod.spec["volumes"]) {
        source(pod, volume);
    }
    for (list, container) in pod.containers() {
        items(&container["volumeMounts"]).for_each(|it| mount(pod, [list, name(container)], (container, it)));
    }
}

fn source(pod: &mut Pod<'_>, volume: &Value) {
    let own = name(volume);
    let (path, what) = (["volumes", own], format!("the volume {own:?}"));
    for (source, field) in NEEDED {
        if volume[source].is_object() && text(&volume[source], field).is_empty() {
            pod.say(&path, (format!("{what} has {source} without {field}"), &format!("write its {field}")));
        }
    }
    let (host, medium) = (&volume["hostPath"], text(&volume["emptyDir"], "medium"));
    if !HOST_TYPES.contains(&text(host, "type")) {
        let hint = format!("write one of {}", HOST_TYPES[1..].join(", "));
        pod.say(&path, (format!("{what} is a file of the host of the type {:?}", text(host, "type")), &hint));
    }
    if has_step_up(text(host, "path")) {
        pod.say(&path, (format!("the path of {what} has a .. in it"), "write the path without"));
    }
    let exported = text(&volume["nfs"], "path");
    if !exported.is_empty() && !exported.starts_with('/') {
        let message = format!("the nfs path of {what} is {exported:?}, which begins nowhere");
        pod.say(&path, (message, "write the path from the root of the server, with a / before it"));
    }
    if !["", "Memory", "HugePages"].contains(&medium) && !medium.starts_with("HugePages-") {
        // The API server takes it, and no node can make it.
        let said =
            (format!("the medium of {what} is {medium:?}"), "write Memory or HugePages, or leave it out".to_owned());
        pod.add((POD_VALUE, true), &path, said);
    }
    for kind in ["configMap", "secret", "projected", "downwardAPI"] {
        mode(pod, &path, (&what, "defaultMode", &volume[kind]));
        files(pod, &path, (&what, kind, &volume[kind]));
    }
    for source in items(&volume["projected"]["sources"]) {
        one_of(pod, &path, (&format!("a source of {what}"), source), &PROJECTED);
        for kind in ["configMap", "secret", "downwardAPI"] {
            files(pod, &path, (&what, kind, &source[kind]));
        }
        if source["serviceAccountToken"]["expirationSeconds"].as_i64().is_some_and(|it| it < SHORTEST_TOKEN) {
            pod.say(&path, (format!("a token in {what} expires in less than ten minutes"), "write 600 or more"));
        }
    }
}

fn mode(pod: &mut Pod<'_>, path: &[&str], (what, field, value): (&str, &str, &Value)) {
    let Some(number) = value[field].as_number() else { return };
    if !number.as_i64().is_some_and(|mode| (0..=MOST_MODE).contains(&mode)) {
        let message = format!("{field} of {what} is {number}, which is no mode of a file");
        let octal = number.to_string();
        let is_octal = octal.len() == 3 && octal.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let hint =
            if is_octal { format!("did you mean 0{octal}?") } else { "write a number from 0 to 0777".to_owned() };
        pod.say(path, (message, &hint));
    }
}

/// Checks the files that a volume is to have.
fn files(pod: &mut Pod<'_>, path: &[&str], (what, kind, source): (&str, &str, &Value)) {
    for item in items(&source["items"]) {
        let of_item = format!("an item of {what}");
        if kind == "downwardAPI" {
            one_of(pod, path, (&of_item, item), &["fieldRef", "resourceFieldRef"]);
        } else if text(item, "key").is_empty() {
            pod.say(path, (format!("{of_item} names no key"), "write the key of an entry"));
        }
        mode(pod, path, (what, "mode", item));
        let file = text(item, "path");
        if file.is_empty() || file.starts_with('/') || has_step_up(file) {
            let message = format!("an item of {what} has the path {file:?}");
            pod.say(path, (message, "write a path that begins and stays in the volume"));
        }
    }
}

fn mount(pod: &mut Pod<'_>, [list, own]: [&str; 2], (container, mount): (&Value, &Value)) {
    let (volume, part) = (name(mount), text(mount, "subPath"));
    let is_bidirectional = text(mount, "mountPropagation") == "Bidirectional";
    let what = format!("the container {own:?} mounts {volume:?}");
    let (message, hint) = if !part.is_empty() && !text(mount, "subPathExpr").is_empty() {
        (format!("{what} by subPath and by subPathExpr"), "keep one of the two")
    } else if part.starts_with('/') || has_step_up(part) || has_step_up(text(mount, "subPathExpr")) {
        (format!("{what} with the subPath {part:?}"), "write a path that begins and stays in the volume")
    } else if !["", "None", "HostToContainer", "Bidirectional"].contains(&text(mount, "mountPropagation")) {
        let propagation = text(mount, "mountPropagation");
        (format!("{what} with the mountPropagation {propagation:?}"), "write None, HostToContainer or Bidirectional")
    } else if is_bidirectional && container["securityContext"]["privileged"] != true {
        (format!("{what} with mountPropagation: Bidirectional, and is not privileged"), "write HostToContainer")
    } else {
        return;
    };
    pod.say(&[list, own, "volumeMounts", volume], (message, hint));
}

/// Tells whether a path leads out of the folder that it begins in.
fn has_step_up(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}
