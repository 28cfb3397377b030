//! The rounds that run in this process, for those who ask for one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Notify;

use crate::basics::lock::lock;

/// Has a round begin.
type Ask = dyn Fn(&Arc<Notify>) + Send + Sync;

/// The rounds of all syncs, each on its clusters.
#[derive(Default)]
pub(crate) struct Enrolled {
    rounds: Mutex<BTreeMap<String, Vec<Rounds>>>,
}

/// The rounds of a sync on a cluster, which begin when somebody asks for one, until they have ended.
struct Rounds {
    nudges: Weak<Notify>,
    ask: Box<Ask>,
}

impl Enrolled {
    /// Takes rounds that begin when somebody asks for one, for as long as they run.
    pub(crate) fn enroll(&self, sync: &str, nudges: &Arc<Notify>, ask: impl Fn(&Arc<Notify>) + Send + Sync + 'static) {
        let mut rounds = lock(&self.rounds);
        let of_sync = rounds.entry(sync.to_owned()).or_default();
        of_sync.retain(|rounds| rounds.nudges.strong_count() > 0);
        of_sync.push(Rounds { nudges: Arc::downgrade(nudges), ask: Box::new(ask) });
    }

    /// Has a round of a sync begin on each of its clusters; returns how many those are.
    pub(crate) fn ask(&self, sync: &str) -> usize {
        let rounds = lock(&self.rounds);
        let running = rounds.get(sync).into_iter().flatten();
        running.filter_map(|rounds| rounds.nudges.upgrade().map(|nudges| (rounds.ask)(&nudges))).count()
    }
}
