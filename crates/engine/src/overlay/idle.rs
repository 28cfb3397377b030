//! Overlays of the source that have no say on a cluster, and the reasons that nobody may have meant.
//!
//! A cluster may lose what an overlay fed it by no word about that overlay: it got another name or another label, or the
//! overlay names what is not there. An overlay that was changed so that it is for others, or taken out, is none of these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Overlay, Overlays, names};
use crate::problem::{Place, Problem};
use crate::selector::{ClusterFacts, Fleet};
use crate::spec::Specs;
use crate::text::digest;

/// An overlay that has no say, or not all that it was meant to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// The place of what selects.
    pub place: Place,
    /// The digest of its selection of clusters, if that does not select the cluster.
    pub selection: Option<String>,
    /// The names in it that nobody has.
    pub lost: Option<String>,
}

impl Overlays {
    /// Returns the overlays that have no say on a cluster, or name what is not there, by name.
    pub(crate) fn idle(&self, cluster: Option<&ClusterFacts>, fleet: Option<&Fleet>) -> BTreeMap<String, Idle> {
        let idle = |overlay: &Overlay| {
            let is_elsewhere = !overlay.selects(cluster);
            let clusters = fleet.map(|fleet| names::lost_clusters(overlay, fleet)).unwrap_or_default();
            // Names of Gateways matter where it is in force, and those of clusters where it is not.
            let lost = if is_elsewhere { &clusters } else { &overlay.lost };
            let lost: Option<&Problem> = lost.first();
            if !is_elsewhere && lost.is_none() {
                return None;
            }
            let place =
                lost.map_or_else(|| overlay.document.place_of(&["spec", "clusters"]), |lost| lost.place.clone());
            let selection = is_elsewhere.then(|| overlay.selection());
            Some(Idle { place, selection, lost: lost.map(|lost| lost.message.clone()) })
        };
        let named = |overlay: &Overlay| Some((overlay.document.id.name.clone(), idle(overlay)?));
        self.usable.iter().filter_map(|overlay| named(overlay)).collect()
    }

    /// Returns the problems with overlays, and what they name and no cluster has.
    pub(crate) fn problems_in(&self, fleet: Option<&Fleet>) -> Vec<Problem> {
        let lost = fleet.map(|fleet| self.lost_clusters(fleet)).unwrap_or_default();
        self.problems.iter().cloned().chain(lost).collect()
    }

    /// Returns a warning for what overlays name and no cluster has.
    pub fn lost_clusters(&self, fleet: &Fleet) -> Vec<Problem> {
        self.usable.iter().flat_map(|overlay| names::lost_clusters(overlay, fleet)).collect()
    }

    /// Returns a warning for what overlays say about documents of no pack, for a sync that does not apply these.
    pub fn unapplied(&self, specs: &Specs) -> Vec<Problem> {
        self.usable.iter().flat_map(|overlay| names::unapplied(overlay, specs)).collect()
    }

    /// Returns a warning for the rows of tables that are for no cluster.
    pub fn lost_rows(&self, fleet: &Fleet) -> Vec<Problem> {
        self.usable.iter().filter_map(|overlay| names::lost_rows(overlay, fleet)).collect()
    }
}

impl Overlay {
    /// Returns the digest of its selection of clusters.
    pub(crate) fn selection(&self) -> String {
        let selector = self.document.root.at(["spec", "clusters"]).map(crate::yaml::Node::to_value);
        digest(selector.unwrap_or_default().to_string().as_bytes())[..12].to_owned()
    }
}
