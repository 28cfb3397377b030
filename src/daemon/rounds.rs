//! The rounds of one sync under the daemon.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::overlay::Variant;
use gatewright_engine::pack::Packs;
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::unit::Rendering;
use tokio::sync::OnceCell;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use super::{Shared, Slot};
use crate::config::Config;
use crate::config::settings::SyncSettings;
use crate::fleet::{self, Order};
use crate::journal;
use crate::rendering::{Reading, Wanted};
use crate::report::{ClusterReport, ClusterState, Report, UnitState};
use crate::schedule::timer::{Cause, Outcome};
use crate::source::Snapshot;
use crate::suspension::{self, Suspension};

/// How many renderings of one snapshot are kept: that of a large source takes tens of megabytes. Where there are more,
/// those that were not needed for the longest time are made again.
const MOST_RENDERINGS: usize = 16;

/// Something that is there, or that somebody is at work on.
type Pending<T> = Arc<OnceCell<Arc<T>>>;

/// The renderings of a sync, shared by its clusters: a source that has not changed is not rendered again, and not once
/// for each of two clusters on which it is the same.
pub(super) struct Renderings {
    settings: SyncSettings,
    packs: Arc<Packs>,
    last: Mutex<Edition>,
}

/// What was made of one revision.
#[derive(Default)]
struct Edition {
    revision: String,
    reading: Pending<Reading>,
    /// Those needed last stand last.
    renderings: Vec<(Variant, Pending<Rendering>)>,
}

impl Renderings {
    pub(super) fn new(settings: SyncSettings, packs: Arc<Packs>) -> Self {
        Self { settings, packs, last: Mutex::default() }
    }

    /// Returns the rendering of a snapshot for a cluster; clusters that ask at the same time wait for the first.
    async fn of(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        cluster: &ClusterFacts,
    ) -> Result<Arc<Rendering>, JoinError> {
        let (renderings, source) = (Arc::clone(self), Arc::clone(snapshot));
        let read = move || Arc::new(Reading::new(&source, &renderings.settings, &renderings.packs));
        let reading = self.reading(&snapshot.revision);
        let reading = reading.get_or_try_init(|| tokio::task::spawn_blocking(read)).await?;
        let rendering = self.rendering(&snapshot.revision, reading.variant(cluster));
        let (renderings, reading, cluster) = (Arc::clone(self), Arc::clone(reading), cluster.clone());
        let render = move || Arc::new(reading.render(&renderings.packs, &cluster));
        rendering.get_or_try_init(|| tokio::task::spawn_blocking(render)).await.cloned()
    }

    fn reading(&self, revision: &str) -> Pending<Reading> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.revision != revision {
            *last = Edition { revision: revision.to_owned(), ..Edition::default() };
        }
        Arc::clone(&last.reading)
    }

    fn rendering(&self, revision: &str, variant: Variant) -> Pending<Rendering> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.revision != revision {
            // The source has moved on meanwhile, and nobody else will ask for this.
            return Pending::default();
        }
        let known = last.renderings.iter().position(|(known, _)| *known == variant);
        let entry = known.map_or_else(|| (variant, Pending::default()), |index| last.renderings.remove(index));
        let rendering = Arc::clone(&entry.1);
        last.renderings.push(entry);
        let surplus = last.renderings.len().saturating_sub(MOST_RENDERINGS);
        last.renderings.drain(..surplus);
        rendering
    }
}

/// One sync on one cluster, and what it needs for a round.
pub(super) struct Sync {
    title: String,
    order: Order,
    cluster: ClusterFacts,
    renderings: Arc<Renderings>,
    reports: PathBuf,
    keep: Duration,
}

impl Sync {
    pub(super) fn new(cluster: ClusterFacts, order: Order, renderings: Arc<Renderings>, config: &Config) -> Self {
        let (reports, keep) = (config.reports_dir.clone(), config.settings.reports.keep.0);
        Self { title: format!("{}/{}", order.sync, cluster.name), order, cluster, renderings, reports, keep }
    }

    /// The sync and the cluster.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    fn name(&self) -> &str {
        &self.order.sync
    }

    pub(super) fn source(&self) -> &str {
        &self.order.settings.source
    }

    /// Runs a round in a task of its own, so that a bug in it does not end the schedule.
    pub(super) async fn round(
        self: Arc<Self>,
        cause: Cause,
        slot: Slot,
        shared: Arc<Shared>,
        stop: CancellationToken,
    ) -> Outcome {
        let span = info_span!("round", sync = self.title(), %cause);
        let name = self.title().to_owned();
        let round = async move { self.try_round(&slot, &shared, &stop).await }.instrument(span);
        tokio::spawn(round).await.unwrap_or_else(|error| {
            error!(sync = name, %error, "the round ended in a bug");
            Outcome::Failed
        })
    }

    async fn try_round(self: Arc<Self>, slot: &Slot, shared: &Shared, stop: &CancellationToken) -> Outcome {
        // The lock comes first: who holds it may be about to suspend the sync.
        let _lock = match shared.state.lock_round(self.name(), &self.cluster.name) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                info!(sync = self.name(), cluster = self.cluster.name, "no round, because a person is at work there");
                return Outcome::Done;
            }
            Err(error) => {
                error!(sync = self.name(), error = %Chain(&error), "no round");
                return Outcome::Failed;
            }
        };
        match suspension::of(&shared.state, self.name(), shared.clock.now()) {
            Ok(None) => shared.metrics.suspended(self.name(), false),
            Ok(Some(suspension)) => return self.rest(suspension, shared),
            Err(error) => {
                error!(sync = self.name(), error = %Chain(&error), "no round: is the sync suspended? Resume or suspend it");
                return Outcome::Failed;
            }
        }
        let (snapshot, trouble) = slot.get();
        let Some(snapshot) = snapshot else {
            warn!(sync = self.name(), source = self.source(), "no round, because the source has never been read");
            return Outcome::Failed;
        };
        let wanted = match self.renderings.of(&snapshot, &self.cluster).await {
            Ok(rendering) => Wanted::from([(self.cluster.name.clone(), rendering)]),
            Err(error) => {
                error!(sync = self.name(), %error, "rendering ended in a bug");
                return Outcome::Failed;
            }
        };
        let mut report = fleet::run(&self.order, &snapshot, &wanted, &shared.state, shared.clock.as_ref(), stop).await;
        report.stale_source =
            trouble.map(|trouble| format!("since {}: {}", trouble.since.strftime("%F %T UTC"), trouble.message));
        self.tell(&report, shared);
        if report.exit_code() == 0 || report.exit_code() == 3 { Outcome::Done } else { Outcome::Failed }
    }

    /// Tells that there is no round; how things stood after the last one is told again with it.
    fn rest(&self, suspension: Suspension, shared: &Shared) -> Outcome {
        let (sync, cluster) = (self.name(), self.cluster.name.as_str());
        info!(sync, cluster, "no round: {}", suspension.words());
        shared.metrics.suspended(sync, true);
        shared.metrics.round(sync, cluster, "suspended");
        let last = journal::last(&shared.state, sync, cluster);
        let report = Report::suspended(last, (sync, self.source()), cluster, suspension, shared.clock.now());
        if let Err(error) = journal::record(&shared.state, &self.reports, &report) {
            error!(error = %Chain(&error), "cannot keep the report");
        }
        Outcome::Done
    }

    /// Log, metrics, files: everything that tells of a round.
    fn tell(&self, report: &Report, shared: &Shared) {
        for (name, cluster) in &report.clusters {
            self.measure(name, cluster, report, shared);
        }
        let seconds = report.finished.duration_since(report.started).as_secs_f64();
        shared.metrics.round_took(self.name(), seconds);
        match journal::record(&shared.state, &self.reports, report) {
            // What was wrong in the last round too is in its report, and was logged then.
            Ok(None) => {}
            Ok(Some(_)) => Self::log_details(report),
            Err(error) => {
                Self::log_details(report);
                error!(error = %Chain(&error), "cannot keep the report");
            }
        }
        Self::log(report);
        journal::expire(&self.reports, shared.clock.now(), self.keep);
        if let Some(archive) = &self.order.archive {
            archive.expire(shared.clock.now());
        }
    }

    /// What is wrong, one line each.
    fn log_details(report: &Report) {
        for problem in &report.problems {
            warn!(%problem, "problem in the source");
        }
        for (cluster, state) in &report.clusters {
            for hold in &state.holds {
                warn!(cluster, guard = %hold.guard, hold.message, hold.hint, "held");
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

    /// One line a round.
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

    fn measure(&self, name: &str, cluster: &ClusterReport, report: &Report, shared: &Shared) {
        let (sync, metrics) = (self.name(), &shared.metrics);
        let result = match cluster.state {
            ClusterState::Done | ClusterState::Planned => "done",
            ClusterState::Held => "held",
            ClusterState::Failed => "failed",
            ClusterState::Unreachable => "unreachable",
            ClusterState::Stopped => "stopped",
            ClusterState::Suspended => "suspended",
        };
        metrics.round(sync, name, result);
        metrics.cluster_up(name, cluster.state != ClusterState::Unreachable);
        if result == "done" {
            #[expect(clippy::cast_precision_loss, reason = "metrics are floats; milliseconds need far fewer digits")]
            metrics.succeeded(sync, name, report.finished.as_millisecond() as f64 / 1000.0);
        }
        let mut actions: BTreeMap<&str, u32> = BTreeMap::new();
        let is_done = |step: &&crate::report::StepReport| step.outcome == Some(crate::apply::Outcome::Done);
        cluster.steps.iter().filter(is_done).for_each(|step| *actions.entry(&step.action).or_default() += 1);
        for (action, number) in actions {
            metrics.changed(sync, name, action, number);
        }
        let mut states: BTreeMap<&str, u32> = BTreeMap::new();
        for unit in &cluster.units {
            let state = match unit.state {
                UnitState::Current => "current",
                UnitState::Changed | UnitState::Pending | UnitState::Pruned => "changed",
                UnitState::Held => "held",
                UnitState::Unhealthy | UnitState::Failed => "failed",
            };
            *states.entry(state).or_default() += 1;
        }
        metrics.objects(sync, name, &states);
        let guards: Vec<String> = cluster.holds.iter().map(|hold| hold.guard.to_string()).collect();
        metrics.holds(sync, name, &guards.iter().map(|guard| (guard.as_str(), 1)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SPECS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: eu}
spec: {priority: 1, clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}
---
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: for-all}
spec: {parameters: {kube: {deployment: {replicas: 2}}}}
";

    fn renderings() -> Arc<Renderings> {
        let pack = gatewright_engine::pack::Pack::builtin("kgateway", &Value::Null).expect("it is sound");
        let settings = serde_json::from_value(json!({"source": "specs", "clusters": {}})).expect("a test knows them");
        Arc::new(Renderings::new(settings, Arc::new(Packs::new(vec![pack]).expect("it is sound"))))
    }

    fn snapshot(revision: &str) -> Arc<Snapshot> {
        let tree = [("specs.yaml", SPECS)].into_iter().collect();
        Arc::new(Snapshot { revision: revision.to_owned(), tree })
    }

    async fn of(renderings: &Arc<Renderings>, snapshot: &Arc<Snapshot>, name: &str, region: &str) -> Arc<Rendering> {
        let labels = [("region".to_owned(), region.to_owned())].into();
        let cluster = ClusterFacts { name: name.to_owned(), labels };
        renderings.of(snapshot, &cluster).await.expect("rendering ends in no bug")
    }

    #[tokio::test]
    async fn clusters_with_the_same_overlays_share_a_rendering() {
        let (renderings, snapshot) = (renderings(), snapshot("one"));
        let eu = of(&renderings, &snapshot, "eu-1", "eu").await;
        let us = of(&renderings, &snapshot, "us-1", "us").await;
        assert!(Arc::ptr_eq(&eu, &of(&renderings, &snapshot, "eu-2", "eu").await));
        assert!(Arc::ptr_eq(&us, &of(&renderings, &snapshot, "lab", "here").await));
        let replicas = |rendering: &Rendering| {
            let mut objects = rendering.units[0].objects.iter();
            objects.find_map(|object| object.body()["spec"]["replicas"].as_u64())
        };
        assert_eq!((replicas(&eu), replicas(&us)), (Some(3), Some(2)));
    }

    #[tokio::test]
    async fn another_revision_is_rendered_anew() {
        let renderings = renderings();
        let old = of(&renderings, &snapshot("one"), "eu-1", "eu").await;
        let new = of(&renderings, &snapshot("two"), "eu-1", "eu").await;
        assert!(!Arc::ptr_eq(&old, &new) && old.units == new.units);
        assert!(Arc::ptr_eq(&new, &of(&renderings, &snapshot("two"), "eu-2", "eu").await));
    }

    #[test]
    fn no_more_renderings_are_kept_than_fit() {
        let renderings = renderings();
        let reading = Reading::new(&snapshot("one"), &renderings.settings, &renderings.packs);
        let variant = |region: &str| {
            let labels = [("region".to_owned(), region.to_owned())].into();
            reading.variant(&ClusterFacts { name: String::new(), labels })
        };
        drop(renderings.reading("one"));
        let kept = renderings.rendering("one", variant("eu"));
        assert!(Arc::ptr_eq(&kept, &renderings.rendering("one", variant("eu"))));
        assert!(!Arc::ptr_eq(&kept, &renderings.rendering("one", variant("us"))));
        assert!(!Arc::ptr_eq(&kept, &renderings.rendering("gone", variant("eu"))));
    }
}
