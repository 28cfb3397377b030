//! Secrets of management clusters, read again while the daemon runs.
//!
//! A list of clusters is taken when it was the same twice, one read after the other: a Secret that is deleted and made
//! again is no cluster that is gone. What is in the Secrets counts at once, and from the next round on. A list that cannot
//! be read or used changes nothing: the one before stays in force, of each entry by itself.

use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use tokio::time::{Instant, sleep_until};
use tracing::{error, info, warn};

use super::Shared;
use crate::cluster::kubeconfig::stored::Unusable;
use crate::config::cluster_secrets::{List, SecretClusters};
use crate::config::{Config, ConfigError};
use crate::desired::cluster_secrets::{ListError, Lists, Reader, recall, remember};
use crate::process::metrics::Metrics;

/// The time after which another list is read a second time.
const CONFIRM: Duration = Duration::from_secs(3);

/// The longest time that the start waits for a management cluster.
const AT_START: Duration = Duration::from_secs(10);

/// The entries of the configuration that is in force.
#[derive(Default)]
pub(super) struct SecretWatch {
    sources: Vec<Source>,
    /// The lists that count, if they can be used together.
    lists: Lists,
    /// The reason why they cannot, which is told once.
    refusal: Option<String>,
}

struct Source {
    reader: Reader,
    due: Instant,
    /// Another list, that was read once.
    other: Option<List>,
    /// The reason why the last one was not read, which is told once.
    trouble: Option<String>,
}

impl SecretWatch {
    /// Reads the entries of a configuration, but for those that are known from `before`, and returns the configuration
    /// with their clusters.
    ///
    /// Where that cannot be, the clusters count that are remembered, so that a management cluster that is down takes no
    /// other down with it. It is an error only where these cannot be used either.
    pub(super) async fn start(config: Config, shared: &Shared, before: &Self) -> (Self, Result<Config, ConfigError>) {
        let readers = Reader::all(&config, &shared.clock);
        let mut watch = Self::default();
        let reads = readers.into_iter().map(async |reader| match before.like(&reader) {
            Some(known) => (before.lists.get(&reader.name).cloned().map(Ok), known.due, reader),
            None => (Some(reader.read_within(AT_START).await), Instant::now() + reader.settings.poll.0, reader),
        });
        for (read, due, reader) in join_all(reads).await {
            let name = reader.name.clone();
            let trouble = before.like(&reader).and_then(|known| known.trouble.clone());
            watch.sources.push(Source { reader, due, other: None, trouble });
            match read {
                Some(Ok(list)) => drop(watch.lists.insert(name, list)),
                Some(Err(error)) => watch.sources.iter_mut().last().into_iter().for_each(|it| it.told(Some(&error))),
                None => {}
            }
        }
        let why = Unusable::unread("it was not read since the daemon was started", "the log of the daemon says why");
        let recalled = recall(&config, &shared.state, &why);
        for (name, list) in &recalled {
            watch.lists.entry(name.clone()).or_insert_with(|| list.clone());
        }
        let joined = config.with_cluster_secrets(&watch.lists);
        let joined = watch.told(joined).or_else(|refusal| {
            let old = Some(recalled).filter(|recalled| !recalled.is_empty());
            old.and_then(|old| config.with_cluster_secrets(&old).ok()).ok_or(refusal)
        });
        if let Ok(config) = &joined {
            config.found_in_secrets().take(&watch.lists);
            watch.remember(config, shared);
        }
        watch.show(&shared.metrics);
        (watch, joined)
    }

    /// Waits until there is another list of clusters that can be used, and returns the configuration with it.
    pub(super) async fn changed(&mut self, config: &Config, shared: &Shared) -> Config {
        loop {
            let Some(due) = self.sources.iter().map(|source| source.due).min() else {
                return std::future::pending().await;
            };
            sleep_until(due).await;
            self.read_due(config.found_in_secrets()).await;
            let joined = self.told(config.with_cluster_secrets(&self.lists));
            self.show(&shared.metrics);
            if let Ok(new) = joined
                && !new.found_in_secrets().is_same(config.found_in_secrets())
            {
                tell(config.found_in_secrets(), new.found_in_secrets());
                self.remember(&new, shared);
                return new;
            }
        }
    }

    fn like(&self, reader: &Reader) -> Option<&Source> {
        self.sources.iter().find(|source| source.reader.is_like(reader))
    }

    /// Reads the entries whose time has come, beside each other.
    async fn read_due(&mut self, in_force: &SecretClusters) {
        let now = Instant::now();
        let due = self.sources.iter_mut().filter(|source| source.due <= now);
        let reads = due.map(async |source| (source.reader.read().await, source));
        for (read, source) in join_all(reads).await {
            let name = source.reader.name.clone();
            source.due = Instant::now() + source.reader.settings.poll.0;
            source.told(read.as_ref().err());
            let Ok(list) = read else {
                source.other = None;
                continue;
            };
            let of_source = Lists::from([(name.clone(), list.clone())]);
            for cluster in in_force.take(&of_source) {
                info!(cluster, "the Secret of a cluster says something else now; its next round uses it");
            }
            let is_known = self.lists.get(&name).is_some_and(|known| known.is_like(&list));
            if is_known || source.other.take().is_some_and(|other| other.is_like(&list)) {
                self.lists.insert(name, list);
            } else {
                source.other = Some(list);
                source.due = source.due.min(Instant::now() + CONFIRM);
            }
        }
    }

    /// Tells what is wrong with the lists together when it begins, and that it is over.
    fn told(&mut self, joined: Result<Config, ConfigError>) -> Result<Config, ConfigError> {
        let refusal = joined.as_ref().err().map(ToString::to_string);
        if refusal != self.refusal {
            if let Some(error) = &refusal {
                error!(error, "the cluster Secrets cannot be used; keeping the previous list of clusters");
            } else {
                info!("the cluster Secrets can be used again");
            }
            self.refusal = refusal;
        }
        joined
    }

    fn show(&self, metrics: &Metrics) {
        for source in &self.sources {
            metrics.cluster_secrets(&source.reader.name, source.trouble.is_none() && self.refusal.is_none());
        }
    }

    fn remember(&self, config: &Config, shared: &Shared) {
        if self.sources.is_empty() {
            return;
        }
        if let Err(error) = remember(config, &shared.state) {
            error!(error = %Chain(&error), "cannot remember which clusters there are");
        }
    }
}

impl Source {
    /// Tells what is wrong with its list when it begins, and that it is over.
    fn told(&mut self, error: Option<&ListError>) {
        let trouble = error.map(ListError::told);
        if trouble == self.trouble {
            return;
        }
        let source = &self.reader.name;
        if let Some(error) = &trouble {
            error!(source, error, "the cluster Secrets cannot be read; keeping the previous list of clusters");
        } else {
            info!(source, "the cluster Secrets can be read again");
        }
        self.trouble = trouble;
    }
}

fn tell(old: &SecretClusters, new: &SecretClusters) {
    for name in new.clusters.keys().filter(|name| !old.clusters.contains_key(*name)) {
        info!(cluster = name, "a cluster has come with its Secret");
    }
    for name in old.clusters.keys().filter(|name| !new.clusters.contains_key(*name)) {
        warn!(cluster = name, "a cluster has gone with its Secret; nothing on it is touched");
    }
}
