//! Clusters that are gone: something was applied there, and the configuration names them no more.
//!
//! Gone is not empty: nothing on such a cluster is touched, and what this host remembers of it stays until a person has it
//! forgotten. They are found by that memory alone, so that there is nothing else to keep true.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::Config;
use crate::desired::assemble::DISCOVERY;
use crate::history::{approvals, journal};
use crate::inventory::audit;
use crate::reconcile::{aliases, fleet};
use crate::state::{State, StateError};

/// The words about a cluster that is gone.
pub(crate) const WORDS: &str = "gone from the configuration; what was applied there stays as it is";

/// Returns the advice about one.
pub(crate) fn hint(cluster: &str) -> String {
    format!("configure it again, or once nothing is to be done there any more: gatewright clusters forget {cluster}")
}

/// Returns the clusters that are gone, each with the syncs that have applied something there. While it is not known which
/// clusters there are, none is.
pub(crate) fn find(config: &Config, state: &State) -> BTreeMap<String, BTreeSet<String>> {
    let mut gone: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !config.knows_all_clusters() {
        return gone;
    }
    for (sync, cluster) in audit::SEEN.targets(state) {
        // What has another name now is not gone.
        let is_there = config.settings.clusters.contains_key(config.settings.name_now(&cluster));
        if !is_there {
            gone.entry(cluster).or_default().insert(sync);
        }
    }
    gone
}

/// Forgets all that this host remembers of a cluster, but for its reports and what undo has kept: those expire. What makes a
/// cluster gone is forgotten last.
pub(crate) fn forget(state: &State, cluster: &str) -> Result<(), StateError> {
    DISCOVERY.remove(state, &[cluster])?;
    aliases::forget_cluster(state, cluster)?;
    fleet::forget_cluster(state, cluster)?;
    approvals::forget_cluster(state, cluster)?;
    journal::forget_cluster(state, cluster)?;
    audit::SEEN.forget(state, cluster)
}
