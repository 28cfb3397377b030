//! Reports of a rollout that does not get there in time.
//!
//! No controllers run here: pods, what they report, and what is complained about them are made by hand.

use serde_json::{Value, json};

use crate::cluster::proxy::{Answer, Seen};
use crate::faults::Place;
use crate::program::Run;

const ALWAYS: usize = usize::MAX / 4;

/// Gateways whose Deployments have a controller that has seen everything and does nothing.
fn stuck(names: &[&str]) -> Place {
    let place = Place::new("");
    place.site.want(names, 80);
    place.sync().exits(0);
    let status = json!({"status": {"observedGeneration": 99}}).to_string();
    for name in names {
        let deployment = format!("deployment/{name}");
        place.site.kubectl(&["patch", &deployment, "--subresource=status", "--type=merge", "-p", &status]);
    }
    place.configure("wait: {timeout: 1s}");
    place.site.want(names, 81);
    place.proxy.recovers();
    place
}

/// A pod of a Deployment, which says this of its only container.
fn pod(place: &Place, deployment: &str, name: &str, state: &Value) -> String {
    let labels = place.site.get(&format!("deployment/{deployment}"))["spec"]["selector"]["matchLabels"].clone();
    let spec = json!({"containers": [{"name": "proxy", "image": "registry.example.com/envoy:v9"}]});
    let metadata = json!({"name": name, "labels": labels});
    place.site.create(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}));
    let container = json!({
        "name": "proxy", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    });
    let status = json!({"status": {"phase": "Pending", "containerStatuses": [container]}}).to_string();
    place.site.kubectl(&["patch", "pod", name, "--subresource=status", "--type=merge", "-p", &status]);
    place.site.get(&format!("pod/{name}"))["metadata"]["uid"].as_str().expect("it has one").to_owned()
}

fn event(place: &Place, name: &str, uid: &str, (kind, time, message): (&str, &str, &str)) {
    let about = json!({"apiVersion": "v1", "kind": "Pod", "name": "x", "namespace": place.site.name, "uid": uid});
    place.site.create(&json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about,
        "type": kind, "reason": "Failed", "message": message, "firstTimestamp": time, "lastTimestamp": time,
    }));
}

/// The questions about pods and events.
fn questions(place: &Place) -> Vec<Seen> {
    let is_question = |seen: &Seen| seen.path.contains("/pods?") || seen.path.contains("/events?");
    place.proxy.seen().into_iter().filter(is_question).collect()
}

#[test]
fn a_rollout_that_is_late_says_what_is_awaited_and_why_it_does_not_come() {
    let place = stuck(&["edge"]);
    pod(&place, "edge", "edge-slow", &json!({"waiting": {"reason": "ContainerCreating"}}));
    let image = "Back-off pulling image \"registry.example.com/envoy:v9\"";
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": image}});
    let uid = pod(&place, "edge", "edge-worst", &waiting);
    let refused = "pull https://me:hunter2@registry.example.com/envoy: denied\ntoken=hunter2";
    event(&place, "a", &uid, ("Warning", "2026-01-01T00:00:01Z", "an older one"));
    event(&place, "b", &uid, ("Warning", "2026-01-01T00:00:02Z", refused));
    event(&place, "c", &uid, ("Normal", "2026-01-01T00:00:03Z", "all is well"));
    event(&place, "d", "another", ("Warning", "2026-01-01T00:00:04Z", "of somebody else"));

    let run = place.sync().exits(1);
    let id = format!("Deployment {}/edge", place.site.name);
    let message = format!(
        "{id}: after 1s: 0 of 1 pods are updated; pod edge-worst: container proxy waits: ImagePullBackOff ({image}); \
         newest warning: Failed: pull https://registry.example.com/envoy: denied / token=…"
    );
    let run = run.says(&message);
    assert!(!run.out.contains("hunter2") && !run.err.contains("hunter2"), "{}{}", run.out, run.err);
    assert_eq!(questions(&place).len(), 2, "{:?}", questions(&place));
    // The report that is kept says so, too.
    place.run(&["status"]).says("ImagePullBackOff");
}

#[test]
fn a_few_of_many_are_asked_about() {
    let names = ["a", "b", "c", "d", "e"];
    let place = stuck(&names);
    let run = place.sync().exits(1).says("5 units: after 1s: 0 of 1 pods are updated: ");
    let line = run.out.lines().find(|line| line.contains("5 units: ")).expect("it was found");
    assert!(names.iter().all(|name| line.contains(&format!("/{name}"))), "{line}");
    assert_eq!(questions(&place).len(), 6, "pods and events of three: {:?}", questions(&place));
}

#[test]
fn without_the_right_to_read_pods_it_is_said_what_is_awaited() {
    let place = stuck(&["edge"]);
    let is_question = |seen: &Seen| seen.path.contains("/pods?") || seen.path.contains("/events?");
    place.proxy.answer(ALWAYS, is_question, Answer::Refused(403, "not for you"));
    let run = place.sync().exits(1).says("/edge: after 1s: 0 of 1 pods are updated\n");
    assert!(!run.out.contains("not for you"), "{}", run.out);
}

/// Says of how many pods of a Deployment its controller reports that they are ready.
fn ready(place: &Place, name: &str, ready: u8) {
    let is_available = if ready > 0 { "True" } else { "False" };
    let conditions = json!([{"type": "Available", "status": is_available, "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "reason": "Told", "message": ""}]);
    let status = json!({
        "observedGeneration": 99, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready,
        "availableReplicas": ready, "conditions": conditions,
    });
    let (deployment, patch) = (format!("deployment/{name}"), json!({"status": status}).to_string());
    place.site.kubectl(&["patch", &deployment, "--subresource=status", "--type=merge", "-p", &patch]);
}

/// Says with which numbers a comparison ends.
fn trend(run: &Run) -> &str {
    run.out.lines().find(|line| line.contains(" resolved since ")).unwrap_or("no comparison").trim()
}

#[test]
fn what_nobody_waited_for_is_not_resolved_and_status_tells_its_pods() {
    let place = stuck(&["edge"]);
    ready(&place, "edge", 0);
    place.sync().exits(1).says("/edge: after 1s: 0 of 1 pods are ready");
    let unit = format!("Gateway {}/edge  ", place.site.name);
    place.run(&["status"]).says(&format!("{unit}unhealthy  ")).says("  81  0 of 1 pods  ");
    let rounds: [&[&str]; 6] = [
        &["sync", "--no-wait"],
        &["sync", "--no-wait", "--full"],
        &["plan", "--full"],
        &["sync", "--no-wait"],
        &["plan", "--only", &format!("Gateway/{}/edge", place.site.name)],
        &["sync", "--no-wait", "--full", "--only", &format!("Gateway/{}/edge", place.site.name)],
    ];
    for arguments in rounds {
        let run = place.run(arguments).exits(0);
        assert!(trend(&run).contains("1 not looked at, 0 resolved"), "{arguments:?}: {}", run.out);
        if arguments[0] == "sync" {
            let status = place.run(&["status"]).says(&format!("{unit}unawaited  "));
            status.says("  81  0 of 1 pods  Deployment ").says("/edge: 0 of 1 pods are ready");
        }
    }
    // It is still there when somebody looks, since when it was, and resolved when it is well.
    let run = place.sync().exits(1);
    assert!(trend(&run).starts_with("0 new, 1 still there, 0 resolved"), "{}", run.out);
    ready(&place, "edge", 1);
    let run = place.sync().exits(0);
    assert!(trend(&run).contains("1 resolved"), "{}", run.out);
    place.run(&["status"]).says(&format!("{unit}current    ")).says("  81  1 of 1 pods\n");
    // What was well and has moved since is not told to be well by a round that passes it by.
    ready(&place, "edge", 0);
    place.run(&["sync", "--no-wait"]).exits(0);
    let status = place.run(&["status"]).says(&format!("{unit}unawaited  "));
    assert!(!status.out.contains("1 of 1 pods"), "{}", status.out);
}

#[test]
fn a_second_mistake_in_the_spec_of_a_sick_gateway_resolves_nothing() {
    let place = stuck(&["edge", "other"]);
    ready(&place, "edge", 0);
    ready(&place, "other", 1);
    place.sync().exits(1).says("/edge: after 1s: 0 of 1 pods are ready");
    let spec = place.site.desk.read("specs/edge.yaml");
    let mistakes =
        [spec.replace("\"listeners\"", "\"listenres\""), spec.replace("\"port\"", "\"prot\""), "{{{".to_owned()];
    for mistake in mistakes {
        place.site.spec("edge", &mistake);
        for arguments in [&["sync"][..], &["plan"], &["sync", "--no-wait"]] {
            let run = place.run(arguments).exits(1);
            assert!(trend(&run).contains(" not looked at, 0 resolved"), "{mistake} {arguments:?}: {}", run.out);
        }
        place.site.spec("edge", &spec);
        let run = place.sync().exits(1);
        assert!(trend(&run).starts_with("0 new, 1 still there, "), "only the mistakes are gone: {}", run.out);
        let resolved = run.out.split("\ncluster c\n").next().unwrap_or_default();
        assert!(!resolved.contains("not healthy"), "{}", run.out);
        run.says("\n  done, not healthy: no changes, ");
    }
    // One that is deleted is sick no more.
    place.site.drop(&["edge"]);
    let run = place.sync().exits(0).says("4 objects deleted");
    assert!(trend(&run).contains("1 resolved"), "{}", run.out);
}
