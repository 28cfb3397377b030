//! The relations of some objects, read off the objects alone: a route leads to a pool, a pool to who picks its endpoints
//! and to the pods in it, a Service to its pods.
//!
//! What is told here is for people who look at a tree of objects; nothing is decided by it.

pub mod made;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds;
use crate::kinds::row::{Makes, Reference, Row, Selects};
use crate::object::{ObjectId, at, group_kind, metadata};
use crate::references::{of_pod, templates};

/// An object among others, by its number, with what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its index among the objects.
    pub index: usize,
    /// The branches behind it, in the order of the objects.
    pub below: Vec<Self>,
}

/// A part of an object that its operator reports on, such as a component of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// The replicas that are ready.
    pub ready: u64,
    /// The replicas that there are to be, if that is said.
    pub wanted: Option<u64>,
}

/// Returns objects as trees: each stands once, behind the first that leads to it.
pub fn branches(objects: &[&Value], kinds: &kinds::Table) -> Vec<Branch> {
    let leads: Vec<Vec<usize>> = objects.iter().map(|from| behind(from, objects, kinds)).collect();
    let led: BTreeSet<usize> = leads.iter().flatten().copied().collect();
    let mut seen = BTreeSet::new();
    let mut branches = Vec::new();
    // A route says by itself where requests go; what else leads there comes after it.
    let is_route = |index: &usize| row(objects[*index], kinds).route;
    let (routes, others): (Vec<usize>, Vec<usize>) =
        (0..objects.len()).filter(|index| !led.contains(index)).partition(is_route);
    // What leads in a circle has no beginning, and comes last.
    for index in routes.into_iter().chain(others).chain(0..objects.len()) {
        branches.extend(branch(index, &leads, &mut seen));
    }
    branches
}

fn row<'a>(body: &Value, kinds: &'a kinds::Table) -> &'a Row {
    let (group, kind) = group_kind(body);
    kinds.row(group, kind)
}

fn branch(index: usize, leads: &[Vec<usize>], seen: &mut BTreeSet<usize>) -> Option<Branch> {
    seen.insert(index).then(|| {
        let below = leads[index].iter().filter_map(|next| branch(*next, leads, seen)).collect();
        Branch { index, below }
    })
}

/// Returns the labels by which an object knows its pods, if it does.
pub fn pod_labels(body: &Value) -> Option<&serde_json::Map<String, Value>> {
    let selector = &body["spec"]["selector"];
    let labels =
        selector["matchLabels"].as_object().or_else(|| selector.as_object()).filter(|labels| !labels.is_empty());
    labels.filter(|labels| labels.values().all(Value::is_string))
}

/// Returns the Service by which requests come to what some objects are: one that a pool names is only asked by gateways, so
/// any other one comes before it.
pub fn entrance<'a>(objects: &[&'a Value], kinds: &kinds::Table) -> Option<&'a Value> {
    let is_service = |body: &&&Value| group_kind(body) == ("", "Service");
    let is_asked = |service: &Value| {
        objects.iter().any(|from| row(from, kinds).selects == Selects::Pods && names(from, service, kinds))
    };
    let services = || objects.iter().filter(is_service).copied();
    services().find(|service| !is_asked(service)).or_else(|| services().next())
}

/// Returns the parts of a live object, as far as its operator reports on them.
pub fn parts(live: &Value, kinds: &kinds::Table) -> Vec<Part> {
    let mappings = row(live, kinds).parts.iter().flat_map(|path| at(live, path)).filter_map(Value::as_object);
    let part = |(name, said): (&String, &Value)| {
        let number = |field: &str| said[field].as_u64();
        // Of what is made in groups some operators only say how many are available.
        let ready = number("readyReplicas").or_else(|| number("availableReplicas")).unwrap_or_default();
        Part { name: name.clone(), ready, wanted: number("replicas") }
    };
    mappings.flatten().map(part).collect()
}

/// Tells whether an operator has made an object for another one: it names it by its labels, and has no ownerReference to
/// it.
///
/// Such an object bears no mark of ours, so that no round changes or deletes it: it outlives what it was made for, as the
/// operator means it to.
pub fn is_made_for(id: &ObjectId, makes: &Makes, body: &Value) -> bool {
    let label = |key: &str| metadata(body, "labels", key);
    label(&makes.name_label) == Some(&id.name) && label(&makes.namespace_label) == Some(&id.namespace)
}

/// Returns which of some objects stand behind one.
fn behind(from: &Value, objects: &[&Value], kinds: &kinds::Table) -> Vec<usize> {
    let leads = |to: &Value| {
        !std::ptr::eq(from, to) && (names(from, to, kinds) || serves(from, to, kinds) || attaches(from, to, kinds))
    };
    (0..objects.len()).filter(|index| leads(objects[*index])).collect()
}

/// Tells whether one object names another, or is named by it.
fn names(from: &Value, to: &Value, kinds: &kinds::Table) -> bool {
    let ((group, kind), name) = (group_kind(to), to["metadata"]["name"].as_str().unwrap_or_default());
    let row = row(from, kinds);
    let is_named = |reference: &Value, usual: &str| {
        let is_kind = reference["kind"].as_str().unwrap_or(usual) == kind && is_of_group(reference, to);
        is_kind && reference["name"].as_str() == Some(name)
    };
    let refers = |Reference { path, kind }: &Reference| at(from, path).into_iter().any(|it| is_named(it, kind));
    let is_own = |it: &&Value| it["kind"] == from["kind"] && it["name"] == from["metadata"]["name"];
    row.refers_to.iter().any(refers)
        || row.named_in.iter().flat_map(|path| at(to, path)).any(|it| is_own(&it))
        || group.is_empty() && templates(from, kinds).into_iter().any(|template| mounts(template, kind, name))
}

/// Tells whether a reference may mean the group of an object: who says none may mean any.
fn is_of_group(reference: &Value, to: &Value) -> bool {
    let said = ["group", "apiGroup"].into_iter().find_map(|field| reference[field].as_str());
    let versioned = || reference["apiVersion"].is_string().then(|| group_kind(reference).0);
    said.or_else(versioned).is_none_or(|group| group == group_kind(to).0)
}

/// Tells whether pods use an object of their namespace.
fn mounts(template: &Value, kind: &str, name: &str) -> bool {
    of_pod(&template["spec"]).iter().any(|reference| reference.kind == kind && reference.name == name)
}

/// Tells whether the pods of a workload are those that a Service or a pool selects.
fn serves(from: &Value, to: &Value, kinds: &kinds::Table) -> bool {
    let is_front = row(from, kinds).selects == Selects::Pods;
    let Some(labels) = pod_labels(from).filter(|_| is_front) else { return false };
    let bears = |template: &&Value| labels.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value);
    templates(to, kinds).iter().any(bears)
}

/// Tells whether an object is about a workload: its autoscaler, its budget.
fn attaches(from: &Value, to: &Value, kinds: &kinds::Table) -> bool {
    let target = ["scaleTargetRef", "targetRef"].map(|field| &to["spec"][field]);
    let is_target = |reference: &&Value| {
        let is_kind = reference["kind"] == from["kind"] && is_of_group(reference, from);
        is_kind && reference["name"] == from["metadata"]["name"]
    };
    let is_budget =
        row(to, kinds).selects == Selects::Workload && pod_labels(to).is_some() && pod_labels(to) == pod_labels(from);
    !from["metadata"]["name"].is_null()
        && (target.iter().any(is_target) || (is_budget && !templates(from, kinds).is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The kinds of Kubernetes, and a pool as packs know them.
    fn kinds() -> kinds::Table {
        let refers = json!([{"path": "spec.endpointPickerRef", "kind": "Service"}]);
        let rows = json!({"example.com": {"ModelPool": {"selects": "pods", "refersTo": refers}}});
        let mut kinds = kinds::Table::builtin();
        kinds.add(&serde_json::from_value(rows).expect("they are rows")).expect("nobody else knows it");
        kinds
    }

    /// Writes trees as nested names.
    fn drawn(objects: &[&Value], branches: &[Branch]) -> String {
        let draw = |branch: &Branch| {
            let name = objects[branch.index]["kind"].as_str().unwrap_or_default();
            let below = drawn(objects, &branch.below);
            if below.is_empty() { name.to_owned() } else { format!("{name}({below})") }
        };
        branches.iter().map(draw).collect::<Vec<_>>().join(" ")
    }

    fn workload(kind: &str, name: &str, account: &str) -> Value {
        let labels = json!({"app": name});
        let containers = json!([{"name": "main", "image": "i"}]);
        let volumes = json!([{"name": "config", "configMap": {"name": name}}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers, "serviceAccountName": account, "volumes": volumes}});
        let version = if kind == "Deployment" { "apps/v1" } else { "example.com/v1" };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}})
    }

    #[test]
    fn requests_come_in_by_the_service_that_no_pool_asks() {
        let service = |name: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}});
        let (asked, own) = (service("a-picker"), service("b-servers"));
        let reference = json!({"name": "a-picker"});
        let pool = json!({
            "apiVersion": "example.com/v1", "kind": "ModelPool", "metadata": {"name": "pool"},
            "spec": {"endpointPickerRef": reference},
        });
        let name = |objects: &[&Value]| entrance(objects, &kinds()).map(|service| service["metadata"]["name"].clone());
        assert_eq!(name(&[&asked, &own, &pool]), Some("b-servers".into()));
        assert_eq!(name(&[&asked, &own]), Some("a-picker".into()));
        assert_eq!(name(&[&pool, &asked]), Some("a-picker".into()));
        assert_eq!(name(&[&pool]), None);
    }

    #[test]
    fn a_route_leads_to_a_pool_and_that_to_its_picker_and_its_pods() {
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "epp"}}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "epp"}, "subjects": [{"kind": "ServiceAccount", "name": "epp"}], "roleRef": {"kind": "Role", "name": "epp"}}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "epp"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "epp"}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "epp"}, "spec": {"selector": {"app": "epp"}}}),
            workload("Deployment", "epp", "epp"),
            workload("ModelServer", "model", ""),
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "model"}, "spec": {"scaleTargetRef": {"kind": "ModelServer", "name": "model"}}}),
            json!({"apiVersion": "example.com/v1", "kind": "ModelPool", "metadata": {"name": "pool"}, "spec": {"selector": {"matchLabels": {"app": "model"}}, "endpointPickerRef": {"name": "epp"}}}),
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "route"}, "spec": {"rules": [{"backendRefs": [{"kind": "ModelPool", "name": "pool"}]}]}}),
        ];
        let objects: Vec<&Value> = objects.iter().collect();
        let trees = "HTTPRoute(ModelPool(Service(Deployment(ServiceAccount(RoleBinding(Role)) ConfigMap)) \
                     ModelServer(HorizontalPodAutoscaler)))";
        assert_eq!(drawn(&objects, &branches(&objects, &kinds())), trees);
    }

    #[test]
    fn parts_are_those_that_an_operator_reports_on() {
        let mut kinds = kinds::Table::builtin();
        let rows = json!({"example.com": {"Graph": {"parts": ["status.components", "status.services"]}}});
        kinds.add(&serde_json::from_value(rows).expect("they are rows")).expect("nobody else knows it");
        let status =
            json!({"components": {"a": {"replicas": 2, "readyReplicas": 1}, "b": {"availableReplicas": 3}, "c": {}}});
        let graph = json!({"apiVersion": "example.com/v1", "kind": "Graph", "status": status});
        let part = |name: &str, ready, wanted| Part { name: name.to_owned(), ready, wanted };
        assert_eq!(parts(&graph, &kinds), [part("a", 1, Some(2)), part("b", 3, None), part("c", 0, None)]);
        assert_eq!(parts(&json!({"apiVersion": "example.com/v1", "kind": "Graph"}), &kinds), []);
    }

    #[test]
    fn kinds_of_others_lead_nowhere_because_of_their_names() {
        let knative = json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "epp"}, "spec": {"selector": {"app": "epp"}}});
        let backends = json!([{"backendRefs": [{"group": "", "kind": "Service", "name": "epp"}]}]);
        let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "route"}, "spec": {"rules": backends}});
        let objects = [route, knative, workload("Deployment", "epp", "")];
        let objects: Vec<&Value> = objects.iter().collect();
        assert_eq!(drawn(&objects, &branches(&objects, &kinds())), "HTTPRoute Service Deployment");
    }

    #[test]
    fn every_object_stands_once_even_in_a_circle() {
        let route = |name: &str, to: &str| {
            let rules = json!([{"backendRefs": [{"kind": "HTTPRoute", "name": to}]}]);
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name}, "spec": {"rules": rules}})
        };
        let objects = [
            route("a", "b"),
            route("b", "a"),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}),
            json!({}),
        ];
        let objects: Vec<&Value> = objects.iter().collect();
        assert_eq!(drawn(&objects, &branches(&objects, &kinds())), "Secret  HTTPRoute(HTTPRoute)");
    }
}
