//! A daemon that is one of several: it has the rounds of its syncs, and those of no others.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{DaemonError, Host};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::hosts::{self, Fenced, Share};
use crate::state::State;

/// The part of a daemon among several; alone it has all.
#[derive(Clone, Default)]
pub(super) struct Hosts(Option<Share>);

/// The Leases are kept beside the rounds.
pub(super) struct Keeping {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl Hosts {
    /// Joins the others, if there are any.
    pub(super) async fn join(config: &Config, state: &State, host: &Host) -> Result<(Self, Keeping), DaemonError> {
        let stop = CancellationToken::new();
        let Some(settings) = &config.settings.hosts else {
            return Ok((Self::default(), Keeping { task: None, stop }));
        };
        let joined = hosts::daemon(config, settings, state, &host.clock).await;
        let (mut keeper, share) = joined.map_err(DaemonError::Hosts)?;
        let ends = stop.clone();
        let task = tokio::spawn(async move {
            ends.run_until_cancelled(keeper.keep()).await;
            keeper.leave().await;
        });
        Ok((Self(Some(share)), Keeping { task: Some(task), stop }))
    }

    /// Returns the syncs of a configuration of which rounds should run here.
    pub(super) fn share(&self, config: &Config) -> BTreeSet<String> {
        let mut syncs: BTreeSet<String> = config.settings.syncs.keys().cloned().collect();
        if let Self(Some(share)) = self {
            let wanted = share.wanted();
            syncs.retain(|sync| wanted.contains(sync));
        }
        syncs
    }

    /// Tells whether there are others.
    pub(super) fn is_one_of_several(&self) -> bool {
        self.0.is_some()
    }

    /// Says of which syncs rounds run here.
    pub(super) fn runs(&self, syncs: &BTreeSet<String>, config: &Config) {
        if let Self(Some(share)) = self {
            share.configure(config.settings.syncs.keys().cloned().collect());
            share.runs(syncs.clone());
        }
    }

    /// Waits until other syncs should run here.
    pub(super) async fn changed(&mut self) {
        match self {
            Self(Some(share)) => share.changed().await,
            Self(None) => std::future::pending().await,
        }
    }

    /// Tells whether the rounds of a sync are not this host's any more.
    pub(super) fn has_lost(&self, sync: &str) -> bool {
        self.0.as_ref().is_some_and(|share| !share.holds(sync))
    }

    /// Has others know what this host has written.
    pub(super) async fn flush(&self) {
        if let Self(Some(share)) = self {
            share.flush().await;
        }
    }

    /// Returns a cluster as the rounds of a sync have it.
    pub(super) fn fenced(&self, sync: &str, cluster: &Arc<dyn Cluster>) -> Arc<dyn Cluster> {
        let cluster = Arc::clone(cluster);
        match self {
            Self(Some(share)) => Fenced::behind(cluster, share.fence(sync)),
            Self(None) => cluster,
        }
    }
}

impl Keeping {
    /// Gives the Leases back, once no rounds run any more.
    pub(super) async fn end(self) {
        self.stop.cancel();
        if let Some(task) = self.task {
            drop(task.await);
        }
    }
}
