//! Kubernetes Events about what rounds change, on a real API server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::clusters::clusters;
use crate::commands::obeys;
use crate::errors::{desk, gateway, kubeconfig};
use crate::ownership::site::Site;

/// The Events of a namespace that are ours, each as `Service/edge: Created`, with how often it is there.
pub(crate) fn events(server: &ApiServer, namespace: &str) -> BTreeMap<String, Vec<Value>> {
    let all = server.kubectl_ok(&["get", "events.events.k8s.io", "-n", namespace, "-o", "json"]);
    let all: Value = serde_json::from_str(&all).expect("kubectl prints JSON");
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in all["items"].as_array().into_iter().flatten() {
        if event["reportingController"] == "gatewright.dev/gatewright" {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let words = format!("{}/{}: {}", text("/regarding/kind"), text("/regarding/name"), text("/reason"));
            found.entry(words).or_default().push(event.clone());
        }
    }
    found
}

fn names(events: &BTreeMap<String, Vec<Value>>) -> BTreeSet<&str> {
    assert!(events.values().all(|them| them.len() == 1), "{events:?}");
    events.keys().map(String::as_str).collect()
}

#[test]
fn kubectl_tells_of_an_object_what_was_done_to_it() {
    let site = Site::new("events: true");
    let of = |words: &str| events(site.server, &site.name)[words][0].clone();
    site.want(&["a"], 8080);
    site.run(&["plan"]).exits(0);
    assert_eq!(names(&events(site.server, &site.name)), BTreeSet::new(), "a plan has told of something");
    site.sync().exits(0).says("4 objects created");
    let kinds = ["ConfigMap", "Deployment", "Service", "ServiceAccount"].map(|kind| format!("{kind}/a: Created"));
    let four: BTreeSet<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(names(&events(site.server, &site.name)), four);
    let service = site.server.kubectl_ok(&["describe", "service", "a", "-n", &site.name]);
    let line = format!("created by sync {} from revision", site.name);
    assert!(service.contains("Created") && service.contains(&line) && service.contains("gatewright"), "{service}");

    // A round that changes nothing tells nothing, and one that does names the fields and not what is in them.
    site.sync().exits(0).says("no changes");
    assert_eq!(names(&events(site.server, &site.name)), four);
    site.want(&["a"], 9090);
    site.sync().exits(0).says("2 objects updated");
    let note = of("Service/a: Updated")["note"].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("updated by") && note.contains(": spec.ports[")), "{note}");

    // Of what is gone the Event says which one it was.
    let uid = site.server.kubectl_ok(&["get", "service", "a", "-n", &site.name, "-o", "jsonpath={.metadata.uid}"]);
    site.want(&["b"], 8080);
    site.drop(&["a"]);
    site.sync().exits(0).says("4 objects deleted");
    assert_eq!(of("Service/a: Deleted")["regarding"]["uid"], uid.trim());
}

#[test]
fn a_change_that_a_server_refuses_is_a_warning_without_secrets() {
    let site = Site::new("events: true");
    let proxy = Proxy::start(site.server);
    let through = format!("kubeconfig: {{path: {}, allowInsecureTls: true}}", proxy.kubeconfig().display());
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", &through);
    site.want(&["a"], 8080);
    let is_it =
        |seen: &Seen| seen.method == "PATCH" && seen.path.contains("/services/") && !seen.path.contains("dryRun");
    proxy.answer(99, is_it, Answer::Refused(422, "webhook denied it: password=hunter2hunter2"));
    site.sync().exits(1);
    let events = events(site.server, &site.name);
    let failed = &events["Service/a: ApplyFailed"][0];
    assert_eq!(failed["type"], "Warning");
    let note = failed["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("not created by sync") && note.contains("webhook denied it"), "{note}");
    assert!(!note.contains("hunter2"), "{note}");
    assert!(!names(&events).contains("Service/a: Created"), "{events:?}");
}

#[test]
fn who_may_not_record_events_has_had_a_round_and_is_told() {
    let server = ApiServer::start();
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let desk = desk("edge", &[("only", kubeconfig(&server.kubeconfig("nobody"), ""))]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "events: true");
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    let printed = desk.run(&["rbac", "edge", "--user", "nobody"]).exits(0).out;
    let is_of_events = |rule: &&str| rule.contains("events.k8s.io");
    assert!(printed.split("- apiGroups:").any(|rule| is_of_events(&rule)), "{printed}");
    let fewer = printed.replace("events.k8s.io", "none.example.com");
    server.kubectl_stdin(&["apply", "-f", "-"], &fewer);
    let lacks = |what: &str| {
        let lines = clusters(&desk, 0, &["--timeout", "30s"]);
        let missing = lines["only"]["syncs"]["edge"]["missingRights"].to_string();
        (missing.contains(what), missing)
    };
    assert!((0..200).any(|_| !lacks("\"patch\"").0), "{}", lacks("").1);
    assert!(lacks("events.k8s.io").0, "{}", lacks("").1);
    let run = desk.run(&["sync"]).exits(0).says("4 objects created");
    run.complains("cannot record Events of the round").complains("is forbidden");
    assert!(events(&server, "infra").is_empty());

    server.kubectl_stdin(&["apply", "-f", "-"], &printed);
    assert!((0..200).any(|_| !lacks("events.k8s.io").0), "{}", lacks("").1);
    desk.write("specs/a.yaml", &gateway("infra", "a", 9090));
    let run = desk.run(&["sync"]).exits(0).says("2 objects updated");
    assert!(!run.err.contains("Events"), "{}", run.err);
    assert_eq!(names(&events(&server, "infra")), BTreeSet::from(["Deployment/a: Updated", "Service/a: Updated"]));
}

/// What a kubelet tells of a pod.
fn back_off(namespace: &str, pod: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": pod, "namespace": namespace},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "uid": pod},
        "type": "Warning", "reason": "BackOff", "count": 12, "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "Back-off restarting failed container\nof \u{1b}[31mhttps://me:hunter2hunter2@example.com",
        "source": {"component": "kubelet"},
    })
}

#[test]
fn events_of_a_sync_are_those_of_its_objects_and_of_their_pods() {
    let site = Site::new("events: true");
    site.run(&["events"]).exits(0).complains("there are no Events");
    site.want(&["a", "b"], 8080);
    site.sync().exits(0).says("8 objects created");
    for pod in ["a-67d8b54f9c-x2x4z", "a-internal-67d8b54f9c-x2x4z", "other"] {
        site.create(&back_off(&site.name, pod));
    }
    let run = site.run(&["events"]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 1 + 8 + 1, "{}", run.out);
    assert!(lines[0].starts_with("LAST SEEN  CLUSTER  TYPE") && lines[1].contains("BackOff"), "{}", run.out);
    let pod = format!("Pod {}/a-67d8b54f9c-x2x4z", site.name);
    run.says(&pod).says("failed container / of ").says(" (x12)").says("created by sync");
    let warnings = site.run(&["events", &site.name, "--types", "warning", "-o", "json"]).exits(0).out;
    assert!(!warnings.contains("hunter2") && !warnings.contains('\u{1b}'), "{warnings}");
    let warnings: Value = serde_json::from_str(&warnings).expect("it is JSON");
    obeys("events-v1alpha1", &warnings);
    assert_eq!(warnings["events"].as_array().map(Vec::len), Some(1), "{warnings}");
    assert_eq!(warnings["events"][0]["unit"], format!("Gateway/{}/a", site.name), "{warnings}");
    let only = format!("gtw/{}/b", site.name);
    let of_one = site.run(&["events", "--only", &only]).exits(0).out;
    assert_eq!(of_one.lines().count(), 1 + 4, "{of_one}");
    site.run(&["events", "nobody"]).exits(64).complains("there is no sync");
}
