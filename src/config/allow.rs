//! Settings about what a sync may write, and whose word counts.

use std::collections::BTreeSet;

use gatewright_engine::kinds::name::KindName;
use gatewright_engine::plan::policies;
use gatewright_engine::spec::overlay::OverlayFolders;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The namespaces and kinds that may be written; `*` is anything.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// Namespaces.
    pub namespaces: BTreeSet<String>,
    /// Kinds, of any group (`Service`) or of one (`Service.core`, `Deployment.apps`, `*.example.com`).
    pub kinds: BTreeSet<String>,
    /// Those of them that are in no namespace and may be written all the same; if absent all, or none where namespaces are named.
    pub cluster_kinds: Option<BTreeSet<String>>,
}

impl Default for Allow {
    fn default() -> Self {
        let any = || BTreeSet::from(["*".to_owned()]);
        Self { namespaces: any(), kinds: any(), cluster_kinds: None }
    }
}

impl Allow {
    /// Returns it for plans; what names no kind was found when the file was read.
    pub fn policy(&self) -> policies::Allow {
        let named = |kinds: &BTreeSet<String>| -> BTreeSet<KindName> {
            kinds.iter().filter_map(|kind| kind.parse().ok()).collect()
        };
        policies::Allow {
            namespaces: self.namespaces.clone(),
            kinds: named(&self.kinds),
            cluster_kinds: self.cluster_kinds.as_ref().map(named),
        }
    }
}

/// The overlays of the source that count.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OverlaySettings {
    /// Folders of the source; if absent all of it, or none where `allow.namespaces` names some.
    pub paths: Option<Vec<String>>,
}

impl OverlaySettings {
    /// Returns the folders whose overlays count.
    ///
    /// Who writes for some namespaces only is no platform, whose word counts for all Gateways.
    pub fn folders(&self, allow: &Allow) -> OverlayFolders {
        match &self.paths {
            Some(paths) => OverlayFolders::named(paths),
            None if allow.namespaces.contains("*") => OverlayFolders::All,
            None => OverlayFolders::named(&[]),
        }
    }
}
