//! Ports of Services, and those that policies of networks and Ingresses name.

use serde_json::Value;

use super::Sheet;
use super::services::{CLUSTER_IP, EXTERNAL_NAME, is_set, word};
use super::values::{is_label, place};
use crate::rules::pods::forms::{is_port, port_hint};
use crate::spec::metadata::is_label_key;

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MOST_PORT: i64 = 65_535;

pub(super) fn of_service(sheet: &mut Sheet<'_>, spec: &Value, ty: &str) {
    let ports: Vec<&Value> = spec["ports"].as_array().into_iter().flatten().collect();
    let needs_none = ty == EXTERNAL_NAME || spec["clusterIP"] == "None";
    if ports.is_empty() && !needs_none {
        sheet.say(&["spec"], ("spec.ports has no port".to_owned(), "write one, or clusterIP: None"));
    }
    let has_several = ports.len() > 1;
    for (index, port) in ports.into_iter().enumerate() {
        one(sheet, &["spec", "ports", &index.to_string()], (port, ty, has_several));
    }
}

fn one(sheet: &mut Sheet<'_>, path: &[&str], (port, ty, has_several): (&Value, &str, bool)) {
    // Without a target, or with 0, the pods listen on the same port.
    for (field, least) in [("port", 1), ("targetPort", 0), ("nodePort", 0)] {
        number(sheet, path, (field, &port[field]), least);
    }
    if port["targetPort"] != "" {
        named(sheet, path, ("targetPort", &port["targetPort"]));
    }
    let mut say = |field: &str, (message, hint): (&str, &str)| {
        let message = format!("{} {message}", place(path));
        sheet.say(&[path, &[field]].concat(), (message, hint));
    };
    let name = port["name"].as_str().unwrap_or_default();
    if name.is_empty() && has_several {
        say("name", ("has no name, and there are several", "give each port a name"));
    } else if !name.is_empty() && !is_label(name) {
        let hint = "write up to 63 lower-case letters, digits and dashes";
        say("name", (&format!("has the name {name:?}, which is no DNS label"), hint));
    }
    if let Some(protocol) = port["appProtocol"].as_str().filter(|protocol| !is_label_key(protocol)) {
        let hint = "write a word such as http, or one with a domain, such as kubernetes.io/h2c";
        say("appProtocol", (&format!("has the appProtocol {protocol:?}, which is the name of no protocol"), hint));
    }
    if is_set(&port["nodePort"]) && ty == CLUSTER_IP {
        let message = "has a nodePort, which does not go together with the type ClusterIP";
        say("nodePort", (message, "leave it out, or write type: NodePort"));
    }
    word(sheet, &[path, &["protocol"]].concat(), &port["protocol"], &PROTOCOLS);
}

/// Says that a field is a number which no port has.
pub(super) fn number(sheet: &mut Sheet<'_>, path: &[&str], (field, value): (&str, &Value), least: i64) {
    if value.as_i64().is_some_and(|number| !(least..=MOST_PORT).contains(&number)) {
        let message = format!("{} has the {field} {value}, which is no port", place(path));
        sheet.say(&[path, &[field]].concat(), (message, "write a number from 1 to 65535"));
    }
}

/// Says that a field is a text which no port is called by.
pub(super) fn named(sheet: &mut Sheet<'_>, path: &[&str], (field, value): (&str, &Value)) {
    if let Some(text) = value.as_str().filter(|text| !is_port(text)) {
        let message = format!("{} has the {field} {text:?}, which is no name of a port", place(path));
        sheet.say(&[path, &[field]].concat(), (message, port_hint(text)));
    }
}
