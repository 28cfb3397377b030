//! Certificates that listeners show, those that a Gateway shows to backends, and authorities for those of clients.

use std::collections::BTreeSet;

use super::found::{Sheet, dotted, text};
use super::listeners::{Listener, port};
use super::protocols::Lost;
use super::references::Reference;
use super::table::{
    AUTHORITY_KIND, AUTHORITY_NOT_FOUND, CERTIFICATE_EXPIRED, CERTIFICATE_HOSTNAME, CERTIFICATE_INVALID,
    CERTIFICATE_KIND, CERTIFICATE_NOT_FOUND, CLIENT_CERTIFICATE, INSECURE_VALIDATION, PORT_WITHOUT_LISTENER,
};
use super::x509::{Certificate, Material};
use crate::text::listed;
use crate::yaml::Node;

/// Protocols whose listeners have certificates.
const WITH_TLS: [&str; 2] = ["HTTPS", "TLS"];

/// Where a Gateway says how clients are validated.
const FRONTEND: [&str; 3] = ["spec", "tls", "frontend"];

/// The most certificates and names of them that are said of a listener.
const NAMED: usize = 3;

/// Checks the certificates of listeners. What several listeners name is said once.
pub(super) fn of_listeners(sheet: &mut Sheet<'_>, listeners: &[Listener<'_>]) {
    let mut said = BTreeSet::new();
    for listener in listeners.iter().filter(|it| WITH_TLS.contains(&it.protocol()) && !it.passes_tls_on()) {
        let path = listener.path(&["tls", "certificateRefs"]);
        let references = all(sheet, &path, "Secret");
        for reference in references.iter().filter(|reference| said.insert(reference.id())) {
            match (reference.group, reference.kind) {
                ("", "Secret") => {
                    sheet.look_up(CERTIFICATE_NOT_FOUND, reference);
                    contents(sheet, reference, sheet.context.specs.known.pair(&reference.id()));
                }
                // Others may have kinds of their own for certificates.
                (group, _) if !group.is_empty() && sheet.is_foreign() => {}
                _ => sheet.wrong_kind(CERTIFICATE_KIND, reference, "Secret"),
            }
        }
        hostname(sheet, listener, &references);
    }
}

/// Says what is wrong with what the source holds, where a reference names it.
fn contents(sheet: &mut Sheet<'_>, reference: &Reference<'_>, material: Option<&Material>) {
    let Some(Material { place, flaw, certificate }) = material else { return };
    let path: Vec<&str> = reference.path.iter().map(String::as_str).collect();
    let what = format!("{} names {}", dotted(&path), reference.id());
    if let Some(flaw) = flaw {
        sheet.warn(CERTIFICATE_INVALID, &path, (format!("{what}, and {flaw}"), format!("correct it at {place}")));
    }
    let expiry = sheet.context.now.zip(certificate.as_ref()).and_then(|(now, it)| it.expiry(now));
    if let Some(verb) = expiry {
        let message = format!("{what}, whose certificate {verb}");
        sheet.warn(CERTIFICATE_EXPIRED, &path, (message, format!("renew it at {place}")));
    }
}

/// Checks that a listener has a certificate for its hostname, where the source holds all that it names.
fn hostname(sheet: &mut Sheet<'_>, listener: &Listener<'_>, references: &[Reference<'_>]) {
    let Some(hostname) = listener.text(&["hostname"]).filter(|hostname| !hostname.is_empty()) else { return };
    let known = &sheet.context.specs.known;
    let certificate = |reference: &Reference<'_>| known.pair(&reference.id())?.certificate.as_ref();
    let Some(all) = references.iter().map(certificate).collect::<Option<Vec<&Certificate>>>() else { return };
    if all.is_empty() || all.iter().any(|certificate| certificate.covers(hostname)) {
        return;
    }
    let path = listener.path(&["hostname"]);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let ids = listed(references.iter().map(Reference::id), NAMED);
    let message = format!("{} is {hostname:?}, and no certificate of the listener is for it: {ids}", dotted(&path));
    let names: BTreeSet<&String> = all.iter().flat_map(|certificate| &certificate.names).collect();
    let hint = match names.len() {
        0 => "use a certificate that names it among its alternative names: there is none in this one".to_owned(),
        _ => format!("use a certificate for it, or a hostname of {}", listed(names, NAMED)),
    };
    sheet.warn(CERTIFICATE_HOSTNAME, &path, (message, hint));
}

/// Checks the certificate that a Gateway shows to backends.
pub(super) fn of_backends(sheet: &mut Sheet<'_>) {
    let path = ["spec", "tls", "backend", "clientCertificateRef"];
    let Some(node) = sheet.root().at(path) else { return };
    let Some(reference) = Reference::read(sheet, node, path.map(str::to_owned).to_vec(), "Secret") else { return };
    match (reference.group, reference.kind) {
        ("", "Secret") => {
            sheet.look_up(CLIENT_CERTIFICATE, &reference);
            contents(sheet, &reference, sheet.context.specs.known.pair(&reference.id()));
        }
        _ => sheet.wrong_kind(CLIENT_CERTIFICATE, &reference, "Secret"),
    }
}

/// Checks how clients are validated, on all ports and on some, and returns the listeners that are lost by it.
pub(super) fn of_clients(sheet: &mut Sheet<'_>, listeners: &[Listener<'_>]) -> Vec<Lost> {
    let Some(frontend) = sheet.root().at(FRONTEND) else { return Vec::new() };
    let per_port = frontend.get("perPort").map(Node::items).unwrap_or_default();
    let ports: Vec<Option<i64>> = per_port.iter().map(port).collect();
    let https: Vec<&Listener<'_>> = listeners.iter().filter(|listener| listener.protocol() == "HTTPS").collect();
    let on = |is_on: &dyn Fn(Option<i64>) -> bool| -> BTreeSet<usize> {
        https.iter().filter(|listener| is_on(listener.port())).map(|listener| listener.index).collect()
    };
    let mut lost = validation(sheet, &["default"], &on(&|port| !ports.contains(&port)));
    for (index, port) in ports.iter().enumerate() {
        let index = index.to_string();
        let concerned = on(&|other| other == *port);
        if concerned.is_empty() {
            unused(sheet, &index, *port);
        }
        lost.extend(validation(sheet, &["perPort", &index, "tls"], &concerned));
    }
    lost
}

/// A listener set of somebody else may have the port after all.
fn unused(sheet: &mut Sheet<'_>, index: &str, port: Option<i64>) {
    let Some(port) = port.filter(|_| !sheet.context.has_sets(&sheet.document.id)) else { return };
    let path = [&FRONTEND[..], &["perPort", index, "port"]].concat();
    let message = format!("{} is {port}, and no listener takes HTTPS on that port", dotted(&path));
    let hint = "correct the port, or take the entry away".to_owned();
    sheet.warn(PORT_WITHOUT_LISTENER, &path, (message, hint));
}

/// Checks the validation at a path below `spec.tls.frontend`, which is about some listeners.
fn validation(sheet: &mut Sheet<'_>, below: &[&str], listeners: &BTreeSet<usize>) -> Vec<Lost> {
    let path = [&FRONTEND[..], below, &["validation"]].concat();
    let Some(node) = sheet.root().at(path.iter().copied()) else { return Vec::new() };
    if text(node, &["mode"]) == Some("AllowInsecureFallback") {
        let path = [&path[..], &["mode"]].concat();
        let message = format!("{} lets clients in whose certificate is not valid, or who have none", dotted(&path));
        let hint = "write AllowValidOnly, or leave the mode out".to_owned();
        sheet.warn(INSECURE_VALIDATION, &path, (message, hint));
    }
    let path: Vec<String> = [&path[..], &["caCertificateRefs"]].concat().into_iter().map(str::to_owned).collect();
    let (mut usable, mut lost) = (0, Vec::new());
    for reference in all(sheet, &path, "ConfigMap") {
        match (reference.group, reference.kind) {
            ("", "ConfigMap" | "Secret") => {
                usable += 1;
                sheet.look_up(AUTHORITY_NOT_FOUND, &reference);
                contents(sheet, &reference, sheet.context.specs.known.authorities(&reference.id()));
            }
            // Others may have kinds of their own for authorities.
            (group, _) if !group.is_empty() => usable += 1,
            _ => lost.push(no_authority(&reference, listeners.clone())),
        }
    }
    if usable > 0 {
        for it in &mut lost {
            it.listeners.clear();
        }
    }
    lost
}

fn no_authority(reference: &Reference<'_>, listeners: BTreeSet<usize>) -> Lost {
    let path: Vec<String> = reference.path.iter().cloned().chain(["kind".to_owned()]).collect();
    let at = dotted(&reference.path.iter().map(String::as_str).collect::<Vec<_>>());
    let message = format!("{at} names a {} of group \"\", but must name a ConfigMap", reference.kind);
    let hint = "write kind: ConfigMap, with the authorities under its key ca.crt".to_owned();
    Lost { rule: AUTHORITY_KIND, listeners, path, said: (message, hint) }
}

/// Reads the references of a list.
fn all<'a>(sheet: &Sheet<'a>, path: &[String], kind: &'static str) -> Vec<Reference<'a>> {
    let nodes = sheet.root().at(path.iter().map(String::as_str)).map(Node::items).unwrap_or_default();
    let read = |(index, node): (usize, &'a Node)| {
        let path = path.iter().cloned().chain([index.to_string()]).collect();
        Reference::read(sheet, node, path, kind)
    };
    nodes.iter().enumerate().filter_map(read).collect()
}
