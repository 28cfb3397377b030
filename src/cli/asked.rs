//! A round by hand beside a daemon: it is asked for one, because only it knows what else is under way.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewright_engine::plan::guard::Guard;
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
use crate::state::requested::{self, Answer, Progress, Request};

/// A daemon that runs takes a request within a second.
const PATIENCE: u32 = 25;

/// The interval between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The number of looks for which clusters that wait for their turn in a rollout are waited for when nothing else is.
const IDLE: u32 = 300;

/// Asks for a round of each of these syncs, waits for it unless nobody wants to, and shows what came of it.
pub(super) fn run(
    (context, session): (&Context, &Session<'_>),
    (syncs, mut codes): (&[String], Vec<u8>),
    how: &How,
    code: Code,
) -> u8 {
    for sync in syncs {
        match of_sync((context, session), sync, how, code) {
            Ok(code) => codes.push(code),
            Err(Ended::Sync(failure)) => codes.push(failure.tell()),
            Err(Ended::All(failure)) => {
                codes.push(failure.tell());
                break;
            }
        }
    }
    worst(codes)
}

/// The end of a request: of this one, or of all, because nobody is there to answer.
enum Ended {
    Sync(Failure),
    All(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Sync(failure)
    }
}

fn of_sync((context, session): (&Context, &Session<'_>), sync: &str, how: &How, code: Code) -> Result<u8, Ended> {
    if let Some(failure) = suspended(session, sync) {
        return Err(failure.into());
    }
    let time = context.clock.now();
    let id = format!("{}-{}", std::process::id(), time.as_nanosecond());
    let request = Request { id: id.clone(), by: context.actor().user, time };
    requested::ask(&session.state, sync, &request).map_err(Failure::from)?;
    let answer = taken(session, (sync, &id))?;
    let clusters = count(answer.clusters.len(), "cluster");
    complain(&format!("gatewright: the daemon reads the source, and begins a round of sync {sync} on {clusters}\n"));
    if !how.waits() {
        return Ok(0);
    }
    let mut wait = Wait { session, sync, id: &id, seen: BTreeMap::new() };
    let (reports, mut codes) = wait.for_all(answer)?;
    let reports = merged(reports);
    for report in &reports {
        show(context, report, how.format, how.extent());
    }
    codes.extend(reports.iter().map(code));
    Ok(worst(codes))
}

/// Waits until the daemon has taken a request; returns what it answers.
fn taken(session: &Session<'_>, (sync, id): (&str, &str)) -> Result<Answer, Ended> {
    for _ in 0..PATIENCE {
        let is_over = session.pause(LOOK_AGAIN).is_err();
        match requested::answer(&session.state, sync, id) {
            Some(answer) if answer.clusters.is_empty() => {
                let message = format!("no rounds of sync {sync:?} run in the daemon on this host");
                let hint = "its daemon may have read an older config file (systemctl reload gatewright), or another host has the \
                            sync (`gatewright hosts`)";
                return Err(failure(message).hint(hint).into());
            }
            Some(answer) => return Ok(answer),
            None if is_over || !session.state.is_held() => break,
            None => {}
        }
    }
    requested::withdraw(&session.state, sync, id).map_err(Failure::from)?;
    if session.is_stopped() {
        return Err(Ended::All(failure("stopped by a signal, before the daemon had taken the request".to_owned())));
    }
    if !session.state.is_held() {
        return Err(Ended::All(failure("the daemon has ended before it had taken the request".to_owned())));
    }
    let message = "another gatewright uses the state directory, and takes no requests".to_owned();
    let hint = "it may be another command, or a daemon that is starting: wait for it, and try again";
    Err(Ended::All(failure(message).hint(hint)))
}

fn failure(message: String) -> Failure {
    Failure { code: EXIT_FAILED, message, hint: None }
}

/// The rounds that are waited for.
struct Wait<'a> {
    session: &'a Session<'a>,
    sync: &'a str,
    id: &'a str,
    /// The outcome on each cluster, as far as it is known: its report, or the reason why there is none.
    seen: BTreeMap<String, Result<Report, String>>,
}

impl Wait<'_> {
    /// Waits for the round on each cluster; returns the reports, and an exit code for each cluster without one.
    fn for_all(&mut self, mut answer: Answer) -> Result<(Vec<Report>, Vec<u8>), Ended> {
        let names = answer.clusters.keys();
        let progress = self.session.progress(format!("round of sync {}", self.sync), "cluster", names);
        let (mut looks, mut idle) = (0_u32, 0_u32);
        loop {
            looks += 1;
            let is_new = self.look(&answer);
            idle = if is_new { 0 } else { idle + 1 };
            for cluster in answer.clusters.keys().filter(|cluster| self.is_over(cluster)) {
                progress.at(cluster, Phase::Over);
            }
            let is_answered = answer.clusters.values().all(|progress| *progress != Progress::Waits);
            if is_answered && (answer.clusters.keys().all(|cluster| self.is_over(cluster)) || idle > IDLE) {
                break;
            }
            let stopped = self.session.pause(LOOK_AGAIN).is_err();
            let now = requested::answer(&self.session.state, self.sync, self.id);
            let is_gone = now.is_none() || (looks.is_multiple_of(PATIENCE) && !self.session.state.is_held());
            if stopped || is_gone {
                progress.over();
                let why = if stopped {
                    "stopped by a signal; the daemon goes on with the round"
                } else {
                    "the daemon has ended or was started again before the round was over"
                };
                return Err(Ended::All(failure(why.to_owned())));
            }
            answer = now.unwrap_or(answer);
        }
        progress.over();
        let (mut reports, mut codes) = (Vec::new(), Vec::new());
        for (cluster, seen) in std::mem::take(&mut self.seen) {
            match seen {
                Ok(report) => reports.push(report),
                Err(why) => codes.push(failure(format!("no round of sync {:?} on {cluster}: {why}", self.sync)).tell()),
            }
        }
        Ok((reports, codes))
    }

    /// Looks at what has come; tells whether that is anything.
    fn look(&mut self, answer: &Answer) -> bool {
        let mut is_new = false;
        let open: Vec<_> = answer.clusters.iter().filter(|(cluster, _)| !self.is_over(cluster)).collect();
        for (cluster, progress) in open {
            let found = match progress {
                Progress::Waits => continue,
                Progress::None(why) => Err(why.clone()),
                Progress::Over { since } => self.report(cluster, *since),
            };
            let same = |known: &Result<Report, String>| match (known, &found) {
                (Ok(known), Ok(found)) => known.started == found.started,
                (known, found) => known.is_err() && found.is_err(),
            };
            if !self.seen.get(cluster).is_some_and(same) {
                self.seen.insert(cluster.clone(), found);
                is_new = true;
            }
        }
        is_new
    }

    fn report(&self, cluster: &str, since: Timestamp) -> Result<Report, String> {
        let last = journal::last(&self.session.state, self.sync, cluster);
        let why = "the daemon had none, or could not keep its report; its log says why";
        last.filter(|report| report.started >= since).ok_or_else(|| why.to_owned())
    }

    /// Tells whether nothing more is to be waited for on a cluster: where it waits for its turn in a rollout, a later round is
    /// its own, unless the rollout waits for a person.
    fn is_over(&self, cluster: &str) -> bool {
        let waits = |report: &Report, guard: Guard| report.clusters.values().any(|it| it.waits_for(guard));
        let asks = |report: &Report| {
            [Guard::RolloutApproval, Guard::RolloutHalted, Guard::RolloutPaused]
                .iter()
                .any(|guard| waits(report, *guard))
        };
        match self.seen.get(cluster) {
            None => false,
            Some(Ok(report)) => !waits(report, Guard::Rollout) || self.seen.values().flatten().any(asks),
            Some(Err(_)) => true,
        }
    }
}
