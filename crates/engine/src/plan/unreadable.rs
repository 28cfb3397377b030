//! Units of which a file cannot be read any more: an overlay, or a set of listeners.
//!
//! Without it they would render, as something else than what the source says.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Observed, Plan, Policies, Reason, Refusal};
use crate::inventory::Inventory;
use crate::unit::Unit;

/// Returns the files that had a say in a unit before, and cannot be read now: what they said is not known any more.
pub(super) fn fed_by(unit: &Unit, owned: &Inventory, unreadable: &BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
    let feeds = |file: &&Arc<str>| {
        owned.entries.values().any(|entry| entry.unit == unit.id && entry.files.contains(file.as_ref()))
    };
    unreadable.iter().filter(feeds).cloned().collect()
}

impl Plan {
    /// A unit of which a file cannot be read stays as it is, and is remembered with that file.
    pub(super) fn hold_unit(
        &mut self,
        unit: &Unit,
        lost: BTreeSet<Arc<str>>,
        observed: &Observed,
        owned: &Inventory,
        policies: &Policies,
    ) {
        let file = lost.first().map(ToString::to_string).unwrap_or_default();
        let unit = Unit { files: unit.files.iter().cloned().chain(lost).collect(), ..unit.clone() };
        for (id, decided) in self.decided(&unit, observed, owned, policies) {
            let reason = match decided {
                Ok(step) if !step.action.changes() => {
                    self.add_step(step, &unit, observed);
                    continue;
                }
                Ok(_) => Reason::Unreadable(file.clone()),
                Err(reason) => reason,
            };
            self.refusals.push(Refusal { unit: unit.id.clone(), id, reason });
        }
    }
}
