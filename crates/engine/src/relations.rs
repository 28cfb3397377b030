//! Which of some objects stand behind which, read off the objects alone: a route leads to a pool, a pool to who picks its
//! endpoints and to the pods in it, a Service to its pods.
//!
//! What is told here is for people who look at a tree of objects; nothing is decided by it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::group_kind;
use crate::spec::GATEWAY_API;

const RBAC: &str = "rbac.authorization.k8s.io";

const ROUTES: [(&str, &str); 2] = [(GATEWAY_API, "HTTPRoute"), (GATEWAY_API, "GRPCRoute")];

/// What leads to the pods of a model.
const POOLS: [(&str, &str); 2] =
    [("inference.networking.k8s.io", "InferencePool"), ("inference.networking.x-k8s.io", "InferencePool")];

/// An object among others, by its number, with what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Which of the objects.
    pub index: usize,
    /// What stands behind it, in the order of the objects.
    pub below: Vec<Self>,
}

/// Returns objects as trees: each stands once, behind the first that leads to it.
pub fn branches(objects: &[&Value]) -> Vec<Branch> {
    let leads: Vec<Vec<usize>> = objects.iter().map(|from| behind(from, objects)).collect();
    let led: BTreeSet<usize> = leads.iter().flatten().copied().collect();
    let mut seen = BTreeSet::new();
    let mut branches = Vec::new();
    // A route says by itself where requests go; what else leads there comes after it.
    let is_route = |index: &usize| ROUTES.contains(&group_kind(objects[*index]));
    let (routes, others): (Vec<usize>, Vec<usize>) =
        (0..objects.len()).filter(|index| !led.contains(index)).partition(is_route);
    // What leads in a circle has no beginning, and comes last.
    for index in routes.into_iter().chain(others).chain(0..objects.len()) {
        branches.extend(branch(index, &leads, &mut seen));
    }
    branches
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

/// Returns the pod templates of a workload.
pub fn templates(body: &Value) -> Vec<&Value> {
    let spec = &body["spec"];
    let group = &spec["leaderWorkerTemplate"];
    let all = [&spec["template"], &group["leaderTemplate"], &group["workerTemplate"]];
    all.into_iter().filter(|template| template["spec"]["containers"].is_array()).collect()
}

/// Returns which of some objects stand behind one.
fn behind(from: &Value, objects: &[&Value]) -> Vec<usize> {
    let is_other = |to: &Value| !std::ptr::eq(from, to);
    let leads = |to: &Value| is_other(to) && (names(from, to) || serves(from, to) || attaches(from, to));
    (0..objects.len()).filter(|index| leads(objects[*index])).collect()
}

/// Tells whether one object names another.
fn names(from: &Value, to: &Value) -> bool {
    let ((_, kind), name) = (group_kind(to), to["metadata"]["name"].as_str().unwrap_or_default());
    let is_named = |reference: &Value, usual: &str| {
        let is_kind = reference["kind"].as_str().unwrap_or(usual) == kind && is_of_group(reference, to);
        is_kind && reference["name"].as_str() == Some(name)
    };
    let listed = |list: &Value, field: &str| {
        let items = list.as_array().into_iter().flatten();
        items
            .flat_map(|item| item[field].as_array().into_iter().flatten())
            .any(|reference| is_named(reference, "Service"))
    };
    match group_kind(from) {
        kind if ROUTES.contains(&kind) => listed(&from["spec"]["rules"], "backendRefs"),
        kind if POOLS.contains(&kind) => is_named(&from["spec"]["endpointPickerRef"], "Service"),
        ("", "ServiceAccount") => {
            let subjects = to["subjects"].as_array().into_iter().flatten();
            let own = &from["metadata"]["name"];
            subjects.into_iter().any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == *own)
        }
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => is_named(&from["roleRef"], ""),
        _ => group_kind(to).0.is_empty() && templates(from).into_iter().any(|template| mounts(template, kind, name)),
    }
}

/// Tells whether a reference may mean the group of an object: who says none may mean any.
fn is_of_group(reference: &Value, to: &Value) -> bool {
    let said = ["group", "apiGroup"].into_iter().find_map(|field| reference[field].as_str());
    let versioned = || reference["apiVersion"].is_string().then(|| group_kind(reference).0);
    said.or_else(versioned).is_none_or(|group| group == group_kind(to).0)
}

/// Tells whether pods use an object: as their account, or as files.
fn mounts(template: &Value, kind: &str, name: &str) -> bool {
    let spec = &template["spec"];
    let volumes = || spec["volumes"].as_array().into_iter().flatten();
    match kind {
        "ServiceAccount" => spec["serviceAccountName"] == name,
        "ConfigMap" => volumes().any(|volume| volume["configMap"]["name"] == name),
        "Secret" => volumes().any(|volume| volume["secret"]["secretName"] == name),
        "PersistentVolumeClaim" => volumes().any(|volume| volume["persistentVolumeClaim"]["claimName"] == name),
        _ => false,
    }
}

/// Tells whether the pods of a workload are those that a Service or a pool selects.
fn serves(from: &Value, to: &Value) -> bool {
    let is_front = group_kind(from) == ("", "Service") || POOLS.contains(&group_kind(from));
    let Some(labels) = pod_labels(from).filter(|_| is_front) else { return false };
    let bears = |template: &&Value| labels.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value);
    templates(to).iter().any(bears)
}

/// Tells whether an object is about a workload: its autoscaler, its budget.
fn attaches(from: &Value, to: &Value) -> bool {
    let target = ["scaleTargetRef", "targetRef"].map(|field| &to["spec"][field]);
    let is_target = |reference: &&Value| {
        let is_kind = reference["kind"] == from["kind"] && is_of_group(reference, from);
        is_kind && reference["name"] == from["metadata"]["name"]
    };
    let is_budget = group_kind(to) == ("policy", "PodDisruptionBudget")
        && pod_labels(to).is_some()
        && pod_labels(to) == pod_labels(from);
    !from["metadata"]["name"].is_null() && (target.iter().any(is_target) || (is_budget && !templates(from).is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let version = if kind == "Deployment" { "apps/v1" } else { "leaderworkerset.x-k8s.io/v1" };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}})
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
            workload("LeaderWorkerSet", "model", ""),
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "model"}, "spec": {"scaleTargetRef": {"kind": "LeaderWorkerSet", "name": "model"}}}),
            json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "pool"}, "spec": {"selector": {"matchLabels": {"app": "model"}}, "endpointPickerRef": {"name": "epp"}}}),
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "route"}, "spec": {"rules": [{"backendRefs": [{"kind": "InferencePool", "name": "pool"}]}]}}),
        ];
        let objects: Vec<&Value> = objects.iter().collect();
        let trees = "HTTPRoute(InferencePool(Service(Deployment(ServiceAccount(RoleBinding(Role)) ConfigMap)) \
                     LeaderWorkerSet(HorizontalPodAutoscaler)))";
        assert_eq!(drawn(&objects, &branches(&objects)), trees);
    }

    #[test]
    fn kinds_of_others_lead_nowhere_because_of_their_names() {
        let knative = json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "epp"}, "spec": {"selector": {"app": "epp"}}});
        let backends = json!([{"backendRefs": [{"group": "", "kind": "Service", "name": "epp"}]}]);
        let route = json!({"apiVersion": GATEWAY_API.to_owned() + "/v1", "kind": "HTTPRoute", "metadata": {"name": "route"}, "spec": {"rules": backends}});
        let objects = [route, knative, workload("Deployment", "epp", "")];
        let objects: Vec<&Value> = objects.iter().collect();
        assert_eq!(drawn(&objects, &branches(&objects)), "HTTPRoute Service Deployment");
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
        assert_eq!(drawn(&objects, &branches(&objects)), "Secret  HTTPRoute(HTTPRoute)");
    }
}
