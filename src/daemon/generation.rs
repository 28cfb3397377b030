//! All that runs under one configuration: made ready, started, stopped.
//!
//! The rounds of each sync are started and stopped by themselves: of several hosts, one that gets a sync or loses one goes on
//! with the others undisturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use gatewright_engine::kinds;
use gatewright_engine::marks::Marker;
use gatewright_engine::pack::Packs;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::pressure;
use super::rounds::{Sibling, Sync};
use super::sources::SourceCaches;
use super::turns::Turns;
use super::{DaemonError, Shared};
use crate::config::Config;
use crate::config::examine::without_clusters;
use crate::config::settings::{Mode as SyncMode, SyncSettings};
use crate::desired::rendering::facts_of;
use crate::desired::rendering::renderings::Renderings;
use crate::desired::{assemble, cluster_folders};
use crate::history::archive::Archive;
use crate::history::journal;
use crate::process::memory::MemoryGroup;
use crate::reconcile::aliases::Aliases;
use crate::reconcile::breaker::{Breaker, Breakers};
use crate::reconcile::depends::Dependencies;
use crate::reconcile::fleet;
use crate::reconcile::model::{Clusters, Order};
use crate::reconcile::places::Places;
use crate::reconcile::renamed;
use crate::reconcile::rollout::Rollout;
use crate::reconcile::rollout::recall::Heads;
use crate::report::Mode;
use crate::schedule::Schedule;
use crate::schedule::drive::drive;
use crate::schedule::timer::Timer;
use crate::webhooks;

/// Everything that runs under one configuration.
pub(super) struct Generation {
    pub(super) common: Common,
    /// The rounds that run here, by sync.
    syncs: BTreeMap<String, Tasks>,
    /// The tasks for all of them.
    others: Tasks,
}

/// A generation that is known to be able to start.
pub(super) struct Prepared {
    pub(super) common: Common,
    sources: SourceCaches,
}

/// The part that the syncs of a configuration have in common, whether their rounds run here or not.
pub(super) struct Common {
    pub(super) config: Arc<Config>,
    pub(super) clusters: Clusters,
    packs: Arc<Packs>,
    archive: Arc<Archive>,
    schedules: BTreeMap<String, Schedule>,
    pub(super) syncs: Arc<BTreeMap<String, Sibling>>,
    turns: Arc<Turns>,
    aliases: Arc<Aliases>,
    breakers: Arc<Breakers>,
    dependencies: Arc<Dependencies>,
    places: Places,
}

/// Tasks that end together.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) running: JoinSet<()>,
    pub(super) stop: CancellationToken,
}

impl Tasks {
    /// Rounds that are under way finish their step and record; the rest ends at once.
    async fn end(mut self) {
        self.stop.cancel();
        while self.running.join_next().await.is_some() {}
    }
}

impl Generation {
    pub(super) fn status(&self) -> String {
        let (config, settings) = (&self.common.config, &self.common.config.settings);
        let unread = if config.found_in_folders().is_whole() { "" } else { "; cluster folders cannot be used" };
        format!(
            "{} syncs, {} clusters, {} sources{unread}",
            self.syncs.len(),
            settings.clusters.len(),
            settings.sources.len()
        )
    }

    /// Returns the syncs whose rounds run here.
    pub(super) fn running(&self) -> BTreeSet<String> {
        self.syncs.keys().cloned().collect()
    }

    /// Goes on with the syncs that are this host's now; the rounds of those that stay go on. A host that cannot is to end, so
    /// that others take them.
    pub(super) async fn again(&mut self, shared: &Arc<Shared>) -> Result<(), DaemonError> {
        renamed::check(&self.common.config, &shared.state).map_err(DaemonError::Renamed)?;
        let wanted = shared.hosts.share(&self.common.config);
        self.change(&wanted, shared).await;
        Ok(())
    }

    /// Has the rounds of these syncs run, and of no others.
    pub(super) async fn change(&mut self, wanted: &BTreeSet<String>, shared: &Arc<Shared>) {
        let running = self.running();
        // What goes is this host's until its rounds have ended, and what comes before they begin.
        shared.hosts.runs(&(&running | wanted), &self.common.config);
        let mut going = Vec::new();
        for sync in running.difference(wanted) {
            going.extend(self.syncs.remove(sync).map(async |tasks| {
                tasks.end().await;
                // After the last word of its rounds.
                shared.metrics.forget(&[("sync", sync)]);
            }));
        }
        let coming = wanted - &running;
        self.common.carry_over(&coming, shared);
        self.begin(&coming, &BTreeSet::new(), shared);
        join_all(going).await;
        shared.hosts.flush().await;
        shared.hosts.runs(wanted, &self.common.config);
    }

    /// Begins with the rounds of some syncs; `before` are those that have run here until now.
    fn begin(&mut self, syncs: &BTreeSet<String>, before: &BTreeSet<String>, shared: &Arc<Shared>) {
        for name in syncs {
            let is_taken = shared.hosts.is_one_of_several() && !before.contains(name);
            self.syncs.insert(name.clone(), self.common.rounds(name, is_taken, shared));
        }
    }

    /// Rounds that are under way finish their step and record; the rest ends at once.
    pub(super) async fn stop(self) {
        join_all(self.syncs.into_values().chain([self.others]).map(Tasks::end)).await;
    }
}

impl Prepared {
    pub(super) fn new(config: Config, shared: &Arc<Shared>) -> Result<Self, DaemonError> {
        renamed::check(&config, &shared.state).map_err(DaemonError::Renamed)?;
        let (packs, packs_key) = (config.packs().map_err(DaemonError::Pack)?, config.packs_key());
        let config = Arc::new(config);
        let sources = SourceCaches::new(&config, shared).map_err(DaemonError::Source)?;
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
        let fleet = config.settings.fleet();
        let (mut schedules, mut syncs) = (BTreeMap::new(), BTreeMap::new());
        for (name, settings) in &config.settings.syncs {
            let schedule = Schedule::parse(&settings.schedule);
            let schedule = schedule.map_err(|error| DaemonError::Schedule(name.clone(), error))?;
            schedules.insert(name.clone(), schedule);
            let marker = Marker { installation: shared.installation.clone(), sync: name.clone() };
            let renderings = Renderings::new(settings.clone(), Arc::clone(&packs), &packs_key, marker).among(&fleet);
            let renderings = Arc::new(renderings.watched(&shared.progress));
            let (slot, source) = (sources.slot(&settings.source), settings.source.clone());
            syncs.insert(name.clone(), Sibling { renderings, slot, source });
        }
        let syncs = Arc::new(syncs);
        let common = Common {
            config,
            clusters,
            packs,
            archive,
            schedules,
            syncs,
            turns,
            aliases,
            breakers,
            dependencies,
            places,
        };
        Ok(Self { common, sources })
    }

    /// Starts it; `before` are the syncs whose rounds have run here until now.
    pub(super) fn start(self, before: &BTreeSet<String>, shared: &Arc<Shared>) -> Generation {
        let Self { common, sources } = self;
        let config = Arc::clone(&common.config);
        let running = shared.hosts.share(&config);
        common.carry_over(&running, shared);
        fleet::warn_of_abandoned(&config, &shared.state);
        for problem in config.settings.syncs.keys().filter_map(|sync| without_clusters(&config, sync)) {
            warn!("{problem}");
        }
        if let Err(error) = cluster_folders::remember(&config, &shared.state) {
            error!(error = %Chain(&error), "cannot remember which clusters there are");
        }
        webhooks::forget_others(&shared.state, &config);
        let mut others = Tasks::default();
        for delivery in webhooks::deliveries(&shared.state, &config, &shared.metrics, &shared.clock) {
            let stop = others.stop.clone();
            others.running.spawn(async move {
                stop.run_until_cancelled(webhooks::carry(delivery)).await;
            });
        }
        shared.hosts.runs(&running, &config);
        let mut generation = Generation { common, syncs: BTreeMap::new(), others };
        generation.begin(&running, before, shared);
        let Generation { common, others, .. } = &mut generation;
        for (name, breaker) in common.breakers.iter().map(|(name, breaker)| (name, Arc::clone(breaker))) {
            let (cluster, stop) = (Arc::clone(&common.clusters[name]), others.stop.clone());
            others.running.spawn(async move {
                stop.run_until_cancelled(breaker.watch(cluster.as_ref())).await;
            });
        }
        common.save_memory(others, shared);
        sources.start(shared, others);
        generation
    }
}

impl Common {
    /// Has memory saved where it runs short and there is a limit.
    fn save_memory(&self, tasks: &mut Tasks, shared: &Shared) {
        let Some(group) = MemoryGroup::of_this_process() else { return };
        let (places, syncs, metrics) = (self.places.clone(), Arc::clone(&self.syncs), Arc::clone(&shared.metrics));
        let stop = tasks.stop.clone();
        tasks.running.spawn(async move {
            let forget = || syncs.values().for_each(|sync| sync.renderings.forget());
            stop.run_until_cancelled(pressure::relieve(&group, &places, &metrics, forget)).await;
        });
    }

    /// Has what is known of clusters that have another name now go on, for some syncs.
    fn carry_over(&self, syncs: &BTreeSet<String>, shared: &Shared) {
        // Without it nothing is deleted in the first round of the new name, and the next start goes on with it.
        let is_ours = |sync: &str| !shared.hosts.is_one_of_several() || syncs.contains(sync);
        if let Err(error) = renamed::carry_over(&self.config, &shared.state, shared.clock.now(), is_ours) {
            error!(error = %Chain(&error), hint = error.hint(), "a cluster has another name");
        }
    }

    /// Starts the rounds of a sync, which may have been taken from another host.
    fn rounds(&self, name: &str, is_taken: bool, shared: &Arc<Shared>) -> Tasks {
        let (config, settings) = (&self.config, &self.config.settings.syncs[name]);
        let selected = config.clusters_of(settings);
        let of_sync: Clusters =
            selected.keys().map(|name| ((*name).to_owned(), Arc::clone(&self.clusters[*name]))).collect();
        let heads = Heads::new(of_sync.clone(), &shared.installation, config.inventory_key.clone());
        let rollout = Rollout::of((name, settings), &selected, &of_sync, false, (&shared.state, heads));
        // What was read before may be older than what another host has applied.
        let needed = if shared.hosts.is_one_of_several() { self.syncs[name].slot.ask() } else { 0 };
        let mut tasks = Tasks::default();
        // Each cluster has rounds of its own, so that one that is slow or down never delays the others.
        for cluster in facts_of(config, settings) {
            let acting = assemble::as_account(&self.clusters[&cluster.name], name, settings);
            let target = [(cluster.name.clone(), shared.hosts.fenced(name, &acting))].into();
            let order = Order {
                aliases: Arc::clone(&self.aliases),
                rollout: rollout.clone(),
                breakers: Arc::clone(&self.breakers),
                dependencies: Arc::clone(&self.dependencies),
                places: self.places.clone(),
                ..order(name, settings, (target, self.packs.table()), shared, (&self.archive, config))
            };
            // Of what another host has begun nobody knows how far it has come.
            let last = journal::last(&shared.state, name, &cluster.name).filter(|_| !is_taken);
            let last = last.map(|report| report.started);
            let sync = Arc::new(Sync::new(cluster, order, needed, (Arc::clone(&self.syncs), &self.turns), config));
            let timer = Timer::new(self.schedules[name].clone(), &sync.title, shared.clock.now(), last);
            sync.watch(shared);
            let (nudges, is_asked) = (Arc::default(), Arc::default());
            sync.nudged_by(&nudges);
            sync.enroll(&shared.enrolled, &nudges, &is_asked);
            let (shared, stop) = (Arc::clone(shared), tasks.stop.clone());
            tasks.running.spawn(async move {
                let pulse = shared.progress.watch(&sync.title);
                let round = |cause| Arc::clone(&sync).round(cause, Arc::clone(&shared), stop.clone());
                drive(timer, shared.clock.as_ref(), (&nudges, &is_asked), &pulse, &stop, round).await;
            });
        }
        tasks
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
        bodies: None,
        places: Places::default(),
        listener: None,
    }
}
