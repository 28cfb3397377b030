//! `gatewright sync`.

use std::io::{self, IsTerminal, Write};

use super::plan::show;
use super::session::{Prepared, Selection, Session};
use super::{Context, EXIT_FAILED, Failure, print, worst};
use crate::journal;
use crate::report::{Mode, Report};

/// Runs one round now: shows the plan, applies it, waits, and deletes what is not wanted any more.
///
/// On a terminal it asks before it changes an API server. Exit codes: 0 done, 1 failed, 3 held by a guard, 4 a cluster
/// was unreachable, 64 usage.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Do not wait until what was changed is healthy.
    #[arg(long)]
    no_wait: bool,
    /// Print the report as JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: super::plan::Format,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    context.log_quietly(&config)?;
    let session = Session::new(context, &config)?;
    let syncs = session.syncs(&args.selection)?;
    let locked = |error| {
        Failure::of(&error)
            .hint("a daemon with this state directory does the rounds by itself; stop it to do one by hand")
    };
    let _lock = session.state.lock().map_err(locked)?;
    let installation = session.state.make_installation().map_err(|error| Failure::of(&error))?;
    let mut codes = Vec::new();
    for (name, sync) in syncs {
        let mut prepared = session.prepare(name, sync, &args.selection, &installation, Mode::Apply)?;
        prepared.order.wait = !args.no_wait;
        if asks(args, &prepared) && !agrees(context, &session, &mut prepared)? {
            codes.push(EXIT_FAILED);
            continue;
        }
        let report = session.round(&prepared)?;
        show(context, &report, args.format, false);
        keep(&session, &report);
        codes.push(report.exit_code());
    }
    Ok(worst(codes))
}

/// A directory is asked about neither: everything in it can be rendered again.
fn asks(args: &Args, prepared: &Prepared) -> bool {
    let has_api_server = prepared.order.clusters.values().any(|cluster| cluster.has_health());
    !args.yes && has_api_server && io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn agrees(context: &Context, session: &Session<'_>, prepared: &mut Prepared) -> Result<bool, Failure> {
    prepared.order.mode = Mode::Plan;
    let plan = session.round(prepared)?;
    prepared.order.mode = Mode::Apply;
    show(context, &plan, super::plan::Format::Text, false);
    if !plan.has_changes() {
        return Ok(true);
    }
    print("\nApply these changes? Only \"yes\" is taken for it: ");
    let mut answer = String::new();
    drop(io::stdin().read_line(&mut answer));
    let is_yes = answer.trim() == "yes";
    if !is_yes {
        drop(writeln!(io::stderr(), "gatewright: nothing was changed"));
    }
    Ok(is_yes)
}

/// A report that cannot be kept is no reason to fail: what it tells has happened.
fn keep(session: &Session<'_>, report: &Report) {
    if let Err(error) = journal::record(&session.state, &session.config.reports_dir, report) {
        tracing::warn!(error = %gatewright_engine::error::Chain(&error), "cannot keep the report");
    }
}
