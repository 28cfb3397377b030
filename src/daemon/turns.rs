//! Rounds that are begun again when the syncs that they wait for are through.
//!
//! Looked at after each round by whoever has just kept its report: at those that wait for it, and at itself, because
//! what it waits for may have ended meanwhile. One of the two sees the report of the other. Whoever waits for something
//! else, or for nothing, is left alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use gatewright_engine::plan::guard::Guard;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::basics::lock::lock;
use crate::history::journal;
use crate::reconcile::depends::Dependencies;
use crate::state::State;

/// The rounds that run here, by sync and cluster, and who waits for whom.
#[derive(Default)]
pub(super) struct Turns {
    dependencies: Arc<Dependencies>,
    nudges: Mutex<BTreeMap<(String, String), Weak<Notify>>>,
}

impl Turns {
    /// Begins with no rounds.
    pub(super) fn new(dependencies: &Arc<Dependencies>) -> Self {
        Self { dependencies: Arc::clone(dependencies), nudges: Mutex::default() }
    }

    /// Adds the means to have the rounds of a sync on a cluster begun again.
    pub(super) fn add(&self, sync: &str, cluster: &str, nudge: &Arc<Notify>) {
        lock(&self.nudges).insert((sync.to_owned(), cluster.to_owned()), Arc::downgrade(nudge));
    }

    /// Has those rounds begun that have waited for nothing else than the one that is over; `revision` says which one a sync
    /// would be about.
    pub(super) fn over(
        &self,
        over: (&str, &str),
        state: &State,
        revision: impl Fn(&str) -> Option<String>,
        now: Timestamp,
    ) {
        if !self.dependencies.is_any() {
            return;
        }
        for ((sync, cluster), nudge) in lock(&self.nudges).iter() {
            let Some(nudge) = nudge.upgrade() else { continue };
            let of = (sync.as_str(), cluster.as_str());
            if (of == over || self.dependencies.is_before(over, of))
                && waits(state, of)
                && revision(sync).is_some_and(|revision| self.dependencies.reason(state, of, &revision, now).is_none())
            {
                nudge.notify_one();
            }
        }
    }
}

/// Tells whether the last round of a sync has waited for another one.
fn waits(state: &State, (sync, cluster): (&str, &str)) -> bool {
    let report = journal::last(state, sync, cluster).and_then(|mut report| report.clusters.remove(cluster));
    report.is_some_and(|report| report.holds.iter().any(|hold| hold.guard == Guard::DependsOn))
}
