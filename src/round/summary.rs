//! What a round on a cluster came to: the state of the cluster and of every unit.

use std::collections::BTreeSet;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::conflicts::Verdict;
use gatewright_engine::plan::{Plan, Step};
use gatewright_engine::unit::Unit;
use tracing::{info, warn};

use super::Here;
use super::vitals::Vitals;
use crate::apply::{Applied, Outcome};
use crate::report::text::fields::fighting;
use crate::report::{ClusterReport, ClusterState, UnitReport, UnitState};
use crate::wait::Unhealthy;

/// Reports a round that was carried out.
pub(super) fn report(
    here: &Here<'_>,
    plan: &Plan,
    applied: &Applied,
    vitals: &Vitals<'_>,
    unhealthy: &Unhealthy,
) -> ClusterReport {
    let mut report = ClusterReport::of(plan);
    for step in &mut report.steps {
        step.outcome = applied.outcomes.get(&step.id).cloned();
        if step.action != "keep" && step.outcome == Some(Outcome::Done) {
            info!(object = %step.id, action = step.action, "changed");
        }
        for field in step.fields.iter().filter(|field| field.verdict == Verdict::Fighting) {
            warn!(object = %step.id, path = field.path, managers = ?field.managers, "fighting");
        }
    }
    let is_failed = applied.outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Stale(_)));
    report.state = match () {
        () if applied.lost.is_some() => ClusterState::Unreachable,
        () if is_failed => ClusterState::Failed,
        () if here.task.stop.is_cancelled() => ClusterState::Stopped,
        () => ClusterState::Done,
    };
    report.units = units(here, plan, vitals, Some(applied), unhealthy);
    report
}

/// The state of every unit that is wanted or was owned.
pub(super) fn units(
    here: &Here<'_>,
    plan: &Plan,
    vitals: &Vitals<'_>,
    applied: Option<&Applied>,
    unhealthy: &Unhealthy,
) -> Vec<UnitReport> {
    let held = plan.held_units();
    let unfinished = applied.map(|applied| applied.unfinished(plan)).unwrap_or_default();
    let changed: BTreeSet<&ObjectId> = plan.changes().map(|step| &step.unit).collect();
    let rendering = &here.place.rendering;
    let wanted = rendering.units.iter().filter(|unit| here.task.policies.is_about(&unit.id));
    let mut reports: Vec<UnitReport> = wanted
        .map(|unit| {
            let sick = unit.all().find_map(|object| unhealthy.get_key_value(object.id()));
            let state = match () {
                () if unfinished.contains(&unit.id) => UnitState::Failed,
                () if held.contains(&unit.id) || !plan.holds.is_empty() => UnitState::Held,
                () if sick.is_some() => UnitState::Unhealthy,
                () if changed.contains(&unit.id) && applied.is_some() => UnitState::Changed,
                () if changed.contains(&unit.id) => UnitState::Pending,
                () => UnitState::Current,
            };
            let postponed = applied.and_then(|applied| applied.postponed.get(&unit.id)).cloned();
            let sick = sick.map(|(id, what)| format!("{id}: {what}"));
            let message = postponed.or(sick).or_else(|| fight(plan, unit));
            UnitReport { message, ..unit_report(unit, state, vitals) }
        })
        .collect();
    let gone = changed.iter().filter(|id| !rendering.units.iter().any(|unit| unit.id == ***id));
    reports.extend(gone.filter(|id| id.kind != "Namespace").map(|id| UnitReport {
        unit: (*id).clone(),
        state: match (applied, unfinished.contains(*id)) {
            (Some(_), false) => UnitState::Pruned,
            (Some(_), true) => UnitState::Failed,
            (None, _) => UnitState::Pending,
        },
        message: None,
        addresses: Vec::new(),
        ports: Vec::new(),
    }));
    reports
}

fn unit_report(unit: &Unit, state: UnitState, vitals: &Vitals<'_>) -> UnitReport {
    let service = unit.objects.iter().find(|object| object.id().kind == "Service");
    let ports = service.and_then(|service| service.body().pointer("/spec/ports")?.as_array());
    let ports = ports.into_iter().flatten().filter_map(|port| u16::try_from(port["port"].as_u64()?).ok());
    let addresses = service.map(|service| vitals.addresses(service.id()));
    UnitReport {
        unit: unit.id.clone(),
        state,
        message: None,
        addresses: addresses.unwrap_or_default(),
        ports: ports.collect(),
    }
}

/// What the objects of a unit are fought about.
fn fight(plan: &Plan, unit: &Unit) -> Option<String> {
    let fields = |step: &Step| {
        let fights = step.fields.iter().filter(|field| field.verdict == Verdict::Fighting);
        fights.map(|field| format!("{}: {}", step.id, fighting(field))).next()
    };
    plan.steps.iter().filter(|step| step.unit == unit.id).find_map(fields)
}
