//! One sync on one cluster, as its last round has left it: what holds it, and its units with their objects.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::health::pods::Count;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::api::NoAnswer;
use super::board::{Board, Knowledge};
use super::cell::{Cell, cut};
use super::hold::Hold;
use super::object::Object;
use crate::reconcile::renamed;
use crate::report::status::{self, json_word};
use crate::report::{ClusterReport, Failure, ProblemReport, UnitReport, UnitState};
use crate::state::suspension::Suspension;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/target/v1alpha1";

/// Units of a page, unless it is asked for another number.
const UNITS: usize = 50;

/// The most units of a page.
const MOST_UNITS: usize = 200;

/// The most objects of a unit, and of other lists.
pub(super) const MOST: usize = 100;

/// The most characters of a text of others.
pub(super) const MOST_CHARACTERS: usize = 2_000;

/// The part of it that somebody asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// A part of the name of a unit.
    q: String,
    /// Only units in this state.
    state: Option<String>,
    /// The number of units before.
    from: usize,
    /// The number of units.
    limit: Option<usize>,
}

/// The sync on the cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    schema: &'static str,
    sync: String,
    cluster: String,
    labels: BTreeMap<String, String>,
    /// The sum of it.
    sum: Cell,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    /// The reason why a person asked for the last round.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended: Option<String>,
    /// The reason why the source could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_source: Option<String>,
    /// The newer revision that waits for the end of a rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    holds: Vec<Hold>,
    /// The number of units in each state.
    states: BTreeMap<String, usize>,
    /// The number of units that meet the question.
    matching: usize,
    from: usize,
    units: Vec<Unit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// Something wrong in the source.
#[derive(Serialize)]
struct Problem {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// A unit with its objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unit {
    #[serde(rename = "unit")]
    name: String,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    addresses: Vec<String>,
    ports: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Count>,
    objects: Vec<Object>,
    /// The number of objects beyond those.
    more: usize,
}

/// Tells of a sync on a cluster.
pub(super) fn target(
    board: &Board,
    known: &Knowledge,
    (sync, cluster): (&str, &str),
    asked: &Asked,
) -> Result<Target, NoAnswer> {
    let cell = known.cells.get(cluster).and_then(|cells| cells.get(sync));
    let cell = cell.ok_or_else(|| NoAnswer::Unknown("there is no such sync on such a cluster".to_owned()))?;
    let settings = &known.config.settings.clusters[cluster];
    let report = renamed::last_report(&known.config, &board.state, (sync, cluster)).unwrap_or_default();
    let nothing = ClusterReport::default();
    let found = report.clusters.get(cluster).unwrap_or(&nothing);
    let problems = report.problems.iter().filter(|problem| problem.is_on(cluster)).take(MOST).map(Problem::of);
    let units = units_of(found);
    let mut states = BTreeMap::new();
    for unit in &units {
        *states.entry(json_word(&unit.state)).or_default() += 1;
    }
    let mut wanted: Vec<&UnitReport> = units.iter().filter(|unit| asked.wants(unit)).collect();
    wanted.sort_by_cached_key(|unit| (rank(unit), unit.unit.clone()));
    let (matching, from) = (wanted.len(), asked.from.min(wanted.len()));
    let limit = asked.limit.unwrap_or(UNITS).clamp(1, MOST_UNITS);
    let units: Vec<Unit> = wanted.into_iter().skip(from).take(limit).map(|unit| Unit::of(unit, found)).collect();
    let next = Some(from + units.len()).filter(|next| *next < matching);
    Ok(Target {
        schema: SCHEMA,
        sync: sync.to_owned(),
        cluster: cluster.to_owned(),
        labels: settings.labels.clone(),
        sum: Cell::clone(cell),
        started: cell.finished.map(|_| report.started),
        suspended: known.suspended.get(sync).map(Suspension::words),
        error: found.error.clone(),
        problems: problems.collect(),
        notes: found.notes.iter().take(MOST).map(|note| cut(note, MOST_CHARACTERS)).collect(),
        holds: found.holds.iter().take(MOST).map(Hold::of).collect(),
        states,
        matching,
        from,
        units,
        next,
        cause: report.cause.clone(),
        stale_source: report.stale_source.clone(),
        next_revision: report.next_revision.clone(),
    })
}

impl Asked {
    fn wants(&self, unit: &UnitReport) -> bool {
        let is_named = self.q.is_empty() || unit.unit.to_string().contains(&self.q);
        is_named && self.state.as_ref().is_none_or(|state| *state == json_word(&unit.state))
    }
}

impl Problem {
    fn of(report: &ProblemReport) -> Self {
        let message = cut(&report.to_string(), MOST_CHARACTERS);
        Self { message, hint: report.problem.hint.clone(), since: report.since }
    }
}

/// Returns the place of a unit in the list: the worst comes first.
fn rank(unit: &UnitReport) -> u8 {
    match unit.state {
        UnitState::Failed => 0,
        UnitState::Unhealthy => 1,
        UnitState::Held => 2,
        UnitState::Different | UnitState::Pending => 3,
        UnitState::Changed | UnitState::Pruned => 4,
        UnitState::Current => 5,
    }
}

/// Returns all units that a report tells of: those of which it has objects only, too.
fn units_of(found: &ClusterReport) -> Vec<UnitReport> {
    let mut units = status::units(found);
    let known: BTreeSet<&ObjectId> = units.iter().map(|unit| &unit.unit).collect();
    let steps: BTreeSet<&ObjectId> = found.steps.iter().map(|step| &step.unit).collect();
    let others: Vec<ObjectId> = steps.difference(&known).map(|unit| (*unit).clone()).collect();
    units.extend(others.into_iter().map(|unit| UnitReport::new(unit, UnitState::Current)));
    units
}

impl Unit {
    fn of(unit: &UnitReport, found: &ClusterReport) -> Self {
        let steps = found.steps.iter().filter(|step| step.unit == unit.unit).map(|step| Object::of_step(step, found));
        let refusals = found.refusals.iter().filter(|refusal| refusal.unit == unit.unit).map(Object::of_refusal);
        let mut objects: Vec<Object> = refusals.chain(steps).collect();
        let more = objects.len().saturating_sub(MOST);
        objects.truncate(MOST);
        let message = unit.message.as_ref().or(unit.unawaited.as_ref()).map(|message| cut(message, MOST_CHARACTERS));
        Self {
            name: unit.unit.to_string(),
            state: json_word(&unit.state),
            message,
            since: unit.since,
            addresses: unit.addresses.clone(),
            ports: unit.ports.clone(),
            pods: unit.pods,
            objects,
            more,
        }
    }
}
