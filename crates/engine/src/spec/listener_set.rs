//! `ListenerSet` of `gateway.networking.k8s.io`: listeners that others add to a Gateway.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::gateway::Listener;
use super::{Document, Resource, Specs};
use crate::yaml::{Content, Node};

/// Listeners of a Gateway that somebody else owns.
pub type ListenerSet = Resource<ListenerSetSpec>;

/// The spec of a set: the listeners that it adds, and the Gateway to which it adds them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenerSetSpec {
    /// The Gateway.
    pub parent_ref: ParentRef,
    /// The listeners.
    #[schemars(length(min = 1, max = 64))]
    pub listeners: Vec<Listener>,
}

/// A reference to a Gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ParentRef {
    /// `gateway.networking.k8s.io` if absent.
    pub group: Option<String>,
    /// `Gateway` if absent.
    pub kind: Option<String>,
    /// The namespace of the set if absent.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// The path of what a Gateway says of the namespaces from which listener sets may attach.
pub(crate) const FROM: [&str; 4] = ["spec", "allowedListeners", "namespaces", "from"];

/// Tells whether a Gateway lets listener sets of a namespace attach, as far as the source shows (GEP-1713): by itself it
/// lets none.
pub(crate) fn allows(specs: &Specs, gateway: &Document, namespace: &str) -> bool {
    match gateway.root.at(FROM).and_then(Node::as_str).unwrap_or("None") {
        "All" => true,
        "Same" => *namespace == *gateway.id.namespace,
        // Namespaces that are not in the source may have any labels.
        "Selector" => specs.known.labels(namespace).is_none_or(|labels| selects(gateway, &labels)),
        _ => false,
    }
}

/// Tells whether the selector of a Gateway may select a namespace with these labels.
fn selects(gateway: &Document, labels: &BTreeMap<String, String>) -> bool {
    let path = ["spec", "allowedListeners", "namespaces", "selector", "matchLabels"];
    let wanted = gateway.root.at(path).into_iter().flat_map(Node::fields);
    let has = |(key, value): (&str, &Content)| match value {
        Content::String(value) => labels.get(key) == Some(value),
        _ => false,
    };
    wanted.map(|(key, field)| (key, &field.node.content)).all(has)
}
