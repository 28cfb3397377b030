//! Backends of routes: whether they may be sent to, and whether a Service of the source has the port.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{items, misspelled, there_are};
use crate::object::ObjectId;
use crate::rules::found::{Sheet, dotted, text};
use crate::rules::listeners::port;
use crate::rules::references::not_granted;
use crate::rules::table::{REFERENCE_NOT_GRANTED, ROUTE_BACKEND};
use crate::spec::Specs;
use crate::text::did_you_mean;
use crate::unit::Unit;
use crate::yaml::Node;

/// Groups that hold nothing that requests can be sent to but Services: `v1` and `core` are none at all.
const OF_SERVICES: [&str; 4] = ["", "apps", "core", "v1"];

/// The ports of Services, by namespace and name.
pub(in crate::rules) type Services = BTreeMap<(String, String), Vec<i64>>;

/// Returns the Services that a source holds, and those that are rendered from it.
pub(in crate::rules) fn services(specs: &Specs, units: &[Unit]) -> Services {
    let key = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    let ports = |body: &Value| {
        let ports = body["spec"]["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port["port"].as_i64()).collect::<Vec<_>>()
    };
    let rendered = units.iter().flat_map(Unit::all).filter(|object| object.id().is_a("", "Service"));
    let rendered = rendered.map(|object| (key(&object.id().namespace, &object.id().name), ports(object.body())));
    let written = specs.unclaimed.iter().filter(|document| document.id.is_a("", "Service"));
    let written = written.map(|document| {
        let ports = items(&document.root, &["spec", "ports"]).iter().filter_map(port).collect();
        (key(specs.home(document), &document.id.name), ports)
    });
    written.chain(rendered).collect()
}

/// Checks all that a route sends requests to, copies of them as well.
pub(super) fn check(sheet: &mut Sheet<'_>, services: &Services) {
    for (index, rule) in items(sheet.root(), &["spec", "rules"]).iter().enumerate() {
        let path = ["spec".to_owned(), "rules".to_owned(), index.to_string()];
        mirrors(sheet, services, (rule, &path));
        for (place, backend) in items(rule, &["backendRefs"]).iter().enumerate() {
            let path = [&path[..], &["backendRefs".to_owned(), place.to_string()]].concat();
            check_one(sheet, services, (backend, &path));
            mirrors(sheet, services, (backend, &path));
        }
    }
}

/// Checks what filters of a rule, or of a backend, send copies to.
fn mirrors(sheet: &mut Sheet<'_>, services: &Services, (node, path): (&Node, &[String])) {
    for (index, filter) in items(node, &["filters"]).iter().enumerate() {
        if let Some(backend) = filter.at(["requestMirror", "backendRef"]) {
            let below = ["filters", &index.to_string(), "requestMirror", "backendRef"].map(str::to_owned);
            check_one(sheet, services, (backend, &[path, &below].concat()));
        }
    }
}

fn check_one(sheet: &mut Sheet<'_>, services: &Services, (backend, path): (&Node, &[String])) {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let below = |field: &'static str| [&path[..], &[field]].concat();
    let specs = sheet.context.specs;
    let from = specs.placed(sheet.document);
    let (group, kind) = (text(backend, &["group"]).unwrap_or_default(), text(backend, &["kind"]).unwrap_or("Service"));
    let Some(name) = text(backend, &["name"]) else { return };
    let id =
        ObjectId::new(group, kind, specs.namespace(text(backend, &["namespace"]).unwrap_or(&from.namespace)), name);
    if OF_SERVICES.contains(&group) && !id.is_a("", "Service") {
        let message = format!("{} names a {kind} of group {group:?}, to which no route sends requests", dotted(&path));
        let hint = "leave out group and kind for a Service; other kinds need their group".to_owned();
        return sheet.warn(ROUTE_BACKEND, &below(if group.is_empty() { "kind" } else { "group" }), (message, hint));
    }
    if id.namespace != from.namespace && !specs.known.grants(&from, &id) {
        if sheet.asks_beyond_source(REFERENCE_NOT_GRANTED) || sheet.context.holds(&id) {
            sheet.warn(REFERENCE_NOT_GRANTED, &below("namespace"), not_granted(&dotted(&path), &from, &id));
        }
        return;
    }
    if !id.is_a("", "Service") {
        return;
    }
    let Some(ports) = services.get(&(id.namespace.clone(), name.to_owned())) else {
        let first = (id.namespace.clone(), String::new());
        let beside = services.range(first..).take_while(|((namespace, _), _)| *namespace == id.namespace);
        if let Some(hint) = did_you_mean(misspelled(name, beside.map(|((_, name), _)| name.as_str()))) {
            let message = format!("{} names {id}, which is not in the source", dotted(&path));
            sheet.warn(ROUTE_BACKEND, &below("name"), (message, hint));
        }
        return;
    };
    if let Some(wanted) = port(backend).filter(|wanted| !ports.is_empty() && !ports.contains(wanted)) {
        let path = below("port");
        let message = format!("{} is {wanted}, and {id} has no such port", dotted(&path));
        sheet.warn(ROUTE_BACKEND, &path, (message, there_are(ports.clone())));
    }
}
