//! The reports that a person means: one that was kept, or the last known state of a sync or of the whole fleet.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::basics::clock::Clock;
use crate::cli::{Failure, find_name};
use crate::config::settings::{self, SyncSettings};
use crate::config::{Config, did_you_mean};
use crate::history::journal;
use crate::reconcile::renamed;
use crate::report::merged::{merged, unknown};
use crate::report::trend::time;
use crate::report::{ClusterState, Mode, Report};
use crate::schedule::Schedule;
use crate::source::cache::TROUBLES;
use crate::state::{suspension, timekeeping};

/// Stands for the newest of the reports that are kept.
const LATEST: &str = "latest";

/// The name of a report that is kept: that of its file, without the ending.
pub(super) fn name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Says that a file among the reports is none.
pub(in crate::cli) fn unreadable(path: &Path) -> String {
    format!("{} is no report of gatewright, or was cut off", path.display())
}

/// Finds the reports that a name stands for, and says what they are: the last known state of a sync, or a report that is
/// kept, by its name, a unique beginning of it, or `latest`.
pub(super) fn find(config: &Config, written: &str, clock: &dyn Clock) -> Result<(String, Vec<Report>), Failure> {
    if config.settings.syncs.contains_key(written) {
        return Ok((format!("the last known state of {written}"), state(config, Some(written), clock)?));
    }
    let files = journal::files(&config.reports_dir);
    let names: Vec<String> = files.iter().map(|path| name(path)).collect();
    let found = match names.first() {
        Some(newest) if written == LATEST => Some(newest),
        _ => find_name(written, &names, "report", "`gatewright report list` names them")?,
    };
    let Some((found, file)) = found.and_then(|found| names.iter().zip(&files).find(|(name, _)| *name == found)) else {
        let known = config.settings.syncs.keys().chain(&names).map(String::as_str);
        let hint = did_you_mean(written, known.chain([LATEST]));
        let failure = Failure::usage(format!("there is no report and no sync {written:?}"));
        return Err(failure.hint(format!("{hint}; old reports are deleted (reports.keep)")));
    };
    let Some(report) = journal::read(file) else {
        return Err(Failure::usage(unreadable(file)));
    };
    Ok((found.clone(), vec![report]))
}

/// Returns the last known state of a sync, or of all, on every cluster of the config file; what is not known says so.
pub(super) fn state(config: &Config, sync: Option<&str>, clock: &dyn Clock) -> Result<Vec<Report>, Failure> {
    let state = config.state();
    let (now, believed) = (clock.now(), timekeeping::believed(&state, clock));
    let troubles = TROUBLES.read(&state, &[]).unwrap_or_default();
    let mut all = Vec::new();
    for (name, settings) in config.settings.syncs.iter().filter(|(name, _)| sync.is_none_or(|sync| sync == *name)) {
        let clusters: Vec<&str> = config.clusters_of(settings).into_keys().collect();
        let suspension = suspension::of(&state, name, believed)?;
        let mut reports: Vec<Report> = Vec::new();
        for cluster in &clusters {
            if let Some(mut report) = renamed::last_report(config, &state, (name, cluster)) {
                add_age(&mut report, cluster, settings, now);
                if suspension.is_none() {
                    add_resumed(&mut report, cluster);
                }
                reports.push(report);
            }
        }
        let is_silent = |cluster: &&str| reports.iter().all(|report| !report.clusters.contains_key(*cluster));
        let silent: Vec<&str> = clusters.into_iter().filter(is_silent).collect();
        if !silent.is_empty() {
            let mode = match settings.mode {
                settings::Mode::Apply => Mode::Apply,
                settings::Mode::Report => Mode::Report,
            };
            reports.push(unknown((name, &settings.source), &silent, mode, now));
        }
        // What is known now of the sync and its source counts, and not what was known in the last round.
        for report in &mut reports {
            report.suspended.clone_from(&suspension);
            if let Some(trouble) = troubles.get(&report.source) {
                let since = trouble.since.strftime("%F %T UTC");
                report.stale_source = Some(format!("since {since}: {}", trouble.message));
            }
        }
        all.extend(merged(reports));
    }
    Ok(all)
}

/// Records that a report is older than it should be by the schedule. Until a round has ended it may wait for health.
fn add_age(report: &mut Report, name: &str, settings: &SyncSettings, now: Timestamp) {
    let Some(cluster) = report.clusters.get_mut(name) else { return };
    // What it waits for may be a model server.
    let longest = settings.wait.timeout.0.max(settings.wait.model_timeout.0);
    let limit = if settings.wait.enabled { longest } else { Duration::ZERO };
    let due = Schedule::parse(&settings.schedule).ok().and_then(|it| it.due(report.started, report.finished));
    let due = due.zip(SignedDuration::try_from(limit).ok());
    let due = due.and_then(|(due, limit)| due.checked_add(limit).ok());
    if let Some(due) = due.filter(|due| *due < now) {
        let (last, due) = (time(report.finished), time(due));
        cluster.overdue = Some(format!("its last report is of {last}, and another one was due by {due}"));
    }
}

/// Records that a report says why there was no round, and that this is over.
fn add_resumed(report: &mut Report, name: &str) {
    let last = time(report.finished);
    let suspended = report.clusters.get_mut(name).filter(|cluster| cluster.state == ClusterState::Suspended);
    if let Some(cluster) = suspended {
        let words = format!("there was no round since it was resumed, and at {last} it was suspended");
        cluster.overdue.get_or_insert(words);
    }
}
