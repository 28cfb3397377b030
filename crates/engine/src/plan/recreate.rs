//! Fields that cannot be changed: when an object may be deleted and created again instead.
//!
//! Only where an API server has said of a field of what the object *is* that it is immutable, never because of
//! anything else that is wrong with it; only with consent, by kind or by object; and only after the new one was dry-run
//! under another name. What holds data or others is never replaced.

use serde_json::Value;

use super::guard::confirm::reason as needs_a_person;
use super::policies::Policies;
use crate::kinds::name::KindName;
use crate::live::Live;
use crate::marks::{RECREATE_ANNOTATION, keep_mark, may_be_recreated};
use crate::object::{Object, group_kind};
use crate::text::{cut, digest};

/// Fields that API servers fill in, and that a second object cannot have.
const ALLOCATED: [&str; 3] = ["clusterIP", "clusterIPs", "healthCheckNodePort"];

/// The length of a name that is kept in that of a stand-in.
const KEPT: usize = 40;

/// An update that an API server refuses because of fields that cannot be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Immutable {
    /// The fields.
    pub fields: Vec<String>,
    /// The words of the server.
    pub message: String,
    /// The object as its replacement would be, under another name, or why it cannot be; `None` if nobody has asked,
    /// because it may not be replaced.
    pub instead: Option<Result<Live, String>>,
}

/// Returns why an object may not be deleted and created again, and what to do; or nothing if it may.
pub fn consent(object: &Object, live: &Live, policies: &Policies) -> Result<(), String> {
    let id = object.id();
    let kind = KindName::of(id);
    if !policies.kinds.of(id).recreate {
        return Err(format!("a {kind} is never deleted for that: put the field back, or change it by hand"));
    }
    if let Some(mark) = keep_mark(live.object.body()) {
        return Err(format!("it carries {mark}, so it is not deleted"));
    }
    if may_be_recreated(object.body()) || may_be_recreated(live.object.body()) {
        return Ok(());
    }
    let annotate = format!("annotate it with {RECREATE_ANNOTATION}=allowed");
    if let Some(why) = needs_a_person(id, live.object.body(), policies) {
        return Err(format!("it {why}: to have it deleted and created again, {annotate}"));
    }
    if policies.recreate.iter().any(|named| named.is_surely_of(id)) {
        return Ok(());
    }
    Err(format!("to have it deleted and created again, add {kind} to recreate.kinds of the sync, or {annotate}"))
}

/// Returns a wanted object under another name, without what only one can have: for a dry run.
pub fn stand_in(object: &Object) -> Object {
    let mut body = without_allocated(object.body());
    let name = &object.id().name;
    body["metadata"]["name"] = format!("{}-gw-{}", cut(name, KEPT), &digest(name.as_bytes())[..6]).into();
    Object::new(body).unwrap_or_else(|_| object.clone())
}

/// Returns what the object would be, as [`stand_in`] has shown it, beside what it is; both without what is allocated.
pub(super) fn compared(live: &Live, stand_in: &Live) -> (Value, Value) {
    let (before, mut after) = (without_allocated(live.object.body()), without_allocated(stand_in.object.body()));
    for field in ["name", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "annotations"] {
        let value = before["metadata"].get(field).cloned();
        if let (Some(value), Some(metadata)) = (value, after["metadata"].as_object_mut()) {
            metadata.insert(field.to_owned(), value);
        }
    }
    match (before.get("status").cloned(), after.as_object_mut()) {
        (Some(status), Some(fields)) => drop(fields.insert("status".to_owned(), status)),
        (None, Some(fields)) => drop(fields.remove("status")),
        (_, None) => {}
    }
    (before, after)
}

/// Fields of `metadata` that a server sets by itself.
const SERVER_SET: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Returns what has to be written to have an object back that was deleted.
pub fn pre_image(live: &Live) -> Object {
    let mut body = live.object.body().clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.retain(|field, _| !SERVER_SET.contains(&field.as_str()));
    }
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    Object::new(body).unwrap_or_else(|_| live.object.clone())
}

fn without_allocated(body: &Value) -> Value {
    let mut body = body.clone();
    if group_kind(&body) != ("", "Service") {
        return body;
    }
    if let Some(spec) = body["spec"].as_object_mut() {
        spec.retain(|field, _| !ALLOCATED.contains(&field.as_str()));
    }
    let ports = body["spec"]["ports"].as_array_mut().into_iter().flatten();
    ports.filter_map(Value::as_object_mut).for_each(|port| drop(port.remove("nodePort")));
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Tells what is said of an object, and whether it may be recreated with these kinds allowed.
    fn consent(api_version: &str, kind: &str, allowed: &str) -> Result<(), String> {
        let body = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "edge", "namespace": "a", "uid": "1"}});
        let policies = Policies { recreate: [KindName::read(allowed)].into(), ..crate::plan::tests::policies() };
        let object = Object::new(body.clone()).expect("it is an object");
        super::consent(&object, &Live::new(body).expect("it is an object"), &policies)
    }

    #[test]
    fn a_bare_kind_allows_only_that_of_kubernetes_to_be_replaced() {
        assert_eq!(consent("v1", "Service", "Service"), Ok(()));
        assert_eq!(consent("apps/v1", "Deployment", "Deployment.apps"), Ok(()));
        let refused =
            consent("serving.knative.dev/v1", "Service", "Service").expect_err("it is not that of Kubernetes");
        assert!(refused.contains("add Service.serving.knative.dev to recreate.kinds"), "{refused}");
        assert_eq!(consent("serving.knative.dev/v1", "Service", "Service.serving.knative.dev"), Ok(()));
    }

    #[test]
    fn only_our_own_gateways_are_never_replaced() {
        let gateway = consent("gateway.networking.k8s.io/v1", "Gateway", "Gateway.gateway.networking.k8s.io");
        assert!(gateway.expect_err("it is never").contains("is never deleted for that"));
        assert_eq!(consent("networking.example.com/v1", "Gateway", "Gateway.networking.example.com"), Ok(()));
    }

    #[test]
    fn a_stand_in_takes_no_place_of_the_object() {
        let spec = json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30080}]});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge", "namespace": "a"}, "spec": spec});
        let stand_in = stand_in(&Object::new(service).expect("it is an object"));
        assert_eq!(stand_in.body()["spec"], json!({"ports": [{"port": 80}]}));
        assert!(stand_in.id().name.starts_with("edge-gw-"));
        let long = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a".repeat(63)}});
        assert!(super::stand_in(&Object::new(long).expect("it is an object")).id().name.len() <= 63);
    }
}
