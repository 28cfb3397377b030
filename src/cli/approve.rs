//! `gatewright approve`.

use gatewright_engine::plan::guard::token;
use gatewright_engine::text::count;
use jiff::SignedDuration;

use super::choice::Choice;
use super::session::question;
use super::{Context, EXIT_FAILED, Failure, check_names, complain, others, print};
use crate::basics::duration::Period;
use crate::config::Config;
use crate::history::approvals::{Approval, Asked, Group, given, groups, token_of, waiting};
use crate::report::named;
use crate::state::State;

/// Let steps go ahead that a guard holds: exactly those that were printed with the token, and nothing else.
///
/// A plan or a round that holds something prints a token. It stands for the sync, the cluster, the guard and every step
/// that is held; one deletion more, and it is another token. Where the same steps wait on several clusters one token is
/// printed for all of them, and --cluster and -l say for which it counts. The next round of the sync, by the daemon or
/// by `sync`, takes the steps and uses the approval up. Without a token, what waits is listed.
///
/// Nothing is changed by this command but the state directory, so that it works beside a running daemon.
///
/// Exit codes: 0 approved or listed, 1 nothing waits for this token, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A token that a plan or a round has printed, with dashes or without; may be several.
    #[arg(value_name = "TOKEN")]
    tokens: Vec<String>,
    /// Approve everything that waits, once it was shown.
    #[arg(long, conflicts_with = "tokens")]
    all: bool,
    /// With --all: do not ask.
    #[arg(long, short, requires = "all")]
    yes: bool,
    #[command(flatten)]
    clusters: Choice,
    /// The reason, for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// For how long the approval counts if no round comes.
    #[arg(long = "for", value_name = "DURATION", default_value = "24h")]
    period: Period,
}

/// The arguments of `rollout approve`.
#[derive(Debug, clap::Args)]
pub(super) struct OfRollout {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    clusters: Choice,
    /// The reason, for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// For how long the approval counts if no round comes.
    #[arg(long = "for", value_name = "DURATION", default_value = "24h")]
    period: Period,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    context.log_quietly(&config)?;
    others::beside(context, &config, |state| approve(context, (args, &config), state))
}

fn approve(context: &Context, (args, config): (&Args, &Config), state: &State) -> Result<u8, Failure> {
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    let mut waiting = waiting(state)?;
    waiting.retain(|asked| chosen.is_empty() || chosen.contains(&asked.cluster));
    decide(context, args, state, &waiting)
}

/// Lets all go ahead that waits in rollouts of a sync.
pub(super) fn of_rollout(context: &Context, of: &OfRollout) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    context.log_quietly(&config)?;
    check_names("sync", [&of.sync], &config.settings.syncs)?;
    let (clusters, reason) = (of.clusters.clone(), of.reason.clone());
    let args = Args { tokens: Vec::new(), all: true, yes: of.yes, clusters, reason, period: of.period };
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    others::beside(context, &config, |state| {
        let mut waiting = waiting(state)?;
        waiting.retain(|asked| asked.sync == of.sync && asked.hold.guard.is_of_rollout());
        waiting.retain(|asked| chosen.is_empty() || chosen.contains(&asked.cluster));
        if waiting.is_empty() {
            let message = format!("no change of sync {:?} waits for approval in a rollout", of.sync);
            let hint = format!("`gatewright rollout explain {}` says what waits, and why", of.sync);
            return Err(Failure { code: EXIT_FAILED, message, hint: Some(hint) });
        }
        decide(context, &args, state, &waiting)
    })
}

fn decide(context: &Context, args: &Args, state: &State, waiting: &[Asked]) -> Result<u8, Failure> {
    let now = context.clock.now();
    if args.tokens.is_empty() && !args.all {
        list(&given(state, now), waiting);
        return Ok(0);
    }
    let until = SignedDuration::try_from(args.period.0).ok().and_then(|period| now.checked_add(period).ok());
    let until = until.ok_or_else(|| Failure::usage("--for is too long"))?;
    let wanted: Vec<&Asked> = if args.all {
        waiting.iter().collect()
    } else {
        let found: Vec<Group<'_>> = args.tokens.iter().map(|text| find(text, waiting)).collect::<Result<_, _>>()?;
        found.concat()
    };
    if args.all && !agrees(args, &wanted)? {
        complain("gatewright: nothing was approved\n");
        return Ok(EXIT_FAILED);
    }
    for asked in &wanted {
        context.decides(state, |decider| decider.approve(asked, args.reason.as_deref(), until))?;
    }
    let until = until.strftime("%F %H:%M UTC");
    for group in groups(wanted) {
        print(&format!("approved until {until}, for the next round:\n{}", described(&group)));
    }
    Ok(0)
}

/// Shows all that waits and asks for the word; where nobody can be asked it has to be said beforehand.
fn agrees(args: &Args, wanted: &[&Asked]) -> Result<bool, Failure> {
    if args.yes || wanted.is_empty() {
        return Ok(true);
    }
    if !question::is_attended() {
        let message = "nothing was approved, because nobody can be asked";
        return Err(Failure::usage(message).hint("look at what waits with `gatewright approve`, then add --yes"));
    }
    let described: String = groups(wanted.to_vec()).iter().map(|group| described(group)).collect();
    let ask = format!("Approve {}? Only \"yes\" will be accepted: ", count(wanted.len(), "hold"));
    question::put(&format!("{described}{ask}"));
    Ok(question::line().trim() == "yes")
}

/// Only what was printed can be approved: a slip of the finger must not count later.
fn find<'a>(text: &str, waiting: &'a [Asked]) -> Result<Group<'a>, Failure> {
    let token = token::parse(text).ok_or_else(|| {
        Failure::usage(format!("{text:?} is no token"))
            .hint("a token looks like k7wm-3xq9-hd2t; without one, what waits is listed")
    })?;
    let found: Group<'_> = waiting.iter().filter(|asked| asked.is_meant_by(&token)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: Vec<&str> = groups(waiting).iter().map(|group| token_of(group)).collect();
    let message = format!("nothing waits for {token}");
    let hint = match known.as_slice() {
        [] => "nothing waits at all; `gatewright plan` looks again".to_owned(),
        known => {
            format!("what waits has another token by now: {}; look at it with `gatewright plan`", known.join(", "))
        }
    };
    Err(Failure { code: EXIT_FAILED, message, hint: Some(hint) })
}

fn list(approved: &[Approval], waiting: &[Asked]) {
    for group in groups(waiting) {
        let is_given = |asked: &&&Asked| approved.iter().any(|approval| approval.token == asked.token);
        let until = approved.iter().filter(|approval| group.iter().any(|asked| asked.token == approval.token));
        let until = until.map(|approval| approval.until).min();
        let on = match group.iter().filter(is_given).count() {
            number if number == group.len() => String::new(),
            number => format!(" on {number} of {}", count(group.len(), "cluster")),
        };
        let word = until.map(|until| format!("  approved{on} until {}", until.strftime("%F %H:%M UTC")));
        print(&format!("{}{}\n{}", token_of(&group), word.unwrap_or_default(), described(&group)));
    }
    if waiting.is_empty() {
        print("nothing waits for approval\n");
    }
}

fn described(group: &[&Asked]) -> String {
    let Asked { sync, hold, .. } = group[0];
    let clusters: Vec<String> = group.iter().map(|asked| asked.cluster.clone()).collect();
    let steps: Vec<String> = hold.steps.iter().map(|step| format!("    {} {}\n", step.action, step.id)).collect();
    format!("  sync {sync} on {}, guard {}: {}\n{}", named(&clusters), hold.guard, hold.message, steps.concat())
}
