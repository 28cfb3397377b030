//! Labels and annotations: what is on the workloads of a component, on its Service and on its pods.

use super::model::{Component, QUEUE, Type};
use super::nodes::Provider;
use super::pod::{Maker, model_hash};
use super::settings::ServiceMesh;
use crate::json::{layered, said};
use gatewright_engine::pack::gateway::Map as Texts;

/// Annotations of a graph that all its components inherit, because the operator reads them on each.
const INHERITED: [&str; 5] = [
    "nvidia.com/enable-metrics",
    DISCOVERY,
    "nvidia.com/dynamo-kube-discovery-mode",
    ORIGIN,
    "nvidia.com/vllm-distributed-executor-backend",
];

/// The label, and under Grove also the annotation, that names what components find each other by.
pub(super) const DISCOVERY: &str = "nvidia.com/dynamo-discovery-backend";

/// The annotation with the version of the operator that a graph was made for.
pub(super) const ORIGIN: &str = "nvidia.com/dynamo-operator-origin-version";

impl Maker<'_> {
    /// Returns the labels of the workload of a component.
    pub(super) fn labels(&self, component: &Component) -> Texts {
        let graph = self.graph;
        let is_picked = graph.has_picker() && component.kind.is_worker();
        // What it stands for is worked out by the operator, and only where it moves from one set of workers to another.
        let is_hashed = component.kind.is_worker() && self.provider != Provider::Grove;
        let own = texts([
            ("nvidia.com/dynamo-graph-deployment-name", Some(graph.name.clone())),
            ("nvidia.com/dynamo-component", Some(component.name.clone())),
            ("nvidia.com/dynamo-namespace", Some(graph.dynamo_namespace(component))),
            ("nvidia.com/dynamo-sub-component-type", component.sub_type.clone()),
            ("nvidia.com/dynamo-base-model-hash", component.model.as_deref().map(model_hash)),
            ("nvidia.com/dynamo-component-class", is_picked.then(|| "worker".to_owned())),
            ("nvidia.com/dynamo-worker-hash", is_hashed.then(String::new)),
        ]);
        layered([&graph.labels, &component.labels, &own])
    }

    /// Returns the labels of the Service of a component.
    pub(super) fn service_labels(&self, component: &Component) -> Texts {
        layered([&self.labels(component), &self.discovery_labels()])
    }

    /// Returns the labels of the pods of a component.
    pub(super) fn pod_labels(&self, component: &Component) -> Texts {
        let graph = self.graph;
        let is_grove = self.provider == Provider::Grove;
        let is_measured = graph.switch_of(component, "nvidia.com/enable-metrics") != Some("false");
        let own = texts([
            ("nvidia.com/selector", Some(graph.child(component))),
            ("nvidia.com/dynamo-namespace", component.labelled_namespace.clone().filter(|_| !is_grove)),
            ("nvidia.com/dynamo-component-type", said(&component.kind_text).map(str::to_owned)),
            ("nvidia.com/metrics-enabled", is_measured.then(|| "true".to_owned())),
            ("kai.scheduler/queue", self.queue(component)),
        ]);
        layered([&self.service_labels(component), &own])
    }

    fn discovery_labels(&self) -> Texts {
        let is_discovered = self.settings.provisions_discovery();
        texts([
            (DISCOVERY, is_discovered.then(|| "kubernetes".to_owned())),
            ("nvidia.com/dynamo-discovery-enabled", is_discovered.then(|| "true".to_owned())),
        ])
    }

    /// Returns the annotations of the workload of a component and of its Service.
    pub(super) fn annotations(&self, component: &Component) -> Texts {
        let graph = self.graph;
        let is_grove = self.provider == Provider::Grove;
        let mut inherited = graph.switches.clone();
        inherited.retain(|key, _| INHERITED.contains(&key.as_str()));
        let is_discovered = self.settings.provisions_discovery();
        let is_meshed = !is_grove || self.settings.service_mesh == ServiceMesh::Istio;
        let beneath = texts([
            (DISCOVERY, (is_grove && is_discovered).then(|| "kubernetes".to_owned())),
            (ORIGIN, said(&self.settings.operator_version).filter(|_| is_grove).map(str::to_owned)),
            // Its certificate is its own, so that a mesh must not come between.
            ("sidecar.istio.io/inject", (component.kind == Type::Epp && is_meshed).then(|| "false".to_owned())),
            ("nvidia.com/dynamo-base-model", component.model.clone().filter(|_| !is_grove)),
        ]);
        layered([&beneath, &inherited, &graph.annotations, &component.annotations])
    }

    /// Returns the annotations of the pods of a component.
    pub(super) fn pod_annotations(&self, component: &Component) -> Texts {
        let restart = texts([("nvidia.com/restartAt", self.graph.restart.clone())]);
        layered([&self.annotations(component), &restart])
    }

    /// The queue of KAI that its pods wait in, if anybody names one.
    pub(super) fn queue(&self, component: &Component) -> Option<String> {
        let named = self.graph.switch_of(component, QUEUE);
        said(named.unwrap_or(&self.settings.orchestrators.kai.queue)).map(str::to_owned)
    }
}

fn texts<const N: usize>(all: [(&str, Option<String>); N]) -> Texts {
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
