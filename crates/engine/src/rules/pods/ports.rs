//! Ports of containers.

use serde_json::Value;

use super::forms::{OF_PORTS, is_port, port_hint};
use super::{Pod, items, name};
use crate::rules::table::POD_VALUE;

const MOST_PORT: u64 = 65_535;

pub(super) fn check(pod: &mut Pod<'_>) {
    for (list, container) in pod.containers() {
        for port in items(&container["ports"]) {
            one(pod, [list, name(container), "ports"], port);
        }
    }
    if pod.spec["hostNetwork"] == true {
        of_host(pod);
    }
}

fn one(pod: &mut Pod<'_>, path: [&str; 3], port: &Value) {
    for field in ["containerPort", "hostPort"] {
        number(pod, &path, (field, &port[field]), u64::from(field == "containerPort"));
    }
    if let Some(text) = port["name"].as_str().filter(|text| !is_port(text)) {
        let message = format!("the name of a port of the container {:?} is {text:?}", path[1]);
        pod.say(&path, (message, OF_PORTS));
    }
}

/// A container in the network of its host listens there, and nothing leads from one port to another.
fn of_host(pod: &mut Pod<'_>) {
    for container in items(&pod.spec["containers"]) {
        let own = name(container);
        for port in items(&container["ports"]) {
            let [inner, outer] = ["containerPort", "hostPort"].map(|field| port[field].as_u64().unwrap_or_default());
            if outer != 0 && outer != inner {
                let message = format!(
                    "the container {own:?} has hostPort {outer} for containerPort {inner}, in the network of its host"
                );
                pod.say(&["containers", own, "ports"], (message, "leave hostPort out, or leave out hostNetwork"));
            }
        }
    }
}

/// Checks the port that a probe or a hook asks at: a number, or the name of a port.
pub(super) fn reached(pod: &mut Pod<'_>, path: &[&str], (what, port): (&str, &Value)) {
    match port {
        Value::Null => pod.say(path, (format!("{what} has no port"), "write the number or the name of a port")),
        Value::String(text) if !is_port(text) => {
            pod.say(
                &[path, &["port"]].concat(),
                (format!("{what} has the port {text:?}, which is no name of a port"), port_hint(text)),
            );
        }
        port => number(pod, path, ("port", port), 1),
    }
}

/// Checks the number of a port, if it is one.
fn number(pod: &mut Pod<'_>, path: &[&str], (field, value): (&str, &Value), least: u64) {
    let Some(number) = value.as_number() else { return };
    if !number.as_u64().is_some_and(|number| (least..=MOST_PORT).contains(&number)) {
        let message = format!("{field} is {number}, which is no port");
        pod.add(
            (POD_VALUE, false),
            &[path, &[field]].concat(),
            (message, format!("write a number from 1 to {MOST_PORT}")),
        );
    }
}
