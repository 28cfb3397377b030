//! Listeners that are lost: a controller accepts none of them, and no Gateway of which nothing is left.

use std::collections::BTreeSet;

use super::found::{Sheet, dotted};
use super::listeners::Listener;
use super::table::{HTTPS_WITHOUT_TLS, UNSUPPORTED_PROTOCOL};
use super::{Id, ports};
use crate::check::suggest;
use crate::text::did_you_mean;

/// The protocols of the standard.
const PROTOCOLS: [&str; 5] = ["HTTP", "HTTPS", "TLS", "TCP", "UDP"];

/// In use without the domain that the standard asks of the names of others (meshes, GEP-1867's neighbors).
const TOLERATED: [&str; 1] = ["HBONE"];

/// A finding by which listeners are lost.
pub(super) struct Lost {
    pub(super) rule: Id,
    /// The listeners, by their places in the list.
    pub(super) listeners: BTreeSet<usize>,
    pub(super) path: Vec<String>,
    pub(super) said: (String, String),
}

/// Adds what loses listeners: an error where none is left, and otherwise a warning, so that one mistake does not take the
/// rest of the Gateway with it.
pub(super) fn check(sheet: &mut Sheet<'_>, listeners: &[Listener<'_>], mut lost: Vec<Lost>) {
    lost.extend(listeners.iter().filter_map(unsupported));
    lost.extend(listeners.iter().filter_map(without_tls));
    lost.extend(ports::conflicts(listeners));
    lost.retain(|it| sheet.asks(it.rule));
    let all: BTreeSet<usize> = lost.iter().flat_map(|it| it.listeners.iter().copied()).collect();
    let is_alone = !sheet.context.has_sets(&sheet.document.id) && !sheet.is_foreign();
    let is_nothing_left = is_alone && !listeners.is_empty() && all.len() == listeners.len();
    for Lost { rule, path, said, .. } in lost {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if is_nothing_left { sheet.add(rule, &path, said) } else { sheet.warn(rule, &path, said) }
    }
}

fn unsupported(listener: &Listener<'_>) -> Option<Lost> {
    let protocol = listener.protocol();
    let is_known = PROTOCOLS.contains(&protocol) || TOLERATED.contains(&protocol) || protocol.contains('/');
    if is_known {
        return None;
    }
    let path = listener.path(&["protocol"]);
    let at = dotted(&path.iter().map(String::as_str).collect::<Vec<_>>());
    let message = format!("{at} is {protocol:?}, which is no protocol of the standard");
    let usual =
        || format!("use one of {}; that of a vendor begins with a domain, as example.com/name", PROTOCOLS.join(", "));
    let hint = did_you_mean(suggest(protocol, PROTOCOLS)).unwrap_or_else(usual);
    Some(Lost { rule: UNSUPPORTED_PROTOCOL, listeners: [listener.index].into(), path, said: (message, hint) })
}

fn without_tls(listener: &Listener<'_>) -> Option<Lost> {
    if listener.protocol() != "HTTPS" || listener.node.get("tls").is_some() {
        return None;
    }
    let path = listener.path(&["protocol"]);
    let index = listener.index;
    let message = format!("spec.listeners[{index}] is for HTTPS and has no tls, so that it has no certificate");
    let hint = "write tls: {certificateRefs: [{name: NAME-OF-A-SECRET}]}, or protocol: HTTP".to_owned();
    Some(Lost { rule: HTTPS_WITHOUT_TLS, listeners: [index].into(), path, said: (message, hint) })
}
