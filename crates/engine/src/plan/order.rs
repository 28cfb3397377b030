//! In which order steps are taken: by the waves of units and the order of kinds, which the table of kinds says.

use std::collections::BTreeMap;

use super::{Action, Step};
use crate::kinds;
use crate::kinds::row::Order;
use crate::object::ObjectId;
use crate::unit::Unit;

/// Sorts steps: namespaces, then unit by unit in the order of apply, then what is deleted, in reverse.
///
/// What a control plane would delete once its Gateway is told has lost the label by which it is found before that.
pub(super) fn sort(steps: &mut [Step], units: &[Unit], kinds: &kinds::Table) {
    let hides = |unit: &Unit| unit.objects.iter().any(|object| unit.forbidden_label(object.id()).is_some());
    let hiding: BTreeMap<&ObjectId, &Unit> =
        units.iter().filter(|unit| hides(unit)).map(|unit| (&unit.id, unit)).collect();
    let is_hidden = |step: &Step| {
        step.action.over().is_some()
            && hiding.get(&step.unit).is_some_and(|unit| unit.forbidden_label(&step.id).is_some())
    };
    steps.sort_by(|a, b| {
        let phase = |step: &Step| match step.action {
            Action::CreateNamespace => 0,
            Action::Release(_) | Action::Prune(_) | Action::Forget => 2,
            Action::Create
            | Action::Update(_)
            | Action::Adopt(_)
            | Action::AdoptFromDeployer(_)
            | Action::Generate(_)
            | Action::Recreate(_)
            | Action::DeleteFirst(_)
            | Action::Unchanged
            | Action::Omit => 1,
        };
        let turned = |step: &Step, place: u8| if phase(step) == 2 { u8::MAX - place } else { place };
        let rank = |step: &Step| match phase(step) {
            1 if is_hidden(step) => Order::Parameters as u8,
            _ => turned(step, kinds.order(&step.id) as u8),
        };
        let wave = |step: &Step| turned(step, kinds.wave(&step.unit) as u8);
        // What has to go first stands before what takes its place.
        let takes = |step: &Step| !matches!(step.action, Action::DeleteFirst(_));
        let key = |step| (phase(step), wave(step), &step.unit, rank(step), takes(step), &step.id);
        key(a).cmp(&key(b))
    });
}
