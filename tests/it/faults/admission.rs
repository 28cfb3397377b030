//! Requests that admission denies, changes or fails to answer.

use std::net::{Ipv4Addr, TcpListener};

use serde_json::{Value, json};

use super::Place;

/// The number of looks for a policy: the server hears of it a moment after it is made.
const TRIES: usize = 200;

/// Sets up admission for the namespace of a place, and waits until this attempt fails or changes as `shows` says.
fn install(place: &Place, objects: &[Value], shows: impl Fn() -> bool) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    place.site.server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &list.to_string());
    assert!((0..TRIES).any(|_| shows()), "the policy does not come into force");
}

fn selector(place: &Place) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": place.site.name}})
}

fn rule(group: &str, resource: &str, operation: &str) -> Value {
    json!([{"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": [operation]}])
}

/// A policy of the place that denies an operation, and its binding.
fn denies(place: &Place, resource: (&str, &str), operation: &str, message: &str) -> [Value; 2] {
    let name = format!("{}-{}", place.site.name, operation.to_lowercase());
    let constraints =
        json!({"resourceRules": rule(resource.0, resource.1, operation), "namespaceSelector": selector(place)});
    let validations = json!([{"expression": "false", "message": message}]);
    let spec = json!({"failurePolicy": "Fail", "matchConstraints": constraints, "validations": validations});
    let version = "admissionregistration.k8s.io/v1";
    let metadata = json!({"name": name});
    [
        json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}),
        json!({
            "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

/// Tells whether the server takes a Service of this name in the namespace, without making it.
fn takes_service(place: &Place, name: &str) -> bool {
    let arguments = ["-n", &place.site.name, "create", "service", "clusterip", name, "--tcp=80", "--dry-run=server"];
    place.site.server.kubectl(&arguments).status.success()
}

fn remove(place: &Place, kinds: &[&str], operation: &str, is_gone: impl Fn() -> bool) {
    let name = format!("{}-{}", place.site.name, operation.to_lowercase());
    for kind in kinds {
        place.site.server.kubectl_ok(&["delete", kind, &name]);
    }
    assert!((0..TRIES).any(|_| is_gone()), "the policy stays in force");
}

const POLICY: [&str; 2] = ["validatingadmissionpolicybinding", "validatingadmissionpolicy"];

#[test]
fn a_policy_that_denies_is_quoted_and_asked_once() {
    let place = Place::new("");
    place.site.want(&["edge"], 80);
    let policy = denies(&place, ("", "services"), "CREATE", "only on Mondays");
    install(&place, &policy, || !takes_service(&place, "probe"));
    place.sync().exits(1).says("only on Mondays").says("2 objects created");
    let asked = place.proxy.seen().iter().filter(|seen| seen.is("PATCH", "/services/")).count();
    assert_eq!(asked, 1, "it will say the same again");
    place.did("PATCH", &["serviceaccounts/edge", "configmaps/edge"]);
    place.run(&["plan"]).exits(1).says("only on Mondays");

    remove(&place, &POLICY, "CREATE", || takes_service(&place, "probe"));
    place.sync().exits(0).says("2 objects created");
    place.is_settled("edge");
}

#[test]
fn a_deletion_that_is_denied_stays_in_the_inventory() {
    let place = Place::with("edge");
    place.site.want(&["other"], 80);
    place.sync().exits(0);
    let policy = denies(&place, ("", "services"), "DELETE", "nobody deletes this");
    let may_delete = || {
        let arguments = ["-n", &place.site.name, "delete", "service", "edge", "--dry-run=server"];
        place.site.server.kubectl(&arguments).status.success()
    };
    install(&place, &policy, || !may_delete());
    place.site.drop(&["edge"]);
    place.proxy.recovers();
    place.sync().exits(1).says("nobody deletes this");
    place.did("DELETE", &["deployments/edge"]);
    let owned: Vec<String> =
        place.site.inventory().entries.into_keys().filter(|id| id.name == "edge").map(|id| id.kind.clone()).collect();
    assert_eq!(owned, ["ConfigMap", "Service", "ServiceAccount"], "and with it what it needs");

    remove(&place, &POLICY, "DELETE", may_delete);
    place.sync().exits(0).says("3 objects deleted");
    place.is_settled("other");
}

/// A webhook that nobody answers for, or that swallows everything.
fn webhook(place: &Place, port: u16) -> Value {
    let name = format!("{}-create", place.site.name);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "judge.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
            "rules": rule("", "services", "CREATE"), "namespaceSelector": selector(place),
        }],
    })
}

/// The listener never accepts, so that whoever connects waits.
#[test]
fn a_webhook_that_does_not_answer_fails_what_it_judges_and_is_asked_once() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback address has free ports");
    let silent = (silent.local_addr().expect("it is bound").port(), Some(silent));
    let closed = (crate::cluster::process::free_port(), None);
    for (port, _listener) in [closed, silent] {
        let place = Place::new("");
        place.site.want(&["edge"], 80);
        install(&place, &[webhook(&place, port)], || !takes_service(&place, "probe"));
        place.sync().exits(1).says("failed calling webhook \"judge.example.com\"").says("2 objects created");
        let asked = place.proxy.seen().iter().filter(|seen| seen.is("PATCH", "/services/")).count();
        assert_eq!(asked, 1, "each try would wait for it again");
        place.did("PATCH", &["serviceaccounts/edge", "configmaps/edge"]);
        remove(&place, &["validatingwebhookconfiguration"], "CREATE", || takes_service(&place, "probe"));
        place.sync().exits(0).says("2 objects created");
        place.is_settled("edge");
    }
}

#[test]
fn what_a_policy_changes_is_in_the_plan_and_no_drift() {
    let place = Place::new("");
    let name = place.site.name.clone();
    let version = "admissionregistration.k8s.io/v1";
    let change = "Object{metadata: Object.metadata{labels: {\"example.com/port\": string(object.spec.ports[0].port)}}}";
    let mut rules = rule("", "services", "CREATE");
    rules[0]["operations"] = json!(["CREATE", "UPDATE"]);
    let spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector(&place)},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": change}}],
    });
    let policy = [
        json!({"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}),
        json!({
            "apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name},
        }),
    ];
    let is_changed = || {
        let arguments =
            ["-n", &name, "create", "service", "clusterip", "probe", "--tcp=80", "--dry-run=server", "-o", "json"];
        String::from_utf8_lossy(&place.site.server.kubectl(&arguments).stdout).contains("example.com/port")
    };
    install(&place, &policy, is_changed);
    place.site.want(&["edge"], 80);
    place.sync().exits(0).says("4 objects created");
    assert_eq!(place.site.get("service/edge")["metadata"]["labels"]["example.com/port"], "80");
    place.is_settled("edge");
    place.site.want(&["edge"], 81);
    let difference = "metadata.labels[\"example.com/port\"]: \"80\" -> \"81\"";
    place.run(&["plan"]).exits(0).says(difference);
    place.sync().exits(0).says("2 objects updated");
    place.is_settled("edge");
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        place.site.server.kubectl_ok(&["delete", kind, &name]);
    }
}

#[test]
fn what_cannot_be_changed_is_not_deleted() {
    let place = Place::new("unclaimed: apply");
    let metadata = json!({"name": "fixed", "namespace": place.site.name});
    let write = |value: &str| {
        let data = json!({"key": value});
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": true, "data": data});
        place.site.spec("fixed", &map.to_string());
    };
    write("1");
    place.site.want(&["edge"], 80);
    place.sync().exits(0).says("5 objects created");
    let before = place.site.versions()["ConfigMap/fixed"].clone();
    write("2");
    place.site.want(&["edge"], 81);
    place.proxy.recovers();
    place.sync().exits(1).says("data cannot be changed").says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    assert_eq!(place.site.versions()["ConfigMap/fixed"], before);
}
