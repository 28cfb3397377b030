//! The progress of a simulation: what the rounds of each cluster have said, as the daemon tells it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::basics::lock::lock;
use crate::config::Config;
use crate::report::{ClusterReport, Report, StepReport};

/// The goal of a cluster, reached when a phase is over for it.
pub(super) enum Goal {
    /// A round ended well.
    Well,
    /// A round that began in this phase had nothing to do.
    Unchanged,
    /// A round ended well that was about another revision than these.
    Other(BTreeMap<String, String>),
}

/// The progress of one cluster in a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Tale {
    /// The time until the goal was reached; of a goal that is a single round, the time of that round.
    pub(super) took: Option<SignedDuration>,
    /// Rounds that ended before.
    pub(super) rounds: usize,
    /// The reason that kept the last of them from the goal.
    pub(super) why: Option<String>,
}

/// The progress of all clusters.
pub(super) struct Progress {
    /// The number of syncs of each cluster.
    syncs: BTreeMap<String, usize>,
    phase: Mutex<State>,
    /// Told when a round has ended.
    pub(super) changed: Notify,
}

struct State {
    goal: Goal,
    begun: Timestamp,
    /// By cluster and sync.
    tales: BTreeMap<String, BTreeMap<String, Tale>>,
    /// The last revision that was applied well, by sync.
    revisions: BTreeMap<String, String>,
}

impl Progress {
    pub(super) fn of(config: &Config) -> Self {
        let mut syncs: BTreeMap<String, usize> = BTreeMap::new();
        for cluster in config.settings.syncs.values().flat_map(|sync| config.clusters_of(sync).into_keys()) {
            *syncs.entry(cluster.to_owned()).or_default() += 1;
        }
        let (begun, tales, revisions) = (Timestamp::MIN, BTreeMap::new(), BTreeMap::new());
        let phase = Mutex::new(State { goal: Goal::Well, begun, tales, revisions });
        Self { syncs, phase, changed: Notify::new() }
    }

    /// Begins a phase.
    pub(super) fn begin(&self, goal: Goal, begun: Timestamp) {
        let mut state = lock(&self.phase);
        (state.goal, state.begun) = (goal, begun);
        state.tales.clear();
    }

    /// Returns what was applied last, by sync.
    pub(super) fn revisions(&self) -> BTreeMap<String, String> {
        lock(&self.phase).revisions.clone()
    }

    /// Learns from the report of a round.
    pub(super) fn see(&self, report: &Report) {
        let state = &mut *lock(&self.phase);
        let code = report.exit_code();
        if code == 0 {
            state.revisions.insert(report.sync.clone(), report.revision.clone());
        }
        for (cluster, of_cluster) in &report.clusters {
            let tale = state.tales.entry(cluster.clone()).or_default().entry(report.sync.clone()).or_default();
            if tale.took.is_some() {
                continue;
            }
            let is_reached = code == 0
                && match &state.goal {
                    Goal::Well => true,
                    Goal::Unchanged => {
                        report.started >= state.begun && !of_cluster.steps.iter().any(StepReport::is_change)
                    }
                    Goal::Other(revisions) => revisions.get(&report.sync) != Some(&report.revision),
                };
            if is_reached {
                let since = if matches!(state.goal, Goal::Unchanged) { report.started } else { state.begun };
                tale.took = Some(report.finished.duration_since(since));
            } else {
                tale.rounds += 1;
                tale.why = why(of_cluster).or(tale.why.take());
            }
        }
        self.changed.notify_one();
    }

    /// Tells whether every one of some clusters has reached the goal, for all of its syncs.
    pub(super) fn is_reached(&self, counts: impl Fn(&str) -> bool) -> bool {
        let state = lock(&self.phase);
        self.syncs.iter().filter(|(name, _)| counts(name)).all(|(name, syncs)| {
            let tales = state.tales.get(name);
            tales.is_some_and(|it| it.len() == *syncs && it.values().all(|tale| tale.took.is_some()))
        })
    }

    /// Returns what is known of each cluster: it has reached the goal when all of its syncs have.
    pub(super) fn tales(&self) -> BTreeMap<String, Tale> {
        let state = lock(&self.phase);
        let of = |(name, syncs): (&String, &usize)| {
            let tales: Vec<&Tale> = state.tales.get(name).into_iter().flat_map(BTreeMap::values).collect();
            let is_whole = tales.len() == *syncs && tales.iter().all(|tale| tale.took.is_some());
            let took = tales.iter().filter_map(|tale| tale.took).max().filter(|_| is_whole);
            let rounds = tales.iter().map(|tale| tale.rounds).sum();
            (name.clone(), Tale { took, rounds, why: tales.iter().find_map(|tale| tale.why.clone()) })
        };
        self.syncs.iter().map(of).collect()
    }
}

/// Says what kept a round from ending well.
fn why(report: &ClusterReport) -> Option<String> {
    let error = report.error.as_ref().map(|error| error.message.clone());
    let hold = || report.holds.first().map(|hold| format!("held by guard {}: {}", hold.guard, hold.message));
    let refusal = || report.refusals.first().map(|refusal| format!("{}: {}", refusal.id, refusal.reason));
    let unit = || report.units.iter().find_map(|unit| unit.message.clone());
    error.or_else(hold).or_else(refusal).or_else(unit)
}
