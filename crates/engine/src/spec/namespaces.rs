//! Choices of namespaces: from which of them listener sets and routes may attach to a Gateway.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Specs;
use crate::selector::{Expression, labels_match};
use crate::yaml::Node;

/// The label that every namespace has, with its name.
pub(crate) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A selector of namespaces by their labels.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Expression>>,
}

/// Tells whether a choice of namespaces has one in it, as far as the source shows; where nothing is said it is the `usual`
/// choice.
pub(crate) fn admits(
    specs: &Specs,
    (namespaces, usual): (Option<&Node>, &str),
    (own, namespace): (&str, &str),
) -> bool {
    let field = |name: &str| namespaces.and_then(|namespaces| namespaces.get(name));
    match field("from").and_then(Node::as_str).unwrap_or(usual) {
        "All" => true,
        "Same" => namespace == own,
        // Namespaces that are not in the source may have any labels.
        "Selector" => match specs.known.labels(namespace) {
            Some(labels) => selects(field("selector"), &labels),
            None => selects_by_name(field("selector"), namespace),
        },
        _ => false,
    }
}

/// Tells whether a selector may select a namespace of which nothing but its name is known, and so one label.
fn selects_by_name(selector: Option<&Node>, namespace: &str) -> bool {
    let Some(said) = selector.and_then(|selector| selector.at(["matchLabels", NAME_LABEL])) else { return true };
    said.as_str().is_none_or(|said| said == namespace)
}

/// Tells whether a selector selects these labels; one that cannot be read is somebody else's trouble.
fn selects(selector: Option<&Node>, labels: &BTreeMap<String, String>) -> bool {
    let selector = selector.map(|node| serde_json::from_value::<LabelSelector>(node.to_value()));
    let Some(Ok(LabelSelector { match_labels, match_expressions })) = selector else { return true };
    labels_match(labels, match_labels.as_ref(), match_expressions.as_deref())
}
