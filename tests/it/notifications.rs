//! Rounds by hand and by timer: whom they tell, where the newest report stands, and how they exit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::process::{Folder, free_port};
use crate::commands::obeys;
use crate::errors::{desk, folder, gateway, kubeconfig};
use crate::program::Desk;
use crate::support::git_server::HttpsServer;
use crate::support::receiver::{Answer, Receiver};

/// Adds settings of reports to a desk.
fn tell(desk: &Desk, reports: &str) {
    desk.replace("gatewright.yaml", "stateDir: state\n", &format!("stateDir: state\nreports: {reports}\n"));
}

#[test]
fn a_round_by_hand_tells_and_a_plan_does_not() {
    let (desk, receiver) = (desk("edge", &[("out", folder())]), Receiver::start());
    let (ops, other) = (receiver.url("/ops"), receiver.url("/other"));
    tell(&desk, &format!("{{webhooks: {{ops: {{url: \"{ops}\"}}, other: {{url: \"{other}\", syncs: []}}}}}}"));
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["plan"]).exits(0);
    assert!(receiver.received().is_empty(), "a plan was told");
    desk.run(&["sync"]).exits(0);
    let told = receiver.received();
    assert_eq!(told.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["/ops"]);
    let body = told[0].body();
    obeys("notification-v1alpha1", &body);
    assert_eq!((&body["counts"]["create"], &body["mode"], &body["id"]), (&json!(5), &json!("apply"), &body["run"]));
    desk.run(&["history"]).exits(0).says(body["run"].as_str().expect("it was to change something"));
    desk.run(&["sync"]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.received().len(), 1, "that nothing is to be changed was told");

    // What is wrong with the source is told once, and that it is not any more.
    desk.write("specs/wrong.yaml", "kind: [\n");
    desk.run(&["sync"]).exits(1);
    desk.run(&["sync"]).exits(1);
    let wrong = receiver.received().pop().expect("it was told").body();
    assert_eq!((&wrong["exitCode"], &wrong["new"]["findings"][0]["kind"]), (&json!(1), &json!("problem")));
    fs::remove_file(desk.path("specs/wrong.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.taken().len(), 3);
    assert_eq!(receiver.taken()[2]["resolved"]["count"], json!(1));

    let run = told[0].body()["run"].as_str().expect("it has a name").to_owned();
    desk.run(&["undo", &run, "--yes"]).exits(0);
    assert_eq!(receiver.taken()[3]["cause"], json!(format!("undo of {run}")));
    desk.run(&["sync"]).exits(3);
    desk.run(&["sync"]).exits(3);
    let suspended = receiver.taken().split_off(4);
    assert_eq!(suspended.iter().map(|body| &body["clusters"]["out"]).collect::<Vec<_>>(), ["suspended"]);
}

#[test]
fn what_a_round_by_hand_cannot_deliver_the_next_one_does() {
    let (desk, hook) = (desk("edge", &[("out", folder())]), free_port());
    tell(&desk, &format!("{{webhooks: {{ops: {{url: \"http://127.0.0.1:{hook}/\", timeout: 2s}}}}}}"));
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["sync"]).exits(0).complains("a notification to webhook \"ops\" is not delivered yet: ");
    let receiver = Receiver::start_at(hook);
    let run = desk.run(&["sync"]).exits(0);
    assert_eq!((run.err.as_str(), receiver.taken().len()), ("", 1));
    receiver.always(Answer::Silence);
    desk.write("specs/inner.yaml", &gateway("shop", "inner", 8080));
    desk.run(&["sync"]).exits(0).complains("is not delivered yet: no answer within 2s");

    // What waits for a webhook that nobody knows any more is not sent to another one.
    let config = desk.read("gatewright.yaml");
    desk.write("gatewright.yaml", &config.replace("ops:", "new:"));
    receiver.always(Answer::Status(204));
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.taken().len(), 1);
}

#[test]
fn news_that_cannot_be_left_for_a_webhook_is_told_by_the_next_round() {
    let (desk, receiver) = (desk("edge", &[("out", folder())]), Receiver::start());
    let (ops, other) = (receiver.url("/ops"), receiver.url("/other"));
    tell(&desk, &format!("{{webhooks: {{ops: {{url: \"{ops}\"}}, other: {{url: \"{other}\"}}}}}}"));
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.taken().len(), 2);

    // A folder cannot be made where a file is.
    let queue = desk.path("state/webhooks/ops");
    fs::remove_dir_all(&queue).expect("it is there");
    fs::write(&queue, "in its place").expect("it can be written");
    desk.write("specs/wrong.yaml", "kind: [\n");
    desk.run(&["sync"]).exits(1).complains("cannot leave a notification");
    let told = |from: usize| receiver.received().split_off(from).iter().map(|it| it.path.clone()).collect::<Vec<_>>();
    assert_eq!(told(2), ["/other"], "who can be told is told");
    fs::remove_file(&queue).expect("it is there");
    desk.run(&["sync"]).exits(1);
    let mut paths = told(3);
    paths.sort();
    assert_eq!(paths, ["/ops", "/other"], "to the other it comes twice");
    for late in receiver.taken().split_off(3) {
        assert_eq!((&late["new"]["count"], &late["new"]["findings"][0]["kind"]), (&json!(1), &json!("problem")));
    }
    desk.run(&["sync"]).exits(1);
    assert_eq!(receiver.taken().len(), 5, "it is told once");
}

#[test]
fn a_receiver_has_to_prove_who_it_is() {
    let (desk, root) = (desk("edge", &[("out", folder())]), Folder::new());
    let server = HttpsServer::start(root.path(), "token", "");
    let hook =
        |more: &str| format!("{{webhooks: {{ops: {{url: \"{}/status-204/\", timeout: 2s{more}}}}}}}", server.url);
    tell(&desk, &hook(""));
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["sync"]).exits(0).complains("certificate");
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    let authority = format!(", caFile: {}", server.authority.display());
    desk.replace("gatewright.yaml", &hook(""), &hook(&authority));
    let run = desk.run(&["sync"]).exits(0);
    assert_eq!((run.err.as_str(), server.requests()), ("", vec!["POST /status-204/ 204 anonymous".to_owned()]));
}

#[test]
fn the_newest_report_has_a_name_that_stays() {
    let desk = desk("edge", &[("out", folder()), ("other", "{directory: {path: other}}".to_owned())]);
    tell(&desk, "{latest: web, formats: [html, junit]}");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["plan"]).exits(0);
    assert!(!desk.path("web").exists(), "a plan writes nothing");
    desk.run(&["sync"]).exits(0);
    let files = || {
        let entries = fs::read_dir(desk.path("web")).expect("it is there").map(|entry| entry.expect("it is there"));
        let mut files: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        files
    };
    let names =
        ["out", "other"].iter().flat_map(|name| ["html", "json", "xml"].map(|form| format!("edge.{name}.{form}")));
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(files(), names);
    let mode = fs::metadata(desk.path("web/edge.out.html")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "a web server can read it");
    let report = || serde_json::from_str::<Value>(&desk.read("web/edge.out.json")).expect("it is JSON");
    assert_eq!(report()["clusters"].as_object().expect("it has clusters").len(), 1);

    // The round that finds nothing to do says so once.
    desk.run(&["sync"]).exits(0);
    let quiet = report();
    desk.run(&["sync"]).exits(0);
    assert_eq!(report(), quiet, "what says nothing new replaces nothing");
    fs::remove_file(desk.path("web/edge.out.html")).expect("it is there");
    desk.run(&["sync"]).exits(0);
    assert_eq!((files(), report()), (names, quiet), "what is missing is written again");
    fs::remove_dir_all(desk.path("web")).expect("it is there");
    desk.write("web", "a file");
    desk.write("specs/inner.yaml", &gateway("shop", "inner", 8080));
    desk.run(&["sync"]).exits(0).complains("cannot write the newest report");
    desk.run(&["report", "show", "edge"]).exits(0).says("Gateway shop/inner");
}

/// Both say by their exit code what there is to be known.
fn exit_with(desk: &Desk, code: i32) {
    desk.run(&["plan", "--detailed-exitcode"]).exits(code);
    desk.run(&["sync", "--detailed-exitcode"]).exits(code);
    // The plan comes to the same beside what the round has left behind.
    desk.run(&["plan", "--detailed-exitcode"]).exits(code);
    desk.run(&["sync"]).exits(if code == 2 { 0 } else { code });
}

#[test]
fn a_report_and_a_plan_exit_alike() {
    // Whatever bears the mark of an implementation counts, so that there may be nothing of other tests.
    let (server, namespace) = (ApiServer::start(), "shop");
    let desk = desk("edge", &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/edge.yaml", &gateway(namespace, "edge", 8080));
    desk.run(&["sync", "--detailed-exitcode"]).exits(0);
    desk.replace("gatewright.yaml", "    createNamespaces", "    mode: report\n    createNamespaces");
    exit_with(&desk, 0);
    // Missing, different and extra count alike.
    desk.write("specs/inner.yaml", &gateway(namespace, "inner", 8080));
    exit_with(&desk, 2);
    fs::remove_file(desk.path("specs/inner.yaml")).expect("it is there");
    desk.write("specs/edge.yaml", &gateway(namespace, "edge", 9090));
    exit_with(&desk, 2);
    desk.write("specs/edge.yaml", &gateway(namespace, "other", 8080));
    exit_with(&desk, 2);
    desk.write("specs/edge.yaml", &gateway(namespace, "edge", 8080));
    exit_with(&desk, 0);
    desk.write("specs/wrong.yaml", "kind: [\n");
    exit_with(&desk, 1);
    fs::remove_file(desk.path("specs/wrong.yaml")).expect("it is there");
    desk.run(&["suspend", "edge", "--reason", "freeze"]).exits(0);
    desk.run(&["plan", "--detailed-exitcode"]).exits(3);
    desk.run(&["sync", "--detailed-exitcode"]).exits(3);
    desk.run(&["resume", "edge"]).exits(0);
    desk.run(&["sync", "--detailed-exitcod"]).exits(64);
}

#[test]
fn a_cluster_that_is_lost_counts_more_than_a_difference() {
    let mut fleet = ApiServer::fleet(&["eu", "us"]);
    let clusters = ["eu", "us"].into_iter().zip(&fleet);
    let clusters: Vec<(&str, String)> =
        clusters.map(|(name, server)| (name, kubeconfig(&server.kubeconfig("admin"), ""))).collect();
    let desk = desk("edge", &clusters);
    desk.replace("gatewright.yaml", "    createNamespaces", "    mode: report\n    createNamespaces");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    exit_with(&desk, 2);
    fleet[1].stop();
    exit_with(&desk, 4);
}
