//! Folders of clusters, read again while the daemon runs.
//!
//! They are polled: folders of kubeconfigs are small, and often mounts of which nobody is told when they change. A list is
//! taken when it was the same twice, so that a kubeconfig and its labels, which come one after the other, count together.
//! One that cannot be read whole changes nothing: the list before stays in force, at the start the one that is remembered.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::config::folders::Folders;
use crate::config::{Config, ConfigError};
use crate::desired::cluster_folders;
use crate::process::metrics::Metrics;
use crate::state::State;

/// The interval between two looks.
const POLL: Duration = Duration::from_secs(3);

/// The folders of the configuration that is in force.
#[derive(Default)]
pub(super) struct FolderWatch {
    /// The mistake in them at the last look, which is told once.
    trouble: Option<String>,
}

impl FolderWatch {
    /// Returns the configuration of a daemon that starts, with the clusters that are remembered where the folders cannot be
    /// used.
    pub(super) fn start(config: Config, state: &State) -> (Self, Config) {
        if config.found_in_folders().is_whole() {
            return (Self::default(), config);
        }
        let trouble = ConfigError::Problems(config.found_in_folders().unread.clone()).to_string();
        error!(error = trouble, "the cluster folders cannot be used; keeping the previous list of clusters");
        let config = cluster_folders::recalled(config, state);
        (Self { trouble: Some(trouble) }, config)
    }

    /// Waits until there is another list of clusters that can be used, and returns the configuration with it.
    pub(super) async fn changed(&mut self, config: &Arc<Config>, metrics: &Metrics) -> Config {
        if config.settings.cluster_folders.is_empty() {
            return std::future::pending().await;
        }
        let mut last: Option<Config> = None;
        loop {
            sleep(POLL).await;
            let found = self.told(look(config).await, metrics);
            match (last.take(), found) {
                (Some(before), Some(now)) if is_same(&before, &now) => {
                    tell(config.found_in_folders(), now.found_in_folders());
                    return now;
                }
                (_, found) => last = found,
            }
        }
    }

    /// Tells what is wrong when it begins, and that it is over.
    fn told(&mut self, found: Result<Option<Config>, ConfigError>, metrics: &Metrics) -> Option<Config> {
        let trouble = found.as_ref().err().map(ToString::to_string);
        if trouble != self.trouble {
            metrics.reloaded(trouble.is_none());
            if let Some(error) = &trouble {
                error!(error, "the cluster folders cannot be used; keeping the previous list of clusters");
            } else {
                info!("the cluster folders can be used again");
            }
            self.trouble = trouble;
        }
        found.ok().flatten()
    }
}

/// A file system that hangs keeps nobody else waiting.
async fn look(config: &Arc<Config>) -> Result<Option<Config>, ConfigError> {
    let config = Arc::clone(config);
    let read = spawn_blocking(move || config.with_folders_read_again()).await;
    read.unwrap_or_else(|error| {
        error!(%error, "reading the cluster folders ended in a bug");
        Ok(None)
    })
}

fn is_same(one: &Config, other: &Config) -> bool {
    one.found_in_folders().clusters == other.found_in_folders().clusters
}

fn tell(old: &Folders, new: &Folders) {
    for name in new.clusters.keys().filter(|name| !old.clusters.contains_key(*name)) {
        info!(cluster = name, "a cluster has come into its folder");
    }
    for name in old.clusters.keys().filter(|name| !new.clusters.contains_key(*name)) {
        warn!(cluster = name, "a cluster has gone from its folder; nothing on it is touched");
    }
}
