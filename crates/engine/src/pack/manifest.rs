//! `pack.yaml`: what a pack claims, and what about it is data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::overlay::Overlay;
use crate::merge::Line;

/// What `pack.yaml` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The name, as in `packs.<name>` of the config.
    pub name: String,
    /// The `controllerName`s of classes whose Gateways it renders.
    pub controllers: Vec<String>,
    /// Classes that exist without a document, because the control plane makes them: name to controller.
    #[serde(default)]
    pub classes: BTreeMap<String, String>,
    /// The kind of its parameters.
    pub parameters: ParameterKind,
    /// How layers of parameters merge.
    #[serde(default)]
    pub merge: Vec<Line>,
    /// The templates, in the order in which they are rendered.
    pub templates: Vec<String>,
    /// How its control plane is told that somebody else provisions a Gateway; absent if it cannot be told.
    #[serde(default)]
    pub self_managed: Option<SelfManaged>,
    /// By what its objects are known on any cluster, whoever has made them.
    #[serde(default)]
    pub traces: Option<Traces>,
    /// The parameters that patch what is rendered.
    #[serde(default)]
    pub overlays: Vec<Overlay>,
    /// Secrets with a value that is made once, on each cluster.
    #[serde(default)]
    pub generate: Vec<Generated>,
}

/// A Secret with a value that is made once. Templates do not see the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Generated {
    /// The template that yields the Secret without the value, or nothing.
    pub template: String,
    /// The field of `data` for the value.
    pub key: String,
    /// How many random bytes it has.
    pub bytes: u16,
    /// How they are written.
    pub encoding: Encoding,
}

/// How random bytes are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Two lower-case digits a byte.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// How a control plane is told that somebody else provisions a Gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelfManaged {
    /// The `spec` of parameters that say so.
    pub spec: Value,
    /// The field manager of the control plane's own deployer.
    pub deployer: String,
}

/// By what the objects of a pack are known.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traces {
    /// The label that each of them bears; its value names the Gateway.
    pub label: String,
    /// Their kinds.
    pub kinds: Vec<Kind>,
}

/// A kind of objects.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// A kind of parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParameterKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Versions that are read.
    pub versions: Vec<String>,
}
