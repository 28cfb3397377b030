//! The daemon: sources polled, rounds on schedule, signals obeyed.
//!
//! A *generation* is everything that runs under one configuration. SIGHUP reads the file again: if it is good, the
//! generation is stopped as it would be at the end, and the next one takes over; if not, nothing changes. So it is when
//! the clusters in a folder or of Secrets have changed, but then nothing else is read again. Between a source and a sync goes only the
//! news that there is something new; what a round sees it reads itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::kinds;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::basics::clock::Clock;
use crate::cluster::Cluster;
use crate::config::packs::UnusablePack;
use crate::config::settings::ClusterSettings;
use crate::config::{Config, ConfigError};
use crate::dashboard::Board;
use crate::desired::assemble;
use crate::history::archive::vault::VaultError;
use crate::hosts::HostsError;
use crate::process::http::{HttpError, Shown};
use crate::process::metrics::Metrics;
use crate::process::service::{Notifier, Progress, Signal, SignalError, Signals, keep_alive};
use crate::reconcile::renamed::RenameError;
use crate::report::Report;
use crate::schedule::ScheduleError;
use crate::schedule::enrolled::Enrolled;
use crate::source::SourceError;
use crate::state::{Lock, State, StateError};
use crate::webhooks::gather::Gathering;

mod cluster_secrets;
mod folders;
mod generation;
mod hosts;
mod measure;
pub(crate) mod otlp;
mod pages;
mod pressure;
mod requests;
mod rounds;
pub(crate) mod simulated;
mod sources;
mod turns;

use cluster_secrets::SecretWatch;
use folders::FolderWatch;
use generation::{Generation, Prepared};
use hosts::{Hosts, Met};
use requests::Requests;
use sources::Troubles;

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
    #[error("cannot be one of several hosts")]
    Hosts(#[source] HostsError),
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
            Self::Hosts(error) => error.hint(),
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
    /// Keeps other daemons out of the state directory; one in simulated time has nobody to keep out.
    lock: Option<Lock>,
    installation: String,
    metrics: Arc<Metrics>,
    progress: Progress,
    readiness: Arc<AtomicBool>,
    troubles: Troubles,
    /// The news of syncs on several clusters, which are told together.
    gathering: Gathering,
    hosts: Hosts,
    clock: Arc<dyn Clock>,
    /// The rounds that begin when somebody asks for one.
    enrolled: Arc<Enrolled>,
    /// Those that commands have asked for.
    requests: Requests,
    /// Whatever people look at in a browser, where somebody can.
    board: Option<Arc<Board>>,
}

/// Runs until SIGTERM. `reload` reads the configuration again.
pub(crate) async fn run(config: Config, host: &Host, reload: &Reload<'_>) -> Result<(), DaemonError> {
    let state = config.state();
    let lock = Some(state.lock().map_err(DaemonError::State)?);
    let mut signals = Signals::new().map_err(DaemonError::Signal)?;
    let (stop, enrolled) = (CancellationToken::new(), Arc::default());
    let (progress, readiness) = (Progress::new(Arc::clone(&host.clock)), Arc::default());
    let metrics = Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")));
    let (folders, config) = FolderWatch::start(config, &state);
    let shown = Shown { metrics: Arc::clone(&metrics), progress: progress.clone(), readiness: Arc::clone(&readiness) };
    let board = pages::serve(&config, shown, (&state, &host.clock), &enrolled, &stop).await?;
    // Pings go on while nobody knows who the other hosts are.
    let met = tokio::select! {
        met = Hosts::meet(&config, &state, host, &mut signals) => met?,
        never = watchdog(host, &progress) => match never {},
    };
    let Met::Joined(hosts, keeping, is_to_reload) = met else { return Ok(()) };
    let config = if is_to_reload { read_meanwhile(config, reload) } else { config };
    let installation = state.make_installation().map_err(DaemonError::State)?;
    let shared = Arc::new(Shared {
        build: Box::new(assemble::cluster),
        told: None,
        is_watching: true,
        troubles: Troubles::load(&state),
        gathering: Gathering::default(),
        state,
        lock,
        installation,
        metrics,
        progress,
        readiness,
        hosts,
        clock: Arc::clone(&host.clock),
        enrolled,
        requests: Requests::default(),
        board,
    });
    share_decisions(&shared, &stop);
    let (secrets, config) = SecretWatch::start(config, &shared, &SecretWatch::default()).await;
    let config = config.map_err(DaemonError::Clusters)?;
    let generation = Prepared::new(config, &shared)?.start(&BTreeSet::new(), &shared);
    is_there(&generation, host, &shared);
    // Before that there are no rounds that could begin.
    tokio::spawn(requests::take(Arc::clone(&shared), stop.clone()));
    // Pings go on while rounds of an old configuration, or the last ones, come to their end.
    let ended = tokio::select! {
        ended = obey(generation, (folders, secrets), host, &shared, &mut signals, reload) => ended,
        never = watchdog(host, &shared.progress) => match never {},
    };
    keeping.end().await;
    stop.cancel();
    ended
}

/// Tells everybody that rounds run.
fn is_there(generation: &Generation, host: &Host, shared: &Shared) {
    shared.show(generation);
    shared.metrics.reloaded(generation.common.config.found_in_folders().is_whole());
    shared.readiness.store(true, Ordering::Relaxed);
    host.notifier.ready(&generation.status());
    info!(version = env!("CARGO_PKG_VERSION"), syncs = generation.common.config.settings.syncs.len(), "started");
}

/// Has other hosts know what people decide at the dashboard of this one.
fn share_decisions(shared: &Arc<Shared>, stop: &CancellationToken) {
    let Some(board) = shared.board.clone() else { return };
    let (hosts, stop) = (shared.hosts.clone(), stop.clone());
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            board.decisions().await;
            hosts.flush().await;
        }
    }));
}

/// Does what signals say, until one says to stop and everything has.
async fn obey(
    mut generation: Generation,
    (mut folders, mut secrets): (FolderWatch, SecretWatch),
    host: &Host,
    shared: &Arc<Shared>,
    signals: &mut Signals,
    reload: &Reload<'_>,
) -> Result<(), DaemonError> {
    let mut hosts = shared.hosts.clone();
    loop {
        let config = Arc::clone(&generation.common.config);
        let found = tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::Reload => None,
            },
            found = folders.changed(&config, &shared.metrics) => Some(found),
            found = secrets.changed(&config, shared) => Some(found),
            () = hosts.changed() => {
                if let Err(error) = generation.again(shared).await {
                    generation.stop().await;
                    return Err(error);
                }
                shared.requests.again(&shared.enrolled, &shared.state);
                host.notifier.ready(&generation.status());
                continue;
            }
        };
        host.notifier.reloading();
        let (read, watch) = match found {
            Some(found) => (Ok(found), None),
            None => read_again(reload, shared, &secrets).await,
        };
        generation = replace(generation, host, shared, read).await;
        if !Arc::ptr_eq(&generation.common.config, &config) {
            secrets = watch.unwrap_or(secrets);
        }
    }
    info!("stops");
    shared.readiness.store(false, Ordering::Relaxed);
    host.notifier.stopping();
    generation.stop().await;
    Ok(())
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

/// Reads the configuration again for a daemon that has begun with nothing yet.
fn read_meanwhile(config: Config, reload: &Reload<'_>) -> Config {
    let (hosts, state_dir, http) = (&config.settings.hosts, &config.state_dir, &config.settings.http);
    match reload() {
        Ok(new) if new.settings.hosts == *hosts && new.state_dir == *state_dir && new.settings.http == *http => new,
        Ok(_) => {
            error!("hosts, http and stateDir are read at the start only; restart the service to change them");
            config
        }
        Err(message) => {
            error!(error = message, "invalid configuration; keeping the previous one");
            config
        }
    }
}

async fn watchdog(host: &Host, progress: &Progress) -> std::convert::Infallible {
    match host.watchdog {
        Some(interval) => keep_alive(&host.notifier, progress, interval).await,
        None => std::future::pending().await,
    }
}

impl Shared {
    /// Has people see the configuration that is in force.
    fn show(&self, generation: &Generation) {
        if let Some(board) = &self.board {
            board.follow(&generation.common.config);
        }
    }
}

/// Validates, then swaps; a configuration that is no good changes nothing.
async fn replace(old: Generation, host: &Host, shared: &Arc<Shared>, read: Result<Config, String>) -> Generation {
    let read = read.and_then(|config| {
        if config.settings.hosts == old.common.config.settings.hosts {
            return Ok(config);
        }
        // Two daemons of one installation would be at work that know nothing of each other.
        Err("hosts is read at the start only; restart the service to change it".to_owned())
    });
    let prepared = read.and_then(|config| Prepared::new(config, shared).map_err(|error| Chain(&error).to_string()));
    let generation = match prepared {
        Ok(prepared) => {
            let (new, config) = (Arc::clone(&prepared.common.config), Arc::clone(&old.common.config));
            if new.settings.http != config.settings.http
                || new.settings.log != config.settings.log
                || new.settings.otlp != config.settings.otlp
                || new.state_dir != config.state_dir
            {
                warn!("http, log, otlp and stateDir are read at the start only; restart the service to change them");
            }
            let before = old.running();
            old.stop().await;
            forget(&shared.metrics, &config, &new);
            shared.metrics.reloaded(new.found_in_folders().is_whole());
            info!("the configuration was read again");
            let generation = prepared.start(&before, shared);
            shared.requests.again(&shared.enrolled, &shared.state);
            shared.show(&generation);
            generation
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
