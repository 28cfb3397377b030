//! The rounds of one sync under the daemon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::text::count;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use super::Shared;
use super::measure::{measure, seconds};
use super::sources::Slot;
use super::turns::Turns;
use crate::config::Config;
use crate::desired::rendering::renderings::Renderings;
use crate::desired::rendering::{Want, Wanted};
use crate::desired::siblings::{self, Siblings};
use crate::history::audit_log::{self, Actor, Event};
use crate::history::journal;
use crate::reconcile::fleet;
use crate::reconcile::gone;
use crate::reconcile::model::Order;
use crate::report::{ClusterState, Report};
use crate::schedule::enrolled::Enrolled;
use crate::schedule::timer::{Cause, Outcome};
use crate::source::Snapshot;
use crate::source::cache::Trouble;
use crate::state::suspension::{self, Suspension};
use crate::state::timekeeping;
use crate::webhooks;

/// The time in which a round learns what the other syncs of its cluster want. Where that is not enough the next round
/// knows; until then nothing is deleted that could be theirs.
const LIMIT: Duration = Duration::from_secs(1);

/// The facts that a sync must know of another one: what that wants.
pub(super) struct Sibling {
    pub(super) renderings: Arc<Renderings>,
    pub(super) slot: Arc<Slot>,
    pub(super) source: String,
}

/// One sync on one cluster, and what it needs for a round.
pub(super) struct Sync {
    /// The sync and the cluster.
    pub(super) title: String,
    order: Order,
    cluster: ClusterFacts,
    /// The read of the source before which what is known of it may be too old.
    needed: u64,
    /// All syncs, this one included.
    syncs: Arc<BTreeMap<String, Sibling>>,
    /// The rounds of all of them.
    turns: Arc<Turns>,
    config: Arc<Config>,
}

impl Sync {
    pub(super) fn new(
        cluster: ClusterFacts,
        order: Order,
        needed: u64,
        (syncs, turns): (Arc<BTreeMap<String, Sibling>>, &Arc<Turns>),
        config: &Arc<Config>,
    ) -> Self {
        let title = format!("{}/{}", order.sync, cluster.name);
        let turns = Arc::clone(turns);
        Self { title, order, cluster, needed, syncs, turns, config: Arc::clone(config) }
    }

    fn name(&self) -> &str {
        &self.order.sync
    }

    fn source(&self) -> &str {
        &self.order.settings.source
    }

    fn slot(&self) -> &Slot {
        &self.syncs[self.name()].slot
    }

    /// Has a round begin when its source has something new, when it is the turn of its cluster in a rollout, when that answers
    /// again, and when other syncs are through.
    pub(super) fn nudged_by(&self, nudges: &Arc<Notify>) {
        self.slot().nudge(nudges, self.needed);
        self.turns.add(self.name(), &self.cluster.name, nudges);
        if let Some(rollout) = &self.order.rollout {
            rollout.nudge(&self.cluster.name, Arc::clone(nudges));
        }
        if let Some(breaker) = self.order.breakers.get(&self.cluster.name) {
            breaker.nudge(nudges);
        }
    }

    /// Has rounds begin when somebody asks for one: after the source was read once more.
    pub(super) fn enroll(&self, enrolled: &Enrolled, nudges: &Arc<Notify>, is_asked: &Arc<AtomicBool>) {
        let (slot, is_asked) = (Arc::clone(&self.syncs[self.name()].slot), Arc::clone(is_asked));
        enrolled.enroll((self.name(), &self.cluster.name, self.source()), nudges, move |round| {
            slot.ask_for(round, &is_asked)
        });
    }

    /// Runs a round in a task of its own, so that a bug in it does not end the schedule.
    pub(super) async fn round(self: Arc<Self>, cause: Cause, shared: Arc<Shared>, stop: CancellationToken) -> Outcome {
        let span = info_span!("round", sync = self.title, %cause);
        let (name, metrics) = (self.title.clone(), Arc::clone(&shared.metrics));
        let (sync, cluster) = (self.name().to_owned(), self.cluster.name.clone());
        let begun = (shared.clock.now(), self.slot().read());
        let (everybody, ended) = (Arc::clone(&shared), stop.clone());
        let round = async move { self.try_round(&shared, &stop).await }.instrument(span);
        let outcome = tokio::spawn(round).await.unwrap_or_else(|error| {
            error!(sync = name, %error, "the round ended in a bug");
            metrics.round(&sync, &cluster, "failed");
            Outcome::Failed
        });
        // One that was stopped for another configuration is begun again.
        if !ended.is_cancelled() {
            everybody.requests.over((&sync, &cluster), begun, &everybody.state);
        }
        outcome
    }

    /// Begins to count the time since a round last ended well: from that one, or from now.
    pub(super) fn watch(&self, shared: &Shared) {
        let last = journal::succeeded(&shared.state, self.name(), &self.cluster.name);
        let since = last.unwrap_or_else(|| shared.clock.now());
        shared.metrics.watched(self.name(), &self.cluster.name, seconds(since));
    }

    /// Counts a round that there was not.
    fn skipped(&self, why: &str, shared: &Shared) {
        shared.metrics.round(self.name(), &self.cluster.name, why);
    }

    /// Tells that there is no round, because somebody holds its lock.
    fn leaves_alone(&self, shared: &Shared) {
        info!(sync = self.name(), cluster = self.cluster.name, "no round, because a person is at work there");
        self.skipped("busy", shared);
        let why = "a person is at work there (undo, rollback, release); ask again when that is over";
        let of = (self.name(), self.cluster.name.as_str());
        shared.requests.none(of, (why, self.slot().read()), &shared.state);
    }

    async fn try_round(self: Arc<Self>, shared: &Shared, stop: &CancellationToken) -> Outcome {
        if shared.lock.as_ref().is_some_and(|lock| !shared.state.is_kept_by(lock)) {
            // What people have decided is not known any more, and another daemon may be at work.
            let message =
                "no round, because the state directory was removed or replaced: put it back, and restart the service";
            error!(sync = self.name(), cluster = self.cluster.name, "{message}");
            self.skipped("failed", shared);
            return Outcome::Failed;
        }
        // The lock comes first: who holds it may be about to suspend the sync.
        let _lock = match shared.state.lock_round(self.name(), &self.cluster.name) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                self.leaves_alone(shared);
                return Outcome::Done;
            }
            Err(error) => {
                error!(sync = self.name(), error = %Chain(&error), "no round");
                self.skipped("failed", shared);
                return Outcome::Failed;
            }
        };
        let now = timekeeping::record(&shared.state, shared.clock.as_ref());
        match suspension::of(&shared.state, self.name(), now) {
            Ok(None) => shared.metrics.suspended(self.name(), false),
            Ok(Some(suspension)) => return self.rest(suspension, shared),
            Err(error) => {
                error!(sync = self.name(), error = %Chain(&error), "no round: is the sync suspended? Resume or suspend it");
                self.skipped("failed", shared);
                return Outcome::Failed;
            }
        }
        let (snapshot, trouble) = self.slot().get();
        let Some(snapshot) = snapshot else {
            warn!(sync = self.name(), source = self.source(), "no round, because the source has never been read");
            self.skipped("not-ready", shared);
            return Outcome::Failed;
        };
        if self.may_be_behind(&snapshot, shared) {
            let message = "no round, because another host has applied another revision, and this one has not read the source since then";
            warn!(sync = self.name(), source = self.source(), "{message}");
            self.skipped("not-ready", shared);
            return Outcome::Failed;
        }
        let report = self.round_with(&snapshot, trouble, shared, stop).await;
        let outcome = self.conclude(report, shared).await;
        if let (Some(rollout), Some(newest)) = (&self.order.rollout, self.slot().get().0) {
            rollout.goes_on_after(&newest);
        }
        outcome
    }

    /// Runs a round with the newest revision, or with the one that is to be finished first.
    async fn round_with(
        &self,
        newest: &Arc<Snapshot>,
        trouble: Option<Trouble>,
        shared: &Shared,
        stop: &CancellationToken,
    ) -> Report {
        let snapshot = self.order.rollout.as_ref().map_or_else(|| Arc::clone(newest), |it| it.goes_on_with(newest));
        let want = Want::later(&self.syncs[self.name()].renderings, &snapshot, &self.cluster);
        let wanted = Wanted::from([(self.cluster.name.clone(), want)]);
        let siblings = BTreeMap::from([(self.cluster.name.clone(), self.siblings(&snapshot))]);
        let order = Order { siblings, ..self.order.clone() };
        let mut report = fleet::run(&order, &snapshot, &wanted, &shared.state, shared.clock.as_ref(), stop).await;
        report.stale_source =
            trouble.map(|trouble| format!("since {}: {}", trouble.since.strftime("%F %T UTC"), trouble.message));
        report.next_revision = Some(newest.revision.clone()).filter(|newest| *newest != snapshot.revision);
        if let Some(next) = &report.next_revision {
            let (sync, revision) = (self.name(), &snapshot.revision);
            info!(
                sync,
                cluster = self.cluster.name,
                revision,
                next,
                "the newest revision waits until this one is rolled out"
            );
        }
        report
    }

    /// Tells whether what is known of the source may be older than what another host has applied.
    fn may_be_behind(&self, snapshot: &Snapshot, shared: &Shared) -> bool {
        if self.slot().is_read(self.needed) {
            return false;
        }
        let last = journal::last(&shared.state, self.name(), &self.cluster.name);
        last.is_none_or(|last| last.revision != snapshot.revision) || self.has_changed_since(snapshot)
    }

    /// Tells whether the last round that has changed something was about another revision. A host that dies in a round, or
    /// right after it, leaves no report of it; what is needed to undo it is there before anything is changed.
    fn has_changed_since(&self, snapshot: &Snapshot) -> bool {
        let Some(archive) = &self.order.archive else { return false };
        match archive.last(self.name(), &self.cluster.name) {
            Ok(last) => last.is_some_and(|last| last.revision != snapshot.revision),
            Err(error) => {
                warn!(sync = self.name(), error = %Chain(&error), "nobody knows what was applied last");
                true
            }
        }
    }

    /// Keeps what a round has to say, and tells it, as long as it is for this host to say.
    async fn conclude(&self, mut report: Report, shared: &Shared) -> Outcome {
        if shared.hosts.has_lost(self.name()) {
            warn!(sync = self.name(), "the round is over, because this host does not look after the sync any more");
            self.skipped("lost", shared);
            return Outcome::Failed;
        }
        journal::compare(&shared.state, &mut report);
        self.tell(&report, shared);
        self.tell_gone(shared);
        let revision = |sync: &str| Some(self.syncs.get(sync)?.slot.get().0?.revision.clone());
        self.turns.over((self.name(), &self.cluster.name), &shared.state, revision, shared.clock.now());
        if let Some(told) = &shared.told {
            told(&report);
        }
        if let Some(board) = &shared.board {
            board.tell();
        }
        shared.hosts.flush().await;
        if report.exit_code() == 0 || report.exit_code() == 3 { Outcome::Done } else { Outcome::Failed }
    }

    /// Returns what the other syncs want on this cluster. Those of the same source are seen at the revision of this
    /// round.
    fn siblings(&self, snapshot: &Arc<Snapshot>) -> Siblings {
        let mut known = BTreeMap::new();
        for name in siblings::siblings(&self.config, self.name(), &self.cluster.name) {
            let Some(sibling) = self.syncs.get(name) else { continue };
            let latest =
                if sibling.source == self.source() { Some(Arc::clone(snapshot)) } else { sibling.slot.get().0 };
            let Some(latest) = latest else { continue };
            let want = Want::later(&sibling.renderings, &latest, &self.cluster);
            known.insert(name.to_owned(), siblings::Sibling::Wants(want));
        }
        Siblings::new(&self.config, self.name(), &self.cluster.name, &known).within_limit(LIMIT)
    }

    /// Tells which clusters of the sync are gone or are not selected any more, once for all that are left.
    fn tell_gone(&self, shared: &Shared) {
        let clusters = self.config.settings.syncs.get(self.name()).map(|sync| self.config.clusters_of(sync));
        let is_first = clusters.is_some_and(|clusters| clusters.into_keys().next() == Some(self.cluster.name.as_str()));
        if !is_first {
            return;
        }
        let gone = gone::find(&self.config, &shared.state);
        let gone = gone.iter().filter(|(_, syncs)| syncs.contains(self.name())).map(|(name, _)| name.as_str());
        let gone = gone.collect::<Vec<_>>().join(",");
        if !gone.is_empty() {
            warn!(sync = self.name(), gone, "clusters are {}", gone::WORDS);
        }
        if let Some(left) = gone::unselected(&self.config, &shared.state).get(self.name()) {
            let clusters = left.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            warn!(sync = self.name(), clusters, "not selected any more; what was applied there stays as it is");
        }
    }

    /// Tells that there is no round; how things stood after the last one is told again with it.
    fn rest(&self, suspension: Suspension, shared: &Shared) -> Outcome {
        let (sync, cluster) = (self.name(), self.cluster.name.as_str());
        info!(sync, cluster, "no round: {}", suspension.words());
        shared.metrics.suspended(sync, true);
        self.skipped("suspended", shared);
        let last = journal::last(&shared.state, sync, cluster);
        let mut report = Report::suspended(last, (sync, self.source()), cluster, suspension, shared.clock.now());
        journal::compare(&shared.state, &mut report);
        self.keep(&report, shared);
        Outcome::Done
    }

    /// Keeps a report and tells others of it; tells whether it says something new, or could not be kept.
    fn keep(&self, report: &Report, shared: &Shared) -> bool {
        let (state, metrics, gathering) = (&shared.state, &shared.metrics, &shared.gathering);
        webhooks::catch_up(state, &self.config, report, (metrics, &Actor::DAEMON));
        if let Some(event) = Event::of_round(report)
            && let Err(error) = audit_log::record(state, shared.clock.now(), &Actor::DAEMON, event)
        {
            error!(error = %Chain(&error), "cannot write the audit log");
        }
        webhooks::keep_with_others(state, &self.config, report, metrics, gathering).unwrap_or_else(|error| {
            error!(error = %Chain(&error), "cannot keep the report");
            true
        })
    }

    /// Log, metrics, files: everything that tells of a round.
    fn tell(&self, report: &Report, shared: &Shared) {
        for (name, cluster) in &report.clusters {
            measure(&shared.metrics, report, (name, cluster));
        }
        let seconds = report.finished.duration_since(report.started).as_secs_f64();
        shared.metrics.round_took(self.name(), seconds);
        // What was wrong in the last round too is in its report, and was logged then.
        if self.keep(report, shared) {
            Self::log_details(report);
        }
        Self::log(report);
        if let Some(archive) = &self.order.archive {
            archive.expire(timekeeping::believed(&shared.state, shared.clock.as_ref()));
        }
    }

    /// Logs what is wrong, one line each.
    fn log_details(report: &Report) {
        for problem in &report.problems {
            warn!(%problem, "problem in the source");
        }
        for (cluster, state) in &report.clusters {
            for hold in &state.holds {
                let unit = hold.unit.as_ref().map(ToString::to_string).or_else(|| {
                    let number = hold.units.len();
                    (number > 0).then(|| count(number, "unit"))
                });
                warn!(cluster, guard = %hold.guard, unit, hold.message, hold.hint, hold.token, "held");
            }
            for refusal in &state.refusals {
                warn!(cluster, object = %refusal.id, reason = %refusal.reason, "refused");
            }
            if let Some(failure) = &state.error {
                let hint = failure.hint.as_deref().unwrap_or_default();
                warn!(cluster, error = failure.message, hint, "no round on this cluster");
            }
            for unit in state.units.iter().filter(|unit| unit.message.is_some()) {
                warn!(cluster, unit = %unit.unit, problem = unit.message, "not healthy");
            }
        }
    }

    fn log(report: &Report) {
        let counts: Vec<String> = report.counts().iter().map(|(action, number)| format!("{action}={number}")).collect();
        let is = |wanted: ClusterState| report.clusters.values().filter(|cluster| cluster.state == wanted).count();
        info!(
            sync = report.sync,
            cluster = report.clusters.keys().cloned().collect::<Vec<_>>().join(","),
            revision = report.revision,
            mode = ?report.mode,
            changes = counts.join(" "),
            held = is(ClusterState::Held),
            failed = is(ClusterState::Failed),
            unreachable = is(ClusterState::Unreachable),
            problems = report.problems.len(),
            "round"
        );
    }
}
