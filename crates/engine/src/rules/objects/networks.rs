//! Policies of networks: whom pods talk to, and at which ports.

use serde_json::Value;

use super::ports::{PROTOCOLS, named, number};
use super::services::{is_range, word};
use super::values::place;
use super::{Sheet, selectors};

/// The directions, each with the field that says who is at the other end.
const DIRECTIONS: [(&str, &str); 2] = [("egress", "to"), ("ingress", "from")];

const TYPES: [&str; 2] = ["Egress", "Ingress"];

pub(super) fn check(sheet: &mut Sheet<'_>, spec: &Value) {
    selectors::check(sheet, &["spec", "podSelector"], &spec["podSelector"]);
    for (index, ty) in items(&spec["policyTypes"]) {
        word(sheet, &["spec", "policyTypes", &index], ty, &TYPES);
    }
    for (direction, end) in DIRECTIONS {
        for (index, rule) in items(&spec[direction]) {
            for (at, port) in items(&rule["ports"]) {
                of_port(sheet, &["spec", direction, &index, "ports", &at], port);
            }
            for (at, other) in items(&rule[end]) {
                peer(sheet, &["spec", direction, &index, end, &at], other);
            }
        }
    }
}

/// Returns the items of a list, each with its index.
fn items(list: &Value) -> impl Iterator<Item = (String, &Value)> {
    list.as_array().into_iter().flatten().enumerate().map(|(index, item)| (index.to_string(), item))
}

fn of_port(sheet: &mut Sheet<'_>, path: &[&str], port: &Value) {
    number(sheet, path, ("port", &port["port"]), 1);
    named(sheet, path, ("port", &port["port"]));
    word(sheet, &[path, &["protocol"]].concat(), &port["protocol"], &PROTOCOLS);
    let (first, last) = (port["port"].as_i64(), &port["endPort"]);
    if last.is_null() {
        return;
    }
    number(sheet, path, ("endPort", last), 1);
    if first.is_none_or(|first| last.as_i64().is_some_and(|last| last < first)) {
        let message = format!("{} has the endPort {last} without a port before it", place(path));
        sheet.say(&[path, &["endPort"]].concat(), (message, "write the number of the first port below port"));
    }
}

fn peer(sheet: &mut Sheet<'_>, path: &[&str], peer: &Value) {
    let (block, fields) = (&peer["ipBlock"], ["podSelector", "namespaceSelector"]);
    let selects = fields.iter().any(|field| peer[*field].is_object());
    if !selects && !block.is_object() {
        let message = format!("{} names nobody", place(path));
        sheet.say(path, (message, "write a podSelector, a namespaceSelector or an ipBlock"));
    } else if selects && block.is_object() {
        let message = format!("{} has an ipBlock and a selector", place(path));
        sheet.say(&[path, &["ipBlock"]].concat(), (message, "write two items"));
    }
    for field in fields {
        selectors::check(sheet, &[path, &[field]].concat(), &peer[field]);
    }
    let range = block["cidr"].as_str().unwrap_or_default();
    if block.is_object() && !is_range(range) {
        let message = format!("{}.ipBlock.cidr is {range:?}, which is no range of addresses", place(path));
        sheet.say(&[path, &["ipBlock", "cidr"]].concat(), (message, "write one as 10.0.0.0/8"));
    }
}
