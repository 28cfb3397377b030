//! Listeners of a Gateway or of a listener set: what is wrong with each by itself.

use std::net::Ipv4Addr;

use super::found::{Sheet, dotted, text};
use super::table::{HOSTNAME_IS_ADDRESS, INVALID_ROUTE_KIND, SELECTOR_MISSING};
use crate::check::suggest;
use crate::spec::GATEWAY_API;
use crate::text::did_you_mean;
use crate::yaml::{Content, Node};

/// Kinds of routes of the standard, each with the protocols of listeners that take it.
const ROUTES: [(&str, &[&str]); 5] = [
    ("HTTPRoute", &["HTTP", "HTTPS"]),
    ("GRPCRoute", &["HTTP", "HTTPS"]),
    ("TLSRoute", &["TLS"]),
    ("TCPRoute", &["TCP", "TLS"]),
    ("UDPRoute", &["UDP"]),
];

/// One listener as it is written.
#[derive(Clone, Copy)]
pub(super) struct Listener<'a> {
    pub(super) index: usize,
    pub(super) node: &'a Node,
}

impl<'a> Listener<'a> {
    /// Returns all listeners of a document.
    pub(super) fn all(root: &'a Node) -> Vec<Self> {
        let listeners = root.at(["spec", "listeners"]).map(Node::items).unwrap_or_default();
        listeners.iter().enumerate().map(|(index, node)| Self { index, node }).collect()
    }

    pub(super) fn text(&self, path: &[&str]) -> Option<&'a str> {
        text(self.node, path)
    }

    pub(super) fn name(&self) -> &'a str {
        self.text(&["name"]).unwrap_or_default()
    }

    pub(super) fn protocol(&self) -> &'a str {
        self.text(&["protocol"]).unwrap_or_default()
    }

    pub(super) fn port(&self) -> Option<i64> {
        port(self.node)
    }

    pub(super) fn passes_tls_on(&self) -> bool {
        self.text(&["tls", "mode"]) == Some("Passthrough")
    }

    /// Returns the path of a field in the document.
    pub(super) fn path(&self, below: &[&str]) -> Vec<String> {
        let index = self.index.to_string();
        ["spec", "listeners", &index].iter().chain(below).map(|part| (*part).to_owned()).collect()
    }
}

/// Returns the port that something names.
pub(super) fn port(node: &Node) -> Option<i64> {
    match &node.get("port")?.content {
        Content::Number(number) => number.as_i64(),
        _ => None,
    }
}

/// Checks each listener.
pub(super) fn check(sheet: &mut Sheet<'_>, listeners: &[Listener<'_>]) {
    for listener in listeners {
        hostname(sheet, listener);
        kinds(sheet, listener);
        let path = listener.path(&["allowedRoutes", "namespaces"]);
        selector(sheet, &path.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Checks that there is a selector where namespaces are to be selected.
pub(super) fn selector(sheet: &mut Sheet<'_>, path: &[&str]) {
    let Some(namespaces) = sheet.root().at(path.iter().copied()) else { return };
    let is_absent = namespaces.get("selector").is_none_or(|node| node.content == Content::Null);
    if text(namespaces, &["from"]) == Some("Selector") && is_absent {
        let message = format!("{}.from is Selector, and there is no selector beside it", dotted(path));
        let hint = "write selector: {matchLabels: {…}}, or from: Same or from: All";
        sheet.add(SELECTOR_MISSING, &[path, &["from"]].concat(), (message, hint.to_owned()));
    }
}

/// Tells whether a listener takes routes of a kind, as far as the standard says it: by its protocol, and by the kinds that it
/// allows.
pub(super) fn takes(listener: &Listener<'_>, kind: &str) -> bool {
    let protocol = listener.protocol();
    let is_known = ROUTES.iter().any(|(_, protocols)| protocols.contains(&protocol));
    let is_of_protocol = ROUTES.iter().any(|(name, protocols)| *name == kind && protocols.contains(&protocol));
    let allowed = listener.node.at(["allowedRoutes", "kinds"]).map(Node::items).unwrap_or_default();
    let is_it = |node: &Node| {
        text(node, &["kind"]) == Some(kind) && text(node, &["group"]).is_none_or(|group| group == GATEWAY_API)
    };
    (!is_known || is_of_protocol) && (allowed.is_empty() || allowed.iter().any(is_it))
}

fn hostname(sheet: &mut Sheet<'_>, listener: &Listener<'_>) {
    let Some(hostname) = listener.text(&["hostname"]) else { return };
    if hostname.parse::<Ipv4Addr>().is_err() {
        return;
    }
    let path = listener.path(&["hostname"]);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let message = format!("{} is {hostname:?}, but must be a name, and no IP address", dotted(&path));
    let hint =
        "leave the hostname out to serve all of them; an address that the Gateway is to have stands in spec.addresses";
    sheet.add(HOSTNAME_IS_ADDRESS, &path, (message, hint.to_owned()));
}

/// Checks the kinds of routes that a listener allows.
fn kinds(sheet: &mut Sheet<'_>, listener: &Listener<'_>) {
    let allowed = listener.node.at(["allowedRoutes", "kinds"]).map(Node::items).unwrap_or_default();
    for (index, node) in allowed.iter().enumerate() {
        let Some(kind) = text(node, &["kind"]) else { continue };
        // Routes of vendors are known to their data planes.
        if text(node, &["group"]).is_some_and(|group| group != GATEWAY_API) {
            continue;
        }
        let path = listener.path(&["allowedRoutes", "kinds", &index.to_string(), "kind"]);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(said) = mistake(&dotted(&path), kind, listener.protocol()) {
            sheet.warn(INVALID_ROUTE_KIND, &path, said);
        }
    }
}

/// Says what is wrong with a kind of routes on a listener, and what to write.
fn mistake(path: &str, kind: &str, protocol: &str) -> Option<(String, String)> {
    let names = || ROUTES.iter().map(|(name, _)| *name);
    let Some((_, protocols)) = ROUTES.iter().find(|(name, _)| *name == kind) else {
        let message = format!("{path} is {kind:?}, which is no kind of routes of {GATEWAY_API}");
        let usual = || format!("use one of {}, or name the group of the kind", names().collect::<Vec<_>>().join(", "));
        return Some((message, did_you_mean(suggest(kind, names())).unwrap_or_else(usual)));
    };
    let taken = ROUTES.iter().filter(|(_, protocols)| protocols.contains(&protocol)).map(|(name, _)| *name);
    let taken: Vec<&str> = taken.collect();
    // Nobody knows which routes a protocol of a vendor takes.
    if taken.is_empty() || protocols.contains(&protocol) {
        return None;
    }
    let message = format!("{path} is {kind:?}, which a listener for {protocol} does not take");
    Some((message, format!("use {}, or a listener for {}", taken.join(" or "), protocols.join(" or "))))
}
