//! Objects that are deleted, those that are not, and what is said about them.

use gatewright_engine::inventory::Entry;
use gatewright_engine::object::{Gvk, ObjectId};
use serde_json::{Value, json};

use super::site::{Site, version};
use crate::cluster::ApiServer;

#[test]
fn marks_that_ask_for_it_keep_objects() {
    let site = Site::new("");
    site.want(&["a", "b", "c"], 80);
    site.sync().exits(0).says("12 objects created");
    site.kubectl(&["annotate", "service", "a", "helm.sh/resource-policy=keep"]);
    site.kubectl(&["label", "configmap", "b", "gatewright.dev/prune=disabled"]);
    site.drop(&["a", "b"]);

    let (service, config_map) = (format!("Service {}/a: kept", site.name), format!("ConfigMap {}/b: kept", site.name));
    site.run(&["plan"]).exits(0).says(&service).says("it carries helm.sh/resource-policy").says("6 objects to prune");
    site.sync().exits(0).says(&service).says(&config_map).says("it carries gatewright.dev/prune");
    assert_eq!((site.left_of("a"), site.left_of("b")), (vec!["Service".to_owned()], vec!["ConfigMap".to_owned()]));
    assert_eq!(site.left_of("c").len(), 4);

    // They are not forgotten: without the mark they go.
    site.sync().exits(0).says(&service).says("no changes");
    site.kubectl(&["annotate", "service", "a", "helm.sh/resource-policy-"]);
    site.sync().exits(0).says("1 object deleted");
    assert_eq!(site.left_of("a"), [""; 0]);
}

#[test]
fn a_copy_of_our_marks_claims_nothing() {
    let site = Site::new("");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    let mut copy = site.get("configmap/edge");
    let metadata = &copy["metadata"];
    copy["metadata"] = json!({"name": "copy", "labels": metadata["labels"], "annotations": metadata["annotations"]});
    site.create(&copy);
    let copied = site.get("configmap/copy");

    site.drop(&["edge"]);
    site.sync().exits(0).says("4 objects deleted");
    assert_eq!(site.get("configmap/copy"), copied);

    // Not even if somebody writes it into the inventory.
    let mut inventory = site.inventory();
    let entry = |object: &Value, kind: Gvk| Entry {
        gvk: kind,
        uid: object["metadata"]["uid"].as_str().map(str::to_owned),
        unit: ObjectId::new("gateway.networking.k8s.io", "Gateway", &site.name, "edge"),
        adopted: false,
        overlays: [].into(),
        files: ["edge.yaml".to_owned()].into(),
    };
    let id = ObjectId::new("", "ConfigMap", &site.name, "copy");
    inventory.entries.insert(id, entry(&copied, Gvk::new("v1", "ConfigMap")));
    site.forge(&inventory);
    site.sync().exits(3).says(&format!("ConfigMap {}/copy: kept: it does not carry our mark", site.name));
    assert_eq!(site.get("configmap/copy"), copied);
}

#[test]
fn what_somebody_replaced_is_not_deleted() {
    let site = Site::new("");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    let service = site.get("service/edge");
    site.kubectl(&["delete", "configmap/edge", "service/edge"]);
    site.kubectl(&["create", "configmap", "edge", "--from-literal=theirs=1"]);
    // This one even has our marks: somebody has put a backup back.
    let metadata = &service["metadata"];
    let marks = json!({"name": "edge", "labels": metadata["labels"], "annotations": metadata["annotations"]});
    site.create(&json!({"apiVersion": "v1", "kind": "Service", "metadata": marks, "spec": {"ports": [{"port": 80}]}}));
    let theirs = (version(&site.get("configmap/edge")), version(&site.get("service/edge")));

    site.drop(&["edge"]);
    site.sync().exits(0).says("2 objects deleted");
    assert_eq!(site.left_of("edge"), ["ConfigMap", "Service"]);
    assert_eq!((version(&site.get("configmap/edge")), version(&site.get("service/edge"))), theirs);
    let inventory = site.inventory();
    let knows = |kind: &str| inventory.entries.contains_key(&ObjectId::new("", kind, &site.name, "edge"));
    assert!(!knows("ConfigMap"), "ours is gone");
    assert!(knows("Service"), "what bears our mark is not lost sight of");
}

#[test]
fn what_a_finalizer_holds_is_not_forgotten() {
    let site = Site::new("");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    let finalizer = |list: &str| format!(r#"{{"metadata": {{"finalizers": {list}}}}}"#);
    site.kubectl(&["patch", "service", "edge", "--type=merge", "-p", &finalizer(r#"["example.com/load-balancer"]"#)]);
    let service = ObjectId::new("", "Service", &site.name, "edge");

    site.drop(&["edge"]);
    site.sync().exits(0).says("4 objects deleted");
    assert_eq!(site.left_of("edge"), ["Service"]);
    assert!(site.inventory().entries.contains_key(&service));
    let why = "it is being deleted (kept until then by metadata.finalizers: example.com/load-balancer)";
    site.sync().exits(0).says("no changes").says(&format!("Service {}/edge: {why}", site.name));
    site.kubectl(&["patch", "service", "edge", "--type=merge", "-p", &finalizer("null")]);
    site.sync().exits(0);
    assert!(!site.inventory().entries.contains_key(&service));
}

#[test]
fn what_is_wanted_and_being_deleted_is_not_done() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    let finalizer = |list: &str| format!(r#"{{"metadata": {{"finalizers": {list}}}}}"#);
    site.kubectl(&["patch", "service", "edge", "--type=merge", "-p", &finalizer(r#"["example.com/load-balancer"]"#)]);
    site.kubectl(&["delete", "service", "edge", "--wait=false"]);
    let why = "it is being deleted; a round makes it again once it is gone \
               (kept until then by metadata.finalizers: example.com/load-balancer)";
    let why = &format!("Service {}/edge: {why}", site.name);
    site.run(&["plan"]).exits(1).says(why);
    site.sync().exits(1).says(why);
    site.kubectl(&["patch", "service", "edge", "--type=merge", "-p", &finalizer("null")]);
    site.sync().exits(0).says("1 object created");
}

#[test]
fn no_more_is_deleted_at_once_than_the_guard_allows() {
    let site = Site::new("");
    site.want(&["a", "b", "c", "d", "e", "f", "g"], 80);
    site.sync().exits(0).says("28 objects created");
    let before = site.versions();
    site.drop(&["a", "b", "c", "d", "e", "f"]);
    site.run(&["plan"]).exits(3).says("held by guard max-delete").says("6 units of 7 (85 %)");
    site.sync().exits(3).says("held by guard max-delete").says("raise prune.maxDelete");
    assert_eq!(site.versions(), before);

    // Few enough, but too large a part; and the change of a Gateway that stays waits too.
    site.want(&["d", "e", "f"], 81);
    site.sync().exits(3).says("3 units of 7 (42 %)");
    assert_eq!(site.versions(), before);

    site.want(&["c", "d", "e", "f"], 80);
    site.sync().exits(0).says("8 objects deleted, 20 unchanged");
    assert_eq!((site.left_of("b"), site.left_of("c").len()), (Vec::new(), 4));
}

/// The kubeconfig leads to another cluster, on which nobody has ever heard of us.
#[test]
fn a_cluster_that_took_the_place_of_another_waits_for_a_person() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    let before = site.versions();
    let other = ApiServer::start();
    other.kubectl_ok(&["create", "namespace", &site.name]);
    let run = |arguments: &[&str]| site.desk.run_with(&other.kubeconfig("admin"), arguments);
    let kinds = "serviceaccounts,configmaps,services,deployments";
    let there = || other.kubectl_ok(&["get", kinds, "-n", &site.name, "-o", "name"]);
    let empty = there();
    site.want(&["edge", "more"], 81);
    for _ in 0..2 {
        run(&["plan"]).exits(3).says("held by guard cluster-identity");
        let held = run(&["sync"]).exits(3).says("this host has worked on cluster ");
        held.says(&format!("gatewright inventory repair {} --cluster c", site.name));
        run(&["sync", "--full"]).exits(3).says("held by guard cluster-identity");
    }
    assert_eq!((there(), site.versions()), (empty, before));
    // The right one again.
    site.sync().exits(0).says("4 objects created, 2 objects updated");

    // It was built again, and a person says so.
    run(&["inventory", "repair", &site.name, "--cluster", "c", "--yes"]).exits(0);
    run(&["sync"]).exits(0).says("8 objects created");
    run(&["sync"]).exits(0).says("no changes, 8 objects up to date");
    // From now on that is the one.
    site.sync().exits(3).says("held by guard cluster-identity");
}

#[test]
fn another_cluster_behind_the_address_is_left_alone() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    let inventory = site.inventory();
    site.forge(&gatewright_engine::inventory::Inventory { cluster: "another".to_owned(), ..inventory.clone() });
    let before = (site.versions(), site.records());
    site.want(&["edge"], 81);
    site.run(&["plan"]).exits(3).says("held by guard cluster-identity");
    site.sync().exits(3).says("the inventory was written for cluster another").says("check the kubeconfig");
    assert_eq!((site.versions(), site.records()), before);
    site.forge(&inventory);
    site.sync().exits(0).says("2 objects updated");
}
