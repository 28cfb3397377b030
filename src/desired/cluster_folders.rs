//! The clusters of `clusterFolders`, remembered: a daemon that starts before a folder is mounted knows which clusters there
//! are, and takes none of them for gone.
//!
//! Remembered are names, labels and files, and nothing of what is in a kubeconfig. It is read in each round as ever, so
//! that the rounds of a cluster fail while it is not there.

use std::collections::BTreeMap;

use tracing::error;

use crate::config::Config;
use crate::config::folders::FolderCluster;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The clusters as they were last.
const LIST: Store<BTreeMap<String, FolderCluster>> = Store::new("cluster-folders");

/// Returns the configuration with the clusters that are remembered of folders that cannot be used.
pub(crate) fn recalled(config: Config, state: &State) -> Config {
    let remembered = LIST.read(state, &[]).unwrap_or_default();
    config.with_folders_recalled(remembered).unwrap_or_else(|error| {
        error!(%error, "the clusters that are remembered of cluster folders cannot be used");
        config
    })
}

/// Remembers which clusters there are now. A list that is not known stays as it was remembered.
pub(crate) fn remember(config: &Config, state: &State) -> Result<(), StateError> {
    let found = config.found_in_folders();
    if !found.is_whole() || LIST.read(state, &[]).unwrap_or_default() == found.clusters {
        return Ok(());
    }
    LIST.write(state, &[], &found.clusters)
}
