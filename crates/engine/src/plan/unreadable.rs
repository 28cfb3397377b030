//! Units of which something has no say any more, and nobody may have meant that: a file that cannot be read, such as that
//! of an overlay or of a set of listeners, or an overlay that is still there.
//!
//! Without it they would render, as something else than what the source says.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Inputs, Plan, Reason, Refusal};
use crate::reading::Unclear;
use crate::unit::Unit;

impl Plan {
    /// A unit of which a file cannot be read stays as it is, and is remembered with that file.
    pub(super) fn hold_unit(&mut self, unit: &Unit, lost: BTreeMap<Arc<str>, Unclear>, inputs: Inputs<'_>) {
        let unclear = lost.values().next().map(ToString::to_string).unwrap_or_default();
        let unit = Unit { files: unit.files.iter().cloned().chain(lost.into_keys()).collect(), ..unit.clone() };
        for (id, decided) in self.decided(&unit, inputs) {
            let reason = match decided {
                Ok(step) if !step.action.changes() => {
                    self.add_step(step, &unit, inputs.observed);
                    if inputs.former(&unit, &id).is_some() {
                        self.unwrite(&id, inputs.owned);
                    }
                    continue;
                }
                Ok(_) => Reason::Unreadable(unclear.clone()),
                Err(reason) => reason,
            };
            self.refusals.push(Refusal { unit: unit.id.clone(), id, reason });
        }
    }
}
