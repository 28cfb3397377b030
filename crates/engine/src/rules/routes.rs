//! Routes: whether the listeners that they name take them, and whether they may send to what they name behind them.
//!
//! Only what the source shows counts: a Gateway, a Service or a grant that is not in it may be on the cluster.

use std::collections::BTreeMap;

use super::found::{Sheet, dotted, text};
use super::listeners::{Listener, port, takes};
use super::table::{REFERENCE_NOT_GRANTED, ROUTE_BACKEND, ROUTE_HOSTNAME, ROUTE_NOT_ALLOWED, ROUTE_PARENT};
use crate::check::suggest;
use crate::object::ObjectId;
use crate::spec::{Document, GATEWAY_API, Specs, listener_set};
use crate::text::{did_you_mean, listed};
use crate::yaml::Node;

/// The most ports, names or hostnames that a message lists.
const MOST: usize = 8;

/// Kinds of routes that know no hostnames.
const WITHOUT_HOSTNAMES: [&str; 2] = ["TCPRoute", "UDPRoute"];

/// The Services of a source, by namespace and name.
pub(super) type Services<'a> = BTreeMap<(&'a str, &'a str), &'a Document>;

/// Returns the Services that a source holds.
pub(super) fn services(specs: &Specs) -> Services<'_> {
    let services = specs.unclaimed.iter().filter(|document| document.id.is_a("", "Service"));
    services.map(|document| ((specs.home(document), document.id.name.as_str()), document)).collect()
}

/// Checks a route.
pub(super) fn check(sheet: &mut Sheet<'_>, services: &Services<'_>) {
    for (index, parent) in items(sheet.root(), &["spec", "parentRefs"]).iter().enumerate() {
        attach(sheet, parent, &["spec", "parentRefs", &index.to_string()]);
    }
    for (index, rule) in items(sheet.root(), &["spec", "rules"]).iter().enumerate() {
        for (place, backend) in items(rule, &["backendRefs"]).iter().enumerate() {
            let path = ["spec", "rules", &index.to_string(), "backendRefs", &place.to_string()];
            of_backend(sheet, services, (backend, &path));
        }
    }
}

fn items<'a>(node: &'a Node, path: &[&str]) -> &'a [Node] {
    node.at(path.iter().copied()).map(Node::items).unwrap_or_default()
}

/// Checks that a Gateway or listener set of the source takes the route.
fn attach(sheet: &mut Sheet<'_>, parent: &Node, path: &[&str]) {
    let specs = sheet.context.specs;
    let home = specs.home(sheet.document);
    let (group, kind) = (text(parent, &["group"]).unwrap_or(GATEWAY_API), text(parent, &["kind"]).unwrap_or("Gateway"));
    let (true, Some(name)) = (group == GATEWAY_API, text(parent, &["name"])) else { return };
    let id = ObjectId::new(group, kind, specs.namespace(text(parent, &["namespace"]).unwrap_or(home)), name);
    let Some(document) = specs.documents.get(&id) else {
        let beside = specs.of_kind(group, kind).filter(|it| it.id.namespace == id.namespace);
        let near = suggest(name, beside.map(|document| document.id.name.as_str()));
        if let Some(hint) = did_you_mean(near).filter(|_| !specs.has(&id)) {
            let message = format!("{} is {id}, which is not in the source", dotted(path));
            sheet.warn(ROUTE_PARENT, &[path, &["name"]].concat(), (message, hint));
        }
        return;
    };
    let Some(named) = named(sheet, (parent, path), document) else { return };
    let allowed = match allowed(sheet, (&named, home), document) {
        Ok(allowed) => allowed,
        Err(said) => return sheet.warn(ROUTE_NOT_ALLOWED, path, said),
    };
    let hostnames: Vec<&str> = items(sheet.root(), &["spec", "hostnames"]).iter().filter_map(Node::as_str).collect();
    let meets = |listener: &Listener<'_>| {
        let own = listener.text(&["hostname"]).unwrap_or_default();
        own.is_empty() || hostnames.iter().any(|hostname| intersect(own, hostname))
    };
    let has_hostnames = !hostnames.is_empty() && !WITHOUT_HOSTNAMES.contains(&sheet.document.id.kind.as_str());
    if has_hostnames && !allowed.iter().any(meets) {
        let theirs = allowed.iter().filter_map(|listener| listener.text(&["hostname"]));
        let message =
            format!("spec.hostnames has nothing in common with the listeners of {id}: {}", listed(hostnames, MOST));
        let hint = format!("write a hostname for which one of them is: {}", listed(theirs, MOST));
        sheet.warn(ROUTE_HOSTNAME, &["spec", "hostnames"], (message, hint));
    }
}

/// Returns the listeners that a reference to a parent names; `None`, and says so, where there are none.
fn named<'a>(
    sheet: &mut Sheet<'_>,
    (parent, path): (&Node, &[&str]),
    document: &'a Document,
) -> Option<Vec<Listener<'a>>> {
    let mut listeners = Listener::all(&document.root);
    if let Some(section) = text(parent, &["sectionName"]) {
        let names: Vec<&str> = listeners.iter().map(Listener::name).collect();
        listeners.retain(|listener| listener.name() == section);
        if listeners.is_empty() {
            let path = [path, &["sectionName"]].concat();
            let message = format!("{} is {section:?}, and {} has no such listener", dotted(&path), document.id);
            let all = || format!("there are: {}", listed(&names, MOST));
            let hint = did_you_mean(suggest(section, names.iter().copied())).unwrap_or_else(all);
            sheet.warn(ROUTE_PARENT, &path, (message, hint));
            return None;
        }
    }
    if let Some(wanted) = port(parent) {
        let ports: Vec<i64> = listeners.iter().filter_map(Listener::port).collect();
        listeners.retain(|listener| listener.port() == Some(wanted));
        if listeners.is_empty() {
            let path = [path, &["port"]].concat();
            let message = format!("{} is {wanted}, and {} has no such listener", dotted(&path), document.id);
            sheet.warn(ROUTE_PARENT, &path, (message, format!("there are: {}", listed(ports, MOST))));
            return None;
        }
    }
    (!listeners.is_empty()).then_some(listeners)
}

/// Returns those listeners that take routes of the kind from the namespace; else why none does.
fn allowed<'a>(
    sheet: &Sheet<'_>,
    (listeners, home): (&[Listener<'a>], &str),
    document: &Document,
) -> Result<Vec<Listener<'a>>, (String, String)> {
    let (kind, parent) = (sheet.document.id.kind.as_str(), &document.id);
    let who = match listeners {
        [one] => format!("listener {:?} of {parent} takes no {kind}s", one.name()),
        _ => format!("no listener of {parent} takes {kind}s"),
    };
    let of_kind: Vec<Listener<'_>> = listeners.iter().filter(|listener| takes(listener, kind)).copied().collect();
    if of_kind.is_empty() {
        return Err((who, "see the protocol and the allowedRoutes.kinds of the listeners".to_owned()));
    }
    let namespaces = |listener: &Listener<'a>| listener.node.at(["allowedRoutes", "namespaces"]);
    let specs = sheet.context.specs;
    let is_open = |listener: &&Listener<'a>| {
        listener_set::admits(specs, (namespaces(listener), "Same"), (&parent.namespace, home))
    };
    let open: Vec<Listener<'_>> = of_kind.iter().filter(is_open).copied().collect();
    if open.is_empty() {
        let message = format!("{who} of namespace {home:?}");
        let hint = "write allowedRoutes: {namespaces: {from: All}} into a listener, or a selector for the namespace";
        return Err((message, hint.to_owned()));
    }
    Ok(open)
}

/// Tells whether there is a name for which two hostnames are: a wildcard stands for one part of a name or more.
fn intersect(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    match (one.strip_prefix('*'), other.strip_prefix('*')) {
        (None, None) => one == other,
        (Some(end), None) => other.ends_with(end),
        (None, Some(end)) => one.ends_with(end),
        (Some(end), Some(other)) => end.ends_with(other) || other.ends_with(end),
    }
}

/// Checks that the route may send to a Service, and that a Service of the source has the port.
fn of_backend(sheet: &mut Sheet<'_>, services: &Services<'_>, (backend, path): (&Node, &[&str])) {
    let specs = sheet.context.specs;
    let from = specs.placed(sheet.document);
    let (group, kind) = (text(backend, &["group"]).unwrap_or_default(), text(backend, &["kind"]).unwrap_or("Service"));
    let Some(name) = text(backend, &["name"]) else { return };
    let id =
        ObjectId::new(group, kind, specs.namespace(text(backend, &["namespace"]).unwrap_or(&from.namespace)), name);
    if id.namespace != from.namespace && !specs.known.grants(&from, &id) {
        if !sheet.asks_beyond_source(REFERENCE_NOT_GRANTED) && !sheet.context.holds(&id) {
            return;
        }
        let message = format!("{} names {id}, and no ReferenceGrant of the source allows that", dotted(path));
        let hint = format!(
            "put a ReferenceGrant into namespace {:?}: from: [{{group: {GATEWAY_API}, kind: {}, namespace: {}}}], \
             to: [{{group: {group:?}, kind: {kind}}}]",
            id.namespace, from.kind, from.namespace
        );
        return sheet.warn(REFERENCE_NOT_GRANTED, &[path, &["namespace"]].concat(), (message, hint));
    }
    if !id.is_a("", "Service") {
        return;
    }
    let Some(service) = services.get(&(id.namespace.as_str(), name)) else {
        let hint = did_you_mean(suggest(name, sheet.context.beside(&id)));
        if let Some(hint) = hint {
            let message = format!("{} names {id}, which is not in the source", dotted(path));
            sheet.warn(ROUTE_BACKEND, &[path, &["name"]].concat(), (message, hint));
        }
        return;
    };
    let ports: Vec<i64> = items(&service.root, &["spec", "ports"]).iter().filter_map(port).collect();
    if let Some(wanted) = port(backend).filter(|wanted| !ports.is_empty() && !ports.contains(wanted)) {
        let path = [path, &["port"]].concat();
        let message = format!("{} is {wanted}, and {id} has no such port", dotted(&path));
        sheet.warn(ROUTE_BACKEND, &path, (message, format!("there are: {}", listed(ports, MOST))));
    }
}
