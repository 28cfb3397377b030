//! `ListenerSet` of `gateway.networking.k8s.io`: listeners that others add to a Gateway.

use schemars::JsonSchema;
use serde::Deserialize;

use super::gateway::Listener;
use super::namespaces::admits;
use super::{Document, Resource, Specs};
use crate::yaml::Node;

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
const NAMESPACES: [&str; 3] = ["spec", "allowedListeners", "namespaces"];

/// Returns the namespaces from which a Gateway lets listener sets attach, as it says it (GEP-1713): by itself from none.
pub(crate) fn allowed(gateway: &Document) -> &str {
    gateway.root.at(NAMESPACES).and_then(|namespaces| namespaces.get("from")).and_then(Node::as_str).unwrap_or("None")
}

/// Tells whether a Gateway lets listener sets of a namespace attach, as far as the source shows.
pub(crate) fn allows(specs: &Specs, gateway: &Document, namespace: &str) -> bool {
    admits(specs, (gateway.root.at(NAMESPACES), "None"), (&gateway.id.namespace, namespace))
}
