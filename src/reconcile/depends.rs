//! Dependencies: a sync changes nothing on a cluster before those that it depends on are through, and healthy.
//!
//! Whether one is through is read from its last report, which this host keeps: a round that wanted all that its source
//! says, at the same revision where both have the same source, with nothing held, refused, failed or unhealthy. What a
//! sync waits for waits for others itself, and these count, too: one with nothing to do says nothing of what it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use gatewright_engine::problem::Scope;
use gatewright_engine::text::count;
use jiff::Timestamp;

use crate::config::Config;
use crate::config::depends::DependsOn;
use crate::history::journal;
use crate::report::{ClusterReport, ClusterState, Mode, NOTHING, Report, StepReport};
use crate::state::{State, suspension};

/// The dependencies between all syncs.
#[derive(Clone, Debug, Default)]
pub struct Dependencies(BTreeMap<String, Node>);

/// One sync among them.
#[derive(Clone, Debug)]
struct Node {
    source: String,
    clusters: BTreeSet<String>,
    /// The syncs that come first.
    first: Vec<(String, Where)>,
}

/// The clusters on which another sync has to be through.
#[derive(Clone, Debug)]
enum Where {
    /// The same one.
    Same,
    /// These.
    On(BTreeSet<String>),
    /// It is not known yet.
    Unknown,
}

/// A sync on a cluster.
type Target<'a> = (&'a str, &'a str);

/// A round that may have to wait for other syncs.
pub struct Waiting {
    /// The dependencies.
    pub dependencies: Arc<Dependencies>,
    /// The knowledge of this host of other rounds.
    pub state: State,
    /// The sync.
    pub sync: String,
    /// The cluster.
    pub cluster: String,
    /// The revision of the round.
    pub revision: String,
    /// The time at which it began.
    pub now: Timestamp,
}

impl Waiting {
    /// Returns the reason to wait, if there is one now.
    pub(crate) fn reason(&self) -> Option<Wait> {
        self.dependencies.reason(&self.state, (&self.sync, &self.cluster), &self.revision, self.now)
    }
}

impl Dependencies {
    /// Collects them. The configuration has no cycle among them.
    pub fn of(config: &Config) -> Arc<Self> {
        let syncs = &config.settings.syncs;
        let node = |(name, sync): (&String, &_)| {
            let clusters = config.clusters_of(sync).into_keys().map(str::to_owned).collect();
            let first = sync.depends_on.iter().map(|it| (it.sync.clone(), Where::of(config, it))).collect();
            (name.clone(), Node { source: sync.source.clone(), clusters, first })
        };
        Arc::new(Self(syncs.iter().map(node).collect()))
    }

    /// Tells whether any sync depends on another one.
    pub(crate) fn is_any(&self) -> bool {
        self.0.values().any(|node| !node.first.is_empty())
    }

    /// Returns how many syncs one depends on, and they on: whoever is waited for has a smaller number.
    pub(crate) fn depth(&self, sync: &str) -> usize {
        self.first_of(sync).len()
    }

    /// Returns the syncs that one depends on, and they on.
    pub(crate) fn first_of<'a>(&'a self, sync: &'a str) -> BTreeSet<&'a str> {
        let (mut all, mut next) = (BTreeSet::new(), vec![sync]);
        while let Some(name) = next.pop() {
            let first = self.0.get(name).into_iter().flat_map(|node| &node.first);
            next.extend(first.map(|(name, _)| name.as_str()).filter(|name| all.insert(*name)));
        }
        all
    }

    /// Tells whether a sync on a cluster waits for another one there.
    pub(crate) fn is_before(&self, first: Target<'_>, then: Target<'_>) -> bool {
        self.targets(then).0.contains(&first)
    }

    /// Returns the syncs, each with a cluster, that wait for one on a cluster.
    pub(crate) fn after<'a>(&'a self, first: Target<'a>) -> impl Iterator<Item = Target<'a>> {
        let all = self.0.iter().flat_map(|(name, node)| node.clusters.iter().map(|it| (name.as_str(), it.as_str())));
        all.filter(move |then| self.is_before(first, *then))
    }

    /// Returns the reason why a sync has to wait on a cluster with a revision, if there is one.
    pub(crate) fn reason(&self, state: &State, of: Target<'_>, revision: &str, now: Timestamp) -> Option<Wait> {
        let (targets, unknown) = self.targets(of);
        let source = &self.0.get(of.0)?.source;
        let open = targets.into_iter().find_map(|(sync, cluster)| {
            let is_same = self.0.get(sync).is_some_and(|node| node.source == *source);
            let why = obstacle(state, (sync, cluster), is_same.then_some(revision), now)?;
            Some((sync, format!("sync {sync:?} is waited for on cluster {cluster}: {why}")))
        });
        let unknown =
            || Some((unknown?, format!("it is not known on which clusters sync {:?} is waited for", unknown?)));
        let (sync, message) = open.or_else(unknown)?;
        let hint = format!(
            "it goes on once sync {sync:?} is through: see `gatewright status {sync}`; or approve what waits here as it is"
        );
        Some(Wait { guard: Guard::DependsOn, message, hint, why: None })
    }

    /// Returns all that a sync waits for on a cluster, those that are waited for directly first, and a sync of which it is not
    /// known where.
    fn targets<'a>(&'a self, of: Target<'a>) -> (Vec<Target<'a>>, Option<&'a str>) {
        let (mut found, mut seen, mut unknown) = (Vec::new(), BTreeSet::new(), None);
        let mut next = 0;
        let mut current = of;
        loop {
            for (name, place) in self.0.get(current.0).into_iter().flat_map(|node| &node.first) {
                let Some(node) = self.0.get(name) else { continue };
                let clusters: Vec<&String> = match place {
                    Where::Same => node.clusters.get(current.1).into_iter().collect(),
                    Where::On(clusters) => clusters.iter().collect(),
                    Where::Unknown => Vec::new(),
                };
                if matches!(place, Where::Unknown) {
                    unknown = Some(name.as_str());
                }
                let targets = clusters.into_iter().map(|cluster| (name.as_str(), cluster.as_str()));
                found.extend(targets.filter(|target| seen.insert(*target)));
            }
            let Some(target) = found.get(next) else { return (found, unknown) };
            current = *target;
            next += 1;
        }
    }
}

impl Where {
    fn of(config: &Config, dependency: &DependsOn) -> Self {
        let Some(other) = config.settings.syncs.get(&dependency.sync) else { return Self::Same };
        let Some(selector) = &dependency.clusters else {
            return dependency.cluster.clone().map_or(Self::Same, |cluster| Self::On([cluster].into()));
        };
        let clusters = config.clusters_of(other).into_iter();
        let clusters = clusters.filter(|(name, settings)| selector.selects(name, &settings.labels));
        let clusters: BTreeSet<String> = clusters.map(|(name, _)| name.to_owned()).collect();
        // An empty list says nothing about what is healthy.
        let is_known = config.knows_all_clusters() && !clusters.is_empty();
        if is_known { Self::On(clusters) } else { Self::Unknown }
    }
}

/// Returns the reason why a sync is not through on a cluster, with the revision that it has to have, if it has to.
fn obstacle(state: &State, (sync, cluster): Target<'_>, revision: Option<&str>, now: Timestamp) -> Option<String> {
    match suspension::of(state, sync, now) {
        Ok(None) => {}
        Ok(Some(_)) => return Some("it is suspended".to_owned()),
        Err(_) => return Some("it is not known whether it is suspended".to_owned()),
    }
    let Some(report) = journal::last(state, sync, cluster) else {
        return Some("it has had no round there yet".to_owned());
    };
    let Some(found) = report.clusters.get(cluster) else {
        return Some("its last report says nothing of it".to_owned());
    };
    if let Some(trouble) = unfinished(&report, (cluster, found)) {
        return Some(trouble);
    }
    let other = revision.filter(|revision| *revision != report.revision);
    other.map(|revision| format!("it is at {} there, and not at {revision} yet", report.revision))
}

/// Says what keeps a round from counting as done. The words do not change as long as the reason does not.
fn unfinished(report: &Report, (cluster, found): (&str, &ClusterReport)) -> Option<String> {
    let sick = found.units.iter().find(|unit| unit.is_sick() || unit.unawaited.is_some());
    let problem = report.problems.iter().any(|it| it.is_on(cluster) && it.problem.scope != Scope::Warning);
    let differs = found.steps.iter().filter(|step| report.mode != Mode::Apply && StepReport::is_change(step)).count();
    // A report about directories is planned.
    let is_over = match found.state {
        ClusterState::Done | ClusterState::Planned | ClusterState::Compared | ClusterState::Held => true,
        ClusterState::Failed
        | ClusterState::Unreachable
        | ClusterState::Stopped
        | ClusterState::Suspended
        | ClusterState::Unknown => false,
    };
    match (report.cause.as_ref(), found.holds.first(), sick) {
        (Some(cause), ..) if !report.is_of_source() => Some(format!("its last round there was {cause}")),
        _ if report.revision == NOTHING => Some("it was destroyed there".to_owned()),
        _ if report.partial => Some("its last round there was about a part of it".to_owned()),
        _ if found.state == ClusterState::Unreachable => Some("the cluster could not be reached".to_owned()),
        _ if !is_over => Some("its last round there did not come to its end".to_owned()),
        (_, Some(hold), _) => Some(format!("it is held there by guard {}", hold.guard)),
        (.., Some(unit)) => Some(format!("{} is not healthy there", unit.unit)),
        _ if problem => Some("its source has problems".to_owned()),
        _ if found.exit_code() != 0 => Some("not all of it was done there".to_owned()),
        _ if differs > 0 => Some(format!("it only reports, and {} differ there", count(differs, "object"))),
        _ => None,
    }
}
