//! `gatewright diff`.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::bodies::Marks;
use gatewright_engine::plan::refusal::{Reason, Severity};
use gatewright_engine::text::listed;

use super::plan::installation;
use super::subject::Subject;
use super::{Context, EXIT_FAILED, EXIT_USAGE, Failure, complain_line, emit};
use crate::report::{ClusterReport, Mode, Report, unified};

/// Exit code: something differs.
const EXIT_DIFFERS: u8 = 1;
/// Exit code: something could not be compared.
const EXIT_TROUBLE: u8 = 2;

/// The most objects that a message names.
const MOST_NAMES: usize = 8;

/// Advice on objects that are not ours.
const OF_OTHERS: &str = "`gatewright plan --read-only` compares what others own";

/// Show how objects on the clusters differ from what the specs ask for, as a unified diff of YAML, and change nothing.
///
/// It is the plan of a round, object by object: fields that a sync would set, or would change. Secrets are masked. With
/// files or folders in place of a sync it needs no config file, as in `plan`; the marks of a sync are left out then. What
/// a guard holds is shown as well, and what is refused is told on standard error. Syncs with `mode: report` are compared as
/// if they were to apply.
///
/// Exit codes: 0 no differences, 1 something differs, 2 something failed or cannot be compared, 3 an object is refused,
/// because somebody else has it, 4 a cluster was unreachable, 64 usage or configuration; of several the first of 64, 2, 3,
/// 4, 1, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    subject: Subject,
    /// Show what `gatewright adopt` would do.
    #[arg(long)]
    adopt: bool,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    compare(context, args).map_err(|failure| Failure { code: trouble(failure.code), ..failure })
}

fn compare(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (session, selection) = args.subject.open(context)?;
    let (installation, _) = installation(&session, true)?;
    session.tell_gone(&selection);
    let marks = if session.is_of_specs() { Marks::LeftOut } else { Marks::Shown };
    let ready = session.prepare(&selection, &installation)?;
    let mut codes: Vec<u8> = ready.codes.into_iter().map(trouble).collect();
    for mut prepared in ready.rounds {
        let order = &mut prepared.order;
        // A cluster whose turn has not come differs as well, and what is deleted is shown whole.
        (order.rollout, order.full, order.bodies) = (None, true, Some(marks));
        if args.adopt {
            order.settings.adopt.adopt_from_deployers();
        }
        let report = session.round(&prepared, Mode::Plan);
        codes.push(show(context, &report));
        if session.is_stopped() {
            codes.push(EXIT_TROUBLE);
            break;
        }
    }
    Ok([EXIT_USAGE, EXIT_TROUBLE, 3, 4, EXIT_DIFFERS].into_iter().find(|code| codes.contains(code)).unwrap_or(0))
}

/// A failure must not look like a difference.
fn trouble(code: u8) -> u8 {
    if code == EXIT_FAILED { EXIT_TROUBLE } else { code }
}

/// Prints what differs, says what could not be compared, and returns the exit code.
fn show(context: &Context, report: &Report) -> u8 {
    for problem in &report.problems {
        complain_line(&problem.to_string());
    }
    for (name, cluster) in &report.clusters {
        tell(name, cluster);
    }
    let text = unified::write(report, context.color);
    emit(&text);
    report.diff_exit_code(!text.is_empty())
}

/// Says why something of a cluster is not compared, or waits.
fn tell(name: &str, cluster: &ClusterReport) {
    let say = |message: String, hint: Option<&str>| {
        complain_line(&format!("gatewright: cluster {name}: {message}"));
        if let Some(hint) = hint {
            complain_line(&format!("  {hint}"));
        }
    };
    if let Some(error) = &cluster.error {
        say(error.message.clone(), error.hint.as_deref());
    }
    for hold in &cluster.holds {
        say(format!("{}held by guard {}: {}", hold.subject(), hold.guard, hold.message), Some(&hold.hint));
    }
    let mut refused: BTreeMap<String, (Vec<&ObjectId>, Option<&str>)> = BTreeMap::new();
    for refusal in cluster.refusals.iter().filter(|refusal| is_told(&refusal.reason)) {
        let hint = matches!(refusal.reason, Reason::Foreign(_)).then_some(OF_OTHERS);
        refused.entry(refusal.reason.to_string()).or_insert((Vec::new(), hint)).0.push(&refusal.id);
    }
    for (reason, (objects, hint)) in refused {
        say(format!("not compared: {}: {reason}", listed(objects, MOST_NAMES)), hint);
    }
}

/// Tells whether an object is not among those that are shown, and should be.
fn is_told(reason: &Reason) -> bool {
    !matches!(reason, Reason::Held(_) | Reason::UnitHeld) && reason.severity() != Severity::Kept
}
