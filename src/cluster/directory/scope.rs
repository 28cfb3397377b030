//! Which kinds are in no namespace, where there is no server to ask.

use gatewright_engine::object::Gvk;

use crate::cluster::KindScope;

/// Kinds that are in no namespace: those of Kubernetes itself, and those that gateways and model servers come with.
const CLUSTER_SCOPED: [(&str, &str); 27] = [
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("cert-manager.io", "ClusterIssuer"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("serving.kserve.io", "ClusterServingRuntime"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// Decides where objects of a kind belong; a kind that is not known is namespaced, as most are.
pub(crate) fn scope_of(kind: &Gvk) -> KindScope {
    if CLUSTER_SCOPED.contains(&(kind.group.as_str(), kind.kind.as_str())) {
        KindScope::Cluster
    } else {
        KindScope::Namespaced
    }
}
