//! Policies: what whoever runs the clusters asks of everything that is rendered. None is in force unless a config file
//! says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Id;
use super::table::{IMAGE_POLICY, POD_SECURITY};

/// The rules that stand for policies. No API server has to refuse what they do.
pub(super) const ALL: [Id; 2] = [POD_SECURITY, IMAGE_POLICY];

/// The policies of a config file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policies {
    /// The level of the Pod Security Standards that pods have to keep to.
    pub pod_security: Option<PodSecurity>,
    /// The images that containers may have.
    pub images: ImagePolicy,
}

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PodSecurity {
    /// Without known ways to more rights.
    Baseline,
    /// With all that is good practice.
    Restricted,
}

/// The images that containers may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImagePolicy {
    /// Registries, or folders of them; empty allows all.
    pub registries: Vec<String>,
    /// Whether an image has to be named with its digest.
    pub digests: bool,
}
