//! Listener sets: what is wrong in their listeners, and whether their Gateway lets them attach.

use super::certificates;
use super::found::Sheet;
use super::listeners::{self, Listener};
use super::table::LISTENER_SET_NOT_ALLOWED;
use super::{ports, protocols};
use crate::object::ObjectId;
use crate::spec::listener_set;

/// Checks a listener set.
pub(super) fn check(sheet: &mut Sheet<'_>) {
    let all = Listener::all(sheet.root());
    listeners::check(sheet, &all);
    certificates::of_listeners(sheet, &all);
    protocols::check(sheet, &all, Vec::new());
    ports::check(sheet, &all);
    let Some(parent) = sheet.context.parent(sheet.document) else { return };
    if let Some(gateway) = sheet.context.specs.documents.get(&parent) {
        ports::beside_gateway(sheet, &gateway.root, &all);
    }
    if let Some(said) = refusal(sheet, &parent) {
        sheet.warn(LISTENER_SET_NOT_ALLOWED, &["spec", "parentRef"], said);
    }
}

/// Says why a Gateway does not let the set attach, as far as the source shows.
fn refusal(sheet: &Sheet<'_>, parent: &ObjectId) -> Option<(String, String)> {
    let specs = sheet.context.specs;
    let Some(gateway) = specs.documents.get(parent) else {
        let message = format!("its {parent} is not in the source, and a Gateway allows no listener sets by itself");
        let hint = "see that its spec.allowedListeners allows the namespace of the set".to_owned();
        return (!specs.broken.contains_key(parent)).then_some((message, hint));
    };
    let namespace = &sheet.document.id.namespace;
    let message = match listener_set::allowed(gateway) {
        "None" => format!("its {parent} allows no listener sets"),
        _ => format!("its {parent} allows no listener sets of namespace {namespace:?}"),
    };
    let wanted = if *namespace == parent.namespace { "Same" } else { "All" };
    let hint = format!("write allowedListeners: {{namespaces: {{from: {wanted}}}}} into the spec of the Gateway");
    (!listener_set::allows(specs, gateway, namespace)).then_some((message, hint))
}
