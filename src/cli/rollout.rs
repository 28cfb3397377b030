//! `gatewright rollout`.

mod explain;

use gatewright_engine::text::{count, listed};

use super::format::Format;
use super::watch::Watch;
use super::{Context, EXIT_FAILED, Failure, approve, check_names, others, print, rollback};
use crate::basics::sanitize;
use crate::config::Config;
use crate::config::rollout::Strategy;
use crate::config::settings::Mode;
use crate::dashboard::rollouts::rollouts;
use crate::history::audit_log::Event;
use crate::reconcile::rollout::progress::{self, Progress};
use crate::reconcile::rollout::record::{self, Ledger, Pause, Stage};
use crate::state::{State, StateError};

/// The most units or clusters that are named.
const MOST: usize = 8;

/// See how far changes are that go to clusters one after the other; have them wait, go on, or go back.
///
/// A change that replaces pods goes to one cluster of a sync first, or to clusters in waves, and on once it is healthy
/// there. `sync --skip-waves` goes everywhere at once.
///
/// Exit codes: 0 done, 1 the state cannot be read or written, 64 usage or configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    /// Say which changes are under way, where they are healthy, and who waits for them.
    Status {
        /// The sync; all of them if absent.
        #[arg(value_name = "SYNC")]
        sync: Option<String>,
        /// The output format.
        #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
        format: Format,
        #[command(flatten)]
        watch: Watch,
    },
    /// Say why each cluster waits, and what to do, as its last round has found it.
    Explain {
        /// The sync; all of them if absent.
        #[arg(value_name = "SYNC")]
        sync: Option<String>,
    },
    /// Let all changes of a sync go on that wait for other clusters, for a wave or for a person, as they are.
    Approve(approve::OfRollout),
    /// Take the change that is under way back on each cluster that has it, as `rollback` does.
    Abort(rollback::Args),
    /// Have changes that replace pods go nowhere any more, until they are resumed. Rounds go on, and so does all else.
    Pause {
        /// The sync.
        #[arg(value_name = "SYNC")]
        sync: String,
        /// The reason.
        #[arg(long, value_name = "TEXT", default_value = "no reason given")]
        reason: String,
    },
    /// Let them go on, with the next round.
    Resume {
        /// The sync.
        #[arg(value_name = "SYNC")]
        sync: String,
    },
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    match args {
        Args::Status { sync, format, watch } => {
            check_names("sync", sync.as_deref(), &config.settings.syncs)?;
            return watch.print(context, &config, |state| match format.data() {
                Some(data) => Ok(data.text(&rollouts((state, &config), sync.as_deref(), usize::MAX))),
                None => status(&config, state, sync.as_deref()),
            });
        }
        Args::Explain { sync } => {
            check_names("sync", sync.as_deref(), &config.settings.syncs)?;
            let state = others::looking(context, &config)?;
            for name in config.settings.syncs.keys().filter(|name| sync.as_ref().is_none_or(|sync| sync == *name)) {
                let ledger = record::read(&state, name).map_err(|error| unusable(name, error))?;
                explain::run(&config, &state, (name, &ledger));
            }
        }
        Args::Approve(args) => return approve::of_rollout(context, args),
        Args::Abort(args) => {
            args.sync_to_go_back(&config).map_or(Ok(()), |sync| check_under_way(context, &config, sync))?;
            return rollback::run(context, args);
        }
        Args::Pause { sync, reason } => {
            check_names("sync", [sync], &config.settings.syncs)?;
            check(&config, sync)?;
            let by = context.environment.user.clone();
            let pause = Pause { reason: reason.clone(), by, since: context.clock.now() };
            others::instead(context, (&config, sync), |state| {
                context.audit(state, Event::RolloutsPaused { sync: sync.clone(), reason: reason.clone() })?;
                record::update(state, sync, |ledger| ledger.paused = Some(pause.clone()))
                    .map_err(|error| unusable(sync, error))
            })?;
            print(&format!("rollouts of sync {sync} are {}\n", sanitize::line(&pause.words())));
        }
        Args::Resume { sync } => {
            check_names("sync", [sync], &config.settings.syncs)?;
            let was = others::instead(context, (&config, sync), |state| {
                let ledger = record::read(state, sync).map_err(|error| unusable(sync, error))?;
                if ledger.paused.is_some() {
                    context.audit(state, Event::RolloutsResumed { sync: sync.clone() })?;
                }
                record::update(state, sync, |ledger| ledger.paused.take()).map_err(|error| unusable(sync, error))
            })?;
            let was = was.map_or_else(|| "they were not paused".to_owned(), |was| format!("they were {}", was.words()));
            print(&format!("rollouts of sync {sync} go on; {}\n", sanitize::line(&was)));
        }
    }
    Ok(0)
}

/// Makes sure that there is something to abort: what is through may have been there for long.
fn check_under_way(context: &Context, config: &Config, sync: &str) -> Result<(), Failure> {
    let state = others::looking(context, config)?;
    let ledger = record::read(&state, sync).map_err(|error| unusable(sync, error))?;
    if !progress::open(&ledger).is_empty() {
        return Ok(());
    }
    let message = format!("no change of sync {sync:?} is under way, and nothing was taken back");
    let hint = Some(format!("`gatewright rollback {sync}` takes back what is through"));
    Err(Failure { code: EXIT_FAILED, message, hint })
}

/// A pause that would have no effect is a mistake.
fn check(config: &Config, sync: &str) -> Result<(), Failure> {
    let Some(settings) = config.settings.syncs.get(sync) else { return Ok(()) };
    let why = if settings.rollout.strategy == Strategy::All {
        "its strategy is all"
    } else if config.clusters_of(settings).len() < 2 {
        "it has one cluster"
    } else if settings.mode == Mode::Report {
        "it only reports"
    } else {
        return Ok(());
    };
    let failure = Failure::usage(format!("sync {sync:?} has no rollouts: {why}"));
    Err(failure.hint(format!("`gatewright suspend {sync}` stops its rounds")))
}

/// Says what becomes of rollouts whose record cannot be used.
fn unusable(sync: &str, error: StateError) -> Failure {
    let hint =
        "until it is mended or removed nothing of this sync replaces pods; without it the first cluster is tried again";
    Failure::from(error).hint(format!("rollouts/{sync}.json in the state directory: {hint}"))
}

fn status(config: &Config, state: &State, sync: Option<&str>) -> Result<String, Failure> {
    let mut out = String::new();
    for name in config.settings.syncs.keys().filter(|name| sync.is_none_or(|sync| sync == name.as_str())) {
        let ledger = record::read(state, name).map_err(|error| unusable(name, error))?;
        out.extend(lines(name, &ledger).iter().map(|line| sanitize::row(line)));
    }
    Ok(out)
}

/// Says how far the rollouts of a sync are: units of which the same is true once.
fn lines(sync: &str, ledger: &Ledger) -> Vec<String> {
    let groups = progress::open(ledger);
    let paused = ledger.paused.as_ref().map(|pause| format!(", {}", pause.words())).unwrap_or_default();
    let open = if groups.is_empty() { "nothing is under way".to_owned() } else { count(groups.len(), "rollout") };
    let mut lines = vec![format!("sync {sync}: {open}{paused}")];
    for Progress { revision, since, members, waiting, units } in groups {
        let units = if let [unit] = units[..] { unit.to_string() } else { named("unit", &units) };
        lines.push(format!("  {revision} since {}: {units}", since.strftime("%F %T UTC")));
        let of = |is_meant: fn(&Stage) -> bool| -> Vec<&&String> {
            members.iter().filter(|(_, stage)| is_meant(stage)).map(|(name, _)| name).collect()
        };
        for (what, names) in [
            ("healthy on", of(|stage| *stage == Stage::Healthy)),
            ("on its way to", of(|stage| *stage == Stage::Going)),
        ] {
            lines.extend(
                Some(names).filter(|names| !names.is_empty()).map(|it| format!("    {what} {}", named("cluster", &it))),
            );
        }
        for (name, stage) in &members {
            match stage {
                Stage::Halted(why) => lines.push(format!("    not healthy on cluster {name}: {why}")),
                Stage::Returned(failure) => {
                    lines.push(format!("    taken back on cluster {name}: {}", failure.words(name)));
                }
                Stage::Going | Stage::Healthy => {}
            }
        }
        if !waiting.is_empty() {
            lines.push(format!("    waited for by {}", named("cluster", &waiting)));
        }
    }
    lines
}

/// Counts and names: `3 clusters (a, b, c)`; one by its name.
fn named(thing: &str, names: &[impl std::fmt::Display]) -> String {
    match names {
        [name] => format!("{thing} {name}"),
        names => format!("{} ({})", count(names.len(), thing), listed(names, MOST)),
    }
}
