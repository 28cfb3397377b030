//! Answers that tell of trouble, or are none of an API server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Place, all_of};
use crate::cluster::proxy::{Answer, Seen};

const ALWAYS: usize = usize::MAX / 4;

fn all(names: &[String; 4]) -> [&str; 4] {
    names.each_ref().map(String::as_str)
}

#[test]
fn a_busy_server_is_waited_for() {
    let place = Place::new("");
    place.site.want(&["edge"], 80);
    place.proxy.answer(1, |seen| seen.is("GET", "/namespaces/kube-system"), Answer::Busy(0));
    place.proxy.answer(1, |seen| seen.is("GET", "labelSelector="), Answer::Busy(1));
    place.proxy.answer(2, |seen| seen.is_write() && seen.path.contains("/services/"), Answer::Busy(1));
    place.sync().exits(0).says("4 objects created");
    place.did("PATCH", &all(&all_of("edge")));
    let asked = place.proxy.seen().iter().filter(|seen| seen.is("PATCH", "/services/")).count();
    assert_eq!(asked, 3, "twice it was to wait");
    place.is_settled("edge");
}

#[test]
fn a_server_that_stays_busy_is_named_and_the_rest_goes_on_later() {
    let place = Place::new("");
    place.site.want(&["edge"], 80);
    place.proxy.answer(ALWAYS, |seen| seen.is("PATCH", "/services/"), Answer::Busy(0));
    place.sync().exits(1).says("FAILED: please wait").says("2 objects created");
    let asked = place.proxy.seen().iter().filter(|seen| seen.is("PATCH", "/services/")).count();
    assert_eq!(asked, 3, "tries are counted");
    let before = place.site.versions();
    assert_eq!(before.len(), 2, "what needs the Service is not tried: {before:?}");

    place.proxy.recovers();
    place.sync().exits(0).says("2 objects created");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    let after = place.site.versions();
    assert!(before.iter().all(|(object, version)| after.get(object) == Some(version)), "{before:?} {after:?}");
    place.is_settled("edge");
}

#[test]
fn a_burst_of_server_errors_is_ridden_out() {
    let place = Place::with("edge");
    place.site.want(&["edge", "new"], 81);
    let answer = |times, method: &'static str, path: &'static str, code| {
        place.proxy.answer(
            times,
            move |seen| seen.is(method, path),
            Answer::Refused(code, "etcdserver: leader changed"),
        );
    };
    answer(1, "GET", "/serviceaccounts?", 502);
    answer(1, "GET", "/configmaps?", 500);
    answer(1, "GET", "/deployments?", 504);
    answer(2, "PATCH", "dryRun=All", 503);
    answer(1, "PATCH", "/services/edge?&force", 503);
    answer(1, "PATCH", "/services/new", 500);
    answer(1, "POST", "gatewright-system", 504);
    answer(2, "PUT", "gatewright-system", 500);
    place.sync().exits(0).says("4 objects created, 2 objects updated");
    let new = all_of("new");
    place.did("PATCH", &[&all(&new)[..], &["services/edge", "deployments/edge"]].concat());
    place.is_settled("edge");
    place.is_settled("new");
}

#[test]
fn a_change_that_was_answered_with_an_error_is_looked_at_again() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    place.proxy.answer(1, |seen| seen.is_write() && seen.path.contains("/services/"), Answer::Replaced(502));
    place.sync().exits(0).says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    place.is_settled("edge");

    place.site.want(&["other"], 80);
    place.sync().exits(0);
    place.site.drop(&["edge"]);
    place.proxy.recovers();
    place.proxy.answer(1, |seen| seen.is("DELETE", "/deployments/"), Answer::Replaced(504));
    place.proxy.answer(1, |seen| seen.is("DELETE", "/services/"), Answer::Unanswered);
    place.sync().exits(0).says("4 objects deleted");
    place.did("DELETE", &all(&all_of("edge")));
    assert_eq!(place.site.left_of("edge"), [""; 0]);
    place.is_settled("other");
}

#[test]
fn a_server_that_is_out_of_order_has_nothing_done_to_it() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    let before = (place.site.versions(), place.site.records());
    for code in [500, 502, 503, 504] {
        place.proxy.answer(ALWAYS, |_| true, Answer::Refused(code, "out of order"));
        place.sync().exits(1).says("out of order");
        assert_eq!(place.proxy.carried_out(), [""; 0]);
        place.proxy.recovers();
    }
    assert_eq!((place.site.versions(), place.site.records()), before);
    place.sync().exits(0).says("2 objects updated");
    place.is_settled("edge");
}

#[test]
fn what_is_wrong_with_the_source_is_told_even_if_the_server_does_not_answer() {
    let place = Place::with("edge");
    place.site.spec("broken", "kind: [Gateway");
    for answer in [Answer::Lost, Answer::Refused(500, "out of order"), Answer::Refused(403, "not for you")] {
        place.proxy.answer(ALWAYS, |_| true, answer);
        place.sync().exits(1).says("1 error").says("broken.yaml:1: ");
        place.run(&["plan"]).exits(1).says("broken.yaml:1: ");
        let json = place.run(&["sync", "--format", "json"]).exits(1);
        let report: serde_json::Value = serde_json::from_str(&json.out).expect("it is JSON");
        assert_eq!(report["problems"].as_array().map(Vec::len), Some(1), "{report}");
        place.proxy.recovers();
    }
    // Without it only the server is to blame.
    place.site.drop(&["broken"]);
    place.proxy.answer(ALWAYS, |_| true, Answer::Lost);
    let run = place.sync().exits(4);
    assert!(!run.out.contains("problem"), "{}", run.out);
}

/// Answers from somebody who is no API server, or only half of what one says.
#[test]
fn what_is_no_answer_of_an_api_server_changes_nothing() {
    let place = Place::with("edge");
    // It would be deleted if nothing but the answers to the lists counted.
    place.site.want(&["edge"], 81);
    let before = (place.site.versions(), place.site.records());
    let lists = |seen: &Seen| seen.is("GET", "labelSelector=");
    for (answer, says) in [
        (Answer::Page("text/html", "<html>log in</html>"), "sends something else than JSON"),
        (Answer::Page("application/json", "{\"items\": [{\"metadata\""), "sends something else than JSON"),
        (Answer::Page("application/json", "{}"), "a list without items"),
        (Answer::Page("application/json", "{\"items\": [{}]}"), "JSON that is no object"),
        (Answer::Truncated, "no connection to http://127.0.0.1:"),
        (Answer::Unanswered, "no connection to http://127.0.0.1:"),
        (Answer::Endless, "sends more and more"),
    ] {
        place.proxy.answer(ALWAYS, lists, answer);
        place.sync().exits(4).says(says);
        assert_eq!(place.proxy.carried_out(), [""; 0]);
        place.proxy.recovers();
    }
    assert_eq!((place.site.versions(), place.site.records()), before);
    place.proxy.answer(1, lists, Answer::Truncated);
    place.sync().exits(0).says("2 objects updated");
    place.is_settled("edge");
}

#[test]
fn a_list_that_shows_nothing_proves_nothing() {
    let place = Place::with("edge");
    let empty = Answer::Changed(Arc::new(|list| list["items"] = serde_json::json!([])));
    place.proxy.answer(ALWAYS, |seen| seen.is("GET", "labelSelector="), empty);
    place.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!(place.proxy.carried_out(), [""; 0]);
}

#[test]
fn a_list_that_lost_its_place_begins_again() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    let halved = Answer::Changed(Arc::new(|list| {
        list["metadata"]["continue"] = "somewhere".into();
        list["items"] = serde_json::json!([]);
    }));
    let is_of_services = |seen: &Seen| seen.is("GET", "/services?");
    place.proxy.answer(1, move |seen| is_of_services(seen) && !seen.path.contains("continue="), halved);
    place.proxy.answer(1, |seen| seen.path.contains("continue=somewhere"), Answer::Refused(410, "expired"));
    place.sync().exits(0).says("2 objects updated, 2 unchanged");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    let lists = place.proxy.seen().iter().filter(|seen| is_of_services(seen)).count();
    assert_eq!(lists, 3, "the first page, the second one, and all of it again");
    place.is_settled("edge");
}

#[test]
fn a_page_that_is_too_large_is_asked_for_again_with_fewer_objects() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    let is_page = |number: &'static str| move |seen: &Seen| seen.method == "GET" && seen.path.contains(number);
    place.proxy.answer(ALWAYS, is_page("limit=500"), Answer::Endless);
    place.proxy.answer(
        ALWAYS,
        is_page("limit=250"),
        Answer::Refused(500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max"),
    );
    place.sync().exits(0).says("2 objects updated");
    assert!(place.proxy.seen().iter().any(|seen| seen.path.contains("limit=125")), "{:?}", place.proxy.seen());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a silence takes real time")]
fn a_cluster_that_goes_silent_in_mid_apply_is_waited_for_once() {
    let place = Place::new("");
    place.site.desk.replace("gatewright.yaml", "timeout: 20s", "timeout: 6s");
    let names: Vec<String> = (0..60).map(|number| format!("edge-{number}")).collect();
    place.site.want(&names.iter().map(String::as_str).collect::<Vec<_>>(), 80);
    let mut writes = 0..;
    let is_late = move |seen: &Seen| seen.path.contains("/services/") && seen.is_write() && writes.next() > Some(1);
    place.proxy.answer(ALWAYS, is_late, Answer::Silent);
    let started = Instant::now();
    place.sync().exits(4).says("no answer within");
    let took = started.elapsed();
    // One time-out, a short one for what was waiting for its turn, and what comes after them.
    assert!(took < Duration::from_secs(20), "{took:?}");
    place.proxy.recovers();
    place.sync().exits(0);
    place.is_settled("edge-0");
}
