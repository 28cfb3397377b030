//! Changes to the health of our objects while nobody edits them are seen, and cost little.

use serde_json::{Value, json};

use super::{ALWAYS, Answer, Seen};
use crate::faults::Place;

/// The number of Gateways: one in a hundred becomes sick.
const GATEWAYS: usize = 100;

/// The requests that it may take to see that one object in a hundred has become sick.
const MOST_FOR_THE_SICK: usize = 6;

/// Reports of all Deployments that they run; of some that they do not.
fn reports(place: &Place, sick: &[&str]) {
    let list = place.site.kubectl(&["get", "deployments", "-o", "json"]);
    let mut list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
    for deployment in list["items"].as_array_mut().expect("a list has items") {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let ready = i32::from(!sick.contains(&name));
        let is_available = if ready == 1 { "True" } else { "False" };
        deployment["status"] = json!({
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{"type": "Available", "status": is_available}],
        });
    }
    let arguments = ["-n", &place.site.name, "replace", "--subresource=status", "--validate=false", "-f", "-"];
    place.site.server.kubectl_stdin(&arguments, &list.to_string());
}

/// Gateways of which all is well, and of which notes are taken.
fn well(names: &[&str]) -> Place {
    let place = Place::new("");
    place.site.want(names, 80);
    place.sync().exits(0);
    reports(&place, &[]);
    place.configure("wait: {timeout: 1s}");
    place.takes_note();
    place
}

#[test]
fn one_gateway_in_a_hundred_that_becomes_sick_is_seen_at_little_cost() {
    let names: Vec<String> = (0..GATEWAYS).map(|number| format!("g{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = well(&names);
    let round = |code: i32| {
        place.proxy.recovers();
        let run = place.sync().exits(code);
        assert_eq!((place.dry_runs(), place.proxy.carried_out()), (Vec::new(), Vec::new()));
        (run, place.asked().len())
    };
    let (_, quiet) = round(0);
    assert_eq!(quiet, 5);
    reports(&place, &["g42"]);
    let (run, seen) = round(1);
    run.says("Deployment").says("/g42: 0 of 1 pods are ready").says("no changes");
    assert!(seen <= quiet + MOST_FOR_THE_SICK, "{seen} requests, and {quiet} where nothing happens");
    assert_eq!(seen, quiet + 1, "the Deployments were listed, and nothing else: {:?}", place.asked());

    // It stays sick without another word from its controller, and gets well.
    let (run, _) = round(1);
    run.says("/g42: 0 of 1 pods are ready");
    reports(&place, &[]);
    let (run, _) = round(0);
    let (first, rest) = run.out.split_once("\ncluster ").expect("it tells of the cluster");
    assert!(first.contains("1 resolved since ") && !rest.contains("g42"), "{}", run.out);
    assert_eq!(round(0).1, quiet);
}

/// The Deployments cannot be listed, while their metadata can.
fn hidden(seen: &Seen) -> bool {
    seen.is("GET", "/deployments?") && !seen.accept.contains("PartialObjectMetadata")
}

#[test]
fn a_kind_that_cannot_be_listed_is_as_it_was_and_looked_at_later() {
    for (answer, says) in [(Answer::Refused(403, "not for you"), "not for you"), (Answer::Refused(500, "oh"), "oh")] {
        let place = well(&["edge", "other"]);
        reports(&place, &["edge"]);
        place.proxy.answer(ALWAYS, hidden, answer.clone());
        place.sync().exits(0).says("no changes").complains("cannot see how objects are").complains(says);
        // Neither is anything else held up by it.
        let remove = json!([{"op": "remove", "path": "/metadata/labels/app.kubernetes.io~1name"}]).to_string();
        place.site.kubectl(&["patch", "serviceaccount/other", "--type=json", "-p", &remove]);
        place.sync().exits(0).says("1 object updated").complains(says);

        // Nothing has moved since, and all the same it is not forgotten that something had.
        place.proxy.recovers();
        place.sync().exits(1).says("/edge: 0 of 1 pods are ready");
        place.proxy.answer(ALWAYS, hidden, answer);
        reports(&place, &[]);
        place.sync().exits(1).says("/edge: 0 of 1 pods are ready").complains(says);
        place.proxy.recovers();
        place.sync().exits(0).says("no changes");
        assert_eq!(place.asked().len(), 6, "{:?}", place.asked());
    }
}

/// A round that does not ask for health leaves it to the next one that does.
#[test]
fn what_a_round_that_does_not_wait_has_passed_by_is_seen_by_the_next() {
    let place = well(&["edge"]);
    reports(&place, &["edge"]);
    place.run(&["sync", "--no-wait"]).exits(0).says("no changes");
    place.sync().exits(1).says("/edge: 0 of 1 pods are ready");
}
