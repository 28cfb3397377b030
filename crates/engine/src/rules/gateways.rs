//! Gateways.

use super::certificates;
use super::found::{Provider, Sheet, dotted, text};
use super::listeners::{self, Listener};
use super::table::{INVALID_PARAMETERS, RESERVED_PREFIX};
use super::{addresses, ports, protocols};
use crate::pack::Pack;
use crate::yaml::Node;

/// The prefix of labels and annotations that are the standard's own (GEP-1762, GEP-1867).
const RESERVED: &str = "gateway.networking.k8s.io/";

/// Checks a Gateway.
pub(super) fn check(sheet: &mut Sheet<'_>) {
    let all = Listener::all(sheet.root());
    listeners::check(sheet, &all);
    listeners::selector(sheet, &["spec", "allowedListeners", "namespaces"]);
    certificates::of_listeners(sheet, &all);
    certificates::of_backends(sheet);
    let lost = certificates::of_clients(sheet, &all);
    protocols::check(sheet, &all, lost);
    ports::check(sheet, &all);
    addresses::check(sheet);
    infrastructure(sheet);
    parameters(sheet);
}

fn infrastructure(sheet: &mut Sheet<'_>) {
    for field in ["labels", "annotations"] {
        let path = ["spec", "infrastructure", field];
        let keys = sheet.root().at(path).into_iter().flat_map(Node::fields).map(|(key, _)| key);
        for key in keys.filter(|key| key.starts_with(RESERVED)) {
            let message = format!("{} has {key:?}, whose prefix is the standard's own", dotted(&path));
            let hint = "take it away, or use a prefix of your own, as example.com/".to_owned();
            let path = [&path[..], &[key]].concat();
            // A pack leaves the standard's own as it has to be, and renders the rest.
            let is_harmless = matches!(sheet.provider, Provider::Pack);
            let said = (message, hint);
            if is_harmless { sheet.warn(RESERVED_PREFIX, &path, said) } else { sheet.add(RESERVED_PREFIX, &path, said) }
        }
    }
}

/// Checks parameters where no class tells which are needed; elsewhere it is told when they are read.
fn parameters(sheet: &mut Sheet<'_>) {
    let path = ["spec", "infrastructure", "parametersRef"];
    let Some(node) = sheet.root().at(path).filter(|_| matches!(sheet.provider, Provider::Unknown)) else { return };
    let field = |name: &str| text(node, &[name]).unwrap_or_default();
    let (group, kind) = (field("group"), field("kind"));
    let mut known = sheet.context.packs.all().iter().flat_map(Pack::kinds);
    if known.any(|known| known.kind.group == group && known.kind.kind == kind) {
        return;
    }
    let message = format!("InvalidParameters: no pack takes parameters of kind {kind:?} and group {group:?}");
    let hint = "name a class that is known, and parameters of the kind that it takes".to_owned();
    sheet.add(INVALID_PARAMETERS, &path, (message, hint));
}
