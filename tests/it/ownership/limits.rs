//! The limits of a sync, and what a source that says something wrong holds back.

use serde_json::json;

use super::site::{Site, server};
use crate::cluster::unique;
use crate::rounds::installation::gateway;

#[test]
fn what_is_not_allowed_is_refused() {
    let site = Site::new("");
    let elsewhere = unique("elsewhere");
    site.configure(&site.name, &format!("createNamespaces: true, allow: {{namespaces: [{}]}}", site.name));
    site.want(&["edge"], 80);
    site.spec("elsewhere", &gateway(&elsewhere, "edge", 80));
    let refusal = format!("not allowed: namespace {elsewhere:?} is not in allow.namespaces");
    site.run(&["plan"]).exits(3).says(&refusal).says("4 objects to create");
    site.sync().exits(3).says(&refusal).says("4 objects created");
    assert!(!server().kubectl(&["get", "namespace", &elsewhere]).status.success());

    site.drop(&["elsewhere"]);
    site.configure(&site.name, "allow: {kinds: [ServiceAccount, ConfigMap, Service]}");
    site.want(&["edge", "new"], 81);
    let before = site.versions();
    let refusal = format!("Deployment {}/edge: not allowed: kind \"Deployment\" is not in allow.kinds", site.name);
    site.sync().exits(3).says(&refusal).says("withheld: another object of the unit was refused");
    assert_eq!(site.versions(), before);
}

#[test]
fn a_team_that_has_a_namespace_cannot_bind_itself_to_a_cluster_role() {
    let site = Site::new("");
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        // It says a namespace, which its kind does not have.
        "metadata": {"name": site.name, "namespace": site.name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": site.name}],
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": site.name}});
    site.spec("binding", &binding.to_string());
    site.spec("map", &map.to_string());
    let is_bound = || server().kubectl(&["get", "clusterrolebinding", &site.name]).status.success();

    site.configure(&site.name, &format!("unclaimed: apply, allow: {{namespaces: [{}]}}", site.name));
    let refusal = "not allowed: kind \"ClusterRoleBinding\" is in no namespace, and where allow.namespaces names some";
    site.run(&["plan"]).exits(3).says(refusal).says("1 object to create");
    site.sync().exits(3).says(refusal).says("1 object created");
    assert!(!is_bound());

    let only = |kinds: &str| format!("unclaimed: apply, allow: {{namespaces: [{}], {kinds}}}", site.name);
    site.configure(&site.name, &only("clusterKinds: [ClusterRoleBinding.example.com]"));
    site.sync().exits(3).says("is in no namespace and not in allow.clusterKinds");
    site.configure(&site.name, &only("kinds: [ConfigMap.example.com, ConfigMap.core]"));
    site.sync().exits(3).says("kind \"ClusterRoleBinding\" is not in allow.kinds");
    assert!(!is_bound());

    // Whoever wants it can have it.
    site.configure(&site.name, &only(&format!("clusterKinds: [ClusterRoleBinding.{group}]")));
    site.sync().exits(0).says("1 object created");
    assert!(is_bound());
    site.drop(&["binding"]);
    site.sync().exits(0).says("1 object deleted");
}

#[test]
fn a_custom_kind_without_namespaces_is_known_from_the_cluster() {
    let site = Site::new("");
    let group = format!("{}.example.com", site.name);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    server().kubectl_stdin(&["create", "-f", "-"], &definition.to_string());
    server().await_kind(&format!("gadgets.{group}"));
    let metadata = json!({"name": "a", "namespace": site.name});
    let gadget = json!({"apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": metadata});
    site.spec("gadget", &gadget.to_string());
    site.configure(&site.name, &format!("unclaimed: apply, allow: {{namespaces: [{}]}}", site.name));
    site.sync().exits(3).says("kind \"Gadget\" is in no namespace");
    assert!(!server().kubectl(&["get", &format!("gadgets.{group}"), "a"]).status.success());
}

#[test]
fn a_missing_namespace_is_made_only_on_request() {
    let site = Site::new("");
    let missing = unique("missing");
    site.want(&["edge"], 80);
    site.spec("missing", &gateway(&missing, "edge", 80));
    let hint = format!("namespace {missing:?} does not exist (make it, or set createNamespaces: true for the sync)");
    site.run(&["plan"]).exits(1).says(&hint);
    site.sync().exits(1).says(&hint).says("4 objects created");
    assert!(!server().kubectl(&["get", "namespace", &missing]).status.success());

    site.configure(&site.name, "createNamespaces: true");
    site.sync().exits(0).says("4 objects created, 1 namespace created");
    let namespace = server().kubectl_ok(&["get", "namespace", &missing, "-o", "jsonpath={.metadata.labels}"]);
    assert!(!namespace.contains("gatewright.dev"), "a namespace is never ours: {namespace}");
}

#[test]
fn a_broken_document_holds_only_what_it_feeds() {
    let site = Site::new("");
    site.want(&["a", "b", "c", "d"], 80);
    site.sync().exits(0).says("16 objects created");
    let before = site.versions();

    // A document that says something wrong, and a file of which nobody knows what it says.
    site.spec("a", &gateway(&site.name, "a", 81).replace("\"port\"", "\"prot\""));
    site.spec("b", "apiVersion: [");
    site.want(&["c"], 81);
    site.run(&["plan"]).exits(1).says("prot").says("b.yaml");
    site.sync().exits(1).says("2 objects updated").says("kept: its spec is broken");
    let after = site.versions();
    let is_changed = |name: &str| before.iter().any(|(key, old)| key.ends_with(name) && after.get(key) != Some(old));
    assert_eq!([is_changed("/a"), is_changed("/b"), is_changed("/c")], [false, false, true]);
    assert_eq!(before.len(), after.len());

    // What the broken files have never fed may go.
    site.drop(&["d"]);
    site.sync().exits(1).says("4 objects deleted");
    assert_eq!((site.left_of("b").len(), site.left_of("d").len()), (4, 0));

    // A broken file that is new may hold anything, so nothing goes.
    site.spec("new", "apiVersion: [");
    site.drop(&["c"]);
    site.sync().exits(1).says("held by guard withdrawal").says("new.yaml: unclosed bracket").says("no changes");
    assert_eq!(site.left_of("c").len(), 4);
    site.drop(&["new"]);
    site.sync().exits(1).says("4 objects deleted");
}

#[test]
fn what_becomes_self_managed_stays_as_it_is() {
    let site = Site::new("");
    let reference = json!({"group": "gateway.kgateway.dev", "kind": "GatewayParameters", "name": "edge"});
    let gateway = gateway(&site.name, "edge", 80)
        .replace("\"listeners\"", &format!("\"infrastructure\":{{\"parametersRef\":{reference}}},\"listeners\""));
    let parameters = |spec: &serde_json::Value| {
        let metadata = json!({"name": "edge", "namespace": site.name});
        let version = "gateway.kgateway.dev/v1alpha1";
        json!({"apiVersion": version, "kind": "GatewayParameters", "metadata": metadata, "spec": spec}).to_string()
    };
    site.spec("edge", &gateway);
    site.spec("parameters", &parameters(&json!({"kube": {"deployment": {"replicas": 2}}})));
    site.sync().exits(0).says("4 objects created");
    let before = site.versions();
    site.spec("parameters", &parameters(&json!({"selfManaged": {}})));
    site.sync().exits(0).says("no changes").says("kept: its spec says that somebody else provisions it");
    assert_eq!(site.versions(), before);
}

#[test]
fn a_round_may_be_about_one_gateway() {
    let site = Site::new("");
    site.want(&["a", "b", "c"], 80);
    site.sync().exits(0).says("12 objects created");
    let before = site.versions();
    site.want(&["a", "b"], 81);
    site.drop(&["c"]);
    site.run(&["sync", "--only", &format!("Gateway/{}/a", site.name)]).exits(0).says("2 objects updated, 2 unchanged");
    let after = site.versions();
    let changed: Vec<_> =
        before.iter().filter(|(key, old)| after.get(*key) != Some(*old)).map(|(key, _)| key).collect();
    assert_eq!(changed, ["Deployment/a", "Service/a"]);
    assert_eq!(site.inventory().entries.len(), 12, "of the others nothing is forgotten");
    site.sync().exits(0).says("2 objects updated, 4 objects deleted, 6 unchanged");
}
