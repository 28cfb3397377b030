//! The pods that a plan adds, against what its cluster has for them: quotas of namespaces, and devices of nodes.
//!
//! This is looked at only for plans with pods that ask for devices, such as GPUs, which nobody has in plenty; other plans
//! cost no request more. What others use of the devices is not counted: a shortage that is said is one, and there may be
//! one that is not.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::Plan;
use gatewright_engine::quantity::Quantity;
use serde_json::Value;
use tracing::debug;

use crate::cluster::{Cluster, Search};

/// Amounts by the name of their resource, as pods ask for it; `pods` is their number.
type Amounts = BTreeMap<String, Quantity>;

/// The label that every node has.
const EVERY_NODE: &str = "kubernetes.io/hostname";

/// The amounts of one namespace.
#[derive(Debug, Default)]
struct Needs {
    /// All that what changes asks for.
    whole: Amounts,
    /// The part of it that comes to what is there.
    more: Amounts,
}

/// Says what a plan asks for and its cluster does not have, as far as anybody may look.
pub(crate) async fn shortages(cluster: &dyn Cluster, plan: &Plan, live: &BTreeMap<ObjectId, Live>) -> Vec<String> {
    let mut needs = needs(plan, live);
    needs.retain(|_, needs| devices(&needs.whole).next().is_some());
    if needs.is_empty() || !cluster.has_health() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (namespace, needs) in &needs {
        let search = Search { namespace, labels: "", fields: "" };
        match cluster.search(&Gvk::new("v1", "ResourceQuota"), search).await {
            Ok(quotas) => {
                found.extend(quotas.iter().flat_map(|quota| beyond(namespace, &needs.more, quota.object.body())));
            }
            // Who has not answered once is not asked for the next namespace.
            Err(error) if error.is_unreachable() => return found,
            Err(error) => debug!(namespace, error = %Chain(&error), "cannot read the quotas of a namespace"),
        }
    }
    match cluster.list_bearing(&Gvk::new("v1", "Node"), EVERY_NODE).await {
        Ok(nodes) => found.extend(lacking(&needs, &nodes)),
        Err(error) => debug!(error = %Chain(&error), "cannot read the nodes"),
    }
    found
}

/// Returns what is asked for, by namespace.
fn needs(plan: &Plan, live: &BTreeMap<ObjectId, Live>) -> BTreeMap<String, Needs> {
    let mut all: BTreeMap<String, Needs> = BTreeMap::new();
    for object in plan.changes().filter_map(|step| step.object.as_ref()) {
        let wanted = asked(object.body());
        let had = live.get(object.id()).map(|live| asked(live.object.body())).unwrap_or_default();
        let needs = all.entry(object.id().namespace.clone()).or_default();
        for (name, amount) in wanted {
            let more = amount.less(had.get(&name).copied().unwrap_or_default());
            add(&mut needs.whole, &name, amount);
            add(&mut needs.more, &name, more);
        }
    }
    all
}

fn add(amounts: &mut Amounts, name: &str, amount: Quantity) {
    let sum = amounts.entry(name.to_owned()).or_default();
    *sum = sum.plus(amount);
}

/// Returns what all pods of a workload ask for; of what has a pod on each node nobody knows.
fn asked(body: &Value) -> Amounts {
    let (spec, replicas) = (&body["spec"], body["spec"]["replicas"].as_u64().unwrap_or(1));
    let group = &spec["leaderWorkerTemplate"];
    let mut all = Amounts::new();
    let mut add_pods = |template: &Value, pods: u64| {
        add(&mut all, "pods", one().times(pods));
        for (name, amount) in of_pod(&template["spec"]) {
            add(&mut all, &name, amount.times(pods));
        }
    };
    if group.is_object() {
        let workers = group["size"].as_u64().unwrap_or(1).saturating_sub(1);
        let leader =
            if group["leaderTemplate"].is_object() { &group["leaderTemplate"] } else { &group["workerTemplate"] };
        add_pods(leader, replicas);
        add_pods(&group["workerTemplate"], replicas.saturating_mul(workers));
    } else if ["Deployment", "StatefulSet"].iter().any(|kind| body["kind"] == *kind) {
        add_pods(&spec["template"], replicas);
    }
    all
}

fn one() -> Quantity {
    Quantity::parse("1").unwrap_or_default()
}

/// Returns what a pod asks for: its containers together, or one before them that asks for more.
fn of_pod(spec: &Value) -> Amounts {
    let containers = |field: &str| spec[field].as_array().into_iter().flatten();
    let (beside, before): (Vec<&Value>, Vec<&Value>) =
        containers("initContainers").partition(|container| container["restartPolicy"] == "Always");
    let mut all = Amounts::new();
    for container in containers("containers").chain(beside) {
        for (name, amount) in of_container(container) {
            add(&mut all, &name, amount);
        }
    }
    for (name, amount) in before.into_iter().flat_map(of_container) {
        let most = all.entry(name).or_default();
        *most = amount.max(*most);
    }
    all
}

/// Returns the requests of a container, and its limits where it says none.
fn of_container(container: &Value) -> Amounts {
    let amounts = |part: &str| {
        let said = container["resources"][part].as_object().into_iter().flatten();
        said.filter_map(|(name, amount)| Some((name.clone(), Quantity::of(amount)?))).collect::<Amounts>()
    };
    let mut all = amounts("limits");
    all.extend(amounts("requests"));
    all
}

/// Devices have a domain in their name; cpu and memory have none.
fn devices(amounts: &Amounts) -> impl Iterator<Item = (&String, Quantity)> {
    amounts.iter().filter(|(name, amount)| name.contains('/') && **amount > Quantity::default()).map(|(n, a)| (n, *a))
}

/// Says what is more than a quota leaves. One that is for some pods only may not be about these.
fn beyond(namespace: &str, more: &Amounts, quota: &Value) -> Vec<String> {
    if !quota["spec"]["scopes"].is_null() || !quota["spec"]["scopeSelector"].is_null() {
        return Vec::new();
    }
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    let hard = quota["status"]["hard"].as_object().into_iter().flatten();
    let line = |(key, hard): (&String, &Value)| {
        let resource = key.strip_prefix("requests.").unwrap_or(key);
        let (more, hard) = (*more.get(resource)?, Quantity::of(hard)?);
        let used = Quantity::of(&quota["status"]["used"][key]).unwrap_or_default();
        (used.plus(more) > hard).then(|| {
            let left = hard.less(used);
            format!("namespace {namespace}: {more} {resource} come to what is there, and ResourceQuota {name} leaves {left} of {hard}")
        })
    };
    hard.filter_map(line).collect()
}

/// Says of which devices the nodes have fewer in all than what changes asks for.
fn lacking(needs: &BTreeMap<String, Needs>, nodes: &[Live]) -> Vec<String> {
    let (mut wanted, mut there) = (Amounts::new(), Amounts::new());
    for needs in needs.values() {
        devices(&needs.whole).for_each(|(name, amount)| add(&mut wanted, name, amount));
    }
    for node in nodes.iter().map(|node| node.object.body()).filter(|node| node["spec"]["unschedulable"] != true) {
        let amounts = node["status"]["allocatable"].as_object().into_iter().flatten();
        amounts.for_each(|(name, amount)| add(&mut there, name, Quantity::of(amount).unwrap_or_default()));
    }
    let line = |(name, wanted): (&String, &Quantity)| {
        let there = there.get(name).copied().unwrap_or_default();
        (*wanted > there).then(|| {
            format!("{wanted} {name} are asked for, and all nodes together have {there}: without more nodes pods stay pending")
        })
    };
    wanted.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(amounts: &Amounts) -> Vec<String> {
        amounts.iter().map(|(name, amount)| format!("{amount} {name}")).collect()
    }

    #[test]
    fn pods_of_workloads_are_counted_with_all_that_they_ask_for() {
        let gpus =
            |number: &str| json!({"resources": {"limits": {"nvidia.com/gpu": number}, "requests": {"cpu": "500m"}}});
        let server = json!({"spec": {
            "containers": [gpus("4")],
            "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1"}}}],
        }});
        let deployment = json!({"kind": "Deployment", "spec": {"replicas": 3, "template": server}});
        assert_eq!(shown(&asked(&deployment)), ["4500m cpu", "12 nvidia.com/gpu", "3 pods"]);
        let group = json!({"size": 4, "workerTemplate": {"spec": {"containers": [gpus("8")]}}});
        let mut set = json!({"kind": "LeaderWorkerSet", "spec": {"replicas": 2, "leaderWorkerTemplate": group}});
        assert_eq!(shown(&asked(&set)), ["4 cpu", "64 nvidia.com/gpu", "8 pods"]);
        set["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = json!({"spec": {"containers": [{}]}});
        assert_eq!(shown(&asked(&set)), ["3 cpu", "48 nvidia.com/gpu", "8 pods"]);
        assert_eq!(shown(&asked(&json!({"kind": "DaemonSet", "spec": {"template": server}}))), [""; 0]);
    }

    #[test]
    fn quotas_hold_what_comes_to_what_is_there() {
        let more = Amounts::from([("nvidia.com/gpu".to_owned(), one().times(4)), ("pods".to_owned(), one())]);
        let quota =
            |hard: &Value, used: &Value| json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}});
        let hard = json!({"requests.nvidia.com/gpu": "8", "pods": "10", "limits.cpu": "1"});
        assert_eq!(beyond("a", &more, &quota(&hard, &json!({"requests.nvidia.com/gpu": "4", "pods": "9"}))), [""; 0]);
        assert_eq!(
            beyond("a", &more, &quota(&hard, &json!({"requests.nvidia.com/gpu": "6"}))),
            ["namespace a: 4 nvidia.com/gpu come to what is there, and ResourceQuota q leaves 2 of 8"]
        );
        let mut scoped = quota(&json!({"pods": "0"}), &json!({}));
        scoped["spec"] = json!({"scopes": ["BestEffort"]});
        assert_eq!(beyond("a", &more, &scoped), [""; 0]);
    }
}
