//! The needs of a graph on a cluster, and those that are not met: said before anything is written.
//!
//! Pure functions of the graph, the settings and what is known of the cluster.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::quantity::Quantity;
use gatewright_engine::selector::Capabilities;
use gatewright_engine::text::count;
use serde_json::Value;

use super::model::{Component, GROVE, Graph, LWS, QUEUE, Type, list};
use super::settings::{ServiceMesh, Settings, WorkloadProvider};
use super::{is_graph, read};
use crate::problems;

/// The needs of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Kinds that the cluster has to serve: of each line one is enough.
    kinds: Vec<Vec<(&'static str, String)>>,
    /// Whether Dynamo's operator has to be at work.
    operator: bool,
    /// Settings of the pack without which something does not work; without others nothing is rendered.
    settings: BTreeSet<String>,
    /// Queues of the KAI scheduler.
    queues: BTreeSet<String>,
    /// Schedulers other than that of Kubernetes.
    schedulers: BTreeSet<String>,
    /// The number of pods.
    pods: u64,
    /// The resources that all pods ask for together: GPUs, cpu, memory and whatever else.
    totals: BTreeMap<String, Quantity>,
}

/// Works out what a graph needs.
fn needs(graph: &Graph, kind: &str, settings: &Settings, is_expanded: bool) -> Needs {
    let mut needs = Needs::default();
    let mut needs_one = |of: &[(&'static str, &str)]| {
        needs.kinds.push(of.iter().map(|(group, kind)| (*group, (*kind).to_owned())).collect());
    };
    let is_several = graph.components.iter().any(Component::is_multinode);
    if is_expanded {
        match settings.workload_provider {
            WorkloadProvider::Grove => needs_one(&[GROVE]),
            WorkloadProvider::Auto if is_several => needs_one(&[GROVE, LWS]),
            WorkloadProvider::Lws if is_several => needs_one(&[LWS]),
            _ => {}
        }
        if settings.provisions_discovery() {
            needs_one(&[("nvidia.com", "DynamoWorkerMetadata")]);
        }
        if graph.has_picker() {
            needs_one(&[("inference.networking.k8s.io", "InferencePool")]);
            if !settings.inference_gateway.gateway_name.is_empty() {
                needs_one(&[("gateway.networking.k8s.io", "HTTPRoute")]);
            }
            if settings.service_mesh == ServiceMesh::Istio {
                needs_one(&[("networking.istio.io", "DestinationRule")]);
            }
        }
    } else {
        needs_one(&[("nvidia.com", kind)]);
        if is_several {
            needs_one(&[GROVE, LWS]);
        }
        needs.operator = true;
    }
    for component in &graph.components {
        of_component(&mut needs, graph, component);
    }
    if !needs.queues.is_empty() {
        needs.kinds.push(vec![("scheduling.run.ai", "Queue".to_owned())]);
    }
    needs
}

fn of_component(needs: &mut Needs, graph: &Graph, component: &Component) {
    let labels = [component.labels.get("kai.scheduler/queue"), component.annotations.get(QUEUE)];
    needs.queues.extend(labels.into_iter().flatten().cloned());
    needs.queues.extend(graph.switch(QUEUE).map(str::to_owned));
    needs.schedulers.extend(component.pod.get("schedulerName").and_then(Value::as_str).map(str::to_owned));
    if component.kind == Type::Planner {
        needs.settings.insert("infrastructure.prometheusEndpoint".to_owned());
    }
    let pods = component.replicas().saturating_mul(component.nodes);
    needs.pods = needs.pods.saturating_add(pods);
    let containers = list(component.pod.get("containers"));
    for container in containers.iter().chain([&Value::from(component.main.clone())]) {
        for (name, quantity) in asked(container) {
            let total = needs.totals.entry(name).or_default();
            *total = total.plus(quantity.times(pods));
        }
    }
}

/// Reads an amount; what is none counts as nothing, because the API server says what is wrong with it.
fn read(value: &Value) -> Quantity {
    Quantity::of(value).unwrap_or_default()
}

/// Returns the resources that a container asks for: its requests, and its limits where it says none.
fn asked(container: &Value) -> BTreeMap<String, Quantity> {
    let mut asked = BTreeMap::new();
    for part in ["limits", "requests"] {
        let quantities = container["resources"][part].as_object().into_iter().flatten();
        asked.extend(quantities.map(|(name, quantity)| (name.clone(), read(quantity))));
    }
    asked
}

impl Needs {
    /// Says what is missing, as far as anybody knows.
    fn missing(&self, settings: &Settings, capabilities: Option<&Capabilities>) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(capabilities) = capabilities {
            let is_served = |(group, kind): &(&str, String)| capabilities.serves(group, kind);
            let lines = self.kinds.iter().filter(|line| !line.iter().any(is_served));
            missing.extend(lines.map(|line| {
                let kinds: Vec<String> = line.iter().map(|(group, kind)| format!("{kind} ({group})")).collect();
                format!("the kind {}", kinds.join(" or "))
            }));
            if self.operator && !capabilities.operates(super::NAME) {
                missing.push("Dynamo's operator at work".to_owned());
            }
        }
        // With the operator these are in its own configuration.
        let unset = self.settings.iter().filter(|path| !self.operator && settings.is_unset(path));
        missing.extend(unset.map(|path| format!("the setting packs.dynamo.{path}")));
        missing
    }

    /// Says what is needed, in a line.
    fn line(&self) -> String {
        let mut parts = vec![count(usize::try_from(self.pods).unwrap_or_default(), "pod")];
        parts.extend(self.totals.iter().map(|(name, quantity)| format!("{quantity} {name}")));
        parts.extend(self.queues.iter().map(|queue| format!("queue {queue:?}")));
        parts.extend(self.schedulers.iter().map(|scheduler| format!("scheduler {scheduler:?}")));
        parts.join(", ")
    }
}

/// Says which pods of a graph cannot start as it stands: without an image, or under an account that is not made here.
pub(super) fn unable(subject: &Subject<'_>, settings: &Settings) -> Vec<Problem> {
    let document = subject.document;
    // Of what is refused, nothing starts.
    let graph = read::read(document, subject.namespace).ok().filter(|_| read::mistakes(document).is_empty());
    let Some(graph) = graph else { return Vec::new() };
    let mut warnings = Vec::new();
    for component in &graph.components {
        let name = &component.name;
        let mut warning = |message: String, hint: &str| {
            let path: Vec<&str> = std::iter::once("spec").chain(component.path.iter().map(String::as_str)).collect();
            warnings.push(problems::warning(document, &path, message).hint(hint));
        };
        if component.main.get("image").is_none() {
            warning(
                format!("component {name:?} has no image for its container {:?}", read::MAIN),
                "the API server refuses such pods; a patch of a kustomization does not belong among specs",
            );
        }
        let (setting, account) = match component.kind {
            Type::Epp => ("epp", settings.service_accounts.epp.as_str()),
            Type::Planner => ("planner", settings.service_accounts.planner.as_str()),
            _ => ("", ""),
        };
        let is_named = component.kind == Type::Epp && component.pod.contains_key("serviceAccountName");
        if !account.is_empty() && !is_named {
            warning(
                format!("the pods of component {name:?} run as service account {account:?}, which is not made here"),
                &format!(
                    "Dynamo's operator makes it; with packs.dynamo.serviceAccounts.{setting}: '' each graph has its own"
                ),
            );
        }
    }
    warnings
}

/// Says what a cluster lacks for a spec, if anything.
pub(super) fn warning(subject: &Subject<'_>, settings: &Settings, is_expanded: bool) -> Option<Problem> {
    let document = subject.document;
    let kind = &document.id.kind;
    let needs = if is_graph(kind) {
        needs(&read::understood(document, subject.namespace).0, kind, settings, is_expanded)
    } else {
        Needs { kinds: vec![vec![("nvidia.com", kind.clone())]], operator: true, ..Needs::default() }
    };
    let missing = needs.missing(settings, subject.capabilities);
    if missing.is_empty() {
        return None;
    }
    let message = format!("it needs what is not there: {}", missing.join("; "));
    let problem = problems::warning(document, &[], message);
    Some(if needs.pods > 0 { problem.hint(format!("in all it asks for {}", needs.line())) } else { problem })
}
