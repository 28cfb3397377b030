//! Reports on disk: the last one of each sync on each cluster, and a history of those that say something new.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::drift::history::{Baseline, Sides};
use gatewright_engine::text::digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::history::archive::runs::{self, expired, is_run};
use crate::history::interrupted;
use crate::report::form::ReportFormat;
use crate::report::trend::{date, undated};
use crate::report::{ClusterReport, ClusterState, Report};
use crate::state::store::{Stamp, Store};
use crate::state::suspension::Suspension;
use crate::state::{State, StateError, share_file, timekeeping};

/// The last report of a sync on a cluster, and what it said apart from the time.
#[derive(Debug, Serialize, Deserialize)]
struct Last {
    digest: String,
    report: Report,
    /// When a round of all that the source says last ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    succeeded: Option<Timestamp>,
}

/// The part of the last report that each next one is compared with: most of it is what is as it should be.
#[derive(Debug, Deserialize)]
struct Glanced {
    digest: String,
    report: GlancedReport,
    #[serde(default)]
    succeeded: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct GlancedReport {
    #[serde(default)]
    suspended: Option<Suspension>,
}

/// The findings of the last drift report that came to an end.
#[derive(Debug, Serialize, Deserialize)]
struct Compared {
    time: Timestamp,
    /// When everything was compared, also what had not moved.
    proven: String,
    /// Both sides of every object, as they looked.
    baseline: Vec<(ObjectId, Sides)>,
    report: ClusterReport,
}

/// The settings of the history of reports: where they are kept, in which forms and for how long.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The folder of the history.
    pub dir: &'a Path,
    /// The time for which a report is kept there.
    pub keep: Duration,
    /// The most bytes that the history takes.
    pub max_bytes: u64,
    /// The forms, beside JSON.
    pub formats: &'a BTreeSet<ReportFormat>,
    /// A folder with the newest report of each sync on each cluster.
    pub latest: Option<&'a Path>,
}

/// The findings of the last drift report on a cluster.
#[derive(Clone, Debug)]
pub struct LastDrift {
    /// Both sides of every object, as they looked.
    pub baseline: Baseline,
    /// The report.
    pub report: ClusterReport,
    /// When it ended, RFC 3339.
    pub time: String,
}

/// The last reports, by sync and cluster.
const LAST: Store<Last> = Store::new("status");

/// The same files, of which little is read.
const GLANCED: Store<Glanced> = Store::new("status");

/// The findings of the last drift reports, by sync and cluster.
const COMPARED: Store<Compared> = Store::new("compared");

/// Forgets what is kept of a cluster.
pub(crate) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    LAST.forget(state, cluster)?;
    COMPARED.forget(state, cluster)
}

/// Tells whether there is a last report of some syncs on a cluster.
pub(crate) fn knows(state: &State, cluster: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    LAST.knows(state, cluster, is_meant)
}

/// Keeps what is kept of a cluster for some syncs under another name, in the last reports, too.
pub(crate) fn rename_cluster(
    state: &State,
    (old, new): (&str, &str),
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), StateError> {
    COMPARED.rename(state, (old, new), &is_meant)?;
    let is_of = |(sync, cluster): &(String, String)| cluster == old && is_meant(sync);
    for (sync, _) in LAST.targets(state).into_iter().filter(is_of) {
        if let Some(mut last) = LAST.read(state, &[&sync, old])
            && LAST.read(state, &[&sync, new]).is_none()
        {
            last.report.rename_cluster(old, new);
            LAST.write(state, &[&sync, new], &last)?;
        }
        LAST.remove(state, &[&sync, old])?;
    }
    Ok(())
}

/// Returns the last report of a sync on a cluster; it speaks of that cluster only.
pub(crate) fn last(state: &State, sync: &str, cluster: &str) -> Option<Report> {
    LAST.read(state, &[sync, cluster]).map(|last| last.report)
}

/// Stands for the last report of a sync on a cluster: it is another one when that is.
pub(crate) fn stamp(state: &State, sync: &str, cluster: &str) -> Option<Stamp> {
    LAST.stamp(state, &[sync, cluster])
}

/// Returns when a round of a sync last ended well on a cluster.
pub(crate) fn succeeded(state: &State, sync: &str, cluster: &str) -> Option<Timestamp> {
    LAST.read(state, &[sync, cluster])?.succeeded
}

/// Returns what the last comparison of a sync with a cluster has found.
pub(crate) fn before(state: &State, sync: &str, cluster: &str) -> Option<LastDrift> {
    let Compared { time, proven, baseline, report } = COMPARED.read(state, &[sync, cluster])?;
    let baseline = Baseline { sides: baseline.into_iter().collect(), proven: Some(proven) };
    Some(LastDrift { baseline, report, time: time.to_string() })
}

/// Keeps what a comparison has found for the next one; where it was about a part, the rest stands as it was found.
fn keep_compared(state: &State, report: &Report, cluster: &str, found: &ClusterReport) -> Result<(), StateError> {
    if found.state != ClusterState::Compared || report.partial {
        return Ok(());
    }
    let is_refused = |id: &ObjectId| found.refusals.iter().any(|refusal| refusal.id == *id);
    let unseen = before(state, &report.sync, cluster).map(|last| last.report.steps).unwrap_or_default();
    let unseen = unseen.into_iter().filter(|step| is_refused(&step.id));
    let steps = found.steps.iter().filter(|step| step.is_change()).cloned().chain(unseen).collect();
    let kept = ClusterReport { steps, refusals: Vec::new(), units: Vec::new(), ..found.clone() };
    let Baseline { sides, proven } = found.baseline.clone();
    let (proven, baseline) = (proven.unwrap_or_else(|| report.started.to_string()), sides.into_iter().collect());
    let compared = Compared { time: report.finished, proven, baseline, report: kept };
    COMPARED.write(state, &[&report.sync, cluster], &compared)
}

/// Writes into a report since when what it has found is known, by the last reports of its sync.
pub(crate) fn compare(state: &State, report: &mut Report) {
    let sync = report.sync.clone();
    date(report, |cluster| last(state, &sync, cluster));
}

/// Keeps a report: as the last one, and in the history if it says something that the one before did not. There it is
/// kept as JSON, which is what the history is read from, and in the forms that the settings say.
///
/// `tell` leaves word for others, and is called if somebody may want to know at once: something was changed, is wrong or
/// differs that was not, or is not any more; or a suspension has begun or ended. Another revision alone is no news, nor
/// are other words for the same.
///
/// Returns whether it says something new. What the next report is compared with is written last: what could not be kept
/// or told, because of an error or because the process ended, is new in the next report, too.
pub(crate) fn record(
    state: &State,
    settings: &Settings<'_>,
    report: &Report,
    tell: impl FnOnce(&Path) -> Result<(), StateError>,
) -> Result<bool, StateError> {
    // A change that is made again and again is told each time: it can be undone each time.
    let mut is_new = report.has_changed() || report.clusters.values().any(has_resolved);
    let mut is_news = report.has_changed() || report.clusters.values().any(is_news);
    let mut lasts = BTreeMap::new();
    for (cluster, found) in &report.clusters {
        let digest = content_digest(report.alone(cluster, found.without_unchanged()));
        let last = GLANCED.read(state, &[&report.sync, cluster]);
        let is_other = last.as_ref().is_none_or(|last| last.digest != digest);
        is_new |= is_other;
        is_news |= last.as_ref().is_some_and(|last| last.report.suspended.is_some() != report.suspended.is_some());
        if !report.partial {
            show(settings, (report, cluster, found), is_other || has_resolved(found));
        }
        lasts.insert(cluster, (last.and_then(|last| last.succeeded), digest));
    }
    if is_new {
        let kept = keep(state, settings, &report.without_unchanged())?;
        if is_news {
            tell(&kept)?;
        }
    }
    interrupted::told(state, report);
    for (cluster, (succeeded, digest)) in lasts {
        let names: [&str; 2] = [&report.sync, cluster];
        let found = &report.clusters[cluster];
        keep_compared(state, report, cluster, found)?;
        // Where a report is about a part, the rest stands as it was.
        let before = if report.partial { LAST.read(state, &names) } else { None };
        let before = before.and_then(|mut last| last.report.clusters.remove(cluster));
        let whole = report.alone(cluster, found.clone().over(before.as_ref()));
        let is_success = !report.partial && report.is_of_source() && whole.exit_code() == 0;
        let succeeded = if is_success { Some(report.finished) } else { succeeded };
        LAST.write(state, &names, &Last { digest, report: whole, succeeded })?;
    }
    Ok(is_new)
}

/// Adds a report of an earlier round to the history, as if it had been kept in its time; the last report stays. What was said
/// already of the round on other clusters stays, too. `tell` leaves word for others. Returns whether it was added: not where the
/// round has told of itself.
pub(crate) fn add(
    state: &State,
    settings: &Settings<'_>,
    report: &Report,
    tell: impl FnOnce(&Path) -> Result<(), StateError>,
) -> Result<bool, StateError> {
    let file = settings.dir.join(format!("{}.{}", file_stem(report), ReportFormat::Json.extension()));
    let before = state.read(&file)?.and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok());
    let mut report = report.clone();
    if let Some(before) = before {
        if before.cause != report.cause {
            return Ok(false);
        }
        report.clusters = before.clusters.into_iter().chain(report.clusters).collect();
    }
    tell(&keep(state, settings, &report)?)?;
    Ok(true)
}

/// Writes a report into the history; it says nothing of what is as it should be.
fn keep(state: &State, settings: &Settings<'_>, report: &Report) -> Result<PathBuf, StateError> {
    let path = |form: ReportFormat| settings.dir.join(format!("{}.{}", file_stem(report), form.extension()));
    for form in forms(settings) {
        let mut bytes = Vec::new();
        form.write(report, &mut bytes).map_err(|error| StateError::Write(path(form), error))?;
        state.write(path(form), &bytes)?;
    }
    Ok(path(ReportFormat::Json))
}

fn forms(settings: &Settings<'_>) -> BTreeSet<ReportFormat> {
    settings.formats.iter().copied().chain([ReportFormat::Json]).collect()
}

/// Writes a report of one cluster where the newest one is looked for, if it says something new or none is there.
///
/// That it cannot be written keeps nothing else from being told.
fn show(settings: &Settings<'_>, (report, cluster, found): (&Report, &str, &ClusterReport), is_new: bool) {
    let Some(folder) = settings.latest else { return };
    for form in forms(settings) {
        let path = folder.join(format!("{}.{cluster}.{}", report.sync, form.extension()));
        if !is_new && path.exists() {
            continue;
        }
        let mut bytes = Vec::new();
        let whole = report.alone(cluster, found.clone());
        let written = form.write(&whole, &mut bytes).map_err(|error| StateError::Write(path.clone(), error));
        if let Err(error) = written.and_then(|()| share_file(&path, &bytes)) {
            tracing::error!(error = %Chain(&error), "cannot write the newest report");
        }
    }
}

/// The file of a report is named as the round is.
fn file_stem(report: &Report) -> String {
    if !report.run.is_empty() {
        return report.run.clone();
    }
    let clusters: Vec<&str> = report.clusters.keys().map(String::as_str).collect();
    runs::name(report.started, &report.sync, &clusters)
}

/// That something is gone is said once. That something is new is said by the report itself, and that it is still there
/// by nobody.
fn has_resolved(cluster: &ClusterReport) -> bool {
    cluster.trend.as_ref().is_some_and(|trend| !trend.resolved.is_empty())
}

/// That something has come or gone, or that there was no report before.
fn is_news(cluster: &ClusterReport) -> bool {
    let Some(trend) = &cluster.trend else { return true };
    trend.against.is_none() || trend.new > 0 || !trend.resolved.is_empty()
}

/// Returns a digest of what a report says apart from when: a round that changes nothing says the same as the one
/// before.
fn content_digest(report: Report) -> String {
    let (started, finished) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    let mut timeless = Report { started, finished, run: String::new(), ..undated(report) };
    for cluster in timeless.clusters.values_mut() {
        cluster.next_probe = None;
    }
    // Pods come and go by themselves.
    for unit in timeless.clusters.values_mut().flat_map(|cluster| &mut cluster.units) {
        (unit.pods, unit.unawaited) = (None, None);
    }
    digest(&serde_json::to_vec(&timeless).unwrap_or_default())
}

/// Returns the reports of the history, the newest first; of one sync, or of all. A file is read when it is asked for, and
/// one that cannot be read is without a report.
pub(crate) fn history(folder: &Path, sync: Option<&str>) -> impl Iterator<Item = (PathBuf, Option<Report>)> {
    let files = files(folder).into_iter().map(|path| {
        let report = read(&path);
        (path, report)
    });
    files.filter(move |(_, report)| sync.is_none_or(|sync| report.as_ref().is_none_or(|report| report.sync == sync)))
}

/// Returns the reports of the history of a sync and on a cluster, or of all, the newest first, each with its name; only those
/// before the one of a name, if there is one. Of others no more is read than the names of their files.
pub(crate) fn history_of(
    folder: &Path,
    (sync, cluster): (Option<&str>, Option<&str>),
    before: Option<&str>,
) -> impl Iterator<Item = (String, Report)> {
    let is_meant = |wanted: Option<&str>, name: Option<&str>| wanted.is_none() || name.is_none() || wanted == name;
    let stems = files(folder).into_iter().filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)));
    let is_named = move |(name, _): &(String, PathBuf)| {
        let about = name.split_once("Z-").map(|(_, about)| about);
        // Without the name of a cluster it is about several.
        let of = about.map(|about| about.split_once('.').map_or(about, |(of, _)| of));
        let on = about.and_then(|about| about.split_once('.')).map(|(_, on)| on);
        is_meant(sync, of) && is_meant(cluster, on) && before.is_none_or(|before| name.as_str() < before)
    };
    let is_about = move |report: &Report| {
        sync.is_none_or(|sync| report.sync == sync) && cluster.is_none_or(|it| report.clusters.contains_key(it))
    };
    let reports = stems.filter(is_named).filter_map(|(name, path)| Some((name, read(&path)?)));
    reports.filter(move |(_, report)| is_about(report))
}

/// Returns the files of the history, the newest first. Each is named as its round is.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// Reads a report of the history; nothing if it cannot be read, or is none.
pub(crate) fn read(path: &Path) -> Option<Report> {
    // Others may write into this folder, and whoever reads a pipe may wait for ever.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Deletes the reports that are older than the settings say, and the oldest of what is too much, at the end of a round.
pub(crate) fn expire(state: &State, settings: &Settings<'_>, finished: Timestamp) {
    if !state.may_expire() {
        return;
    }
    let now = timekeeping::last_believed(state, finished);
    // The forms of a report are files that differ in their extension alone.
    let mut reports: BTreeMap<String, (u64, Vec<PathBuf>)> = BTreeMap::new();
    for entry in fs::read_dir(settings.dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_run(&name) {
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            let (bytes, files) = reports.entry(stem.to_owned()).or_default();
            *bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            files.push(entry.path());
        }
    }
    let sizes = reports.iter().rev().map(|(stem, (bytes, _))| (stem.as_str(), *bytes));
    for stem in expired(sizes, now, (settings.keep, settings.max_bytes)) {
        for file in &reports[stem].1 {
            let _changing = state.changing(file);
            drop(fs::remove_file(file));
            state.touched(file);
        }
    }
}
