//! Which of some objects stand behind which, read off the objects alone: a route leads to a pool, a pool to who picks its
//! endpoints and to the pods in it, a Service to its pods.
//!
//! What is told here is for people who look at a tree of objects; nothing is decided by it.

use std::collections::BTreeSet;

use serde_json::Value;

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
    // What leads in a circle has no beginning, and comes last.
    for index in (0..objects.len()).filter(|index| !led.contains(index)).chain(0..objects.len()) {
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
    let (kind, name) = (to["kind"].as_str().unwrap_or_default(), to["metadata"]["name"].as_str().unwrap_or_default());
    let is_named = |reference: &Value, usual: &str| {
        reference["name"].as_str() == Some(name) && reference["kind"].as_str().unwrap_or(usual) == kind
    };
    let listed = |list: &Value, field: &str| {
        let items = list.as_array().into_iter().flatten();
        items
            .flat_map(|item| item[field].as_array().into_iter().flatten())
            .any(|reference| is_named(reference, "Service"))
    };
    match from["kind"].as_str().unwrap_or_default() {
        "HTTPRoute" | "GRPCRoute" => listed(&from["spec"]["rules"], "backendRefs"),
        "InferencePool" => is_named(&from["spec"]["endpointPickerRef"], "Service"),
        "ServiceAccount" => {
            let subjects = to["subjects"].as_array().into_iter().flatten();
            let own = &from["metadata"]["name"];
            subjects.into_iter().any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == *own)
        }
        "RoleBinding" | "ClusterRoleBinding" => is_named(&from["roleRef"], ""),
        _ => templates(from).into_iter().any(|template| mounts(template, kind, name)),
    }
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
    let is_front = matches!(from["kind"].as_str(), Some("Service" | "InferencePool"));
    let Some(labels) = pod_labels(from).filter(|_| is_front) else { return false };
    let bears = |template: &&Value| labels.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value);
    templates(to).iter().any(bears)
}

/// Tells whether an object is about a workload: its autoscaler, its budget.
fn attaches(from: &Value, to: &Value) -> bool {
    let target = ["scaleTargetRef", "targetRef"].map(|field| &to["spec"][field]);
    let is_target =
        |reference: &&Value| reference["name"] == from["metadata"]["name"] && reference["kind"] == from["kind"];
    let is_budget =
        to["kind"] == "PodDisruptionBudget" && pod_labels(to).is_some() && pod_labels(to) == pod_labels(from);
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
        json!({"kind": kind, "metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}})
    }

    #[test]
    fn a_route_leads_to_a_pool_and_that_to_its_picker_and_its_pods() {
        let objects = [
            json!({"kind": "ServiceAccount", "metadata": {"name": "epp"}}),
            json!({"kind": "RoleBinding", "metadata": {"name": "epp"}, "subjects": [{"kind": "ServiceAccount", "name": "epp"}], "roleRef": {"kind": "Role", "name": "epp"}}),
            json!({"kind": "Role", "metadata": {"name": "epp"}}),
            json!({"kind": "ConfigMap", "metadata": {"name": "epp"}}),
            json!({"kind": "Service", "metadata": {"name": "epp"}, "spec": {"selector": {"app": "epp"}}}),
            workload("Deployment", "epp", "epp"),
            workload("LeaderWorkerSet", "model", ""),
            json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "model"}, "spec": {"scaleTargetRef": {"kind": "LeaderWorkerSet", "name": "model"}}}),
            json!({"kind": "InferencePool", "metadata": {"name": "pool"}, "spec": {"selector": {"matchLabels": {"app": "model"}}, "endpointPickerRef": {"name": "epp"}}}),
            json!({"kind": "HTTPRoute", "metadata": {"name": "route"}, "spec": {"rules": [{"backendRefs": [{"kind": "InferencePool", "name": "pool"}]}]}}),
        ];
        let objects: Vec<&Value> = objects.iter().collect();
        let trees = "HTTPRoute(InferencePool(Service(Deployment(ServiceAccount(RoleBinding(Role)) ConfigMap)) \
                     LeaderWorkerSet(HorizontalPodAutoscaler)))";
        assert_eq!(drawn(&objects, &branches(&objects)), trees);
    }

    #[test]
    fn every_object_stands_once_even_in_a_circle() {
        let route = |name: &str, to: &str| {
            let rules = json!([{"backendRefs": [{"kind": "HTTPRoute", "name": to}]}]);
            json!({"kind": "HTTPRoute", "metadata": {"name": name}, "spec": {"rules": rules}})
        };
        let objects =
            [route("a", "b"), route("b", "a"), json!({"kind": "Secret", "metadata": {"name": "c"}}), json!({})];
        let objects: Vec<&Value> = objects.iter().collect();
        assert_eq!(drawn(&objects, &branches(&objects)), "Secret  HTTPRoute(HTTPRoute)");
    }
}
