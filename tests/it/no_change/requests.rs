//! The requests of a round in which nothing has changed.

use std::collections::BTreeSet;
use std::fs;

use jiff::{SignedDuration, Timestamp};

use crate::cluster::proxy::Seen;
use crate::faults::Place;

#[test]
fn a_round_in_which_nothing_has_changed_looks_at_metadata_only() {
    let place = Place::with("edge");
    place.takes_note();
    place.sync().exits(0).says("no changes, 4 objects up to date");
    let name = &place.site.name;
    let head = format!("GET /api/v1/namespaces/gatewright-system/configmaps/gatewright.{name}");
    let lists = ["/api/v1/serviceaccounts", "/api/v1/configmaps", "/api/v1/services", "/apis/apps/v1/deployments"];
    let asked = place.asked();
    let is_of_lists = |line: &&String| line.contains("labelSelector=gatewright.dev%2Fsync%3D");
    let found: BTreeSet<&str> = asked.iter().filter(is_of_lists).filter_map(|line| line.split('?').next()).collect();
    assert_eq!(found, lists.map(|path| format!("GET {path}")).iter().map(String::as_str).collect());
    let others: Vec<&String> = asked.iter().filter(|line| !is_of_lists(line)).collect();
    assert_eq!(others, [&head], "the cluster is recognized by its objects");
    assert_eq!(asked.len(), 5);
    let is_of_metadata = |seen: &Seen| seen.accept.contains("as=PartialObjectMetadataList");
    assert_eq!(place.proxy.seen().iter().filter(|seen| is_of_metadata(seen)).count(), 4);

    // Neither does a plan ask for more.
    place.proxy.recovers();
    place.run(&["plan"]).exits(0).says("no changes");
    assert_eq!(place.asked(), asked);
}

/// The part of the inventory that this host has written need not be read.
#[test]
fn an_object_that_was_edited_costs_three_requests_and_no_look_into_the_inventory() {
    let place = Place::with("edge");
    place.takes_note();
    place.site.kubectl(&["patch", "configmap/edge", "--type=merge", "-p", r#"{"data": {"envoy.yaml": "stray"}}"#]);
    place.sync().exits(0).says("1 object updated, 3 unchanged");
    let asked = place.asked();
    let of_object: Vec<&String> = asked.iter().filter(|line| line.contains("/configmaps/edge")).collect();
    assert_eq!(of_object.len(), 3, "read, dry-run, applied: {asked:?}");
    let shard = format!("/configmaps/gatewright.{}.", place.site.name);
    assert!(!asked.iter().any(|line| line.contains(&shard)), "{asked:?}");

    place.proxy.recovers();
    fs::remove_file(place.site.desk.path(&place.notes_path())).expect("there is one");
    place.sync().exits(0).says("no changes");
    assert!(place.asked().iter().any(|line| line.contains(&shard)), "{:?}", place.asked());
}

#[test]
fn everything_is_compared_as_often_as_the_sync_says_and_when_a_person_asks() {
    let place = Place::with("edge");
    let all = ["configmaps/edge", "deployments/edge", "serviceaccounts/edge", "services/edge"];
    place.takes_note();
    for arguments in [["plan", "--full"].as_slice(), &["sync", "--full"]] {
        place.proxy.recovers();
        place.run(arguments).exits(0);
        assert_eq!(place.dry_runs(), all, "{arguments:?}");
    }

    place.takes_note();
    let mut notes = place.notes();
    let proven: Timestamp = notes["cache"]["proven"].as_str().and_then(|time| time.parse().ok()).expect("it is a time");
    notes["cache"]["proven"] = (proven - SignedDuration::from_hours(2)).to_string().into();
    place.site.desk.write(&place.notes_path(), &notes.to_string());
    for (full, dry_runs) in [("3h", [].as_slice()), ("1h", &all)] {
        place.proxy.recovers();
        place.configure(&format!("schedule: {{full: {full}}}"));
        place.sync().exits(0).says("no changes, 4 objects up to date");
        assert_eq!(place.dry_runs(), dry_runs, "{full}");
    }
}

/// Once a day everything is compared again, whatever the notes say; so it is when the clock of the host runs backwards.
#[test]
fn what_was_not_compared_for_a_day_is_compared_again() {
    let place = Place::with("edge");
    let all = ["configmaps/edge", "deployments/edge", "serviceaccounts/edge", "services/edge"];
    for proven in ["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"] {
        place.takes_note();
        let mut notes = place.notes();
        let before = notes["cache"]["proven"].clone();
        assert!(before.is_string(), "{notes}");
        notes["cache"]["proven"] = proven.into();
        place.site.desk.write(&place.notes_path(), &notes.to_string());
        place.sync().exits(0).says("no changes, 4 objects up to date");
        assert_eq!(place.dry_runs(), all, "{proven}");
        let after = place.notes()["cache"]["proven"].clone();
        assert!(after != proven && after.as_str() >= before.as_str(), "{after} {before}");

        place.proxy.recovers();
        place.sync().exits(0).says("no changes, 4 objects up to date");
        assert_eq!(place.asked().len(), 5, "{:?}", place.asked());
    }
}
