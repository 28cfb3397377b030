//! Parameters that several packs have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// An image.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-slips" = {"name": "an image is given as registry, repository and tag"}))]
pub struct Image {
    /// Host, and path if any.
    pub registry: Option<String>,
    /// Name, without the registry.
    pub repository: Option<String>,
    /// Tag.
    pub tag: Option<String>,
    /// Digest, such as `sha256:…`.
    pub digest: Option<String>,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: Option<String>,
}

/// A patch of one object.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overlay {
    /// Labels and annotations to set.
    pub metadata: Option<OverlayMetadata>,
    /// A strategic merge patch of its `spec`.
    #[schemars(extend("type" = "object"))]
    pub spec: Option<Value>,
}

/// Labels and annotations to set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OverlayMetadata {
    /// Labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations.
    pub annotations: BTreeMap<String, Option<String>>,
}
