//! The places of amounts in objects: known for the kinds of Kubernetes, and for containers wherever others have them.
//!
//! A [`Place`] is followed field by field; elements of a list stand where the list does. Which places there are is data
//! (`places.yaml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::kinds::is_of_kubernetes;
use crate::spec::overlay::GROUP;
use crate::yaml;

/// The name that stands for every field of a mapping.
const ANY: &str = "*";

/// The name that says of a mapping that each other field is as the mapping itself, but for metadata.
const DEEPER: &str = "**";

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut documents = yaml::parse_values(include_str!("places.yaml")).expect("a test reads it");
    serde_json::from_value(documents.pop().unwrap_or_default()).expect("a test reads it")
});

/// The content of `places.yaml`.
#[derive(Deserialize)]
struct Known {
    /// By group and kind.
    kinds: BTreeMap<String, BTreeMap<String, Shape>>,
    containers: Shape,
    requirements: Shape,
}

/// The part of a place that matters.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Shape {
    /// It is an amount, where the word says so.
    Amount(String),
    /// Fields below it; all others say nothing.
    Fields(BTreeMap<String, Self>),
}

/// A place in objects of a kind; `None` if no amount is there, or below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(Option<&'static Shape>);

impl Place {
    /// Returns the root of a kind: of Kubernetes, or another one that has containers, or what they need without them
    /// (`has_resources`).
    pub(crate) fn root(group: &str, kind: &str, has_resources: bool) -> Self {
        let other = if has_resources || group == GROUP { &KNOWN.requirements } else { &KNOWN.containers };
        Self(Self::built_in(group, kind).0.or((!is_of_kubernetes(group)).then_some(other)))
    }

    /// Returns the root of a kind whose amounts the server itself reads and writes in its own way.
    pub(crate) fn built_in(group: &str, kind: &str) -> Self {
        Self(KNOWN.kinds.get(group).and_then(|kinds| kinds.get(kind)))
    }

    /// Returns the place of a field.
    pub(crate) fn field(self, name: &str) -> Self {
        let Some(Shape::Fields(fields)) = self.0 else { return Self(None) };
        let same = self.0.filter(|_| fields.contains_key(DEEPER) && name != "metadata");
        Self(fields.get(name).or_else(|| fields.get(ANY)).or(same))
    }

    /// Tells whether what stands here is an amount.
    pub(crate) fn is_amount(self) -> bool {
        matches!(self.0, Some(Shape::Amount(word)) if word == "amount")
    }
}

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
