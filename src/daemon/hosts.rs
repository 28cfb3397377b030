//! A daemon that is one of several: it has the rounds of its syncs, and those of no others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{DaemonError, Host};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::hosts::{self, Fenced, Share};
use crate::process::service::{Signal, Signals};
use crate::state::State;

/// The status of a daemon that cannot know who the other hosts are.
const WAITS: &str = "waits for the management cluster";

/// The part of a daemon among several; alone it has all.
#[derive(Clone, Default)]
pub(super) struct Hosts(Option<Share>);

/// The Leases are kept beside the rounds.
pub(super) struct Keeping {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

/// The interval between two tries to join the others.
const AGAIN: Duration = Duration::from_secs(5);

/// The end of the wait for the others.
pub(super) enum Met {
    /// This host is one of them; whether the configuration is to be read again.
    Joined(Hosts, Keeping, bool),
    /// A signal has asked for the end.
    Stopped,
}

impl Hosts {
    /// Joins the others, if there are any; waits for the management cluster where that does not answer.
    pub(super) async fn meet(
        config: &Config,
        state: &State,
        host: &Host,
        signals: &mut Signals,
    ) -> Result<Met, DaemonError> {
        let (mut is_told, mut is_to_reload) = (false, false);
        loop {
            let pause = if is_told { AGAIN } else { Duration::ZERO };
            let joined = async {
                tokio::time::sleep(pause).await;
                Self::join(config, state, host).await
            };
            let joined = tokio::select! {
                biased;
                signal = signals.next() => match signal {
                    Signal::Stop => return Ok(Met::Stopped),
                    Signal::Reload => {
                        warn!("the configuration is read again once the management cluster answers");
                        host.notifier.reloading();
                        host.notifier.ready(WAITS);
                        is_to_reload = true;
                        continue;
                    }
                },
                joined = joined => joined,
            };
            match joined {
                Err(DaemonError::Hosts(error)) if error.is_passing() => {
                    if !is_told {
                        warn!(error = %Chain(&error), hint = error.hint(), "{WAITS}; nothing is done before it answers");
                        host.notifier.ready(WAITS);
                        is_told = true;
                    }
                }
                joined => return joined.map(|(hosts, keeping)| Met::Joined(hosts, keeping, is_to_reload)),
            }
        }
    }

    async fn join(config: &Config, state: &State, host: &Host) -> Result<(Self, Keeping), DaemonError> {
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
