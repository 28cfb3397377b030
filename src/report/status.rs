//! The state of a sync on its clusters after their last rounds: what is the same on several clusters stands there once,
//! with the clusters of which it is true.

#[cfg(test)]
mod tests;
mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::refusal::Reason;
use gatewright_engine::problem::counted;
use gatewright_engine::spec::GATEWAY_API;
use jiff::Timestamp;

use super::folded::Clusters;
use super::outcome::Outcome;
use super::text::why;
use super::withheld::{HoldReport, MOST_HELD};
use super::{ClusterReport, ClusterState, Report, UnitReport, UnitState};
pub(crate) use text::{summary, write};

/// The last reports of a sync, by cluster; `None` where there was no round yet.
pub(crate) type Reports = BTreeMap<String, Option<Report>>;

/// Some clusters, and everything that is said of each of them and of no other.
struct Paragraph<'a> {
    /// The names of all clusters of the sync.
    names: &'a [&'a str],
    /// The positions of its own among them, rising.
    on: Vec<usize>,
    statements: Vec<Statement>,
}

/// Something that is true of some clusters, and the values of it that are others on one of them than on another.
struct Statement {
    said: Said,
    /// The values, with the positions of the clusters.
    values: BTreeMap<Values, Vec<usize>>,
}

/// The part of a statement that is the same wherever it is true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    /// The last round, with the revision unless it came to nothing.
    Round { rank: u8, word: String, revision: Option<String>, hint: Option<String> },
    /// Something wrong in the source.
    Problem(String),
    /// A hold; the token is one that lifts it on all clusters.
    Hold { lines: Vec<String>, fleet_token: Option<String> },
    /// A unit.
    Unit { unit: ObjectId, rank: u8, state: String, ports: String, is_ready: bool },
}

/// The part of a statement that may be another on each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Values {
    at: Option<Timestamp>,
    since: Option<String>,
    /// When a cluster that does not answer is asked again.
    next: Option<Timestamp>,
    addresses: Option<String>,
    pods: Option<String>,
    message: Option<String>,
    token: Option<String>,
    images: Option<String>,
}

/// Folds what is known: first what is as it should be, on the most clusters first, and last those of which nothing is
/// known.
fn fold<'a>(names: &'a [&'a str], reports: &Reports) -> Vec<Paragraph<'a>> {
    let (mut entries, mut known) = (Vec::<Statement>::new(), BTreeMap::<(Said, usize), usize>::new());
    for (position, (name, report)) in reports.iter().enumerate() {
        let mut times: BTreeMap<Said, usize> = BTreeMap::new();
        for (said, values) in statements(name, report.as_ref()) {
            let time = times.entry(said.clone()).or_default();
            let entry = *known.entry((said.clone(), *time)).or_insert(entries.len());
            // It is said twice of one cluster.
            *time += 1;
            if entry == entries.len() {
                entries.push(Statement { said, values: BTreeMap::new() });
            }
            entries[entry].values.entry(values).or_default().push(position);
        }
    }
    let mut groups: BTreeMap<Vec<usize>, Vec<Statement>> = BTreeMap::new();
    for statement in entries {
        let mut on: Vec<usize> = statement.values.values().flatten().copied().collect();
        on.sort_unstable();
        groups.entry(on).or_default().push(statement);
    }
    let paragraph = |(on, statements)| Paragraph { names, on, statements };
    let mut paragraphs: Vec<Paragraph<'_>> = groups.into_iter().map(paragraph).collect();
    paragraphs.sort_by_cached_key(|it| (it.rank(), it.round().is_none(), Reverse(it.on.len()), it.on[0]));
    paragraphs
}

impl<'a> Paragraph<'a> {
    fn clusters(&self, on: &[usize]) -> Clusters<'a> {
        Clusters::of(self.names, on)
    }

    /// Returns the round of its clusters, if that is the same on no others.
    fn round(&self) -> Option<&Statement> {
        self.statements.iter().find(|statement| matches!(statement.said, Said::Round { .. }))
    }

    fn rank(&self) -> u8 {
        let ranks = self.statements.iter().map(|statement| statement.said.rank());
        let round = self.round().map(|round| round.said.rank());
        round.or(ranks.max()).unwrap_or_default()
    }
}

impl Said {
    fn rank(&self) -> u8 {
        match self {
            Self::Round { rank, .. } | Self::Unit { rank, .. } => *rank,
            Self::Problem(_) => ClusterState::Done.rank(),
            Self::Hold { .. } => ClusterState::Held.rank(),
        }
    }
}

/// Returns all that is said of a cluster, in order.
fn statements(name: &str, report: Option<&Report>) -> Vec<(Said, Values)> {
    let Some((report, cluster)) = report.and_then(|report| Some((report, report.clusters.get(name)?))) else {
        let (rank, word) = (ClusterState::Unknown.rank(), "no round yet".to_owned());
        return vec![(Said::Round { rank, word, revision: None, hint: None }, Values::default())];
    };
    let mut all = vec![round(report, cluster)];
    all.extend(problems(report, name).map(|said| (said, Values::default())));
    all.extend(cluster.holds.iter().map(held));
    all.extend(units(cluster).iter().map(unit));
    all
}

fn round(report: &Report, cluster: &ClusterReport) -> (Said, Values) {
    let (rank, word, at) = (cluster.state.rank(), json_word(&cluster.state), Some(report.finished));
    let values = Values { at, next: cluster.next_probe, ..Values::default() };
    match &cluster.error {
        Some(error) => {
            let said = Said::Round { rank, word, revision: None, hint: error.hint.clone() };
            let since = cluster.mark(cluster.since).filter(|mark| mark.starts_with("since"));
            (said, Values { since, message: Some(error.message.clone()), ..values })
        }
        None => (Said::Round { rank, word, revision: Some(report.revision.clone()), hint: None }, values),
    }
}

fn problems(report: &Report, name: &str) -> Option<Said> {
    let problems: Vec<_> = report.problems.iter().filter(|problem| problem.is_on(name)).collect();
    let first = problems.first()?;
    let number = counted(problems.iter().map(|it| &it.problem));
    let words = if problems.len() == 1 { "" } else { ", the first is" };
    Some(Said::Problem(format!("{number} in the source{words}: {}", first.problem)))
}

fn held(hold: &HoldReport) -> (Said, Values) {
    let unit = hold.subject();
    let mut lines = vec![format!("{unit}held by guard {}: {}", hold.guard, hold.message), format!("  {}", hold.hint)];
    lines.extend(hold.listed(MOST_HELD).iter().map(|line| format!("  {line}")));
    let said = Said::Hold { lines, fleet_token: hold.fleet_token.clone() };
    (said, Values { token: hold.token.clone(), ..Values::default() })
}

/// Returns the units with why they are held; one whose spec is broken stands only in the refusals.
pub(crate) fn units(cluster: &ClusterReport) -> Vec<UnitReport> {
    let reason = |unit: &ObjectId| {
        let mut refusals = cluster.refusals.iter().filter(|refusal| refusal.unit == *unit);
        let refused = refusals.find(|refusal| refusal.reason != Reason::UnitHeld);
        let failed = || {
            cluster.steps.iter().filter(|step| step.unit == *unit).find_map(|step| match &step.outcome {
                Some(Outcome::Failed(why)) => Some(format!("{}: {why}", step.id)),
                _ => None,
            })
        };
        refused.map(|refusal| format!("{}: {}", refusal.id, why(refusal))).or_else(failed)
    };
    let known: BTreeSet<&ObjectId> = cluster.units.iter().map(|unit| &unit.unit).collect();
    let broken: BTreeSet<&ObjectId> = cluster.refusals.iter().map(|refusal| &refusal.unit).collect();
    let broken = broken.difference(&known).map(|unit| UnitReport::new((*unit).clone(), UnitState::Held));
    let mut units: Vec<UnitReport> = cluster.units.iter().cloned().chain(broken).collect();
    for unit in units.iter_mut().filter(|unit| unit.message.is_none()) {
        unit.message = reason(&unit.unit);
    }
    units.sort_by(|a, b| a.unit.cmp(&b.unit));
    units
}

fn unit(unit: &UnitReport) -> (Said, Values) {
    let ports: Vec<String> = unit.ports.iter().map(u16::to_string).collect();
    let has_addresses = unit.unit.is_a(GATEWAY_API, "Gateway") || !ports.is_empty();
    let addresses = match unit.addresses.as_slice() {
        [] if has_addresses => "no address".to_owned(),
        addresses => addresses.join(","),
    };
    let message = unit.message.as_ref().or(unit.unawaited.as_ref().filter(|_| is_unawaited(unit))).cloned();
    let said = Said::Unit {
        unit: unit.unit.clone(),
        rank: if is_unawaited(unit) { ClusterState::Held.rank() } else { rank(unit.state) },
        state: state(unit),
        ports: ports.join(","),
        is_ready: unit.pods.is_none_or(|pods| pods.ready >= pods.wanted),
    };
    let pods = unit.pods.map(|pods| pods.to_string());
    let images = (!unit.images.is_empty()).then(|| unit.images.join(", "));
    (said, Values { addresses: Some(addresses), pods, message, images, ..Values::default() })
}

fn is_unawaited(unit: &UnitReport) -> bool {
    matches!(unit.state, UnitState::Current | UnitState::Changed) && unit.unawaited.is_some()
}

/// Returns the word for the state of a unit.
fn state(unit: &UnitReport) -> String {
    if is_unawaited(unit) { "unawaited".to_owned() } else { json_word(&unit.state) }
}

/// The word for a state is the one that JSON has for it.
pub(crate) fn json_word(state: &impl serde::Serialize) -> String {
    serde_json::to_value(state).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn rank(state: UnitState) -> u8 {
    match state {
        UnitState::Current | UnitState::Changed | UnitState::Pruned => ClusterState::Done.rank(),
        UnitState::Pending | UnitState::Different => ClusterState::Planned.rank(),
        UnitState::Held => ClusterState::Held.rank(),
        UnitState::Unhealthy | UnitState::Failed => ClusterState::Failed.rank(),
    }
}
