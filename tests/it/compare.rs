//! `mode: report` on clusters that somebody else looks after: what differs is told, with or without the right to ask
//! for dry runs, and nothing is written.

mod agreement;
mod theirs;

use serde_json::Value;

use crate::cluster::audit::{Audited, Request};
use crate::program::Run;
use theirs::{Theirs, many};

/// What a report says of objects: action, object, and the paths that differ with the reason.
fn told(report: &Value) -> Vec<(String, String, Vec<String>)> {
    let steps = report["clusters"]["only"]["steps"].as_array().expect("a report has steps");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |step: &Value| {
        let id = format!("{} {}", text(&step["id"]["kind"]), text(&step["id"]["name"]));
        let differences = step["differences"].as_array().expect("a step has differences").iter();
        let mut why: Vec<String> =
            differences.map(|it| format!("{} {}", text(&it["path"]), text(&it["class"]))).collect();
        why.extend(step["class"].as_str().map(str::to_owned));
        (text(&step["action"]), id, why)
    };
    let mut told: Vec<_> = steps.iter().map(of).filter(|(action, ..)| action != "keep").collect();
    told.sort();
    told
}

fn report(run: &Run) -> Value {
    serde_json::from_str(run.out.lines().next().expect("there is a report")).expect("it is JSON")
}

/// How many lines of a report are estimated, and how many differences there are.
fn estimated(report: &Value) -> (usize, usize) {
    let steps = report["clusters"]["only"]["steps"].as_array().expect("a report has steps");
    let all: Vec<&Value> = steps.iter().flat_map(|step| step["differences"].as_array().expect("a list")).collect();
    (all.iter().filter(|difference| difference["estimated"] == true).count(), all.len())
}

fn expected(lines: &[(&str, &str, &[&str])]) -> Vec<(String, String, Vec<String>)> {
    let line = |(action, id, why): &(&str, &str, &[&str])| {
        ((*action).to_owned(), (*id).to_owned(), why.iter().map(ToString::to_string).collect())
    };
    lines.iter().map(line).collect()
}

/// What was changed by hand below, as a report has to tell it.
const FOUND: [(&str, &str, &[&str]); 10] = [
    ("different", "ConfigMap gw-30", &["data.note drift"]),
    ("different", "Deployment gw-10", &["spec.template.spec.containers[kgateway-proxy].env[DEBUG] drift"]),
    ("different", "Deployment gw-11", &["spec.template.spec.containers[kgateway-proxy].image drift"]),
    ("different", "Service gw-20", &["spec.ports[listener-8080].targetPort drift"]),
    ("different", "ServiceAccount gw-40", &["metadata.labels[\"app.kubernetes.io/name\"] drift"]),
    ("extra", "Service gone", &["drift"]),
    ("extra", "ServiceAccount gone", &["drift"]),
    ("missing", "ConfigMap gw-52", &["drift"]),
    ("missing", "Deployment gw-50", &["drift"]),
    ("missing", "Service gw-51", &["drift"]),
];

fn break_some(theirs: &Theirs) {
    let patch = |what: &str, patch: &str| drop(theirs.kubectl(&["patch", what, "--type", "merge", "-p", patch]));
    theirs.kubectl(&["set", "env", "deployment/gw-10", "DEBUG=1"]);
    theirs.kubectl(&["set", "image", "deployment/gw-11", "kgateway-proxy=ghcr.io/somebody/else:1"]);
    theirs.kubectl(&[
        "patch",
        "service/gw-20",
        "--type",
        "json",
        "-p",
        r#"[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1234}]"#,
    ]);
    patch("configmap/gw-30", r#"{"data": {"note": "by hand"}}"#);
    theirs.kubectl(&["label", "serviceaccount/gw-40", "app.kubernetes.io/name=other", "--overwrite"]);
    theirs.kubectl(&["delete", "deployment/gw-50", "service/gw-51", "configmap/gw-52"]);
    theirs.make("gone", &["ServiceAccount", "Service"]);
}

#[test]
fn who_may_only_read_is_told_exactly_what_differs() {
    let audited = Audited::start();
    let theirs = Theirs::new(&audited.server, &many(250));
    let desk = theirs.desk("nobody");
    // The rules of `view` on a server without controllers, which would gather them in it.
    theirs.grant("nobody", "system:aggregate-to-view");
    desk.run(&["sync"]).exits(0).says("report: no differences, 1000 objects up to date");

    break_some(&theirs);
    let run = desk.run(&["sync", "--format", "json"]).exits(0);
    let found = report(&run);
    assert_eq!(told(&found), expected(&FOUND));
    assert_eq!(estimated(&found), (5, 5));
    let text = desk.run(&["plan"]).exits(0);
    text.says("report: 3 objects missing, 5 objects different, 2 objects extra, 992 unchanged")
        .says(r#"env[DEBUG]: {"name":"DEBUG","value":"1"} -> nothing  (drift; estimated; last written by kubectl-set"#)
        .says("some of what differs is estimated");

    let requests = audited.requests();
    assert!(requests.iter().all(|it| !it.is_write()), "{requests:?}");
    let reviews: Vec<&Request> = requests.iter().filter(|it| it.resource.starts_with("selfsubject")).collect();
    assert!(!reviews.is_empty() && reviews.iter().all(|it| it.code < 300), "{reviews:?}");
    assert!(requests.iter().all(|it| it.code != 403), "something was tried that is not allowed");
    assert!(requests.len() < 200, "{} requests for three reports", requests.len());

    // Who may write is told the same, by the server itself.
    let admin = theirs.desk("admin");
    let before = audited.requests().len();
    admin.run(&["sync"]).exits(0);
    let found = report(&admin.run(&["plan", "--format", "json"]).exits(0));
    let never = expected(&FOUND).into_iter().map(|(action, id, why)| {
        (action, id, why.iter().map(|why| why.replace("drift", "never-matched")).collect::<Vec<String>>())
    });
    assert_eq!(told(&found), never.collect::<Vec<_>>());
    assert_eq!(estimated(&found), (0, 5));
    let requests = audited.requests().split_off(before);
    assert!(requests.iter().any(Request::is_rehearsal), "nothing was rehearsed");
    let writes: Vec<&Request> = requests.iter().filter(|it| it.is_write() && !it.is_rehearsal()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(theirs.records().is_empty(), "no namespace and no inventory of ours");
}
