//! Traces tell time in whole seconds: what is fresh when it is noted may be touched again and look the same.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::faults::Place;

/// When somebody last touched an object, but for statuses.
fn newest(object: &Value) -> Timestamp {
    let entries = object["metadata"]["managedFields"].as_array().expect("every object has managers").iter();
    let touches = entries.filter(|entry| entry["subresource"] != "status");
    let times = touches.filter_map(|entry| entry["time"].as_str()?.parse().ok());
    times.max().expect("somebody has made it")
}

/// Reports as a controller does.
fn report(place: &Place, generation: u32) {
    let patch = json!({"status": {"observedGeneration": generation}}).to_string();
    place.site.kubectl(&["patch", "deployment/edge", "--subresource=status", "--type=merge", "-p", &patch]);
}

#[test]
fn traces_are_relied_on_only_if_they_were_old_when_they_were_noted() {
    let place = Place::with("edge");
    let touched = newest(&place.site.get("deployment/edge"));
    let of_deployment = |notes: &Value| {
        let notes = notes["cache"]["objects"].as_array().expect("there are notes").clone();
        notes.into_iter().find(|note| note["id"]["kind"] == "Deployment").expect("there is one of each")
    };
    let note_at = |seconds: i64| {
        place.proxy.recovers();
        place.clock_says(&(touched + SignedDuration::from_secs(seconds)).to_string());
        place.sync().exits(0).says("no changes, 4 objects up to date");
        assert_eq!((place.dry_runs(), place.asked().len()), (Vec::new(), 5), "its version is enough to know it by");
        place.proxy.recovers();
        of_deployment(&place.notes())["fingerprint"].clone()
    };
    assert_eq!(note_at(5), Value::Null);
    report(&place, 1);
    place.clock_says(&touched.to_string());
    place.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!(place.dry_runs(), ["deployments/edge"]);

    assert!(note_at(6).is_string());
    report(&place, 0);
    place.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!((place.dry_runs(), place.asked().len()), (Vec::new(), 5), "nobody but a reporter has touched it");
}
