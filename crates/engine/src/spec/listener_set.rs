//! `ListenerSet` of `gateway.networking.k8s.io`: listeners that others add to a Gateway.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Metadata;
use super::gateway::Listener;

/// Listeners of a Gateway that somebody else owns.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenerSet {
    /// `gateway.networking.k8s.io/v1`.
    pub api_version: String,
    /// `ListenerSet`.
    pub kind: String,
    /// Name and namespace.
    #[schemars(with = "ObjectMeta")]
    pub metadata: Metadata,
    /// The listeners that it adds, and the Gateway to which it adds them.
    pub spec: ListenerSetSpec,
    /// Written by controllers; ignored.
    #[serde(default)]
    pub status: Option<Value>,
}

/// The spec of a set: what it adds.
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
    #[serde(default)]
    pub group: Option<String>,
    /// `Gateway` if absent.
    #[serde(default)]
    pub kind: Option<String>,
    /// The namespace of the set if absent.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}
