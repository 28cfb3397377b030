//! `gatewright approve`.

use gatewright_engine::plan::guard::token;
use jiff::SignedDuration;

use super::{Context, Failure, print};
use crate::basics::duration::Period;
use crate::history::approvals::{Approval, Asked, GIVEN, given, waiting};
use crate::state::State;

/// Let steps go ahead that a guard holds: exactly those that were printed with the token, and nothing else.
///
/// A plan or a round that holds something prints a token. It stands for the sync, the cluster, the guard and every step
/// that is held; one deletion more, and it is another token. The next round of the sync, by the daemon or by `sync`,
/// takes the steps and uses the approval up. Without a token, what waits is listed.
///
/// Nothing is changed by this command but the state directory, so that it works beside a running daemon.
///
/// Exit codes: 0 approved or listed, 1 nothing waits for this token, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A token that a plan or a round has printed, with dashes or without; may be several.
    #[arg(value_name = "TOKEN")]
    tokens: Vec<String>,
    /// The reason, for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// For how long the approval counts if no round comes.
    #[arg(long = "for", value_name = "DURATION", default_value = "24h")]
    period: Period,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    context.log_quietly(&config)?;
    let state = State::open(&config.state_dir);
    let waiting = waiting(&state);
    if args.tokens.is_empty() {
        list(context, &state, &waiting);
        return Ok(0);
    }
    let wanted: Vec<&Asked> = args.tokens.iter().map(|text| find(text, &waiting)).collect::<Result<_, _>>()?;
    let now = context.clock.now();
    let until = SignedDuration::try_from(args.period.0).ok().and_then(|period| now.checked_add(period).ok());
    let until = until.ok_or_else(|| Failure::usage("--for is too long"))?;
    for asked in wanted {
        let approval = Approval {
            token: asked.token.clone(),
            sync: asked.sync.clone(),
            cluster: asked.cluster.clone(),
            hold: asked.hold.clone(),
            reason: args.reason.clone(),
            given: now,
            until,
        };
        GIVEN.write(&state, &[&approval.token], &approval)?;
        let until = until.strftime("%F %H:%M UTC");
        print(&format!("approved until {until}, for the next round:\n{}", described(asked)));
    }
    Ok(0)
}

/// Only what was printed can be approved: a slip of the finger must not count later.
fn find<'a>(text: &str, waiting: &'a [Asked]) -> Result<&'a Asked, Failure> {
    let token = token::parse(text).ok_or_else(|| {
        Failure::usage(format!("{text:?} is no token"))
            .hint("a token looks like k7wm-3xq9-hd2t; without one, what waits is listed")
    })?;
    let known: Vec<&str> = waiting.iter().map(|asked| asked.token.as_str()).collect();
    let message = format!("nothing waits for {token}");
    let hint = match known.as_slice() {
        [] => "nothing waits at all; `gatewright plan` looks again".to_owned(),
        known => {
            format!("what waits has another token by now: {}; look at it with `gatewright plan`", known.join(", "))
        }
    };
    let found = waiting.iter().find(|asked| asked.token == token);
    found.ok_or(Failure { code: super::EXIT_FAILED, message, hint: Some(hint) })
}

fn list(context: &Context, state: &State, waiting: &[Asked]) {
    let approved = given(state, context.clock.now());
    for asked in waiting {
        let approval = approved.iter().find(|approval| approval.token == asked.token);
        let word = approval.map(|approval| format!("  approved until {}", approval.until.strftime("%F %H:%M UTC")));
        print(&format!("{}{}\n{}", asked.token, word.unwrap_or_default(), described(asked)));
    }
    if waiting.is_empty() {
        print("nothing waits for approval\n");
    }
}

fn described(asked: &Asked) -> String {
    let Asked { sync, cluster, hold, .. } = asked;
    let steps: Vec<String> = hold.steps.iter().map(|step| format!("    {} {}\n", step.action, step.id)).collect();
    format!("  sync {sync} on cluster {cluster}, guard {}: {}\n{}", hold.guard, hold.message, steps.concat())
}
