//! All that runs under one configuration: made ready, started, stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::kinds;
use gatewright_engine::marks::Marker;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::rounds::{Sibling, Sync};
use super::sources::SourceCaches;
use super::turns::Turns;
use super::{DaemonError, Shared};
use crate::config::Config;
use crate::config::settings::{Mode as SyncMode, SyncSettings};
use crate::desired::rendering::facts_of;
use crate::desired::rendering::renderings::Renderings;
use crate::desired::{assemble, cluster_folders};
use crate::history::archive::Archive;
use crate::history::journal;
use crate::reconcile::aliases::Aliases;
use crate::reconcile::breaker::{Breaker, Breakers};
use crate::reconcile::depends::Dependencies;
use crate::reconcile::fleet;
use crate::reconcile::model::{Clusters, Order};
use crate::reconcile::places::Places;
use crate::reconcile::renamed;
use crate::reconcile::rollout::Rollout;
use crate::report::Mode;
use crate::schedule::Schedule;
use crate::schedule::drive::drive;
use crate::schedule::timer::Timer;
use crate::webhooks;

/// Everything that runs under one configuration.
pub(super) struct Generation {
    pub(super) config: Arc<Config>,
    /// The syncs whose rounds run here.
    pub(super) running: BTreeSet<String>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

/// A generation that is known to be able to start.
pub(super) struct Prepared {
    pub(super) config: Arc<Config>,
    running: BTreeSet<String>,
    caches: SourceCaches,
    syncs: Vec<(Sync, Timer)>,
    pub(super) clusters: Clusters,
    breakers: Arc<Breakers>,
}

impl Generation {
    pub(super) fn status(&self) -> String {
        let settings = &self.config.settings;
        let unread = if self.config.found_in_folders().is_whole() { "" } else { "; cluster folders cannot be used" };
        format!(
            "{} syncs, {} clusters, {} sources{unread}",
            self.running.len(),
            settings.clusters.len(),
            settings.sources.len()
        )
    }

    /// Goes on with the syncs that are this host's now. A host that cannot is to end, so that others take them.
    pub(super) async fn again(self, shared: &Arc<Shared>) -> Result<Self, DaemonError> {
        let prepared = match Prepared::new(Config::clone(&self.config), shared, &self.running) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.stop().await;
                return Err(error);
            }
        };
        let before = self.running.clone();
        self.stop().await;
        // After the last word of their rounds.
        for sync in before.difference(&prepared.running) {
            shared.metrics.forget(&[("sync", sync)]);
        }
        shared.hosts.flush().await;
        Ok(prepared.start(shared))
    }

    /// Rounds that are under way finish their step and record; the rest ends at once.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Prepared {
    /// `before` are the syncs that have run here until now.
    pub(super) fn new(config: Config, shared: &Arc<Shared>, before: &BTreeSet<String>) -> Result<Self, DaemonError> {
        let running = shared.hosts.share(&config);
        renamed::check(&config, &shared.state).map_err(DaemonError::Renamed)?;
        let (packs, packs_key) = (config.packs().map_err(DaemonError::Pack)?, config.packs_key());
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
        for (name, settings) in config.settings.syncs.iter().filter(|(name, _)| running.contains(*name)) {
            let schedule =
                Schedule::parse(&settings.schedule).map_err(|error| DaemonError::Schedule(name.clone(), error))?;
            let selected = config.clusters_of(settings);
            let of_sync = selected.keys().map(|name| ((*name).to_owned(), Arc::clone(&clusters[*name]))).collect();
            let rollout = Rollout::of((name, settings), &selected, &of_sync, false, &shared.state);
            // Each cluster has rounds of its own, so that one that is slow or down never delays the others.
            for cluster in facts_of(&config, settings) {
                let acting = assemble::as_account(&clusters[&cluster.name], name, settings);
                let target = [(cluster.name.clone(), shared.hosts.fenced(name, &acting))].into();
                let order = Order {
                    aliases: Arc::clone(&aliases),
                    rollout: rollout.clone(),
                    breakers: Arc::clone(&breakers),
                    dependencies: Arc::clone(&dependencies),
                    places: places.clone(),
                    ..order(name, settings, (target, packs.table()), shared, (&archive, &config))
                };
                // Of what another host has begun nobody knows how far it has come.
                let is_taken = shared.hosts.is_one_of_several() && !before.contains(name);
                let last = journal::last(&shared.state, name, &cluster.name).filter(|_| !is_taken);
                let last = last.map(|report| report.started);
                let sync = Sync::new(cluster, order, (Arc::clone(&all), &turns), &config);
                let timer = Timer::new(schedule.clone(), &sync.title, shared.clock.now(), last);
                syncs.push((sync, timer));
            }
        }
        Ok(Self { config, running, caches, syncs, clusters, breakers })
    }

    pub(super) fn start(self, shared: &Arc<Shared>) -> Generation {
        // Without it nothing is deleted in the first round of the new name, and the next start goes on with it.
        let is_ours = |sync: &str| !shared.hosts.is_one_of_several() || self.running.contains(sync);
        if let Err(error) = renamed::carry_over(&self.config, &shared.state, shared.clock.now(), is_ours) {
            error!(error = %Chain(&error), hint = error.hint(), "a cluster has another name");
        }
        fleet::warn_of_abandoned(&self.config, &shared.state);
        if let Err(error) = cluster_folders::remember(&self.config, &shared.state) {
            error!(error = %Chain(&error), "cannot remember which clusters there are");
        }
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
        shared.hosts.runs(&self.running, &self.config);
        Generation { config: self.config, running: self.running, tasks, stop }
    }
}

pub(super) fn order(
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
