//! The audit log: who has decided what, what came of it, and that nobody has changed what stands there.

use std::fs;

use serde_json::{Value, json};

use crate::commands::obeys;
use crate::errors::{desk, folder, gateway};
use crate::program::Desk;

fn entries(desk: &Desk, arguments: &[&str]) -> Vec<Value> {
    let run = desk.run(&[&["audit", "-o", "json"], arguments].concat()).exits(0);
    let document: Value = serde_json::from_str(&run.out).expect("it is JSON");
    obeys("audit-v1alpha1", &document);
    document["entries"].as_array().expect("it is a list").clone()
}

#[test]
fn what_people_decide_and_rounds_change_is_in_the_audit_log() {
    let desk = desk("edge", &[("out", folder())]);
    desk.run(&["audit"]).exits(0).complains("nothing was decided or changed yet");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["plan"]).exits(0);
    assert_eq!(entries(&desk, &[]), [Value::Null; 0], "a plan decides nothing");
    desk.run(&["sync"]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(entries(&desk, &[]).len(), 1, "a round that changes nothing is none");

    fs::remove_file(desk.path("specs/edge.yaml")).expect("it is there");
    let held = desk.run(&["sync"]).exits(3);
    let token =
        held.out.split("gatewright approve ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it has one");
    desk.run(&["approve", token, "--reason", "edge moves"]).exits(0);
    desk.run(&["sync"]).exits(0);
    desk.run(&["suspend", "edge", "--reason", "friday"]).exits(0);
    desk.run(&["resume", "edge"]).exits(0);
    desk.run(&["resume", "edge"]).exits(0);
    // A suspension that cannot be read suspends, too: to end it is a decision like any other.
    desk.write("state/suspended/edge.json", "{");
    desk.run(&["resume", "edge"]).exits(0);
    let all = entries(&desk, &["edge"]);
    let events: Vec<&str> = all.iter().rev().filter_map(|entry| entry["event"].as_str()).collect();
    assert_eq!(events, ["round", "approved", "round", "suspended", "resumed", "resumed"]);
    let [approved, pruned] = [&all[4], &all[3]];
    assert_eq!(
        (&approved["reason"], &approved["token"], &approved["by"]["via"]),
        (&json!("edge moves"), &json!(token), &json!("command"))
    );
    let of_cluster = &pruned["clusters"]["out"];
    assert_eq!((&of_cluster["changes"]["prune"], &of_cluster["approved"]), (&json!(4), &json!([token])));
    let text =
        desk.run(&["audit", "-n", "3"]).exits(0).says("resumed sync edge\n").says("suspended sync edge: friday\n");
    assert_eq!(text.out.lines().count(), 3);
    assert_eq!(entries(&desk, &["other"]), [Value::Null; 0]);
}

#[test]
fn a_log_that_somebody_has_changed_is_told() {
    let desk = desk("edge", &[("out", folder())]);
    for _ in 0..2 {
        desk.run(&["suspend", "edge", "--reason", "friday"]).exits(0);
        desk.run(&["resume", "edge"]).exits(0);
    }
    let verified = desk.run(&["audit", "verify"]).exits(0).says("4 entries as written");
    let digest = verified.out.lines().last().expect("it is told").to_owned();
    let was = desk.read("state/audit.jsonl");
    desk.write("state/audit.jsonl", &was.replacen("friday", "monday", 1));
    desk.run(&["audit", "verify"]).exits(1).complains("line 2 does not follow from the line before");
    // What is cut off at the end follows from itself; who has kept a digest notices.
    let (rest, _) = was.trim_end().rsplit_once('\n').expect("it has lines");
    desk.write("state/audit.jsonl", &format!("{rest}\n"));
    desk.run(&["audit", "verify"]).exits(0).says("3 entries as written");
    desk.run(&["audit", "verify", "--digest", &digest]).exits(1).complains("no line has the digest");
    desk.write("state/audit.jsonl", &was);
    desk.run(&["audit", "verify", "--digest", &digest]).exits(0);
}

/// A decision that cannot be written down is refused.
#[test]
fn nothing_is_approved_where_the_audit_log_cannot_be_written() {
    let desk = desk("edge", &[("out", folder())]);
    fs::create_dir_all(desk.path("state/audit.jsonl")).expect("it can be made");
    desk.run(&["suspend", "edge"]).exits(1).complains("audit.jsonl");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.run(&["sync"]).exits(0).complains("cannot write the audit log");
}

/// The reports of the history: run, cause and state on the cluster.
fn history(desk: &Desk) -> Vec<(String, Option<String>, String)> {
    let files = fs::read_dir(desk.path("state/reports")).into_iter().flatten().flatten();
    let files = files.filter(|file| file.path().extension().is_some_and(|it| it == "json"));
    let read = |file: fs::DirEntry| -> (String, Option<String>, String) {
        let report: Value = serde_json::from_slice(&fs::read(file.path()).expect("it is a file")).expect("it is JSON");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let state = text(&report["clusters"]["out"]["state"]).unwrap_or_default();
        (text(&report["run"]).unwrap_or_default(), text(&report["cause"]), state)
    };
    let mut reports: Vec<_> = files.map(read).collect();
    reports.sort();
    reports
}

#[test]
fn a_round_whose_report_is_not_kept_is_told_of_once_and_by_itself_where_it_can() {
    let desk = desk("edge", &[("out", folder())]);
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    // The history cannot be written, three times.
    desk.run(&["plan"]).exits(0);
    desk.write("state/reports", "");
    for port in ["8080", "8085", "8086"] {
        desk.replace("specs/edge.yaml", "8080", port);
        desk.run(&["sync"]);
        desk.replace("specs/edge.yaml", port, "8080");
    }
    let rounds = entries(&desk, &[]).len();
    assert_eq!(rounds, 3, "each round has told of itself");
    fs::remove_file(desk.path("state/reports")).expect("it is there");
    desk.run(&["sync"]).exits(0);
    let told = history(&desk);
    assert_eq!(told.iter().filter(|(_, cause, _)| cause.as_deref() == Some("interrupted")).count(), 3, "{told:?}");
    assert_eq!(entries(&desk, &[]).len(), rounds + 1, "the log has them already");

    // The history is written, and what is compared with later is not.
    fs::remove_dir_all(desk.path("state/status/edge")).expect("it is there");
    desk.write("state/status/edge", "");
    desk.replace("specs/edge.yaml", "8080", "8087");
    desk.run(&["sync"]);
    let rounds = entries(&desk, &[]).len();
    fs::remove_file(desk.path("state/status/edge")).expect("it is there");
    desk.run(&["sync"]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(entries(&desk, &[]).len(), rounds, "nothing was changed since");
    let after = history(&desk);
    assert_eq!(after.iter().filter(|(_, cause, _)| cause.is_some()).count(), 3, "its own report stays: {after:?}");
}
