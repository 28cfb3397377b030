//! The pods that serve a model: Deployments, or LeaderWorkerSets where one server is spread over several nodes.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::devices::Devices;
use super::lora;
use super::pods::{MAIN, add_env, container, containers, prefixed};
use super::route::MODEL_ROUTING;
use super::scaling;
use super::service::Service;
use super::storage::{self, MODEL_PATH};
use super::types::{Adapter, Parallelism, Scheduler, Texts, Workload};
use super::values::Unit;
use super::{cache, devices, tracing};
use crate::json::{items, layered};

/// The container that leads requests from servers that decode to those that prefill.
const SIDECAR: &str = "llm-d-routing-sidecar";

/// Annotations and labels of a service that its Deployments and their pods take over, by how they begin.
const ANNOTATIONS: [&str; 4] = ["k8s.v1.cni.cncf.io", "kueue.x-k8s.io", "prometheus.io", LOCAL_MODEL];
const LABELS: [&str; 2] = ["kueue.x-k8s.io", LOCAL_MODEL];
const LOCAL_MODEL: &str = "internal.serving.kserve.io/localmodel";

/// The same for LeaderWorkerSets.
const SET_ANNOTATIONS: [&str; 3] = ["leaderworkerset.sigs.k8s.io", "k8s.v1.cni.cncf.io", "kueue.x-k8s.io"];
const SET_LABELS: [&str; 1] = ["kueue.x-k8s.io"];

/// One of the two workloads that a service can have.
pub(super) struct Part<'a> {
    /// Its part of the merged spec.
    pub(super) workload: &'a Workload,
    pub(super) path: &'static [&'static str],
    /// The ending of names and labels.
    pub(super) suffix: &'static str,
    /// The role of its pods: the label of the scheduler.
    role: &'static str,
    /// Its name in traces.
    trace: &'static str,
}

/// The adapters and devices that all workloads of a service load.
pub(super) struct Load<'a> {
    pub(super) adapters: &'a [Adapter],
    pub(super) devices: Option<&'a Devices>,
}

/// Returns the labels of an object that belongs to a service.
pub(super) fn labels(service: &Service<'_>, component: Option<&str>) -> Texts {
    let own = [("app.kubernetes.io/name", service.name), ("app.kubernetes.io/part-of", "llminferenceservice")];
    let own = own.into_iter().chain(component.map(|component| ("app.kubernetes.io/component", component)));
    own.map(|(key, text)| (key.to_owned(), text.to_owned())).collect()
}

/// Returns the labels of what belongs to the main workload.
pub(super) fn main_labels(unit: &Unit<'_>) -> Texts {
    layered([&labels(unit.service, Some("llminferenceservice-workload")), &unit.spec.workload.labels])
}

/// Adds all workloads of a service, and what they need.
pub(super) fn add(unit: &mut Unit<'_>, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let spec = unit.spec;
    let role = if spec.prefill.is_some() { "decode" } else { "both" };
    let main = Part { workload: &spec.workload, path: &["spec"], suffix: "", role, trace: "decode" };
    let prefill = spec.prefill.as_ref().map(|workload| Part {
        workload,
        path: &["spec", "prefill"],
        suffix: "-prefill",
        role: "prefill",
        trace: "prefill",
    });
    std::iter::once(main).chain(prefill).try_for_each(|part| match &part.workload.worker {
        Some(worker) => set(unit, &part, worker, load),
        None => deployment(unit, &part, load),
    })
}

fn deployment(unit: &mut Unit<'_>, part: &Part<'_>, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let (service, name) = (unit.service, unit.service.child(&format!("-kserve{}", part.suffix)));
    let component = format!("llminferenceservice-workload{}", part.suffix);
    let base = labels(service, Some(&component));
    let kept = prefixed(service.labels(), &LABELS);
    let labels = layered([&base, &workload_labels(part.role), &kept, &part.workload.labels]);
    let mut pod = pod(unit, part, part.workload.template.as_ref(), load)?;
    if part.suffix.is_empty() && has_sidecar(&pod) {
        let account = account(unit, pod["serviceAccountName"].as_str(), &name, &base);
        pod["serviceAccountName"] = account.clone().into();
        add_role(unit, "-kserve", &base, &account, "sidecar");
    }
    let annotations = prefixed(service.annotations(), &ANNOTATIONS);
    let object = json!({
        "name": name,
        "labels": labels,
        "annotations": annotations,
        "selector": labels,
        "replicas": part.workload.replicas,
        "strategy": part.workload.rollout_strategy.as_ref().map(|it| json!({"type": "RollingUpdate", "rollingUpdate": it})),
        "podLabels": labels,
        "podAnnotations": pod_annotations(&annotations, part.workload),
        "pod": pod,
    });
    unit.add("deployments", object);
    scaling::add(unit, part, ("apps/v1", "Deployment"), &name)
}

fn set(unit: &mut Unit<'_>, part: &Part<'_>, worker: &Value, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let (service, name) = (unit.service, unit.service.child(&format!("-kserve-mn{}", part.suffix)));
    let leader = part.workload.template.as_ref();
    let mut worker_labels = labels(service, Some(&format!("llminferenceservice-workload-worker{}", part.suffix)));
    let mut leader_labels = labels(service, Some(&format!("llminferenceservice-workload-leader{}", part.suffix)));
    leader_labels.extend(workload_labels(part.role));
    if leader.is_none() {
        // Nobody else answers then.
        worker_labels.extend(workload_labels(if part.suffix.is_empty() { "decode" } else { "prefill" }));
    }
    let kept = prefixed(service.labels(), &SET_LABELS);
    worker_labels.extend(kept.clone());
    leader_labels.extend(kept);
    let annotations = prefixed(service.annotations(), &SET_ANNOTATIONS);
    let parallelism = part.workload.parallelism.as_ref();
    let templates = leader.map(|leader| ("leader", leader, leader_labels));
    let templates: Vec<_> = templates.into_iter().chain([("worker", worker, worker_labels.clone())]).collect();
    let mut object = json!({
        "name": name, "labels": worker_labels, "annotations": annotations, "replicas": part.workload.replicas,
        "size": parallelism.and_then(size),
        "rollout": part.workload.rollout_strategy,
    });
    let named = templates.iter().find_map(|(_, pod, _)| pod["serviceAccountName"].as_str());
    let plain = labels(service, None);
    let account = account(unit, named, &name, &plain);
    let mut needs_role = false;
    for (field, template, labels) in templates {
        let mut pod = pod(unit, part, Some(template), load)?;
        pod["serviceAccountName"] = account.clone().into();
        needs_role |= part.suffix.is_empty() && has_sidecar(&pod);
        let labels = layered([&labels, &part.workload.labels]);
        let annotations = pod_annotations(&annotations, part.workload);
        object[field] = json!({"labels": labels, "annotations": annotations, "pod": pod});
    }
    if part.suffix == "-prefill" && parallelism.is_some_and(Parallelism::is_by_data) {
        object["subGroupSize"] = object["size"].clone();
    }
    if needs_role {
        add_role(unit, "-kserve-mn", &plain, &account, "sidecar");
        add_lone_role(unit, leader);
    }
    unit.add("sets", object);
    scaling::add(unit, part, ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), &name)
}

/// Adds the account and rights that the pods would have on one node: KServe makes them wherever a template has the
/// sidecar, and an adoption leaves nothing behind.
fn add_lone_role(unit: &mut Unit<'_>, template: Option<&Value>) {
    let labels = labels(unit.service, Some("llminferenceservice-workload"));
    let named = template.and_then(|template| template["serviceAccountName"].as_str());
    let account = account(unit, named, &unit.service.child("-kserve"), &labels);
    add_role(unit, "-kserve", &labels, &account, "sidecar");
}

/// Labels by which pools and schedulers find pods.
fn workload_labels(role: &str) -> Texts {
    [("kserve.io/component", "workload"), ("llm-d.ai/role", role)]
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into()
}

fn pod_annotations(annotations: &Texts, workload: &Workload) -> Texts {
    layered([annotations, &own_annotations(workload)])
}

/// Returns the annotations that a service gives a workload.
pub(super) fn own_annotations(workload: &Workload) -> Texts {
    let mut own = workload.annotations.clone();
    own.remove(MODEL_ROUTING);
    own
}

/// Returns the number of pods that make one server.
fn size(parallelism: &Parallelism) -> Option<u32> {
    let Parallelism { data, data_local, pipeline, .. } = parallelism;
    let number = |count: &Option<u32>| count.filter(|&count| count > 0);
    match (number(data), number(data_local), number(pipeline)) {
        (None, None, pipeline) => pipeline,
        (data, local, _) => Some((data.unwrap_or(1) / local.unwrap_or(1)).max(1)),
    }
}

/// Returns the account of the pods, which is rendered unless the service names one.
fn account(unit: &mut Unit<'_>, named: Option<&str>, own: &str, labels: &Texts) -> String {
    if let Some(name) = named.filter(|name| !name.is_empty() && *name != own) {
        return name.to_owned();
    }
    unit.add("accounts", json!({"name": own, "labels": labels}));
    own.to_owned()
}

/// Adds a role with rights that an account needs, and binds it.
pub(super) fn add_role(unit: &mut Unit<'_>, name: &str, labels: &Texts, account: &str, rules: &str) {
    let (role, binding) = (unit.service.child(&format!("{name}-role")), unit.service.child(&format!("{name}-rb")));
    let rules = &unit.builtin.rules[rules];
    unit.add("roles", json!({"name": role, "labels": labels, "rules": rules, "binding": binding, "account": account}));
}

fn has_sidecar(pod: &Value) -> bool {
    ["initContainers", "containers"].into_iter().flat_map(|list| items(&pod[list])).any(|it| it["name"] == SIDECAR)
}

/// Returns the spec of a pod with the model, adapters, devices, caches and traces in it.
fn pod(unit: &Unit<'_>, part: &Part<'_>, template: Option<&Value>, load: &Load<'_>) -> Result<Value, Vec<Problem>> {
    let (service, spec) = (unit.service, unit.spec);
    let Some(mut pod) = template.cloned() else {
        let message = "nothing says what runs: there is no template, and no preset that has one";
        return Err(vec![service.problem(part.path, message)]);
    };
    name_pool(unit, &mut pod);
    if spec.storage_initializer.as_ref().and_then(|initializer| initializer.enabled) == Some(false) {
        storage::without_initializer(&mut pod);
    } else {
        let model = unit.model(spec.uri().unwrap_or_default(), load.adapters);
        storage::attach(&mut pod, MODEL_PATH, &model)
            .map_err(|message| vec![service.problem(&["spec", "model", "uri"], message)])?;
    }
    lora::attach(&mut pod, load.adapters, spec, service.namespace);
    if let Some(offloading) = &part.workload.kv_cache_offloading {
        cache::attach(&mut pod, offloading);
    }
    if let Some(devices) = load.devices {
        devices::attach(&mut pod, devices);
    }
    if let Some((main, tracing)) = container(&mut pod, MAIN).zip(spec.tracing.as_ref()) {
        tracing::server(main, tracing, part.trace, service.namespace, service.name);
    }
    Ok(pod)
}

fn name_pool(unit: &Unit<'_>, pod: &mut Value) {
    if unit.spec.router.is_none() {
        return;
    }
    let pool = unit.spec.scheduler().and_then(Scheduler::foreign_pool);
    let variable =
        json!({"name": "INFERENCE_POOL_NAME", "value": pool.map_or_else(|| unit.service.pool(), str::to_owned)});
    for sidecar in containers(pod).filter(|it| it["name"] == SIDECAR) {
        add_env(sidecar, [variable.clone()]);
    }
}
