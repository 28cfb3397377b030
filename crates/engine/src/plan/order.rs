//! In which order objects are written: what others need comes first. Deletion is the reverse.

use super::{Action, Step};
use crate::object::ObjectId;

/// Kinds by rank; what is not listed comes with the workloads.
const RANKS: [(&str, u8); 21] = [
    ("Namespace", 0),
    ("CustomResourceDefinition", 0),
    ("GatewayClass", 2),
    ("Gateway", 2),
    ("ListenerSet", 3),
    ("ServiceAccount", 4),
    ("Role", 4),
    ("ClusterRole", 4),
    ("RoleBinding", 5),
    ("ClusterRoleBinding", 5),
    ("ConfigMap", 6),
    ("Secret", 6),
    ("Service", 7),
    ("Deployment", WORKLOAD),
    ("StatefulSet", WORKLOAD),
    ("DaemonSet", WORKLOAD),
    ("HorizontalPodAutoscaler", 9),
    ("VerticalPodAutoscaler", 9),
    ("PodDisruptionBudget", 9),
    // Requests come when those are there whom they are for, and no more before they go.
    ("InferencePool", 10),
    ("HTTPRoute", 11),
];

const WORKLOAD: u8 = 8;

/// Returns the rank of a kind; lower ranks are written first.
pub fn rank(kind: &str) -> u8 {
    if is_parameters(kind) {
        return 1;
    }
    RANKS.iter().find(|(name, _)| *name == kind).map_or(WORKLOAD, |(_, rank)| *rank)
}

/// Returns which units are written together: those of one wave go beside each other, and after the waves before.
pub fn wave(unit: &ObjectId) -> u8 {
    match unit.kind.as_str() {
        "Namespace" | "CustomResourceDefinition" => 0,
        kind if is_parameters(kind) => 0,
        "GatewayClass" => 1,
        _ => 2,
    }
}

/// Parameters of any pack: what refers to them comes after them.
fn is_parameters(kind: &str) -> bool {
    kind.ends_with("Parameters")
}

/// Sorts steps: namespaces, then unit by unit in the order of apply, then what is deleted, in reverse.
pub(super) fn sort(steps: &mut [Step]) {
    steps.sort_by(|a, b| {
        let phase = |step: &Step| match step.action {
            Action::CreateNamespace => 0,
            Action::Release(_) | Action::Prune(_) | Action::Forget => 2,
            Action::Create
            | Action::Update(_)
            | Action::Adopt(_)
            | Action::TakeOver(_)
            | Action::Generate(_)
            | Action::Recreate(_)
            | Action::ReleaseFirst(_)
            | Action::Keep
            | Action::Omit => 1,
        };
        let rank = |step: &Step| match phase(step) {
            2 => u8::MAX - rank(&step.id.kind),
            _ => rank(&step.id.kind),
        };
        let wave = |step: &Step| match phase(step) {
            2 => u8::MAX - wave(&step.unit),
            _ => wave(&step.unit),
        };
        // What has to go first stands before what takes its place.
        let takes = |step: &Step| !matches!(step.action, Action::ReleaseFirst(_));
        let key = |step| (phase(step), wave(step), &step.unit, rank(step), takes(step), &step.id);
        key(a).cmp(&key(b))
    });
}
