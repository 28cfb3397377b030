//! The content of a graph, whichever version of the API it is written in.

use serde::Deserialize;
use serde_json::{Map, Value};

use gatewright_engine::pack::gateway::Map as Texts;

/// Fields of a part of a pod.
pub(super) type Fields = Map<String, Value>;

/// The kinds that make pods of several nodes: group and kind.
pub(super) const GROVE: (&str, &str) = ("grove.io", "PodCliqueSet");
pub(super) const LWS: (&str, &str) = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet");

/// The annotation that names a queue of KAI.
pub(super) const QUEUE: &str = "nvidia.com/kai-scheduler-queue";

/// A `DynamoGraphDeployment`, or one component that stands alone as a `DynamoComponentDeployment`.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) namespace: String,
    /// Whether it is a component that stands alone: its workload bears its own name.
    pub(super) alone: bool,
    /// `metadata.annotations`.
    pub(super) switches: Texts,
    /// Of all that is made.
    pub(super) labels: Texts,
    pub(super) annotations: Texts,
    pub(super) backend: Option<String>,
    pub(super) env: Vec<Value>,
    /// `spec.pvcs`.
    pub(super) claims: Vec<Claim>,
    pub(super) priority_class: Option<String>,
    /// `spec.restart.id`.
    pub(super) restart: Option<String>,
    pub(super) components: Vec<Component>,
}

/// The purpose of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Type {
    Frontend,
    Worker,
    Prefill,
    Decode,
    Planner,
    Epp,
    #[default]
    Other,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Component {
    /// The name as it was written.
    pub(super) name: String,
    /// Its path in the document.
    pub(super) path: Vec<String>,
    pub(super) kind: Type,
    /// `componentType` as it was written.
    pub(super) kind_text: String,
    pub(super) sub_type: Option<String>,
    /// Whether it is in the namespace that all graphs share.
    pub(super) global: bool,
    pub(super) replicas: Option<u64>,
    pub(super) min_available: Option<u64>,
    pub(super) nodes: u64,
    /// Whether a scaling adapter owns the replicas.
    pub(super) scaled: bool,
    /// Of its pods.
    pub(super) labels: Texts,
    pub(super) annotations: Texts,
    /// The pod as the user wants it, without the main container.
    pub(super) pod: Fields,
    pub(super) main: Fields,
    /// Mounts that name claims, by the name of the claim.
    pub(super) mounted_claims: Vec<String>,
    /// Size of the shared memory; `None` for the default, zero for none.
    pub(super) shared_memory: Option<String>,
    /// `modelRef.name`.
    pub(super) model: Option<String>,
    pub(super) ingress: Option<Ingress>,
    /// `eppConfig`.
    pub(super) picker: Option<Picker>,
    /// Folder of the compilation cache.
    pub(super) cache: Option<String>,
    /// The container beside the main one that is a frontend for it alone.
    pub(super) sidecar: Option<String>,
    /// `dynamoNamespace`, which no longer counts but in labels of pods and in what selects them.
    pub(super) labelled_namespace: Option<String>,
}

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Claim {
    pub(super) name: Option<String>,
    /// Whether it is made here.
    pub(super) create: Option<bool>,
    pub(super) storage_class: Option<String>,
    pub(super) size: Value,
    pub(super) volume_access_mode: Option<String>,
}

/// The way to a frontend from outside.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Ingress {
    pub(super) enabled: Option<bool>,
    pub(super) host: Option<String>,
    pub(super) host_prefix: Option<String>,
    pub(super) host_suffix: Option<String>,
    #[serde(rename = "ingressControllerClassName")]
    pub(super) class_name: Option<String>,
    pub(super) use_virtual_service: Option<bool>,
    pub(super) virtual_service_gateway: Option<String>,
    pub(super) tls: Option<Tls>,
    pub(super) labels: Value,
    pub(super) annotations: Value,
}

/// The certificate of that way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tls {
    pub(super) secret_name: Option<String>,
}

/// The configuration of an endpoint picker: itself, or where it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Picker {
    pub(super) config: Option<Value>,
    pub(super) config_map_ref: Option<ConfigMapRef>,
}

/// An entry of a `ConfigMap`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfigMapRef {
    pub(super) name: Option<String>,
    pub(super) key: Option<String>,
}

impl Type {
    /// Reads a type; one that nobody here knows is like none.
    pub(super) fn of(text: &str) -> Self {
        serde_json::from_value(text.into()).unwrap_or_default()
    }

    /// Returns the name under which the pack's data describes it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Worker | Self::Prefill | Self::Decode => "worker",
            Self::Planner => "planner",
            Self::Epp => "epp",
            Self::Other => "other",
        }
    }

    /// Tells whether it does one of the two phases of an answer, the other being done elsewhere.
    pub(super) fn is_phase(self) -> bool {
        matches!(self, Self::Prefill | Self::Decode)
    }

    /// Tells whether it runs a model.
    pub(super) fn is_worker(self) -> bool {
        matches!(self, Self::Worker | Self::Prefill | Self::Decode)
    }
}

impl Graph {
    /// Returns the namespace, in Dynamo's sense, in which a component is found by others.
    pub(super) fn dynamo_namespace(&self, component: &Component) -> String {
        if component.global { "dynamo".to_owned() } else { format!("{}-{}", self.namespace, self.name) }
    }

    /// Returns the name of the objects of a component.
    pub(super) fn child(&self, component: &Component) -> String {
        if self.alone { self.name.clone() } else { format!("{}-{}", self.name, component.lower()) }
    }

    /// Tells whether it has an endpoint picker.
    pub(super) fn has_picker(&self) -> bool {
        self.components.iter().any(|component| component.kind == Type::Epp)
    }

    /// Returns a switch of the whole graph: an annotation of the document or of `spec.annotations`.
    pub(super) fn switch(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).or_else(|| self.switches.get(key)).map(String::as_str)
    }

    /// Returns a switch of a component, or else of the whole graph.
    pub(super) fn switch_of<'a>(&'a self, component: &'a Component, key: &str) -> Option<&'a str> {
        component.annotations.get(key).map(String::as_str).or_else(|| self.switch(key))
    }
}

impl Component {
    /// Returns its name as names of objects are written.
    pub(super) fn lower(&self) -> String {
        self.name.to_lowercase().replace('.', "-")
    }

    /// Returns how many replicas it has; each may be several pods.
    pub(super) fn replicas(&self) -> u64 {
        self.replicas.unwrap_or(1)
    }

    /// Tells whether one replica of it is several pods.
    pub(super) fn is_multinode(&self) -> bool {
        self.nodes > 1
    }

    /// Returns how many GPUs its main container asks for.
    pub(super) fn gpus(&self) -> u64 {
        let resources = self.main.get("resources").cloned().unwrap_or_default();
        let count = |part: &str| {
            let quantities = resources[part].as_object()?;
            let gpu = quantities.iter().find(|(name, _)| name.ends_with("/gpu"))?.1;
            gpu.as_u64().or_else(|| gpu.as_str()?.parse().ok())
        };
        count("requests").or_else(|| count("limits")).unwrap_or(0)
    }
}

/// Returns the fields of a mapping, or none.
pub(super) fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the items of a list, or none.
pub(super) fn list(value: Option<&Value>) -> Vec<Value> {
    value.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Sets a list that is a field; an empty one takes the field away.
pub(super) fn set_list(fields: &mut Fields, field: &str, items: Vec<Value>) {
    if items.is_empty() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), items.into());
    }
}

/// Puts named things over others of the same names.
pub(super) fn by_name(mut lower: Vec<Value>, higher: Vec<Value>) -> Vec<Value> {
    lower.retain(|item| !higher.iter().any(|above| above["name"] == item["name"]));
    lower.extend(higher);
    lower
}
