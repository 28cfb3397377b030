//! Settings of a pack that hold for some clusters, or for some classes, only.
//!
//! Clusters of a fleet run different releases of a control plane, and what is right for one would restart the pods of
//! another. Kinds, rules and checks are those of the pack; it is only asked with other settings.

use std::collections::BTreeSet;

use super::Pack;
use crate::selector::{ClusterFacts, ClusterSelector};

/// A pack with the settings for some clusters and classes.
pub struct Override {
    /// The clusters; all of them if absent.
    pub clusters: Option<ClusterSelector>,
    /// The names of classes; if absent, all of them, and specs that are no Gateways.
    pub classes: Option<BTreeSet<String>>,
    /// The pack with these settings.
    pub pack: Pack,
}

impl Override {
    fn is_for(&self, cluster: Option<&ClusterFacts>, class: Option<&str>) -> bool {
        let names_class = |classes: &BTreeSet<String>| class.is_some_and(|class| classes.contains(class));
        ClusterSelector::selects_any(self.clusters.as_ref(), cluster) && self.classes.as_ref().is_none_or(names_class)
    }
}

impl Pack {
    /// Adds settings for some clusters and classes. Of several that are for one, the first counts.
    #[must_use]
    pub fn with_override(mut self, other: Override) -> Self {
        self.overrides.push(other);
        self
    }

    /// Returns the pack with the settings that hold on a cluster, for Gateways of a class or for another spec.
    pub(crate) fn on(&self, cluster: Option<&ClusterFacts>, class: Option<&str>) -> &Self {
        self.overrides.iter().find(|other| other.is_for(cluster, class)).map_or(self, |other| &other.pack)
    }

    /// Returns the selectors of clusters that have settings of their own.
    pub(crate) fn cluster_selectors(&self) -> impl Iterator<Item = &ClusterSelector> {
        self.overrides.iter().filter_map(|other| other.clusters.as_ref())
    }
}
