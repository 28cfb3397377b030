//! Classes of Gateways: the namespace of their parameters.

use super::found::{Sheet, text};
use super::table::{CLASS_PARAMETERS_NAMESPACE_EXTRA, CLASS_PARAMETERS_NAMESPACE_MISSING};
use crate::kinds::row::Scope;

/// The beginning of the names of kinds that by custom are in no namespace.
const CUSTOM: &str = "Cluster";

/// Checks a class.
pub(super) fn check(sheet: &mut Sheet<'_>) {
    let path = ["spec", "parametersRef"];
    let Some(node) = sheet.root().at(path) else { return };
    let field = |name: &str| text(node, &[name]).unwrap_or_default();
    let (group, kind, namespace) = (field("group"), field("kind"), field("namespace"));
    match (scope(sheet, group, kind), namespace) {
        (Some(Scope::Namespaced), "") => {
            let message = format!("the parametersRef of the class needs a namespace, because a {kind} is in one");
            let hint = "write namespace: beside its name".to_owned();
            sheet.add(CLASS_PARAMETERS_NAMESPACE_MISSING, &path, (message, hint));
        }
        (Some(Scope::Cluster), named) if !named.is_empty() => {
            let message = format!("the parametersRef of the class has a namespace, but a {kind} is in none");
            let path = [&path[..], &["namespace"]].concat();
            sheet.add(CLASS_PARAMETERS_NAMESPACE_EXTRA, &path, (message, "take the namespace away".to_owned()));
        }
        (None, named) if !named.is_empty() && kind.starts_with(CUSTOM) => {
            let message =
                format!("the parametersRef of the class has a namespace, but by its name a {kind} is in none");
            let path = [&path[..], &["namespace"]].concat();
            let hint = "take the namespace away, unless the definition of the kind says scope: Namespaced".to_owned();
            sheet.warn(CLASS_PARAMETERS_NAMESPACE_EXTRA, &path, (message, hint));
        }
        _ => {}
    }
}

/// Returns whether objects of a kind are in namespaces, where anybody knows.
fn scope(sheet: &Sheet<'_>, group: &str, kind: &str) -> Option<Scope> {
    let said = sheet.context.packs.kinds().get(&(group.to_owned(), kind.to_owned()));
    let said = said.map(|kind| if kind.namespaced { Scope::Namespaced } else { Scope::Cluster });
    let specs = sheet.context.specs;
    said.or_else(|| specs.known.scope(group, kind)).or_else(|| specs.kinds.scope(group, kind))
}
