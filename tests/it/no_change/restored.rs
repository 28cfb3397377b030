//! A cluster whose database was set back to an earlier state.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object_of;
use crate::cluster::etcd::Etcd;
use crate::cluster::proxy::Proxy;
use crate::cluster::{ApiServer, Options};
use crate::program::Desk;
use crate::rounds::installation::gateway;

/// Enough that the server cannot have written as much again by the time that it is looked at.
const LOST: usize = 40;

const CONFIG: &str = "
stateDir: ./state
sources: {specs: {directory: {path: ./specs}}}
clusters: {c: {kubeconfig: {allowInsecureTls: true}}}
syncs: {gateways: {source: specs, clusters: {names: [c]}, wait: {enabled: false}, createNamespaces: true}}
";

#[test]
fn a_cluster_that_is_set_back_is_compared_as_a_whole_and_catches_up() {
    let etcd = Arc::new(Etcd::start());
    let options = Options { name: "back".to_owned(), ..Options::default() };
    let server = ApiServer::start_on(&etcd, options.clone());
    let proxy = Proxy::start(&server);
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    let want = |name: &str, port| desk.write(&format!("specs/{name}.yaml"), &gateway("infra", name, port));
    let sync = |proxy: &Proxy| desk.run_with(&proxy.kubeconfig(), &["sync"]);
    for name in ["same", "changed", "dropped"] {
        want(name, 80);
    }
    sync(&proxy).exits(0).says("12 objects created");
    server.kubectl_ok(&["create", "configmap", "foreign", "-n", "infra", "--from-literal=theirs=1"]);
    let (earlier, foreign) = (Arc::new(etcd.copy()), state(&server, "configmap/foreign"));

    want("changed", 81);
    (0..LOST).for_each(|number| want(&format!("lost{number}"), 80));
    std::fs::remove_file(desk.path("specs/dropped.yaml")).expect("it is there");
    sync(&proxy).exits(0).says("160 objects created, 2 objects updated, 4 objects deleted");
    sync(&proxy).exits(0).says("no changes, 168 objects up to date");
    let same = ["serviceaccount/same", "configmap/same", "service/same", "deployment/same"];
    let before = same.map(|object| state(&server, object));

    drop((proxy, server));
    let server = ApiServer::resume_on(&earlier, options);
    assert_eq!(same.map(|object| state(&server, object)), before, "what the notes know of it is still true");
    let proxy = Proxy::start(&server);
    // All is put right but the deletions: the inventory is older than what this host has written, and a person looks.
    let held = sync(&proxy).exits(3).says("160 objects created, 2 objects updated");
    held.says("held by guard inventory").says("it is an older copy");
    let is_dry_run = |path: &str| path.contains("dryRun=All");
    let dry_runs: Vec<String> =
        proxy.seen().iter().filter(|seen| is_dry_run(&seen.path)).map(|seen| object_of(&seen.path)).collect();
    for plural in ["serviceaccounts", "configmaps", "services", "deployments"] {
        let there = [format!("{plural}/same"), format!("{plural}/changed")];
        assert!(there.iter().all(|object| dry_runs.contains(object)), "{dry_runs:?}");
    }
    assert_eq!(same.map(|object| state(&server, object)), before);
    assert_eq!(state(&server, "configmap/foreign"), foreign);
    assert_eq!(foreign["data"], json!({"theirs": "1"}));
    desk.run_with(&proxy.kubeconfig(), &["inventory", "repair", "gateways", "--cluster", "c", "--yes"]).exits(0);
    sync(&proxy).exits(0).says("4 objects deleted");
    proxy.recovers();
    sync(&proxy).exits(0).says("no changes, 168 objects up to date");
    assert!(!proxy.seen().iter().any(|seen| seen.method != "GET"), "the notes are of this state by now");
}

fn state(server: &ApiServer, object: &str) -> Value {
    let json = server.kubectl_ok(&["get", object, "-n", "infra", "-o", "json", "--show-managed-fields"]);
    serde_json::from_str(&json).expect("kubectl prints JSON")
}
