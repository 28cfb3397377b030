//! The daemon in simulated time: its sources, timers, rounds, rollouts and breakers as they are, over other clusters.
//!
//! What belongs to a process is left out: signals, the service manager, HTTP, and the watching of folders, because files
//! change in another time than the simulated one.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatewright_engine::marks::Marker;
use tokio_util::sync::CancellationToken;

use super::generation::{Generation, Prepared, order};
use super::hosts::Hosts;
use super::sources::Troubles;
use super::{Build, DaemonError, Shared, Told};
use crate::basics::clock::Clock;
use crate::config::Config;
use crate::config::settings::SyncSettings;
use crate::desired::assemble;
use crate::desired::rendering::renderings::Renderings;
use crate::desired::rendering::{Want, facts_of};
use crate::history::archive::Archive;
use crate::process::metrics::Metrics;
use crate::process::service::Progress;
use crate::reconcile::fleet;
use crate::reconcile::model::{Clusters, Order};
use crate::reconcile::rollout::Rollout;
use crate::reconcile::rollout::recall::Heads;
use crate::report::{Mode, Report};
use crate::state::State;
use crate::webhooks::gather::Gathering;

/// A daemon that runs.
pub(crate) struct Running {
    shared: Arc<Shared>,
    generation: Generation,
}

/// Starts a daemon on clusters that `build` makes; `told` is called with the report of each round.
pub(crate) fn start(
    config: Config,
    clock: &Arc<dyn Clock>,
    build: Box<Build>,
    told: Box<Told>,
) -> Result<Running, DaemonError> {
    let state = State::open(&config.state_dir);
    let installation = state.make_installation().map_err(DaemonError::State)?;
    let shared = Arc::new(Shared {
        build,
        told: Some(told),
        is_watching: false,
        troubles: Troubles::load(&state),
        gathering: Gathering::default(),
        state,
        lock: None,
        installation,
        metrics: Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))),
        progress: Progress::new(Arc::clone(clock)),
        readiness: Arc::default(),
        hosts: Hosts::default(),
        clock: Arc::clone(clock),
        enrolled: Arc::default(),
        requests: super::requests::Requests::default(),
        board: None,
    });
    let generation = Prepared::new(config, &shared)?.start(&BTreeSet::new(), &shared);
    Ok(Running { shared, generation })
}

impl Running {
    /// Lets rounds that are under way come to their end.
    pub(crate) async fn stop(self) {
        self.generation.stop().await;
    }

    /// Plans all syncs of a configuration on all clusters, as `gatewright plan` does beside a daemon. Its clusters are those
    /// of the daemon; its sources may be others.
    pub(crate) async fn plan(&self, config: &Config) -> Result<Vec<Report>, DaemonError> {
        let mut reports = Vec::new();
        for (name, settings) in &config.settings.syncs {
            reports.push(self.plan_sync(config, (name, settings)).await?);
        }
        Ok(reports)
    }

    async fn plan_sync(
        &self,
        config: &Config,
        (name, settings): (&String, &SyncSettings),
    ) -> Result<Report, DaemonError> {
        let shared = &self.shared;
        let source = assemble::source(config, &settings.source).map_err(DaemonError::Source)?;
        let snapshot = source.poll(None).await.map_err(DaemonError::Poll)?;
        let snapshot = Arc::new(snapshot.expect("whoever has no revision gets one"));
        let packs = config.packs().map_err(DaemonError::Pack)?;
        let marker = Marker { installation: shared.installation.clone(), sync: name.clone() };
        let renderings = Renderings::new(settings.clone(), Arc::clone(&packs), &config.packs_key(), marker);
        let renderings = Arc::new(renderings.among(&config.settings.fleet()));
        let wanted = facts_of(config, settings).into_iter();
        let wanted = wanted.map(|it| (it.name.clone(), Want::later(&renderings, &snapshot, &it))).collect();
        let selected = config.clusters_of(settings);
        let clusters: Clusters = selected
            .keys()
            .map(|name| ((*name).to_owned(), Arc::clone(&self.generation.common.clusters[*name])))
            .collect();
        let heads = Heads::new(clusters.clone(), &shared.installation, config.inventory_key.clone());
        let rollout = Rollout::of((name, settings), &selected, &clusters, true, (&shared.state, heads));
        let archive = Archive::open(&shared.state, &config.settings.undo, config.settings.rollback.keep);
        let archive = Arc::new(archive.map_err(DaemonError::Archive)?);
        let order = order(name, settings, (clusters, packs.table()), shared, (&archive, config));
        let order = Order { mode: Mode::Plan, archive: None, rollout, ..order };
        let stop = CancellationToken::new();
        Ok(fleet::run(&order, &snapshot, &wanted, &shared.state, shared.clock.as_ref(), &stop).await)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::Mutex;
    use std::time::Duration;

    use jiff::Timestamp;
    use tokio::time::sleep;

    use super::*;
    use crate::basics::clock::SimulatedClock;
    use crate::basics::lock::lock;
    use crate::cluster::simulated::link::{Fault, Latency};
    use crate::cluster::simulated::{SimulatedCluster, World};
    use crate::config::{self, environment::Environment};
    use crate::report::ClusterState;

    const CONFIG: &str = "stateDir: state
sources: {specs: {directory: {path: specs, settle: 0s}}}
clusters: {a: {directory: {path: a}}, b: {directory: {path: b}}}
syncs: {edge: {source: specs, clusters: {names: [a, b]}, unclaimed: apply, createNamespaces: true}}
";

    const SPEC: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: edge, namespace: shop}}";

    /// Starts a daemon on an empty state, with one spec in each of some folders.
    fn running(
        folder: &tempfile::TempDir,
        (text, specs): (&str, &[(&str, &str)]),
        build: Box<Build>,
        told: Box<Told>,
    ) -> Running {
        for (path, spec) in specs {
            fs::create_dir(folder.path().join(path)).expect("a temporary folder can be written");
            fs::write(folder.path().join(path).join("spec.yaml"), spec).expect("a temporary folder can be written");
        }
        let config = config::parse(&folder.path().join("gatewright.yaml"), text, &Environment::default());
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH));
        start(config.expect("it is right"), &clock, build, told).expect("nothing stands in its way")
    }

    async fn until(mut holds: impl FnMut() -> bool) {
        for _ in 0..600 {
            if holds() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
        assert!(holds(), "not within ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bug_in_a_round_ends_neither_the_daemon_nor_the_schedule() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rounds: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let told = {
            let rounds = Arc::clone(&rounds);
            move |report: &Report| {
                for cluster in report.clusters.keys() {
                    let number = *lock(&rounds).entry(cluster.clone()).and_modify(|number| *number += 1).or_insert(1);
                    assert!(cluster != "a" || number > 1, "this is the bug of a test");
                }
            }
        };
        let running = running(&folder, (CONFIG, &[("specs", SPEC)]), Box::new(assemble::cluster), Box::new(told));
        let of = |cluster: &str| lock(&rounds).get(cluster).copied().unwrap_or_default();
        until(|| of("a") >= 3 && of("b") >= 2).await;
        let failed = r#"gatewright_rounds_total{sync="edge",cluster="a",result="failed"} 1"#;
        let page = running.shared.metrics.encode().expect("a text takes everything");
        assert!(page.contains(failed), "{page}");
        running.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_of_a_sync_that_stays_go_on_while_another_one_goes_and_comes() {
        const TWO: &str = "stateDir: state
sources: {red: {directory: {path: red, settle: 0s}}, blue: {directory: {path: blue, settle: 0s}}}
clusters: {a: {kubeconfig: {path: a.yaml}}}
syncs:
  red: {source: red, clusters: {names: [a]}, unclaimed: apply, createNamespaces: true}
  blue: {source: blue, clusters: {names: [a]}, unclaimed: apply, createNamespaces: true}
";
        let spec = |name: &str| {
            format!(
                "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, namespace: shop}}, spec: {{selector: \
                 {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: \
                 [{{name: main, image: main}}]}}}}}}}}"
            )
        };
        let latency =
            |seconds: u64| Latency { median: Duration::from_secs(seconds), p99: Duration::from_secs(seconds) };
        // What was written is healthy two minutes later, and rounds wait for it.
        let world = World { seed: 1, latency: latency(0), ready: latency(120), errors: 0.0, bodies: Arc::default() };
        let build: Box<Build> = Box::new(move |_, name, _, kinds, clock| {
            Arc::new(SimulatedCluster::new(name, (&world, Fault::None, Duration::from_secs(9)), kinds, clock))
        });
        let ended: Arc<Mutex<Vec<(String, ClusterState)>>> = Arc::default();
        let told = {
            let ended = Arc::clone(&ended);
            move |report: &Report| lock(&ended).push((report.sync.clone(), report.clusters["a"].state))
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let specs = [("red", &*spec("red")), ("blue", &*spec("blue"))];
        let mut running = running(&folder, (TWO, &specs), build, Box::new(told));
        let of = |sync: &str| -> Vec<ClusterState> {
            lock(&ended).iter().filter(|(name, _)| name == sync).map(|(_, state)| *state).collect()
        };
        sleep(Duration::from_mins(1)).await;
        assert_eq!((of("red"), of("blue")), (vec![], vec![]), "both wait");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        running.generation.change(&names(&["red"]), &running.shared).await;
        assert_eq!((of("red"), of("blue")), (vec![], vec![ClusterState::Stopped]));
        assert_eq!(running.generation.running(), names(&["red"]));
        let is_counted =
            |running: &Running| running.shared.metrics.encode().is_ok_and(|page| page.contains("sync=\"blue\""));
        assert!(!is_counted(&running), "nobody here knows any more how it is");
        running.generation.change(&names(&["red", "blue"]), &running.shared).await;
        assert!(is_counted(&running));
        until(|| of("blue").len() > 1 && !of("red").is_empty()).await;
        assert_eq!((of("red")[0], of("blue")[1]), (ClusterState::Done, ClusterState::Done));
        running.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_source_of_a_sync_that_comes_is_read_at_once() {
        let config = CONFIG.replace("settle: 0s}", "settle: 0s}, poll: 1h");
        let revisions: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let told = {
            let revisions = Arc::clone(&revisions);
            move |report: &Report| lock(&revisions).extend([report.revision.clone()])
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let running = running(&folder, (&config, &[("specs", SPEC)]), Box::new(assemble::cluster), Box::new(told));
        until(|| lock(&revisions).len() == 1).await;
        fs::write(folder.path().join("specs/other.yaml"), SPEC.replace("edge", "other")).expect("a test may");
        let slot = &running.generation.common.syncs["edge"].slot;
        let number = slot.ask();
        assert!(!slot.is_read(number));
        sleep(Duration::from_mins(1)).await;
        assert!(slot.is_read(number) && lock(&revisions).len() == 2, "{revisions:?}");
        running.stop().await;
    }
}
