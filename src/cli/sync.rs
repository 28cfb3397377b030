//! `gatewright sync`.

use std::io::{self, IsTerminal};

use gatewright_engine::error::Chain;

use super::plan::{Format, show};
use super::session::{Answer, Prepared, Ready, Selection, Session, unusable};
use super::{Context, EXIT_FAILED, Failure, complain, print, worst};
use crate::config::settings;
use crate::journal;
use crate::report::{Mode, Report, text};

/// Runs one round now: shows the plan, applies it, waits, and deletes what is not wanted any more.
///
/// On a terminal it asks before it changes an API server, and anything but "yes" changes nothing and exits with 1. A
/// sync with `mode: report` is planned and reported only.
///
/// Exit codes: 0 done, 1 failed, 3 held by a guard, 4 a cluster was unreachable, 64 usage or configuration; of several
/// the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    manner: Manner,
}

/// How rounds are run by hand.
#[derive(Debug, clap::Args)]
pub(super) struct Manner {
    /// Do not ask.
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Do not wait until what was changed is healthy.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// How to print the report.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) format: Format,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    rounds(context, &args.selection, &args.manner, false)
}

/// Runs a round of each sync, which takes over what deployers in the clusters provision if it is asked to.
pub(super) fn rounds(context: &Context, selection: &Selection, args: &Manner, takes_over: bool) -> Result<u8, Failure> {
    let config = context.load()?;
    context.log_quietly(&config)?;
    let session = Session::new(context, &config)?;
    let _lock = session.state.lock().map_err(|error| unusable(&error))?;
    let installation = session.state.make_installation().map_err(|error| unusable(&error))?;
    let mut ready = session.prepare(selection, &installation)?;
    for prepared in &mut ready.rounds {
        prepared.order.settings.adopt.deployer |= takes_over;
    }
    Ok(carry_out(context, args, &session, ready))
}

/// Runs rounds one after the other; a person is asked about each.
pub(super) fn carry_out(context: &Context, args: &Manner, session: &Session<'_>, ready: Ready) -> u8 {
    let mut codes = ready.codes;
    for mut prepared in ready.rounds {
        prepared.order.wait = !args.no_wait;
        codes.push(round(context, args, session, &prepared));
        if session.is_stopped() {
            codes.push(EXIT_FAILED);
            break;
        }
    }
    worst(codes)
}

fn round(context: &Context, args: &Manner, session: &Session<'_>, prepared: &Prepared) -> u8 {
    let mode = match prepared.order.settings.mode {
        settings::Mode::Apply => Mode::Apply,
        settings::Mode::Report => Mode::Plan,
    };
    if mode == Mode::Apply && asks(args, prepared) && !agrees(context, args, session, prepared) {
        complain(&format!("gatewright: sync {:?} was cancelled, nothing was changed\n", prepared.order.sync));
        return EXIT_FAILED;
    }
    let report = session.round(prepared, mode);
    show(context, &report, args.format, false);
    keep(session, &report);
    report.exit_code()
}

/// A directory is never asked about: everything in it can be rendered again.
fn asks(args: &Manner, prepared: &Prepared) -> bool {
    let has_api_server = prepared.order.clusters.values().any(|cluster| cluster.has_health());
    !args.yes && has_api_server && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows the plan and waits for the word. Where nothing would change there is nothing to ask.
fn agrees(context: &Context, args: &Manner, session: &Session<'_>, prepared: &Prepared) -> bool {
    let plan = session.round(prepared, Mode::Plan);
    if !plan.has_changes() || session.is_stopped() {
        return !session.is_stopped();
    }
    let look = text::Look { color: context.color, verbose: false };
    let question = format!("{}\nApply these changes? Only \"yes\" will be accepted: ", text::write(&plan, look));
    match args.format {
        Format::Text => print(&question),
        // Only the report belongs on standard output.
        Format::Json => complain(&question),
    }
    session.ask() == Answer::Yes
}

/// A report that cannot be kept is no reason to fail: what it tells has happened.
fn keep(session: &Session<'_>, report: &Report) {
    if let Err(error) = journal::record(&session.state, &session.config.reports_dir, report) {
        tracing::warn!(error = %Chain(&error), "cannot keep the report");
    }
}
