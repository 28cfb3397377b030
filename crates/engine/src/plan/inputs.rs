//! All that a plan is made from, for the parts that make it.

use super::guard::token::HeldStep;
use super::policies::Policies;
use super::{Observed, Step, owner};
use crate::inventory::Inventory;
use crate::live::Live;
use crate::marks::Owner;
use crate::unit::marked::Marked;

/// All that a plan is made from.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) rendering: &'a Marked,
    pub(super) observed: &'a Observed,
    pub(super) owned: &'a Inventory,
    pub(super) policies: &'a Policies,
}

impl Inputs<'_> {
    pub(super) fn owner(self, live: &Live) -> Owner {
        owner(live, self.observed, self.owned, &self.policies.marker)
    }

    /// Describes a step that may have to wait for approval.
    pub(super) fn held(self, step: &Step) -> HeldStep {
        HeldStep::of(step, self.observed, &self.policies.conflicts.masker)
    }
}
