//! Sources and clusters, built from their settings.

use std::sync::Arc;

use gatewright_engine::kinds;
use serde::de::IgnoredAny;

use crate::basics::clock::Clock;
use crate::cluster::Cluster;
use crate::cluster::directory::DirectoryCluster;
use crate::cluster::kube::KubeCluster;
use crate::config::Config;
use crate::config::settings::{ClusterSettings, SyncSettings};
use crate::source::Source;
use crate::source::directory::DirectorySource;
use crate::source::git::{GitSource, NewError};
use crate::state::store::Store;

/// The files in which clusters keep what kinds they have; their form is their own.
pub(crate) const DISCOVERY: Store<IgnoredAny> = Store::new("discovery");

/// A source cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceSetupError {
    /// There is no such source.
    #[error("there is no source {0:?}")]
    Unknown(String),
    /// It is a git repository, and cannot be set up.
    #[error("cannot set up source {0:?}")]
    Git(String, #[source] NewError),
}

/// Builds a source; nothing is read yet.
pub(crate) fn source(config: &Config, name: &str) -> Result<Box<dyn Source>, SourceSetupError> {
    let unknown = || SourceSetupError::Unknown(name.to_owned());
    let settings = config.settings.sources.get(name).ok_or_else(unknown)?;
    match (&settings.git, &settings.directory) {
        (Some(git), _) => {
            let mirrors = config.state_dir.join("mirrors");
            let source = GitSource::new(name, git.clone(), &mirrors);
            let source = source.map_err(|error| SourceSetupError::Git(name.to_owned(), error))?;
            Ok(Box::new(source.in_process_of(config.program.clone())))
        }
        (None, Some(directory)) => Ok(Box::new(DirectorySource::new(directory.clone()))),
        (None, None) => Err(unknown()),
    }
}

/// Returns what a source is, whatever its name: another address is another source.
pub(crate) fn source_identity(config: &Config, name: &str) -> String {
    let Some(settings) = config.settings.sources.get(name) else { return String::new() };
    match (&settings.git, &settings.directory) {
        (Some(git), _) => serde_json::to_string(&(&git.url, &git.reference, &git.path)).unwrap_or_default(),
        (None, Some(directory)) => directory.path.to_string_lossy().into_owned(),
        (None, None) => String::new(),
    }
}

/// Returns a cluster as a sync sees it: where the sync is to act as an account, objects are read and written as that.
pub(crate) fn as_account(cluster: &Arc<dyn Cluster>, sync: &str, settings: &SyncSettings) -> Arc<dyn Cluster> {
    let because = format!("syncs.{sync}.impersonate");
    let acting = settings.impersonate.as_ref().and_then(|account| cluster.acting_as(account, &because));
    acting.unwrap_or_else(|| Arc::clone(cluster))
}

/// Builds a cluster; nothing is connected yet.
pub(crate) fn cluster(
    config: &Config,
    name: &str,
    settings: &ClusterSettings,
    kinds: &kinds::Table,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Cluster> {
    match (&settings.kubeconfig, &settings.directory) {
        (_, Some(directory)) => Arc::new(DirectoryCluster::new(&directory.path).with_kinds(kinds.clone())),
        (kubeconfig, None) => {
            let kubeconfig = kubeconfig.clone().unwrap_or_default();
            let cluster = KubeCluster::new(name, kubeconfig, config.standard_lookup.clone(), Arc::clone(clock));
            Arc::new(cluster.with_cache(config.state_dir.join(DISCOVERY.path(&[name]))))
        }
    }
}
