//! Reports from one morning to the next, with the real program: what is new, still there and resolved, and since when.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::cluster::process::free_port;
use crate::cluster::{ApiServer, unique};
use crate::commands::{obeys, obeys_the_schema};
use crate::daemon::Daemon;
use crate::errors::{desk, folder, gateway, kubeconfig};
use crate::program::{Desk, Run};
use crate::views;

fn json_of(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).expect("the program prints JSON")).collect()
}

/// Changes nothing from now on.
fn only_report(desk: &Desk) {
    desk.replace("gatewright.yaml", "    createNamespaces", "    mode: report\n    createNamespaces");
}

/// One round of the only sync, as its report.
fn round(desk: &Desk, code: i32) -> Value {
    let report = json_of(&desk.run(&["sync", "--format", "json"]).exits(code)).remove(0);
    obeys_the_schema(&report);
    report
}

/// The numbers of findings that are new, still there, resolved and not looked at on a cluster.
fn numbers(report: &Value, cluster: &str) -> [usize; 4] {
    let trend = &report["clusters"][cluster]["trend"];
    let number = |field: &str| usize::try_from(trend[field].as_u64().unwrap_or(99)).unwrap_or(99);
    let length = |field: &str| trend[field].as_array().map_or(0, Vec::len);
    [number("new"), number("still"), length("resolved"), length("unseen")]
}

/// The time since which a step is known.
fn since<'a>(report: &'a Value, cluster: &str, object: &str) -> &'a Value {
    let steps = report["clusters"][cluster]["steps"].as_array().expect("it has steps");
    let is_it = |step: &&Value| format!("{}/{}", step["id"]["kind"], step["id"]["name"]).replace('"', "") == object;
    &steps.iter().find(is_it).expect("it is in the report")["since"]
}

/// The files of the history, the newest first.
fn kept(desk: &Desk) -> Vec<PathBuf> {
    let entries = fs::read_dir(desk.path("state/reports")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

fn name(path: &Path) -> String {
    path.file_stem().expect("it has a name").to_string_lossy().into_owned()
}

fn set_port(server: &ApiServer, namespace: &str, target: u16) {
    let patch = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": target}]).to_string();
    server.kubectl_ok(&["patch", "service", "a", "-n", namespace, "--type=json", "-p", &patch]);
}

/// Every form of a plan says since when something differs.
fn shows_since(desk: &Desk, namespace: &str, came: &Value) {
    let day = came["started"].as_str().and_then(|time| time.split('T').next()).expect("it is a time");
    let shown = desk.run(&["plan"]).exits(0).says("  0 new, 1 still there, 0 resolved since ");
    shown.says(&format!("    ~ different Service {namespace}/a  since {day} "));
    let comment = desk.run(&["plan", "--format", "markdown"]).exits(0);
    comment.says("\n0 new, 1 still there, 0 resolved since ").says("| 1 still there |\n");
    desk.run(&["plan", "--format", "junit"]).exits(0).says("differ (since ").says("name=\"still\" value=\"1\"");
    desk.run(&["plan", "--format", "html"]).exits(0).says("<small>since ").says("<td>1 still there</td>");
}

#[test]
fn what_differs_keeps_its_time_until_it_is_seen_to_be_gone() {
    let mut fleet = ApiServer::fleet(&["eu", "us"]);
    let namespace = unique("trend");
    let clusters = ["eu", "us"].into_iter().zip(&fleet);
    let clusters: Vec<(&str, String)> =
        clusters.map(|(name, server)| (name, kubeconfig(&server.kubeconfig("admin"), ""))).collect();
    let desk = desk("gateways", &clusters);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    desk.run(&["sync"]).exits(0);
    only_report(&desk);
    assert_eq!(numbers(&round(&desk, 0), "us"), [0, 0, 0, 0]);
    let before = kept(&desk).len();

    // It comes, and stays; that it is still there is no news.
    set_port(&fleet[1], &namespace, 1234);
    let plan = json_of(&desk.run(&["plan", "--format", "json"]).exits(0)).remove(0);
    assert_eq!((numbers(&plan, "us"), kept(&desk).len()), ([1, 0, 0, 0], before), "a plan is compared, and not kept");
    let came = round(&desk, 0);
    assert_eq!((numbers(&came, "us"), numbers(&came, "eu")), ([1, 0, 0, 0], [0, 0, 0, 0]));
    assert_eq!(since(&came, "us", "Service/a"), &came["started"]);
    let stays = round(&desk, 0);
    assert_eq!((numbers(&stays, "us"), since(&stays, "us", "Service/a")), ([0, 1, 0, 0], &came["started"]));
    assert_eq!(kept(&desk).len(), before + 1);
    shows_since(&desk, &namespace, &came);

    // What nobody can look at is not gone.
    fleet[1].stop();
    let lost = round(&desk, 4);
    assert_eq!(numbers(&lost, "us"), [1, 0, 0, 1]);
    assert_eq!(lost["clusters"]["us"]["trend"]["unseen"][0]["since"], came["started"]);
    assert_eq!(lost["clusters"]["us"]["since"], lost["started"]);
    let first = desk.run(&["report", "show"]).exits(0);
    assert!(first.out.starts_with("unreachable gateways on us: "), "{}", first.out);
    first
        .says("Not looked at:\n")
        .says(&format!("different Service {namespace}/a: spec.ports["))
        .says("; on cluster us (since ");
    fleet[1].restart();
    let back = round(&desk, 0);
    assert_eq!((numbers(&back, "us"), since(&back, "us", "Service/a")), ([0, 1, 1, 0], &came["started"]));
    assert_eq!(back["clusters"]["us"]["trend"]["resolved"][0]["kind"], "cluster");

    // It goes, which is said once.
    set_port(&fleet[1], &namespace, 8080);
    let gone = round(&desk, 0);
    assert_eq!((numbers(&gone, "us"), since(&gone, "us", "Service/a")), ([0, 0, 1, 0], &Value::Null));
    assert_eq!(gone["clusters"]["us"]["trend"]["resolved"][0]["since"], came["started"]);
    let number = kept(&desk).len();
    assert_eq!((numbers(&round(&desk, 0), "us"), kept(&desk).len()), ([0, 0, 0, 0], number));
    let names: Vec<String> = kept(&desk).iter().map(|path| name(path)).collect();
    let compared = desk.run(&["report", "diff", &names[2], &names[0], "--detailed-exitcode"]).exits(0);
    compared
        .says("sync gateways, cluster us\n")
        .says("  resolved: unreachable: ")
        .says(&format!("  resolved: different Service {namespace}/a: spec.ports["));
}

/// Two directories and a sync that only reports; another sync has never had a round.
fn two_folders() -> Desk {
    let desk = desk("gateways", &[("eu", folder()), ("us", "{directory: {path: us}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync"]).exits(0);
    only_report(&desk);
    let config = desk.read("gatewright.yaml");
    desk.write("gatewright.yaml", &format!("{config}  later: {{source: specs, clusters: {{names: [us]}}}}\n"));
    desk
}

fn sync(desk: &Desk, code: i32) {
    desk.run(&["sync", "gateways"]).exits(code);
}

#[test]
fn the_last_known_state_says_first_what_is_missing_from_it() {
    let desk = two_folders();
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    sync(&desk, 0);
    desk.write("specs/broken.yaml", "apiVersion: v1\nkind: {{\n");
    for cluster in ["eu", "us"] {
        desk.run(&["sync", "gateways", "--cluster", cluster]).exits(1);
    }
    desk.run(&["suspend", "gateways", "--reason", "freeze"]).exits(0);
    let shown = desk.run(&["report", "show"]).exits(0);
    let (first, _) = shown.out.split_once("\nsync gateways at ").expect("the first sync follows");
    assert!(first.starts_with("suspended sync gateways: suspended"), "{first}");
    assert!(first.contains("\nunknown later on us: nothing is known, because there was no round yet\n"), "{first}");
    assert_eq!(
        first.matches("specs/broken.yaml").count() + first.matches("problem sync gateways: broken.yaml").count(),
        1
    );
    shown.says("\n1 error\n").says("on all 2 clusters (eu, us)\n").says("\nsync later at no revision\n");

    for (format, says) in [("markdown", "| `later` | `us` | unknown | unknown |"), ("html", "<td class=\"unknown\">")] {
        desk.run(&["report", "show", "--format", format]).exits(0).says(says);
    }
    let reports = json_of(&desk.run(&["report", "show", "--format", "json"]).exits(0));
    assert_eq!(reports.len(), 2, "both clusters of the one sync, and the other sync");
    reports.iter().for_each(obeys_the_schema);
    assert_eq!(reports[0]["problems"].as_array().map(Vec::len), Some(1));
    assert_eq!(reports[0]["suspended"]["reason"], "freeze");
    let xml = desk.run(&["report", "show", "gateways", "--format", "junit"]).exits(0).out;
    let document = roxmltree::Document::parse(&xml).expect("it is XML");
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("testsuite")).count(), 2);

    // A report that is much older than the schedule says, and one from before there was a trend.
    let (path, year) = ("state/status/gateways/eu.json", |text: &str| text.replace("\":\"2026-", "\":\"2020-"));
    let mut last: Value = serde_json::from_str(&year(&desk.read(path))).expect("the state is JSON");
    let old = &mut last["report"]["clusters"]["eu"];
    old.as_object_mut().expect("it is a cluster").remove("trend");
    desk.write(path, &last.to_string());
    let shown = desk.run(&["report", "show", "gateways"]).exits(0);
    let year = last["report"]["finished"].as_str().and_then(|time| time.split('-').next()).expect("it is a time");
    shown.says("overdue gateways on eu: its last report is of ").says(&format!("is of {year}-"));

    // A sync that was resumed and had no round yet, and a source that cannot be read by now.
    desk.run(&["resume", "gateways"]).exits(0);
    let path = "state/status/gateways/us.json";
    desk.write(path, &desk.read(path).replace("\"state\":\"planned\"", "\"state\":\"suspended\""));
    let trouble = json!({"specs": {"since": "2026-11-20T06:00:00Z", "message": "no such host"}});
    desk.write("state/status/.sources.json", &trouble.to_string());
    let shown =
        desk.run(&["report", "show"]).exits(0).says("overdue gateways on us: there was no round since it was resumed");
    shown.says(
        "stale source specs: it could not be read, and this is its last good revision: since 2026-11-20 06:00:00 UTC",
    );
}

#[test]
fn reports_that_are_kept_are_listed_shown_and_compared() {
    let desk = two_folders();
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    sync(&desk, 0);
    desk.write("specs/b.yaml", &gateway("shop", "b", 9090));
    sync(&desk, 0);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    sync(&desk, 0);
    let names: Vec<String> = kept(&desk).iter().map(|path| name(path)).collect();
    assert_eq!(names.len(), 4);
    let list =
        desk.run(&["report", "list"]).exits(0).says("NAME ").says("  SAYS\n").says("8 still there, 8 resolved\n");
    let order: Vec<Option<&str>> = list.out.lines().skip(1).map(|line| line.split(' ').next()).collect();
    assert_eq!(order, names.iter().map(|name| Some(name.as_str())).collect::<Vec<_>>());
    let listed = json_of(&desk.run(&["report", "list", "gateways", "--format", "json"]).exits(0)).remove(0);
    obeys("report-list-v1alpha1", &listed);
    assert_eq!((&listed["reports"][0]["resolved"], &listed["reports"][0]["still"]), (&json!(8), &json!(8)));
    desk.run(&["report", "list", "later"]).exits(0).complains("no reports are kept yet");
    desk.run(&["report", "list", "gatways"]).exits(64).complains("did you mean \"gateways\"?");

    // By name, by a beginning that no other has, and the newest.
    let shown =
        desk.run(&["report", "show", &names[0]]).exits(0).says("Resolved:\n").says("; on clusters eu, us (since ").out;
    assert_eq!(desk.run(&["report", "show", "latest"]).exits(0).out, shown);
    assert_eq!(desk.run(&["report", "show", &names[0][..20]]).exits(0).out, shown);
    desk.run(&["report", "show", &names[0][..4]]).exits(64).complains("more than one report begins with ");
    desk.run(&["report", "show", "latst"]).exits(64).complains("did you mean \"latest\"?");
    let page =
        desk.run(&["report", "show", "latest", "--format", "html"]).exits(0).says("<summary>Resolved: 8</summary>").out;
    assert!(page.ends_with("</html>\n"));
    desk.run(&["report", "show", "-v", &names[3]]).exits(0).says("create Service shop/a");

    // From the first finding to now: b has come, a is gone.
    let compare = |more: &[&str]| desk.run(&[&["report", "diff", names[2].as_str()], more].concat());
    let compared =
        compare(&["--detailed-exitcode"]).exits(2).says("2 clusters compared: 8 new, 0 still there, 8 resolved\n");
    compared.says("sync gateways, cluster eu\n  new: update Service shop/b: ");
    compare(&[]).exits(0);
    let compared = json_of(&compare(&["gateways", "--format", "json"]).exits(0)).remove(0);
    obeys("report-comparison-v1alpha1", &compared);
    assert_eq!(compared["syncs"]["gateways"]["clusters"]["us"]["resolved"].as_array().map(Vec::len), Some(4));
    desk.run(&["report", "diff", &names[0], "--detailed-exitcode"]).exits(0).says("0 new, 8 still there, 0 resolved");
    desk.run(&["report", "diff", "nowhere"]).exits(64).complains("there is no report and no sync \"nowhere\"");
    desk.run(&["report", "diff"]).exits(64);

    // What is too old goes, in every form.
    let (dir, old) = (desk.path("state/reports"), "20200101T000000.000Z-gateways");
    for form in ["json", "txt"] {
        fs::copy(dir.join(format!("{}.{form}", names[0])), dir.join(format!("{old}.{form}")))
            .expect("it can be copied");
    }
    desk.run(&["report", "show", old]).exits(0);
    sync(&desk, 0);
    desk.run(&["report", "show", old]).exits(64).complains("old reports are deleted (reports.keep)");
    let left = fs::read_dir(&dir).expect("the folder is there").flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("2020")));
    desk.run(&["report", "show", &names[0]]).exits(0);
}

#[test]
fn after_an_error_a_plan_begins_with_what_is_to_be_done() {
    let desk = desk("gateways", &[("eu", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: false");
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.run(&["sync"]).exits(1).says("namespace \"shop\" does not exist");
    desk.replace("gatewright.yaml", "createNamespaces: false", "createNamespaces: true");
    let resolved = |out: &str| out.lines().filter(|line| line.starts_with("  refused ")).count();
    let plan =
        desk.run(&["plan"]).exits(0).says("\nResolved:\n").says("\n  … 1 more\n").says("+ create Service shop/a");
    assert_eq!(resolved(&plan.out), 3, "{}", plan.out);
    assert_eq!(resolved(&desk.run(&["plan", "-v"]).exits(0).out), 4);
}

#[test]
fn whoever_names_things_in_a_report_can_do_nothing_with_it() {
    let desk = two_folders();
    let mut runner = TestRunner::deterministic();
    let texts =
        proptest::collection::vec(views::hostile(), 12).new_tree(&mut runner).expect("there are texts").current();
    let name = "20261120T060000.000Z-gateways";
    let report = serde_json::to_string(&views::report(&texts)).expect("a report is plain data");
    desk.write(&format!("state/reports/{name}.json"), &report);
    let run = |arguments: &[&str]| {
        let run = desk.run(&[&["report"], arguments].concat());
        views::assert_sanitized(&run.out);
        views::assert_sanitized(&run.err);
        run.exits(0)
    };
    run(&["list"]).says(name);
    run(&["list", "--format", "json"]);
    for format in ["text", "json", "markdown", "junit", "html"] {
        run(&["show", name, "-v", "--format", format]);
        run(&["diff", name, "--format", if format == "json" { "json" } else { "text" }]);
    }
}

#[test]
fn a_sync_that_is_suspended_for_a_while_resolves_nothing() {
    let (desk, port) = (desk("gateways", &[("eu", folder())]), free_port());
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.run(&["sync"]).exits(0);
    only_report(&desk);
    desk.replace("gatewright.yaml", "    mode: report", "    mode: report\n    schedule: {interval: 10s, jitter: 0%}");
    desk.replace("gatewright.yaml", "stateDir:", &format!("http: {{listen: \"127.0.0.1:{port}\"}}\nstateDir:"));
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    let came = round(&desk, 0);
    desk.run(&["suspend", "gateways", "--reason", "freeze"]).exits(0);

    let last = |state: &str| -> Option<Value> {
        let report = serde_json::from_str::<Value>(&desk.read("state/status/gateways/eu.json")).ok()?["report"].take();
        (report["clusters"]["eu"]["state"] == state).then_some(report)
    };
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a report says that it is suspended", |_| last("suspended").is_some());
    let rests = last("suspended").expect("it was there");
    obeys_the_schema(&rests);
    assert_eq!(numbers(&rests, "eu"), [0, 0, 0, 4]);
    let shown =
        desk.run(&["report", "show", "gateways"]).exits(0).says("0 new, 0 still there, 4 not looked at, 0 resolved");
    assert!(shown.out.starts_with("suspended sync gateways: suspended"), "{}", shown.out);

    desk.run(&["resume", "gateways"]).exits(0);
    daemon.until("it has rounds again", |_| last("planned").is_some());
    let goes_on = last("planned").expect("it was there");
    assert_eq!((numbers(&goes_on, "eu"), since(&goes_on, "eu", "Service/a")), ([0, 4, 0, 0], &came["started"]));
}
