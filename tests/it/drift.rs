//! `mode: report` on clusters that somebody else looks after: what differs is told, with or without the right to ask
//! for dry runs, and nothing is written.

mod agreement;
mod schemas;
mod theirs;

use serde_json::Value;

use crate::cluster::audit::{Audited, Request};
use crate::program::Run;
use theirs::{Theirs, many};

/// The content of a report: action, object, and the paths that differ with the reason.
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

/// The number of lines of a report that are estimated, and the number of differences.
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

/// The changes that are made by hand below, as a report has to tell them.
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
    assert!(requests.iter().any(Request::is_dry_run), "nothing was dry-run");
    let writes: Vec<&Request> = requests.iter().filter(|it| it.is_write() && !it.is_dry_run()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(theirs.records().is_empty(), "no namespace and no inventory of ours");
}

/// The number of dry runs that a report takes.
fn dry_runs(audited: &Audited, before: usize) -> usize {
    audited.requests().split_off(before).iter().filter(|it| it.is_dry_run()).count()
}

#[test]
fn a_report_says_whether_the_source_or_the_cluster_has_moved_and_looks_again_only_at_that() {
    let audited = Audited::start();
    let theirs = Theirs::new(&audited.server, &many(3));
    let desk = theirs.desk("admin");
    desk.run(&["sync"]).exits(0).says("report: no differences, 12 objects up to date");
    let counted = |arguments: &[&str]| {
        let before = audited.requests().len();
        let run = desk.run(arguments).exits(0);
        (run, dry_runs(&audited, before))
    };
    let (run, dry) = counted(&["sync"]);
    run.says("report: no differences, 12 objects up to date");
    assert_eq!(dry, 0, "nothing has moved");
    let (_, dry) = counted(&["sync", "--full"]);
    assert!(dry >= 12, "{dry} dry runs");

    // The source asks for another port of one, and for a Gateway that nobody has made.
    let specs = desk.read("specs/gateways.yaml");
    desk.write("specs/gateways.yaml", &specs.replacen("port: 8080", "port: 9090", 1));
    desk.write("specs/new.yaml", &crate::errors::gateway("shop", "new", 8080));
    theirs.kubectl(&["label", "service/gw-2", "gateway.networking.k8s.io/gateway-class-name=other", "--overwrite"]);
    let (run, dry) = counted(&["sync", "--format", "json"]);
    let found = told(&report(&run));
    let of = |name: &str| found.iter().filter(|(_, id, _)| id.ends_with(name)).collect::<Vec<_>>();
    assert!(
        of("gw-0").iter().all(|(action, _, why)| action == "different" && why.iter().all(|it| it.ends_with("pending"))),
        "{found:?}"
    );
    assert!(!of("gw-0").is_empty() && of("gw-1").is_empty(), "{found:?}");
    assert_eq!(of("gw-2")[0].2, ["metadata.labels[\"gateway.networking.k8s.io/gateway-class-name\"] drift"]);
    assert_eq!((of("new").len(), of("new")[0].0.as_str(), of("new")[0].2[0].as_str()), (4, "missing", "pending"));
    assert!((1..12).contains(&dry), "{dry} dry runs");
    let (report, mut places) = (report(&run), Vec::new());
    let steps = report["clusters"]["only"]["steps"].as_array().expect("a report has steps").iter();
    for step in steps.filter(|step| step["id"]["name"] == "gw-0") {
        let differences = step["differences"].as_array().expect("a step has differences").iter();
        places.extend(differences.map(|it| (it["after"].is_null(), it["place"]["line"].as_u64())));
    }
    assert!(!places.is_empty() && places.iter().all(|(is_to_go, line)| *is_to_go || *line == Some(8)), "{places:?}");

    // What differs still differs for the reason for which it began to, and what is put right is gone.
    theirs.kubectl(&["label", "service/gw-2", "gateway.networking.k8s.io/gateway-class-name=kgateway", "--overwrite"]);
    let (run, _) = counted(&["sync"]);
    run.says("  0 new, ").says("1 resolved since ").says("(pending");

    // What a setting leaves alone is told as that.
    theirs.kubectl(&["patch", "configmap/gw-1", "--type", "merge", "-p", r#"{"data": {"note": "by hand"}}"#]);
    desk.run(&["plan"]).exits(0).says("    ~ different ConfigMap shop/gw-1");
    desk.replace("gatewright.yaml", "mode: report", "mode: report\n    ignore: [{kind: ConfigMap, path: data.note}]");
    let run = desk.run(&["plan"]).exits(0).says("data.note: ignored, kubectl-patch has set it");
    assert!(!run.out.contains("different ConfigMap"), "{}", run.out);
}

#[test]
fn a_removed_gateway_is_extra_unless_its_file_cannot_be_read_or_another_sync_wants_it() {
    let audited = Audited::start();
    let theirs = Theirs::new(&audited.server, &many(2));
    let desk = theirs.desk("admin");
    desk.run(&["sync"]).exits(0);
    desk.write("specs/gateways.yaml", &many(1));
    let run = desk.run(&["plan"]).exits(0).says("report: 4 objects extra, 4 unchanged");
    run.says("    + extra Deployment shop/gw-1  (pending)").says("  Gateway shop/gw-1\n");
    desk.write("specs/broken.yaml", "a: [");
    desk.run(&["plan"])
        .exits(1)
        .says("broken.yaml cannot be read")
        .says("report: no differences, 4 objects up to date");
    std::fs::remove_file(desk.path("specs/broken.yaml")).expect("it is there");

    desk.write("others/gateway.yaml", &crate::errors::gateway("shop", "gw-1", 8080));
    let config = desk.read("gatewright.yaml");
    let more = "  others: {source: others, clusters: {names: [only]}, mode: report}\n";
    let config = config.replace("sources: {", "sources: {others: {directory: {path: others}}, ");
    desk.write("gatewright.yaml", &format!("{config}{more}"));
    let run = desk.run(&["plan"]).exits(0);
    assert_eq!(run.out.matches("report: no differences, 4 objects up to date").count(), 2, "{}", run.out);
    assert!(theirs.records().is_empty());
}

#[test]
fn who_may_read_one_namespace_is_told_what_could_not_be_looked_at() {
    let audited = Audited::start();
    let theirs = Theirs::new(&audited.server, &many(2));
    let desk = theirs.desk("nobody");
    let role = ["create", "rolebinding", "reader", "--clusterrole=system:aggregate-to-view", "--user=nobody"];
    theirs.kubectl(&role);
    theirs.kubectl(&["set", "image", "deployment/gw-1", "kgateway-proxy=ghcr.io/somebody/else:1"]);
    theirs.kubectl(&["delete", "service/gw-0"]);
    let run = desk.run(&["plan"]).exits(0);
    run.says("report: 1 object missing, 1 object different, 6 unchanged")
        .says("skipping orphan detection for ConfigMap, Deployment, Service, ServiceAccount: cannot list ")
        .says("(never matched; estimated; asked for at kgateway/defaults.yaml:");

    // Without any rights nothing is said to be missing.
    theirs.kubectl(&["delete", "rolebinding", "reader"]);
    let refused = (0..200).map(|_| desk.run(&["plan"])).find(|run| run.code != 0).expect("the rights go away");
    assert!(!refused.out.contains("- missing"), "{}", refused.out);
    refused.says("is forbidden");
    // The authorizer hears of each right a moment later.
    let refused = (0..200).map(|_| desk.run(&["plan"])).find(|run| run.out.contains("8 objects refused"));
    refused.expect("the rights go away").says("report: nothing could be compared, 8 objects refused");
}
