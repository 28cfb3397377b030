//! `ClusterOverlay` of `gatewright.dev`: what the platform says about the Gateways of others, cluster by cluster.
//!
//! Here is only what one looks like; [`crate::overlay`] says what it does.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Document, Metadata};
use crate::patch::PatchType;
use crate::problem::Problem;
use crate::selector::{ClusterSelector, Expression};
use crate::tree::is_within;

/// The API group of what only gatewright reads.
pub const GROUP: &str = "gatewright.dev";

/// The kind of overlays.
pub const KIND: &str = "ClusterOverlay";

/// The versions of overlays that are read.
pub(crate) const VERSIONS: [&str; 1] = ["v1alpha1"];

/// The folders of a source in which overlays count: who may write there speaks for the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OverlayFolders {
    /// All of them.
    #[default]
    All,
    /// These, without slashes around them; an empty one is the whole source.
    Named(Vec<String>),
}

impl OverlayFolders {
    /// Names folders, or files, by their paths from the root of the source; `.` is all of it.
    pub fn named(paths: &[String]) -> Self {
        let plain = |path: &String| {
            let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
            parts.collect::<Vec<_>>().join("/")
        };
        Self::Named(paths.iter().map(plain).collect())
    }

    /// Tells whether a file is in one of them.
    pub(crate) fn hold(&self, file: &str) -> bool {
        let Self::Named(folders) = self else { return true };
        folders.iter().any(|folder| folder.is_empty() || is_within(file, folder))
    }

    /// Returns what is wrong with an overlay that stands elsewhere. It holds nobody: else whoever may write anywhere in
    /// the source could hold everybody.
    pub(super) fn problem_with(&self, document: &Document) -> Option<Problem> {
        let is_overlay = document.id.group == GROUP && document.id.kind == KIND;
        if !is_overlay || self.hold(&document.file) {
            return None;
        }
        let hint = "move it to a folder of the platform, or name its folder in overlays.paths of the sync";
        Some(document.problem(&[], "overlays of this folder do not count").hint(hint))
    }
}

/// An overlay: what holds for some Gateways on some clusters, whatever their own parameters say.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOverlay {
    /// `gatewright.dev/v1alpha1`.
    pub api_version: String,
    /// `ClusterOverlay`.
    pub kind: String,
    /// Its name; overlays have no namespace.
    #[schemars(with = "ObjectMeta")]
    pub metadata: Metadata,
    /// The spec of the overlay.
    pub spec: OverlaySpec,
}

/// The spec of an overlay.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-gatewright-slips" = {
    "patches": "specPatches change the Gateway, objectPatches what is rendered from it",
    "clusterSelector": "the clusters are selected by clusters",
    "rules": "bounds are listed as enforce",
    "valuesFrom": "a file with values of clusters is named by values: {file: …}"
}))]
pub struct OverlaySpec {
    /// The clusters; absent: all.
    pub clusters: Option<ClusterSelector>,
    /// The Gateways, or other specs; absent: all Gateways.
    pub target: Option<Target>,
    /// Of two overlays the one with the higher priority wins.
    pub priority: i32,
    /// A table with values of clusters, for expressions such as `{{ values.ip }}`.
    pub values: Option<ClusterValues>,
    /// Parameters above those of the Gateway: the shape of the `spec` of its kind of parameters.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub parameters: Option<Value>,
    /// Changes of the Gateway before it is validated and resolved.
    pub spec_patches: Vec<SpecPatch>,
    /// Changes of the objects that are rendered from it.
    pub object_patches: Vec<ObjectPatch>,
    /// The bounds that must hold for the merged parameters.
    pub enforce: Vec<Bound>,
}

/// A table with values of clusters; one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("x-gatewright-one-of" = ["byCluster", "file"]))]
pub struct ClusterValues {
    /// The values of each cluster, by its name.
    pub by_cluster: Option<BTreeMap<String, Value>>,
    /// A file with such a mapping, seen from the folder of the overlay.
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

/// A selection of Gateways, or of other specs; everything that is said must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Target {
    /// By class.
    pub gateway_classes: Option<Vec<String>>,
    /// By name.
    pub gateways: Option<Vec<GatewayName>>,
    /// By kind, and perhaps name: the only way to what is no Gateway.
    pub specs: Option<Vec<SpecName>>,
    /// By label.
    pub match_labels: Option<BTreeMap<String, String>>,
    /// By expression over a label.
    pub match_expressions: Option<Vec<Expression>>,
}

/// The name of a Gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayName {
    /// Namespace; absent: any.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Specs of a kind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecName {
    /// Kind, such as `ModelPool`.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// API group; absent: any.
    pub group: Option<String>,
    /// Namespace; absent: any.
    pub namespace: Option<String>,
    /// Name; absent: any.
    pub name: Option<String>,
}

/// A change of a Gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SpecPatch {
    /// The type of the patch, which tells how to read it; absent: `json` if it is a list, else `merge`.
    #[serde(default, rename = "type")]
    pub kind: Option<PatchType>,
    /// The patch.
    pub patch: Value,
}

/// A change of an object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPatch {
    /// The object, or several.
    pub target: ObjectTarget,
    /// The type of the patch, which tells how to read it; absent: `json` if it is a list, else `strategic`, or `merge`
    /// with a `dataKey`.
    #[serde(default, rename = "type")]
    pub kind: Option<PatchType>,
    /// The key of a `ConfigMap`'s `data` whose YAML or JSON is patched instead of the object.
    #[schemars(length(min = 1))]
    pub data_key: Option<String>,
    /// The patch.
    pub patch: Value,
}

/// A selection among the objects of a Gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-gatewright-slips" = {"namespace": "all objects of a Gateway are in its namespace"}))]
pub struct ObjectTarget {
    /// API group, empty for the core group; absent: any.
    pub group: Option<String>,
    /// Kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name; absent: any, and a warning where that is more than one object of a spec; `*`: any.
    pub name: Option<String>,
}

/// Something that must hold for the merged parameters of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// An expression in CEL that must be true.
    #[schemars(length(min = 1))]
    pub rule: String,
    /// The message for somebody who breaks it.
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_overlays_are_whole_names() {
        let check = |paths: &[&str], file: &str, expected: bool| {
            let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
            assert_eq!(OverlayFolders::named(&paths).hold(file), expected, "{file} in {paths:?}");
        };
        check(&["platform"], "platform/a.yaml", true);
        check(&["./platform/"], "platform/eu/a.yaml", true);
        check(&["platform"], "platform-b/a.yaml", false);
        check(&["platform"], "teams/platform/a.yaml", false);
        check(&["platform/a.yaml"], "platform/a.yaml", true);
        check(&["."], "a.yaml", true);
        check(&[], "a.yaml", false);
    }
}
