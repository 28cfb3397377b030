//! `gatewright plan`.

use std::path::{Path, PathBuf};

use gatewright_engine::error::Chain;
use gatewright_engine::text::digest;

use super::format::Format;
use super::named::Named;
use super::session::{Selection, Session};
use super::subject::Subject;
use super::view::{Extent, View};
use super::{Context, EXIT_FAILED, Failure, complain, stream, worst};
use crate::config::settings;
use crate::history::approvals;
use crate::history::saved_plan::{PlanFile, PlannedSync};
use crate::report::folded::Printed;
use crate::report::{Mode, Report, text};
use crate::state::{StateError, suspension};

/// Show what the next round would do, on every cluster, and change nothing.
///
/// With files or folders in place of a sync it shows what a sync of these specs would do on the cluster that kubectl talks
/// to, and needs no config file. Nothing is deleted for them, because specs alone own nothing, and what another installation
/// owns is refused; --read-only compares it all the same.
///
/// Where there was no round yet it reserves the id of this installation in the state directory, so that the marks and
/// tokens that it shows are those of the first round. Where that cannot be written it says so, and shows no token.
///
/// Of a sync with `mode: report` it shows what its next report would say: what is missing, different or extra. With
/// --out or --adopt it plans for those, too.
///
/// Exit codes: 0 planned (with --detailed-exitcode: no changes), 1 failed, 2 changes are pending (only with
/// --detailed-exitcode), 3 held by a guard (with --detailed-exitcode: or suspended), 4 a cluster was unreachable, 64
/// usage or configuration; of several the first of 1, 3, 4, 2, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    subject: Subject,
    /// Plan what `gatewright adopt` would do.
    #[arg(long)]
    adopt: bool,
    /// Report what is missing, different or extra, whoever has put it there, as of a sync with `mode: report`; to read is
    /// all that it takes.
    #[arg(long, conflicts_with_all = ["adopt", "out"])]
    read_only: bool,
    /// Exit with 2 if anything would be changed, or differs.
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    extent: Extent,
    /// Keep the plan in a file, which `apply` carries out as it is.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: View,
}

impl Args {
    /// Returns what plans the round of a selection, and nothing else.
    pub(super) fn of(selection: &Selection, (format, extent): (View, Extent), detailed_exitcode: bool) -> Self {
        let subject = Subject::of(selection);
        Self { subject, adopt: false, read_only: false, detailed_exitcode, extent, out: None, format }
    }
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.extent.check(args.format == View::Text)?;
    let (session, selection) = args.subject.open(context)?;
    if args.out.is_some() {
        if session.is_of_specs() {
            let failure = Failure::usage("--out keeps the plan of a sync, and these specs are of none");
            return Err(failure.hint("apply carries out what a config file says: give it these specs as a source"));
        }
        // The fingerprints of a plan that is kept are those of the round that carries it out.
        session.archive()?;
    }
    let (installation, is_stand_in) = installation(&session, args.out.is_none())?;
    session.tell_gone(&selection);
    let ready = session.prepare(&selection, &installation)?;
    let mut codes = ready.codes;
    let (mut syncs, mut reports) = (Vec::new(), Vec::new());
    for mut prepared in ready.rounds {
        if args.adopt {
            prepared.order.settings.adopt.adopt_from_deployers();
        }
        if args.read_only {
            prepared.order.settings.mode = settings::Mode::Report;
        }
        // What is to be carried out, or adopted, is planned even where rounds only compare.
        let is_to_be_done = args.adopt || args.out.is_some();
        let mode = match prepared.order.settings.mode {
            settings::Mode::Report if !is_to_be_done => Mode::Report,
            settings::Mode::Apply | settings::Mode::Report => Mode::Plan,
        };
        let mut report = session.round(&prepared, mode);
        if is_stand_in {
            withdraw(&session, &installation, &mut report);
        }
        let suspension = suspension::of(&session.state, &prepared.order.sync, session.believed());
        report.suspended = suspension?;
        syncs.push(PlannedSync::of(&report));
        codes.push(if args.detailed_exitcode { report.detailed_exit_code() } else { report.exit_code() });
        if !args.format.print_one(context, &report, args.extent) {
            reports.push(report);
        }
        if session.is_stopped() {
            codes.push(EXIT_FAILED);
            break;
        }
    }
    args.format.print_page(&reports);
    if let Some(path) = &args.out {
        let (made, only) = (context.clock.now(), args.subject.only().iter().map(Named::to_string).collect());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        keep(&session, &PlanFile { version, installation, made, adopt: args.adopt, only, syncs }, path)?;
    }
    Ok(worst(codes))
}

/// Returns the id of this installation, made if need be: what is planned, and every token, is about the marks that the
/// first round will put on. Also tells whether it is only that of this plan.
pub(super) fn installation(session: &Session<'_>, may_be_stand_in: bool) -> Result<(String, bool), Failure> {
    if session.is_of_specs() {
        return Ok((Session::no_installation(), true));
    }
    match session.state.make_installation() {
        // Whoever may only read gets a stand-in.
        Err(error @ StateError::Write(..)) if may_be_stand_in => Ok((stand_in(session, &error), true)),
        made => Ok((made?, false)),
    }
}

fn keep(session: &Session<'_>, file: &PlanFile, path: &Path) -> Result<(), Failure> {
    file.write(path, session.archive()?.vault()).map_err(|error| Failure::of(&error))?;
    complain(&format!("gatewright: the plan is kept in {}; `gatewright apply {0}` carries it out\n", path.display()));
    Ok(())
}

/// Returns an id for this plan alone, and says so: that of the installation could not be reserved.
fn stand_in(session: &Session<'_>, error: &StateError) -> String {
    let id = digest(session.config.state_dir.to_string_lossy().as_bytes())[..32].to_owned();
    complain(&format!(
        "gatewright: {}\n  {id} is only the installation id of this plan, the first round will have another; let this user write \
         there to reserve one\n",
        Chain(error)
    ));
    id
}

/// Takes out of a report what counts only for a stand-in: its tokens lift nothing of the installation that is to come,
/// which nobody knows yet.
fn withdraw(session: &Session<'_>, stand_in: &str, report: &mut Report) {
    for hold in report.clusters.values_mut().flat_map(|cluster| &mut cluster.holds) {
        if hold.what.token.take().is_some() {
            hold.what.hint.push_str("; the first `gatewright sync` prints the token that lifts it");
        }
        if hold.what.message.contains(stand_in) {
            let note = "; the id of this one is only that of this plan, the first round will have another";
            hold.what.hint.push_str(note);
        }
    }
    approvals::record(&session.state, &report.sync, false, &report.clusters);
}

/// Prints a report.
pub(super) fn show(context: &Context, report: &Report, format: Format, extent: Extent) {
    if let Some(data) = format.data() {
        return data.print(&Printed::of(report));
    }
    let look = extent.look(context);
    stream(|out| text::write_to(report, look, out));
}
