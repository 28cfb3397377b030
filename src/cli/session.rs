//! What `sync` and `plan` share: sources read, clusters built, and rounds run one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::error::Chain;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::Packs;
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Rendering;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Context, EXIT_FAILED, Failure, check_name, complain, print};
use crate::archive::Archive;
use crate::archive::vault::{Vault, VaultError};
use crate::assemble;
use crate::claims::{Beside, Neighbor};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::settings::SyncSettings;
use crate::config::{Config, did_you_mean};
use crate::fleet::{self, Order};
use crate::rendering::renderings::Renderings;
use crate::rendering::{Want, Wanted, facts_of};
use crate::report::{Mode, Report};
use crate::service::Signals;
use crate::source::{Snapshot, SourceError};
use crate::state::{Lock, State, StateError};
use crate::witness::Witness;

/// Threads parse specs and templates, recursively; the depth is limited, and this is room for it.
const STACK: usize = 8 << 20;

/// How long a thread may go on when a command is over.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// How often is looked whether a round of another process is over.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const STOPPED: &str = "stopped by a signal, nothing was changed";

/// Which part of which syncs a command is about, and how closely it looks.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    pub sync: Option<String>,
    /// Only this cluster; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub cluster: Vec<String>,
    /// Only this unit, such as Gateway/infra/edge; may be given several times.
    #[arg(long, value_name = "UNIT", value_parser = parse_unit)]
    pub only: Vec<String>,
    /// Compare every object, and not only what has moved since the last round.
    #[arg(long)]
    pub full: bool,
}

/// Checks that a text has the form of [`ObjectId::path`].
fn parse_unit(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let is_unit = (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty())
        && text.starts_with(|first: char| first.is_ascii_uppercase());
    if is_unit { Ok(text.to_owned()) } else { Err("a unit is written as Gateway/NAMESPACE/NAME".to_owned()) }
}

/// A command at work.
pub(super) struct Session<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The state.
    pub state: State,
    context: &'a Context,
    packs: Arc<Packs>,
    /// There until the end.
    runtime: Option<Runtime>,
    stop: CancellationToken,
}

/// One sync, ready for rounds: what its source holds does not change any more.
pub(super) struct Prepared {
    /// The round.
    pub order: Order,
    snapshot: Arc<Snapshot>,
    /// What is wanted, by cluster.
    pub wanted: Wanted,
}

/// What syncs want, by cluster and sync.
type ByCluster = BTreeMap<String, BTreeMap<String, Neighbor>>;

/// What became of the syncs that a command is about.
pub(super) struct Ready {
    /// Those that can have a round.
    pub rounds: Vec<Prepared>,
    /// The exit codes of the others; why is told already.
    pub codes: Vec<u8>,
}

/// What a person said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Go on.
    Yes,
    /// Do not.
    No,
}

impl<'a> Session<'a> {
    /// Prepares a command. From here on a signal ends it when what is under way is finished.
    pub(super) fn new(context: &'a Context, config: &'a Config) -> Result<Self, Failure> {
        let packs = Arc::new(config.packs().map_err(|error| Failure::of_configuration(&error))?);
        let (runtime, stop) = (runtime()?, CancellationToken::new());
        let signals = runtime.block_on(async { Signals::new() }).map_err(|error| Failure::of(&error))?;
        runtime.spawn(stop_on_signal(signals, stop.clone()));
        Ok(Self { config, state: State::open(&config.state_dir), context, packs, runtime: Some(runtime), stop })
    }

    /// Waits for work on clusters.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.as_ref().expect("it is taken only when this is dropped").block_on(future)
    }

    /// Tells whether a signal has asked for the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Reads the sources of all syncs that a command is about. One that cannot be read is told and left out, so that
    /// the others go on.
    pub(super) fn prepare(&self, selection: &Selection, installation: &str) -> Result<Ready, Failure> {
        let syncs = self.syncs(selection)?;
        let mut ready = Ready { rounds: Vec::new(), codes: Vec::new() };
        let (neighbors, chosen) = (self.neighbors(&syncs, selection), (selection, installation));
        let sources = syncs.values().chain(neighbors.values()).map(|sync| sync.source.as_str()).collect();
        let mut known = ByCluster::new();
        for (source, result) in self.read(sources)? {
            let result = result.map(Arc::new);
            for (name, sync) in neighbors.iter().filter(|(_, sync)| sync.source == source) {
                match &result {
                    Ok(snapshot) => note(&mut known, name, &self.wanted(name, sync, snapshot, chosen)),
                    Err(failure) => self.note_unread(&mut known, name, sync, failure),
                }
            }
            let of_source = syncs.iter().filter(|(_, sync)| sync.source == source);
            match result {
                Ok(snapshot) => {
                    ready.rounds.extend(of_source.map(|(name, sync)| {
                        let order = self.order(name, sync, selection, installation);
                        let wanted = self.wanted(name, sync, &snapshot, chosen);
                        note(&mut known, name, &wanted);
                        Prepared { order, snapshot: Arc::clone(&snapshot), wanted }
                    }));
                }
                // A command says nothing of syncs that it is not about; what depends on them does.
                Err(_) if of_source.clone().next().is_none() => {}
                Err(mut failure) => {
                    of_source.clone().for_each(|(name, sync)| self.note_unread(&mut known, name, sync, &failure));
                    let names: Vec<String> = of_source.map(|(name, _)| format!("{name:?}")).collect();
                    failure.message = format!("no round of sync {}: {}", names.join(", "), failure.message);
                    ready.codes.push(failure.tell());
                }
            }
        }
        ready.rounds.sort_by(|a, b| a.order.sync.cmp(&b.order.sync));
        for Prepared { order, .. } in &mut ready.rounds {
            order.beside = self.beside(order, &known);
        }
        self.limit(&mut ready, selection)?;
        Ok(ready)
    }

    /// Prepares a round of one sync without its source: what is wanted is known already.
    pub(super) fn without_source(
        &self,
        (name, sync): (&str, &SyncSettings),
        clusters: &[String],
        (revision, wanted): (String, BTreeMap<String, Rendering>),
    ) -> Result<Prepared, Failure> {
        let installation = self.state.make_installation().map_err(|error| unusable(&error))?;
        let (sync_name, cluster) = (Some(name.to_owned()), clusters.to_vec());
        let selection = Selection { sync: sync_name, cluster, only: Vec::new(), full: false };
        let order = self.order(name, sync, &selection, &installation);
        let ready = |(cluster, rendering)| (cluster, Want::ready(rendering, &order.marker()));
        let wanted = wanted.into_iter().map(ready).collect();
        let snapshot = Arc::new(Snapshot { revision, tree: Tree::default() });
        Ok(Prepared { order, snapshot, wanted })
    }

    /// Opens the archive, to which rounds write what they change.
    pub(super) fn archive(&self) -> Result<Arc<Archive>, Failure> {
        let settings = &self.config.settings;
        Archive::open(&self.state, &settings.undo, settings.rollback.keep).map(Arc::new).map_err(|error| locked(&error))
    }

    /// Opens what was kept, to read it.
    pub(super) fn vault(&self) -> Result<Vault, Failure> {
        Archive::existing(&self.state, &self.config.settings.undo).map_err(|error| locked(&error))
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// Returns the syncs that a command is not about and that go to clusters that it is about.
    fn neighbors(
        &self,
        syncs: &BTreeMap<&str, &SyncSettings>,
        selection: &Selection,
    ) -> BTreeMap<&'a str, &'a SyncSettings> {
        let clusters: BTreeSet<&str> =
            syncs.values().flat_map(|sync| self.config.clusters_of(sync).into_keys()).collect();
        let is_chosen =
            |name: &str| selection.cluster.is_empty() || selection.cluster.iter().any(|chosen| chosen == name);
        let shares = |sync: &SyncSettings| {
            self.config.clusters_of(sync).into_keys().any(|name| clusters.contains(name) && is_chosen(name))
        };
        let others = self.config.settings.syncs.iter().filter(|(name, _)| !syncs.contains_key(name.as_str()));
        others.filter(|(_, sync)| shares(sync)).map(|(name, sync)| (name.as_str(), sync)).collect()
    }

    /// What a sync wants on those of its clusters that were chosen; it is rendered when a round needs it.
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
        let renderings = Arc::new(renderings);
        let is_chosen = |name: &String| selection.cluster.is_empty() || selection.cluster.contains(name);
        let mut clusters = facts_of(self.config, settings);
        clusters.retain(|cluster| is_chosen(&cluster.name));
        let want = |cluster: ClusterFacts| (cluster.name.clone(), Want::later(&renderings, snapshot, &cluster));
        clusters.into_iter().map(want).collect()
    }

    /// Limits the rounds to the units that were asked for; each must be somewhere.
    fn limit(&self, ready: &mut Ready, selection: &Selection) -> Result<(), Failure> {
        if selection.only.is_empty() {
            return Ok(());
        }
        let mut of_round = Vec::new();
        for prepared in &ready.rounds {
            of_round.push(self.units(prepared)?);
        }
        let units: BTreeSet<&ObjectId> = of_round.iter().flatten().collect();
        let there: BTreeSet<String> = units.iter().map(|unit| unit.path()).collect();
        if let Some(name) = selection.only.iter().find(|name| !there.contains(*name))
            && ready.codes.is_empty()
        {
            let hint = did_you_mean(name, there.iter().map(String::as_str));
            return Err(Failure::usage(format!("{name} is in no source of these syncs")).hint(hint));
        }
        let wanted: BTreeSet<ObjectId> =
            units.into_iter().filter(|unit| selection.only.contains(&unit.path())).cloned().collect();
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

    /// Notes that it is not known what a sync wants.
    fn note_unread(&self, known: &mut ByCluster, sync: &str, settings: &SyncSettings, failure: &Failure) {
        for cluster in self.config.clusters_of(settings).into_keys() {
            let unread = Neighbor::Unread(failure.message.clone());
            known.entry(cluster.to_owned()).or_default().insert(sync.to_owned(), unread);
        }
    }

    /// Returns the syncs that a command is about: by name, and by the clusters that they select.
    fn syncs(&self, selection: &Selection) -> Result<BTreeMap<&'a str, &'a SyncSettings>, Failure> {
        let settings = &self.config.settings;
        if settings.syncs.is_empty() {
            let message = format!("no syncs are configured in {}", self.config.file.display());
            return Err(Failure::usage(message).hint("a sync says which source goes to which clusters"));
        }
        check_name("sync", selection.sync.as_deref(), &settings.syncs)?;
        let is_named = |name: &String| selection.sync.as_ref().is_none_or(|wanted| wanted == name);
        let named = settings.syncs.iter().filter(|(name, _)| is_named(name));
        let mut syncs: BTreeMap<&str, &SyncSettings> = named.map(|(name, sync)| (name.as_str(), sync)).collect();
        let selects = |sync: &SyncSettings, cluster: &str| self.config.clusters_of(sync).contains_key(cluster);
        for cluster in &selection.cluster {
            check_name("cluster", Some(cluster), &settings.clusters)?;
            if !syncs.values().any(|sync| selects(sync, cluster)) {
                let who = selection
                    .sync
                    .as_ref()
                    .map_or("no sync selects".to_owned(), |name| format!("sync {name:?} does not select"));
                return Err(Failure::usage(format!("{who} cluster {cluster:?}")));
            }
        }
        let wanted = &selection.cluster;
        syncs.retain(|_, sync| wanted.is_empty() || wanted.iter().any(|cluster| selects(sync, cluster)));
        Ok(syncs)
    }

    /// Reads sources beside each other, each once, however many syncs it has.
    fn read<'b>(&self, sources: BTreeSet<&'b str>) -> Result<BTreeMap<&'b str, Result<Snapshot, Failure>>, Failure> {
        let reads = sources.into_iter().map(async |name| (name, self.snapshot(name).await));
        let message = STOPPED.to_owned();
        self.block_on(async {
            tokio::select! {
                snapshots = join_all(reads) => Ok(snapshots.into_iter().collect()),
                () = self.stop.cancelled() => Err(Failure { code: EXIT_FAILED, message, hint: None }),
            }
        })
    }

    /// Reads one source.
    pub(super) fn source(&self, name: &str) -> Result<Snapshot, Failure> {
        let read = self.read(BTreeSet::from([name]))?.remove(name);
        read.unwrap_or_else(|| Err(Failure::usage(format!("there is no source {name:?}"))))
    }

    async fn snapshot(&self, name: &str) -> Result<Snapshot, Failure> {
        let source = assemble::source(self.config, name).map_err(|error| Failure::of_configuration(&error))?;
        let snapshot = source.poll(None).await.map_err(|error| unreadable(name, &error))?;
        snapshot.ok_or_else(|| Failure::usage(format!("source {name:?} yields nothing")))
    }

    fn order(&self, name: &str, sync: &SyncSettings, selection: &Selection, installation: &str) -> Order {
        Order {
            sync: name.to_owned(),
            settings: sync.clone(),
            clusters: self.clusters(sync, &selection.cluster),
            installation: installation.to_owned(),
            mode: Mode::Plan,
            only: None,
            full: selection.full,
            wait: true,
            pinned: None,
            beside: BTreeMap::new(),
            key: self.config.inventory_key.clone(),
            archive: None,
            cause: None,
            undo: None,
        }
    }

    fn clusters(&self, sync: &SyncSettings, wanted: &[String]) -> fleet::Clusters {
        let clock: Arc<dyn Clock> = Arc::clone(&self.context.clock) as Arc<dyn Clock>;
        let all = self.config.clusters_of(sync).into_iter();
        let chosen = all.filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
        chosen
            .map(|(name, settings)| (name.to_owned(), assemble::cluster(self.config, name, settings, &clock)))
            .collect()
    }

    /// Makes sure that no daemon has a round of a sync under way on these clusters; waits for one that has.
    pub(super) fn lock_rounds<'b>(
        &self,
        sync: &str,
        clusters: impl IntoIterator<Item = &'b String>,
    ) -> Result<Vec<Lock>, Failure> {
        let mut locks = Vec::new();
        for cluster in clusters {
            let mut is_told = false;
            loop {
                match self.state.lock_round(sync, cluster).map_err(|error| unusable(&error))? {
                    Some(lock) => break locks.push(lock),
                    None if self.is_stopped() => {
                        return Err(Failure { code: EXIT_FAILED, message: STOPPED.to_owned(), hint: None });
                    }
                    None if is_told => {}
                    None => {
                        is_told = true;
                        complain(&format!(
                            "gatewright: waits for the round of sync {sync:?} that is under way on {cluster}\n"
                        ));
                    }
                }
                self.block_on(async {
                    tokio::select! {
                        () = tokio::time::sleep(LOOK_AGAIN) => {}
                        () = self.stop.cancelled() => {}
                    }
                });
            }
        }
        Ok(locks)
    }

    /// Holds the state, unless a daemon does: then its rounds are locked out one by one.
    pub(super) fn lock_beside(&self) -> Result<Option<Lock>, Failure> {
        match self.state.lock() {
            Ok(lock) => Ok(Some(lock)),
            Err(StateError::Locked(..)) => Ok(None),
            Err(error) => Err(unusable(&error)),
        }
    }

    /// Runs a round.
    pub(super) fn round(&self, prepared: &Prepared, mode: Mode) -> Report {
        let order = Order { mode, ..prepared.order.clone() };
        let clock = self.context.clock.as_ref();
        self.block_on(fleet::run(&order, &prepared.snapshot, &prepared.wanted, &self.state, clock, &self.stop))
    }

    /// Waits for the word "yes".
    pub(super) fn ask(&self) -> Answer {
        self.ask_for("yes")
    }

    /// Asks before something that nobody should do by accident, where nobody has said `--yes`.
    pub(super) fn confirm(&self, is_agreed: bool, question: &str, word: &str) -> Result<Answer, Failure> {
        if is_agreed {
            return Ok(Answer::Yes);
        }
        if !io::stdin().is_terminal() {
            let failure = Failure::usage("nothing was changed, because nobody can be asked");
            return Err(failure.hint("say --yes to go ahead without a question"));
        }
        print(&format!("{question} Only {word:?} will be accepted: "));
        let answer = self.ask_for(word);
        if answer == Answer::No {
            complain("gatewright: cancelled, nothing was changed\n");
        }
        Ok(answer)
    }

    /// Returns a cluster of the config file.
    pub(super) fn cluster(&self, name: &str) -> Result<Arc<dyn Cluster>, Failure> {
        check_name("cluster", Some(name), &self.config.settings.clusters)?;
        let clock: Arc<dyn Clock> = Arc::clone(&self.context.clock) as Arc<dyn Clock>;
        Ok(assemble::cluster(self.config, name, &self.config.settings.clusters[name], &clock))
    }

    /// What this host remembers of a sync on a cluster; nothing of a directory, whose inventory is authoritative.
    pub(super) fn witness(&self, sync: &str, cluster: &str) -> Option<Witness> {
        let is_directory = self.config.settings.clusters.get(cluster).is_some_and(|it| it.directory.is_some());
        let witness = || Witness::new(&self.state, sync, cluster, self.config.inventory_key.clone());
        (!is_directory).then(witness)
    }

    /// Makes a round of a sync that wants nothing any more. Its source is not read; those of the others are.
    pub(super) fn emptied(
        &self,
        name: &str,
        sync: &SyncSettings,
        selection: &Selection,
        installation: &str,
    ) -> Result<Prepared, Failure> {
        let mut order = self.order(name, sync, selection, installation);
        let syncs = BTreeMap::from([(name, sync)]);
        let neighbors = self.neighbors(&syncs, selection);
        let mut known = ByCluster::new();
        let chosen = (selection, installation);
        for (source, result) in self.read(neighbors.values().map(|sync| sync.source.as_str()).collect())? {
            let result = result.map(Arc::new);
            for (name, sync) in neighbors.iter().filter(|(_, sync)| sync.source == source) {
                match &result {
                    Ok(snapshot) => note(&mut known, name, &self.wanted(name, sync, snapshot, chosen)),
                    Err(failure) => self.note_unread(&mut known, name, sync, failure),
                }
            }
        }
        order.beside = self.beside(&order, &known);
        let wanted = order.clusters.keys().map(|name| (name.clone(), Want::Ready(Arc::default()))).collect();
        let snapshot = Arc::new(Snapshot { revision: "nothing".to_owned(), tree: Tree::default() });
        Ok(Prepared { order, snapshot, wanted })
    }

    fn beside(&self, order: &Order, known: &ByCluster) -> BTreeMap<String, Beside> {
        let of = |cluster: &String| {
            let known = known.get(cluster).unwrap_or(const { &BTreeMap::new() });
            (cluster.clone(), Beside::new(self.config, &order.sync, cluster, known))
        };
        order.clusters.keys().map(of).collect()
    }

    /// Waits for a line from the terminal. Whoever interrupts the question has not agreed.
    fn ask_for(&self, word: &str) -> Answer {
        let (sender, line) = tokio::sync::oneshot::channel();
        // Nothing can interrupt a read, so it has a thread of its own that nobody waits for.
        std::thread::spawn(move || {
            let mut line = String::new();
            drop(io::stdin().read_line(&mut line));
            drop(sender.send(line));
        });
        let line = self.block_on(async {
            tokio::select! {
                line = line => line.unwrap_or_default(),
                () = self.stop.cancelled() => String::new(),
            }
        });
        if line.trim() == word { Answer::Yes } else { Answer::No }
    }
}

/// Notes what a sync wants.
fn note(known: &mut ByCluster, sync: &str, wanted: &Wanted) {
    for (cluster, want) in wanted {
        known.entry(cluster.clone()).or_default().insert(sync.to_owned(), Neighbor::Wants(want.clone()));
    }
}

impl Drop for Session<'_> {
    /// A blocking call (git, a slow disk) that is under way must not keep the process.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LAST_WAIT);
        }
    }
}

impl Prepared {
    /// Returns the revision of the source.
    pub(super) fn revision(&self) -> &str {
        &self.snapshot.revision
    }
}

/// Finishes the step that is under way, so that the inventory is kept true. Who asks twice does not get that: then
/// the inventory still holds everything that exists, because it is written ahead.
async fn stop_on_signal(mut signals: Signals, stop: CancellationToken) {
    signals.next().await;
    stop.cancel();
    complain("gatewright: stopping after the step that is under way\n");
    signals.next().await;
    std::process::exit(EXIT_FAILED.into());
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

/// Makes the failure of a state directory.
pub(super) fn unusable(error: &StateError) -> Failure {
    Failure::of(error).hint(match error {
        StateError::Locked(..) => {
            "a daemon with this state directory does the rounds by itself; stop it to do one by hand"
        }
        StateError::Read(..) | StateError::Write(..) => {
            "let this user write there, or name another folder by stateDir or $GATEWRIGHT_STATE_DIR"
        }
    })
}

/// Makes the failure of what is kept.
pub(super) fn locked(error: &VaultError) -> Failure {
    let failure = Failure::of(error);
    match error {
        VaultError::ReadKey(..) | VaultError::NoKey(_) | VaultError::OpenToAll(_) | VaultError::OtherKey { .. } => {
            failure.hint("undo.keyFile names the key; without the setting it is the file key in stateDir")
        }
        VaultError::Write(_) | VaultError::Seal | VaultError::Read(..) => failure,
        VaultError::Damaged(_) => failure.hint("restore the file from a backup; nothing is changed on its word"),
    }
}

/// Makes the runtime of this process.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .map_err(|error| Failure::of(&error))
}
