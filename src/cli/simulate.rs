//! `gatewright simulate`.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use gatewright_engine::tree::Entry;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::format::Format;
use super::session;
use super::{Context, EXIT_FAILED, Failure, complain, print};
use crate::basics::duration::Period;
use crate::cluster::simulated::World;
use crate::cluster::simulated::link::Latency;
use crate::cluster::simulated::objects::Bodies;
use crate::config::{self, Config};
use crate::desired::assemble;
use crate::process::http::Listen;
use crate::process::service::Signals;
use crate::process::telemetry;
use crate::simulation::fleet::{Content, SOURCE, Shape};
use crate::simulation::{self, Change, Faults, Settings, SimulationError, text};
use crate::source::directory;

/// Specs and templates are parsed recursively; the depth is limited, and this is room for it.
const STACK: usize = 8 << 20;

/// Run a daemon in simulated time over clusters in memory, and print what the fleet costs.
///
/// With --clusters the fleet is made up; without it, it is that of the config file, whose sources are read and whose
/// clusters are simulated. No cluster is asked and nothing is kept. The clusters get everything, then a round changes
/// nothing, and then --change is planned for all of them and rolled out. Times are simulated: latencies, waits and
/// schedules, but not what this program computes, which is CPU time.
///
/// Exit codes: 0 every cluster that answers has converged, 1 one has not, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The number of clusters of a fleet that is made up.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clusters: Option<u32>,
    /// The number of Gateways on each of them.
    #[arg(long, value_name = "N", default_value = "50", requires = "clusters", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    gateways: u32,
    /// The number of sorts of clusters, each with an overlay of its own.
    #[arg(long, value_name = "N", default_value = "1", requires = "clusters", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sorts: u32,
    /// The waves of a rollout, in percent of the clusters, such as 1,10,50; the rest comes last. Without it, one cluster
    /// goes first.
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', requires = "clusters", value_parser = clap::value_parser!(u8).range(1..=100))]
    waves: Vec<u8>,
    /// The change in the end.
    #[arg(long, value_name = "WHAT", default_value = "image", requires = "clusters")]
    change: What,
    /// The time of a request: half of them take as long, or less.
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    latency: Period,
    /// The time that one request of a hundred exceeds; five times --latency if absent.
    #[arg(long, value_name = "TIME")]
    latency_p99: Option<Period>,
    /// The time until controllers have brought about what was written: half of the cases, one of a hundred takes four
    /// times as long.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    ready: Period,
    /// Requests of a thousand that are answered 503.
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u16).range(0..=1000))]
    errors: u16,
    /// The number of clusters that never answer.
    #[arg(long, value_name = "N", default_value = "0")]
    unreachable: usize,
    /// The number of clusters that grant ten requests each second, and answer 429 to the others.
    #[arg(long, value_name = "N", default_value = "0")]
    throttled: usize,
    /// The number of clusters on which requests take ten times as long.
    #[arg(long, value_name = "N", default_value = "0")]
    slow: usize,
    /// The number from which all chances are drawn: the same number, the same outcome.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// The longest simulated time of each phase.
    #[arg(long, value_name = "TIME", default_value = "2h")]
    limit: Period,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// The change that is rolled out in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Another image in every Gateway, which replaces pods.
    Image,
    /// One Gateway less.
    Delete,
    /// Nothing.
    None,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (folder, config, change) = if let Some(clusters) = args.clusters {
        let folder = temporary()?;
        let (config, change) = args.made_up(context, clusters, folder.path())?;
        (folder, config, change)
    } else {
        let (folder, config) = configured(context)?;
        (folder, config, None)
    };
    let faults = Faults { unreachable: args.unreachable, throttled: args.throttled, slow: args.slow };
    if faults.all() > config.settings.clusters.len() {
        let message = "more clusters have a fault than there are clusters";
        return Err(Failure::usage(message).hint("lower --unreachable, --throttled or --slow"));
    }
    let level = context.log_level.clone().unwrap_or_else(|| "error".to_owned());
    telemetry::init(&telemetry::Settings { level, ..config.settings.log.clone() }, context.has_colored_log())?;
    let tell = |line: &str| complain(&format!("{line}\n"));
    let settings = Settings { world: args.world(), faults, limit: args.limit.0, change, tell };
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).thread_stack_size(STACK).build();
    let runtime = runtime.map_err(|error| Failure::of(&error))?;
    let outcome = until_signal(runtime, async { Ok(Box::pin(simulation::run(config, settings)).await?) })?;
    match args.format.data() {
        Some(data) => data.print(&outcome),
        None => print(&text::write(&outcome)),
    }
    drop(folder);
    Ok(if outcome.has_converged() { 0 } else { EXIT_FAILED })
}

impl Args {
    /// Makes up a fleet in a folder.
    fn made_up(&self, context: &Context, clusters: u32, folder: &Path) -> Result<(Config, Option<Change>), Failure> {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let (clusters, gateways, sorts) = (size(clusters), size(self.gateways), size(self.sorts));
        let shape = Shape { clusters, gateways, sorts, waves: self.waves.clone() };
        let (file, next) = (folder.join("gatewright.yaml"), folder.join("next"));
        shape.write(Content::First, &folder.join(SOURCE)).map_err(|error| unwritten(&error))?;
        let mut environment = context.environment.clone();
        // What a variable says is about the daemon of this host.
        environment.overrides.clear();
        let config = config::parse(&file, &simulation::fleet::config(&shape), &environment)?;
        let change = match self.change {
            What::None => return Ok((config, None)),
            What::Image => (Content::OtherImage, "another image"),
            What::Delete => (Content::OneLess, "one Gateway less"),
        };
        shape.write(change.0, &next).map_err(|error| unwritten(&error))?;
        let change = Change { source: SOURCE.to_owned(), name: change.1.to_owned(), folder: next };
        Ok((config, Some(change)))
    }

    fn world(&self) -> World {
        let median = self.latency.0;
        let latency = Latency { median, p99: self.latency_p99.map_or(median * 5, |it| it.0) };
        let ready = Latency { median: self.ready.0, p99: self.ready.0 * 4 };
        let errors = f64::from(self.errors) / 1000.0;
        World { seed: self.seed, latency, ready, errors, bodies: Arc::new(Bodies::default()) }
    }
}

/// Waits for something, or for a signal, which leaves nothing behind.
fn until_signal<T>(runtime: Runtime, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new().map_err(|error| Failure::of(&error))?;
        tokio::select! {
            outcome = work => outcome,
            _ = signals.next() => Err(session::stopped()),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

/// Reads the config file and its sources. What they say is copied, so that nothing else is waited for in simulated time.
fn configured(context: &Context) -> Result<(TempDir, Config), Failure> {
    let mut config = match context.load() {
        Err(failure) if !context.has_config() => {
            return Err(failure.hint("name a config file with --config FILE, or have a fleet made up: --clusters 100"));
        }
        config => config?,
    };
    let folder = temporary()?;
    config.state_dir = folder.path().join("state");
    config.reports_dir = folder.path().join("reports");
    config.settings.http.listen = Listen::Off;
    config.settings.reports.webhooks.clear();
    config.settings.reports.latest = None;
    config.settings.undo.key_file = None;
    let names: Vec<String> = config.settings.sources.keys().cloned().collect();
    for name in names {
        let copy = folder.path().join("sources").join(&name);
        copy_source(&config, &name, &copy)?;
        let settings = config.settings.sources.entry(name).or_default();
        let written = settings.directory.take().map(|directory| directory.written);
        let written = written.or_else(|| settings.git.take().map(|git| git.url.to_string().into()));
        let settle = Period(Duration::ZERO);
        settings.directory =
            Some(directory::Settings { settle, written: written.unwrap_or_default(), ..directory::Settings::of(copy) });
    }
    Ok((folder, config))
}

fn copy_source(config: &Config, name: &str, to: &Path) -> Result<(), Failure> {
    let source = assemble::source(config, name).map_err(|error| Failure::of_configuration(&error))?;
    let read = async { source.poll(None).await.map_err(|error| Failure::of(&error)) };
    let snapshot = until_signal(session::runtime()?, read)?;
    fs::create_dir_all(to).map_err(|error| unwritten(&error))?;
    for (path, entry) in snapshot.iter().flat_map(|snapshot| snapshot.tree.files()) {
        let text = match entry {
            Entry::Text(text) => text,
            Entry::Unreadable(why) | Entry::NotEntered(why) => {
                let message = format!("cannot simulate source {name:?}: {path} cannot be read: {why}");
                return Err(Failure { code: EXIT_FAILED, message, hint: None });
            }
        };
        let file = to.join(path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text.as_bytes()));
        written.map_err(|error| unwritten(&error))?;
    }
    Ok(())
}

fn temporary() -> Result<TempDir, Failure> {
    TempDir::new().map_err(|error| unwritten(&error))
}

fn unwritten(error: &io::Error) -> Failure {
    let message = format!("cannot write a temporary folder: {error}");
    Failure {
        code: EXIT_FAILED,
        message,
        hint: Some("see whether the disk is full; TMPDIR names another one".to_owned()),
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        let hint = match &error {
            SimulationError::Daemon(error) => error.hint(),
            SimulationError::Change(_) => None,
        };
        Self { hint, ..Self::of(&error) }
    }
}
