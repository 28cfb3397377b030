//! `ListenerSet` of `gateway.networking.k8s.io`: listeners that others add to a Gateway.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Resource;
use super::gateway::Listener;

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
