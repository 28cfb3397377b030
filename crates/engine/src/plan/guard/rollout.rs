//! Rollouts: a change that goes to another cluster first waits here until that is healthy, or a person agrees.

use super::token::{self, HeldStep};
use super::{Guard, Hold};
use crate::plan::policies::Policies;
use crate::plan::{Observed, Plan};

impl Plan {
    /// Has all of the plan wait for another cluster, which is not healthy yet, or is not healthy (`is_halted`) with what
    /// it got. Tells whether it does: a person may have approved it as it is.
    pub fn waits_for_rollout(
        &mut self,
        is_halted: bool,
        (message, hint): (String, &str),
        observed: &Observed,
        policies: &Policies,
    ) -> bool {
        let guard = if is_halted { Guard::RolloutHalted } else { Guard::Rollout };
        let steps = self.changes().map(|step| HeldStep::of(step, observed, &policies.conflicts.masker)).collect();
        let hold = Hold { steps, ..Hold::on_sync(guard, message, hint) };
        // One approval is for both: what is approved while the other cluster is waited for counts when it has failed.
        let approved = [Guard::Rollout, Guard::RolloutHalted].map(|guard| {
            let hold = Hold { guard, ..hold.clone() };
            (token::token(&hold, observed, policies), hold)
        });
        if let Some((token, hold)) = approved.into_iter().find(|(token, _)| policies.approved.contains(token)) {
            let fleet_token = Some(token::fleet_token(&hold, policies));
            self.lifted.push(Hold { token: Some(token), fleet_token, ..hold });
            return false;
        }
        self.add(hold, observed, policies)
    }
}
