//! Tests of what an undo wants, and what it refuses.

use super::*;
use crate::inventory::Entry;

fn marker() -> Marker {
    Marker::new("0123456789abcdef", "edge")
}

/// A Service of ours with this port, and a number of replicas as somebody else has set it.
fn service(uid: &str, version: &str, port: u16, theirs: &str) -> Live {
    let metadata = json!({
        "name": "edge", "namespace": "infra", "uid": uid, "resourceVersion": version, "creationTimestamp": "then",
        "finalizers": ["theirs"], "annotations": {"theirs": theirs},
    });
    let spec = json!({"ports": [{"port": port, "nodePort": 30000}], "clusterIP": "10.0.0.1", "type": "NodePort"});
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": {}});
    let mut body = marker().mark(Object::new(body).expect("it has all that it needs")).into_body();
    body["metadata"]["managedFields"] = json!([
        {"manager": FIELD_MANAGER, "operation": "Apply", "time": "1", "fieldsV1": {
            "f:metadata": {"f:labels": {"f:gatewright.dev/sync": {}}, "f:annotations": {"f:gatewright.dev/owner": {}}},
            "f:spec": {"f:type": {}, "f:ports": {format!("k:{{\"port\":{port}}}"): {".": {}, "f:port": {}}}},
        }},
        {"manager": "kubectl", "operation": "Update", "time": theirs, "fieldsV1": {
            "f:metadata": {"f:annotations": {"f:theirs": {}}, "f:finalizers": {".": {}, "v:\"theirs\"": {}}},
        }},
        {"manager": "controller", "operation": "Update", "subresource": "status", "time": version, "fieldsV1": {}},
    ]);
    Live::new(body).expect("it is whole")
}

fn change(deed: Deed, before: Option<&Live>, left: Option<&Live>) -> Change {
    let id = ObjectId::new("", "Service", "infra", "edge");
    let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
    let (before, left) = (before.cloned(), left.map(Left::of));
    Change { unit, id, gvk: Gvk::new("v1", "Service"), files: ["a.yaml".to_owned()].into(), deed, before, left }
}

/// Checks what is wanted, what is to go, and what is refused.
#[track_caller]
fn check(change: Change, live: Option<&Live>, expected: &str) -> Option<Object> {
    let mut observed = Observed::default();
    let mut owned = Inventory::default();
    if let Some(live) = live {
        observed.live.insert(change.id.clone(), live.clone());
        let (gvk, unit) = (change.gvk.clone(), change.unit.clone());
        let entry = Entry {
            gvk,
            uid: Some(live.uid.clone()),
            unit,
            adopted: false,
            files: BTreeSet::new(),
            overlays: BTreeMap::new(),
        };
        owned.entries.insert(change.id.clone(), entry);
    }
    let found = restoration(&[change], &observed, &owned, &marker());
    let object = found.rendering.units.first().and_then(|unit| unit.objects.first()).cloned();
    let said = match (found.refusals.first(), &object, found.owned.entries.len()) {
        (Some(refusal), ..) => refusal.reason.to_string(),
        (None, Some(_), _) => "apply".to_owned(),
        (None, None, 1) => "delete".to_owned(),
        (None, None, _) => "nothing".to_owned(),
    };
    assert_eq!(said, expected);
    object
}

#[test]
fn what_was_deleted_comes_back_as_it_was_set() {
    let before = service("a", "1", 80, "x");
    let object = check(change(Deed::Delete, Some(&before), None), None, "apply").expect("it is wanted");
    let body = object.body();
    assert_eq!(body["spec"], json!({"ports": [{"port": 80}], "type": "NodePort"}), "the server chooses the rest again");
    assert_eq!(body["metadata"]["annotations"]["theirs"], "x", "what others have set comes back too");
    for gone in ["uid", "resourceVersion", "creationTimestamp", "finalizers", "managedFields"] {
        assert_eq!(body["metadata"].get(gone), None, "{gone}");
    }
    check(change(Deed::Delete, Some(&before), None), Some(&before), "nothing");
    check(change(Deed::Delete, Some(&before), None), Some(&service("b", "9", 80, "x")), "nothing");
    let mut theirs = service("b", "9", 80, "x");
    theirs.object = theirs.object.with_metadata("annotations", [("gatewright.dev/owner".to_owned(), String::new())]);
    let replaced = "not undone: somebody else's object stands in its place now";
    check(change(Deed::Delete, Some(&before), None), Some(&theirs), replaced);
    check(change(Deed::Delete, None, None), Some(&before), "nothing");
}

#[test]
fn what_was_changed_gets_our_earlier_fields() {
    let (before, after) = (service("a", "1", 80, "x"), service("a", "2", 81, "x"));
    let changed = |left| change(Deed::Change, Some(&before), left);
    let object = check(changed(Some(&after)), Some(&after), "apply").expect("it is wanted");
    assert_eq!(object.body()["spec"], json!({"ports": [{"port": 80}], "type": "NodePort"}));
    assert_eq!(object.body()["metadata"]["annotations"].get("theirs"), None, "what others set stays theirs");

    let only_status = service("a", "3", 81, "x");
    check(changed(Some(&after)), Some(&only_status), "apply");
    let by_others = service("a", "3", 81, "y");
    let refusal = "not undone: it was changed since, last by kubectl at y";
    check(changed(Some(&after)), Some(&by_others), refusal);
    check(changed(None), Some(&before), "nothing");

    // What the round took from others, or removed, it took.
    let mut cleared = service("a", "2", 81, "x");
    let mut body = cleared.object.into_body();
    body["metadata"]["managedFields"][1] = json!({"manager": "other", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:finalizers": {".": {}, "v:\"theirs\"": {}}},
    }});
    cleared.object = Object::new(body).expect("it is whole");
    let left = Left::after(Some(&before), &cleared);
    assert_eq!(left.lost, Some(json!({"f:metadata": {"f:annotations": {"f:theirs": {}}}})));
    assert_eq!(Left::of(&cleared).since(&left).lost, left.lost, "also if it was changed once more");
    let change = Change { left: Some(left), ..changed(None) };
    let object = check(change, Some(&cleared), "apply").expect("it is wanted");
    assert_eq!(object.body()["metadata"]["annotations"]["theirs"], "x");
    assert_eq!(object.body()["metadata"].get("finalizers"), None);
    check(changed(Some(&after)), Some(&service("a", "4", 80, "y")), "nothing");
    let ended = "not undone: the round ended before it could note what it left behind; others may have changed it";
    check(changed(None), Some(&after), ended);
    check(
        changed(Some(&after)),
        Some(&service("b", "3", 81, "x")),
        "not undone: another object stands in its place now",
    );
    check(changed(Some(&after)), None, "not undone: it does not exist any more");
    check(changed(None), None, "apply").expect("it was deleted to be made again, and that has failed");
}

#[test]
fn what_was_made_goes_only_if_it_is_the_same() {
    let made = service("a", "1", 80, "x");
    check(change(Deed::Create, None, Some(&made)), Some(&made), "delete");
    check(change(Deed::Create, None, Some(&made)), Some(&service("a", "2", 80, "y")), "delete");
    check(change(Deed::Create, None, Some(&made)), Some(&service("b", "2", 80, "x")), "nothing");
    check(change(Deed::Create, None, Some(&made)), None, "nothing");
    let ended = "not undone: the round ended before it could note what it had made";
    check(change(Deed::Create, None, None), Some(&made), ended);
}

#[test]
fn what_was_adopted_stays_ours() {
    let (before, after) = (service("a", "1", 80, "x"), service("a", "2", 81, "x"));
    check(change(Deed::Adopt, Some(&before), None), Some(&before), "nothing");
    let stays = "not undone: it was adopted, and what others had set before is not given back; it stays ours";
    check(change(Deed::Adopt, Some(&before), Some(&after)), Some(&after), stays);
}
