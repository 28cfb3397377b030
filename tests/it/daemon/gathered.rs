//! Notifications of a sync on many clusters: one for a push, one at once when it fails somewhere, one at its end.

use std::fs;

use serde_json::{Value, json};

use super::{Daemon, gateway};
use crate::cluster::process::free_port;
use crate::commands::obeys;
use crate::program::Desk;
use crate::support::receiver::Receiver;

/// The clusters of a fleet of directories.
const CLUSTERS: usize = 40;

fn name(number: usize) -> String {
    format!("c{number:02}")
}

/// A desk with a sync on all clusters, and a webhook.
fn desk(port: u16, receiver: &Receiver, more: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let clusters: Vec<String> =
        (0..CLUSTERS).map(name).map(|name| format!("  {name}: {{directory: {{path: out/{name}}}}}")).collect();
    let names: Vec<String> = (0..CLUSTERS).map(name).collect();
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             reports: {{webhooks: {{ops: {{url: \"{}\"{more}}}}}}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\nclusters:\n{}\n\
             syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [{}]}}\n    createNamespaces: true\n    wait: {{enabled: false}}\n    \
             schedule: {{interval: 1h, jitter: 0%}}\n",
            receiver.url("/hook"),
            clusters.join("\n"),
            names.join(", ")
        ),
    );
    desk.write("specs/edge.yaml", &gateway("edge", 8101));
    desk
}

/// Waits until the sync is told to be through, and returns all that has come by then; nothing is left to come.
fn until_finished(daemon: &mut Daemon, desk: &Desk, receiver: &Receiver, so_far: usize) -> Vec<Value> {
    let is_end = |body: &Value| body["progress"]["isFinished"] == true;
    daemon.until("the end", |_| receiver.taken().iter().skip(so_far).any(is_end));
    daemon.until("nothing that waits", |daemon| {
        daemon.metric("gatewright_notifications_waiting", &[]) == Some(0.0)
            && !desk.path("state/webhooks/ops/gateways.pending").exists()
    });
    let told = receiver.taken().split_off(so_far);
    for body in &told {
        obeys("notification-v1alpha1", body);
    }
    told
}

#[test]
fn a_push_to_forty_clusters_is_told_once() {
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = desk(port, &receiver, "");
    let mut daemon = Daemon::start(&desk, port, &[]);
    let first = until_finished(&mut daemon, &desk, &receiver, 0);
    assert_eq!(first.len(), 1, "{first:#?}");
    let told = &first[0];
    let objects = told["counts"]["create"].as_u64().expect("they are counted");
    assert_eq!((objects, &told["states"]), (5 * CLUSTERS as u64, &json!({"done": CLUSTERS})));
    assert_eq!(told["clusters"].as_object().map(serde_json::Map::len), Some(CLUSTERS));
    let through = json!({"clusters": 40, "through": 40, "waiting": 0, "wrong": 0, "isFinished": true});
    assert_eq!(told["progress"], through);
    let text = told["text"].as_str().expect("it has a line for people");
    assert!(text.ends_with("; finished: through on 40 of 40 clusters"), "{text}");

    // Of a push that fails on some clusters the first failure is told at once, and the rest together.
    for broken in [name(7), name(23)] {
        fs::remove_dir_all(desk.path(&format!("out/{broken}"))).expect("it is there");
        desk.write(&format!("out/{broken}"), "no directory");
    }
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    let second = until_finished(&mut daemon, &desk, &receiver, 1);
    assert!((1..=2).contains(&second.len()), "{second:#?}");
    let failed = second[0]["new"]["findings"].to_string();
    assert!(failed.contains("c07") || failed.contains("c23"), "{failed}");
    let last = second.last().expect("there is one");
    assert_eq!(last["progress"], json!({"clusters": 40, "through": 38, "waiting": 0, "wrong": 2, "isFinished": true}));
    let sum: usize = second.iter().map(|body| body["clusters"].as_object().map_or(0, serde_json::Map::len)).sum();
    assert_eq!(sum, CLUSTERS, "each cluster is told once");
    daemon.stops_within(super::LIMIT);
}

#[test]
fn without_a_wait_each_cluster_is_told_by_itself() {
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = desk(port, &receiver, ", groupWait: 0s");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("all of them", |_| receiver.taken().len() >= CLUSTERS);
    assert_eq!(receiver.taken().len(), CLUSTERS);
    daemon.stops_within(super::LIMIT);
}

#[test]
fn what_waits_for_others_outlives_the_process() {
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = desk(port, &receiver, ", groupWait: 4s");
    desk.replace("gatewright.yaml", "interval: 1h", "interval: 10s");
    let mut daemon = Daemon::start(&desk, port, &[]);
    // It may take longer than that, and then its beginning is told, too.
    let before = until_finished(&mut daemon, &desk, &receiver, 0).len();
    // One cluster alone has news soon after that, in its next round, and it waits for that of others until the process ends.
    fs::remove_dir_all(desk.path("out/c05/shop")).expect("it is there");
    daemon.until("the news", |_| desk.path("state/webhooks/ops/gateways.pending").exists());
    daemon.stops_within(super::LIMIT);
    assert_eq!(receiver.taken().len(), before);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("what waited", |_| receiver.taken().len() > before);
    let told = receiver.taken().pop().expect("it has just come");
    assert_eq!(told["clusters"], json!({"c05": "done"}));
    daemon.stops_within(super::LIMIT);
}
