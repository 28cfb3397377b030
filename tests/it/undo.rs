//! Changes and deletions of rounds can be taken back, on a real API server, and the next round leaves it so.

mod clock;
mod files;
mod lost;
mod memory;
mod pause;
mod rounds;

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::obeys_the_schema;
use crate::ownership::site::Site;
use crate::program::{Desk, Run};

/// Deletes as much as it is told to, and applies every document.
const FREELY: &str = "unclaimed: apply, prune: {maxDelete: {units: 99, percent: 100}}";

/// The name of the round that a run of the program was.
pub(crate) fn run_of(run: &Run) -> String {
    let line = run.out.lines().find_map(|line| line.strip_prefix("run "));
    line.unwrap_or_else(|| unreachable!("no run in\n{}\n{}", run.out, run.err)).to_owned()
}

/// All objects of the namespace that are ours, without what a server sets by itself.
fn as_set(site: &Site) -> BTreeMap<String, Value> {
    let kinds = "serviceaccounts,configmaps,secrets,services,deployments";
    let is_ours = |item: &Value| item["metadata"]["labels"].get("gatewright.dev/sync").is_some();
    let mut objects = BTreeMap::new();
    for mut item in site.server.objects(&site.name, kinds).into_iter().filter(is_ours) {
        let key = format!("{} {}", item["kind"], item["metadata"]["name"]);
        let metadata = item["metadata"].as_object_mut().expect("every object has it");
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(field);
        }
        if let Some(spec) = item["spec"].as_object_mut() {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for port in item["spec"]["ports"].as_array_mut().into_iter().flatten() {
            port.as_object_mut().expect("a port is a mapping").remove("nodePort");
        }
        item.as_object_mut().expect("it is an object").remove("status");
        objects.insert(key, item);
    }
    objects
}

#[test]
fn a_hundred_objects_that_were_deleted_come_back() {
    let site = Site::new(FREELY);
    let names: Vec<String> = (0..25).map(|number| format!("edge-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    site.want(&names, 80);
    site.want(&["stays"], 80);
    site.sync().exits(0).says("104 objects created");
    let patch = r#"{"metadata": {"annotations": {"theirs": "too"}}}"#;
    site.kubectl(&["patch", "service", "edge-7", "--type=merge", "-p", patch]);
    let before = as_set(&site);

    site.drop(&names);
    let pruned = run_of(&site.sync().exits(0).says("100 objects deleted"));
    assert_eq!(as_set(&site).len(), 4);

    let dry = site.run(&["undo", &pruned, "--dry-run"]).exits(0).says("plan: 100 objects to create");
    assert_eq!(as_set(&site).len(), 4, "{}", dry.out);
    let undone = site.run(&["undo", &pruned]).exits(0).says("100 objects created").says(&format!("undo of {pruned}"));
    assert_eq!(as_set(&site), before);
    assert!(site.inventory().entries.len() == 104, "what is made again is ours");

    // The next round would delete them again, so there is none.
    let uids = site.versions();
    let refused = site.sync().exits(3).complains("is suspended").complains(&format!("undo of {pruned}"));
    refused.complains("`gatewright resume");
    site.run(&["plan"]).exits(0).says("suspended").says("100 objects to prune");
    let status = site.run(&["status"]).exits(0).says(&format!("undo of {pruned}"));
    status.says("/stays").says("/edge-0").says("/edge-24");
    site.run(&["history"]).exits(0).says(&format!("(undo of {pruned})")).says("create 100");
    assert_eq!(site.versions(), uids);

    // Once is enough, and an undo is undone as any round is.
    site.run(&["undo", &pruned]).exits(0).complains("there is nothing to undo").says("no changes");
    assert_eq!(site.versions(), uids);
    site.run(&["undo", &run_of(&undone)]).exits(0).says("100 objects deleted");
    assert_eq!(as_set(&site).len(), 4);
    site.run(&["undo", &pruned]).exits(0).says("100 objects created");
    site.run(&["resume", &site.name]).exits(0).says(&format!("undo of {pruned}"));
    site.sync().exits(0).says("100 objects deleted");
}

#[test]
fn what_was_changed_is_as_it_was_unless_others_have_changed_it_since() {
    let site = Site::new(FREELY);
    site.want(&["ours", "shared"], 80);
    site.sync().exits(0).says("8 objects created");
    let before = as_set(&site);
    site.want(&["ours", "shared"], 81);
    let changed = run_of(&site.sync().exits(0).says("4 objects updated"));
    assert_ne!(as_set(&site), before);

    let patch = r#"{"metadata": {"annotations": {"theirs": "1"}}}"#;
    site.kubectl(&["patch", "service", "shared", "--type=merge", "--field-manager=ada", "-p", patch]);
    let theirs = site.get("service/shared");
    let status = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}"#;
    site.kubectl(&["patch", "service", "ours", "--subresource=status", "--type=merge", "-p", status]);
    let refusal = format!("Service {}/shared: not undone: it was changed since, last by ada at ", site.name);
    let plan = site.run(&["undo", &changed, "--dry-run", "--format", "json"]).exits(3);
    obeys_the_schema(&serde_json::from_str(&plan.out).expect("it is JSON"));
    site.run(&["undo", &changed]).exits(3).says("3 objects updated").says(&refusal);
    assert_eq!(site.get("service/shared"), theirs);
    assert_eq!(site.get("service/ours")["spec"]["ports"][0]["port"], 80);
    let mut now = as_set(&site);
    let mut expected = before;
    for objects in [&mut now, &mut expected] {
        objects.remove("\"Service\" \"shared\"");
    }
    assert_eq!(now, expected);
    site.run(&["undo", &changed]).exits(3).says(&refusal).complains("there is nothing to undo");
    site.run(&["resume", &site.name]).exits(0);
    site.sync().exits(0).says("3 objects updated");
}

#[test]
fn what_was_made_goes_again_and_what_stands_in_its_place_stays() {
    let site = Site::new(FREELY);
    site.want(&["old"], 80);
    site.sync().exits(0);
    site.want(&["new"], 80);
    let made = run_of(&site.sync().exits(0).says("4 objects created"));
    site.kubectl(&["delete", "configmap", "new"]);
    site.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}));
    site.run(&["undo", &made]).exits(0).says("3 objects deleted");
    assert_eq!((site.left_of("new"), site.left_of("old").len()), (vec!["ConfigMap".to_owned()], 4));
    site.run(&["undo", &made]).exits(0).complains("there is nothing to undo");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let site = Site::new(FREELY);
    site.want(&["edge"], 80);
    site.sync().exits(0);
    // An address that the server gives out and takes back is free.
    let service = |name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": site.name});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    };
    let ports = json!([{"name": "http", "port": 80}]);
    site.create(&service("probe", json!({"ports": ports})));
    let address = site.get("service/probe")["spec"]["clusterIP"].as_str().expect("it has one").to_owned();
    site.kubectl(&["delete", "service", "probe"]);
    site.spec("fixed", &service("fixed", json!({"ports": ports, "clusterIP": address})).to_string());
    site.sync().exits(0).says("1 object created");
    site.drop(&["fixed", "edge"]);
    site.want(&["other"], 80);
    let pruned = run_of(&site.sync().exits(0).says("5 objects deleted"));
    site.create(&service("thief", json!({"ports": ports, "clusterIP": address})));

    let refusal = format!("not undone: its clusterIP {address} belongs to Service {}/thief now", site.name);
    site.run(&["undo", &pruned, "--dry-run"]).exits(3).says(&refusal).says("it gets a new clusterIP");
    site.run(&["undo", &pruned]).exits(3).says("4 objects created").says(&refusal);
    assert_eq!(site.left_of("edge").len(), 4);
    site.kubectl(&["delete", "service", "thief"]);
    site.run(&["undo", &pruned]).exits(0).says("1 object created");
    assert_eq!(site.get("service/fixed")["spec"]["clusterIP"], json!(address));
}

#[test]
fn controllers_at_work_are_nobody_who_has_changed_something() {
    let site = Site::on(crate::cluster::shared(), FREELY);
    let rolled_out = || site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    site.want(&["edge"], 80);
    site.sync().exits(0);
    rolled_out();
    let (before, was) = (as_set(&site), site.get("deployment/edge"));
    site.want(&["edge"], 81);
    let changed = run_of(&site.sync().exits(0).says("2 objects updated"));
    let left = site.get("deployment/edge")["metadata"]["resourceVersion"].clone();
    rolled_out();
    site.kubectl(&["delete", "pods", "--all", "--wait=false"]);
    let has_moved = || site.get("deployment/edge")["metadata"]["resourceVersion"] != left;
    for _ in 0..300 {
        if has_moved() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert!(has_moved(), "its status is another one by now");
    site.run(&["undo", &changed]).exits(0).says("2 objects updated");
    rolled_out();
    let now = site.get("deployment/edge");
    assert_eq!((&now["spec"], &now["metadata"]["uid"]), (&was["spec"], &was["metadata"]["uid"]));

    site.run(&["resume", &site.name]).exits(0);
    site.drop(&["edge"]);
    site.want(&["other"], 80);
    let pruned = run_of(&site.sync().exits(0).says("4 objects deleted"));
    site.run(&["undo", &pruned]).exits(0).says("4 objects created");
    rolled_out();
    let mut after = as_set(&site);
    after.retain(|name, _| !name.contains("other"));
    let spec = |objects: &BTreeMap<String, Value>| -> Vec<Value> {
        objects.values().map(|object| json!([object["spec"], object["data"], object["metadata"]["labels"]])).collect()
    };
    assert_eq!(spec(&after), spec(&before));
}

#[test]
fn files_in_a_folder_come_back_too() {
    let desk = Desk::quickstart("gatewright.yaml");
    let rendered = || -> BTreeMap<String, String> {
        let files = files::files(&desk.path("rendered/shop")).into_iter();
        files.map(|path| (path.display().to_string(), fs::read_to_string(path).expect("it is text"))).collect()
    };
    desk.run(&["sync"]).exits(0);
    let before = rendered();
    fs::remove_file(desk.path("specs/shop/storefront.yaml")).expect("it is there");
    let pruned = run_of(&desk.run(&["sync"]).exits(0).says("4 objects deleted"));
    desk.run(&["undo", &pruned]).exits(0).says("4 objects created");
    assert_eq!((rendered(), before.len()), (before, 4));
    desk.run(&["undo", &pruned]).exits(0).complains("there is nothing to undo");
}

#[test]
fn an_earlier_set_is_applied_without_the_source() {
    let site = Site::new(FREELY);
    site.want(&["edge"], 80);
    site.sync().exits(0);
    let first = as_set(&site);
    site.want(&["edge"], 81);
    site.want(&["more"], 80);
    site.sync().exits(0);
    let second = as_set(&site);
    site.sync().exits(0).says("no changes");
    let list = site.run(&["rollback", &site.name, "--list"]).exits(0).says("8 objects").says("4 objects");
    assert_eq!(list.out.lines().count(), 3, "{}", list.out);

    fs::rename(site.desk.path("specs"), site.desk.path("gone")).expect("it is there");
    site.sync().exits(1).complains("cannot read source");
    site.run(&["rollback", &site.name, "--dry-run"]).exits(0).says("2 objects to update, 4 objects to prune");
    assert_eq!(as_set(&site), second);
    let run = site.run(&["rollback", &site.name]).exits(0).says("2 objects updated, 4 objects deleted");
    run.says("rollback to ").complains("is suspended");
    assert_eq!(as_set(&site), first);
    site.run(&["rollback", &site.name, "--to", "nothing"]).exits(64).complains("has no set \"nothing\"");
    site.run(&["rollback", &site.name]).exits(0).says("no changes");
    site.run(&["rollback", &site.name, "--to", "0"]).exits(0).says("4 objects created");
    assert_eq!(as_set(&site), second);

    fs::rename(site.desk.path("gone"), site.desk.path("specs")).expect("it is there");
    site.sync().exits(3).complains("rollback to ");
    site.run(&["resume", &site.name]).exits(0);
    site.sync().exits(0).says("no changes, 8 objects up to date");

    // Guards hold as they do in any round.
    site.configure(&site.name, "prune: {maxDelete: {units: 0, percent: 0}}");
    site.run(&["rollback", &site.name]).exits(3).says("held by guard max-delete").complains("is suspended");
    assert_eq!(as_set(&site), second);
}
