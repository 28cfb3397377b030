//! Units that would lose what an overlay has fed them, although the overlay is still in the source.

use std::collections::BTreeSet;

use super::{Guard, Hold, adopt, rollout};
use crate::object::ObjectId;
use crate::plan::withdrawal::{Evidence, in_words};
use crate::plan::{Inputs, Plan, Step, transfer};
use crate::unit::Unit;

impl Plan {
    /// Returns the steps of a unit that wait for a person, with the guard, and adds the hold for them.
    pub(in crate::plan) fn waiting(
        &mut self,
        unit: &Unit,
        steps: &[&Step],
        evidence: &Evidence<'_>,
        inputs: Inputs<'_>,
    ) -> Option<(Guard, BTreeSet<ObjectId>)> {
        adopt::waiting(self, unit, steps, inputs)
            .or_else(|| transfer::waiting(self, unit, steps, evidence, inputs))
            .or_else(|| unfed(self, unit, steps, evidence, inputs))
            .or_else(|| rollout::waiting(&unit.id, steps, inputs.policies))
    }
}

fn unfed(
    plan: &mut Plan,
    unit: &Unit,
    steps: &[&Step],
    evidence: &Evidence<'_>,
    inputs: Inputs<'_>,
) -> Option<(Guard, BTreeSet<ObjectId>)> {
    let lost = evidence.lost_overlays(unit);
    let changes: Vec<&Step> = steps.iter().filter(|step| step.action.changes()).copied().collect();
    if lost.is_empty() || changes.is_empty() {
        return None;
    }
    let message = format!("{} would lose what an overlay has fed it: {}", unit.id, in_words(&lost));
    let hint = "correct the overlay, or the name and the labels of the cluster in the config file; if it is meant so, approve it";
    let waiting = changes.iter().map(|step| inputs.held(step)).collect();
    let hold = Hold::on_unit(Guard::OverlayLost, &unit.id, message, hint, waiting);
    let objects = changes.iter().map(|step| step.id.clone()).collect();
    plan.stops(hold, inputs).then_some((Guard::OverlayLost, objects))
}
