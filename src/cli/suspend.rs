//! `gatewright suspend` and `gatewright resume`.

use super::{Context, Failure, check_names, complain, others, print};
use crate::basics::duration::Period;
use crate::config::Config;
use crate::state::State;
use crate::state::suspension;
use crate::state::timekeeping;

/// Suspend a sync: no rounds until it is resumed, or for some time.
///
/// It works beside a running daemon, which looks before each round; one that is under way ends as usual, but waits no
/// longer for health. status, reports and metrics say that the sync is suspended, since when, by whom and why. `plan`
/// still works, `sync` needs --even-if-suspended.
///
/// Exit codes: 0 suspended, 1 the state cannot be written, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// The reason.
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    reason: String,
    /// The duration, such as 2h or 1d12h; until it is resumed if absent.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Period>,
}

/// Resume a sync that is suspended: its rounds go on with the next one that is due.
///
/// After `undo` and `rollback` this is what applies the source again. Exit codes: 0 it has rounds again, 1 the state
/// cannot be written, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
}

/// Runs `suspend`.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = config(context, &args.sync)?;
    let time = args.time.map(|time| time.0);
    let suspension = others::beside(context, &config, |state| {
        Ok(context.decides(state, |decider| decider.suspend(&args.sync, &args.reason, time))?)
    })?;
    print(&format!("sync {} is {}\n", args.sync, suspension.words()));
    Ok(0)
}

/// Runs `resume`.
pub(super) fn resume(context: &Context, args: &ResumeArgs) -> Result<u8, Failure> {
    let config = config(context, &args.sync)?;
    let was =
        others::beside(context, &config, |state| Ok(context.decides(state, |decider| decider.resume(&args.sync))?))?;
    let was = was.map_or_else(|| "it was not suspended".to_owned(), |was| format!("it was {}", was.words()));
    print(&format!("sync {} has rounds; {was}\n", args.sync));
    Ok(0)
}

fn config(context: &Context, sync: &str) -> Result<Config, Failure> {
    let config = context.load_with_state()?;
    check_names("sync", [sync], &config.settings.syncs)?;
    Ok(config)
}

/// Suspends a sync so that what a person has just done stays, and says how to go on.
pub(super) fn hold(context: &Context, state: &State, sync: &str, reason: &str) -> Result<(), Failure> {
    // What a person had said before is not lost.
    let before = suspension::of(state, sync, timekeeping::believed(state, context.clock.as_ref())).ok().flatten();
    let is_own = |reason: &str| reason.starts_with("undo of ") || reason.starts_with("rollback to ");
    let before = before.filter(|before| !is_own(&before.reason)).map(|before| before.words());
    let reason = before.map_or_else(|| reason.to_owned(), |before| format!("{reason}; before that {before}"));
    context.decides(state, |decider| decider.suspend(sync, &reason, None))?;
    complain(&format!("gatewright: sync {sync:?} is suspended; `gatewright resume {sync}` applies the source again\n"));
    Ok(())
}
