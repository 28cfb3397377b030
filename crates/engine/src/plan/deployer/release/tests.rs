//! Objects that go back to their deployer, one by one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::problem::Place;
use crate::unit::{Declaration, Deployer};

const MANAGER: &str = "acme.example.com/controller";

fn marker() -> Marker {
    Marker::new("0123456789abcdef", "edge")
}

fn object(kind: &str, name: &str) -> Object {
    let api_version = match kind {
        "Gateway" => "gateway.networking.k8s.io/v1",
        "Acme" => "acme.example.com/v1",
        "Deployment" => "apps/v1",
        _ => "v1",
    };
    let metadata = json!({"name": name, "namespace": "infra"});
    Object::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}))
        .expect("it is whole")
}

/// An object of ours on a cluster, with the entries of those who have set something.
fn live(object: &Object) -> Live {
    let mut body = marker().mark(object.clone()).into_body();
    body["metadata"]["uid"] = json!(format!("uid-{}", object.id().kind));
    body["metadata"]["resourceVersion"] = json!("7");
    let marks = json!({".": {}, "f:gatewright.dev/owner": {}});
    let applied = json!({"f:metadata": {"f:annotations": marks, "f:labels": {
        "f:app": {}, "f:gatewright.dev/sync": {}, "f:gatewright.dev/owner": {}}}, "f:spec": {"f:ports": {}}});
    body["metadata"]["managedFields"] = json!([
        {"manager": "gatewright", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": applied},
        {"manager": "kube", "operation": "Update", "fieldsV1": {"f:status": {}}, "subresource": "status"},
    ]);
    Live::new(body).expect("it is whole")
}

fn released(parameters: Option<&str>) -> Released {
    let mut body = object("Gateway", "edge").into_body();
    if let Some(name) = parameters {
        body["spec"]["infrastructure"]["parametersRef"]["name"] = name.into();
    }
    let told = Declaration { gvk: Gvk::new("acme.example.com/v1", "Acme"), spec: json!({}) };
    let pack = "acme".to_owned();
    Released {
        place: Place::file("edge.yaml"),
        gateway: Object::new(body).expect("it is whole"),
        attached: Vec::new(),
        told: Some(object("Acme", "edge-self-managed").id().clone()),
        deployer: Deployer {
            manager: MANAGER.to_owned(),
            pack,
            told_by: Some(told),
            deletes: None,
            settings: Vec::new(),
        },
    }
}

/// Plans to release what is owned: by kind and name, each with whether it is there and ours.
fn plan(owned: &[(&str, &str, bool)], rendered: &[Object], after: impl Fn(&mut Value)) -> Plan {
    let released = released(Some("own"));
    let id = released.gateway.id().clone();
    let mut situation = BTreeMap::new();
    let mut inventory = Inventory::default();
    for (kind, name, is_there) in owned {
        let live = live(&object(kind, name));
        let (gvk, uid) = (live.object.gvk(), Some(live.uid.clone()));
        let entry =
            Entry { gvk, uid, unit: id.clone(), adopted: true, files: BTreeSet::new(), overlays: BTreeMap::new() };
        inventory.entries.insert(live.object.id().clone(), entry);
        if *is_there {
            situation.insert(live.object.id().clone(), live);
        }
    }
    let mut deployed = Unit::empty(id, Place::file(""));
    deployed.objects = rendered.to_vec();
    let become_ = |live: &Live| {
        let mut body = live.object.body().clone();
        after(&mut body);
        Ok(Live::new(body).expect("it is whole"))
    };
    let applied = situation.iter().map(|(id, live)| (id.clone(), become_(live))).collect();
    let (ours, masker) = (marker(), Masker::default());
    let (released, deployed, owned) = (&released, &deployed, &inventory);
    Situation { released, deployed, owned, live: &situation, applied: &applied, marker: &ours, masker: &masker }.plan()
}

const ALL: [(&str, &str, bool); 5] = [
    ("Acme", "edge-self-managed", true),
    ("ConfigMap", "edge", false),
    ("Deployment", "edge", true),
    ("Gateway", "edge", true),
    ("Service", "edge", true),
];

fn rendered() -> Vec<Object> {
    ["Service", "Deployment", "ConfigMap"].map(|kind| object(kind, "edge")).into()
}

#[test]
fn objects_go_back_before_their_gateway_and_its_parameters_go_last() {
    let plan = plan(&ALL, &rendered(), |_| {});
    assert_eq!(plan.refusals, []);
    let told = |step: &Step| {
        let word = match step.deed {
            Deed::HandBack(_) => "hand back",
            Deed::Unmark(_) => "unmark",
            Deed::Tidy(_) => "tidy",
            Deed::Restore(_) => "restore",
            Deed::Delete => "delete",
            Deed::Forget => "forget",
        };
        format!("{word} {}", step.id.kind)
    };
    let steps: Vec<String> = plan.steps.iter().map(told).collect();
    let before = ["hand back Service", "hand back Deployment", "restore Gateway", "delete Acme", "forget ConfigMap"];
    assert_eq!(steps, before);
}

#[test]
fn what_the_deployer_would_not_make_or_would_roll_out_stays() {
    let refused = |plan: Plan| plan.refusals.into_iter().map(|refusal| refusal.reason.to_string()).collect::<String>();
    let fewer = &rendered()[1..];
    let why = refused(plan(&ALL, fewer, |_| {}));
    assert!(why.contains("acme.example.com/controller would not make it"), "{why}");
    let why = refused(plan(&ALL, &rendered(), |body| body["spec"]["replicas"] = json!(3)));
    assert!(why.contains("would change spec.replicas"), "{why}");
    let labeled = plan(&ALL, &rendered(), |body| body["metadata"]["labels"]["app"] = json!("x"));
    assert_eq!(labeled.refusals, []);
    assert_eq!(labeled.steps[0].differences.len(), 1);
}

#[test]
fn one_patch_of_metadata_changes_hands_and_another_ends_the_trace_of_it() {
    let (service, gateway) = (live(&object("Service", "edge")), live(&object("Gateway", "edge")));
    let patch = hand_back(&service, MANAGER, &gateway);
    let paths: Vec<&str> = patch.iter().filter_map(|operation| operation["path"].as_str()).collect();
    let marks = ["/metadata/labels/gatewright.dev~1sync", "/metadata/annotations/gatewright.dev~1owner"];
    assert_eq!(paths, [marks[0], marks[1], "/metadata/ownerReferences", "/metadata/managedFields"]);
    let owner = json!([{
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "edge", "uid": "uid-Gateway",
        "controller": true,
    }]);
    assert_eq!(patch[2]["value"], owner);
    let entry = &patch[3]["value"][1];
    let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:ports": {}}});
    assert_eq!((&entry["manager"], &entry["fieldsV1"]), (&json!(MANAGER), &fields));

    // The server has written down who has patched it.
    let by_key = json!({"k:{\"uid\":\"uid-Gateway\"}": {}});
    let mut owners = by_key.clone();
    owners["."] = json!({});
    let patched = json!({"manager": "gatewright", "operation": "Update", "fieldsV1": {"f:metadata": {"f:ownerReferences": owners}}});
    let mut body = service.object.into_body();
    body["metadata"]["managedFields"] = json!([patched, entry]);
    let patched = Live::new(body).expect("it is whole");
    let patch = tidy(&patched, Some(MANAGER)).expect("we are still named");
    let left = patch[0]["value"].as_array().expect("it is a list");
    assert_eq!((left.len(), &left[0]["operation"]), (1, &json!("Apply")));
    assert_eq!(left[0]["fieldsV1"]["f:metadata"]["f:ownerReferences"], by_key);
    assert_eq!(tidy(&patched, None).expect("we are still named")[0]["value"], json!([entry]));
    let mut body = patched.object.into_body();
    body["metadata"]["managedFields"] = json!(left);
    assert_eq!(tidy(&Live::new(body).expect("it is whole"), Some(MANAGER)), None);
}

#[test]
fn where_nobody_else_has_set_anything_the_record_is_reset() {
    let mut body = live(&object("Gateway", "edge")).object.into_body();
    body["metadata"]["managedFields"].as_array_mut().expect("it is a list").truncate(1);
    let patch = tidy(&Live::new(body).expect("it is whole"), None).expect("we are named");
    assert_eq!(patch, [json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]})]);
}
