//! Objects as somebody would have written them: without what a server and its controllers have added.

use gatewright_engine::live::Live;
use gatewright_engine::marks::{MARKS, OWNER_ANNOTATION};
use gatewright_engine::object::{Object, ObjectId};
use serde_json::{Map, Value, json};

use crate::cluster::directory::Problem;
use crate::cluster::directory::file::{digest, file_name, folder_of};

/// The longest name of an object that its file is called by.
const MOST_BYTES: usize = 160;

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
        let is_mark = |key: &str| MARKS.contains(&(field, key));
        let kept = |(key, _): &(&String, &Value)| *key != LAST_APPLIED && !is_mark(key);
        let entries = all[field].as_object().into_iter().flatten().filter(kept);
        let entries: Map<String, Value> = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !entries.is_empty() {
            metadata[field] = entries.into();
        }
    }
    metadata
}

/// Returns the file of an object below the folder of specs: `infra/gateway-edge.yaml`, with the group behind the kind where
/// that is taken. The names come from a cluster, which may be anybody's: none leads out of the folder.
pub(super) fn file(id: &ObjectId, is_taken: impl Fn(&str) -> bool) -> Result<String, Problem> {
    let folder = folder_of(&id.namespace)?;
    let kind = id.kind.to_lowercase();
    let short = if id.name.len() > MOST_BYTES { digest(id.name.as_bytes()) } else { id.name.clone() };
    let name = file_name(&short, "yaml")?;
    let path = format!("{folder}/{kind}-{name}");
    Ok(if is_taken(&path) { format!("{folder}/{kind}.{}-{name}", id.group) } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_a_file_of_its_own_in_the_folder() {
        let pool = |group: &str, namespace: &str, name: &str| ObjectId::new(group, "Pool", namespace, name);
        let path = |id: &ObjectId| file(id, |path| path == "a/pool-taken.yaml");
        let check = |id: &ObjectId, expected: &str| assert_eq!(path(id).ok().as_deref(), Some(expected), "{id}");
        check(&pool("x.io", "a", "b"), "a/pool-b.yaml");
        check(&pool("x.io", "", "b"), "_cluster/pool-b.yaml");
        check(&pool("x.io", "a", "taken"), "a/pool.x.io-taken.yaml");
        // Kubernetes takes names of 253 bytes, and a file system names of 255.
        let long = "b".repeat(252);
        assert!(path(&pool("x.io", "a", &long)).is_ok_and(|path| path.len() < 60));
        assert_ne!(path(&pool("x.io", "a", &long)).ok(), path(&pool("x.io", "a", &format!("{long}c"))).ok());
        for (namespace, name) in
            [("..", "a"), ("../x", "a"), ("/x", "a"), ("a", "../x"), ("a", "x/../../../y"), ("a", "x\n")]
        {
            assert!(path(&pool("x.io", namespace, name)).is_err(), "{namespace:?} {name:?}");
        }
    }

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
            "annotations": {LAST_APPLIED: "{}", "gatewright.dev/managed": "false"},
        }));
        assert_eq!(
            document(&live),
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                "metadata": {"name": "edge", "namespace": "infra", "labels": {"team": "a"},
                    // Somebody has written this, and it counts.
                    "annotations": {"gatewright.dev/managed": "false"}},
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
