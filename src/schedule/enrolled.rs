//! The rounds that run in this process, for those who ask for one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Notify;

use crate::basics::lock::lock;

/// Has a round begin; returns the number of the read of the source that it needs.
type Ask = dyn Fn(&Arc<Notify>) -> u64 + Send + Sync;

/// The rounds of all syncs, each on its clusters.
#[derive(Default)]
pub(crate) struct Enrolled {
    rounds: Mutex<BTreeMap<String, Vec<Rounds>>>,
}

/// The rounds of a sync on a cluster, which begin when somebody asks for one, until they have ended.
struct Rounds {
    cluster: String,
    source: String,
    nudges: Weak<Notify>,
    ask: Box<Ask>,
}

/// A round that was asked for.
pub(crate) struct AskedRound {
    /// The cluster.
    pub cluster: String,
    /// The source that is read before it begins.
    pub source: String,
    /// The number of that read.
    pub needed: u64,
}

impl AskedRound {
    /// Tells whether a round on a cluster, which has begun after a read of its source, is this one.
    pub(crate) fn is_met_on(&self, cluster: &str, read: u64) -> bool {
        self.cluster == cluster && self.needed <= read
    }
}

impl Enrolled {
    /// Takes the rounds of a sync on a cluster that begin when somebody asks for one, for as long as they run.
    pub(crate) fn enroll(
        &self,
        (sync, cluster, source): (&str, &str, &str),
        nudges: &Arc<Notify>,
        ask: impl Fn(&Arc<Notify>) -> u64 + Send + Sync + 'static,
    ) {
        let mut rounds = lock(&self.rounds);
        let of_sync = rounds.entry(sync.to_owned()).or_default();
        of_sync.retain(|rounds| rounds.nudges.strong_count() > 0);
        let (cluster, source) = (cluster.to_owned(), source.to_owned());
        of_sync.push(Rounds { cluster, source, nudges: Arc::downgrade(nudges), ask: Box::new(ask) });
    }

    /// Has a round of a sync begin on each of its clusters; returns these.
    pub(crate) fn ask(&self, sync: &str) -> Vec<AskedRound> {
        let rounds = lock(&self.rounds);
        let asked = |rounds: &Rounds| {
            let needed = (rounds.ask)(&rounds.nudges.upgrade()?);
            Some(AskedRound { cluster: rounds.cluster.clone(), source: rounds.source.clone(), needed })
        };
        rounds.get(sync).into_iter().flatten().filter_map(asked).collect()
    }
}
