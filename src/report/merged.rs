//! The last reports of a sync on its clusters, put together: what is the same on several clusters stands there once.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::problem::Problem;
use jiff::Timestamp;

use super::{ClusterReport, ClusterState, Failure, Mode, ProblemReport, Report, Unclaimed};

/// Reports that nothing is known of a sync on some clusters, because there was no round yet.
pub fn unknown(sync: (&str, &str), clusters: &[&str], mode: Mode, now: Timestamp) -> Report {
    let error = Failure {
        message: "nothing is known, because there was no round yet".to_owned(),
        hint: Some(format!("is the daemon running? `gatewright plan {}` looks now", sync.0)),
    };
    let cluster = ClusterReport { state: ClusterState::Unknown, error: Some(error), ..ClusterReport::default() };
    let clusters = clusters.iter().map(|name| ((*name).to_owned(), cluster.clone())).collect();
    Report { clusters, ..Report::about(sync, mode, now) }
}

/// Makes one report of those that have the same revision, mode, source and suspension; the newest is the first.
pub fn merged(reports: impl IntoIterator<Item = Report>) -> Vec<Report> {
    let mut groups: Vec<Vec<Report>> = Vec::new();
    for report in reports {
        match groups.iter_mut().find(|group| is_alike(&group[0], &report)) {
            Some(group) => group.push(report),
            None => groups.push(vec![report]),
        }
    }
    let mut all: Vec<Report> = groups.into_iter().filter_map(one).collect();
    all.sort_by(|a, b| (&a.sync, b.finished, &a.revision).cmp(&(&b.sync, a.finished, &b.revision)));
    all
}

fn is_alike(a: &Report, b: &Report) -> bool {
    let is_about_the_same = (&a.sync, &a.source, &a.revision, a.mode) == (&b.sync, &b.source, &b.revision, b.mode);
    is_about_the_same && a.suspended == b.suspended && a.cause == b.cause && a.partial == b.partial
}

/// Makes one report of a group.
fn one(mut group: Vec<Report>) -> Option<Report> {
    group.sort_by_key(|report| report.finished);
    let newest = group.last()?.clone();
    let is_same_run = group.iter().all(|report| report.run == newest.run);
    let run = if is_same_run { newest.run.clone() } else { String::new() };
    let started = group.iter().map(|report| report.started).min().unwrap_or(newest.started);
    // What is true of the source was seen last by the newest.
    let stale = group.iter().filter(|report| report.stale_source.is_some()).filter_map(|report| report.stale_since);
    let stale_since = stale.min().filter(|_| newest.stale_source.is_some());
    let problems = problems(&group);
    let unclaimed: BTreeSet<Unclaimed> = group.iter().flat_map(|report| report.unclaimed.clone()).collect();
    let clusters = group.into_iter().flat_map(|report| report.clusters).collect();
    let unclaimed = unclaimed.into_iter().collect();
    Some(Report { run, stale_since, started, problems, unclaimed, clusters, ..newest })
}

/// Each problem once, with the clusters on which it is; without them if it is on all.
fn problems(group: &[Report]) -> Vec<ProblemReport> {
    let mut found: BTreeMap<&Problem, (BTreeSet<&String>, Option<Timestamp>)> = BTreeMap::new();
    for report in group {
        for ProblemReport { problem, since, .. } in &report.problems {
            let (_, known) = found.entry(problem).or_insert((BTreeSet::new(), *since));
            *known = (*known).into_iter().chain(*since).min();
        }
        for (name, problem) in report.clusters.keys().flat_map(|name| report.problems.iter().map(move |it| (name, it)))
        {
            if problem.is_on(name)
                && let Some((clusters, _)) = found.get_mut(&problem.problem)
            {
                clusters.insert(name);
            }
        }
    }
    let all: BTreeSet<&String> = group.iter().flat_map(|report| report.clusters.keys()).collect();
    let everywhere = |on: BTreeSet<&String>| if on == all { Vec::new() } else { on.into_iter().cloned().collect() };
    // A report of several clusters may have been kept for one that does not have all of its problems.
    let found = found.into_iter().filter(|(_, (clusters, _))| !clusters.is_empty());
    let report = |(problem, (clusters, since)): (&Problem, (BTreeSet<&String>, Option<Timestamp>))| ProblemReport {
        problem: problem.clone(),
        clusters: everywhere(clusters),
        since,
    };
    found.map(report).collect()
}

impl Report {
    /// Speaks of a cluster by another name.
    pub(crate) fn rename_cluster(&mut self, old: &str, new: &str) {
        if let Some(found) = self.clusters.remove(old) {
            self.clusters.insert(new.to_owned(), found);
        }
        let named = self.problems.iter_mut().map(|problem| &mut problem.clusters).chain(&mut self.waves);
        for name in named.flatten().filter(|name| *name == old) {
            new.clone_into(name);
        }
    }
}
