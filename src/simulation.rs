//! A daemon in simulated time, over clusters in memory: what a fleet costs that no machine for tests has.
//!
//! The program is the real one, from the timers to the last request; the clusters are simulated, and so is the time: the
//! clock of the runtime is paused, and goes on to the next timer whenever nothing is left to do. What the program itself
//! computes takes no simulated time; it is measured as CPU time. `docs/scale.md` says what is modelled and what is not.

pub(crate) mod fleet;
pub(crate) mod outcome;
mod progress;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tokio::time::{Instant, sleep_until};

use crate::basics::clock::{Clock, SimulatedClock, process_cpu};
use crate::basics::lock::lock;
use crate::cluster::simulated::link::{Fault, Traffic};
use crate::cluster::simulated::{SimulatedCluster, World};
use crate::config::Config;
use crate::config::settings::ClusterSettings;
use crate::daemon::simulated::{Running, start};
use crate::daemon::{Build, DaemonError};
use outcome::{Outcome, Phase, Planned};
use progress::{Goal, Progress};

/// The clusters of a simulation, by name.
type Simulated = BTreeMap<String, Arc<SimulatedCluster>>;

/// The longest request, where a cluster of the config file is a directory.
const LIMIT: Duration = Duration::from_secs(30);

/// The time of day at which every simulation begins.
const BEGINNING: i64 = 1_767_225_600;

/// The number of clusters with each fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Those that never answer.
    pub(crate) unreachable: usize,
    /// Those that answer 429 to most requests.
    pub(crate) throttled: usize,
    /// Those that take long.
    pub(crate) slow: usize,
}

/// The properties of a simulation.
pub(crate) struct Settings {
    /// The properties of all clusters.
    pub(crate) world: World,
    /// The number of clusters that are ill.
    pub(crate) faults: Faults,
    /// The longest time, simulated, of each phase.
    pub(crate) limit: Duration,
    /// The change that is rolled out in the end.
    pub(crate) change: Option<Change>,
    /// Told in a line how each phase has ended: a large fleet takes minutes.
    pub(crate) tell: fn(&str),
}

/// A change of a source.
pub(crate) struct Change {
    /// The name of the source.
    pub(crate) source: String,
    /// The name of the phase.
    pub(crate) name: String,
    /// A folder with what the source is to say.
    pub(crate) folder: PathBuf,
}

/// The reason why there was no simulation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulationError {
    /// The daemon could not start.
    #[error("cannot start the daemon of the simulation")]
    Daemon(#[source] DaemonError),
    /// The source could not be changed.
    #[error("cannot change the source of the simulation")]
    Change(#[source] io::Error),
}

/// A simulation under way.
struct Simulation {
    config: Config,
    limit: Duration,
    clock: Arc<dyn Clock>,
    clusters: Simulated,
    progress: Arc<Progress>,
    daemon: Running,
    tell: fn(&str),
}

/// Runs a simulation. The time of the runtime must be paused, and this be its only thread.
pub(crate) async fn run(config: Config, settings: Settings) -> Result<Outcome, SimulationError> {
    let Settings { world, faults, limit, change, tell } = settings;
    let day = Timestamp::from_second(BEGINNING).unwrap_or_default();
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(day));
    let (world, progress) = (Arc::new(world), Arc::new(Progress::of(&config)));
    let faults = faults.of(&config, world.seed);
    let made: Arc<Mutex<Simulated>> = Arc::default();
    let build = building(Arc::clone(&made), Arc::clone(&world), faults);
    let told = Arc::clone(&progress);
    let daemon = start(config.clone(), &clock, build, Box::new(move |report| told.see(report)));
    let daemon = daemon.map_err(SimulationError::Daemon)?;
    let clusters = std::mem::take(&mut *lock(&made));
    let simulation = Simulation { config, limit, clock, clusters, progress, daemon, tell };
    let mut outcome = Outcome::of(&world, &simulation.clusters);
    outcome.phases.push(simulation.phase("first apply", Goal::Well).await);
    outcome.phases.push(simulation.phase("no change", Goal::Unchanged).await);
    if let Some(change) = change {
        let revisions = simulation.progress.revisions();
        outcome.plan = Some(simulation.plan(&change).await?);
        simulation.take_over(&change)?;
        outcome.phases.push(simulation.phase(&change.name, Goal::Other(revisions)).await);
    }
    outcome.end(&world, &simulation.clusters);
    simulation.daemon.stop().await;
    Ok(outcome)
}

/// Returns what makes the simulated clusters, and notes them.
fn building(made: Arc<Mutex<Simulated>>, world: Arc<World>, faults: BTreeMap<String, Fault>) -> Box<Build> {
    Box::new(move |_, name, settings: &ClusterSettings, kinds, clock| {
        let limit = settings.kubeconfig.as_ref().map_or(LIMIT, |it| it.timeout.0);
        let fault = faults.get(name).copied().unwrap_or_default();
        let cluster = Arc::new(SimulatedCluster::new(name, (&world, fault, limit), kinds, clock));
        lock(&made).insert(name.to_owned(), Arc::clone(&cluster));
        cluster
    })
}

impl Faults {
    /// Returns the number of clusters that are ill.
    pub(crate) fn all(self) -> usize {
        self.unreachable + self.throttled + self.slow
    }

    /// Draws which clusters of a configuration are ill.
    fn of(self, config: &Config, seed: u64) -> BTreeMap<String, Fault> {
        let mut names: Vec<&String> = config.settings.clusters.keys().collect();
        names.shuffle(&mut StdRng::seed_from_u64(seed));
        let times = |fault, number| std::iter::repeat_n(fault, number);
        let faults = times(Fault::Unreachable, self.unreachable)
            .chain(times(Fault::Throttled, self.throttled))
            .chain(times(Fault::Slow, self.slow));
        names.into_iter().cloned().zip(faults).collect()
    }
}

impl Simulation {
    /// Waits until all clusters that answer have reached a goal, or time is up.
    async fn phase(&self, name: &str, goal: Goal) -> Phase {
        let (begun, cpu) = (self.clock.now(), process_cpu());
        let end = Instant::now() + self.limit;
        for cluster in self.clusters.values() {
            cluster.take_traffic();
        }
        self.progress.begin(goal, begun);
        let is_answering = |name: &str| self.clusters.get(name).is_some_and(|it| it.fault() != Fault::Unreachable);
        while !self.progress.is_reached(is_answering) {
            tokio::select! {
                () = self.progress.changed.notified() => {}
                () = sleep_until(end) => break,
            }
        }
        let traffic: BTreeMap<&str, Traffic> =
            self.clusters.iter().map(|(name, cluster)| (name.as_str(), cluster.take_traffic())).collect();
        let faults = self.clusters.iter().map(|(name, cluster)| (name.as_str(), cluster.fault())).collect();
        let took = self.clock.now().duration_since(begun);
        let cpu = process_cpu().saturating_sub(cpu);
        let phase = Phase::of(name, (took, cpu), &self.progress.tales(), &traffic, &faults);
        (self.tell)(&text::in_short(&phase));
        phase
    }

    /// Plans a change on all clusters before the daemon sees it.
    async fn plan(&self, change: &Change) -> Result<Planned, SimulationError> {
        let mut config = self.config.clone();
        if let Some(directory) = config.settings.sources.get_mut(&change.source).and_then(|it| it.directory.as_mut()) {
            directory.path.clone_from(&change.folder);
        }
        let (begun, cpu) = (self.clock.now(), process_cpu());
        let reports = self.daemon.plan(&config).await.map_err(SimulationError::Daemon)?;
        let took: SignedDuration = self.clock.now().duration_since(begun);
        let planned = Planned::of(&reports, took, process_cpu().saturating_sub(cpu));
        (self.tell)(&text::plan_in_short(&planned));
        Ok(planned)
    }

    /// Has the source say what the change says.
    fn take_over(&self, change: &Change) -> Result<(), SimulationError> {
        let source = self.config.settings.sources.get(&change.source).and_then(|it| it.directory.as_ref());
        let Some(source) = source else { return Ok(()) };
        fleet::replace(&change.folder, &source.path).map_err(SimulationError::Change)
    }
}
