//! Members of a management cluster: objects that name the Secret of a cluster, and say more of it than that.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// An object that stands for a cluster: a `ManagedCluster`, or a `Cluster` of Fleet.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    labels: Option<BTreeMap<String, String>>,
}

impl Member {
    /// Returns the name of the cluster.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns its namespace; empty if it is in none.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns the labels of the cluster.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.metadata.labels.clone().unwrap_or_default()
    }

    /// Returns the text of a field of its spec, by JSON pointer; `None` if there is none, or an empty one.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.spec.pointer(pointer)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }
}
