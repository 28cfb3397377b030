//! The objects that a release of a control plane deploys for a Gateway: those of our packs, written as it writes them.

use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Unit};
use gatewright_engine::yaml::Node;
use serde_json::{Value, json};

use super::layout::relaid;

pub(crate) const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// A control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Kgateway,
    Agentgateway,
}

/// A release of it, and how it was installed.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) product: Product,
    /// `packs.<name>` of a config that renders what it deploys.
    pub(crate) settings: Value,
}

/// The objects that it has to deploy, or the reason why there are none.
pub(super) enum Made {
    Objects(Vec<Value>),
    /// The Gateway is somebody else's.
    Nothing,
    /// Its parameters cannot be used.
    Refusal(String),
}

impl Release {
    /// A release of kgateway, such as `v2.4.0`; builds that were not released have versions like `1.0.0-ci1`.
    pub(crate) fn kgateway(version: &str) -> Self {
        let image = json!({"registry": "cr.kgateway.dev", "tag": version, "pullPolicy": "IfNotPresent"});
        let settings = json!({"image": image, "managedBy": "kgateway", "version": version});
        Self { product: Product::Kgateway, settings }
    }

    /// A release of agentgateway.
    pub(crate) fn agentgateway(version: &str) -> Self {
        let image = json!({"registry": "cr.agentgateway.dev", "tag": version, "pullPolicy": ""});
        let settings = json!({"image": image, "managedBy": "agentgateway", "version": version});
        Self { product: Product::Agentgateway, settings }
    }

    pub(super) fn packs(&self) -> Packs {
        let pack = gatewright_packs::pack(self.product.name(), &self.settings).expect("the settings are sound");
        let layer = self.settings.get("parameters").map_or_else(|| Node::of_value(&json!({})), Node::of_value);
        Packs::new(vec![pack.with_settings("settings", layer)]).expect("one pack is in nobody's way")
    }
}

impl Product {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kgateway => "kgateway",
            Self::Agentgateway => "agentgateway",
        }
    }

    /// Its name in classes, which is also that of its field manager.
    pub(crate) fn controller(self) -> &'static str {
        match self {
            Self::Kgateway => "kgateway.dev/kgateway",
            Self::Agentgateway => "agentgateway.dev/agentgateway",
        }
    }

    /// The version and kind of its parameters.
    pub(super) fn parameters(self) -> (&'static str, &'static str) {
        match self {
            Self::Kgateway => ("gateway.kgateway.dev/v1alpha1", "GatewayParameters"),
            Self::Agentgateway => ("agentgateway.dev/v1alpha1", "AgentgatewayParameters"),
        }
    }

    /// The classes that it makes itself.
    pub(super) fn classes(self) -> Vec<Value> {
        let names: &[&str] = match self {
            Self::Kgateway => &["kgateway", "kgateway-waypoint"],
            Self::Agentgateway => &["agentgateway"],
        };
        let class = |name: &&str| {
            json!({
                "apiVersion": format!("{GATEWAY_API}/v1"), "kind": "GatewayClass", "metadata": {"name": name},
                "spec": {"controllerName": self.controller()},
            })
        };
        names.iter().map(class).collect()
    }

    /// The kinds of which it deletes what it has not rendered.
    pub(super) fn pruned(self) -> &'static [(&'static str, &'static str)] {
        const AUTOSCALERS: [(&str, &str); 3] = [
            ("policy/v1", "PodDisruptionBudget"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
        ];
        const WORKLOADS_TOO: [(&str, &str); 5] =
            [("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"), AUTOSCALERS[0], AUTOSCALERS[1], AUTOSCALERS[2]];
        match self {
            Self::Kgateway => &AUTOSCALERS,
            Self::Agentgateway => &WORKLOADS_TOO,
        }
    }
}

/// Renders a Gateway from what is on the cluster.
pub(super) fn render(packs: &Packs, gateway: &Value, beside: &[Value]) -> Made {
    let documents = beside.iter().chain([gateway]).map(bare).collect::<Vec<_>>();
    let files = documents.iter().enumerate().map(|(n, document)| (format!("{n}.yaml"), document.to_string()));
    let rendering = unit::render(&files.collect::<Tree>(), packs, &Options::default());
    let name = |field: &str| gateway["metadata"][field].as_str().unwrap_or_default();
    let id = ObjectId::new(GATEWAY_API, "Gateway", name("namespace"), name("name"));
    if rendering.self_managed.contains(&id) {
        return Made::Nothing;
    }
    match rendering.units.iter().find(|unit| unit.id == id) {
        Some(unit) => Made::Objects(unit.all().map(|object| written(unit, object, gateway)).collect()),
        None => Made::Refusal(rendering.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// Returns a document without what only live objects have, and without what others mark it with.
fn bare(document: &Value) -> Value {
    let metadata = json!({"name": document["metadata"]["name"], "namespace": document["metadata"]["namespace"]});
    let metadata = metadata.as_object().expect("it was made here").clone().into_iter();
    let metadata: serde_json::Map<_, _> = metadata.filter(|(_, value)| !value.is_null()).collect();
    let (version, kind, spec) = (&document["apiVersion"], &document["kind"], &document["spec"]);
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn written(unit: &Unit, object: &Object, gateway: &Value) -> Value {
    let object = match unit.generated(object.id()) {
        Some(generated) => generated.value.filled(object, "bWFkZSBvbmNl"),
        None => object.clone(),
    };
    let mut body = object.body().clone();
    body["metadata"]["namespace"] = gateway["metadata"]["namespace"].clone();
    body["metadata"]["ownerReferences"] = json!([{
        "apiVersion": gateway["apiVersion"], "kind": "Gateway", "controller": true,
        "name": gateway["metadata"]["name"], "uid": gateway["metadata"]["uid"],
    }]);
    if object.id().kind == "ConfigMap" {
        for (key, text) in body["data"].as_object_mut().into_iter().flatten() {
            *text = text.as_str().and_then(|text| relaid(key, text)).map_or_else(|| text.clone(), Value::from);
        }
    }
    typed(&mut body);
    body
}

/// Sets what Go's types cannot leave out.
fn typed(body: &mut Value) {
    match body["kind"].as_str().unwrap_or_default() {
        "Deployment" | "DaemonSet" => {
            let field = if body["kind"] == "Deployment" { "strategy" } else { "updateStrategy" };
            set(&mut body["spec"], field, json!({}));
            let pod = &mut body["spec"]["template"]["spec"];
            for field in ["containers", "initContainers"] {
                let containers = pod.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
                containers.for_each(|container| set(container, "resources", json!({})));
            }
            body["status"] = json!({});
        }
        "Service" => body["status"] = json!({"loadBalancer": {}}),
        "HorizontalPodAutoscaler" => body["status"] = json!({"currentMetrics": null, "desiredReplicas": 0}),
        "PodDisruptionBudget" => {
            body["status"] =
                json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        }
        _ => {}
    }
}

fn set(object: &mut Value, field: &str, zero: Value) {
    if object.get(field).is_none() {
        object[field] = zero;
    }
}
