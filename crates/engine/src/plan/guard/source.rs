//! Guards against a source that is another one than before, or older than what was applied.
//!
//! Both hold deletions and nothing else: what the source asks for is made, and what it lacks says nothing.

use super::{Guard, Hold};
use crate::inventory::{Applied, Inventory};
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;
use crate::plan::{Inputs, Plan};

/// Holds what a suspect source would delete, and notes in the inventory what is applied from where.
pub(in crate::plan) fn check(plan: &mut Plan, inputs: Inputs<'_>) {
    let Inputs { owned, policies, .. } = inputs;
    let holds = [another(owned, policies), older(owned, policies)];
    let mut is_trusted = true;
    for hold in holds.into_iter().flatten() {
        let can_be_approved = policies.is_polled;
        let hold = if can_be_approved { hold.with_prunes(plan, inputs) } else { hold };
        if plan.steps.iter().any(|step| step.action.deletes()) {
            let guard = hold.guard;
            if plan.stops(hold, inputs) {
                is_trusted = false;
                plan.withhold(|_| true, &Reason::Held(guard));
            }
        }
    }
    if is_trusted && !policies.applying.address.is_empty() {
        plan.inventory.applied = policies.applying.clone();
    }
}

fn another(owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let (before, now) = (&owned.applied.address, &policies.applying.address);
    let message = if !before.is_empty() && !now.is_empty() && before != now {
        format!("what is owned here was rendered from {before}, and the source is {now} now")
    } else if is_elsewhere(owned, policies) {
        format!(
            "what is owned here was rendered from {now} of another project, or before this one was moved or had this git remote"
        )
    } else {
        return None;
    };
    let hint = "check url, directory and path of the source and the sync; if what the new one lacks is to be deleted, approve it";
    Some(Hold::on_sync(Guard::SourceIdentity, message, hint))
}

/// Tells whether the source stands in another place than what is owned here was rendered from, whatever its address says.
pub(super) fn is_elsewhere(owned: &Inventory, policies: &Policies) -> bool {
    let (before, now) = (&owned.applied.place, &policies.applying.place);
    !before.is_empty() && !now.is_empty() && before != now
}

fn older(owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let Applied { revision, committed, .. } = &policies.applying;
    if !policies.is_polled {
        return Some(Hold::on_sync(
            Guard::OlderSource,
            format!("the source was not read since this process started; {revision} is what it was before"),
            "nothing is deleted until the source can be read; see what is wrong with it by `gatewright status`",
        ));
    }
    let is_older = committed.zip(owned.applied.committed).is_some_and(|(now, before)| now < before);
    (is_older && *revision != owned.applied.revision).then(|| {
        Hold::on_sync(
            Guard::OlderSource,
            format!("{revision} was committed before {}, which was applied here last", owned.applied.revision),
            "see whether the server is behind, or the branch was set back; if what the older one lacks is to be deleted, \
             approve it",
        )
    })
}
