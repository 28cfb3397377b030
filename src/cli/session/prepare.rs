//! Rounds made ready by hand: sources read, clusters built, and what the other syncs of this installation want.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::sync::Arc;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Problem;
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Rendering;

use super::{Prepared, Ready, Selection, Session, is_chosen, stopped};
use crate::cli::choice::{Choice, Part};
use crate::cli::named::Named;
use crate::cli::{EXIT_FAILED, Failure, check_names};
use crate::config::did_you_mean;
use crate::config::examine::without_clusters;
use crate::config::settings::{ClusterSettings, SyncSettings};
use crate::desired::assemble;
use crate::desired::rendering::renderings::Renderings;
use crate::desired::rendering::{Want, Wanted, facts_of};
use crate::desired::siblings::{Sibling, Siblings};
use crate::history::archive::Archive;
use crate::reconcile::aliases::Aliases;
use crate::reconcile::depends::Dependencies;
use crate::reconcile::model::{Clusters, Order};
use crate::reconcile::phase::Phase;
use crate::reconcile::places::Places;
use crate::reconcile::rollout::Rollout;
use crate::reconcile::rollout::recall::Heads;
use crate::report::Mode;
use crate::source::{Snapshot, SourceError};

/// The objects that syncs want, by cluster and sync.
type ByCluster = BTreeMap<String, BTreeMap<String, Sibling>>;

type Syncs<'a> = BTreeMap<&'a str, &'a SyncSettings>;

type Sources<'a> = BTreeMap<&'a str, Result<Arc<Snapshot>, Failure>>;

impl Session<'_> {
    /// Reads the sources of all syncs that a command is about. One that cannot be read is told and left out, so that
    /// the others go on.
    pub(in crate::cli) fn prepare(&self, selection: &Selection, installation: &str) -> Result<Ready, Failure> {
        let selection = &self.resolved(selection)?;
        let syncs = self.syncs(selection)?;
        let mut ready = Ready { codes: self.without_clusters(&syncs), ..Ready::default() };
        let (siblings, chosen) = (self.sibling_syncs(&syncs, selection), (selection, installation));
        let sources = self.read(syncs.values().chain(siblings.values()).map(|sync| sync.source.as_str()).collect())?;
        let mut known = self.known(&siblings, &sources, chosen);
        for (source, result) in sources {
            let of_source = syncs.iter().filter(|(_, sync)| sync.source == source);
            match result {
                Ok(snapshot) => {
                    ready.rounds.extend(of_source.map(|(name, sync)| {
                        let order = self.order(name, sync, selection, installation);
                        let wanted = self.wanted(name, sync, &snapshot, chosen);
                        record(&mut known, name, &wanted);
                        let identity = Some(assemble::source_identity(&self.config, source));
                        Prepared { order, snapshot: Arc::clone(&snapshot), source: identity, wanted }
                    }));
                }
                // A command says nothing of syncs that it is not about; what depends on them does.
                Err(_) if of_source.clone().next().is_none() => {}
                Err(mut failure) => {
                    of_source.clone().for_each(|(name, sync)| self.record_unread(&mut known, name, sync, &failure));
                    let names: Vec<String> = of_source.map(|(name, _)| format!("{name:?}")).collect();
                    failure.message = format!("no round of sync {}: {}", names.join(", "), failure.message);
                    ready.codes.push(failure.tell());
                }
            }
        }
        ready.rounds.sort_by_cached_key(|prepared| self.turn(prepared));
        for Prepared { order, .. } in &mut ready.rounds {
            order.siblings = self.siblings(order, &known);
        }
        self.limit(&mut ready, selection)?;
        Ok(ready)
    }

    /// Returns the names of the syncs that a command is about, those first that others depend on, and the exit codes of those
    /// that select no cluster, which are told of.
    pub(in crate::cli) fn names(&self, selection: &Selection) -> Result<(Vec<String>, Vec<u8>), Failure> {
        let mut syncs = self.syncs(selection)?;
        let codes = self.without_clusters(&syncs);
        syncs.retain(|name, _| without_clusters(&self.config, name).is_none());
        let mut names: Vec<String> = syncs.into_keys().map(str::to_owned).collect();
        names.sort_by_key(|name| self.dependencies().depth(name));
        Ok((names, codes))
    }

    /// Tells of each sync that selects no cluster: others go on.
    fn without_clusters(&self, syncs: &Syncs<'_>) -> Vec<u8> {
        let problems = syncs.keys().filter_map(|name| without_clusters(&self.config, name));
        let failure = |problem: Problem| Failure { code: EXIT_FAILED, message: problem.to_string(), hint: None };
        problems.map(|problem| failure(problem).tell()).collect()
    }

    /// Returns the place of a sync among several: whoever is waited for has its round first.
    pub(in crate::cli) fn turn(&self, prepared: &Prepared) -> (usize, String) {
        let sync = &prepared.order.sync;
        (self.dependencies().depth(sync), sync.clone())
    }

    /// Prepares a round of one sync without its source, on the clusters of which is known what is wanted there, and on no
    /// other: to want nothing is to delete everything. The sources of the syncs beside it are read, so that nothing is
    /// deleted that has moved to one of them.
    pub(in crate::cli) fn without_source(
        &self,
        (name, sync): (&str, &SyncSettings),
        (revision, mut wanted): (String, BTreeMap<String, Rendering>),
    ) -> Result<Prepared, Failure> {
        let installation = self.state.make_installation()?;
        let clusters: Vec<String> = wanted.keys().cloned().collect();
        let selection = Selection::of(name, &clusters);
        let mut order = self.order(name, sync, &selection, &installation);
        // No cluster in a selection means all of them.
        order.clusters.retain(|cluster, _| wanted.contains_key(cluster));
        let siblings = self.sibling_syncs(&BTreeMap::from([(name, sync)]), &selection);
        let sources = self.read(siblings.values().map(|sync| sync.source.as_str()).collect())?;
        order.siblings = self.siblings(&order, &self.known(&siblings, &sources, (&selection, &installation)));
        let marker = order.marker();
        let of = |name: &String| Some((name.clone(), Want::ready(wanted.remove(name)?, &marker)));
        let wanted = order.clusters.keys().filter_map(of).collect();
        let snapshot = Arc::new(Snapshot::new(revision, Tree::default()));
        Ok(Prepared { order, snapshot, source: None, wanted })
    }

    /// Finds out what syncs want whose sources were read.
    fn known(&self, syncs: &Syncs<'_>, sources: &Sources<'_>, chosen: (&Selection, &str)) -> ByCluster {
        let mut known = ByCluster::new();
        for (name, sync) in syncs {
            match &sources[sync.source.as_str()] {
                Ok(snapshot) => record(&mut known, name, &self.wanted(name, sync, snapshot, chosen)),
                Err(failure) => self.record_unread(&mut known, name, sync, failure),
            }
        }
        known
    }

    /// Returns the syncs that a command is not about and that go to clusters that it is about.
    fn sibling_syncs<'b>(&'b self, syncs: &Syncs<'_>, selection: &Selection) -> Syncs<'b> {
        let clusters: BTreeSet<&str> =
            syncs.values().flat_map(|sync| self.config.clusters_of(sync).into_keys()).collect();
        let is_shared = |name: &str| clusters.contains(name) && is_chosen(&selection.part.clusters.named, name);
        let shares = |sync: &SyncSettings| self.config.clusters_of(sync).into_keys().any(is_shared);
        let others = self.config.settings.syncs.iter().filter(|(name, _)| !syncs.contains_key(name.as_str()));
        others.filter(|(_, sync)| shares(sync)).map(|(name, sync)| (name.as_str(), sync)).collect()
    }

    /// Returns what a sync wants on those of its clusters that were chosen; it is rendered when a round needs it.
    fn wanted(
        &self,
        name: &str,
        settings: &SyncSettings,
        snapshot: &Arc<Snapshot>,
        (selection, installation): (&Selection, &str),
    ) -> Wanted {
        let marker = Marker { installation: installation.to_owned(), sync: name.to_owned() };
        let packs_key = self.config.packs_key();
        let renderings = Renderings::new(settings.clone(), Arc::clone(&self.packs), &packs_key, marker);
        // What a config file would say of other clusters nobody knows without one.
        let is_known = self.specs.is_none();
        let renderings = if is_known { renderings.among(&self.config.settings.fleet()) } else { renderings };
        let renderings = Arc::new(renderings);
        let want = |cluster: ClusterFacts| (cluster.name.clone(), Want::later(&renderings, snapshot, &cluster));
        let clusters = facts_of(&self.config, settings).into_iter();
        clusters.filter(|cluster| is_chosen(&selection.part.clusters.named, &cluster.name)).map(want).collect()
    }

    /// Limits the rounds to the units that were asked for; each must be somewhere.
    fn limit(&self, ready: &mut Ready, selection: &Selection) -> Result<(), Failure> {
        if selection.part.only.is_empty() {
            return Ok(());
        }
        let mut of_round = Vec::new();
        for prepared in &ready.rounds {
            of_round.push(self.units(prepared)?);
        }
        let units: BTreeSet<&ObjectId> = of_round.iter().flatten().collect();
        let kinds = self.kinds();
        let is_there = |name: &Named| units.iter().any(|unit| name.is(unit, kinds));
        if let Some(name) = selection.part.only.iter().find(|name| !is_there(name))
            && ready.codes.is_empty()
        {
            let there: Vec<String> = units.iter().map(|unit| unit.path()).collect();
            let hint = did_you_mean(&name.to_string(), there.iter().map(String::as_str));
            return Err(Failure::usage(format!("{name} is in no source of these syncs")).hint(hint));
        }
        let is_wanted = |unit: &&&ObjectId| selection.part.only.iter().any(|name| name.is(unit, kinds));
        let wanted: BTreeSet<ObjectId> = units.iter().filter(is_wanted).map(|unit| (*unit).clone()).collect();
        let mut has_any = of_round.iter().map(|units| !units.is_disjoint(&wanted));
        ready.rounds.retain(|_| has_any.next().unwrap_or_default());
        for prepared in &mut ready.rounds {
            prepared.order.only = Some(wanted.clone());
        }
        Ok(())
    }

    /// Returns the units of the source of a round, those that are broken included.
    fn units(&self, prepared: &Prepared) -> Result<BTreeSet<ObjectId>, Failure> {
        let mut units = BTreeSet::new();
        for want in prepared.wanted.values() {
            let rendering = self.block_on(want.rendering()).map_err(|error| Failure::of(&error))?;
            units.extend(rendering.units.iter().map(|unit| unit.id.clone()));
            units.extend(rendering.broken.iter().chain(&rendering.self_managed).cloned());
        }
        Ok(units)
    }

    /// Records that it is not known what a sync wants.
    fn record_unread(&self, known: &mut ByCluster, sync: &str, settings: &SyncSettings, failure: &Failure) {
        for cluster in self.config.clusters_of(settings).into_keys() {
            let unread = Sibling::Unread(failure.message.clone());
            known.entry(cluster.to_owned()).or_default().insert(sync.to_owned(), unread);
        }
    }

    fn siblings(&self, order: &Order, known: &ByCluster) -> BTreeMap<String, Siblings> {
        let of = |cluster: &String| {
            let known = known.get(cluster).unwrap_or(const { &BTreeMap::new() });
            (cluster.clone(), Siblings::new(&self.config, &order.sync, cluster, known))
        };
        order.clusters.keys().map(of).collect()
    }

    /// Returns what was selected, with the names of the clusters that patterns and labels mean.
    fn resolved(&self, selection: &Selection) -> Result<Selection, Failure> {
        let settings = &self.config.settings;
        let is_named = |name: &String| selection.sync.as_ref().is_none_or(|wanted| wanted == name);
        let syncs: Vec<_> = settings.syncs.iter().filter(|(name, _)| is_named(name)).map(|(_, sync)| sync).collect();
        let is_meant = |name: &str| syncs.iter().any(|sync| self.config.clusters_of(sync).contains_key(name));
        let names = selection.part.clusters.names(&settings.clusters, is_meant)?;
        let part = Part { clusters: Choice::of_names(&names), ..selection.part.clone() };
        Ok(Selection { sync: selection.sync.clone(), part })
    }

    /// Returns the syncs that a command is about: by name, and by the clusters that they select.
    fn syncs(&self, selection: &Selection) -> Result<Syncs<'_>, Failure> {
        let settings = &self.config.settings;
        if settings.syncs.is_empty() {
            let message = format!("no syncs are configured in {}", self.config.file.display());
            return Err(Failure::usage(message).hint("a sync says which source goes to which clusters"));
        }
        check_names("sync", &selection.sync, &settings.syncs)?;
        let is_named = |name: &String| selection.sync.as_ref().is_none_or(|wanted| wanted == name);
        let named = settings.syncs.iter().filter(|(name, _)| is_named(name));
        let mut syncs: Syncs<'_> = named.map(|(name, sync)| (name.as_str(), sync)).collect();
        let selects = |sync: &SyncSettings, cluster: &str| self.config.clusters_of(sync).contains_key(cluster);
        for cluster in &selection.part.clusters.named {
            check_names("cluster", [cluster], &settings.clusters)?;
            if !syncs.values().any(|sync| selects(sync, cluster)) {
                let who = selection
                    .sync
                    .as_ref()
                    .map_or("no sync selects".to_owned(), |name| format!("sync {name:?} does not select"));
                return Err(Failure::usage(format!("{who} cluster {cluster:?}")));
            }
        }
        let wanted = &selection.part.clusters.named;
        syncs.retain(|_, sync| wanted.is_empty() || wanted.iter().any(|cluster| selects(sync, cluster)));
        Ok(syncs)
    }

    /// Reads sources beside each other, each once, however many syncs it has.
    fn read<'b>(&self, sources: BTreeSet<&'b str>) -> Result<Sources<'b>, Failure> {
        let progress = self.progress("fetch".to_owned(), "source", sources.iter());
        let read = async |name| {
            let snapshot = self.snapshot(name).await.map(Arc::new);
            progress.at(name, Phase::Over);
            (name, snapshot)
        };
        let read = self.block_on(async {
            tokio::select! {
                snapshots = join_all(sources.into_iter().map(read)) => Ok(snapshots.into_iter().collect()),
                () = self.stop.cancelled() => Err(stopped()),
            }
        });
        progress.over();
        read
    }

    /// Reads one source.
    pub(in crate::cli) fn source(&self, name: &str) -> Result<Arc<Snapshot>, Failure> {
        let read = self.read(BTreeSet::from([name]))?.remove(name);
        read.unwrap_or_else(|| Err(Failure::usage(format!("there is no source {name:?}"))))
    }

    async fn snapshot(&self, name: &str) -> Result<Snapshot, Failure> {
        if let Some(specs) = &self.specs {
            return Ok(specs.snapshot.clone());
        }
        let source = assemble::source(&self.config, name).map_err(|error| Failure::of_configuration(&error))?;
        let snapshot = source.poll(None).await.map_err(|error| unreadable(name, &error))?;
        snapshot.ok_or_else(|| Failure::usage(format!("source {name:?} yields nothing")))
    }

    fn order(&self, name: &str, sync: &SyncSettings, selection: &Selection, installation: &str) -> Order {
        let order = Order {
            sync: name.to_owned(),
            settings: sync.clone(),
            clusters: self.clusters((name, sync), &selection.part.clusters.named),
            kinds: self.kinds().clone(),
            installation: installation.to_owned(),
            mode: Mode::Plan,
            only: None,
            full: selection.part.full,
            wait: true,
            pinned: None,
            siblings: BTreeMap::new(),
            key: self.config.inventory_key.clone(),
            masker: Archive::masker(&self.state, &self.config.settings.undo),
            archive: None,
            cause: None,
            undo: None,
            aliases: self.aliases(),
            breakers: Arc::clone(&self.breakers),
            rollout: None,
            dependencies: self.dependencies(),
            bodies: None,
            places: Places::default(),
            listener: None,
        };
        let selected = self.config.clusters_of(sync);
        let build = |(name, settings): (&&str, &&ClusterSettings)| ((*name).to_owned(), self.build(name, settings));
        let all = selected.iter().map(build).collect();
        let heads = Heads::new(all, installation, self.config.inventory_key.clone());
        let rollout = Rollout::of((name, sync), &selected, &order.clusters, true, (&self.state, heads));
        Order { rollout, ..order }
    }

    /// Returns the dependencies between all syncs, collected when they are first asked for.
    pub(in crate::cli) fn dependencies(&self) -> Arc<Dependencies> {
        Arc::clone(self.dependencies.get_or_init(|| Dependencies::of(&self.config)))
    }

    fn aliases(&self) -> Arc<Aliases> {
        let build = |name: &str| Some(self.build(name, self.config.settings.clusters.get(name)?));
        Arc::clone(self.aliases.get_or_init(|| Arc::new(Aliases::of(&self.config, build))))
    }

    fn clusters(&self, (of, sync): (&str, &SyncSettings), chosen: &[String]) -> Clusters {
        let clusters = self.config.clusters_of(sync).into_iter().filter(|(name, _)| is_chosen(chosen, name));
        let build =
            |name, settings| self.others.fenced(of, assemble::as_account(&self.build(name, settings), of, sync));
        clusters.map(|(name, settings)| (name.to_owned(), build(name, settings))).collect()
    }
}

/// Records what a sync wants.
fn record(known: &mut ByCluster, sync: &str, wanted: &Wanted) {
    for (cluster, want) in wanted {
        known.entry(cluster.clone()).or_default().insert(sync.to_owned(), Sibling::Wants(want.clone()));
    }
}

/// Makes the failure of a source: it is named as in the config file, and its address is said once.
fn unreadable(source: &str, error: &SourceError) -> Failure {
    let mut cause: &dyn StdError = &*error.source;
    if let (text, Some(deeper)) = (cause.to_string(), cause.source())
        && text == format!("cannot read {:?}", error.what)
    {
        cause = deeper;
    }
    let message = format!("cannot read source {source:?} ({}): {}", error.what, Chain(cause));
    Failure { code: EXIT_FAILED, message, hint: error.hint.clone() }
}
