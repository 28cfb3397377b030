//! The pods that serve a model: Deployments, or LeaderWorkerSets where one server is spread over several nodes.

use gatewright_engine::problem::Problem;
use serde_json::{Map, Value, json};

use super::devices::Devices;
use super::lora::{self, Adapter};
use super::pods::{add_env, container, list, prefixed, propagate};
use super::route::MODEL_ROUTING;
use super::scaling;
use super::service::Service;
use super::storage::{self, MODEL_PATH, Model, Target};
use super::values::Unit;
use super::{cache, devices, tracing};

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
struct Part<'a> {
    /// Its part of the merged spec.
    workload: &'a Value,
    /// Where that is written.
    path: &'static [&'static str],
    /// What names and labels end with.
    suffix: &'static str,
    /// What its pods do: the label of the scheduler.
    role: &'static str,
    /// What traces call it.
    trace: &'static str,
}

/// What all workloads of a service load.
pub(super) struct Load<'a> {
    pub(super) adapters: &'a [Adapter],
    pub(super) devices: Option<&'a Devices>,
}

/// Returns the labels of an object that belongs to a service.
pub(super) fn labels(service: &Service<'_>, component: Option<&str>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/name".to_owned(), service.name.into());
    labels.insert("app.kubernetes.io/part-of".to_owned(), "llminferenceservice".into());
    labels.extend(component.map(|component| ("app.kubernetes.io/component".to_owned(), component.into())));
    labels
}

/// Adds all workloads of a service, and what they need.
pub(super) fn add(unit: &mut Unit<'_>, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let spec = unit.spec;
    let has_prefill = spec["prefill"].is_object();
    let role = if has_prefill { "decode" } else { "both" };
    let main = Part { workload: spec, path: &["spec"], suffix: "", role, trace: "decode" };
    let prefill = Part {
        workload: &spec["prefill"],
        path: &["spec", "prefill"],
        suffix: "-prefill",
        role: "prefill",
        trace: "prefill",
    };
    for part in std::iter::once(main).chain(has_prefill.then_some(prefill)) {
        if part.workload["worker"].is_object() {
            set(unit, &part, load)?;
        } else {
            deployment(unit, &part, load)?;
        }
    }
    Ok(())
}

fn deployment(unit: &mut Unit<'_>, part: &Part<'_>, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let (service, name) = (unit.service, unit.service.child(&format!("-kserve{}", part.suffix)));
    let component = format!("llminferenceservice-workload{}", part.suffix);
    let base = labels(service, Some(&component));
    let mut labels = base.clone();
    labels.extend(workload_labels(part.role));
    propagate(&prefixed(&service.labels(), &LABELS), &mut labels);
    propagate(&part.workload["labels"], &mut labels);
    let mut pod = pod(unit, part, &part.workload["template"], load)?;
    if part.suffix.is_empty() && has_sidecar(&pod) {
        let account = account(unit, &pod["serviceAccountName"], &name, &base);
        pod["serviceAccountName"] = account.clone().into();
        add_role(unit, "-kserve", &base, &account);
    }
    let annotations = prefixed(&service.annotations(), &ANNOTATIONS);
    let object = json!({
        "name": name,
        "labels": labels,
        "annotations": annotations,
        "selector": labels,
        "replicas": part.workload["replicas"],
        "strategy": strategy(&part.workload["rolloutStrategy"]),
        "podLabels": labels,
        "podAnnotations": pod_annotations(&annotations, part.workload),
        "pod": pod,
    });
    unit.add("deployments", object);
    let kind = ("apps/v1", "Deployment");
    scaling::add(unit, &scaling::Target { workload: part.workload, path: part.path, suffix: part.suffix, kind, name })
}

fn set(unit: &mut Unit<'_>, part: &Part<'_>, load: &Load<'_>) -> Result<(), Vec<Problem>> {
    let (service, name) = (unit.service, unit.service.child(&format!("-kserve-mn{}", part.suffix)));
    let has_leader = part.workload["template"].is_object();
    let mut worker_labels = labels(service, Some(&format!("llminferenceservice-workload-worker{}", part.suffix)));
    let mut leader_labels = labels(service, Some(&format!("llminferenceservice-workload-leader{}", part.suffix)));
    leader_labels.extend(workload_labels(part.role));
    if !has_leader {
        // Nobody else answers then.
        worker_labels.extend(workload_labels(if part.suffix.is_empty() { "decode" } else { "prefill" }));
    }
    let kept = prefixed(&service.labels(), &SET_LABELS);
    propagate(&kept, &mut worker_labels);
    propagate(&kept, &mut leader_labels);
    let annotations = prefixed(&service.annotations(), &SET_ANNOTATIONS);
    let templates =
        [("leader", &part.workload["template"], &leader_labels), ("worker", &part.workload["worker"], &worker_labels)];
    let mut object = json!({
        "name": name, "labels": worker_labels, "annotations": annotations, "replicas": part.workload["replicas"],
        "size": size(&part.workload["parallelism"]),
        "rollout": part.workload["rolloutStrategy"],
    });
    let named = templates.iter().find_map(|(_, pod, _)| pod["serviceAccountName"].as_str()).map(Value::from);
    let plain = labels(service, None);
    let account = account(unit, &named.unwrap_or_default(), &name, &plain);
    let mut needs_role = false;
    for (field, template, labels) in templates.into_iter().filter(|(_, template, _)| template.is_object()) {
        let mut pod = pod(unit, part, template, load)?;
        pod["serviceAccountName"] = account.clone().into();
        needs_role |= part.suffix.is_empty() && has_sidecar(&pod);
        let mut labels = labels.clone();
        propagate(&part.workload["labels"], &mut labels);
        let annotations = pod_annotations(&annotations, part.workload);
        object[field] = json!({"labels": labels, "annotations": annotations, "pod": pod});
    }
    if part.suffix == "-prefill" && is_data_parallel(&part.workload["parallelism"]) {
        object["subGroupSize"] = object["size"].clone();
    }
    if needs_role {
        add_role(unit, "-kserve-mn", &plain, &account);
    }
    unit.add("sets", object);
    let kind = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");
    scaling::add(unit, &scaling::Target { workload: part.workload, path: part.path, suffix: part.suffix, kind, name })
}

/// Labels by which pools and schedulers find pods.
fn workload_labels(role: &str) -> [(String, Value); 2] {
    [("kserve.io/component".to_owned(), "workload".into()), ("llm-d.ai/role".to_owned(), role.into())]
}

fn pod_annotations(annotations: &Value, workload: &Value) -> Value {
    let mut all = annotations.as_object().cloned().unwrap_or_default();
    propagate(&workload["annotations"], &mut all);
    all.remove(MODEL_ROUTING);
    all.into()
}

fn strategy(rollout: &Value) -> Value {
    if rollout.is_object() { json!({"type": "RollingUpdate", "rollingUpdate": rollout}) } else { Value::Null }
}

fn is_data_parallel(parallelism: &Value) -> bool {
    ["data", "dataLocal"].iter().any(|field| parallelism[field].as_i64().unwrap_or_default() > 0)
}

/// How many pods make one server.
fn size(parallelism: &Value) -> Value {
    let number = |field: &str| parallelism[field].as_i64().filter(|&number| number > 0);
    match (number("data"), number("dataLocal"), number("pipeline")) {
        (None, None, None) => Value::Null,
        (None, None, Some(pipeline)) => pipeline.into(),
        (data, local, _) => (data.unwrap_or(1) / local.unwrap_or(1)).max(1).into(),
    }
}

/// Returns the account of the pods, which is rendered unless the service names one.
fn account(unit: &mut Unit<'_>, named: &Value, own: &str, labels: &Map<String, Value>) -> String {
    if let Some(name) = named.as_str().filter(|name| !name.is_empty() && *name != own) {
        return name.to_owned();
    }
    unit.add("accounts", json!({"name": own, "labels": labels}));
    own.to_owned()
}

/// The sidecar leads requests to pods of the pool and nowhere else, so it must know them.
fn add_role(unit: &mut Unit<'_>, name: &str, labels: &Map<String, Value>, account: &str) {
    let read = |groups: &[&str], resource: &str| json!({"apiGroups": groups, "resources": [resource], "verbs": ["get", "list", "watch"]});
    let groups = ["inference.networking.x-k8s.io", "inference.networking.k8s.io"];
    let (role, binding) = (unit.service.child(&format!("{name}-role")), unit.service.child(&format!("{name}-rb")));
    let rules = json!([read(&[""], "pods"), read(&groups, "inferencepools")]);
    unit.add("roles", json!({"name": role, "labels": labels, "rules": rules, "binding": binding, "account": account}));
}

fn has_sidecar(pod: &Value) -> bool {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| pod[list].as_array());
    lists.flatten().any(|container| container["name"] == SIDECAR)
}

/// Returns the spec of a pod with the model, adapters, devices, caches and traces in it.
fn pod(unit: &Unit<'_>, part: &Part<'_>, template: &Value, load: &Load<'_>) -> Result<Value, Vec<Problem>> {
    let (service, spec) = (unit.service, unit.spec);
    let mut pod = template.clone();
    if !pod.is_object() {
        let message = "nothing says what runs: there is no template, and no preset that has one";
        return Err(vec![service.problem(part.path, message)]);
    }
    name_pool(unit, &mut pod);
    if spec["storageInitializer"]["enabled"] != false {
        let uri = spec["model"]["uri"].as_str().unwrap_or_default();
        let model = Model { uri, adapters: load.adapters, initializer: &unit.settings.storage_initializer };
        storage::attach(&mut pod, &Target { container: "main", path: MODEL_PATH }, &model)
            .map_err(|message| vec![service.problem(&["spec", "model", "uri"], message)])?;
    }
    lora::attach(&mut pod, load.adapters, spec, service.namespace);
    cache::attach(&mut pod, &part.workload["kvCacheOffloading"]);
    if let Some(devices) = load.devices {
        devices::attach(&mut pod, devices);
    }
    if let Some(main) = container(&mut pod, "main") {
        tracing::server(main, &spec["tracing"], part.trace, service.namespace, service.name);
    }
    Ok(pod)
}

fn name_pool(unit: &Unit<'_>, pod: &mut Value) {
    let router = &unit.spec["router"];
    if !router.is_object() || !has_sidecar(pod) {
        return;
    }
    let pool = router.pointer("/scheduler/pool/ref/name").and_then(Value::as_str);
    let variable =
        json!({"name": "INFERENCE_POOL_NAME", "value": pool.map_or_else(|| unit.service.pool(), str::to_owned)});
    for field in
        ["initContainers", "containers"].into_iter().filter(|field| template_has(pod, field)).collect::<Vec<_>>()
    {
        for sidecar in list(pod, field).iter_mut().filter(|it| it["name"] == SIDECAR) {
            add_env(sidecar, [variable.clone()]);
        }
    }
}

fn template_has(pod: &Value, field: &str) -> bool {
    pod[field].is_array()
}
