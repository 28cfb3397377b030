//! In which order steps are taken: by the waves of units and the order of kinds, which the table of kinds says.

use super::{Action, Step};
use crate::kinds;

/// Sorts steps: namespaces, then unit by unit in the order of apply, then what is deleted, in reverse.
pub(super) fn sort(steps: &mut [Step], kinds: &kinds::Table) {
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
        let rank = |step: &Step| turned(step, kinds.order(&step.id) as u8);
        let wave = |step: &Step| turned(step, kinds.wave(&step.unit) as u8);
        // What has to go first stands before what takes its place.
        let takes = |step: &Step| !matches!(step.action, Action::DeleteFirst(_));
        let key = |step| (phase(step), wave(step), &step.unit, rank(step), takes(step), &step.id);
        key(a).cmp(&key(b))
    });
}
