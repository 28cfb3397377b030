//! Taking a data plane over from the deployer that has made it, without a restart.
//!
//! A deployer in the cluster applies what it renders again and again, and its objects go with their Gateway. Two things
//! show that it holds an object: the Gateway is the controller in the ownerReferences, or the deployer's field manager
//! has applied fields. Such an object is adopted only when the deployer is known to leave the Gateway alone, and by
//! one patch of metadata: no ownerReference any more, our marks, and the deployer's fields are ours. After that it is an
//! object of ours like any other, and what the deployer has set and we do not is removed by the next apply.

pub mod release;
pub mod settings;

use serde_json::{Map, Value, json};

use super::Over;
use super::conflicts::{is_applied_by, managed_fields};
use super::fields::{difference, remove, union};
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, OWN_PREFIX, named_owner};
use crate::object::{Gvk, Object, ObjectId, group_kind};
use crate::spec::GATEWAY_API;
use crate::unit::Unit;

/// The adoption of an object from its deployer.
#[derive(Clone, Debug, PartialEq)]
pub struct FromDeployer {
    /// The live object.
    pub over: Over,
    /// The Gateway that must be accepted before.
    pub awaits: Option<Awaited>,
}

/// A Gateway whose control plane has to see that it is self-managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The Gateway.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The parameters that it must name all the while.
    pub parameters: Value,
}

/// The state of a live Gateway: what it says about who provisions it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayState {
    /// There is none, so that nobody provisions it.
    Absent,
    /// Its control plane's deployer does.
    Deployed,
    /// Its parameters say that somebody else does; whether the control plane has seen its newest generation.
    SelfManaged {
        /// The control plane has seen it.
        accepted: bool,
    },
    /// It could not be read.
    Unknown(String),
}

/// Names the deployer that holds a live object of a unit.
pub fn holder(unit: &Unit, live: &Live) -> Option<String> {
    let deployer = unit.deployer.as_ref()?;
    let entries = managed_fields(live);
    if entries.iter().any(|entry| is_applied_by(entry, &deployer.manager)) {
        return Some(deployer.manager.clone());
    }
    let references = references(live);
    references.iter().any(|reference| is_of(reference, &unit.id)).then(|| deployer.manager.clone())
}

/// Names the deployer that provisions an object of a unit in the cluster. Without a Gateway there nobody does; what is
/// itself a spec is nobody's but ours.
pub(super) fn held_by(unit: &Unit, id: &ObjectId, live: &Live, gateway: Option<&GatewayState>) -> Option<String> {
    let is_rendered = !unit.specs.iter().any(|spec| spec.id() == id);
    let is_left_alone = gateway == Some(&GatewayState::Absent) && references(live).is_empty();
    holder(unit, live).filter(|_| is_rendered && !is_left_alone)
}

/// Returns the first owner of a live object that is not the Gateway of its unit, in words.
pub(super) fn other_owner(unit: &Unit, live: &Live) -> Option<String> {
    references(live).iter().find(|reference| !is_of(reference, &unit.id)).map(named_owner)
}

/// Returns the patch that makes a live object ours; `marked` is what we want in its place, and `forbidden` a label that it
/// must not bear.
pub(super) fn patch(live: &Live, marked: &Object, manager: &str, forbidden: Option<&str>) -> Vec<Value> {
    let body = live.object.body();
    let mut operations = Vec::new();
    if body.pointer("/metadata/ownerReferences").is_some() {
        operations.push(json!({"op": "remove", "path": "/metadata/ownerReferences"}));
    }
    for field in ["labels", "annotations"] {
        let map = |body: &Value| body["metadata"][field].as_object().cloned().unwrap_or_default();
        let marks: Map<_, _> = map(marked.body()).into_iter().filter(|(key, _)| key.starts_with(OWN_PREFIX)).collect();
        if !marks.is_empty() {
            let mut all: Map<_, _> = map(body).into_iter().chain(marks).collect();
            all.retain(|key, _| field != "labels" || Some(key.as_str()) != forbidden);
            operations.push(json!({"op": "add", "path": format!("/metadata/{field}"), "value": all}));
        }
    }
    let entries = managed_fields(live);
    let handed_over = handed_over(entries, manager);
    if handed_over != entries {
        operations.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": handed_over}));
    }
    operations
}

/// Returns a patch that makes a live object what it will be after it was adopted; only for a dry run. `applied` is
/// what it would be if we applied ours now, with the deployer's fields still its own.
pub fn dry_run(unit: &Unit, live: &Live, applied: &Live) -> Vec<Value> {
    let manager = unit.deployer.as_ref().map(|deployer| deployer.manager.as_str()).unwrap_or_default();
    let entries = managed_fields(applied);
    let of = |is_one: &dyn Fn(&Value) -> bool| {
        entries.iter().filter(|entry| is_one(entry)).fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]))
    };
    let theirs = without_replicas(of(&|entry| is_applied_by(entry, manager)));
    let kept = of(&|entry| !is_applied_by(entry, manager));
    let mut body = applied.object.body().clone();
    remove(&mut body, &difference(&theirs, &kept));
    let mut operations = vec![json!({"op": "remove", "path": "/metadata/ownerReferences"})];
    operations.retain(|_| !references(live).is_empty());
    operations.extend(content(live, &body));
    operations
}

/// Returns a patch that gives a live object the content, the labels and the annotations of a body.
pub(super) fn content(live: &Live, body: &Value) -> Vec<Value> {
    let Some(fields) = body.as_object() else { return Vec::new() };
    let is_content = |field: &&String| !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str());
    let mut operations = Vec::new();
    let before = live.object.body().as_object().into_iter().flat_map(Map::keys).filter(is_content);
    for field in before.filter(|field| !fields.contains_key(*field)) {
        operations.push(json!({"op": "remove", "path": format!("/{field}")}));
    }
    for field in fields.keys().filter(is_content) {
        operations.push(json!({"op": "add", "path": format!("/{field}"), "value": fields[field]}));
    }
    for field in ["labels", "annotations"] {
        let value = fields["metadata"].get(field).cloned().unwrap_or_else(|| Map::new().into());
        operations.push(json!({"op": "add", "path": format!("/metadata/{field}"), "value": value}));
    }
    operations
}

/// Takes the number of pods out of the fields of a deployer. What nobody sets stays as it is, so that a source that says
/// no number changes none.
fn without_replicas(mut fields: Value) -> Value {
    if let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) {
        spec.remove("f:replicas");
    }
    fields
}

/// Writes our name where the deployer's stood. Who owns the object is nobody's field any more.
fn handed_over(entries: &[Value], manager: &str) -> Vec<Value> {
    let mut ours = json!({});
    let mut first = None;
    let mut others = Vec::new();
    for entry in entries {
        if is_applied_by(entry, manager) || is_applied_by(entry, FIELD_MANAGER) {
            ours = union(&ours, &entry["fieldsV1"]);
            first = first.or(Some(entry));
        } else {
            others.push(entry.clone());
        }
    }
    let Some(first) = first else { return others };
    if let Some(metadata) = ours.get_mut("f:metadata").and_then(Value::as_object_mut) {
        metadata.remove("f:ownerReferences");
    }
    let mut entry = first.clone();
    entry["manager"] = FIELD_MANAGER.into();
    entry["fieldsV1"] = without_replicas(ours);
    [entry].into_iter().chain(others).collect()
}

fn references(live: &Live) -> &[Value] {
    live.object.body().pointer("/metadata/ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Tells whether a reference names a Gateway as the controller.
fn is_of(reference: &Value, gateway: &ObjectId) -> bool {
    group_kind(reference) == (GATEWAY_API, &gateway.kind)
        && reference["name"] == gateway.name.as_str()
        && reference["controller"] == true
}
