//! The budget of memory of a cluster: what one of them has too much of is its own failure.

use crate::cluster::ApiServer;
use crate::errors::{desk, gateway, kubeconfig};

#[test]
fn a_cluster_over_its_budget_fails_alone() {
    let fleet = ApiServer::fleet(&["eu", "us"]);
    let clusters = ["eu", "us"].into_iter().zip(&fleet);
    let clusters: Vec<(&str, String)> =
        clusters.map(|(name, server)| (name, kubeconfig(&server.kubeconfig("admin"), ", timeout: 31s"))).collect();
    let desk = desk("edge", &clusters);
    for number in 0..12 {
        let name = format!("g{number}");
        desk.write(&format!("specs/{name}.yaml"), &gateway("infra", &name, 8080));
    }
    desk.run(&["sync"]).exits(0).says("48 objects created");

    // What is there now takes more than that to read.
    desk.replace("gatewright.yaml", "timeout: 31s", "maxBytes: 24KiB");
    let run = desk.run(&["sync", "--full"]).exits(1);
    let run = run.says("cluster eu").says("cannot list the objects of kind ").says("its answers take ");
    let run = run.says("24KiB is the limit of clusters.eu.kubeconfig.maxBytes");
    run.says("or raise clusters.eu.kubeconfig.maxBytes").says("cluster us").says("no changes, 48 objects up to date");
    let there = fleet[0].kubectl_ok(&["get", "deployments", "-n", "infra", "-o", "name"]);
    assert_eq!(there.lines().count(), 12, "nothing is taken for gone");

    desk.replace("gatewright.yaml", "maxBytes: 24KiB", "maxBytes: 4MiB");
    desk.run(&["sync", "--full"]).exits(0).says("no changes, 48 objects up to date");
}
