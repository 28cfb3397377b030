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

/// Everything that the log holds.
fn logged(desk: &Desk) -> String {
    fs::read_to_string(desk.path("log")).expect("the log was made at the start")
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

#[test]
fn a_daemon_starts_without_its_folder_of_clusters() {
    const METRIC: &str = "gatewright_config_last_reload_successful";
    let (words, gone) = ("keeping the previous list of clusters", "gone from the configuration");
    let (server, port) = (ApiServer::start(), free_port());
    let desk = desk(port);
    desk.replace(
        "gatewright.yaml",
        "clusterFolders",
        "clusters: {kept: {directory: {path: kept}, labels: {env: prod}}}\nclusterFolders",
    );
    desk.replace("gatewright.yaml", "wait: {enabled: false}", "wait: {enabled: false}, rollout: {strategy: all}");
    add(&desk, "eu", &server);
    let mount = || fs::rename(desk.path("elsewhere"), desk.path("clusters.d")).expect("it is there");
    let unmount = || fs::rename(desk.path("clusters.d"), desk.path("elsewhere")).expect("it is there");
    unmount();

    // Nothing is known of its clusters: those of the config file have their rounds, and a command says what is missing.
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the one in the config file has a round", |daemon| rounds(daemon, "kept") > 0);
    assert_eq!(daemon.metric(METRIC, &[]), Some(0.0));
    let found = (says(&daemon, words), daemon.is_ready());
    assert_eq!(found, (1, true));
    desk.run(&["plan"]).exits(64).complains("cannot read the cluster folder").complains("make, mount or unlock it");
    mount();
    daemon.until("the Gateway is there", |_| ours(&server).len() == 4);
    assert_eq!(daemon.metric(METRIC, &[]), Some(1.0));
    daemon.stops_within(super::LIMIT);
    let before = ours(&server);

    // Now it is known which there are: neither a folder that is missing nor one that is empty makes them gone.
    unmount();
    fs::create_dir(desk.path("clusters.d")).expect("the desk can be written");
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.write("specs/b.yaml", &gateway("b", 8080));
    let lost = "eu.yaml\\\": it cannot be read";
    assert!(!logged(&desk).contains(lost));
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the other one goes on", |_| desk.read_all("kept").contains("name: b"));
    daemon.until("its rounds fail", |_| logged(&desk).contains(lost));
    assert_eq!((says(&daemon, gone), daemon.metric(METRIC, &[])), (0, Some(0.0)));
    assert_eq!(versions(&ours(&server)), versions(&before), "nothing on it was touched");
    fs::remove_dir(desk.path("clusters.d")).expect("it is empty");
    mount();
    daemon.until("it has what it missed", |_| super::service(&server, "b", ".spec.ports[0].port") == "8080");
    daemon.until("all is well", |daemon| daemon.metric(METRIC, &[]) == Some(1.0));
    assert_eq!(says(&daemon, gone), 0);
    daemon.stops_within(super::LIMIT);
}
