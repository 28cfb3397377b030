//! Clusters that answer by two names of the config file.
//!
//! The rounds of one name know nothing of those of the other: what one sync makes another takes for what it does not
//! want any more, and a spec that both have belongs now to the one and now to the other. So nothing is done under
//! either name. What a cluster is, is known by its identity, because addresses and kubeconfigs may differ; which name
//! has had which one is remembered in the state folder, and certain only if it still answers so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tracing::warn;

use crate::basics::lock::lock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::settings::Mode;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The knowledge of each name.
const KNOWN: Store<Known> = Store::new("clusters");

/// Forgets what is kept of a cluster.
pub(super) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    KNOWN.remove(state, &[cluster])
}

/// Keeps what is kept of a cluster under another name.
pub(super) fn rename_cluster(state: &State, (old, new): (&str, &str)) -> Result<(), StateError> {
    state.rename(KNOWN.path(&[old]), KNOWN.path(&[new]))
}

/// Returns who has answered by a name, as far as this host knows.
pub(crate) fn identity(state: &State, name: &str) -> Option<String> {
    KNOWN.read(state, &[name]).map(|known| known.identity)
}

/// Returns who has answered by each of two names, where both have.
pub(super) fn identities(state: &State, old: &str, new: &str) -> Option<(String, String)> {
    Some((identity(state, old)?, identity(state, new)?))
}

/// The longest wait of the first round on a cluster for others to say who they are; their own first round looks again.
const LIMIT: Duration = Duration::from_secs(5);

/// The clusters that syncs apply to, by the names that they have in the config file.
#[derive(Default)]
pub struct Aliases(BTreeMap<String, Alias>);

struct Alias {
    cluster: Arc<dyn Cluster>,
    /// Its identity when a cluster was seen for the first time that might be the same; `None` if it did not say it.
    at_first: OnceCell<Option<String>>,
    /// The identity that is noted in the state folder, once that was read; every round asks for that of every other name.
    /// Whatever answers by a name of this configuration is noted by its own rounds, so that nobody else's note is missed
    /// for long.
    noted: OnceLock<Mutex<Option<String>>>,
}

/// The findings about a name.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    identity: String,
}

/// One name as its rounds see the others.
#[derive(Clone)]
pub struct Names {
    /// The others, and it.
    pub aliases: Arc<Aliases>,
    /// The name.
    pub name: String,
    /// The state folder, which records what answered by which name.
    pub state: State,
    /// Whether the round may write that down.
    pub is_noted: bool,
}

impl Aliases {
    /// Builds the clusters to which any sync of a configuration applies something.
    pub fn of(config: &Config, build: impl Fn(&str) -> Option<Arc<dyn Cluster>>) -> Self {
        let syncs = config.settings.syncs.values().filter(|sync| sync.mode == Mode::Apply);
        let names = syncs.flat_map(|sync| config.clusters_of(sync).into_keys());
        let mut aliases = BTreeMap::new();
        for name in names {
            if !aliases.contains_key(name)
                && let Some(cluster) = build(name)
            {
                let (at_first, noted) = (OnceCell::new(), OnceLock::new());
                aliases.insert(name.to_owned(), Alias { cluster, at_first, noted });
            }
        }
        Self(aliases)
    }
}

impl Alias {
    /// Returns who it was at first; it is asked once, whoever wants to know.
    async fn at_first(&self) -> Option<&String> {
        let ask = async || tokio::time::timeout(LIMIT, self.cluster.identity()).await.ok()?.ok();
        self.at_first.get_or_init(ask).await.as_ref()
    }
}

impl Names {
    /// Returns another name by which the same cluster answers, and remembers who answers by this one.
    pub async fn twin(&self, identity: &str) -> Option<String> {
        // Under a name to which nothing is applied nothing is made or pruned. A directory has no identity before its
        // first write.
        if identity.is_empty() || !self.aliases.0.contains_key(&self.name) {
            return None;
        }
        let is_new = self.known(&self.name).is_none_or(|known| known != identity);
        if is_new && self.is_noted {
            self.record(identity);
        }
        let others = self.aliases.0.iter().filter(|(name, _)| **name != self.name);
        let asked = others.map(async |(name, alias)| {
            let is_same = match self.known(name) {
                // It may have been another one since; if it does not answer, it was this one.
                Some(known) if known == identity => {
                    let now = tokio::time::timeout(LIMIT, alias.cluster.identity()).await;
                    now.ok().and_then(Result::ok).is_none_or(|now| now == identity)
                }
                Some(_) => false,
                None => is_new && alias.at_first().await.is_some_and(|other| other == identity),
            };
            is_same.then(|| name.clone())
        });
        join_all(asked).await.into_iter().flatten().next()
    }

    fn known(&self, name: &str) -> Option<String> {
        let read = || KNOWN.read(&self.state, &[name]).map(|known| known.identity);
        match self.aliases.0.get(name) {
            Some(alias) => lock(alias.noted.get_or_init(|| Mutex::new(read()))).clone(),
            None => read(),
        }
    }

    fn record(&self, identity: &str) {
        let known = Known { identity: identity.to_owned() };
        if let Some(alias) = self.aliases.0.get(&self.name) {
            *lock(alias.noted.get_or_init(Mutex::default)) = Some(identity.to_owned());
        }
        if let Err(error) = KNOWN.write(&self.state, &[&self.name], &known) {
            warn!(cluster = self.name, error = %Chain(&error), "cannot remember which cluster answers by a name");
        }
    }
}
