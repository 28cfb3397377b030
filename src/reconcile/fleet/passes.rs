//! A round that goes over a cluster several times, because something on it has to wait for other clusters.

use std::collections::BTreeSet;

use gatewright_engine::object::ObjectId;

use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, StepReport, UnitState};

/// Puts what was done before into the report of the last pass.
pub(super) fn joined(earlier: Option<ClusterReport>, mut later: ClusterReport) -> ClusterReport {
    let Some(earlier) = earlier else { return later };
    let mut before = Vec::new();
    for step in earlier.steps.into_iter().filter(is_done) {
        match later.steps.iter_mut().find(|it| it.id == step.id) {
            Some(it) if it.action == StepAction::Unchanged => *it = step,
            // It was changed again since.
            Some(_) => {}
            None => before.push(step),
        }
    }
    before.append(&mut later.steps);
    later.steps = before;
    let is_changed = |state| matches!(state, UnitState::Changed | UnitState::Pruned);
    let changed = earlier.units.into_iter().filter(|unit| is_changed(unit.state));
    for unit in changed {
        match later.units.iter_mut().find(|it| it.unit == unit.unit) {
            Some(it) if it.state == UnitState::Current => it.state = unit.state,
            Some(_) => {}
            None => later.units.push(unit),
        }
    }
    let known: BTreeSet<Option<String>> = later.lifted.iter().map(|hold| hold.token.clone()).collect();
    later.lifted.extend(earlier.lifted.into_iter().filter(|hold| !known.contains(&hold.token)));
    later
}

/// Puts what was done on the way back into the report of the round: the changes that it has reported are not there any more,
/// and what is in the way is told.
pub(super) fn add_back(report: &mut ClusterReport, pass: ClusterReport) {
    report.holds.extend(pass.holds);
    report.lifted.extend(pass.lifted);
    report.refusals.extend(pass.refusals);
    report.error = report.error.take().or(pass.error);
    if report.state == ClusterState::Done {
        report.state = pass.state;
    }
    for step in pass.steps.into_iter().filter(StepReport::is_change) {
        match report.steps.iter_mut().find(|it| it.id == step.id) {
            Some(it) if !it.is_change() => *it = step,
            // It was changed, and is as it was.
            Some(_) => {}
            None => report.steps.push(step),
        }
    }
}

/// Returns the objects that were changed.
pub(super) fn done(report: &ClusterReport) -> impl Iterator<Item = &ObjectId> {
    report.steps.iter().filter(|step| is_done(step)).map(|step| &step.id)
}

fn is_done(step: &StepReport) -> bool {
    step.is_change() && step.outcome == Some(Outcome::Done)
}
