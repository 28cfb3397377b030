//! A row of the table of kinds, as `pack.yaml` writes it below `kinds`. Every column has a default.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One row: a kind and its columns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column that stands for itself")]
pub struct Row {
    /// Whether its objects are in a namespace.
    pub scope: Scope,
    /// The place of its objects within their unit; if absent that of workloads, or of parameters by its name.
    pub order: Option<Order>,
    /// The wave of units of this kind; if absent the last, or the first for parameters.
    pub wave: Option<Wave>,
    /// Whether a person has to approve that its objects are deleted.
    pub confirm: bool,
    /// Whether its objects may be deleted and created again, with consent, where a field cannot be changed.
    pub recreate: bool,
    /// Whether it takes long to become healthy, because models are loaded.
    pub slow: bool,
    /// When its objects are healthy.
    #[serde(deserialize_with = "health")]
    pub health: Health,
    /// The fields by which its objects name others.
    pub refers_to: Vec<Reference>,
    /// The field of others in which its objects are named with their kind.
    pub named_in: Option<String>,
    /// The things that `spec.selector` of its objects chooses.
    pub selects: Selects,
    /// Whether requests come in by its objects, so that they stand first in trees.
    pub route: bool,
    /// Paths of the templates of pods in its objects.
    pub templates: Vec<String>,
    /// The label by which its pods name their object, where it has no selector.
    pub pod_label: Option<String>,
    /// The label by which its pods name the part of it that they are.
    pub pod_part: Option<String>,
    /// Fields with a mapping of its parts, each with `replicas` and `readyReplicas`, as its operator writes them.
    pub parts: Vec<String>,
    /// The objects that its operator makes of its own.
    pub makes: Option<Makes>,
    /// Fields that others may add: they stay, and are no drift.
    pub others_may_add: Vec<String>,
    /// Whether its `spec` holds `resources` of containers without the containers.
    pub resources: bool,
    /// The rules by which strategic merge patches change its objects, where these are no knowledge of Kubernetes.
    pub strategic: Option<Strategic>,
    /// The version by which it is asked for where no object of it is at hand; if absent nothing looks for it.
    pub version: Option<String>,
    /// The short name that kubectl has for it.
    pub short: Option<String>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            order: None,
            wave: None,
            confirm: false,
            recreate: true,
            slow: false,
            health: Health::default(),
            refers_to: Vec::new(),
            named_in: None,
            selects: Selects::default(),
            route: false,
            templates: vec!["spec.template".to_owned()],
            pod_label: None,
            pod_part: None,
            parts: Vec::new(),
            makes: None,
            others_may_add: Vec::new(),
            resources: false,
            strategic: None,
            version: None,
            short: None,
        }
    }
}

/// The place of the objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// In a namespace, as most are.
    #[default]
    Namespaced,
    /// In none.
    Cluster,
}

/// The order in which the objects of a unit are written: what others need comes first. Deletion is the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Namespaces and kinds.
    Base,
    /// Parameters of packs.
    Parameters,
    /// Gateways and their classes.
    Gateway,
    /// Parts of a Gateway.
    Listeners,
    /// Accounts and roles.
    Account,
    /// Bindings of those.
    Binding,
    /// Files and keys.
    Config,
    /// Names in the network.
    Service,
    /// Workloads.
    Workload,
    /// Scaling and disruption budgets of workloads.
    Scaling,
    /// Ways to workloads. Requests come when those are there whom they are for, and no more before they go.
    Pool,
    /// Routes of requests there.
    Route,
}

/// The order in which units are written; those of one wave go beside each other. Deletion is the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wave {
    /// Needs of others: namespaces, kinds, parameters.
    Base,
    /// Classes.
    Class,
    /// Everything else.
    Unit,
}

/// The rule by which an object of a kind is healthy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// The conditions that many kinds share: `Stalled`, `Reconciling`, `Ready`.
    #[default]
    Conditions,
    /// As a Deployment: rolled out and available.
    Deployment,
    /// As a `StatefulSet`.
    StatefulSet,
    /// As a `DaemonSet`.
    DaemonSet,
    /// As a Service: one of type `LoadBalancer` may need an address.
    Service,
    /// As a Gateway: accepted by a control plane.
    Accepted,
    /// As a `CustomResourceDefinition`: served.
    Established,
    /// As a Job: complete.
    Job,
    /// By its controller, in its status.
    Said(Box<Said>),
    /// By others who use it, in its status: it is healthy unless one refuses it.
    Refusals(Refusals),
    /// An expression in CEL over `object`.
    #[serde(skip)]
    Current(Expressed),
}

/// An expression in CEL over `object` that is true once it is healthy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expressed {
    /// The expression.
    pub current: String,
    /// The message while it is not true.
    pub message: Option<String>,
}

impl Health {
    /// Returns the expression, if it is one.
    pub(crate) fn expression(&self) -> Option<&str> {
        if let Self::Current(expressed) = self { Some(&expressed.current) } else { None }
    }
}

/// Reads a rule of health: its name, with what it takes, or `current` with an expression, and perhaps a message beside it.
fn health<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Health, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let read = match value.get("current") {
        Some(_) => Expressed::deserialize(value).map(Health::Current),
        None => Health::deserialize(value),
    };
    read.map_err(D::Error::custom)
}

/// The verdict of a controller on an object, by conditions and fields.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Said {
    /// The word for the controller in messages.
    pub by: String,
    /// Types of conditions: the first that is there says whether the object is healthy.
    pub conditions: Vec<String>,
    /// Values of fields with which it is healthy, whatever else is said: all of one of these.
    pub current: Vec<BTreeMap<String, Value>>,
    /// Values of fields with which it has failed: all of one of these.
    pub failed: Vec<BTreeMap<String, Value>>,
    /// The type of the condition that says why it has failed, where that is another one.
    pub reason: Option<String>,
    /// The message where it has failed and nothing says why.
    pub failure: String,
    /// The message where a condition has none.
    pub unready: String,
    /// The message where nothing is said yet.
    pub unsaid: String,
    /// The field that names the phase, for messages.
    pub phase: Option<Phase>,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            by: "controller".to_owned(),
            conditions: Vec::new(),
            current: Vec::new(),
            failed: Vec::new(),
            reason: None,
            failure: "it has failed".to_owned(),
            unready: "it is not ready yet".to_owned(),
            unsaid: "its controller has not said anything about it yet".to_owned(),
            phase: None,
        }
    }
}

/// A field that names a phase.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The field.
    pub field: String,
    /// The phase where it says none.
    pub first: String,
}

/// Conditions of those who use an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusals {
    /// The field with the conditions.
    pub at: String,
    /// The types of which none may be `False`.
    pub conditions: Vec<String>,
    /// The message where a condition has none.
    pub unready: String,
}

/// The rules by which a strategic merge patch changes objects of a custom kind, as its definition has them. What is not
/// said merges if it is a mapping, and is replaced if it is a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Strategic {
    /// Paths of lists whose items merge, each with the field that tells items apart; `*` stands for each item of a list.
    pub keys: BTreeMap<String, String>,
    /// Paths of templates of pods.
    pub pod_templates: Vec<String>,
    /// Paths of specs of pods.
    pub pods: Vec<String>,
}

/// A field that names another object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// The field; `*` stands for each item of a list.
    pub path: String,
    /// The kind that is meant where the reference says none.
    #[serde(default)]
    pub kind: String,
}

/// The things that a selector chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Selects {
    /// Nothing that matters here.
    #[default]
    Nothing,
    /// The pods that requests go to.
    Pods,
    /// The workload with the same selector, which it is about.
    Workload,
}

/// Objects that an operator makes of another one, of the same group and version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Makes {
    /// Its kind.
    pub kind: String,
    /// The label that names the object.
    pub name_label: String,
    /// The label that names its namespace.
    pub namespace_label: String,
}
