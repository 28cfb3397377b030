//! The breaker of a cluster that does not answer: it costs one probe at a time, however many syncs go there.
//!
//! A round that gets no answer opens it. From then on the rounds of all syncs on the cluster end at once, as unreachable,
//! and send nothing; a probe every now and then finds out whether the cluster is back. The waits between probes double
//! up to a limit. The first answer closes the breaker, and the rounds of the cluster begin.
//!
//! The daemon has a task that probes. In a command a round is the probe, once the wait is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::cluster::Cluster;
use crate::report::{ClusterReport, ClusterState, Failure};
use crate::schedule::timer::{draw, later, share};

/// The wait before the first probe; it doubles with each one that is not answered.
const FIRST: Duration = Duration::from_secs(10);

/// The longest wait.
const LONGEST: Duration = Duration::from_mins(5);

/// The time after which a round is let through where no probe has been sent that was due.
const GRACE: Duration = Duration::from_mins(1);

/// The breakers of clusters, by name.
pub type Breakers = BTreeMap<String, Arc<Breaker>>;

/// The breaker of one cluster.
pub struct Breaker {
    cluster: String,
    clock: Arc<dyn Clock>,
    state: Mutex<Option<Open>>,
    /// Told when it opens.
    opened: Notify,
    /// Told when it closes: each begins a round, as long as somebody has rounds there.
    nudges: Mutex<Vec<Weak<Notify>>>,
    /// Whether a task probes the cluster.
    is_probed: AtomicBool,
}

/// The state of a breaker that is open.
#[derive(Clone)]
struct Open {
    /// The failure that opened it.
    error: Failure,
    /// The number of times that nobody answered.
    failures: u32,
    /// When to probe, by the clock that never goes backwards, and by that of the day.
    due: Duration,
    at: Timestamp,
}

impl Breaker {
    /// Makes breakers for some clusters, all of them closed.
    pub fn all<'a>(clusters: impl IntoIterator<Item = &'a String>, clock: &Arc<dyn Clock>) -> Arc<Breakers> {
        let breaker = |name: &String| (name.clone(), Arc::new(Self::new(name, clock)));
        Arc::new(clusters.into_iter().map(breaker).collect())
    }

    fn new(cluster: &str, clock: &Arc<dyn Clock>) -> Self {
        let (state, opened, nudges) = (Mutex::default(), Notify::new(), Mutex::default());
        let is_probed = AtomicBool::new(false);
        Self { cluster: cluster.to_owned(), clock: Arc::clone(clock), state, opened, nudges, is_probed }
    }

    /// Has a round begin when the cluster is back.
    pub(crate) fn nudge(&self, round: &Arc<Notify>) {
        let mut nudges = lock(&self.nudges);
        nudges.retain(|round| round.strong_count() > 0);
        nudges.push(Arc::downgrade(round));
    }

    /// Returns the report of a round that does not begin, because the cluster did not answer a short time ago.
    pub(crate) fn refuses(&self) -> Option<ClusterReport> {
        let state = lock(&self.state);
        let open = state.as_ref()?;
        let grace = if self.is_probed() { GRACE } else { Duration::ZERO };
        if self.clock.elapsed() >= open.due + grace {
            return None;
        }
        let (error, state) = (Some(open.error.clone()), ClusterState::Unreachable);
        Some(ClusterReport { state, error, next_probe: self.told(open.at), ..ClusterReport::default() })
    }

    /// Learns from a round that was let through, and writes into its report when the cluster is asked again.
    pub(crate) fn note(&self, report: &mut ClusterReport) {
        match (report.state, &report.error) {
            (ClusterState::Unreachable, Some(error)) => report.next_probe = self.told(self.fails(error)),
            // Where it was lost on the way the next round shows whether it is back.
            (
                ClusterState::Unreachable | ClusterState::Stopped | ClusterState::Suspended | ClusterState::Unknown,
                _,
            ) => {}
            (
                ClusterState::Done
                | ClusterState::Planned
                | ClusterState::Compared
                | ClusterState::Held
                | ClusterState::Failed,
                _,
            ) => self.close(),
        }
    }

    fn is_probed(&self) -> bool {
        self.is_probed.load(Ordering::Relaxed)
    }

    /// Returns the time of the next probe, if there will be one: a command may have ended by then.
    fn told(&self, at: Timestamp) -> Option<Timestamp> {
        self.is_probed().then_some(at)
    }

    /// Opens it, or waits longer; rounds that failed beside each other count once. Returns when to probe.
    fn fails(&self, error: &Failure) -> Timestamp {
        let mut state = lock(&self.state);
        let now = self.clock.elapsed();
        if let Some(open) = state.as_ref().filter(|open| now < open.due) {
            return open.at;
        }
        let failures = state.as_ref().map_or(0, |open| open.failures).saturating_add(1);
        let wait = self.wait(failures);
        let at = later(self.clock.now(), wait);
        *state = Some(Open { error: error.clone(), failures, due: now + wait, at });
        drop(state);
        self.opened.notify_one();
        at
    }

    /// Returns the wait after some failures: up to a fifth is taken off it, so that a fleet behind one cut is not probed
    /// all at once.
    fn wait(&self, failures: u32) -> Duration {
        let whole = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST);
        whole.saturating_sub(share(whole / 5, draw(&self.cluster, failures)))
    }

    fn close(&self) {
        let was_open = lock(&self.state).take().is_some();
        if was_open {
            lock(&self.nudges).iter().filter_map(Weak::upgrade).for_each(|round| round.notify_one());
        }
    }

    /// Probes the cluster whenever that is due, for ever.
    pub(crate) async fn watch(&self, cluster: &dyn Cluster) {
        self.is_probed.store(true, Ordering::Relaxed);
        loop {
            let open = lock(&self.state).clone();
            let Some(open) = open else {
                self.opened.notified().await;
                continue;
            };
            match open.due.checked_sub(self.clock.elapsed()).filter(|wait| !wait.is_zero()) {
                Some(wait) => sleep(wait).await,
                None => match cluster.probe().await {
                    Ok(()) => {
                        tracing::info!(cluster = self.cluster, "the cluster answers again");
                        self.close();
                    }
                    Err(_) => drop(self.fails(&open.error)),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
