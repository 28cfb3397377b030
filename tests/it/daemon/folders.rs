//! Folders of clusters under a running daemon: clusters come and go without a restart, and go unharmed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;

use super::{Daemon, gateway, ours, versions};
use crate::cluster::ApiServer;
use crate::cluster::process::free_port;
use crate::program::Desk;

fn desk(port: u16) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources: {{specs: {{directory: {{path: specs}}}}}}\n\
             clusterFolders: [clusters.d]\n\
             syncs:\n  edge: {{source: specs, clusters: {{matchLabels: {{env: prod}}}}, createNamespaces: true, \
             wait: {{enabled: false}}, schedule: {{interval: 10s, jitter: 0%}}}}\n"
        ),
    );
    desk.write("specs/a.yaml", &gateway("a", 8080));
    desk
}

/// Puts a cluster into the folder.
fn add(desk: &Desk, name: &str, server: &ApiServer) {
    desk.write(&format!("clusters.d/{name}.labels.yaml"), "env: prod\n");
    let kubeconfig = fs::read_to_string(server.kubeconfig("admin")).expect("the server has kubeconfigs");
    desk.write(&format!("clusters.d/{name}.yaml"), &kubeconfig);
}

fn says(daemon: &Daemon, message: &str) -> usize {
    daemon.log().iter().filter(|line| line["message"].as_str().is_some_and(|text| text.contains(message))).count()
}

fn rounds(daemon: &Daemon, cluster: &str) -> usize {
    daemon.rounds().iter().filter(|round| round.cluster == cluster).count()
}

#[test]
fn clusters_come_into_a_folder_and_go_from_it_under_a_running_daemon() {
    let (fleet, port) = (ApiServer::fleet(&["eu", "us"]), free_port());
    let desk = desk(port);
    add(&desk, "eu", &fleet[0]);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the Gateway is on the first", |_| ours(&fleet[0]).len() == 4);
    assert!(ours(&fleet[1]).is_empty());

    add(&desk, "us", &fleet[1]);
    daemon.until("the Gateway is on the second", |_| ours(&fleet[1]).len() == 4);
    let before = ours(&fleet[1]);

    // A list that is not certain is none: both clusters go on.
    desk.write("clusters.d/eu.labels.yaml", "");
    daemon.until("it says what is wrong", |daemon| says(daemon, "keeping the previous list of clusters") == 1);
    assert_eq!(daemon.metric("gatewright_config_last_reload_successful", &[]), Some(0.0));
    let (eu, us) = (rounds(&daemon, "eu"), rounds(&daemon, "us"));
    daemon.until("rounds go on", |daemon| rounds(daemon, "eu") > eu && rounds(daemon, "us") > us);
    fs::rename(desk.path("clusters.d"), desk.path("elsewhere")).expect("it is there");
    daemon.until("it says so", |daemon| says(daemon, "keeping the previous list of clusters") == 2);
    fs::rename(desk.path("elsewhere"), desk.path("clusters.d")).expect("it is there");
    desk.write("clusters.d/eu.labels.yaml", "env: prod\n");
    daemon.until("all is well", |daemon| says(daemon, "can be used again") == 1);
    assert_eq!(daemon.metric("gatewright_config_last_reload_successful", &[]), Some(1.0));

    // One that goes is gone, and not empty.
    fs::remove_file(desk.path("clusters.d/us.yaml")).expect("it is there");
    daemon.until("it is told", |daemon| says(daemon, "has gone from its folder") == 1);
    desk.write("specs/a.yaml", &gateway("a", 9090));
    daemon.until("the first has the change", |_| super::service(&fleet[0], "a", ".spec.ports[0].port") == "9090");
    let after = ours(&fleet[1]);
    assert_eq!(versions(&after), versions(&before));
    let rounds = rounds(&daemon, "us");
    daemon.until("every round tells it", |daemon| says(daemon, "clusters are gone from the configuration") > 1);
    assert_eq!(self::rounds(&daemon, "us"), rounds);
    desk.run(&["status"]).exits(0).says("cluster us: gone from the configuration");

    // It comes back as it was, and has what it has missed.
    add(&desk, "us", &fleet[1]);
    daemon.until("the second has the change", |_| super::service(&fleet[1], "a", ".spec.ports[0].port") == "9090");
    let uids = |objects: BTreeMap<ObjectId, Live>| objects.into_values().map(|live| live.uid).collect::<BTreeSet<_>>();
    assert_eq!(uids(ours(&fleet[1])), uids(before), "nothing was made again");
    daemon.stops_within(super::LIMIT);
}
