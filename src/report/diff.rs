//! One state of the fleet compared with an earlier one: what is new, still there and resolved, by sync and cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gatewright_engine::text::count;
use serde::Serialize;

use super::Report;
use super::finding::Finding;
use super::trend::{Change, change, known, time};

/// The differences between two states, by sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportDiff {
    /// The syncs of either.
    pub syncs: BTreeMap<String, OfSync>,
}

/// The differences of one sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfSync {
    /// The findings about its source.
    pub source: Change,
    /// The findings on clusters.
    pub clusters: BTreeMap<String, Change>,
    /// Clusters of which only the newer state says anything: all is new there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Clusters of which the newer state says nothing any more: nothing is resolved there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Compares two states; each has a sync on a cluster at most once.
pub fn diff(old: &[Report], new: &[Report]) -> ReportDiff {
    let mut found = ReportDiff::default();
    let places: BTreeSet<(&str, &str)> = old.iter().chain(new).flat_map(places).collect();
    for (sync, cluster) in places {
        let of = found.syncs.entry(sync.to_owned()).or_default();
        let (before, now) = (find(old, sync, cluster), find(new, sync, cluster));
        let findings = before.map(|before| known(before, cluster)).unwrap_or_default();
        if before.is_none() {
            of.added.push(cluster.to_owned());
        }
        let change = if let Some(now) = now {
            change(findings, now, cluster)
        } else {
            of.missing.push(cluster.to_owned());
            Change { unseen: findings.into_values().collect(), ..Change::default() }
        };
        of.add(cluster, change);
    }
    found
}

fn places(report: &Report) -> impl Iterator<Item = (&str, &str)> {
    report.clusters.keys().map(|cluster| (report.sync.as_str(), cluster.as_str()))
}

fn find<'a>(reports: &'a [Report], sync: &str, cluster: &str) -> Option<&'a Report> {
    reports.iter().find(|report| report.sync == sync && report.clusters.contains_key(cluster))
}

impl OfSync {
    /// Adds what has become of a cluster; what is about the source is told once.
    fn add(&mut self, cluster: &str, change: Change) {
        let split = |all: Vec<Finding>| -> (Vec<Finding>, Vec<Finding>) {
            all.into_iter().partition(|finding| finding.kind.is_of_source())
        };
        let (new, still) = (split(change.new), split(change.still));
        let (resolved, unseen) = (split(change.resolved), split(change.unseen));
        let own = Change { new: new.1, still: still.1, resolved: resolved.1, unseen: unseen.1 };
        self.clusters.insert(cluster.to_owned(), own);
        let of_source = Change { new: new.0, still: still.0, resolved: resolved.0, unseen: unseen.0 };
        self.source = std::mem::take(&mut self.source).and(of_source);
    }
}

impl Change {
    /// Puts together what two clusters say of their source: what was there on one of them is not new.
    fn and(self, other: Self) -> Self {
        let mut taken = BTreeSet::new();
        let mut distinct = |a: Vec<Finding>, b: Vec<Finding>| -> Vec<Finding> {
            let mut by_id: BTreeMap<String, Finding> = BTreeMap::new();
            for finding in a.into_iter().chain(b).filter(|finding| !taken.contains(&finding.id)) {
                let known = by_id.entry(finding.id.clone()).or_insert_with(|| finding.clone());
                known.since = known.since.min(finding.since);
            }
            taken.extend(by_id.keys().cloned());
            by_id.into_values().collect()
        };
        let still = distinct(self.still, other.still);
        let new = distinct(self.new, other.new);
        let unseen = distinct(self.unseen, other.unseen);
        let resolved = distinct(self.resolved, other.resolved);
        Self { new, still, resolved, unseen }
    }

    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.still.is_empty() && self.resolved.is_empty() && self.unseen.is_empty()
    }
}

impl ReportDiff {
    /// Tells whether anything is new.
    pub fn has_new(&self) -> bool {
        self.changes().any(|change| !change.new.is_empty())
    }

    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.syncs.values().flat_map(|sync| sync.clusters.values().chain([&sync.source]))
    }

    /// Writes it for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, sync) in &self.syncs {
            out += &changes(&format!("sync {name}, source"), &sync.source, "");
            for (cluster, change) in &sync.clusters {
                let note = match cluster {
                    cluster if sync.added.contains(cluster) => " (only in the newer one)",
                    cluster if sync.missing.contains(cluster) => " (only in the older one)",
                    _ => "",
                };
                out += &changes(&format!("sync {name}, cluster {cluster}"), change, note);
            }
        }
        let number = |of: fn(&Change) -> usize| self.changes().map(of).sum::<usize>();
        let (new, still) = (number(|change| change.new.len()), number(|change| change.still.len()));
        let unseen = match number(|change| change.unseen.len()) {
            0 => String::new(),
            unseen => format!(", {unseen} not looked at"),
        };
        let resolved = number(|change| change.resolved.len());
        // Writing to a string does not fail.
        let _ =
            writeln!(out, "{} compared: {new} new, {still} still there{unseen}, {resolved} resolved", self.places());
        out
    }

    fn places(&self) -> String {
        count(self.syncs.values().map(|sync| sync.clusters.len()).sum(), "cluster")
    }
}

fn changes(title: &str, change: &Change, note: &str) -> String {
    if change.is_empty() && note.is_empty() {
        return String::new();
    }
    let mut out = format!("{title}{note}\n");
    let all = [
        ("new", &change.new),
        ("still there", &change.still),
        ("not looked at", &change.unseen),
        ("resolved", &change.resolved),
    ];
    for (word, finding) in all.iter().flat_map(|(word, all)| all.iter().map(move |finding| (word, finding))) {
        let what = crate::basics::sanitize::line(&finding.what);
        // Writing to a string does not fail.
        let _ = match *word {
            "new" => writeln!(out, "  {word}: {what}"),
            word => writeln!(out, "  {word}: {what} (since {})", time(finding.since)),
        };
    }
    out.push('\n');
    out
}
