//! The daemon: sources polled, rounds on schedule, signals obeyed.
//!
//! A *generation* is everything that runs under one configuration. SIGHUP reads the file again: if it is good, the
//! generation is stopped as it would be at the end, and the next one takes over; if not, nothing changes. So it is when
//! the clusters in a folder or of Secrets have changed, but then nothing else is read again. Between a source and a sync goes only the
//! news that there is something new; what a round sees it reads itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::kinds;
use gatewright_engine::marks::Marker;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::cluster::Cluster;
use crate::config::packs::UnusablePack;
use crate::config::settings::{ClusterSettings, Mode as SyncMode, SyncSettings};
use crate::config::{Config, ConfigError};
use crate::desired::assemble;
use crate::desired::rendering::facts_of;
use crate::desired::rendering::renderings::Renderings;
use crate::history::archive::Archive;
use crate::history::archive::vault::VaultError;
use crate::history::journal;
use crate::process::http::{self, HttpError, Listen, Shown};
use crate::process::metrics::Metrics;
use crate::process::service::{Notifier, Progress, Signal, SignalError, Signals, keep_alive};
use crate::reconcile::aliases::Aliases;
use crate::reconcile::breaker::{Breaker, Breakers};
use crate::reconcile::depends::Dependencies;
use crate::reconcile::fleet;
use crate::reconcile::model::{Clusters, Order};
use crate::reconcile::places::Places;
use crate::reconcile::renamed::{self, RenameError};
use crate::reconcile::rollout::Rollout;
use crate::report::{Mode, Report};
use crate::schedule::drive::drive;
use crate::schedule::timer::Timer;
use crate::schedule::{Schedule, ScheduleError};
use crate::source::cache::{SourceCache, Trouble};
use crate::source::{Snapshot, SourceError};
use crate::state::{State, StateError};
use crate::webhooks;

mod cluster_secrets;
mod folders;
mod measure;
mod rounds;
pub(crate) mod simulated;
mod sources;
mod turns;

use cluster_secrets::SecretWatch;
use folders::FolderWatch;
use rounds::{Sibling, Sync};
use sources::{SourceCaches, Troubles};
use turns::Turns;

/// The things that the process gets from outside.
pub(crate) struct Host {
    /// The service manager.
    pub notifier: Notifier,
    /// The interval at which the service manager wants to hear from us.
    pub watchdog: Option<Duration>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Reads the configuration again, or says what is wrong with it.
pub(crate) type Reload<'a> = dyn Fn() -> Result<Config, String> + Send + std::marker::Sync + 'a;

/// The reason why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error("{0}")]
    Clusters(#[source] ConfigError),
    #[error("cannot use the state directory")]
    State(#[source] StateError),
    #[error("cannot serve metrics and health")]
    Http(#[source] HttpError),
    #[error("cannot receive signals")]
    Signal(#[source] SignalError),
    #[error("cannot keep what rounds change")]
    Archive(#[source] VaultError),
    #[error("cannot start")]
    Pack(#[source] UnusablePack),
    #[error("cannot start")]
    Source(#[source] assemble::SourceSetupError),
    #[error("{0}")]
    Renamed(RenameError),
    #[error("cannot plan")]
    Poll(#[source] SourceError),
    #[error("cannot use the schedule of sync {0:?}")]
    Schedule(String, #[source] ScheduleError),
}

impl DaemonError {
    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Http(error) => error.hint().map(str::to_owned),
            Self::Schedule(_, error) => error.hint(),
            Self::Renamed(error) => Some(error.hint().to_owned()),
            Self::State(StateError::Locked(..)) => {
                Some("stop the other process, or give this one another stateDir".to_owned())
            }
            _ => None,
        }
    }
}

/// Builds a cluster of a configuration.
pub(crate) type Build = dyn Fn(&Config, &str, &ClusterSettings, &kinds::Table, &Arc<dyn Clock>) -> Arc<dyn Cluster>
    + Send
    + std::marker::Sync;

/// Told of each report of a round, once it is kept.
type Told = dyn Fn(&Report) + Send + std::marker::Sync;

/// The data that all generations share.
struct Shared {
    build: Box<Build>,
    told: Option<Box<Told>>,
    /// Whether folders of sources are watched, and not only polled.
    is_watching: bool,
    state: State,
    installation: String,
    metrics: Arc<Metrics>,
    progress: Progress,
    readiness: Arc<AtomicBool>,
    troubles: Troubles,
    clock: Arc<dyn Clock>,
}

/// Runs until SIGTERM. `reload` reads the configuration again.
pub(crate) async fn run(config: Config, host: &Host, reload: &Reload<'_>) -> Result<(), DaemonError> {
    let state = State::open(&config.state_dir);
    let _lock = state.lock().map_err(DaemonError::State)?;
    let installation = state.make_installation().map_err(DaemonError::State)?;
    let shared = Arc::new(Shared {
        build: Box::new(assemble::cluster),
        told: None,
        is_watching: true,
        troubles: Troubles::load(&state),
        state,
        installation,
        metrics: Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))),
        progress: Progress::new(Arc::clone(&host.clock)),
        readiness: Arc::default(),
        clock: Arc::clone(&host.clock),
    });
    let mut signals = Signals::new().map_err(DaemonError::Signal)?;
    let stop = CancellationToken::new();
    serve(&config, &shared, &stop).await?;
    let (secrets, config) = SecretWatch::start(config, &shared, &SecretWatch::default()).await;
    let config = config.map_err(DaemonError::Clusters)?;
    let generation = Prepared::new(config, &shared)?.start(&shared);
    shared.metrics.reloaded(true);
    shared.readiness.store(true, Ordering::Relaxed);
    host.notifier.ready(&generation.status());
    info!(version = env!("CARGO_PKG_VERSION"), syncs = generation.config.settings.syncs.len(), "started");
    // Pings go on while rounds of an old configuration, or the last ones, come to their end.
    tokio::select! {
        () = obey((generation, secrets), host, &shared, &mut signals, reload) => {}
        never = watchdog(host, &shared.progress) => match never {},
    }
    stop.cancel();
    Ok(())
}

/// Does what signals say, until one says to stop and everything has.
async fn obey(
    (mut generation, mut secrets): (Generation, SecretWatch),
    host: &Host,
    shared: &Arc<Shared>,
    signals: &mut Signals,
    reload: &Reload<'_>,
) {
    let mut folders = FolderWatch::default();
    loop {
        let config = Arc::clone(&generation.config);
        let found = tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::Reload => None,
            },
            found = folders.changed(&config, &shared.metrics) => Some(found),
            found = secrets.changed(&config, shared) => Some(found),
        };
        host.notifier.reloading();
        let (read, watch) = match found {
            Some(found) => (Ok(found), None),
            None => read_again(reload, shared, &secrets).await,
        };
        generation = replace(generation, host, shared, read).await;
        if !Arc::ptr_eq(&generation.config, &config) {
            secrets = watch.unwrap_or(secrets);
        }
    }
    info!("stops");
    shared.readiness.store(false, Ordering::Relaxed);
    host.notifier.stopping();
    generation.stop().await;
}

/// Reads the configuration again, with the clusters of its Secrets as far as they are not known.
async fn read_again(
    reload: &Reload<'_>,
    shared: &Arc<Shared>,
    secrets: &SecretWatch,
) -> (Result<Config, String>, Option<SecretWatch>) {
    match reload() {
        Ok(config) => {
            let (watch, config) = SecretWatch::start(config, shared, secrets).await;
            (config.map_err(|error| error.to_string()), Some(watch))
        }
        Err(message) => (Err(message), None),
    }
}

async fn watchdog(host: &Host, progress: &Progress) -> std::convert::Infallible {
    match host.watchdog {
        Some(interval) => keep_alive(&host.notifier, progress, interval).await,
        None => std::future::pending().await,
    }
}

async fn serve(config: &Config, shared: &Arc<Shared>, stop: &CancellationToken) -> Result<(), DaemonError> {
    let Listen::At(address) = config.settings.http.listen else { return Ok(()) };
    let listener = http::bind(address).await.map_err(DaemonError::Http)?;
    let router = http::router(Shown {
        metrics: Arc::clone(&shared.metrics),
        progress: shared.progress.clone(),
        readiness: Arc::clone(&shared.readiness),
    });
    let stop = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = http::serve(listener, router, stop).await {
            error!(error = %Chain(&error), "metrics and health are not served any more");
        }
    });
    Ok(())
}

/// Validates, then swaps; a configuration that is no good changes nothing.
async fn replace(old: Generation, host: &Host, shared: &Arc<Shared>, read: Result<Config, String>) -> Generation {
    let prepared = read.and_then(|config| Prepared::new(config, shared).map_err(|error| Chain(&error).to_string()));
    let generation = match prepared {
        Ok(prepared) => {
            let (new, config) = (Arc::clone(&prepared.config), Arc::clone(&old.config));
            if new.settings.http != config.settings.http
                || new.settings.log != config.settings.log
                || new.state_dir != config.state_dir
            {
                warn!("http, log and stateDir are read at the start only; restart the service to change them");
            }
            old.stop().await;
            forget(&shared.metrics, &config, &new);
            shared.metrics.reloaded(true);
            info!("the configuration was read again");
            prepared.start(shared)
        }
        Err(message) => {
            shared.metrics.reloaded(false);
            error!(error = message, "invalid configuration; keeping the previous one");
            old
        }
    };
    host.notifier.ready(&generation.status());
    generation
}

/// Drops the metrics of what is no longer configured: what they say will never change again.
fn forget(metrics: &Metrics, old: &Config, new: &Config) {
    let (was, is) = (&old.settings, &new.settings);
    was.sources.keys().filter(|it| !is.sources.contains_key(*it)).for_each(|it| metrics.forget(&[("source", it)]));
    was.clusters.keys().filter(|it| !is.clusters.contains_key(*it)).for_each(|it| metrics.forget(&[("cluster", it)]));
    let webhooks = was.reports.webhooks.keys().filter(|it| !is.reports.webhooks.contains_key(*it));
    webhooks.for_each(|it| metrics.forget(&[("webhook", it)]));
    let secrets = was.cluster_secrets.keys().filter(|it| !is.cluster_secrets.contains_key(*it));
    secrets.for_each(|it| metrics.forget(&[("cluster_secrets", it)]));
    for (name, sync) in &was.syncs {
        let Some(remaining) = is.syncs.get(name).map(|sync| new.clusters_of(sync)) else {
            metrics.forget(&[("sync", name)]);
            continue;
        };
        let left = old.clusters_of(sync).into_keys().filter(|cluster| !remaining.contains_key(cluster));
        left.for_each(|cluster| metrics.forget(&[("sync", name), ("cluster", cluster)]));
    }
}

/// Everything that runs under one configuration.
struct Generation {
    config: Arc<Config>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

/// A generation that is known to be able to start.
struct Prepared {
    config: Arc<Config>,
    caches: SourceCaches,
    syncs: Vec<(Sync, Timer)>,
    clusters: Clusters,
    breakers: Arc<Breakers>,
}

impl Generation {
    fn status(&self) -> String {
        let settings = &self.config.settings;
        format!(
            "{} syncs, {} clusters, {} sources",
            settings.syncs.len(),
            settings.clusters.len(),
            settings.sources.len()
        )
    }

    /// Rounds that are under way finish their step and record; the rest ends at once.
    async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Prepared {
    fn new(config: Config, shared: &Arc<Shared>) -> Result<Self, DaemonError> {
        renamed::check(&config, &shared.state).map_err(DaemonError::Renamed)?;
        let (packs, packs_key) = (Arc::new(config.packs().map_err(DaemonError::Pack)?), config.packs_key());
        let config = Arc::new(config);
        let caches = SourceCaches::new(&config, shared).map_err(DaemonError::Source)?;
        let archive = Archive::open(&shared.state, &config.settings.undo, config.settings.rollback.keep);
        let archive = Arc::new(archive.map_err(DaemonError::Archive)?);
        let build = |(name, settings): (&String, _)| {
            (name.clone(), (shared.build)(&config, name, settings, packs.table(), &shared.clock))
        };
        let clusters: Clusters = config.settings.clusters.iter().map(build).collect();
        let (breakers, places) = (Breaker::all(clusters.keys(), &shared.clock), Places::default());
        let aliases = Arc::new(Aliases::of(&config, |name| clusters.get(name).cloned()));
        let dependencies = Dependencies::of(&config);
        let turns = Arc::new(Turns::new(&dependencies));
        let mut syncs = Vec::new();
        let fleet = config.settings.fleet();
        let of = |(name, settings): (&String, &SyncSettings)| {
            let marker = Marker { installation: shared.installation.clone(), sync: name.clone() };
            let renderings = Renderings::new(settings.clone(), Arc::clone(&packs), &packs_key, marker).among(&fleet);
            let renderings = Arc::new(renderings.watched(&shared.progress));
            (name.clone(), Sibling { renderings, slot: caches.slot(&settings.source), source: settings.source.clone() })
        };
        let all: Arc<BTreeMap<String, Sibling>> = Arc::new(config.settings.syncs.iter().map(of).collect());
        for (name, settings) in &config.settings.syncs {
            let schedule =
                Schedule::parse(&settings.schedule).map_err(|error| DaemonError::Schedule(name.clone(), error))?;
            let selected = config.clusters_of(settings);
            let of_sync = selected.keys().map(|name| ((*name).to_owned(), Arc::clone(&clusters[*name]))).collect();
            let rollout = Rollout::of((name, settings), &selected, &of_sync, false, &shared.state);
            // Each cluster has rounds of its own, so that one that is slow or down never delays the others.
            for cluster in facts_of(&config, settings) {
                let target = [(cluster.name.clone(), Arc::clone(&clusters[&cluster.name]))].into();
                let order = Order {
                    aliases: Arc::clone(&aliases),
                    rollout: rollout.clone(),
                    breakers: Arc::clone(&breakers),
                    dependencies: Arc::clone(&dependencies),
                    places: places.clone(),
                    ..order(name, settings, (target, packs.table()), shared, (&archive, &config))
                };
                let last = journal::last(&shared.state, name, &cluster.name).map(|report| report.started);
                let sync = Sync::new(cluster, order, (Arc::clone(&all), &turns), &config);
                let timer = Timer::new(schedule.clone(), &sync.title, shared.clock.now(), last);
                syncs.push((sync, timer));
            }
        }
        Ok(Self { config, caches, syncs, clusters, breakers })
    }

    fn start(self, shared: &Arc<Shared>) -> Generation {
        // Without it nothing is deleted in the first round of the new name, and the next start goes on with it.
        if let Err(error) = renamed::carry_over(&self.config, &shared.state, shared.clock.now()) {
            error!(error = %Chain(&error), hint = error.hint(), "a cluster has another name");
        }
        fleet::warn_of_abandoned(&self.config, &shared.state);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        webhooks::forget_others(&shared.state, &self.config);
        for delivery in webhooks::deliveries(&shared.state, &self.config, &shared.metrics, &shared.clock) {
            let stop = stop.clone();
            tasks.spawn(async move {
                stop.run_until_cancelled(webhooks::carry(delivery)).await;
            });
        }
        let mut by_source: BTreeMap<String, Vec<Arc<Notify>>> = BTreeMap::new();
        for (sync, timer) in self.syncs {
            sync.watch(shared);
            let nudges = Arc::new(Notify::new());
            sync.nudged_by(&nudges);
            by_source.entry(sync.source().to_owned()).or_default().push(Arc::clone(&nudges));
            let (shared, stop, slot) = (Arc::clone(shared), stop.clone(), self.caches.slot(sync.source()));
            tasks.spawn(async move {
                let pulse = shared.progress.watch(&sync.title);
                let sync = Arc::new(sync);
                let round = |cause| Arc::clone(&sync).round(cause, slot.clone(), Arc::clone(&shared), stop.clone());
                drive(timer, shared.clock.as_ref(), &nudges, &pulse, &stop, round).await;
            });
        }
        for (name, breaker) in self.breakers.iter().map(|(name, breaker)| (name, Arc::clone(breaker))) {
            let (cluster, stop) = (Arc::clone(&self.clusters[name]), stop.clone());
            tasks.spawn(async move {
                stop.run_until_cancelled(breaker.watch(cluster.as_ref())).await;
            });
        }
        self.caches.start(&by_source, shared, &stop, &mut tasks);
        Generation { config: self.config, tasks, stop }
    }
}

fn order(
    name: &str,
    settings: &SyncSettings,
    (clusters, kinds): (Clusters, &kinds::Table),
    shared: &Shared,
    (archive, config): (&Arc<Archive>, &Config),
) -> Order {
    Order {
        sync: name.to_owned(),
        settings: settings.clone(),
        clusters,
        kinds: kinds.clone(),
        installation: shared.installation.clone(),
        mode: if settings.mode == SyncMode::Apply { Mode::Apply } else { Mode::Report },
        only: None,
        full: false,
        wait: true,
        pinned: None,
        siblings: BTreeMap::new(),
        key: config.inventory_key.clone(),
        masker: archive.vault().masker().clone(),
        archive: Some(Arc::clone(archive)),
        cause: None,
        undo: None,
        aliases: Arc::default(),
        breakers: Arc::default(),
        rollout: None,
        dependencies: Arc::default(),
        places: Places::default(),
    }
}

/// The snapshot and the trouble of a source, as a sync sees them.
type Seen = (Option<Arc<Snapshot>>, Option<Trouble>);

/// The place where a source leaves what it has found for its syncs.
#[derive(Clone, Debug, Default)]
struct Slot(Arc<Mutex<Seen>>);

impl Slot {
    fn put(&self, cache: &SourceCache) {
        *lock(&self.0) = (cache.snapshot(), cache.trouble().cloned());
    }

    fn get(&self) -> Seen {
        lock(&self.0).clone()
    }
}
