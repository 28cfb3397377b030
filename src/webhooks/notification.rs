//! The notification that others get of a report: who it is about, what is new and what is gone, and where all of it can
//! be read.
//!
//! It names and counts; values of fields are in no notification. Its form is versioned by [`SCHEMA`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::counted;
use jiff::Timestamp;
use serde::Serialize;

use super::gather::Progress;
use crate::basics::sanitize;
use crate::report::finding::{self, Finding, Kind};
use crate::report::trend::{Gone, Summary};
use crate::report::{ClusterState, Mode, Report, blast, named, warnings};

/// The version of this form.
pub(crate) const SCHEMA: &str = "gatewright.dev/notification/v1alpha1";

/// The most findings that are named in each list.
const MOST_FINDINGS: usize = 30;

/// The most clusters that are named with each finding.
const MOST_PLACES: usize = 10;

/// The most warnings that are told.
const MOST_WARNINGS: usize = 20;

/// The most clusters that are named.
const MOST_CLUSTERS: usize = 200;

/// The length of a text that others have written, in bytes.
const LONGEST: usize = 300;

/// The notification that others get of a report.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    /// The version of this form.
    pub schema: &'static str,
    /// The name of the report, by which two deliveries of one notification are known.
    pub id: String,
    /// When the round ended.
    pub time: Timestamp,
    /// In one line, for people.
    pub text: String,
    /// The sync.
    pub sync: String,
    /// The source.
    pub source: String,
    /// The revision that was in force.
    pub revision: String,
    /// Whether anything was to be changed.
    pub mode: Mode,
    /// The name of the round, by which it can be undone, if it was to change something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The reason why a person asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// As `gatewright sync --detailed-exitcode` would exit.
    pub exit_code: u8,
    /// Objects by action: those that were changed, or that differ.
    pub counts: BTreeMap<String, usize>,
    /// The progress of the sync on all its clusters, where the round was about one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The number of clusters in each state.
    pub states: BTreeMap<&'static str, usize>,
    /// The clusters and how the round ended there; of many the first ones by name.
    pub clusters: BTreeMap<String, ClusterState>,
    /// The warnings, to be known first: what could not be looked at, what is held, what is wrong with the source.
    pub warnings: Vec<String>,
    /// Findings that were not there in the report before.
    pub new: Findings,
    /// Findings that were there, and are gone.
    pub resolved: Findings,
    /// The number of findings that were there before and still are.
    pub still: usize,
    /// The number of findings that were there before and could not be looked at.
    pub unseen: usize,
    /// The path at which the whole report is kept on this host, as JSON.
    pub report: PathBuf,
}

/// A list that may be too long to be told whole.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Findings {
    /// The number of findings.
    pub count: usize,
    /// Some of them, or all.
    pub findings: Vec<Told>,
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Told {
    /// Its subject.
    pub kind: Kind,
    /// The clusters; none for what is wrong with the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// The object, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// The finding, in words.
    pub what: String,
    /// Since which report.
    pub since: Timestamp,
}

impl Notification {
    /// Says of a kept report what others are to know.
    pub(crate) fn of(report: &Report, kept: &Path) -> Self {
        let trend = Summary::of(std::slice::from_ref(report));
        let mut states = BTreeMap::new();
        for cluster in report.clusters.values() {
            *states.entry(cluster.state.word()).or_default() += 1;
        }
        let clusters = report.clusters.iter().take(MOST_CLUSTERS);
        Self {
            schema: SCHEMA,
            id: kept.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            time: report.finished,
            text: text(report, &trend),
            sync: report.sync.clone(),
            source: report.source.clone(),
            revision: cut(&report.revision),
            mode: report.mode,
            run: Some(report.run.clone()).filter(|run| !run.is_empty()),
            cause: report.cause.as_deref().map(cut),
            exit_code: report.detailed_exit_code(),
            counts: report.counts().into_iter().map(|(action, number)| (action.to_owned(), number)).collect(),
            progress: None,
            states,
            clusters: clusters.map(|(name, cluster)| (name.clone(), cluster.state)).collect(),
            warnings: warnings::lines(report).iter().take(MOST_WARNINGS).map(|line| cut(line)).collect(),
            new: Findings { count: trend.new, findings: new(report) },
            resolved: Findings { count: Gone::number(&trend.resolved), findings: gone(&trend.resolved) },
            still: trend.still,
            unseen: Gone::number(&trend.unseen),
            report: kept.to_owned(),
        }
    }

    /// Adds how far the sync has come on all its clusters.
    pub(crate) fn at(mut self, progress: Progress) -> Self {
        let count = |number: usize, what: &str| (number > 0).then(|| format!(", {number} {what}"));
        let Progress { clusters, through, waiting, wrong, is_finished } = progress;
        let open = clusters.saturating_sub(through + waiting + wrong);
        let more = [count(waiting, "waiting"), count(wrong, "with something wrong"), count(open, "not looked at yet")];
        let end = if is_finished { "finished: " } else { "" };
        let more = more.into_iter().flatten().collect::<String>();
        self.text = format!("{}; {end}through on {through} of {clusters} clusters{more}", self.text);
        self.progress = Some(progress);
        self
    }

    /// Returns what is sent: JSON in which nothing can move a cursor.
    ///
    /// # Errors
    /// None that is known: a notification is plain data.
    pub(crate) fn body(&self) -> serde_json::Result<String> {
        sanitize::json(self)
    }
}

/// Says in one line what a person wants to know first.
fn text(report: &Report, trend: &Summary) -> String {
    let clusters: Vec<String> = report.clusters.keys().cloned().collect();
    let mut parts = Vec::new();
    if let Some(suspension) = &report.suspended {
        parts.push(cut(&suspension.words()));
    }
    if report.stale_source.is_some() {
        parts.push(format!("source {} could not be read", report.source));
    }
    if !report.problems.is_empty() {
        parts.push(counted(report.problems.iter().map(|it| &it.problem)));
    }
    for state in [ClusterState::Unreachable, ClusterState::Failed, ClusterState::Stopped, ClusterState::Held] {
        let is = report.clusters.iter().filter(|(_, cluster)| cluster.state == state);
        let names: Vec<String> = is.map(|(name, _)| name.clone()).collect();
        if !names.is_empty() {
            parts.push(format!("{}: {}", state.word(), named(&names)));
        }
    }
    parts.extend(blast::blast(report));
    if parts.is_empty() {
        parts.push(if report.mode == Mode::Apply { "nothing to change" } else { "nothing differs" }.to_owned());
    }
    let resolved = Gone::number(&trend.resolved);
    parts.push(format!("{} new, {} still there, {resolved} resolved", trend.new, trend.still));
    format!("{} on {}: {}", report.sync, named(&clusters), parts.join("; "))
}

/// Lists what no report before had; the same on several clusters once.
fn new(report: &Report) -> Vec<Told> {
    let mut all: BTreeMap<String, Told> = BTreeMap::new();
    for (name, cluster) in &report.clusters {
        let time = cluster.trend.as_ref().map_or(report.started, |trend| trend.time);
        for (id, found) in finding::on(report, name) {
            let time = if found.kind.is_of_source() { report.started } else { time };
            if found.since < time || (all.len() >= MOST_FINDINGS && !all.contains_key(&id)) {
                continue;
            }
            let is_of_source = found.kind.is_of_source();
            let told = all.entry(id).or_insert_with(|| Told::of(&found, &[]));
            if !is_of_source && told.clusters.len() < MOST_PLACES {
                told.clusters.push(name.clone());
            }
        }
    }
    all.into_values().collect()
}

fn gone(all: &[Gone]) -> Vec<Told> {
    let told = all.iter().map(|gone| Told::of(&gone.finding, &gone.clusters));
    told.take(MOST_FINDINGS).collect()
}

impl Told {
    fn of(finding: &Finding, clusters: &[String]) -> Self {
        let Finding { kind, object, what, since, .. } = finding;
        let clusters = clusters.iter().take(MOST_PLACES).cloned().collect();
        Self { kind: *kind, clusters, object: object.clone(), what: cut(what), since: *since }
    }
}

/// Makes a text harmless and not too long.
fn cut(text: &str) -> String {
    let text = sanitize::line(text);
    if text.len() <= LONGEST {
        return text.into_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use gatewright_engine::plan::Plan;

    use super::*;
    use crate::report::action::StepAction;
    use crate::report::trend::date;
    use crate::report::{ClusterReport, StepReport};

    /// The size limit that the documentation promises, in bytes.
    const LARGEST: usize = 128 * 1024;

    fn kept() -> PathBuf {
        "/reports/20261120T060000.000Z-edge.json".into()
    }

    fn report(clusters: usize, steps: usize, name: &str) -> Report {
        let step = |number: usize| {
            let id = |kind: &str| ObjectId::new(&"g".repeat(60), kind, &"n".repeat(63), &format!("{name}{number}"));
            StepReport::new(id("Gateway"), id(&"k".repeat(63)), StepAction::Missing, None)
        };
        let mut cluster = ClusterReport::of(&Plan::default());
        cluster.state = ClusterState::Compared;
        cluster.steps = (0..steps).map(step).collect();
        let clusters = (0..clusters).map(|number| (format!("{}{number}", "c".repeat(36)), cluster.clone()));
        Report { clusters: clusters.collect(), ..Report::about(("edge", "specs"), Mode::Report, Timestamp::UNIX_EPOCH) }
    }

    #[test]
    fn a_notification_is_never_large() {
        let mut large = report(300, 40, &"\"".repeat(250));
        let mut before = report(300, 40, &"\\".repeat(250));
        date(&mut before, |_| None);
        date(&mut large, |_| Some(before.clone()));
        large.clusters.values_mut().for_each(|cluster| cluster.notes = vec!["\u{202e}ä\"\\".repeat(1000)]);
        let large = Notification::of(&large, &kept());
        assert_eq!((large.new.count, large.resolved.count), (300 * 40, 300 * 40));
        assert_eq!((large.new.findings.len(), large.resolved.findings.len()), (MOST_FINDINGS, MOST_FINDINGS));
        let body = large.body().expect("it is plain data");
        assert!(body.len() < LARGEST, "{} bytes", body.len());
        assert!(large.text.len() < 1000, "{}", large.text);
    }

    #[test]
    fn what_is_the_same_on_several_clusters_is_told_once() {
        let mut report = report(2, 1, "edge");
        date(&mut report, |_| None);
        let told = Notification::of(&report, &kept());
        assert_eq!((told.new.count, told.new.findings.len(), told.new.findings[0].clusters.len()), (2, 1, 2));
        assert_eq!((told.id.as_str(), told.exit_code), ("20261120T060000.000Z-edge", 2));
    }
}
