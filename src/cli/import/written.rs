//! Objects as somebody would have written them: without what a server and its controllers have added.

use gatewright_engine::live::Live;
use gatewright_engine::marks::{OWN_PREFIX, OWNER_ANNOTATION};
use gatewright_engine::object::Object;
use serde_json::{Map, Value, json};

/// The annotation in which kubectl keeps a copy of what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The reason why an object is no spec of anybody's.
pub(super) fn reason_to_leave(live: &Live) -> Option<String> {
    let metadata = &live.object.body()["metadata"];
    if live.is_terminating() {
        return Some("it is being deleted".to_owned());
    }
    if let Some(owner) = metadata["annotations"][OWNER_ANNOTATION].as_str() {
        return Some(format!("gatewright looks after it already, as {owner}"));
    }
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let maker = owners.into_iter().find(|owner| owner["controller"] == true)?;
    let text = |field: &str| maker[field].as_str().unwrap_or_default();
    Some(format!("it was made for {} {}", text("kind"), text("name")))
}

/// Returns the document that stands for an object in a repository.
pub(super) fn document(live: &Live) -> Value {
    let object = &live.object;
    let mut body = object.body().clone();
    let metadata = metadata(object);
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
        fields.insert("metadata".to_owned(), metadata);
    }
    body
}

fn metadata(object: &Object) -> Value {
    let all = &object.body()["metadata"];
    let mut metadata = json!({"name": object.id().name});
    if !object.id().namespace.is_empty() {
        metadata["namespace"] = object.id().namespace.clone().into();
    }
    for field in ["labels", "annotations"] {
        let kept = |(key, _): &(&String, &Value)| *key != LAST_APPLIED && !key.starts_with(OWN_PREFIX);
        let entries = all[field].as_object().into_iter().flatten().filter(kept);
        let entries: Map<String, Value> = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !entries.is_empty() {
            metadata[field] = entries.into();
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(metadata: &Value) -> Live {
        let mut body = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": "edge", "namespace": "infra", "uid": "u", "resourceVersion": "1"},
            "spec": {"gatewayClassName": "kgateway"}, "status": {"addresses": []},
        });
        let all = body["metadata"].as_object_mut().expect("it is one");
        all.extend(metadata.as_object().cloned().unwrap_or_default());
        Live::new(body).expect("it is whole")
    }

    #[test]
    fn what_a_server_adds_is_left_out() {
        let live = live(&json!({
            "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [], "finalizers": ["a/b"],
            "labels": {"team": "a", "gatewright.dev/sync": "s"},
            "annotations": {LAST_APPLIED: "{}", "gatewright.dev/prune": "disabled"},
        }));
        assert_eq!(
            document(&live),
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                "metadata": {"name": "edge", "namespace": "infra", "labels": {"team": "a"}},
                "spec": {"gatewayClassName": "kgateway"},
            })
        );
    }

    #[test]
    fn what_others_make_or_look_after_is_no_spec() {
        let reason = |metadata: &Value| reason_to_leave(&live(metadata));
        assert_eq!(reason(&json!({})), None);
        let owners =
            |controller: bool| json!({"ownerReferences": [{"kind": "A", "name": "b", "controller": controller}]});
        assert_eq!(reason(&owners(false)), None);
        assert_eq!(reason(&owners(true)).as_deref(), Some("it was made for A b"));
        let marked = reason(&json!({"annotations": {OWNER_ANNOTATION: "x"}}));
        assert_eq!(marked.as_deref(), Some("gatewright looks after it already, as x"));
        let leaving = reason(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(leaving.as_deref(), Some("it is being deleted"));
    }
}
