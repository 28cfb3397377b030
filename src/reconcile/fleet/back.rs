//! The way back of a unit on a cluster where a change has failed: what was healthy there before is applied again, to this
//! unit alone.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::unit::{Rendering, Unit};
use tracing::{info, warn};

use super::passes;
use crate::cluster::Cluster;
use crate::desired::rendering::Want;
use crate::reconcile::model::{Conclusion, RoundSettings};
use crate::reconcile::round;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, UnitReport, UnitState};

/// Units as they were when they were last healthy, with the revision of that.
type Healthy = BTreeMap<ObjectId, (Unit, String)>;

/// Takes back what has failed here, or on others of its wave, at the end of a round.
pub(super) async fn take_back(cluster: &dyn Cluster, settings: &mut RoundSettings, conclusion: &mut Conclusion) {
    let mut tried = BTreeSet::new();
    while let Some(turn) = settings.turn.take() {
        let may = |unit: &ObjectId| !tried.contains(unit) && settings.policies.is_about(unit);
        let back = turn.goes_back(may, &settings.stop).await;
        if back.is_empty() || settings.suspension.look() {
            settings.turn = Some(turn);
            return;
        }
        tried.extend(back.keys().cloned());
        let healthy = healthy(settings, &back, &mut conclusion.report).await;
        let pass = go_back(cluster, settings, &healthy).await;
        let is_done = |unit: &&ObjectId| pass.as_ref().is_some_and(|pass| is_done(&pass.report, unit));
        let done = healthy.keys().filter(is_done).cloned().collect();
        turn.went_back(&done, &back.keys().filter(|unit| !healthy.contains_key(*unit)).cloned().collect());
        for (unit, (_, revision)) in healthy.iter().filter(|(unit, _)| done.contains(unit)) {
            info!(%unit, revision, why = back[unit], "taken back, because the change has failed");
            tell(&mut conclusion.report, unit, &format!("taken back to {revision}"), &back[unit]);
        }
        if let Some(pass) = pass {
            passes::add_back(&mut conclusion.report, pass.report);
            // What is there now is not what the round has wanted.
            (conclusion.last_round, conclusion.is_suspect) = (None, true);
        }
        settings.turn = Some(turn);
    }
}

/// Finds what units were when they were healthy. Whatever cannot go back is told.
async fn healthy(settings: &RoundSettings, back: &BTreeMap<ObjectId, String>, report: &mut ClusterReport) -> Healthy {
    let mut healthy = Healthy::new();
    if let Some(history) = &settings.history {
        match history.healthy(back.keys().cloned().collect(), &settings.want).await {
            Ok(found) => healthy = found,
            Err(error) => warn!(error = %Chain(&error), "cannot read what was healthy before"),
        }
    }
    for (unit, why) in back.iter().filter(|(unit, _)| !healthy.contains_key(*unit)) {
        tell(report, unit, "nothing is kept that was healthy here before, so it stays", why);
    }
    healthy
}

/// Runs the round of the units that go back, with whatever guards it as any other.
async fn go_back(cluster: &dyn Cluster, settings: &mut RoundSettings, healthy: &Healthy) -> Option<Conclusion> {
    if healthy.is_empty() {
        return None;
    }
    let units = healthy.values().map(|(unit, _)| unit.clone()).collect();
    let rendering = Rendering { units, ..Rendering::default() };
    let want = replace(&mut settings.want, Want::ready(rendering, &settings.policies.marker));
    let only = settings.policies.only.replace(healthy.keys().cloned().collect());
    let (history, pinned) = (settings.history.take(), settings.policies.pinned.take());
    settings.last_round = None;
    let pass = round::run(cluster, settings).await;
    settings.place.leave();
    (settings.want, settings.policies.only, settings.history, settings.policies.pinned) = (want, only, history, pinned);
    Some(pass)
}

/// Tells whether a unit is what it was to become again, healthy or not, whatever became of others.
fn is_done(report: &ClusterReport, unit: &ObjectId) -> bool {
    let is_there = |it: &UnitReport| {
        it.unit == *unit && matches!(it.state, UnitState::Changed | UnitState::Current | UnitState::Unhealthy)
    };
    let mut changes = report.steps.iter().filter(|step| step.unit == *unit && step.is_change());
    report.units.iter().any(is_there) && changes.all(|step| step.outcome == Some(Outcome::Done))
}

/// Says what has become of a unit that has failed, or that goes with others.
fn tell(report: &mut ClusterReport, unit: &ObjectId, what: &str, why: &str) {
    if report.units.iter().all(|it| it.unit != *unit) {
        report.units.push(UnitReport::new(unit.clone(), UnitState::Current));
    }
    let Some(unit) = report.units.iter_mut().find(|it| it.unit == *unit) else { return };
    let is_ill = matches!(unit.state, UnitState::Unhealthy | UnitState::Failed);
    let why = unit.message.take().filter(|_| is_ill).unwrap_or_else(|| why.to_owned());
    unit.message = Some(format!("{why}; {what}"));
    if !is_ill {
        unit.state = UnitState::Unhealthy;
    }
}
