//! What containers run with: variables, security contexts, hooks, and the names and name servers of their pod.

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::forms::{OF_KEYS, OF_NAMES, is_key, is_label, is_subdomain};
use super::{Pod, items, name, text};

/// Fields of a pod that a variable can have.
static FIELD: LazyLock<Regex> = LazyLock::new(|| {
    let fields = "metadata\\.(name|namespace|uid|(labels|annotations)\\['[^']+'\\])|spec\\.(nodeName|serviceAccountName)\
                  |status\\.(hostIP|hostIPs|podIP|podIPs)";
    Regex::new(&format!("^({fields})$")).expect("a test reads it")
});

/// Resources of a container that a variable can have.
static RESOURCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("^(limits|requests)\\.(cpu|memory|ephemeral-storage|hugepages-.+)$").expect("a test reads it")
});

/// The name of a setting of the kernel.
static SYSCTL: LazyLock<Regex> = LazyLock::new(|| {
    let part = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    Regex::new(&format!("^({part}[./])*{part}$")).expect("a test reads it")
});

/// The greatest number of a user or group.
const MOST_ID: i64 = i32::MAX as i64;

const IDS: [&str; 3] = ["fsGroup", "runAsGroup", "runAsUser"];
const SOURCES: [&str; 4] = ["configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"];

/// Objects of which each entry becomes a variable.
const MAPS: [&str; 2] = ["configMapRef", "secretRef"];

/// Parts of a security context that name a profile: the field, and its types.
const PROFILES: [&str; 2] = ["appArmorProfile", "seccompProfile"];
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// The most name servers that a pod may have.
const MOST_SERVERS: usize = 3;

pub(super) fn check(pod: &mut Pod<'_>) {
    of_pod(pod);
    names(pod);
    for (list, container) in pod.containers() {
        let at = [list, name(container)];
        items(&container["env"]).for_each(|it| variable(pod, at, it));
        items(&container["envFrom"]).for_each(|it| variables(pod, at, it));
        let context = &container["securityContext"];
        shared(pod, &[list, at[1], "securityContext"], context);
        privileges(pod, at, context);
    }
}

/// Checks that of some fields exactly one is there, where the value that has them is.
pub(super) fn one_of(pod: &mut Pod<'_>, path: &[&str], (what, value): (&str, &Value), fields: &[&str]) {
    let there = fields.iter().filter(|field| !value[**field].is_null()).count();
    if value.is_object() && there != 1 {
        let message = format!("{what} has {there} of {}, but must have one", fields.join(", "));
        pod.say(path, (message, if there == 0 { "write one of them" } else { "keep one of them" }));
    }
}

fn variable(pod: &mut Pod<'_>, [list, own]: [&str; 2], variable: &Value) {
    let (path, from) = ([list, own, "env", name(variable)], &variable["valueFrom"]);
    let what = format!("the variable {:?} of the container {own:?}", name(variable));
    one_of(pod, &path, (&what, from), &SOURCES);
    let (field, resource) = (text(&from["fieldRef"], "fieldPath"), text(&from["resourceFieldRef"], "resource"));
    let (message, hint) = if from.is_object() && !text(variable, "value").is_empty() {
        (format!("{what} has both value and valueFrom"), "keep one of the two")
    } else if from["fieldRef"].is_object() && !FIELD.is_match(field) {
        (format!("{what} asks for the field {field:?}"), "write one that variables have, such as metadata.name")
    } else if from["resourceFieldRef"].is_object() && !RESOURCE.is_match(resource) {
        (format!("{what} asks for the resource {resource:?}"), "write one such as limits.memory")
    } else {
        for reference in
            ["configMapKeyRef", "secretKeyRef"].map(|field| &from[field]).into_iter().filter(|it| it.is_object())
        {
            key(pod, &path, (&what, text(reference, "key")));
        }
        return;
    };
    pod.say(&path, (message, hint));
}

fn key(pod: &mut Pod<'_>, path: &[&str], (what, key): (&str, &str)) {
    if !is_key(key) {
        pod.say(path, (format!("{what} names the key {key:?}"), OF_KEYS));
    }
}

/// Checks where several variables come from at once.
fn variables(pod: &mut Pod<'_>, [list, own]: [&str; 2], source: &Value) {
    let (path, what) = ([list, own, "envFrom"], format!("an item of envFrom of the container {own:?}"));
    one_of(pod, &path, (&what, source), &MAPS);
    for (map, reference) in MAPS.map(|map| (map, &source[map])).into_iter().filter(|(_, it)| it.is_object()) {
        if !is_subdomain(name(reference)) {
            let message = format!("{what} has a {map} to {:?}, which is the name of no object", name(reference));
            pod.say(&path, (message, OF_NAMES));
        }
    }
    if text(source, "prefix").contains('=') {
        let message = format!("{what} has the prefix {:?}", text(source, "prefix"));
        pod.say(&path, (message, "write a prefix without ="));
    }
}

/// Security of the pod as a whole.
fn of_pod(pod: &mut Pod<'_>) {
    let (spec, path) = (pod.spec, ["securityContext"]);
    let context = &spec["securityContext"];
    shared(pod, &path, context);
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let message = "the pod has both shareProcessNamespace and hostPID".to_owned();
        pod.say(&["shareProcessNamespace"], (message, "keep one of the two"));
    }
    for sysctl in items(&context["sysctls"]) {
        let of_host = name(sysctl).starts_with("net.") && spec["hostNetwork"] == true;
        let (message, hint) = match name(sysctl) {
            text if !SYSCTL.is_match(text) => {
                (format!("sysctls has {text:?}"), "write a name such as net.core.somaxconn")
            }
            text if of_host => (
                format!("sysctls sets {text:?} of a pod in the network of its host"),
                "leave it out, or leave out hostNetwork",
            ),
            _ => continue,
        };
        pod.say(&[path[0], "sysctls"], (message, hint));
    }
}

/// Fields that the security contexts of pods and of containers share.
fn shared(pod: &mut Pod<'_>, path: &[&str], context: &Value) {
    for field in IDS {
        if context[field].as_number().is_some_and(|it| !it.as_i64().is_some_and(|it| (0..=MOST_ID).contains(&it))) {
            let message = format!("{field} is {}", context[field]);
            pod.say(&[path, &[field]].concat(), (message, "write a number from 0 to 2147483647"));
        }
    }
    for field in PROFILES {
        let profile = &context[field];
        let (ty, file) = (text(profile, "type"), text(profile, "localhostProfile"));
        let (message, hint) = match (ty, file) {
            _ if !profile.is_object() => continue,
            (ty, _) if !PROFILE_TYPES.contains(&ty) => {
                (format!("the type of {field} is {ty:?}"), "write Localhost, RuntimeDefault or Unconfined")
            }
            ("Localhost", "") => {
                (format!("{field} has no localhostProfile"), "write its file, or type: RuntimeDefault")
            }
            ("RuntimeDefault" | "Unconfined", file) if !file.is_empty() => {
                (format!("{field} of type {ty} has a localhostProfile"), "leave it out, or write type: Localhost")
            }
            _ => continue,
        };
        pod.say(&[path, &[field]].concat(), (message, hint));
    }
}

/// Privileges that a container cannot have and not have.
fn privileges(pod: &mut Pod<'_>, [list, own]: [&str; 2], context: &Value) {
    if context["allowPrivilegeEscalation"] != false {
        return;
    }
    let has_admin = items(&context["capabilities"]["add"]).any(|it| it == "CAP_SYS_ADMIN");
    let what = if context["privileged"] == true { "privileged: true" } else { "the capability CAP_SYS_ADMIN" };
    if context["privileged"] == true || has_admin {
        let message = format!("the container {own:?} has allowPrivilegeEscalation: false and {what}");
        pod.say(&[list, own, "securityContext"], (message, "leave out one of the two"));
    }
}

/// The names of the pod, and how it looks up others.
fn names(pod: &mut Pod<'_>) {
    let spec = pod.spec;
    for field in ["hostname", "subdomain"] {
        let said = text(spec, field);
        if !said.is_empty() && !is_label(said) {
            let hint = "write up to 63 lower-case letters, digits and dashes";
            pod.say(&[field], (format!("{field} is {said:?}, which is no DNS label"), hint));
        }
    }
    items(&spec["hostAliases"]).for_each(|it| alias(pod, it));
    let servers: Vec<&str> = items(&spec["dnsConfig"]["nameservers"]).filter_map(Value::as_str).collect();
    let (message, hint) = if let Some(server) = servers.iter().find(|server| !is_address(server)) {
        (format!("dnsConfig has the name server {server:?}"), "write an IP address")
    } else if servers.len() > MOST_SERVERS {
        (format!("dnsConfig has {} name servers", servers.len()), "keep three at most")
    } else if servers.is_empty() && text(spec, "dnsPolicy") == "None" {
        ("dnsPolicy is None, and dnsConfig has no name server".to_owned(), "add one to dnsConfig.nameservers")
    } else {
        return;
    };
    pod.say(&["dnsConfig"], (message, hint));
}

/// Checks further names of an address.
fn alias(pod: &mut Pod<'_>, alias: &Value) {
    let (path, address) = (["hostAliases"], text(alias, "ip"));
    if !is_address(address) {
        pod.say(&path, (format!("hostAliases has the ip {address:?}"), "write an IP address"));
    }
    for name in items(&alias["hostnames"]).filter_map(Value::as_str).filter(|name| !is_subdomain(name)) {
        let message = format!("hostAliases calls {address:?} {name:?}, which is the name of no host");
        pod.say(&path, (message, OF_NAMES));
    }
}

fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}
