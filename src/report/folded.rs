//! The folded form of a report: what is the same on several clusters stands there once, with the clusters of which it is
//! true, so that a plan of a fleet reads like one.

mod clusters;
mod printed;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gatewright_engine::diff::Difference;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Hold;
use gatewright_engine::text::digest;
use serde_json::json;

use super::action::StepAction;
use super::unaccepted::Unaccepted;
use super::withheld::{HoldReport, RefusalReport};
use super::{ClusterReport, Report, StepReport, UnitReport};
pub(crate) use clusters::Clusters;
pub(crate) use printed::Printed;

/// The most values of a field that are shown where it has one on each cluster, unless all are to be.
pub(super) const MOST_VALUES: usize = 5;

/// Some clusters, and everything that a report says of each of them and of no other.
pub(crate) struct Paragraph<'a> {
    /// The clusters.
    pub clusters: Clusters<'a>,
    /// The statements that are true of all of them. Of a step the differences that have other values elsewhere are left
    /// out.
    pub part: ClusterReport,
    /// Those differences, by step.
    pub differing: BTreeMap<(ObjectId, StepAction), Vec<Differing<'a>>>,
    /// The report of the first of them, where what it comes to is the same on all.
    pub summary: Option<&'a ClusterReport>,
}

/// A field with other values on one cluster than on another.
pub(crate) struct Differing<'a> {
    /// The path of the field.
    pub path: &'a str,
    /// The values; those of the most clusters first.
    pub values: Vec<(Clusters<'a>, &'a Difference)>,
}

/// One statement of a report about a cluster.
#[derive(Clone, Copy)]
enum Statement<'a> {
    Trouble(&'a ClusterReport),
    Note(&'a String),
    Unaccepted(&'a Unaccepted),
    Hold(&'a HoldReport),
    Lifted(&'a Hold),
    Step(&'a StepReport),
    Refusal(&'a RefusalReport),
    Unit(&'a UnitReport),
    Summary(&'a ClusterReport),
}

/// A statement, and where it is true.
struct Entry<'a> {
    statement: Statement<'a>,
    /// The positions of the clusters, rising.
    on: Vec<usize>,
    /// The differences of a step as they are on these clusters, by a digest of all that is in them.
    variants: BTreeMap<String, (&'a [Difference], Vec<usize>)>,
}

/// Folds a report: changes first, those of the most clusters before the others, then holds, refusals and failures. Each
/// paragraph is made when its turn comes, so that a large report is not in memory twice.
pub(crate) fn fold(report: &Report) -> impl Iterator<Item = Paragraph<'_>> {
    fold_some(report, |_| true)
}

/// Folds what a report says that is news: of an object that stays as it is there is none, unless somebody else writes to its
/// fields. Most objects of a fleet are such.
pub(crate) fn fold_news(report: &Report) -> impl Iterator<Item = Paragraph<'_>> {
    fold_some(report, StepReport::is_news)
}

fn fold_some(report: &Report, is_meant: fn(&StepReport) -> bool) -> impl Iterator<Item = Paragraph<'_>> {
    let names: Vec<&str> = report.clusters.keys().map(String::as_str).collect();
    let mut groups: BTreeMap<Vec<usize>, Vec<Entry<'_>>> = BTreeMap::new();
    for entry in entries(report, is_meant) {
        groups.entry(entry.on.clone()).or_default().push(entry);
    }
    let rank = |entries: &[Entry<'_>]| entries.iter().map(|entry| entry.statement.rank()).min();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_cached_key(|(on, entries)| (rank(entries), Reverse(on.len()), on[0]));
    let reports: Vec<&ClusterReport> = report.clusters.values().collect();
    groups.into_iter().map(move |(on, entries)| paragraph(&names, reports[on[0]], &on, &entries))
}

/// Collects the statements about all clusters, in the order in which they are made.
fn entries(report: &Report, is_meant: fn(&StepReport) -> bool) -> Vec<Entry<'_>> {
    let (mut entries, mut known) = (Vec::<Entry<'_>>::new(), BTreeMap::<String, usize>::new());
    for (position, cluster) in report.clusters.values().enumerate() {
        let is_left_out = |statement: &Statement<'_>| matches!(statement, Statement::Step(step) if !is_meant(step));
        for statement in statements(cluster).filter(|statement| !is_left_out(statement)) {
            let mut key = digest(statement.words(cluster).as_bytes());
            // It is said twice of one cluster.
            while known.get(&key).is_some_and(|entry| entries[*entry].on.last() == Some(&position)) {
                key.push('+');
            }
            let entry = *known.entry(key).or_insert(entries.len());
            if entry == entries.len() {
                entries.push(Entry { statement, on: Vec::new(), variants: BTreeMap::new() });
            }
            entries[entry].on.push(position);
            if let Statement::Step(step) = statement {
                let variant = entries[entry].variants.entry(digest(json!(step.differences).to_string().as_bytes()));
                variant.or_insert((&step.differences, Vec::new())).1.push(position);
            }
        }
    }
    entries
}

fn statements(cluster: &ClusterReport) -> impl Iterator<Item = Statement<'_>> {
    let has_trouble = cluster.error.is_some() || cluster.overdue.is_some();
    let trouble = has_trouble.then_some(Statement::Trouble(cluster));
    let first = trouble.into_iter().chain(cluster.notes.iter().map(Statement::Note));
    let held = cluster.unaccepted.iter().map(Statement::Unaccepted);
    let held = held.chain(cluster.holds.iter().map(Statement::Hold));
    let held = held.chain(cluster.lifted.iter().map(Statement::Lifted));
    let done = cluster.steps.iter().map(Statement::Step).chain(cluster.refusals.iter().map(Statement::Refusal));
    let units = cluster.units.iter().map(Statement::Unit);
    first.chain(held).chain(done).chain(units).chain([Statement::Summary(cluster)])
}

impl Statement<'_> {
    /// Returns all that is said, in a form that is the same only where the words are.
    fn words(&self, cluster: &ClusterReport) -> String {
        match self {
            Self::Trouble(of) => {
                json!(["trouble", of.state, of.error, cluster.mark(of.since), of.overdue])
            }
            Self::Note(note) => json!(["note", note]),
            Self::Unaccepted(of) => json!(["unaccepted", of.message, of.hint, cluster.mark(of.since)]),
            Self::Hold(hold) => json!(["hold", hold_key(hold), cluster.mark(hold.since)]),
            Self::Lifted(hold) => json!(["lifted", hold_key(hold)]),
            Self::Step(step) => {
                let paths: Vec<&str> = step.differences.iter().map(|difference| difference.path.as_str()).collect();
                let what = (&step.unit, &step.id, &step.place, step.action, step.class);
                json!(["step", what, paths, step.fields, step.note, step.outcome, cluster.mark(step.since), step.later])
            }
            Self::Refusal(refusal) => json!(["refusal", refusal.what, cluster.mark(refusal.since)]),
            Self::Unit(unit) => json!(["unit", unit.unit, unit.state, unit.message, cluster.mark(unit.since)]),
            Self::Summary(of) => json!(["summary", of.state, of.changes(), of.unchanged(), of.not_done()]),
        }
        .to_string()
    }

    /// Returns the place of what is said: changes come first, and what keeps them from being made last.
    fn rank(&self) -> u8 {
        match self {
            Self::Step(step) if step.is_change() => 0,
            Self::Step(_) | Self::Note(_) | Self::Lifted(_) | Self::Unit(_) | Self::Summary(_) => 1,
            Self::Hold(_) | Self::Unaccepted(_) => 2,
            Self::Refusal(_) => 3,
            Self::Trouble(_) => 4,
        }
    }
}

/// Describes a hold without what tells two clusters apart where it is the same: uids, and the token for them.
fn hold_key(hold: &Hold) -> serde_json::Value {
    let steps: Vec<_> = hold.steps.iter().map(|step| (&step.id, &step.action)).collect();
    json!([hold.guard, hold.unit, hold.units, hold.message, hold.hint, hold.fleet_token, steps])
}

fn paragraph<'a>(names: &[&'a str], first: &'a ClusterReport, on: &[usize], entries: &[Entry<'a>]) -> Paragraph<'a> {
    let part = ClusterReport { state: first.state, trend: first.trend.clone(), ..ClusterReport::default() };
    let clusters = Clusters::of(names, on);
    let mut paragraph = Paragraph { clusters, part, differing: BTreeMap::new(), summary: None };
    for entry in entries {
        paragraph.add(entry, names);
    }
    paragraph
}

impl<'a> Paragraph<'a> {
    fn add(&mut self, entry: &Entry<'a>, names: &[&'a str]) {
        let part = &mut self.part;
        match entry.statement {
            Statement::Trouble(of) => {
                (part.error, part.since, part.overdue) = (of.error.clone(), of.since, of.overdue.clone());
            }
            Statement::Note(note) => part.notes.push(note.clone()),
            Statement::Unaccepted(of) => part.unaccepted = Some(of.clone()),
            Statement::Hold(hold) => part.holds.push(hold.clone()),
            Statement::Lifted(hold) => part.lifted.push(hold.clone()),
            Statement::Step(step) if entry.variants.len() > 1 => self.add_differing(step, entry, names),
            Statement::Step(step) => part.steps.push(step.clone()),
            Statement::Refusal(refusal) => part.refusals.push(refusal.clone()),
            Statement::Unit(unit) => part.units.push(unit.clone()),
            Statement::Summary(of) => self.summary = Some(of),
        }
    }

    /// Adds a step of which some values are others elsewhere.
    fn add_differing(&mut self, step: &StepReport, entry: &Entry<'a>, names: &[&'a str]) {
        let (mut same, mut differing) = (Vec::new(), Vec::new());
        for (index, difference) in step.differences.iter().enumerate() {
            let mut values: BTreeMap<String, (&'a Difference, Vec<usize>)> = BTreeMap::new();
            for (differences, on) in entry.variants.values() {
                let value = values.entry(json!(differences[index]).to_string());
                value.or_insert((&differences[index], Vec::new())).1.extend(on);
            }
            if values.len() == 1 {
                same.push(difference.clone());
            } else {
                differing.push(Differing::of(values.into_values().collect(), names));
            }
        }
        self.part.steps.push(StepReport { differences: same, ..step.clone() });
        self.differing.insert((step.id.clone(), step.action), differing);
    }

    /// Returns the fields of a step with other values on one of the clusters than on another.
    pub(super) fn differing(&self, step: &StepReport) -> &[Differing<'a>] {
        self.differing.get(&(step.id.clone(), step.action)).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Differing<'a> {
    fn of(mut values: Vec<(&'a Difference, Vec<usize>)>, names: &[&'a str]) -> Self {
        for (_, on) in &mut values {
            on.sort_unstable();
        }
        values.sort_by_cached_key(|(_, on)| (Reverse(on.len()), on[0]));
        let path = values[0].0.path.as_str();
        let values = values.into_iter().map(|(difference, on)| (Clusters::of(names, &on), difference));
        Self { path, values: values.collect() }
    }
}
