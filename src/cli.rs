//! The command line: one file per subcommand, its doc comment is its help.

mod access;
mod adopt;
mod apply;
mod approve;
mod asked;
mod audit;
mod check;
mod choice;
mod clusters;
mod completions;
mod config;
mod defaults;
mod destroy;
mod diff;
mod elsewhere;
mod events;
mod examples;
mod explain;
mod first_config;
mod format;
mod git_fetch;
mod history;
mod hosts;
mod import;
mod init;
mod inventory;
mod lsp;
mod man;
mod named;
mod orphans;
mod others;
mod output;
mod pack;
mod plan;
mod rbac;
mod release;
pub mod render;
mod report;
mod rollback;
mod rollout;
mod run;
mod schema;
mod session;
mod simulate;
mod status;
mod subject;
mod suspend;
mod sync;
mod table;
mod tree;
mod undo;
mod version;
mod view;
mod watch;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{FromArgMatches as _, Parser, Subcommand};
use gatewright_engine::error::Chain;
use gatewright_engine::pack::builtin::Builtin;

use crate::basics::clock::{Clock, SystemClock};
use crate::config::cluster_secrets::entry;
use crate::config::environment::Environment;
use crate::config::packs::{Folders, folders};
use crate::config::{Config, ConfigError, did_you_mean};
use crate::desired::cluster_secrets::{self, ListError};
use crate::history::audit_log::{Actor, Event};
use crate::history::decisions::Decider;
use crate::process::telemetry::{self, TelemetryError};
use crate::state::State;
use crate::state::owner::become_owner;
use output::{complain, complain_in_color, complain_line, emit, note, print, stream};

/// Exit code: usage or configuration.
pub const EXIT_USAGE: u8 = 64;
/// Exit code: something failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code: something is held, until a person decides.
pub const EXIT_HELD: u8 = 3;
/// Exit code: a cluster was unreachable.
pub const EXIT_UNREACHABLE: u8 = 4;
/// Exit code: changes are pending.
pub const EXIT_PENDING: u8 = 2;

/// The paths where the config file is looked for when nobody says where it is.
const USUAL_FILES: [&str; 2] = ["gatewright.yaml", "/etc/gatewright/gatewright.yaml"];

/// This program, also if its file was replaced since it was started.
const PROGRAM: &str = "/proc/self/exe";

/// Provisions gateway infrastructure on a fleet of Kubernetes clusters, from git, without running in them.
#[derive(Debug, Parser)]
#[command(name = "gatewright", version, max_term_width = 100)]
pub struct Cli {
    /// The config file; ./gatewright.yaml if it exists, else /etc/gatewright/gatewright.yaml.
    #[arg(long, short, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A folder with a pack, or with several: they add to the built-in ones, or replace files of one. May be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    packs: Vec<PathBuf>,
    /// The log level: error, warn, info, debug, or a filter such as `info,gatewright::source=debug`.
    #[arg(long, global = true, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Says nothing of how far a command is; warnings and errors are told all the same.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// No colors, also on a terminal.
    #[arg(long, global = true)]
    no_color: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    #[command(alias = "reconcile")]
    Sync(sync::Args),
    Plan(plan::Args),
    Diff(diff::Args),
    Adopt(adopt::Args),
    Release(release::Args),
    Apply(apply::Args),
    Approve(approve::Args),
    Audit(audit::Args),
    Undo(undo::Args),
    Rollback(rollback::Args),
    Suspend(suspend::Args),
    Resume(suspend::ResumeArgs),
    #[command(subcommand)]
    Rollout(rollout::Args),
    Render(render::Args),
    Init(init::Args),
    Import(import::Args),
    #[command(alias = "validate")]
    Check(check::Args),
    Schema(schema::Args),
    Lsp(lsp::Args),
    Explain(explain::Args),
    Defaults(defaults::Args),
    Status(status::Args),
    Clusters(clusters::Args),
    Hosts(hosts::Args),
    Tree(tree::Args),
    Events(events::Args),
    History(history::Args),
    #[command(subcommand)]
    Report(report::Args),
    #[command(subcommand)]
    Inventory(inventory::Args),
    Orphans(orphans::Args),
    Destroy(destroy::Args),
    #[command(subcommand)]
    Pack(pack::Args),
    Rbac(rbac::Args),
    Simulate(Box<simulate::Args>),
    #[command(subcommand)]
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
    Version(version::Args),
    GitFetch(git_fetch::Args),
}

/// The reason why a command ended without doing what it should.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The error message, causes included.
    pub message: String,
    /// Advice on what to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// Something failed while doing what was asked.
    pub fn of(error: &dyn StdError) -> Self {
        Self { code: EXIT_FAILED, message: Chain(error).to_string(), hint: None }
    }

    /// Something that the configuration says cannot be used.
    pub fn of_configuration(error: &dyn StdError) -> Self {
        Self { code: EXIT_USAGE, ..Self::of(error) }
    }

    /// Returns the failure of a command that cannot do what was asked as it was asked.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: EXIT_USAGE, message: message.into(), hint: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Tells the person at the terminal, and returns the exit code.
    fn tell(&self) -> u8 {
        complain(&format!("gatewright: {}", self.text()));
        self.code
    }

    /// Says what failed, and in the next line what to do about it.
    fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("  {hint}\n")).unwrap_or_default();
        format!("{}\n{hint}", self.message)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let message = match &error {
            ConfigError::Problems(_) => error.to_string(),
            ConfigError::Read(..) => Chain(&error).to_string(),
        };
        let hint =
            matches!(error, ConfigError::Read(..)).then(|| "pass its path with --config FILE, and make it readable");
        Self { code: EXIT_USAGE, message, hint: hint.map(str::to_owned) }
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Wrong(error) => error.into(),
            error => Self { hint: error.hint().map(str::to_owned), ..Self::of(&error) },
        }
    }
}

impl From<TelemetryError> for Failure {
    fn from(error: TelemetryError) -> Self {
        Self { hint: error.hint().map(str::to_owned), ..Self::usage(Chain(&error).to_string()) }
    }
}

/// The context that every command gets.
#[derive(Clone)]
pub struct Context {
    environment: Environment,
    config: Option<PathBuf>,
    /// Whether it was named on the command line.
    is_config_named: bool,
    log_level: Option<String>,
    color: bool,
    /// Whether nobody wants to know how far a command is.
    is_quiet: bool,
    clock: Arc<dyn Clock>,
}

/// Runs the command line of this process and returns its exit code.
pub fn main(packs: Vec<Builtin>) -> u8 {
    let mut environment = Environment::read();
    let parsed = examples::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { EXIT_USAGE } else { 0 };
            // A closed pipe while printing help is nothing to report.
            drop(error.print());
            return code;
        }
    };
    (environment.builtin, environment.packs) = (packs.into(), cli.packs);
    let context = Context {
        color: !cli.no_color && !environment.no_color && io::stdout().is_terminal(),
        is_config_named: cli.config.is_some(),
        config: cli.config.or_else(|| environment.config.clone()),
        log_level: cli.log_level,
        is_quiet: cli.quiet,
        environment,
        clock: Arc::new(SystemClock::new()),
    };
    let code = context.dispatch(cli.command).unwrap_or_else(|failure| failure.tell());
    if output::is_whole() { code } else { worst([code, EXIT_FAILED]) }
}

impl Context {
    /// Writes into the audit log that somebody at this command line has decided something; to be called before it counts.
    fn audit(&self, state: &State, event: Event) -> Result<(), Failure> {
        Ok(self.decides(state, |decider| decider.audit(event))?)
    }

    /// Has whoever is at this command line decide something.
    fn decides<T>(&self, state: &State, decide: impl FnOnce(Decider<'_>) -> T) -> T {
        decide(Decider { state, clock: self.clock.as_ref(), actor: &self.actor() })
    }

    /// Returns who has given this command.
    fn actor(&self) -> Actor {
        Actor::of_command(self.environment.user.as_deref())
    }

    fn dispatch(self, command: Command) -> Result<u8, Failure> {
        match command {
            Command::Run(args) => run::run(&self, &args),
            Command::GitFetch(args) => git_fetch::run(&args),
            Command::Sync(args) => sync::run(&self, &args),
            Command::Plan(args) => plan::run(&self, &args),
            Command::Diff(args) => diff::run(&self, &args),
            Command::Adopt(args) => adopt::run(&self, &args),
            Command::Release(args) => release::run(&self, &args),
            Command::Apply(args) => apply::run(&self, &args),
            Command::Approve(args) => approve::run(&self, &args),
            Command::Audit(args) => audit::run(&self, &args),
            Command::Undo(args) => undo::run(&self, &args),
            Command::Rollback(args) => rollback::run(&self, &args),
            Command::Suspend(args) => suspend::run(&self, &args),
            Command::Resume(args) => suspend::resume(&self, &args),
            Command::Rollout(args) => rollout::run(&self, &args),
            Command::Render(args) => render::run(&self, &args),
            Command::Check(args) => check::run(&self, &args),
            Command::Schema(args) => schema::run(&self, &args),
            Command::Lsp(args) => lsp::run(self, args),
            Command::Explain(args) => explain::run(&self, &args),
            Command::Defaults(args) => defaults::run(&self, &args),
            Command::Tree(args) => tree::run(&self, &args),
            Command::Events(args) => events::run(&self, &args),
            Command::Clusters(args) => clusters::run(&self, &args),
            Command::Hosts(args) => hosts::run(&self, &args),
            Command::Status(args) => status::run(&self, &args),
            Command::History(args) => history::run(&self, &args),
            Command::Report(args) => report::run(&self, &args),
            Command::Init(args) => init::run(&self, &args),
            Command::Import(args) => import::run(&self, &args),
            Command::Inventory(args) => inventory::run(&self, &args),
            Command::Orphans(args) => orphans::run(&self, &args),
            Command::Destroy(args) => destroy::run(&self, &args),
            Command::Pack(args) => pack::run(&self, &args),
            Command::Rbac(args) => rbac::run(&self, &args),
            Command::Simulate(args) => simulate::run(&self, &args),
            Command::Config(args) => config::run(&self, &args),
            Command::Completions(args) => Ok(completions::run(&args)),
            Command::Man(args) => man::run(&args),
            Command::Version(args) => Ok(version::run(&args)),
        }
    }

    /// Returns the config file that was asked for, or the first that is there.
    fn config_file(&self) -> Result<&Path, Failure> {
        let usual = USUAL_FILES.map(Path::new).into_iter().find(|file| file.exists());
        self.config.as_deref().or(usual).ok_or_else(|| {
            let [near, system] = USUAL_FILES;
            Failure::usage(format!("there is no config file: neither ./{near} nor {system} exists"))
                .hint("name one with --config FILE; examples/quickstart/gatewright.yaml is one to start from")
        })
    }

    /// Returns the config file of an editor that has a folder open, if there is one.
    fn config_of(&self, folder: Option<&Path>) -> Option<PathBuf> {
        let named = self.config.as_ref().and_then(|file| std::path::absolute(file).ok());
        let [near, system] = USUAL_FILES;
        let usual = || folder.map(|folder| folder.join(near)).into_iter().chain([PathBuf::from(system)]);
        named.or_else(|| usual().find(|file| std::fs::File::open(file).is_ok()))
    }

    /// Tells whether there is a config file: one was named, or one is where it is looked for and may be read.
    fn has_config(&self) -> bool {
        self.config.is_some() || USUAL_FILES.iter().any(|file| std::fs::File::open(file).is_ok())
    }

    /// Reads the folders with packs that the command line names.
    fn packs(&self) -> Result<Folders, Failure> {
        let paths = self.environment.packs.iter().map(PathBuf::as_path);
        folders(&self.environment.builtin, paths).map_err(|error| Failure::of_configuration(&error))
    }

    /// Reads the config file, for a command that asks no cluster: of those of `clusterSecrets` it knows what others have
    /// read.
    fn load(&self) -> Result<Config, Failure> {
        let config = self.load_file()?;
        let config = cluster_secrets::recalled(config.clone(), &State::open(&config.state_dir));
        for source in &config.found_in_secrets().unknown {
            let source = entry(source);
            complain(&format!("gatewright: the clusters of {source} are not known here: they were not read yet\n"));
        }
        Ok(config)
    }

    /// Reads the config file, for a command about what this installation knows.
    fn load_with_state(&self) -> Result<Config, Failure> {
        let config = self.load()?;
        config.state().examine()?;
        Ok(config)
    }

    /// Reads a config file whose path is known, for a command that asks no cluster.
    fn read(&self, file: &Path) -> Result<Config, ConfigError> {
        crate::config::load(file, &self.environment).map(|config| self.recalled(config))
    }

    /// Reads the text of a config file, for a command that asks no cluster.
    fn parse(&self, file: &Path, text: &str) -> Result<Config, ConfigError> {
        crate::config::parse(file, text, &self.environment).map(|config| self.recalled(config))
    }

    fn recalled(&self, config: Config) -> Config {
        let config = self.with_flags(config);
        cluster_secrets::recalled(config.clone(), &State::open(&config.state_dir))
    }

    /// Reads the config file, without the clusters of `clusterSecrets`. From here on root is the user whom the state
    /// directory belongs to.
    fn load_file(&self) -> Result<Config, Failure> {
        self.take(crate::config::load(self.config_file()?, &self.environment)?)
    }

    /// Reads the config file for a daemon that starts, which waits for what is not there yet.
    fn load_to_start(&self) -> Result<Config, Failure> {
        self.take(crate::config::load_to_start(self.config_file()?, &self.environment)?)
    }

    fn take(&self, config: Config) -> Result<Config, Failure> {
        become_owner(&config.state_dir).map_err(|error| Failure::of(&error))?;
        Ok(self.with_flags(config))
    }

    /// Flags win over everything else.
    fn with_flags(&self, mut config: Config) -> Config {
        if let Some(level) = &self.log_level {
            config.settings.log.level.clone_from(level);
        }
        config.program = Some(PathBuf::from(PROGRAM));
        config
    }

    fn has_colored_log(&self) -> bool {
        self.color && io::stderr().is_terminal()
    }

    /// Commands for people log only what is wrong, unless they are asked for more.
    fn log_quietly(&self, config: &Config) -> Result<(), Failure> {
        let level = self.log_level.clone().unwrap_or_else(|| "warn".to_owned());
        // A log of its own would be for programs; here it stands between lines for people.
        let format = match config.settings.log.format {
            telemetry::Format::Auto => telemetry::Format::Text,
            format => format,
        };
        let settings = telemetry::Settings { level, format };
        Ok(telemetry::init(&settings, self.has_colored_log())?)
    }
}

/// Refuses a name that stands nowhere in a section of the config file.
fn check_names<T>(
    what: &str,
    names: impl IntoIterator<Item: AsRef<str>>,
    known: &BTreeMap<String, T>,
) -> Result<(), Failure> {
    let Some(name) = names.into_iter().find(|name| !known.contains_key(name.as_ref())) else { return Ok(()) };
    let hint = did_you_mean(name.as_ref(), known.keys().map(String::as_str));
    Err(Failure::usage(format!("there is no {what} {:?}", name.as_ref())).hint(hint))
}

/// Finds a name, or the only one that begins so.
fn find_name<'a>(written: &str, names: &'a [String], what: &str, hint: &str) -> Result<Option<&'a String>, Failure> {
    let mut fitting = names.iter().filter(|name| name.starts_with(written));
    match (names.iter().find(|name| *name == written), fitting.next(), fitting.next()) {
        (Some(name), ..) => Ok(Some(name)),
        (None, only, None) => Ok(only),
        (None, ..) => Err(Failure::usage(format!("more than one {what} begins with {written:?}")).hint(hint)),
    }
}

/// Of several exit codes, the one that says most: 64, 1, 3, 4, 2, 0.
fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    let codes: Vec<u8> = codes.into_iter().collect();
    [EXIT_USAGE, EXIT_FAILED, EXIT_HELD, 4, EXIT_PENDING].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}
