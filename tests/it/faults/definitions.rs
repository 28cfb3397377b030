//! Definitions of kinds that go, lose a version, or may not be changed.

use serde_json::{Value, json};

use super::Place;
use crate::cluster::unique;

/// The number of looks for something that the server hears of a moment later.
const TRIES: usize = 200;

/// A sync that applies whatever it finds, and a kind of its own.
struct Kind {
    place: Place,
    group: String,
}

impl Kind {
    fn new() -> Self {
        let kind = Self { place: Place::new("unclaimed: apply"), group: format!("{}.example.com", unique("defined")) };
        kind.place.site.want(&["edge"], 80);
        kind
    }

    fn name(&self) -> String {
        format!("gadgets.{}", self.group)
    }

    /// The definition with these versions, of which the last is stored and those with a `-` are not served.
    fn definition(&self, versions: &[&str]) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let version = |name: &&str| {
            let (served, is_stored) = (!name.starts_with('-'), versions.last() == Some(name));
            json!({"name": name.trim_start_matches('-'), "served": served, "storage": is_stored, "schema": schema})
        };
        let versions: Vec<Value> = versions.iter().map(version).collect();
        let names = json!({"plural": "gadgets", "kind": "Gadget"});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {"group": self.group, "scope": "Namespaced", "names": names, "versions": versions},
        })
    }

    /// Has the definition applied by somebody else, and waits until this version is served or not any more.
    fn install(&self, versions: &[&str], (version, is_served): (&str, bool)) {
        let server = self.place.site.server;
        let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        server.kubectl_stdin(&arguments, &self.definition(versions).to_string());
        let address = format!("/apis/{}/{version}/gadgets", self.group);
        let is_there = || server.kubectl(&["get", "--raw", &address]).status.success();
        assert!((0..TRIES).any(|_| is_there() == is_served), "{address}");
    }

    fn want(&self, name: &str, version: &str) {
        let metadata = json!({"name": name, "namespace": self.place.site.name});
        let api_version = format!("{}/{version}", self.group);
        let gadget = json!({"apiVersion": api_version, "kind": "Gadget", "metadata": metadata, "spec": {"size": 1}});
        self.place.site.spec(name, &gadget.to_string());
    }

    fn uid(&self, name: &str) -> Value {
        self.place.site.get(&format!("{}/{name}", self.name()))["metadata"]["uid"].clone()
    }

    fn owned(&self) -> usize {
        self.place.site.inventory().entries.keys().filter(|id| id.kind == "Gadget").count()
    }

    /// The definition as it is stored, and as people see it.
    fn stored(&self) -> Value {
        let text = self.place.site.server.kubectl_ok(&["get", "crd", &self.name(), "-o", "json"]);
        let definition: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        json!([definition["spec"], definition["metadata"]["generation"], definition["metadata"]["uid"]])
    }
}

#[test]
fn a_version_that_is_served_no_more_deletes_nothing_and_its_successor_is_the_same_object() {
    let kind = Kind::new();
    kind.install(&["v1alpha1"], ("v1alpha1", true));
    kind.want("a", "v1alpha1");
    kind.place.sync().exits(0).says("5 objects created");
    let uid = kind.uid("a");

    kind.install(&["-v1alpha1", "v1"], ("v1alpha1", false));
    kind.place.site.want(&["edge"], 81);
    kind.place.proxy.recovers();
    let words = format!("the cluster has no {}/v1alpha1 Gadget", kind.group);
    kind.place.sync().exits(1).says(&words).says("2 objects updated");
    kind.place.did("PATCH", &["services/edge", "deployments/edge"]);
    assert_eq!((kind.uid("a"), kind.owned()), (uid.clone(), 1));

    kind.want("a", "v1");
    kind.place.sync().exits(0);
    assert_eq!((kind.uid("a"), kind.owned()), (uid, 1), "it was not made again");
    kind.place.sync().exits(0).says("no changes");
}

/// A version cannot go while objects may be stored in it: only people can migrate them.
#[test]
fn a_definition_that_loses_a_stored_version_is_refused_in_the_servers_words_and_holds_nobody_else() {
    let kind = Kind::new();
    kind.place.site.spec("kind", &kind.definition(&["v1alpha1"]).to_string());
    kind.place.sync().exits(0).says("5 objects created");
    let before = kind.stored();
    kind.place.site.spec("kind", &kind.definition(&["v1"]).to_string());
    kind.place.site.want(&["edge"], 81);
    for arguments in [["plan"], ["sync"]] {
        let run = kind.place.run(&arguments).exits(1);
        run.says("status.storedVersions[0]: Invalid value: \"v1alpha1\"").says("2 objects ");
        assert_eq!(kind.stored(), before);
    }
    // Both versions may be there, and what was refused is done when it is right.
    kind.place.site.spec("kind", &kind.definition(&["v1alpha1", "v1"]).to_string());
    kind.place.sync().exits(0).says("1 object updated");
    kind.place.sync().exits(0).says("no changes");
}

/// The Gateway API comes with such a policy, which keeps its definitions from being set back.
#[test]
fn a_policy_that_guards_definitions_is_quoted_and_nothing_is_deleted() {
    let kind = Kind::new();
    kind.place.site.spec("kind", &kind.definition(&["v1"]).to_string());
    kind.place.sync().exits(0).says("5 objects created");
    let before = kind.stored();
    let says = "installing definitions of an older release over newer ones is not allowed";
    let policy = guard(&kind.name(), says);
    let server = kind.place.site.server;
    server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &policy.to_string());
    let patch = [
        "patch",
        "crd",
        &kind.name(),
        "--type=merge",
        "--dry-run=server",
        "-p",
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
    ];
    assert!((0..TRIES).any(|_| !server.kubectl(&patch).status.success()), "the policy does not come into force");

    kind.place.site.spec("kind", &kind.definition(&["v1", "v2"]).to_string());
    kind.place.site.want(&["edge"], 81);
    let run = kind.place.sync();
    server.kubectl_stdin(&["delete", "-f", "-"], &policy.to_string());
    run.exits(1).says(says).says("2 objects updated");
    assert_eq!(kind.stored(), before);
    assert!((0..TRIES).any(|_| server.kubectl(&patch).status.success()), "the policy does not go");
    kind.place.sync().exits(0).says("1 object updated");
}

/// A policy that lets nobody change the definition of this name.
fn guard(name: &str, message: &str) -> Value {
    let version = "admissionregistration.k8s.io/v1";
    let rule = json!({
        "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "resources": ["customresourcedefinitions"],
        "operations": ["UPDATE"],
    });
    let spec = json!({
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "this", "expression": format!("object.metadata.name == '{name}'")}],
        "validations": [{"expression": "false", "message": message}],
    });
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]})
}

#[test]
fn a_kind_that_is_being_deleted_takes_nothing_and_is_waited_for() {
    let kind = Kind::new();
    kind.install(&["v1"], ("v1", true));
    kind.want("a", "v1");
    kind.place.sync().exits(0).says("5 objects created");
    let hold = |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        kind.place.site.kubectl(&["patch", &format!("{}/a", kind.name()), "--type=merge", "-p", &patch]);
    };
    hold(json!(["example.com/slow"]));
    let server = kind.place.site.server;
    server.kubectl_ok(&["delete", "crd", &kind.name(), "--wait=false"]);
    let is_going = || kind.place.site.get(&format!("{}/a", kind.name()))["metadata"]["deletionTimestamp"].is_string();
    assert!((0..TRIES).any(|_| is_going()), "its objects go with it");

    kind.want("b", "v1");
    kind.place.site.want(&["edge"], 81);
    let run = kind.place.sync().exits(1);
    run.says("terminating").says("2 objects updated");
    assert_eq!(kind.owned(), 2, "what may have been made is not forgotten");

    hold(json!([]));
    let is_gone = || !server.kubectl(&["get", "crd", &kind.name()]).status.success();
    assert!((0..TRIES).any(|_| is_gone()), "the definition goes");
    // The first round may still remember the kind, and learns from the server that it is gone.
    for _ in 0..2 {
        kind.place.sync().exits(1).says("the cluster has no ").says("2 objects refused");
        assert_eq!(kind.owned(), 2);
    }
    kind.install(&["v1"], ("v1", true));
    kind.place.sync().exits(0).says("2 objects created");
    kind.place.sync().exits(0).says("no changes");
}
