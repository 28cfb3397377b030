//! In which order objects are written: what others need comes first. Deletion is the reverse.

use super::{Action, Step};
use crate::object::ObjectId;
use crate::spec::GATEWAY_API;

const RBAC: &str = "rbac.authorization.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// Kinds by rank; what is not listed comes with the workloads.
const RANKS: [((&str, &str), u8); 22] = [
    (("", "Namespace"), 0),
    ((EXTENSIONS, "CustomResourceDefinition"), 0),
    ((GATEWAY_API, "GatewayClass"), 2),
    ((GATEWAY_API, "Gateway"), 2),
    ((GATEWAY_API, "ListenerSet"), 3),
    (("", "ServiceAccount"), 4),
    ((RBAC, "Role"), 4),
    ((RBAC, "ClusterRole"), 4),
    ((RBAC, "RoleBinding"), 5),
    ((RBAC, "ClusterRoleBinding"), 5),
    (("", "ConfigMap"), 6),
    (("", "Secret"), 6),
    (("", "Service"), 7),
    (("apps", "Deployment"), WORKLOAD),
    (("apps", "StatefulSet"), WORKLOAD),
    (("apps", "DaemonSet"), WORKLOAD),
    (("autoscaling", "HorizontalPodAutoscaler"), 9),
    (("autoscaling.k8s.io", "VerticalPodAutoscaler"), 9),
    (("policy", "PodDisruptionBudget"), 9),
    // Requests come when those are there whom they are for, and no more before they go.
    (("inference.networking.k8s.io", "InferencePool"), 10),
    (("inference.networking.x-k8s.io", "InferencePool"), 10),
    ((GATEWAY_API, "HTTPRoute"), 11),
];

const WORKLOAD: u8 = 8;

/// Returns the rank of an object by its kind; lower ranks are written first.
pub fn rank(id: &ObjectId) -> u8 {
    if is_parameters(&id.kind) {
        return 1;
    }
    RANKS.iter().find(|(kind, _)| *kind == id.group_kind()).map_or(WORKLOAD, |(_, rank)| *rank)
}

/// Returns which units are written together: those of one wave go beside each other, and after the waves before.
pub fn wave(unit: &ObjectId) -> u8 {
    match unit.group_kind() {
        ("", "Namespace") | (EXTENSIONS, "CustomResourceDefinition") => 0,
        (_, kind) if is_parameters(kind) => 0,
        (GATEWAY_API, "GatewayClass") => 1,
        _ => 2,
    }
}

/// Parameters of any pack, whose group nobody knows here: what refers to them comes after them.
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
            | Action::AdoptFromDeployer(_)
            | Action::Generate(_)
            | Action::Recreate(_)
            | Action::DeleteFirst(_)
            | Action::Unchanged
            | Action::Omit => 1,
        };
        let rank = |step: &Step| match phase(step) {
            2 => u8::MAX - rank(&step.id),
            _ => rank(&step.id),
        };
        let wave = |step: &Step| match phase(step) {
            2 => u8::MAX - wave(&step.unit),
            _ => wave(&step.unit),
        };
        // What has to go first stands before what takes its place.
        let takes = |step: &Step| !matches!(step.action, Action::DeleteFirst(_));
        let key = |step| (phase(step), wave(step), &step.unit, rank(step), takes(step), &step.id);
        key(a).cmp(&key(b))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_others_have_no_place_of_their_own_in_the_order() {
        for (group, kind, own) in [
            ("", "Service", 7),
            ("serving.knative.dev", "Service", WORKLOAD),
            (GATEWAY_API, "Gateway", 2),
            ("networking.istio.io", "Gateway", WORKLOAD),
            ("batch.volcano.sh", "Job", WORKLOAD),
            ("gateway.kgateway.dev", "GatewayParameters", 1),
        ] {
            assert_eq!(rank(&ObjectId::new(group, kind, "a", "b")), own, "{group}/{kind}");
        }
        assert_eq!(wave(&ObjectId::new("", "Namespace", "", "b")), 0);
        assert_eq!(wave(&ObjectId::new("example.com", "Namespace", "", "b")), 2);
    }
}
