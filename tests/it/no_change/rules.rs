//! Rules for others' fields are a part of what is wanted: to say something else is noticed without any edit.

use serde_json::{Value, json};

use super::edits::REPLICAS;
use crate::faults::Place;

/// Two replicas are wanted, somebody has set five, and with these settings that is how it stays.
#[track_caller]
fn left_alone(manager: &str, settings: &str) -> Place {
    let place = Place::new(settings);
    place.site.want(&["edge"], 80);
    place.site.spec("replicas", REPLICAS);
    place.sync().exits(0).says("4 objects created");
    let patch = json!({"spec": {"replicas": 5}}).to_string();
    let manager = format!("--field-manager={manager}");
    place.site.kubectl(&["patch", "deployment/edge", "--type=merge", "-p", &patch, &manager]);
    place.sync().exits(0);
    place.takes_note();
    place.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!((place.dry_runs(), replicas(&place)), (Vec::new(), json!(5)));
    place
}

fn replicas(place: &Place) -> Value {
    place.site.get("deployment/edge")["spec"]["replicas"].clone()
}

#[test]
fn another_rule_is_noticed_for_what_nobody_has_touched() {
    let place = left_alone("somebody", "");
    place.configure("conflicts: [{manager: somebody, policy: take}]");
    place.sync().exits(0).says("spec.replicas: 5 -> 2").says("1 object updated");
    assert_eq!(replicas(&place), json!(2));
}

#[test]
fn a_rule_that_is_gone_is_noticed_for_what_nobody_has_touched() {
    let place = left_alone("kubectl-scale", "ignore: [{kind: Deployment, path: spec.replicas}]");
    place.configure("");
    place.sync().exits(0).says("spec.replicas: 5 -> 2").says("1 object updated");
    assert_eq!(replicas(&place), json!(2));

    let place = left_alone("kubectl-scale", "conflicts: [{manager: kubectl*, policy: yield}]");
    place.configure("");
    // What was given up is not ours any more, and what a person has set is taken back.
    place.sync().exits(0).says("spec.replicas: 5 -> 2").says("1 object updated");
    assert_eq!(replicas(&place), json!(2));
}
