//! From a service and its configs to the one configuration that its objects are made of.
//!
//! Presets lie lowest, then what `baseRefs` name, then the service itself. What then stands in braces is filled, in
//! what users wrote as well as in presets: so does KServe.

use gatewright_engine::problem::Problem;
use gatewright_engine::yaml::{Content, Node};
use serde_json::{Value, json};

use super::configs::{Config, Configs, LEGACY_SCHEDULER, Missing};
use super::gotemplate;
use super::merge;
use super::presets;
use super::service::Service;
use super::settings::Settings;
use super::types::{ConfigReference, Scheduler, Spec};
use super::versions;
use crate::json::{each_text, said};

/// Returns the merged and filled spec; the name of the model that templates saw goes into the service.
///
/// `scheduler` is the preset of the scheduler, if not the usual one; `tls` says whether pods speak TLS.
pub(super) fn combine(
    service: &mut Service<'_>,
    configs: &Configs<'_>,
    scheduler: Option<&str>,
    tls: bool,
) -> Result<Spec, Vec<Problem>> {
    let bases = base_refs(service, configs)?;
    let probe = bases.iter().try_fold(service.spec.clone(), |spec, config| {
        merge::over(spec, &config.spec).map_err(|error| vec![unmergeable(service, config, &error)])
    })?;
    let probe = read(service, probe)?;
    if let Some(name) = probe.model.as_ref().and_then(|model| model.name.clone()) {
        service.spec["model"]["name"] = name.into();
    }
    let names = presets::select(&probe, service.has_model() || probe.uri().is_some());
    let layers = names.iter().map(|name| preset(service, configs, scheduler, name));
    let mut layers = layers.collect::<Result<Vec<_>, _>>()?;
    layers.extend(bases);
    let own = Config { title: "the service".to_owned(), document: Some(service.document), spec: own_layer(service) };
    layers.push(own);
    let mut spec = json!({});
    for layer in &layers {
        spec = merge::over(spec, &layer.spec).map_err(|error| vec![unmergeable(service, layer, &error)])?;
    }
    let data = data(service, &spec, configs.settings, tls);
    let (mut problems, mut steps) = (Vec::new(), gotemplate::Steps::default());
    each_text(&mut spec, &mut |text| match gotemplate::fill(text, &data, &mut steps) {
        Ok(filled) => *text = filled,
        Err(fault) => problems.push(unfilled(service, &layers, text, &fault)),
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut spec = read(service, spec)?;
    if let Some(scheduler) = spec.router.as_mut().and_then(|router| router.scheduler.as_mut()) {
        if let Some(field) = scheduler.pool.as_ref().and_then(|pool| versions::stray(pool.spec.as_ref()?)) {
            return Err(vec![stray(service, field)]);
        }
        set_defaults(service, scheduler);
        put_in_place(service, configs, scheduler)?;
    }
    Ok(spec)
}

/// Reads what has been merged. The service itself has passed its schema, so that what is wrong comes from a config.
fn read(service: &Service<'_>, spec: Value) -> Result<Spec, Vec<Problem>> {
    serde_json::from_value(spec).map_err(|error| {
        let message = format!("the service and its configs together cannot be used: {error}");
        vec![service.problem(&["spec", "baseRefs"], message)]
    })
}

/// Puts the configuration of the scheduler in the place of its name.
fn put_in_place(service: &Service<'_>, configs: &Configs<'_>, scheduler: &mut Scheduler) -> Result<(), Vec<Problem>> {
    let Some(config) = &mut scheduler.config else { return Ok(()) };
    let Some(ConfigReference { name, key, .. }) = &config.reference else { return Ok(()) };
    let key = key.as_deref().and_then(said).unwrap_or("epp");
    let text = configs.entry(name, key, service.namespace).ok_or_else(|| {
        let message = format!("the source has no ConfigMap {name:?} with the key {key:?}");
        let path = ["spec", "router", "scheduler", "config", "ref"];
        vec![service.problem(&path, message).hint("put it into the source, or write the configuration inline")]
    })?;
    config.inline = Some(text.into());
    Ok(())
}

/// A field of a pool that belongs to another version than its document.
fn stray(service: &Service<'_>, field: &str) -> Problem {
    let path = ["spec", "router", "scheduler", "pool", "spec", field];
    let message =
        format!("{field} is a field of pools in serving.kserve.io/v1alpha1, and v1alpha2 has none of that name");
    service.problem(&path, message).hint("write the pool with targetPorts, endpointPickerRef and selector.matchLabels")
}

fn base_refs<'a>(service: &Service<'_>, configs: &Configs<'a>) -> Result<Vec<Config<'a>>, Vec<Problem>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let refs = service.document.root.at(["spec", "baseRefs"]).map(Node::items).unwrap_or_default();
    for reference in refs {
        let name = reference.get("name").and_then(Node::as_str).unwrap_or_default();
        match configs.find(name, service.namespace) {
            Ok(config) => found.push(config),
            Err(missing) => {
                let place = service.document.at(reference.position);
                problems.push(Problem { place, ..not_found(service, missing, &[]) });
            }
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn not_found(service: &Service<'_>, missing: Missing, path: &[&str]) -> Problem {
    Problem { hint: missing.hint, ..service.problem(path, missing.message) }
}

fn preset<'a>(
    service: &Service<'_>,
    configs: &Configs<'a>,
    scheduler: Option<&str>,
    suffix: &str,
) -> Result<Config<'a>, Vec<Problem>> {
    let chosen = scheduler.filter(|_| suffix == "config-llm-scheduler");
    let found = match chosen {
        Some("legacy") => configs.built_in(LEGACY_SCHEDULER).ok_or_else(Missing::default),
        None | Some("current") => configs.preset(suffix, service.namespace),
        Some(name) => configs.find(name, service.namespace),
    };
    found.map_err(|missing| {
        let path: &[&str] = match suffix {
            "config-llm-scheduler" => &["spec", "router", "scheduler"],
            _ if suffix.ends_with("-pipeline-parallel") => &["spec", "parallelism", "pipeline"],
            _ => &["spec"],
        };
        vec![not_found(service, missing, path)]
    })
}

/// The service as the highest layer; an image of its scheduler goes to the container that schedules.
fn own_layer(service: &Service<'_>) -> Value {
    let Some(image) = &service.scheduler_image else { return service.spec.clone() };
    let image = json!({"router": {"scheduler": {"template": {"containers": [{"name": "main", "image": image}]}}}});
    // One that the template of the service names goes over it.
    merge::over(image, &service.spec).unwrap_or_else(|_| service.spec.clone())
}

fn set_defaults(service: &Service<'_>, scheduler: &mut Scheduler) {
    if let Some(pool) = scheduler.pool.as_mut().and_then(|pool| pool.spec.as_mut())
        && pool["selector"]["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
    {
        pool["selector"]["matchLabels"] = json!({
            "app.kubernetes.io/part-of": "llminferenceservice",
            "app.kubernetes.io/name": service.name,
            "kserve.io/component": "workload",
        });
    }
    if let Some(template) = &mut scheduler.template
        && template["serviceAccountName"].is_null()
    {
        template["serviceAccountName"] = service.child("-epp-sa").into();
    }
}

/// Returns the data that templates see: the service as its user wrote it, and settings.
fn data(service: &Service<'_>, spec: &Value, settings: &Settings, tls: bool) -> Value {
    let pool = spec.pointer("/router/scheduler/pool/ref/name").and_then(Value::as_str).and_then(said);
    let pool = pool.map_or_else(|| service.pool(), str::to_owned);
    json!({
        "metadata": service.metadata,
        "spec": service.spec,
        "globalConfig": {
            "systemNamespace": settings.namespace,
            "ingressGatewayName": settings.gateway.name,
            "ingressGatewayNamespace": settings.gateway.namespace,
            "enableTLS": tls,
            "modelBasedRoutingHeaderName": settings.model_routing.header,
            "inferencePoolNamespacedName": format!("{}/{pool}", service.namespace),
        },
    })
}

/// A text that cannot be filled stands in the highest layer that has it.
fn unfilled(service: &Service<'_>, layers: &[Config<'_>], text: &str, fault: &gotemplate::Fault) -> Problem {
    for layer in layers.iter().rev() {
        let Some(document) = layer.document else { continue };
        if let Some(node) = find(&document.root, text) {
            let place = document.at(node.position);
            return Problem { place, ..service.problem(&[], format!("{}: {fault}", layer.title)) };
        }
    }
    service.problem(&["spec"], format!("a built-in preset: {fault}"))
}

fn find<'a>(node: &'a Node, text: &str) -> Option<&'a Node> {
    match &node.content {
        Content::String(found) if found == text => Some(node),
        Content::List(items) => items.iter().find_map(|item| find(item, text)),
        Content::Map(_) => node.fields().find_map(|(_, field)| find(&field.node, text)),
        _ => None,
    }
}

fn unmergeable(service: &Service<'_>, layer: &Config<'_>, error: &merge::Unmergeable) -> Problem {
    let path: Vec<&str> = std::iter::once("spec").chain(error.path.iter().map(String::as_str)).collect();
    let message = format!("{} cannot be merged at {}: {}", layer.title, path.join("."), error.reason);
    let place = layer.document.unwrap_or(service.document).place_of(&path);
    Problem::document(place, message).about(service.document.id.clone())
}
