//! The scheduler before the pods of a service, and what it needs.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::names;
use super::picker;
use super::pods::{MAIN, add_args, container, words};
use super::service::Service;
use super::tracing;
use super::trust;
use super::types::{Scheduler, Texts};
use super::values::Unit;
use super::workload::add_role;
use crate::json::{items, layered, without_nulls};

/// Ports that the Service of a scheduler offers, if its pods have them.
const PORTS: [&str; 4] = ["grpc", "grpc-health", "metrics", "zmq"];

/// Adds the scheduler and its pool, if the service has one of its own.
pub(super) fn add(unit: &mut Unit<'_>) -> Result<(), Vec<Problem>> {
    let scheduler = unit.spec.scheduler().filter(|scheduler| scheduler.foreign_pool().is_none());
    let Some((scheduler, template)) = scheduler.and_then(|it| Some((it, it.template.as_ref()?))) else {
        return Ok(());
    };
    let labels = labels(unit.service);
    let account = template["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    if account == unit.service.child("-epp-sa") {
        unit.add("accounts", json!({"name": account, "labels": labels}));
    }
    add_role(unit, "-epp", &labels, &account, "scheduler");
    let binding = names::child(unit.service.namespace, &format!("-{}-epp-auth-rb", unit.service.name));
    unit.add("clusterBindings", json!({"name": binding, "labels": labels, "account": account}));
    let deployment = deployment(unit, scheduler, template.clone(), &labels)?;
    unit.add("deployments", deployment);
    let pool = scheduler.pool.as_ref().and_then(|pool| pool.spec.clone()).unwrap_or_default();
    let name = pool.pointer("/endpointPickerRef/name").and_then(Value::as_str);
    let name = name.map_or_else(|| unit.service.child("-epp-service"), str::to_owned);
    unit.add("services", json!({"name": name, "labels": labels, "selector": labels, "ports": ports(template)}));
    trust::add(unit, &name, &labels);
    add_pools(unit, pool, &labels);
    Ok(())
}

/// Returns the labels of everything that belongs to the scheduler.
pub(super) fn labels(service: &Service<'_>) -> Texts {
    super::workload::labels(service, Some("llminferenceservice-router-scheduler"))
}

fn deployment(unit: &Unit<'_>, scheduler: &Scheduler, mut pod: Value, labels: &Texts) -> Result<Value, Vec<Problem>> {
    let labels = layered([labels, &scheduler.labels]);
    trust::certify(&mut pod, unit);
    if let Some(main) = container(&mut pod, MAIN) {
        let is_high = scheduler.replicas.unwrap_or(1) > 1;
        let elects = words(main, "args")
            .chain(words(main, "command"))
            .any(|arg| arg.trim_start_matches('-').starts_with("ha-enable-leader-election"));
        if is_high && !elects {
            add_args(main, ["--ha-enable-leader-election"]);
        }
        let defaults = (!unit.is_legacy).then_some(&unit.builtin.pickers);
        picker::configure(unit.spec, main, unit.tokenizer().as_deref(), defaults)
            .map_err(|fault| vec![unusable(unit.service, &fault)])?;
        if let Some(tracing) = &unit.spec.tracing {
            tracing::scheduler(main, tracing, unit.service.namespace, unit.service.name);
        }
    }
    Ok(json!({
        "name": unit.service.child("-kserve-router-scheduler"),
        "labels": labels,
        "selector": labels,
        "replicas": scheduler.replicas,
        "strategy": {"type": "Recreate"},
        "podLabels": labels,
        "podAnnotations": scheduler.annotations,
        "pod": pod,
    }))
}

fn unusable(service: &Service<'_>, fault: &picker::Fault) -> Problem {
    match fault {
        picker::Fault::Config(reason) => {
            let path = ["spec", "router", "scheduler", "config", "inline"];
            service.problem(&path, format!("the configuration of the scheduler cannot be used: {reason}"))
        }
        picker::Fault::Flags => {
            let path = ["spec", "router", "scheduler", "template"];
            let message = "the command line of the scheduler has flags about metrics that its release does not take, and its \
                           configuration, which can say the same, is in a file";
            service.problem(&path, message).hint("write the configuration in spec.router.scheduler.config")
        }
    }
}

fn ports(pod: &Value) -> Vec<Value> {
    let ports = items(&pod["containers"]).flat_map(|container| items(&container["ports"]));
    let mut ports: Vec<&Value> = ports.filter(|port| PORTS.iter().any(|name| port["name"] == *name)).collect();
    ports.sort_by_key(|port| port["name"].as_str().unwrap_or_default().to_owned());
    ports.dedup_by_key(|port| port["name"].clone());
    let port = |port: &Value| {
        json!({
            "name": port["name"], "port": port["containerPort"], "targetPort": port["name"],
            "protocol": port["protocol"].as_str().unwrap_or("TCP"),
        })
    };
    ports.into_iter().map(port).collect()
}

fn add_pools(unit: &mut Unit<'_>, mut pool: Value, labels: &Texts) {
    let picker = &mut pool["endpointPickerRef"];
    let is_service = picker["kind"].is_null() || picker["kind"] == "Service";
    if is_service && picker["port"]["number"].as_i64().unwrap_or_default() == 0 {
        picker["port"] = json!({"number": 9002});
    }
    let name = unit.service.pool();
    if unit.has_alpha_pool {
        let api = "inference.networking.x-k8s.io/v1alpha2";
        unit.add("pools", json!({"apiVersion": api, "name": name, "labels": labels, "spec": alpha(&pool)}));
    }
    let api = "inference.networking.k8s.io/v1";
    unit.add("pools", json!({"apiVersion": api, "name": name, "labels": labels, "spec": pool}));
}

/// The same pool in the words of the older version.
fn alpha(pool: &Value) -> Value {
    let picker = &pool["endpointPickerRef"];
    json!({
        "selector": pool["selector"]["matchLabels"],
        "targetPortNumber": pool["targetPorts"][0]["number"],
        "extensionRef": without_nulls(json!({
            "name": picker["name"],
            "portNumber": picker["port"]["number"],
            "group": picker["group"],
            "kind": picker["kind"],
            "failureMode": picker["failureMode"],
        })),
    })
}
