//! Containers: their images, what they ask for and may use, what they mount, and their ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::values::LASTING;
use super::{Pod, items, name};
use crate::check::suggest;
use crate::devices;
use crate::quantity::Quantity;
use crate::rules::table::{
    CONTAINER_WITHOUT_IMAGE, PARALLELISM_AND_DEVICES, PORT_OF_TWO_CONTAINERS, REQUEST_AND_LIMIT, RESOURCE_NAME,
    VOLUME_NOT_FOUND,
};
use crate::text::did_you_mean;

/// The resources without a domain that containers may have.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const PAGES: &str = "hugepages-";

/// The flags by which servers of models are told over how many devices to spread a layer.
static TENSOR_PARALLEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|\s)--?(?:tensor-parallel-size|tp-size|tp)[\s=]+["']?(\d{1,4})\b"#).expect("a test reads it")
});

/// The most letters in which a misspelled device differs.
const MOST_LETTERS: usize = 2;

pub(super) fn check(pod: &mut Pod<'_>) {
    for (list, container) in pod.containers() {
        image(pod, list, container);
        resources(pod, list, container);
        mounts(pod, list, container);
        parallelism(pod, list, container);
    }
    ports(pod);
}

fn image(pod: &mut Pod<'_>, list: &'static str, container: &Value) {
    if container["image"].as_str().is_some_and(|image| !image.is_empty()) {
        return;
    }
    let own = name(container);
    let with_image = |(of, it): &(&str, &Value)| *of == list && it["image"].as_str().is_some_and(|it| !it.is_empty());
    let others: Vec<String> = pod.containers().filter(with_image).map(|(_, it)| format!("{:?}", name(it))).collect();
    let or = if others.is_empty() {
        String::new()
    } else {
        format!(", or use the name of one that has: {}", others.join(", "))
    };
    let hint = format!("write its image{or}");
    pod.add((CONTAINER_WITHOUT_IMAGE, false), &[list, own], (format!("the container {own:?} has no image"), hint));
}

fn resources(pod: &mut Pod<'_>, list: &'static str, container: &Value) {
    let own = name(container);
    let side = |side: &str| container["resources"][side].as_object().cloned().unwrap_or_default();
    let (limits, requests) = (side("limits"), side("requests"));
    let names: BTreeSet<&String> = limits.keys().chain(requests.keys()).collect();
    for resource in names {
        let side = if limits.contains_key(resource) { "limits" } else { "requests" };
        let path = [list, own, "resources", side, resource.as_str()];
        let of_container = format!("the container {own:?}");
        if let Some((is_weak, message, hint)) = wrong_name(resource) {
            pod.add((RESOURCE_NAME, is_weak), &path, (format!("{of_container} {message}"), hint));
        } else if let Some((message, hint)) = apart(resource, limits.get(resource), requests.get(resource)) {
            pod.add((REQUEST_AND_LIMIT, false), &path, (format!("{of_container} {message}"), hint));
        }
    }
}

/// Says what is wrong with the name of a resource, and whether it may yet be one.
fn wrong_name(resource: &str) -> Option<(bool, String, String)> {
    let message = format!("asks for {resource:?}, which is no resource");
    if !resource.contains('/') {
        if STANDARD.contains(&resource) || resource.starts_with(PAGES) {
            return None;
        }
        let end = format!("/{}", resource.trim_end_matches('s'));
        let devices: Vec<&str> = devices::NAMES.into_iter().filter(|device| device.ends_with(&end)).collect();
        let hint = did_you_mean(suggest(resource, STANDARD)).filter(|_| devices.is_empty());
        let device = if devices.is_empty() { format!("example.com/{resource}") } else { devices.join(" or ") };
        let hint = hint.unwrap_or_else(|| format!("write the domain of a device before it, as in {device}"));
        return Some((false, message, hint));
    }
    let distance = |device: &&str| strsim::damerau_levenshtein(resource, device);
    let near =
        devices::NAMES.into_iter().min_by_key(distance).filter(|device| (1..=MOST_LETTERS).contains(&distance(device)));
    let message = format!("asks for {resource:?}, which no node is known to have");
    did_you_mean(near).map(|hint| (true, message, hint))
}

/// Says how a request and a limit do not go together.
fn apart(resource: &str, limit: Option<&Value>, request: Option<&Value>) -> Option<(String, String)> {
    let is_device = resource.contains('/') && !resource.contains("kubernetes.io/") || resource.starts_with(PAGES);
    let amount = |value: Option<&Value>| value.and_then(Quantity::of);
    let shown = |value: Option<&Value>| {
        value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    };
    match (amount(limit), amount(request)) {
        (None, Some(_)) if is_device && limit.is_none() => Some((
            format!("requests {} of {resource:?} and has no limit for it", shown(request)),
            "write it below limits; the request is the same by itself".to_owned(),
        )),
        (Some(most), Some(asked)) if is_device && most != asked => Some((
            format!("requests {} of {resource:?}, but its limit is {}", shown(request), shown(limit)),
            "write the same number twice, or the limit alone: devices are not shared out by more than there are"
                .to_owned(),
        )),
        (Some(most), Some(asked)) if asked > most => Some((
            format!("requests {} of {resource:?}, which is more than its limit {}", shown(request), shown(limit)),
            "raise the limit, or lower the request".to_owned(),
        )),
        _ => None,
    }
}

/// A server of models that spreads each layer over more devices than it has ends as soon as it starts. In groups of pods it
/// may have those of others.
fn parallelism(pod: &mut Pod<'_>, list: &'static str, container: &Value) {
    let lists = ["command", "args"].into_iter().flat_map(|field| items(&container[field]));
    let line = lists.filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let asked = TENSOR_PARALLEL.captures_iter(&line).filter_map(|found| found[1].parse::<i128>().ok()).max();
    let limits = container["resources"]["limits"].as_object().into_iter().flatten();
    let mut devices =
        limits.filter(|(resource, _)| resource.ends_with("/gpu") || devices::NAMES.contains(&resource.as_str()));
    let (Some(asked), Some((resource, count))) = (asked, devices.next()) else { return };
    let count = Quantity::of(count).map(Quantity::whole).unwrap_or_default();
    if asked > count && LASTING.contains(&pod.owner.id().kind.as_str()) {
        let own = name(container);
        let message =
            format!("the container {own:?} spreads a model over {asked} devices, but may use {count} of {resource:?}");
        let hint = "raise the limit, or lower the tensor parallelism".to_owned();
        let path = [list, own, "resources", "limits", resource.as_str()];
        pod.add((PARALLELISM_AND_DEVICES, false), &path, (message, hint));
    }
}

fn mounts(pod: &mut Pod<'_>, list: &'static str, container: &Value) {
    let claimed = items(&pod.owner.body()["spec"]["volumeClaimTemplates"]).map(|claim| name(&claim["metadata"]));
    let volumes: BTreeSet<&str> = items(&pod.spec["volumes"]).map(name).chain(claimed).collect();
    let own = name(container);
    for (field, path) in [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")] {
        for mount in items(&container[field]).filter(|mount| !volumes.contains(name(mount))) {
            let volume = name(mount);
            let at = mount[path].as_str().unwrap_or_default();
            let message =
                format!("the container {own:?} mounts the volume {volume:?} at {at:?}, and there is no such volume");
            let known: Vec<&str> = volumes.iter().copied().collect();
            let others = if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) };
            let near = did_you_mean(suggest(volume, volumes.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("add it to volumes{others}"));
            pod.add((VOLUME_NOT_FOUND, false), &[list, own, field, volume], (message, hint));
        }
    }
}

/// Containers of a pod share its ports: the second one that listens on one ends.
fn ports(pod: &mut Pod<'_>) {
    let mut taken: BTreeMap<(u64, &str), &str> = BTreeMap::new();
    let stays = |(list, container): &(&str, &Value)| *list == "containers" || container["restartPolicy"] == "Always";
    for (list, container) in pod.containers().filter(stays) {
        for port in items(&container["ports"]) {
            let Some(number) = port["containerPort"].as_u64() else { continue };
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            let (own, first) = (name(container), taken.get(&(number, protocol)).copied());
            match first {
                None => drop(taken.insert((number, protocol), name(container))),
                Some(first) if first == own => {}
                Some(first) => {
                    let message = format!("the containers {first:?} and {own:?} both have port {number}");
                    let hint = "give one of them another port: all containers of a pod have one address".to_owned();
                    pod.add((PORT_OF_TWO_CONTAINERS, false), &[list, own, "ports"], (message, hint));
                }
            }
        }
    }
}
