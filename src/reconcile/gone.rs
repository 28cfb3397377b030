//! Clusters that are gone: something was applied there, and the configuration names them no more.
//!
//! Gone is not empty: nothing on such a cluster is touched, and what this host remembers of it stays until a person has it
//! forgotten. They are found by that memory alone, so that there is nothing else to keep true.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;

use crate::config::Config;
use crate::inventory::audit;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The words about a cluster that is gone.
pub(crate) const WORDS: &str = "gone from the configuration; what was applied there stays as it is";

/// Returns the advice about one.
pub(crate) fn hint(cluster: &str) -> String {
    format!("configure it again, or once nothing is to be done there any more: gatewright clusters forget {cluster}")
}

/// Returns the clusters that are gone, each with the syncs that have applied something there.
pub(crate) fn find(config: &Config, state: &State) -> BTreeMap<String, BTreeSet<String>> {
    let mut gone: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (sync, cluster) in audit::SEEN.targets(state) {
        if !config.settings.clusters.contains_key(&cluster) {
            gone.entry(cluster).or_default().insert(sync);
        }
    }
    gone
}

/// The stores by sync and cluster. The first is what makes a cluster gone, and so it is forgotten last.
const BY_SYNC: [&str; 6] = ["seen", "status", "compared", "asked", "known", "fights"];

/// The stores by cluster alone.
const BY_CLUSTER: [&str; 2] = ["clusters", "discovery"];

/// Forgets all that this host remembers of a cluster, but for its reports and what undo has kept: those expire.
pub(crate) fn forget(state: &State, cluster: &str) -> Result<(), StateError> {
    for folder in BY_CLUSTER {
        Store::<IgnoredAny>::new(folder).remove(state, &[cluster])?;
    }
    for folder in BY_SYNC.into_iter().rev() {
        let store = Store::<IgnoredAny>::new(folder);
        for (sync, _) in store.targets(state).into_iter().filter(|(_, name)| name == cluster) {
            store.remove(state, &[&sync, cluster])?;
        }
    }
    Ok(())
}
