//! The result of a round on a cluster: the state of the cluster and of every unit.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::Plan;
use gatewright_engine::plan::conflicts::Verdict;
use tracing::{info, warn};

use crate::reconcile::apply::model::Applied;
use crate::reconcile::health_snapshot::HealthSnapshots;
use crate::reconcile::model::{Facts, RoundSettings, Unhealthy};
use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::text::fields::fighting;
use crate::report::unaccepted::Unaccepted;
use crate::report::{ClusterReport, ClusterState, UnitReport, UnitState};

/// Reports a round that was carried out.
pub(super) fn report(
    settings: &RoundSettings,
    facts: &Facts,
    plan: &Plan,
    applied: &Applied,
    live: &BTreeMap<ObjectId, Live>,
    unhealthy: &Unhealthy,
) -> ClusterReport {
    let mut report = ClusterReport::of(plan);
    for step in &mut report.steps {
        step.outcome = applied.outcomes.get(&step.id).cloned();
        step.deleted = applied.removed.contains(&step.id) && step.outcome != Some(Outcome::Done);
        if step.action != StepAction::Unchanged && step.outcome == Some(Outcome::Done) {
            info!(object = %step.id, action = %step.action, "changed");
        }
        for field in step.fields.iter().filter(|field| field.verdict == Verdict::Fighting) {
            warn!(object = %step.id, path = field.path, managers = ?field.managers, "fighting");
        }
    }
    let is_failed = applied.outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Stale(_)));
    report.state = match () {
        () if applied.lost.is_some() => ClusterState::Unreachable,
        () if is_failed => ClusterState::Failed,
        () if settings.stop.is_cancelled() => ClusterState::Stopped,
        () => ClusterState::Done,
    };
    let snapshots = HealthSnapshots::of_round(settings, facts, Some(live));
    report.units = units(settings, facts, plan, &snapshots, Some(applied), unhealthy);
    report.unaccepted = Unaccepted::within(settings.acceptance, applied.unaccepted.keys().cloned().collect());
    report
}

/// The state of every unit that is wanted or was owned.
pub(super) fn units(
    settings: &RoundSettings,
    facts: &Facts,
    plan: &Plan,
    snapshots: &HealthSnapshots<'_>,
    applied: Option<&Applied>,
    unhealthy: &Unhealthy,
) -> Vec<UnitReport> {
    let held = plan.held_units();
    let unfinished = applied.map(|applied| applied.unfinished(plan)).unwrap_or_default();
    let changed: BTreeSet<&ObjectId> = plan.changes().map(|step| &step.unit).collect();
    let postponed = |unit: &ObjectId| applied.and_then(|applied| applied.left_undone(unit)).cloned();
    let mut fights = fights(plan);
    let mut reports: Vec<UnitReport> = facts
        .units()
        .map(|unit| {
            let sick = unit.all().find_map(|object| unhealthy.get_key_value(object.id()));
            let state = match () {
                () if unfinished.contains(&unit.id) => UnitState::Failed,
                () if held.contains(&unit.id) || plan.is_stopped() => UnitState::Held,
                () if sick.is_some() => UnitState::Unhealthy,
                () if changed.contains(&unit.id) && applied.is_some() => UnitState::Changed,
                () if changed.contains(&unit.id) => UnitState::Pending,
                () => UnitState::Current,
            };
            let sick = sick.map(|(id, what)| format!("{id}: {what}"));
            let message = postponed(&unit.id).or(sick).or_else(|| fights.remove(&unit.id));
            let is_awaited = applied.is_some() && settings.wait_policy.is_some() && !settings.suspension.is_over();
            let unawaited = if is_awaited { None } else { snapshots.unwell(unit) };
            UnitReport { message, unawaited, ..snapshots.unit_report(unit, state) }
        })
        .collect();
    let rendered: BTreeSet<&ObjectId> = facts.rendering.units.iter().map(|unit| &unit.id).collect();
    let gone = changed.difference(&rendered);
    reports.extend(gone.filter(|id| !id.is_a("", "Namespace")).map(|id| {
        let message = postponed(id);
        match (applied, unfinished.contains(*id)) {
            (Some(_), false) => UnitReport { message, ..UnitReport::new((*id).clone(), UnitState::Pruned) },
            (Some(_), true) => UnitReport { message, ..snapshots.left(id, UnitState::Failed, &facts.owned) },
            (None, _) => snapshots.left(id, UnitState::Pending, &facts.owned),
        }
    }));
    let known: BTreeSet<&ObjectId> = rendered.union(&changed).copied().collect();
    let left = held.difference(&known).filter(|unit| !unit.is_a("", "Namespace"));
    let left = left.map(|unit| snapshots.left(unit, UnitState::Held, &facts.owned));
    reports.extend(left.map(|left| UnitReport { unrendered: true, ..left }));
    reports
}

/// Returns the fields that objects are fought about: of each unit the first.
fn fights(plan: &Plan) -> BTreeMap<&ObjectId, String> {
    let mut fights = BTreeMap::new();
    for step in &plan.steps {
        if let Some(field) = step.fields.iter().find(|field| field.verdict == Verdict::Fighting) {
            fights.entry(&step.unit).or_insert_with(|| format!("{}: {}", step.id, fighting(field)));
        }
    }
    fights
}
