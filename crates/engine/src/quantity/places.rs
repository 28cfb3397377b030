//! The places of amounts in objects: known for the kinds of Kubernetes, and for containers wherever others have them.
//!
//! A [`Place`] is followed field by field; elements of a list stand where the list does.

use crate::kinds::is_of_kubernetes;
use crate::spec::overlay::GROUP;

/// The fields below a place that matter here.
#[derive(Debug)]
enum Shape {
    /// No amount is here, or below.
    Nothing,
    /// This is an amount.
    Amount,
    /// Fields of these names, and nothing else.
    Fields(&'static [(&'static str, &'static Self)]),
    /// A mapping of anybody's names, all alike.
    Each(&'static Self),
    /// Fields of these names; each other one is as the mapping that it is in, but for metadata.
    Somewhere(&'static [(&'static str, &'static Self)]),
}

/// A place in objects of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(&'static Shape);

impl Place {
    /// Returns the root of a kind: of Kubernetes, or another one that has containers, or what they need without them
    /// (`has_resources`).
    pub(crate) fn root(group: &str, kind: &str, has_resources: bool) -> Self {
        let built_in = Self::built_in(group, kind);
        if matches!(built_in.0, Shape::Nothing) && !is_of_kubernetes(group) {
            return Self(if has_resources || group == GROUP { &REQUIREMENTS } else { &CONTAINERS });
        }
        built_in
    }

    /// Returns the root of a kind whose amounts the server itself reads and writes in its own way.
    pub(crate) fn built_in(group: &str, kind: &str) -> Self {
        let known = KINDS.iter().find(|((of, name), _)| *of == group && *name == kind);
        Self(known.map_or(&Shape::Nothing, |(_, shape)| shape))
    }

    /// Returns the place of a field.
    pub(crate) fn field(self, name: &str) -> Self {
        let below = |fields: &'static [(&str, &'static Shape)]| {
            fields.iter().find(|(field, _)| *field == name).map(|(_, shape)| *shape)
        };
        Self(match self.0 {
            Shape::Nothing | Shape::Amount => &Shape::Nothing,
            Shape::Fields(fields) => below(fields).unwrap_or(&Shape::Nothing),
            Shape::Each(shape) => shape,
            Shape::Somewhere(_) if name == "metadata" => &Shape::Nothing,
            Shape::Somewhere(fields) => below(fields).unwrap_or(self.0),
        })
    }

    /// Tells whether what stands here is an amount.
    pub(crate) fn is_amount(self) -> bool {
        matches!(self.0, Shape::Amount)
    }
}

static AMOUNT: Shape = Shape::Amount;
static AMOUNTS: Shape = Shape::Each(&AMOUNT);
static RESOURCES: Shape = Shape::Fields(&[("limits", &AMOUNTS), ("requests", &AMOUNTS)]);

static FIELD_REF: Shape = Shape::Fields(&[("resourceFieldRef", &Shape::Fields(&[("divisor", &AMOUNT)]))]);
static CONTAINER: Shape = Shape::Fields(&[("resources", &RESOURCES), ("env", &ENV)]);
static ENV: Shape = Shape::Fields(&[("valueFrom", &FIELD_REF)]);

static CLAIM: Shape = Shape::Fields(&[("spec", &Shape::Fields(&[("resources", &RESOURCES)]))]);
static DOWNWARD: Shape = Shape::Fields(&[("items", &FIELD_REF)]);
static VOLUME: Shape = Shape::Fields(&[
    ("emptyDir", &Shape::Fields(&[("sizeLimit", &AMOUNT)])),
    ("ephemeral", &Shape::Fields(&[("volumeClaimTemplate", &CLAIM)])),
    ("downwardAPI", &DOWNWARD),
    ("projected", &Shape::Fields(&[("sources", &Shape::Fields(&[("downwardAPI", &DOWNWARD)]))])),
]);

static POD: Shape = Shape::Fields(&[
    ("containers", &CONTAINER),
    ("initContainers", &CONTAINER),
    ("ephemeralContainers", &CONTAINER),
    ("overhead", &AMOUNTS),
    ("resources", &RESOURCES),
    ("volumes", &VOLUME),
]);
static PODS: Shape = Shape::Fields(&[("spec", &POD)]);
static TEMPLATE: Shape = Shape::Fields(&[("template", &PODS)]);
static WORKLOAD: Shape = Shape::Fields(&[("spec", &TEMPLATE)]);
static STATEFUL_SET: Shape =
    Shape::Fields(&[("spec", &Shape::Fields(&[("template", &PODS), ("volumeClaimTemplates", &CLAIM)]))]);
static CRON_JOB: Shape = Shape::Fields(&[("spec", &Shape::Fields(&[("jobTemplate", &WORKLOAD)]))]);

static METRIC: Shape = Shape::Fields(&[("target", &Shape::Fields(&[("value", &AMOUNT), ("averageValue", &AMOUNT)]))]);
static SCALING: Shape = Shape::Fields(&[("tolerance", &AMOUNT)]);
static AUTOSCALER: Shape = Shape::Fields(&[(
    "spec",
    &Shape::Fields(&[
        (
            "metrics",
            &Shape::Fields(&[
                ("resource", &METRIC),
                ("containerResource", &METRIC),
                ("pods", &METRIC),
                ("object", &METRIC),
                ("external", &METRIC),
            ]),
        ),
        ("behavior", &Shape::Fields(&[("scaleUp", &SCALING), ("scaleDown", &SCALING)])),
    ]),
)]);

static LIMITS: Shape = Shape::Fields(&[
    ("max", &AMOUNTS),
    ("min", &AMOUNTS),
    ("default", &AMOUNTS),
    ("defaultRequest", &AMOUNTS),
    ("maxLimitRequestRatio", &AMOUNTS),
]);
static LIMIT_RANGE: Shape = Shape::Fields(&[("spec", &Shape::Fields(&[("limits", &LIMITS)]))]);
static QUOTA: Shape = Shape::Fields(&[("spec", &Shape::Fields(&[("hard", &AMOUNTS)]))]);
static VOLUME_OF_CLUSTER: Shape = Shape::Fields(&[("spec", &Shape::Fields(&[("capacity", &AMOUNTS)]))]);
static RUNTIME: Shape = Shape::Fields(&[("overhead", &Shape::Fields(&[("podFixed", &AMOUNTS)]))]);
static CAPACITY: Shape = Shape::Fields(&[("capacity", &AMOUNT), ("maximumVolumeSize", &AMOUNT)]);

/// The kinds of Kubernetes in which amounts stand, by group.
static KINDS: [((&str, &str), &Shape); 16] = [
    (("", "Pod"), &PODS),
    (("", "PodTemplate"), &TEMPLATE),
    (("", "ReplicationController"), &WORKLOAD),
    (("", "PersistentVolumeClaim"), &CLAIM),
    (("", "PersistentVolume"), &VOLUME_OF_CLUSTER),
    (("", "ResourceQuota"), &QUOTA),
    (("", "LimitRange"), &LIMIT_RANGE),
    (("apps", "Deployment"), &WORKLOAD),
    (("apps", "ReplicaSet"), &WORKLOAD),
    (("apps", "DaemonSet"), &WORKLOAD),
    (("apps", "StatefulSet"), &STATEFUL_SET),
    (("batch", "Job"), &WORKLOAD),
    (("batch", "CronJob"), &CRON_JOB),
    (("autoscaling", "HorizontalPodAutoscaler"), &AUTOSCALER),
    (("node.k8s.io", "RuntimeClass"), &RUNTIME),
    (("storage.k8s.io", "CSIStorageCapacity"), &CAPACITY),
];

/// The contents of `spec` in kinds of others: containers, as in pods, wherever they are.
static CONTAINERS: Shape = Shape::Fields(&[("spec", &CONTAINERS_BELOW)]);
static CONTAINERS_BELOW: Shape = Shape::Somewhere(&[
    ("containers", &CONTAINER),
    ("initContainers", &CONTAINER),
    ("ephemeralContainers", &CONTAINER),
]);
static REQUIREMENTS: Shape = Shape::Fields(&[("spec", &REQUIREMENTS_BELOW)]);
static REQUIREMENTS_BELOW: Shape = Shape::Somewhere(&[("resources", &RESOURCES)]);

#[cfg(test)]
mod tests {
    use super::*;

    fn is_amount(group: &str, kind: &str, path: &str) -> bool {
        path.split('.').fold(Place::root(group, kind, kind == "Requirements"), Place::field).is_amount()
    }

    #[test]
    fn amounts_are_where_the_kind_says_so() {
        for (group, kind, path) in [
            ("apps", "Deployment", "spec.template.spec.containers.resources.limits.cpu"),
            ("apps", "DaemonSet", "spec.template.spec.initContainers.resources.requests.memory"),
            ("apps", "Deployment", "spec.template.spec.volumes.emptyDir.sizeLimit"),
            ("apps", "StatefulSet", "spec.volumeClaimTemplates.spec.resources.requests.storage"),
            ("batch", "CronJob", "spec.jobTemplate.spec.template.spec.containers.resources.limits.cpu"),
            ("", "PersistentVolumeClaim", "spec.resources.requests.storage"),
            ("", "ResourceQuota", "spec.hard.pods"),
            ("", "LimitRange", "spec.limits.default.cpu"),
            ("autoscaling", "HorizontalPodAutoscaler", "spec.metrics.pods.target.averageValue"),
            ("example.com", "ModelService", "spec.template.containers.resources.limits.memory"),
            ("example.com", "PodGroup", "spec.a.leaderTemplate.spec.containers.resources.limits.x"),
            ("example.com", "Requirements", "spec.services.Frontend.resources.requests.cpu"),
        ] {
            assert!(is_amount(group, kind, path), "{group}/{kind} {path}");
        }
    }

    #[test]
    fn what_only_looks_like_an_amount_is_none() {
        for (group, kind, path) in [
            ("apps", "Deployment", "metadata.labels.version"),
            ("apps", "Deployment", "spec.template.metadata.annotations.limits"),
            ("apps", "Deployment", "spec.template.spec.containers.env.value"),
            ("apps", "Deployment", "spec.replicas"),
            ("", "ConfigMap", "data.cpu"),
            ("", "Secret", "stringData.cpu"),
            ("", "Service", "spec.ports.targetPort"),
            ("policy", "PodDisruptionBudget", "spec.minAvailable"),
            ("example.com", "Deployment", "spec.metadata.containers.resources.limits.cpu"),
            ("example.com", "Widget", "spec.resources.limits.cpu"),
            ("example.com", "Widget", "containers.resources.limits.cpu"),
            ("networking.k8s.io", "Ingress", "spec.containers.resources.limits.cpu"),
        ] {
            assert!(!is_amount(group, kind, path), "{group}/{kind} {path}");
        }
    }
}
