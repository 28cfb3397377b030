//! The parts that `sync` and `plan` share: rounds run one after the other.

mod keep;
mod prepare;
mod progress;
pub(super) mod question;
mod specs;
mod stop;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::kinds;
use gatewright_engine::pack::Packs;
use gatewright_engine::text::digest;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::choice::{Choice, Part};
use super::others::Others;
use super::{Context, EXIT_FAILED, Failure, check_names, complain};
use progress::Progress;
use specs::NamedSpecs;
use stop::stop_on_signal;
pub(super) use stop::stopped;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::settings::ClusterSettings;
use crate::desired::assemble;
use crate::desired::cluster_secrets;
use crate::desired::rendering::Wanted;
use crate::history::archive::Archive;
use crate::history::archive::vault::{Vault, VaultError};
use crate::history::journal;
use crate::inventory::audit::Audit;
use crate::process::metrics::Metrics;
use crate::process::service::Signals;
use crate::reconcile::aliases::Aliases;
use crate::reconcile::breaker::{Breaker, Breakers};
use crate::reconcile::depends::Dependencies;
use crate::reconcile::fleet;
use crate::reconcile::gone;
use crate::reconcile::model::Order;
use crate::reconcile::phase::Listener;
use crate::reconcile::renamed;
use crate::report::{Mode, Report};
use crate::source::Snapshot;
use crate::source::cache;
use crate::state::timekeeping;
use crate::state::{Lock, State, StateError};

/// Threads parse specs and templates, recursively; the depth is limited, and this is room for it.
const STACK: usize = 8 << 20;

/// The longest time that a thread may go on when a command is over.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The interval between two checks whether a round of another process is over.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The syncs that a command is about.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Selection {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    pub sync: Option<String>,
    #[command(flatten)]
    pub part: Part,
}

impl Selection {
    /// Returns all of a sync on some clusters, or on all.
    pub(super) fn of(sync: &str, clusters: &[String]) -> Self {
        Self { sync: Some(sync.to_owned()), part: Part::of(Choice::of_names(clusters)) }
    }
}

/// Tells whether a cluster is among those that were asked for: all of them if none was.
pub(super) fn is_chosen(chosen: &[String], cluster: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|name| name == cluster)
}

/// A command at work.
pub(super) struct Session<'a> {
    /// The configuration.
    pub config: Config,
    /// The state.
    pub state: State,
    context: &'a Context,
    packs: Arc<Packs>,
    /// There until the end.
    runtime: Option<Runtime>,
    stop: CancellationToken,
    /// Counted, and shown to nobody.
    metrics: Arc<Metrics>,
    /// The other hosts that share the fleet.
    others: Others,
    /// All clusters that something is applied to, built when they are first asked for.
    aliases: OnceCell<Arc<Aliases>>,
    dependencies: OnceCell<Arc<Dependencies>>,
    /// Shared by all rounds: a cluster that does not answer is waited for once.
    breakers: Arc<Breakers>,
    /// The specs that the command line names, where no config file says what is wanted.
    specs: Option<NamedSpecs>,
}

/// One sync, ready for rounds: what its source holds does not change any more.
pub(super) struct Prepared {
    /// The round.
    pub order: Order,
    /// The content of its source.
    pub snapshot: Arc<Snapshot>,
    /// The identity of the source, if it was read.
    pub source: Option<String>,
    /// The objects that are wanted, by cluster.
    pub wanted: Wanted,
}

/// The outcome for the syncs that a command is about.
#[derive(Default)]
pub(super) struct Ready {
    /// Those that can have a round.
    pub rounds: Vec<Prepared>,
    /// The exit codes of the others; why is told already.
    pub codes: Vec<u8>,
}

impl<'a> Session<'a> {
    /// Reads the config file, and prepares a command.
    pub(super) fn open(context: &'a Context) -> Result<Self, Failure> {
        Self::with_config(context, context.load_file()?)
    }

    /// Prepares a command with a config file that was read.
    pub(super) fn with_config(context: &'a Context, config: Config) -> Result<Self, Failure> {
        context.log_quietly(&config)?;
        Self::new(context, config)
    }

    /// Reads the config file, and prepares a command that asks nobody.
    pub(super) fn offline(context: &'a Context) -> Result<Self, Failure> {
        let config = context.load()?;
        context.log_quietly(&config)?;
        Self::with_clusters(context, config)
    }

    /// Prepares a command, and reads the clusters of `clusterSecrets`.
    pub(super) fn new(context: &'a Context, config: Config) -> Result<Self, Failure> {
        let mut session = Self::with_clusters(context, config)?;
        session.others = Others::meet(context, &session.config, &session.state, session.runtime());
        if session.config.settings.cluster_secrets.is_empty() {
            return Ok(session);
        }
        let read = cluster_secrets::read(session.config.clone(), &session.state, &context.clock);
        session.config = session.block_on(async {
            tokio::select! {
                config = read => config.map_err(Failure::from),
                () = session.stop.cancelled() => Err(stopped()),
            }
        })?;
        session.breakers = Breaker::all(session.config.settings.clusters.keys(), &context.clock);
        Ok(session)
    }

    /// Prepares a command. From here on a signal ends it when what is under way is finished.
    fn with_clusters(context: &'a Context, config: Config) -> Result<Self, Failure> {
        let packs = config.packs().map_err(|error| Failure::of_configuration(&error))?;
        let (runtime, stop) = (runtime()?, CancellationToken::new());
        let signals = runtime.block_on(async { Signals::new() }).map_err(|error| Failure::of(&error))?;
        runtime.spawn(stop_on_signal(signals, stop.clone()));
        let breakers = Breaker::all(config.settings.clusters.keys(), &context.clock);
        let (state, metrics) = (config.state(), Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))));
        state.examine()?;
        let session = Self {
            config,
            state,
            context,
            packs,
            runtime: Some(runtime),
            stop,
            metrics,
            others: Others::None,
            aliases: OnceCell::new(),
            dependencies: OnceCell::new(),
            breakers,
            specs: None,
        };
        session.carry_over()?;
        Ok(session)
    }

    /// Has what is known of clusters with another name go on under it; of several hosts, the daemons do so. Beside a daemon that does not know that name yet
    /// nothing can be done: its rounds are those of the old one.
    fn carry_over(&self) -> Result<(), Failure> {
        let open = renamed::open(&self.config, &self.state, |_| self.config.settings.hosts.is_none());
        let Some((new, old)) = open.first() else { return Ok(()) };
        match self.state.lock() {
            Ok(_lock) => renamed::carry_over(&self.config, &self.state, self.context.clock.now(), |_| true)
                .map_err(|error| Failure::of(&error).hint(error.hint())),
            Err(error @ StateError::Locked(..)) => {
                let failure = Failure::of(&error);
                let hint = format!(
                    "cluster {new:?} was {old:?} when that read the config file: have it read it again, or wait for its end"
                );
                Err(failure.hint(hint))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what is known of kinds.
    pub(super) fn kinds(&self) -> &kinds::Table {
        self.packs.table()
    }

    /// Waits for work on clusters.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime().block_on(future)
    }

    /// Opens the archive, to which rounds write what they change.
    pub(super) fn archive(&self) -> Result<Arc<Archive>, Failure> {
        let settings = &self.config.settings;
        Archive::open(&self.state, &settings.undo, settings.rollback.keep).map(Arc::new).map_err(Failure::from)
    }

    /// Opens what was kept, to read it.
    pub(super) fn vault(&self) -> Result<Vault, Failure> {
        Ok(Archive::existing(&self.state, &self.config.settings.undo)?)
    }

    /// Returns the time that is believed where something ends by itself.
    pub(super) fn believed(&self) -> Timestamp {
        timekeeping::believed(&self.state, self.context.clock.as_ref())
    }

    /// Records the time, for those who come later.
    pub(super) fn record_time(&self) {
        timekeeping::record(&self.state, self.context.clock.as_ref());
    }

    /// Makes sure that no other host looks after a sync; waits for one that does.
    pub(super) fn hold(&self, sync: &str) -> Result<(), Failure> {
        self.others.hold(sync, self.runtime(), &self.stop)?;
        if self.config.settings.hosts.is_none() {
            return Ok(());
        }
        // The host that gets it back may not have read that name yet.
        let Some((new, old)) = renamed::open(&self.config, &self.state, |of| of == sync).pop() else { return Ok(()) };
        let message = format!("sync {sync:?} knows cluster {new:?} by its old name {old:?}; nothing was changed");
        let hint = "have the daemons of all hosts read the config file with the new name; the one that looks after the sync \
                    goes on with it";
        Err(Failure { code: EXIT_FAILED, message, hint: Some(hint.to_owned()) })
    }

    /// Gives the syncs back that are not needed any more: these are to have rounds, and wait for those that they depend on.
    pub(super) fn give_back<'b>(&self, left: impl Iterator<Item = &'b str>) {
        let dependencies = self.dependencies();
        let needed: BTreeSet<&str> =
            left.flat_map(|sync| dependencies.first_of(sync).into_iter().chain([sync])).collect();
        self.others.give_back(self.runtime(), |sync| !needed.contains(sync));
    }

    /// Returns a cluster of the config file as what changes something for a sync has it.
    pub(super) fn cluster_for(&self, sync: &str, name: &str) -> Result<Arc<dyn Cluster>, Failure> {
        self.hold(sync)?;
        Ok(self.others.fenced(sync, self.cluster(name)?))
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when this is dropped")
    }

    /// Makes sure that no daemon has a round of a sync under way on these clusters; waits for one that has.
    pub(super) fn lock_rounds<'b>(
        &self,
        sync: &str,
        clusters: impl IntoIterator<Item = &'b String>,
    ) -> Result<Vec<Lock>, Failure> {
        self.hold(sync)?;
        let mut locks = Vec::new();
        for cluster in clusters {
            let mut is_told = false;
            loop {
                match self.state.lock_round(sync, cluster)? {
                    Some(lock) => break locks.push(lock),
                    None if is_told => {}
                    None => {
                        is_told = true;
                        complain(&format!(
                            "gatewright: waits for the round of sync {sync:?} that is under way on {cluster}\n"
                        ));
                    }
                }
                self.pause(LOOK_AGAIN)?;
            }
        }
        Ok(locks)
    }

    /// Holds the state, unless a daemon does: then its rounds are locked out one by one.
    pub(super) fn lock_with_siblings(&self) -> Result<Option<Lock>, Failure> {
        match self.state.lock() {
            Ok(lock) => Ok(Some(lock)),
            Err(StateError::Locked(..)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores what a round is about to apply: a daemon that starts while the source is down must not begin with an older
    /// truth.
    pub(super) fn keep_snapshot(&self, prepared: &Prepared) -> Result<(), Failure> {
        let Some(identity) = &prepared.source else { return Ok(()) };
        let name = &prepared.order.settings.source;
        Ok(cache::store(name, &prepared.snapshot, identity, &self.state)?)
    }

    /// Runs a round, and compares what it finds with the last report.
    pub(super) fn round(&self, prepared: &Prepared, mode: Mode) -> Report {
        let what = if mode == Mode::Apply { "sync" } else { "plan of sync" };
        let progress = self.progress(format!("{what} {}", prepared.order.sync), "cluster", prepared.wanted.keys());
        let told = Arc::clone(&progress);
        let listener: Arc<Listener> = Arc::new(move |cluster: &str, phase| told.at(cluster, phase));
        let order = Order { mode, listener: Some(listener), ..prepared.order.clone() };
        let clock = self.context.clock.as_ref();
        let round = fleet::run(&order, &prepared.snapshot, &prepared.wanted, &self.state, clock, &self.stop);
        let mut report = self.block_on(round);
        progress.over();
        journal::compare(&self.state, &mut report);
        report
    }

    /// Shows what is waited for, unless nobody wants to know.
    pub(super) fn progress(
        &self,
        what: String,
        thing: &'static str,
        names: impl Iterator<Item = impl ToString>,
    ) -> Arc<Progress> {
        Progress::begin(what, (thing, names.map(|name| name.to_string())), (self.context, self.runtime()))
    }

    /// Asks before something that nobody should do by accident, where nobody has said `--yes`; tells whether to go on.
    pub(super) fn confirm(&self, is_agreed: bool, question: &str, word: &str) -> Result<bool, Failure> {
        if is_agreed {
            return Ok(true);
        }
        if !question::is_attended() {
            let failure = Failure::usage("nothing was changed, because nobody can be asked");
            return Err(failure.hint("say --yes to go ahead without a question"));
        }
        question::put(&format!("{question} Only {word:?} will be accepted: "));
        let agrees = self.ask_for(word);
        if !agrees {
            complain("gatewright: cancelled, nothing was changed\n");
        }
        Ok(agrees)
    }

    /// Returns the id of this installation, or another one while there is none: to render what nobody applies.
    pub(super) fn any_installation(&self) -> Result<String, Failure> {
        Ok(self.state.installation()?.unwrap_or_else(|| digest(b"")[..32].to_owned()))
    }

    /// Tells which clusters are gone, or do not belong to a sync any more, on which syncs have applied something, unless a command is about some clusters
    /// only.
    pub(super) fn tell_gone(&self, selection: &Selection) {
        if selection.part.clusters.is_of_all() {
            self.tell_gone_from(selection.sync.as_deref());
        }
    }

    /// The same of one sync, or of all.
    pub(super) fn tell_gone_from(&self, sync: Option<&str>) {
        let is_about = |name: &String| sync.is_none_or(|wanted| wanted == name);
        for (name, syncs) in gone::find(&self.config, &self.state) {
            if syncs.iter().any(is_about) {
                complain(&format!("gatewright: cluster {name}: {}\n  {}\n", gone::WORDS, gone::hint(&name)));
            }
        }
        for (sync, clusters) in gone::unselected(&self.config, &self.state) {
            if is_about(&sync) {
                complain(&format!("gatewright: {}", gone::unselected_words(&self.config, &sync, &clusters)));
            }
        }
    }

    /// Returns a cluster of the config file.
    pub(super) fn cluster(&self, name: &str) -> Result<Arc<dyn Cluster>, Failure> {
        check_names("cluster", [name], &self.config.settings.clusters)?;
        Ok(self.build(name, &self.config.settings.clusters[name]))
    }

    fn build(&self, name: &str, settings: &ClusterSettings) -> Arc<dyn Cluster> {
        assemble::cluster(&self.config, name, settings, self.kinds(), &self.context.clock)
    }

    /// Returns the audit of a sync on a cluster, which is what this host remembers of it; nothing of a directory, whose
    /// inventory is authoritative.
    pub(super) fn audit(&self, sync: &str, cluster: &str) -> Option<Audit> {
        let is_directory = self.config.settings.clusters.get(cluster).is_some_and(|it| it.directory.is_some());
        let audit = || Audit::new(&self.state, sync, cluster, self.config.inventory_key.clone());
        (!is_directory).then(audit)
    }

    /// Waits for a line from the terminal, and tells whether it is this word. Whoever interrupts the question has not
    /// agreed.
    pub(super) fn ask_for(&self, word: &str) -> bool {
        let (sender, line) = tokio::sync::oneshot::channel();
        // Nothing can interrupt a read, so it has a thread of its own that nobody waits for.
        std::thread::spawn(move || {
            drop(sender.send(question::line()));
        });
        let line = self.block_on(async {
            tokio::select! {
                line = line => line.unwrap_or_default(),
                () = self.stop.cancelled() => String::new(),
            }
        });
        line.trim() == word
    }
}

impl Drop for Session<'_> {
    /// A blocking call (git, a slow disk) that is under way must not keep the process.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.others.part(&runtime);
            runtime.shutdown_timeout(LAST_WAIT);
        }
    }
}

fn is_full(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::of(&error).hint(match error {
            StateError::Locked(..) => {
                "a daemon with this state directory does the rounds by itself; stop it to do this by hand"
            }
            StateError::Write(_, why) if is_full(&why) => "make room on that file system",
            StateError::Damaged(_) => "put it back from a backup: clusters know this installation by it",
            StateError::Read(..) | StateError::Write(..) => {
                "let this user write there, or name another folder by stateDir or $GATEWRIGHT_STATE_DIR"
            }
        })
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let failure = Self::of(&error);
        match error {
            VaultError::ReadKey(..)
            | VaultError::NoKey(_)
            | VaultError::OpenToAll(..)
            | VaultError::OtherKey { .. } => {
                failure.hint("undo.keyFile names the key; without the setting it is the file key in stateDir")
            }
            VaultError::State(_) | VaultError::Encrypt => failure,
            VaultError::Damaged(_) => failure.hint("restore the file from a backup; nothing is changed on its word"),
        }
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
