//! `gatewright sync`.

use std::sync::Arc;

use super::format::Format;
use super::plan::show;
use super::session::{Prepared, Ready, Selection, Session, question};
use super::suspend::hold;
use super::view::Extent;
use super::{Context, EXIT_FAILED, EXIT_HELD, Failure, asked, complain, plan, worst};
use crate::config::settings;
use crate::history::archive::Archive;
use crate::reconcile::model::Order;
use crate::report::{Mode, Report, text};
use crate::state::{StateError, suspension};

/// Run one round now: show the plan, apply it, wait, and delete what is not wanted any more.
///
/// Whoever is at a terminal is asked before an API server is changed, on standard error and wherever the output goes;
/// anything but "yes" changes nothing and exits with 1. A sync with `mode: report` is compared and reported only.
/// Beside a daemon nobody is asked: the daemon reads the source and does the round, and this command waits for its report.
///
/// Exit codes: 0 done (with --detailed-exitcode: and nothing differs), 1 failed, 2 something differs (only with
/// --detailed-exitcode), 3 held by a guard or suspended, 4 a cluster was unreachable, 64 usage or configuration; of
/// several the first of 1, 3, 4, 2, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    manner: Manner,
    /// Exit with 2 if a sync with `mode: report` finds that anything differs, as `plan --detailed-exitcode` does.
    #[arg(long)]
    detailed_exitcode: bool,
    /// Show what the round would do, and change nothing, as `plan` does.
    #[arg(long, conflicts_with_all = ["yes", "even_if_suspended", "skip_waves", "no_wait"])]
    dry_run: bool,
}

/// The exit code of a report.
pub(super) type Code = fn(&Report) -> u8;

/// The way in which rounds are run by hand.
#[derive(Debug, clap::Args)]
pub(super) struct Manner {
    #[command(flatten)]
    pub(super) how: How,
    /// Run a round of a suspended sync all the same; it stays suspended.
    #[arg(long, requires = "reason")]
    even_if_suspended: bool,
    /// Change all clusters at once, and not one after the other, whatever rollouts are under way.
    #[arg(long, requires = "reason")]
    skip_waves: bool,
    /// The reason; it stands in the report.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of every round by hand.
#[derive(Debug, clap::Args)]
pub(super) struct How {
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
    /// Do not wait until what was changed is healthy.
    #[arg(long)]
    no_wait: bool,
    /// The output format of the report.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    pub(super) format: Format,
    /// One line for clusters that are alike, and one that counts them.
    #[arg(long)]
    summary: bool,
}

impl How {
    /// Returns the extent of the report.
    pub(super) fn extent(&self) -> Extent {
        Extent { verbose: false, summary: self.summary }
    }

    /// Tells whether it is to be known how healthy is what was changed.
    pub(super) fn waits(&self) -> bool {
        !self.no_wait
    }

    /// Refuses what cannot be had together.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.extent().check(self.format == Format::Text)
    }
}

impl Manner {
    /// Tells whether the rounds are to be as those of a daemon are.
    fn is_plain(&self) -> bool {
        !self.even_if_suspended && !self.skip_waves && self.reason.is_none()
    }

    /// Says in the report why this round is not as others are.
    fn tell(&self, order: &mut Order) {
        if self.skip_waves {
            order.rollout = order.rollout.take().map(|rollout| rollout.without_waves());
        }
        let how = if self.skip_waves { "by hand, on all clusters at once" } else { "by hand" };
        if let (None, Some(reason)) = (&order.cause, &self.reason) {
            order.cause = Some(format!("{how}: {reason}"));
        }
    }
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if args.dry_run {
        let form = (args.manner.how.format.into(), args.manner.how.extent());
        return plan::run(context, &plan::Args::of(&args.selection, form, args.detailed_exitcode));
    }
    let code = if args.detailed_exitcode { Report::detailed_exit_code } else { Report::exit_code };
    rounds(context, &args.selection, &args.manner, (false, code))
}

/// Runs a round of each sync, which adopts what deployers in the clusters provision if it is asked to.
pub(super) fn rounds(
    context: &Context,
    selection: &Selection,
    args: &Manner,
    (takes_over, code): (bool, Code),
) -> Result<u8, Failure> {
    args.how.check()?;
    let session = Session::open(context)?;
    let _lock = match session.state.lock() {
        Err(StateError::Locked(..)) if !takes_over && args.is_plain() && selection.part.is_all() => {
            let (syncs, codes) = session.names(selection)?;
            return Ok(asked::run((context, &session), (&syncs, codes), &args.how, code));
        }
        lock => lock?,
    };
    let installation = session.state.make_installation()?;
    session.tell_gone(selection);
    let mut ready = session.prepare(selection, &installation)?;
    for prepared in ready.rounds.iter_mut().filter(|_| takes_over) {
        prepared.order.settings.adopt.adopt_from_deployers();
    }
    carry_out(context, args, &session, ready, code)
}

/// Runs rounds one after the other; a person is asked about each.
pub(super) fn carry_out(
    context: &Context,
    args: &Manner,
    session: &Session<'_>,
    ready: Ready,
    code: Code,
) -> Result<u8, Failure> {
    let archive = session.archive()?;
    let (mut codes, mut rounds) = (ready.codes, ready.rounds.into_iter());
    while let Some(prepared) = rounds.next() {
        codes.push(by_hand(context, args, session, (prepared, &archive), code));
        if session.is_stopped() {
            codes.push(EXIT_FAILED);
            break;
        }
        session.give_back(rounds.as_slice().iter().map(|left| left.order.sync.as_str()));
    }
    session.send();
    Ok(worst(codes))
}

/// Runs one round unless its sync is suspended, and returns its exit code.
fn by_hand(
    context: &Context,
    args: &Manner,
    session: &Session<'_>,
    (mut prepared, archive): (Prepared, &Arc<Archive>),
    code: Code,
) -> u8 {
    if let Some(code) = rests(args, session, &mut prepared) {
        return code;
    }
    prepared.order.keep_in(Arc::clone(archive));
    args.tell(&mut prepared.order);
    let name = prepared.order.sync.clone();
    // Somebody may have suspended it while the question was open.
    let still = || if args.even_if_suspended { Ok(()) } else { suspended(session, &name).map_or(Ok(()), Err) };
    match round(context, &args.how, session, &mut prepared, (|| Ok(()), still)) {
        Ok(Some(report)) => code(&report),
        Ok(None) => EXIT_FAILED,
        Err(failure) => failure.tell(),
    }
}

/// Runs a round of something else than what the source says, keeps what it changes, and suspends its sync. Returns nothing
/// if a person does not agree.
pub(super) fn round_back(
    context: &Context,
    how: &How,
    session: &Session<'_>,
    mut prepared: Prepared,
) -> Result<Option<Report>, Failure> {
    prepared.order.keep_in(session.archive()?);
    let (sync, reason) = (prepared.order.sync.clone(), prepared.order.cause.clone().unwrap_or_default());
    // A round that waits for something to become healthy ends when its sync is suspended.
    let ahead = || hold(context, &session.state, &sync, &reason);
    let report = round(context, how, session, &mut prepared, (ahead, || Ok(())))?;
    session.send();
    Ok(report)
}

/// Says that a sync is suspended; `None` if it is not, or shall have a round all the same.
fn rests(args: &Manner, session: &Session<'_>, prepared: &mut Prepared) -> Option<u8> {
    match (suspended(session, &prepared.order.sync)?, &args.reason) {
        (failure, Some(reason)) if args.even_if_suspended && failure.code == EXIT_HELD => {
            let how = if args.skip_waves { "while suspended, on all clusters at once" } else { "while suspended" };
            prepared.order.cause = Some(format!("by hand {how}: {reason}"));
            None
        }
        (failure, _) => {
            if failure.code == EXIT_HELD {
                session.rest(&prepared.order);
            }
            Some(failure.tell())
        }
    }
}

/// Returns the reason why a sync may not have a round.
pub(super) fn suspended(session: &Session<'_>, sync: &str) -> Option<Failure> {
    match suspension::of(&session.state, sync, session.believed()) {
        Ok(None) => None,
        Ok(Some(suspension)) => {
            let message = format!("sync {sync:?} is {}", suspension.words());
            let ends = format!("`gatewright resume {sync}` ends that");
            let hint = format!("{ends}; --even-if-suspended --reason TEXT is one round all the same");
            Some(Failure { code: EXIT_HELD, message, hint: Some(hint) })
        }
        Err(error) => {
            Some(Failure::from(error).hint(format!("`gatewright resume {sync}` or `suspend` writes it again")))
        }
    }
}

/// Runs one round; `ahead` is called once a person has agreed, and `before` when it has its turn, so that it is certain that
/// something may be changed. Returns nothing if a person does not agree.
pub(super) fn round(
    context: &Context,
    how: &How,
    session: &Session<'_>,
    prepared: &mut Prepared,
    (ahead, before): (impl FnOnce() -> Result<(), Failure>, impl FnOnce() -> Result<(), Failure>),
) -> Result<Option<Report>, Failure> {
    prepared.order.wait = !how.no_wait;
    let mode = match prepared.order.settings.mode {
        settings::Mode::Apply => Mode::Apply,
        settings::Mode::Report => Mode::Report,
    };
    if mode == Mode::Apply && asks(how, prepared) && !agrees(context, how, session, prepared) {
        complain(&format!("gatewright: sync {:?} was cancelled, nothing was changed\n", prepared.order.sync));
        return Ok(None);
    }
    let order = &prepared.order;
    let is_real = mode == Mode::Apply;
    if is_real {
        ahead()?;
    }
    let _locks = if is_real { session.lock_rounds(&order.sync, order.clusters.keys())? } else { Vec::new() };
    if is_real {
        session.record_time();
        before()?;
        session.keep_snapshot(prepared)?;
    }
    let report = session.round(prepared, mode);
    show(context, &report, how.format, how.extent());
    session.keep(&report);
    if let Some(archive) = &prepared.order.archive {
        archive.expire(session.believed());
    }
    Ok(Some(report))
}

/// A directory is never asked about: everything in it can be rendered again.
fn asks(how: &How, prepared: &Prepared) -> bool {
    let has_api_server = prepared.order.clusters.values().any(|cluster| cluster.has_health());
    !how.yes && has_api_server && question::is_attended()
}

/// Shows the plan and waits for the word. Where nothing would change there is nothing to ask.
fn agrees(context: &Context, how: &How, session: &Session<'_>, prepared: &Prepared) -> bool {
    let plan = session.round(prepared, Mode::Plan);
    if !plan.has_changes() || session.is_stopped() {
        return !session.is_stopped();
    }
    let look = how.extent().look(context);
    question::put(&format!("{}\nApply these changes? Only \"yes\" will be accepted: ", text::write(&plan, look)));
    session.ask_for("yes")
}
