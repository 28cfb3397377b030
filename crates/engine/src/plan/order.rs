//! In which order objects are written: what others need comes first. Deletion is the reverse.

use super::{Action, Step};

/// Kinds by rank; what is not listed comes with the workloads.
const RANKS: [(&str, u8); 20] = [
    ("Namespace", 0),
    ("ServiceAccount", 1),
    ("Role", 1),
    ("ClusterRole", 1),
    ("RoleBinding", 2),
    ("ClusterRoleBinding", 2),
    ("GatewayClass", 3),
    ("GatewayParameters", 3),
    ("ConfigMap", 4),
    ("Secret", 4),
    ("Gateway", 5),
    ("ListenerSet", 5),
    ("InferencePool", 5),
    ("Service", 6),
    ("Deployment", WORKLOAD),
    ("StatefulSet", WORKLOAD),
    ("DaemonSet", WORKLOAD),
    ("HorizontalPodAutoscaler", 8),
    ("VerticalPodAutoscaler", 8),
    ("PodDisruptionBudget", 8),
];

const WORKLOAD: u8 = 7;

/// Returns the rank of a kind; lower ranks are written first.
pub fn rank(kind: &str) -> u8 {
    RANKS.iter().find(|(name, _)| *name == kind).map_or(WORKLOAD, |(_, rank)| *rank)
}

/// Sorts steps: namespaces, then unit by unit in the order of apply, then what is deleted, in reverse.
pub(super) fn sort(steps: &mut [Step]) {
    steps.sort_by(|a, b| {
        let phase = |step: &Step| match step.action {
            Action::CreateNamespace => 0,
            Action::Prune(_) | Action::Forget => 2,
            Action::Create | Action::Update(_) | Action::Adopt(_) | Action::Keep => 1,
        };
        let rank = |step: &Step| match phase(step) {
            2 => u8::MAX - rank(&step.id.kind),
            _ => rank(&step.id.kind),
        };
        (phase(a), &a.unit, rank(a), &a.id).cmp(&(phase(b), &b.unit, rank(b), &b.id))
    });
}
