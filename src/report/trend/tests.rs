//! Histories of rounds: what is new, still there and resolved is what a model says that remembers everything.

use std::collections::BTreeSet;

use gatewright_engine::object::ObjectId;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::report::diff::diff;
use crate::report::merged::{merged, unknown};

const CLUSTER: &str = "eu";

fn at(round: usize) -> Timestamp {
    let hours = SignedDuration::from_hours(i64::try_from(round).expect("few rounds"));
    Timestamp::UNIX_EPOCH.checked_add(hours).expect("it is in this century")
}

fn id(kind: &str, name: u8) -> Value {
    json!(ObjectId::new("", kind, "shop", &name.to_string()))
}

/// A step that finds one object different at these paths; it belongs to the unit `object % 2`.
fn step(object: u8, paths: &[u8]) -> Value {
    let difference = |path: &u8| json!({"path": format!("data.{path}"), "before": 1, "after": 2, "managers": []});
    let differences: Vec<Value> = paths.iter().map(difference).collect();
    json!({"unit": id("Gateway", object % 2), "id": id("Service", object), "action": "update", "differences": differences})
}

fn cluster(state: &str, steps: &[Value]) -> Value {
    json!({"state": state, "steps": steps, "refusals": [], "holds": [], "units": []})
}

/// A report of round number `round`, on one or more clusters.
fn report(round: usize, clusters: &Value) -> Report {
    let report = json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": "gateways", "source": "platform", "revision": "r1",
        "mode": "plan", "started": at(round), "finished": at(round), "problems": [], "unclaimed": [],
        "clusters": clusters,
    });
    serde_json::from_value(report).expect("it is a report")
}

fn with_problem(report: Report, message: &str, clusters: &[&str]) -> Report {
    let problem = json!({
        "scope": "document", "place": {"file": "a.yaml", "line": 3, "column": 1}, "message": message, "clusters": clusters,
    });
    Report { problems: vec![serde_json::from_value(problem).expect("it is a problem")], ..report }
}

/// Compares a report with the one before, and returns what its only cluster has of it.
fn dated(mut report: Report, last: Option<&Report>) -> Report {
    date(&mut report, |_| last.cloned());
    report
}

fn trend(report: &Report) -> &Trend {
    report.clusters[CLUSTER].trend.as_ref().expect("it was compared")
}

fn words(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.what.as_str()).collect()
}

/// The part that a round saw.
#[derive(Clone, Debug)]
enum Sees {
    All,
    /// It was about one of the two units.
    Unit(u8),
    Nothing(&'static str),
}

/// The part that a round saw, and what differs at its time: objects and paths.
type Round = (Sees, BTreeSet<(u8, u8)>);

fn round() -> impl Strategy<Value = Round> {
    let blind = prop::sample::select(vec!["unreachable", "failed", "stopped", "suspended"]);
    let sees = prop_oneof![
        4 => Just(Sees::All),
        1 => (0..2_u8).prop_map(Sees::Unit),
        2 => blind.prop_map(Sees::Nothing),
    ];
    (sees, prop::collection::btree_set((0..4_u8, 0..3_u8), 0..6))
}

/// The report of a round that knows nothing of those before.
fn reported(number: usize, (sees, drift): &Round) -> Report {
    let is_seen = |object: u8| match sees {
        Sees::All => true,
        Sees::Unit(unit) => object % 2 == *unit,
        Sees::Nothing(_) => false,
    };
    let mut steps = Vec::new();
    for object in (0..4).filter(|object| is_seen(*object)) {
        let paths: Vec<u8> = drift.iter().filter(|(of, _)| *of == object).map(|(_, path)| *path).collect();
        if !paths.is_empty() {
            steps.push(step(object, &paths));
        }
    }
    let mut of_cluster = cluster("planned", &steps);
    match sees {
        Sees::All => {}
        Sees::Unit(unit) => {
            let unit = id("Gateway", *unit);
            of_cluster["units"] = json!([{"unit": unit, "state": "current", "addresses": [], "ports": []}]);
        }
        Sees::Nothing(state) => {
            of_cluster["state"] = json!(state);
            if ["unreachable", "failed"].contains(state) {
                of_cluster["error"] = json!({"message": format!("no answer to request {number}")});
            }
        }
    }
    let partial = matches!(sees, Sees::Unit(_));
    Report { partial, ..report(number, &json!({CLUSTER: of_cluster})) }
}

fn finding_of(object: u8, path: u8) -> String {
    format!("update Service shop/{object}: data.{path}")
}

proptest! {
    #[test]
    fn a_finding_keeps_its_time_until_a_round_sees_that_it_is_gone(rounds in prop::collection::vec(round(), 1..9)) {
        let mut model: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut last: Option<Report> = None;
        for (number, round) in rounds.iter().enumerate() {
            let report = dated(reported(number, round), last.as_ref());
            let now: BTreeSet<String> = round.1.iter().map(|(object, path)| finding_of(*object, *path)).collect();
            let is_seen = |what: &String| match &round.0 {
                Sees::All => true,
                Sees::Unit(unit) => (0..3).any(|path| [*unit, unit + 2].map(|object| finding_of(object, path)).contains(what)),
                Sees::Nothing(_) => false,
            };
            let before = std::mem::take(&mut model);
            let resolved: Vec<&String> = before.keys().filter(|what| is_seen(what) && !now.contains(*what)).collect();
            model.extend(before.iter().filter(|(what, _)| !resolved.contains(what)).map(|(what, since)| (what.clone(), *since)));
            for what in now.iter().filter(|what| is_seen(what)) {
                model.entry(what.clone()).or_insert(at(number));
            }

            let steps = |findings: &[Finding]| -> Vec<String> {
                let steps = findings.iter().filter(|finding| finding.kind == Kind::Step);
                steps.map(|finding| finding.what.clone()).collect()
            };
            let all: Vec<Finding> = known(&report, CLUSTER).into_values().collect();
            let found: BTreeMap<String, Timestamp> =
                all.iter().filter(|it| it.kind == Kind::Step).map(|it| (it.what.clone(), it.since)).collect();
            prop_assert_eq!(&found, &model);
            let trend = trend(&report);
            prop_assert_eq!(steps(&trend.resolved), resolved.into_iter().cloned().collect::<Vec<_>>());
            prop_assert_eq!(trend.new + trend.still, finding::on(&report, CLUSTER).len());
            prop_assert_eq!(trend.against, number.checked_sub(1).map(at));

            // What is kept reads back as it was, and the comparison adds nothing but itself.
            let json = serde_json::to_value(&report).expect("a report is plain data");
            let back: Report = serde_json::from_value(json.clone()).expect("it is a report");
            prop_assert_eq!(serde_json::to_value(&back).expect("a report is plain data"), json);
            let plain = |report: &Report| serde_json::to_value(report).expect("a report is plain data");
            prop_assert_eq!(plain(&undated(report.clone())), plain(&reported(number, round)));
            last = Some(report);
        }
    }

    #[test]
    fn a_report_differs_from_itself_in_nothing(round in round(), earlier in round()) {
        let earlier = dated(reported(0, &earlier), None);
        let report = dated(reported(1, &round), Some(&earlier));
        let found = diff(std::slice::from_ref(&report), std::slice::from_ref(&report));
        let change = &found.syncs["gateways"].clusters[CLUSTER];
        prop_assert!(!found.has_new() && change.resolved.is_empty());
        prop_assert_eq!(change.still.len(), finding::on(&report, CLUSTER).len());
    }
}

#[test]
fn a_path_that_differs_later_has_a_time_of_its_own() {
    let first = dated(report(1, &json!({CLUSTER: cluster("planned", &[step(0, &[1])])})), None);
    let second = dated(report(2, &json!({CLUSTER: cluster("planned", &[step(0, &[1, 2])])})), Some(&first));
    let found = &second.clusters[CLUSTER].steps[0];
    assert_eq!((found.since, &found.later), (Some(at(1)), &[("data.2".to_owned(), at(2))].into()));
    assert_eq!((trend(&second).new, trend(&second).still), (1, 1));
    let third = dated(report(3, &json!({CLUSTER: cluster("planned", &[step(0, &[2])])})), Some(&second));
    let found = &third.clusters[CLUSTER].steps[0];
    assert_eq!((found.since, found.later.len()), (Some(at(2)), 0));
    assert_eq!(words(&trend(&third).resolved), ["update Service shop/0: data.1"]);
}

#[test]
fn what_a_round_has_done_is_no_finding_and_what_it_failed_to_do_is_one() {
    let becomes = |outcome: Value| {
        let mut step = step(0, &[1]);
        step["outcome"] = outcome;
        let report = Report { mode: Mode::Apply, ..report(1, &json!({CLUSTER: cluster("done", &[step])})) };
        finding::on(&report, CLUSTER).into_values().map(|finding| finding.what).collect::<Vec<_>>()
    };
    assert_eq!(becomes(json!({"result": "done"})), [""; 0]);
    assert_eq!(becomes(json!({"result": "failed", "message": "no"})), ["update Service shop/0: data.1"]);
    assert_eq!(becomes(json!({"result": "skipped"})), ["update Service shop/0: data.1"]);
}

#[test]
fn the_words_of_a_server_and_the_line_of_a_document_may_change() {
    let told = |round: usize, message: &str, line: u32| {
        let mut of_cluster = cluster("planned", &[]);
        let reason = json!({"reason": "forbidden", "detail": message});
        of_cluster["refusals"] = json!([{"unit": id("Gateway", 0), "id": id("Service", 0), "reason": reason}]);
        of_cluster["holds"] = json!([{"guard": "max-delete", "message": message, "hint": "look"}]);
        of_cluster["units"] =
            json!([{"unit": id("Gateway", 1), "state": "unhealthy", "message": message, "addresses": [], "ports": []}]);
        let mut report = with_problem(report(round, &json!({CLUSTER: of_cluster})), "no such field", &[]);
        report.problems[0].problem.place.line = line;
        report
    };
    let first = dated(told(1, "a", 3), None);
    let second = dated(told(2, "b", 4), Some(&first));
    assert_eq!((trend(&second).new, trend(&second).still, trend(&second).resolved.len()), (0, 4, 0));
    let of_cluster = &second.clusters[CLUSTER];
    let since =
        [second.problems[0].since, of_cluster.refusals[0].since, of_cluster.holds[0].since, of_cluster.units[0].since];
    assert_eq!(since, [Some(at(1)); 4]);
}

#[test]
fn what_is_refused_or_elsewhere_is_not_seen_to_be_right() {
    let first = dated(report(1, &json!({CLUSTER: cluster("planned", &[step(0, &[1]), step(1, &[1])])})), None);
    let mut refused = cluster("planned", &[]);
    let reason = json!({"reason": "foreign", "detail": "argocd"});
    refused["refusals"] = json!([{"unit": id("Gateway", 0), "id": id("Service", 0), "reason": reason}]);
    let second = dated(report(2, &json!({CLUSTER: refused})), Some(&first));
    assert_eq!(words(&trend(&second).resolved), ["update Service shop/1: data.1"]);
    assert_eq!(words(&trend(&second).unseen), ["update Service shop/0: data.1"]);

    let mut elsewhere = cluster("held", &[step(2, &[1])]);
    elsewhere["holds"] = json!([{"guard": "cluster-identity", "message": "another one answers", "hint": "look"}]);
    let second = dated(report(2, &json!({CLUSTER: elsewhere})), Some(&first));
    assert_eq!((trend(&second).new, trend(&second).unseen.len(), trend(&second).resolved.len()), (1, 2, 0));
    assert_eq!(second.clusters[CLUSTER].steps[0].since, None);
}

#[test]
fn what_stays_without_being_rendered_is_not_seen_to_be_right() {
    let first = dated(report(1, &json!({CLUSTER: cluster("planned", &[step(0, &[1]), step(2, &[1])])})), None);
    let unseen = |is_unrendered: bool| {
        let mut held = cluster("planned", &[]);
        let unit = json!({"unit": id("Gateway", 0), "state": "held", "addresses": ["192.0.2.7"], "ports": [80]});
        held["units"] = json!([unit]);
        held["units"][0]["unrendered"] = json!(is_unrendered);
        let reason = json!({"reason": "foreign", "detail": "argocd"});
        held["refusals"] = json!([{"unit": id("Gateway", 0), "id": id("Service", 0), "reason": reason}]);
        trend(&dated(report(2, &json!({CLUSTER: held})), Some(&first))).unseen.len()
    };
    assert_eq!((unseen(true), unseen(false)), (2, 1));
}

#[test]
fn an_undo_resolves_nothing_that_the_source_wants() {
    let first = dated(report(1, &json!({CLUSTER: cluster("planned", &[step(0, &[1])])})), None);
    let undo = |mode: Mode| Report {
        mode,
        partial: true,
        cause: Some("undo of 20261120T060000.000Z-gateways".to_owned()),
        ..report(2, &json!({CLUSTER: cluster("done", &[step(0, &[1, 2])])}))
    };
    let planned = dated(undo(Mode::Plan), Some(&first));
    assert_eq!(planned.clusters[CLUSTER].trend, None);
    let mut done = undo(Mode::Apply);
    done.clusters.values_mut().for_each(|it| it.steps[0].outcome = Some(crate::report::outcome::Outcome::Done));
    let done = dated(done, Some(&first));
    assert_eq!(words(&trend(&done).unseen), ["update Service shop/0: data.1"]);
}

#[test]
fn what_is_wrong_with_the_source_counts_once() {
    let clusters = || json!({"eu": cluster("planned", &[step(0, &[1])]), "us": cluster("planned", &[step(0, &[1])])});
    let mut first = with_problem(report(1, &clusters()), "no such field", &[]);
    first.stale_source = Some("the server is down".to_owned());
    date(&mut first, |_| None);
    assert_eq!(Summary::of(std::slice::from_ref(&first)).words(), None, "there is nothing to compare with");
    let mut second = with_problem(report(2, &clusters()), "another one", &["us"]);
    date(&mut second, |_| Some(first.clone()));
    let words = Summary::of(std::slice::from_ref(&second)).words();
    assert_eq!(words.as_deref(), Some("1 new, 2 still there, 2 resolved since 1970-01-01 01:00 UTC"));
    assert_eq!(second.mark(second.problems[0].since).as_deref(), Some("new"));

    let mut third = report(3, &json!({"eu": cluster("planned", &[]), "us": cluster("planned", &[])}));
    date(&mut third, |_| Some(second.clone()));
    let summary = Summary::of(&[third]);
    let resolved: Vec<String> = summary.resolved.iter().map(Gone::words).collect();
    assert_eq!(
        resolved,
        [
            "a.yaml:3: another one (since 1970-01-01 02:00 UTC)",
            "update Service shop/0: data.1; on clusters eu, us (since 1970-01-01 01:00 UTC)",
        ]
    );
    assert_eq!(Gone::number(&summary.resolved), 3);
}

#[test]
fn the_same_problem_on_several_clusters_stands_there_once() {
    let of = |round: usize, name: &str, message: &str| {
        let mut report = with_problem(report(round, &json!({name: cluster("planned", &[])})), message, &[]);
        date(&mut report, |_| None);
        report
    };
    let other = Report { revision: "r2".to_owned(), ..of(4, "in", "no such field") };
    let parts = [of(1, "eu", "no such field"), of(2, "us", "no such field"), of(3, "jp", "another one"), other];
    let reports = merged(parts.into_iter().chain([unknown(("gateways", "platform"), &["za"], Mode::Plan, at(5))]));
    let names: Vec<Vec<&String>> = reports.iter().map(|report| report.clusters.keys().collect()).collect();
    assert_eq!(names, [vec!["za"], vec!["in"], vec!["eu", "jp", "us"]]);
    let problems: Vec<String> = reports[2].problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["a.yaml:3: another one; on cluster jp", "a.yaml:3: no such field; on clusters eu, us"]);
    assert_eq!((reports[2].started, reports[2].finished), (at(1), at(3)));
    assert_eq!(reports[2].problems[1].since, Some(at(1)));
    assert_eq!(reports[1].problems[0].clusters, [""; 0]);
    assert_eq!(reports[0].exit_code(), 1, "nobody knows how it is");
}

/// Tells whether a report resolves what the one before said of unit 0: that it was in this state.
fn resolves(before: &str, how: Mode, (units, fields): (Value, Value), file: Option<&str>) -> bool {
    let unit = |state: &Value| json!({"unit": id("Gateway", 0), "state": state, "addresses": [], "ports": []});
    let mut sick = cluster("done", &[]);
    sick["units"] = json!([unit(&json!(before))]);
    let first = dated(Report { mode: Mode::Apply, ..report(1, &json!({CLUSTER: sick})) }, None);
    let mut now = cluster("done", &[]);
    for state in units.as_array().expect("it is a list") {
        let mut unit = unit(&state[0]);
        if !state[1].is_null() {
            unit["unawaited"] = state[1].clone();
        }
        now["units"] = json!([unit]);
    }
    for (field, value) in fields.as_object().expect("it is an object") {
        now[field] = value.clone();
    }
    let mut second = Report { mode: how, ..report(2, &json!({CLUSTER: now})) };
    if let Some(file) = file {
        second = with_problem(second, "it is no YAML", &[]);
        second.problems[0].problem.scope = Scope::File;
        second.problems[0].problem.place.file = file.into();
    }
    let second = dated(second, Some(&first));
    let resolved = trend(&second).resolved.len();
    assert_eq!(resolved + trend(&second).unseen.len() + trend(&second).still, 1);
    resolved == 1
}

#[test]
fn only_what_was_seen_to_be_well_or_gone_is_resolved() {
    use Mode::{Apply, Plan};
    let state = |state: &str| (json!([[state, null]]), json!({}));
    for mode in [Apply, Plan] {
        assert!(resolves("unhealthy", mode, state("current"), None));
        assert!(resolves("failed", mode, state("unhealthy"), None));
        assert!(!resolves("unhealthy", mode, (json!([["current", "0 of 1 pods are ready"]]), json!({})), None));
        assert!(!resolves("unhealthy", mode, (json!([["changed", "it is not there"]]), json!({})), None));
        for other in ["held", "pending", "different"] {
            assert!(!resolves("unhealthy", mode, state(other), None), "{other}");
            assert!(!resolves("failed", mode, state(other), None), "{other}");
        }
        assert!(!resolves("unhealthy", mode, state("failed"), None));
        assert!(resolves("unhealthy", mode, state("pruned"), None));
    }
    // A drift report asks for no health.
    assert!(!resolves("unhealthy", Mode::Report, state("current"), None));
    // It is gone from the source, and nothing of it is left; or nobody knows what stands there.
    let gone = |more: Value| (json!([]), more);
    assert!(resolves("unhealthy", Apply, gone(json!({})), None));
    assert!(!resolves("unhealthy", Apply, gone(json!({})), Some("a.yaml")));
    assert!(!resolves("unhealthy", Apply, gone(json!({"broken": [id("Gateway", 0)]})), None));
    let reason = json!({"reason": "held", "detail": "max-delete"});
    let refused = json!([{"unit": id("Gateway", 0), "id": id("Service", 0), "reason": reason}]);
    assert!(!resolves("failed", Apply, gone(json!({"refusals": refused})), None));
}

#[test]
fn mistakes_in_a_file_that_cannot_be_read_any_more_are_not_resolved() {
    let of = |round: usize| report(round, &json!({CLUSTER: cluster("done", &[])}));
    let first = dated(with_problem(of(1), "no such field", &[]), None);
    let mut second = with_problem(of(2), "it is no YAML", &[]);
    second.problems[0].problem.scope = Scope::File;
    let second = dated(second, Some(&first));
    assert_eq!((trend(&second).new, trend(&second).unseen.len(), trend(&second).resolved.len()), (1, 1, 0));
    let third = dated(of(3), Some(&second));
    assert_eq!(trend(&third).resolved.len(), 2);
}
