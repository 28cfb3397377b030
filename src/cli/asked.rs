//! A round by hand beside a daemon: it is asked for one, because only it knows what else is under way.

use std::time::Duration;

use gatewright_engine::text::count;
use jiff::Timestamp;

use super::plan::show;
use super::session::Session;
use super::sync::{Code, How, suspended};
use super::{Context, EXIT_FAILED, Failure, complain, worst};
use crate::history::journal;
use crate::reconcile::phase::Phase;
use crate::report::Report;
use crate::report::merged::merged;
use crate::state::requested;

/// A daemon that runs takes a request within a second.
const PATIENCE: u32 = 25;

/// The interval between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Asks for a round of each of these syncs, waits for it unless nobody wants to, and shows what came of it.
pub(super) fn run((context, session): (&Context, &Session<'_>), syncs: &[String], how: &How, code: Code) -> u8 {
    let mut codes = Vec::new();
    for sync in syncs {
        codes.push(of_sync((context, session), sync, how, code).unwrap_or_else(|failure| failure.tell()));
        if session.is_stopped() {
            break;
        }
    }
    worst(codes)
}

fn of_sync((context, session): (&Context, &Session<'_>), sync: &str, how: &How, code: Code) -> Result<u8, Failure> {
    if let Some(failure) = suspended(session, sync) {
        return Err(failure);
    }
    let asked = context.clock.now();
    requested::ask(&session.state, sync, context.actor().user.as_deref(), asked)?;
    let clusters = taken(session, sync)?;
    complain(&format!("gatewright: the daemon begins a round of sync {sync} on {}\n", count(clusters, "cluster")));
    if !how.waits() {
        return Ok(0);
    }
    let reports = merged(reports(session, sync, asked)?);
    for report in &reports {
        show(context, report, how.format, how.extent());
    }
    Ok(worst(reports.iter().map(code)))
}

/// Waits until the daemon has taken a request; returns on how many clusters a round begins.
fn taken(session: &Session<'_>, sync: &str) -> Result<usize, Failure> {
    for _ in 0..PATIENCE {
        session.pause(LOOK_AGAIN)?;
        match requested::answer(&session.state, sync) {
            None => {}
            Some(0) => {
                let message = format!("no rounds of sync {sync:?} run in the daemon on this host");
                let hint = "its daemon may have read an older config file (systemctl reload gatewright), or another host has the \
                            sync (`gatewright hosts`)";
                return Err(Failure { code: EXIT_FAILED, message, hint: Some(hint.to_owned()) });
            }
            Some(clusters) => return Ok(clusters),
        }
    }
    requested::withdraw(&session.state, sync)?;
    let message = "another gatewright uses the state directory, and takes no requests";
    let hint = "it may be another command, or a daemon that is starting: wait for it, and try again";
    Err(Failure { code: EXIT_FAILED, message: message.to_owned(), hint: Some(hint.to_owned()) })
}

/// Waits for the round on each cluster of a sync that began after it was asked for.
fn reports(session: &Session<'_>, sync: &str, asked: Timestamp) -> Result<Vec<Report>, Failure> {
    let clusters = session.config.clusters_of(&session.config.settings.syncs[sync]);
    let progress = session.progress(format!("round of sync {sync}"), "cluster", clusters.keys());
    let (mut reports, mut looks) = (Vec::new(), 0_u32);
    for cluster in clusters.into_keys() {
        let mut seen = None;
        let report = loop {
            looks += 1;
            if looks % PATIENCE == 0 && session.state.lock().is_ok() {
                progress.over();
                return Err(Failure { code: EXIT_FAILED, message: "the daemon has ended".to_owned(), hint: None });
            }
            let stamp = journal::stamp(&session.state, sync, cluster);
            if stamp != seen {
                seen = stamp;
                let last = journal::last(&session.state, sync, cluster);
                if let Some(report) = last.filter(|report| report.started >= asked) {
                    break report;
                }
            }
            session.pause(LOOK_AGAIN).inspect_err(|_| progress.over())?;
        };
        progress.at(cluster, Phase::Over);
        reports.push(report);
    }
    progress.over();
    Ok(reports)
}
