//! Files of the built-in packs that are nothing but a folder.

use super::builtin::File;

/// Pools and their pickers.
pub(super) const ENDPOINT_PICKER: [File; 36] = [
    ("pack.yaml", include_str!("../../../../templates/endpoint-picker/pack.yaml")),
    ("configmap.yaml", include_str!("../../../../templates/endpoint-picker/configmap.yaml")),
    ("defaults.yaml", include_str!("../../../../templates/endpoint-picker/defaults.yaml")),
    ("deployment.yaml", include_str!("../../../../templates/endpoint-picker/deployment.yaml")),
    ("gke-backendpolicy.yaml", include_str!("../../../../templates/endpoint-picker/gke-backendpolicy.yaml")),
    (
        "gke-clusterpodmonitoring.yaml",
        include_str!("../../../../templates/endpoint-picker/gke-clusterpodmonitoring.yaml"),
    ),
    ("gke-healthcheckpolicy.yaml", include_str!("../../../../templates/endpoint-picker/gke-healthcheckpolicy.yaml")),
    ("gke-podmonitoring.yaml", include_str!("../../../../templates/endpoint-picker/gke-podmonitoring.yaml")),
    ("gke-reader-clusterrole.yaml", include_str!("../../../../templates/endpoint-picker/gke-reader-clusterrole.yaml")),
    (
        "gke-reader-clusterrolebinding.yaml",
        include_str!("../../../../templates/endpoint-picker/gke-reader-clusterrolebinding.yaml"),
    ),
    ("gke-reader-role.yaml", include_str!("../../../../templates/endpoint-picker/gke-reader-role.yaml")),
    ("gke-reader-rolebinding.yaml", include_str!("../../../../templates/endpoint-picker/gke-reader-rolebinding.yaml")),
    ("gke-reader-secret.yaml", include_str!("../../../../templates/endpoint-picker/gke-reader-secret.yaml")),
    (
        "gke-reader-serviceaccount.yaml",
        include_str!("../../../../templates/endpoint-picker/gke-reader-serviceaccount.yaml"),
    ),
    ("httproute.yaml", include_str!("../../../../templates/endpoint-picker/httproute.yaml")),
    ("inferenceobjectives.yaml", include_str!("../../../../templates/endpoint-picker/inferenceobjectives.yaml")),
    ("inferencepool.yaml", include_str!("../../../../templates/endpoint-picker/inferencepool.yaml")),
    ("istio-destinationrule.yaml", include_str!("../../../../templates/endpoint-picker/istio-destinationrule.yaml")),
    (
        "latency-prediction-configmap.yaml",
        include_str!("../../../../templates/endpoint-picker/latency-prediction-configmap.yaml"),
    ),
    (
        "latency-training-configmap.yaml",
        include_str!("../../../../templates/endpoint-picker/latency-training-configmap.yaml"),
    ),
    ("leader-election-role.yaml", include_str!("../../../../templates/endpoint-picker/leader-election-role.yaml")),
    (
        "leader-election-rolebinding.yaml",
        include_str!("../../../../templates/endpoint-picker/leader-election-rolebinding.yaml"),
    ),
    ("parameters.schema.yaml", include_str!("../../../../templates/endpoint-picker/parameters.schema.yaml")),
    ("pods-role.yaml", include_str!("../../../../templates/endpoint-picker/pods-role.yaml")),
    ("pods-rolebinding.yaml", include_str!("../../../../templates/endpoint-picker/pods-rolebinding.yaml")),
    ("pool-role.yaml", include_str!("../../../../templates/endpoint-picker/pool-role.yaml")),
    ("pool-rolebinding.yaml", include_str!("../../../../templates/endpoint-picker/pool-rolebinding.yaml")),
    ("pool-v1alpha2.schema.yaml", include_str!("../../../../templates/endpoint-picker/pool-v1alpha2.schema.yaml")),
    ("pool.schema.yaml", include_str!("../../../../templates/endpoint-picker/pool.schema.yaml")),
    ("service.yaml", include_str!("../../../../templates/endpoint-picker/service.yaml")),
    ("serviceaccount.yaml", include_str!("../../../../templates/endpoint-picker/serviceaccount.yaml")),
    ("servicemonitor.yaml", include_str!("../../../../templates/endpoint-picker/servicemonitor.yaml")),
    ("sidecar-configmap.yaml", include_str!("../../../../templates/endpoint-picker/sidecar-configmap.yaml")),
    (
        "token-review-clusterrole.yaml",
        include_str!("../../../../templates/endpoint-picker/token-review-clusterrole.yaml"),
    ),
    (
        "token-review-clusterrolebinding.yaml",
        include_str!("../../../../templates/endpoint-picker/token-review-clusterrolebinding.yaml"),
    ),
    ("token-secret.yaml", include_str!("../../../../templates/endpoint-picker/token-secret.yaml")),
];

/// What puts the model of a request into a header.
pub(super) const BODY_BASED_ROUTER: [File; 14] = [
    ("pack.yaml", include_str!("../../../../templates/body-based-router/pack.yaml")),
    ("clusterrole.yaml", include_str!("../../../../templates/body-based-router/clusterrole.yaml")),
    ("clusterrolebinding.yaml", include_str!("../../../../templates/body-based-router/clusterrolebinding.yaml")),
    ("defaults.yaml", include_str!("../../../../templates/body-based-router/defaults.yaml")),
    ("deployment.yaml", include_str!("../../../../templates/body-based-router/deployment.yaml")),
    ("gke-healthcheckpolicy.yaml", include_str!("../../../../templates/body-based-router/gke-healthcheckpolicy.yaml")),
    ("gke-routingextension.yaml", include_str!("../../../../templates/body-based-router/gke-routingextension.yaml")),
    ("istio-destinationrule.yaml", include_str!("../../../../templates/body-based-router/istio-destinationrule.yaml")),
    ("istio-envoyfilter.yaml", include_str!("../../../../templates/body-based-router/istio-envoyfilter.yaml")),
    ("parameters.schema.yaml", include_str!("../../../../templates/body-based-router/parameters.schema.yaml")),
    ("role.yaml", include_str!("../../../../templates/body-based-router/role.yaml")),
    ("rolebinding.yaml", include_str!("../../../../templates/body-based-router/rolebinding.yaml")),
    ("service.yaml", include_str!("../../../../templates/body-based-router/service.yaml")),
    ("serviceaccount.yaml", include_str!("../../../../templates/body-based-router/serviceaccount.yaml")),
];
