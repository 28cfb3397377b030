//! The findings that have come, stayed and gone from one report to the next.
//!
//! Each cluster is compared with the last report of its sync there. A round that could not look resolves nothing: what
//! was known stays known, with the time since which it is.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Scope;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::finding::{self, Finding, Findings, Kind};
use super::{ClusterReport, ClusterState, Mode, Report, UnitState, named};

/// The findings that have come and gone on a cluster since the report before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// The time of this report: what is known since then is new.
    pub time: Timestamp,
    /// The time of the report that it is compared with; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Timestamp>,
    /// The number of new findings.
    pub new: usize,
    /// The number of findings that were there before.
    pub still: usize,
    /// Findings that were known before, and could not be looked at this time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Finding>,
    /// Findings that were there before, and are not any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<Finding>,
}

/// The changes of findings from one report to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Findings that were not there before.
    pub new: Vec<Finding>,
    /// Findings that were there before, each with the time when it was seen first.
    pub still: Vec<Finding>,
    /// Findings that are not there any more.
    pub resolved: Vec<Finding>,
    /// Findings that could not be looked at.
    pub unseen: Vec<Finding>,
}

/// Compares what a report says of a cluster with what was known before.
pub fn change(before: Findings, report: &Report, name: &str) -> Change {
    let (mut now, mut change) = (finding::on(report, name), Change::default());
    let seen = report.clusters.get(name).map(|cluster| Seen { report, cluster });
    for (id, old) in before {
        match now.remove(&id) {
            Some(found) => change.still.push(Finding { since: old.since.min(found.since), ..found }),
            None if seen.as_ref().is_some_and(|seen| seen.has_seen(&old)) => change.resolved.push(old),
            None => change.unseen.push(old),
        }
    }
    change.new.extend(now.into_values());
    change
}

/// Returns all that is known of a cluster after a report, what it could not look at included.
pub fn known(report: &Report, name: &str) -> Findings {
    let mut known = finding::on(report, name);
    let trend = report.clusters.get(name).and_then(|cluster| cluster.trend.as_ref());
    for unseen in trend.iter().flat_map(|trend| &trend.unseen) {
        known.entry(unseen.id.clone()).or_insert_with(|| unseen.clone());
    }
    known
}

/// Compares a report with the last one on each of its clusters, and writes into it since when everything is known.
///
/// What an undo or a rollback would do is no finding, because it is not what the source wants.
pub fn date(report: &mut Report, last: impl Fn(&str) -> Option<Report>) {
    if !report.is_of_source() && report.mode == Mode::Plan {
        return;
    }
    let mut of_source: BTreeMap<String, Timestamp> = BTreeMap::new();
    let names: Vec<String> = report.clusters.keys().cloned().collect();
    let mut dated = Vec::new();
    for name in names {
        let last = last(&name);
        let against = last.as_ref().map(|last| last.started);
        let change = change(last.map(|last| known(&last, &name)).unwrap_or_default(), report, &name);
        let mut since = BTreeMap::new();
        for Finding { kind, id, since: time, .. } in change.new.iter().chain(&change.still) {
            since.insert(id.clone(), *time);
            if kind.is_of_source() {
                let known = of_source.entry(id.clone()).or_insert(*time);
                *known = (*known).min(*time);
            }
        }
        let Change { new, still, unseen, resolved } = change;
        let trend = Trend { time: report.started, against, new: new.len(), still: still.len(), unseen, resolved };
        dated.push((name, since, trend));
    }
    for (name, since, trend) in dated {
        let Some(cluster) = report.clusters.get_mut(&name) else { continue };
        // What is told again of a suspended sync keeps the time that it had.
        if cluster.state != ClusterState::Suspended {
            cluster.date(&since);
        }
        cluster.trend = Some(trend);
    }
    report.date_source(&of_source);
}

/// Returns a report without what a comparison has written into it.
pub fn undated(mut report: Report) -> Report {
    let none = BTreeMap::new();
    for cluster in report.clusters.values_mut() {
        cluster.date(&none);
        cluster.trend = None;
    }
    report.date_source(&none);
    report
}

/// The part of a cluster that a round has looked at.
struct Seen<'a> {
    report: &'a Report,
    cluster: &'a ClusterReport,
}

impl Seen<'_> {
    /// Tells whether a finding would be in the report if it still were there.
    fn has_seen(&self, finding: &Finding) -> bool {
        let Self { report, cluster } = self;
        let has_looked = !matches!(cluster.state, ClusterState::Stopped | ClusterState::Suspended);
        let is_about = match &finding.unit {
            None => !report.partial,
            Some(unit) => (!report.partial || self.is_among(unit)) && !self.passes_by(unit),
        };
        let could_see = report.is_of_source() && self.is_complete() && is_about;
        match finding.kind {
            Kind::Cluster => has_looked && cluster.state != ClusterState::Unknown,
            Kind::Source => has_looked && report.is_of_source() && !report.partial,
            Kind::Problem => could_see && !self.unreadable().any(|file| finding.is_in(file)),
            Kind::Hold | Kind::Refusal => could_see,
            Kind::Unit => could_see && self.has_proven(finding),
            // Of what is refused now nobody knows whether it still differs.
            Kind::Step => {
                could_see && !cluster.refusals.iter().any(|refusal| finding.object.as_ref() == Some(&refusal.id))
            }
        }
    }

    /// Tells whether the round got far enough to see everything that it was about.
    fn is_complete(&self) -> bool {
        match self.cluster.state {
            ClusterState::Done | ClusterState::Planned | ClusterState::Compared | ClusterState::Held => {
                !self.cluster.is_elsewhere()
            }
            // Single steps have failed, or all of it has.
            ClusterState::Failed => self.cluster.error.is_none(),
            ClusterState::Unreachable | ClusterState::Stopped | ClusterState::Suspended | ClusterState::Unknown => {
                false
            }
        }
    }

    /// Tells whether the round was about a unit, where it was about a part.
    fn is_among(&self, unit: &ObjectId) -> bool {
        let units = self.cluster.units.iter().map(|report| &report.unit);
        let units = units.chain(self.cluster.steps.iter().map(|step| &step.unit));
        units.chain(self.cluster.refusals.iter().map(|refusal| &refusal.unit)).any(|known| known == unit)
    }

    /// The files that could not be read: in one of them there may be any mistake.
    fn unreadable(&self) -> impl Iterator<Item = &str> {
        let problems = self.report.problems.iter().map(|report| &report.problem);
        problems.filter(|problem| problem.scope == Scope::File).map(|problem| &*problem.place.file)
    }

    /// Of a unit whose spec is broken or may stand in a file that cannot be read, and of one that is only refused,
    /// nobody knows how it is.
    fn passes_by(&self, unit: &ObjectId) -> bool {
        let is_reported = self.cluster.units.iter().any(|report| report.unit == *unit && !report.unrendered);
        let is_refused = self.cluster.refusals.iter().any(|refusal| refusal.unit == *unit);
        self.cluster.broken.contains(unit) || (!is_reported && (is_refused || self.unreadable().next().is_some()))
    }

    /// Tells whether a unit that was sick has been seen to be well, or to be gone.
    fn has_proven(&self, finding: &Finding) -> bool {
        let Some(unit) = self.cluster.units.iter().find(|report| Some(&report.unit) == finding.unit.as_ref()) else {
            return self.report.mode != Mode::Report;
        };
        match unit.state {
            UnitState::Pruned => true,
            UnitState::Current | UnitState::Changed | UnitState::Unhealthy => {
                self.report.mode != Mode::Report && (unit.unawaited.is_none() || finding.is_of_failure())
            }
            // It is not tried again, or not done with.
            UnitState::Pending | UnitState::Different | UnitState::Held | UnitState::Failed => false,
        }
    }
}

/// The numbers of findings that have come and gone in a report; what is wrong with the source counts once, not on each
/// cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of new findings.
    pub new: usize,
    /// The number of findings that were there before.
    pub still: usize,
    /// Findings that are gone.
    pub resolved: Vec<Gone>,
    /// Findings that could not be looked at.
    pub unseen: Vec<Gone>,
    /// The oldest of the reports that the clusters were compared with; `None` if there was none.
    pub against: Option<Timestamp>,
}

/// A finding that is gone, or could not be looked at: the same on several clusters stands there once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The finding, with the time when it was there first.
    pub finding: Finding,
    /// The clusters where it was; none for what is wrong with the source.
    pub clusters: Vec<String>,
}

impl Gone {
    /// Returns what it is, where, and since when.
    pub fn words(&self) -> String {
        let on = if self.clusters.is_empty() { String::new() } else { format!("; on {}", named(&self.clusters)) };
        let Finding { what, since, .. } = &self.finding;
        format!("{what}{on} (since {})", time(*since))
    }

    /// Adds it to others.
    fn add_to(all: &mut BTreeMap<String, Self>, cluster: Option<&str>, finding: &Finding) {
        let fresh = || Self { finding: finding.clone(), clusters: Vec::new() };
        let gone = all.entry(finding.id.clone()).or_insert_with(fresh);
        gone.clusters.extend(cluster.map(str::to_owned));
        gone.finding.since = gone.finding.since.min(finding.since);
    }

    /// Counts findings, on each cluster apart.
    pub fn number(all: &[Self]) -> usize {
        all.iter().map(|gone| gone.clusters.len().max(1)).sum()
    }
}

impl Summary {
    /// Sums up reports, each of another sync or revision.
    pub fn of(reports: &[Report]) -> Self {
        let mut all = Self::default();
        for report in reports {
            all.add(report);
        }
        all
    }

    fn add(&mut self, report: &Report) {
        type Place<'a> = (Option<&'a str>, String);
        let (mut there, mut gone, mut unseen) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (name, cluster) in &report.clusters {
            let Some(trend) = &cluster.trend else { continue };
            let place = |kind: Kind, id: &str| -> Place<'_> {
                ((!kind.is_of_source()).then_some(name.as_str()), id.to_owned())
            };
            for (id, finding) in finding::on(report, name) {
                let time = if finding.kind.is_of_source() { report.started } else { trend.time };
                there.insert(place(finding.kind, &id), finding.since >= time);
            }
            gone.extend(trend.resolved.iter().map(|finding| (place(finding.kind, &finding.id), finding)));
            unseen.extend(trend.unseen.iter().map(|finding| (place(finding.kind, &finding.id), finding)));
            self.against = self.against.into_iter().chain(trend.against).min();
        }
        unseen.retain(|place, _| !there.contains_key(place));
        gone.retain(|place, _| !there.contains_key(place) && !unseen.contains_key(place));
        self.new += there.values().filter(|is_new| **is_new).count();
        self.still += there.values().filter(|is_new| !**is_new).count();
        for (places, all) in [(gone, &mut self.resolved), (unseen, &mut self.unseen)] {
            let mut by_name = BTreeMap::new();
            for ((cluster, _), finding) in places {
                Gone::add_to(&mut by_name, cluster, finding);
            }
            all.extend(by_name.into_values());
        }
    }

    /// Says it in a line: `3 new, 12 still there, 2 resolved since 2026-11-20 06:00 UTC`; nothing if nothing is to be
    /// said, or nothing is there to compare with.
    pub fn words(&self) -> Option<String> {
        let against = time(self.against?);
        let (resolved, unseen) = (Gone::number(&self.resolved), Gone::number(&self.unseen));
        if self.new + self.still + resolved + unseen == 0 {
            return None;
        }
        let unseen = if unseen == 0 { String::new() } else { format!(", {unseen} not looked at") };
        Some(format!("{} new, {} still there{unseen}, {resolved} resolved since {against}", self.new, self.still))
    }
}

impl ClusterReport {
    /// Says how much has come and gone: `1 new, 2 still there, 3 resolved`; nothing if nothing has.
    pub fn trend_in_short(&self) -> String {
        let Some(trend) = self.trend.as_ref().filter(|trend| trend.against.is_some()) else { return String::new() };
        let (resolved, unseen) = (trend.resolved.len(), trend.unseen.len());
        let numbers =
            [(trend.new, "new"), (trend.still, "still there"), (resolved, "resolved"), (unseen, "not looked at")];
        let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
        numbers.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
    }

    /// Says since when something is known: `new`, or `since 2026-11-20 06:00 UTC`; nothing if there is nothing to
    /// compare with. Where everything is new it need not be said of each.
    pub fn mark(&self, since: Option<Timestamp>) -> Option<String> {
        let trend = self.trend.as_ref().filter(|trend| trend.against.is_some())?;
        mark(since?, trend.time, trend.still == 0)
    }
}

impl Report {
    /// Says since when something is known that is about the source.
    pub fn mark(&self, since: Option<Timestamp>) -> Option<String> {
        let trends = self.clusters.values().filter_map(|cluster| cluster.trend.as_ref());
        let mut compared = trends.filter(|trend| trend.against.is_some()).peekable();
        compared.peek()?;
        mark(since?, self.started, compared.all(|trend| trend.still == 0))
    }
}

fn mark(since: Timestamp, now: Timestamp, is_all_new: bool) -> Option<String> {
    if since < now {
        return Some(format!("since {}", time(since)));
    }
    (!is_all_new).then(|| "new".to_owned())
}

/// Writes a time as people read it, to the minute.
pub fn time(time: Timestamp) -> String {
    time.strftime("%F %H:%M UTC").to_string()
}
