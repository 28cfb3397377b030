//! The clusters of `clusterSecrets`: read from their management clusters, and remembered.
//!
//! Remembered are names and labels, and nothing of what is in the Secrets. So this host knows which clusters there are
//! also while a management cluster does not answer, and takes none of them for gone.

mod find;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use gatewright_engine::text::digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;
use tracing::debug;

use crate::basics::clock::Clock;
use crate::cluster::ClusterError;
use crate::cluster::kube::KubeCluster;
use crate::cluster::kubeconfig::stored::Unusable;
use crate::config::cluster_secrets::{Entry, List, SecretSettings, entry};
use crate::config::{Config, ConfigError};
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The clusters as they were last, by the entry.
const LISTS: Store<Remembered> = Store::new("cluster-secrets");

/// The clusters of an entry, without the way to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    /// Names what they were read from: with other settings it is another list.
    key: String,
    clusters: BTreeMap<String, RememberedCluster>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RememberedCluster {
    secret: String,
    labels: BTreeMap<String, String>,
}

/// The reason why there is no list of clusters.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// The management cluster does not give it.
    #[error("cannot read the clusters of {name}", name = entry(.0))]
    Read(String, #[source] ClusterError),
    /// It takes too long.
    #[error("cannot read the clusters of {name}: no answer within {limit:?}", name = entry(.0), limit = .1)]
    Late(String, Duration),
    /// It cannot be used.
    #[error("{0}")]
    Wrong(ConfigError),
}

impl ListError {
    /// Returns what to do about it.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Read(_, error) => error.hint.as_deref(),
            Self::Late(..) | Self::Wrong(_) => None,
        }
    }

    /// Says it whole, in one text.
    pub(crate) fn told(&self) -> String {
        let hint = self.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", Chain(self))
    }
}

/// Lists by the names of their entries.
pub(crate) type Lists = BTreeMap<String, List>;

/// An entry with the management cluster that is asked for it.
pub(crate) struct Reader {
    /// The name of the entry.
    pub name: String,
    /// Its settings.
    pub settings: SecretSettings,
    key: String,
    management: KubeCluster,
}

impl Reader {
    /// Prepares all entries; nothing is connected yet.
    pub(crate) fn all(config: &Config, clock: &Arc<dyn Clock>) -> Vec<Self> {
        let of = |(name, settings): (&String, &SecretSettings)| {
            let (asked, kubeconfig) = match &settings.cluster {
                Some(cluster) => (cluster, config.settings.clusters.get(cluster)?.kubeconfig.clone()),
                None => (name, settings.kubeconfig.clone()),
            };
            let standard = config.standard_lookup.clone();
            let management = KubeCluster::new(asked, kubeconfig.unwrap_or_default(), standard, Arc::clone(clock));
            Some(Self { name: name.clone(), key: key(config, settings), settings: settings.clone(), management })
        };
        config.settings.cluster_secrets.iter().filter_map(of).collect()
    }

    /// Tells whether another one would read the same list in the same way.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.name, &self.key, &self.settings) == (&other.name, &other.key, &other.settings)
    }

    /// Reads the clusters: one list, page by page, or none.
    pub(crate) async fn read(&self) -> Result<List, ListError> {
        let found = find::all(&self.management, &self.settings).await;
        let list = List::of(&self.name, found.map_err(|error| ListError::Read(self.name.clone(), error))?);
        list.map_err(|problems| ListError::Wrong(ConfigError::Problems(problems)))
    }

    /// Reads them, and gives up when time is up.
    pub(crate) async fn read_within(&self, limit: Duration) -> Result<List, ListError> {
        let late = |_| ListError::Late(self.name.clone(), limit);
        timeout(limit, self.read()).await.map_err(late).flatten()
    }
}

/// Returns the configuration with the clusters of all Secrets as they are now, for a command that works on clusters.
pub(crate) async fn read(config: Config, state: &State, clock: &Arc<dyn Clock>) -> Result<Config, ListError> {
    if config.settings.cluster_secrets.is_empty() {
        return Ok(config);
    }
    let readers = Reader::all(&config, clock);
    let mut lists = Lists::new();
    for (reader, list) in readers.iter().zip(join_all(readers.iter().map(Reader::read)).await) {
        lists.insert(reader.name.clone(), list?);
    }
    let config = config.with_cluster_secrets(&lists).map_err(ListError::Wrong)?;
    if let Err(error) = remember(&config, state) {
        debug!(error = %Chain(&error), "which clusters there are is not remembered");
    }
    Ok(config)
}

/// Returns the configuration with the clusters that are remembered, for a command that asks none.
pub(crate) fn recalled(config: Config, state: &State) -> Config {
    let why = Unusable::unread("it is not read by this command", "");
    config.with_cluster_secrets(&recall(&config, state, &why)).unwrap_or(config)
}

/// Returns what is remembered; `why` the Secrets are not known.
pub(crate) fn recall(config: &Config, state: &State, why: &Unusable) -> Lists {
    let of = |(name, settings): (&String, &SecretSettings)| {
        let found = LISTS.read(state, &[name]).filter(|found| found.key == key(config, settings))?;
        let clusters = found.clusters.into_iter().map(|(name, cluster)| {
            let RememberedCluster { secret, labels } = cluster;
            Entry { name, secret, labels, content: Err(why.clone()) }
        });
        Some((name.clone(), List(clusters.collect())))
    };
    config.settings.cluster_secrets.iter().filter_map(of).collect()
}

/// Remembers which clusters there are now. What is not known stays as it was remembered.
pub(crate) fn remember(config: &Config, state: &State) -> Result<(), StateError> {
    let found = config.found_in_secrets();
    for (name, settings) in &config.settings.cluster_secrets {
        if found.unknown.contains(name) {
            continue;
        }
        let clusters = found.clusters.iter().filter(|(_, cluster)| cluster.source == *name).map(|(name, cluster)| {
            (name.clone(), RememberedCluster { secret: cluster.secret.clone(), labels: cluster.labels.clone() })
        });
        let now = Remembered { key: key(config, settings), clusters: clusters.collect() };
        if LISTS.read(state, &[name]).as_ref() != Some(&now) {
            LISTS.write(state, &[name], &now)?;
        }
    }
    Ok(())
}

/// Names what an entry reads.
fn key(config: &Config, settings: &SecretSettings) -> String {
    let named = settings.cluster.as_ref().and_then(|cluster| config.settings.clusters.get(cluster));
    let kubeconfig = settings.kubeconfig.as_ref().or_else(|| named?.kubeconfig.as_ref());
    let way = kubeconfig.map(|kubeconfig| (&kubeconfig.path, &kubeconfig.context));
    digest(
        json!([way, settings.format, settings.namespace(), settings.selector(), settings.managed_service_account])
            .to_string()
            .as_bytes(),
    )
}
