//! Rollouts: units whose change goes to other clusters first wait here until it is healthy there, or a person agrees.
//!
//! Whose turn it is depends on what is replaced here, so that a plan is made twice: [`Plan::waiting_for_others`] says of the first
//! what waits, and with that among the policies the second leaves those units as they are, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use super::token::{self, HeldStep};
use super::{Guard, Hold};
use crate::object::ObjectId;
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;
use crate::plan::{Inputs, Observed, Plan, Step};
use crate::text::count;

/// The reason why a unit waits for other clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The guard: one of those of rollouts.
    pub guard: Guard,
    /// The finding.
    pub message: String,
    /// Advice on how to go on.
    pub hint: String,
    /// A further reason, that of this unit alone: units that wait for the same wait together.
    pub why: Option<String>,
}

/// Everything that waits for other clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// The units, by the guard that holds them.
    units: BTreeMap<ObjectId, Guard>,
    /// One hold for each reason.
    holds: Vec<Hold>,
    /// Those that a person has lifted.
    lifted: Vec<Hold>,
    /// The reason why nothing is deleted.
    deletions: Option<Wait>,
}

impl Waiting {
    /// Tells whether anything waits, or would if nobody had lifted it.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty() && self.lifted.is_empty() && self.deletions.is_none()
    }

    /// Returns the units that a person has let go.
    pub fn lifted(&self) -> BTreeSet<ObjectId> {
        self.lifted.iter().flat_map(|hold| hold.unit.iter().chain(&hold.units)).cloned().collect()
    }

    /// Returns the units that wait.
    pub fn units(&self) -> impl Iterator<Item = &ObjectId> {
        self.units.keys()
    }
}

impl Plan {
    /// Returns what waits of this plan, for these reasons: of units, and of all that is deleted.
    pub fn waiting_for_others(
        &self,
        (waits, deletions): (&BTreeMap<ObjectId, Wait>, Option<Wait>),
        observed: &Observed,
        policies: &Policies,
    ) -> Waiting {
        let mut reasons: BTreeMap<_, (&Wait, Vec<&ObjectId>)> = BTreeMap::new();
        for (unit, wait) in waits {
            let reason = (wait.guard, &wait.message, &wait.hint);
            reasons.entry(reason).or_insert_with(|| (wait, Vec::new())).1.push(unit);
        }
        let mut waiting = Waiting { deletions, ..Waiting::default() };
        for (wait, units) in reasons.into_values() {
            let is_meant = |step: &&Step| units.contains(&&step.unit);
            let steps = self.changes().filter(is_meant);
            let steps = steps.map(|step| HeldStep::of(step, observed, &policies.conflicts.masker)).collect();
            let hold = Hold { steps, ..wait.hold(&units) };
            if wait.guard == Guard::RolloutPaused {
                waiting.units.extend(units.into_iter().map(|unit| (unit.clone(), hold.guard)));
                waiting.holds.push(hold);
            } else if let Some(lifted) = lifted(&hold, observed, policies) {
                waiting.lifted.push(lifted);
            } else {
                waiting.units.extend(units.into_iter().map(|unit| (unit.clone(), hold.guard)));
                waiting.holds.push(hold.with_tokens(observed, policies));
            }
        }
        waiting
    }

    /// Returns the units of which something is deleted that nobody has approved.
    pub fn deletes_unasked(&self) -> BTreeSet<&ObjectId> {
        let is_of_all = |hold: &Hold| matches!(hold.guard, Guard::MaxDelete | Guard::EmptyRender);
        let is_asked = |unit: &ObjectId| self.lifted.iter().any(is_of_all) || self.is_approved(unit);
        self.prunes().map(|step| &step.unit).filter(|unit| !is_asked(unit)).collect()
    }

    /// Says what waits.
    pub(in crate::plan) fn add_waiting(&mut self, waiting: &Waiting) {
        self.holds.extend(waiting.holds.iter().cloned());
        self.lifted.extend(waiting.lifted.iter().cloned());
    }
}

/// Takes out what is deleted, if that waits for other clusters.
pub(in crate::plan) fn hold_deletions(plan: &mut Plan, inputs: Inputs<'_>) {
    let Some(Wait { guard, message, hint, .. }) = &inputs.policies.waiting.deletions else { return };
    let units: BTreeSet<ObjectId> = plan.deletes_unasked().into_iter().cloned().collect();
    let prunes = plan.prunes().filter(|step| units.contains(&step.unit));
    let steps: Vec<HeldStep> = prunes.map(|step| inputs.held(step)).collect();
    let hold = Hold { steps, ..Hold::on_sync(*guard, message.clone(), hint) };
    if !hold.steps.is_empty() && plan.stops(hold, inputs) {
        plan.withhold(|step| units.contains(&step.unit), &Reason::Held(*guard));
    }
}

impl Wait {
    fn hold(&self, units: &[&ObjectId]) -> Hold {
        let why = match (&self.why, units.len()) {
            (None, _) => String::new(),
            (Some(why), 1) => format!(": {why}"),
            (Some(why), number) => format!(": {why}; nor are {}", count(number - 1, "other unit")),
        };
        let hold = Hold::on_sync(self.guard, format!("{}{why}", self.message), &self.hint);
        match units {
            [unit] => Hold { unit: Some((*unit).clone()), ..hold },
            units => Hold { units: units.iter().map(|unit| (*unit).clone()).collect(), ..hold },
        }
    }
}

/// Returns a hold that a person has lifted. Whoever lets a change go on while other clusters are waited for does so also
/// when they have failed, and when the wave needs a person; whoever agrees to a wave agrees to that alone.
fn lifted(hold: &Hold, observed: &Observed, policies: &Policies) -> Option<Hold> {
    let is_of_wave = hold.guard == Guard::RolloutApproval;
    let guards = [Guard::Rollout, Guard::RolloutHalted].into_iter().chain(is_of_wave.then_some(hold.guard));
    let is_approved = |hold: &Hold| policies.approved.contains(&token::token(hold, observed, policies));
    let mut holds = guards.map(|guard| Hold { guard, ..hold.clone() });
    holds.find(is_approved).map(|hold| hold.with_tokens(observed, policies))
}

/// Returns the steps of a unit that wait for other clusters, with the guard.
pub(in crate::plan) fn waiting(
    unit: &ObjectId,
    steps: &[&Step],
    policies: &Policies,
) -> Option<(Guard, BTreeSet<ObjectId>)> {
    let guard = *policies.waiting.units.get(unit)?;
    let changes = steps.iter().filter(|step| step.action.changes());
    Some((guard, changes.map(|step| step.id.clone()).collect()))
}
