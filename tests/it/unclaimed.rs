//! `unclaimed: apply`: documents that no pack claims are applied, awaited and deleted like everything else.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::unique;
use crate::errors::{desk, folder, gateway};
use crate::guards::token;
use crate::ownership::site::{Site, server};
use crate::program::Desk;

/// The settings of a sync that applies everything, waits, and may delete as much as the test takes away.
const SETTINGS: &str = "unclaimed: apply, prune: {maxDelete: {units: 9, percent: 100}}";

fn document(api_version: &str, kind: &str, name: &str, rest: &Value) -> String {
    let mut document = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        match key.as_str() {
            "namespace" => document["metadata"]["namespace"] = value.clone(),
            key => document[key] = value.clone(),
        }
    }
    document.to_string()
}

/// A kind of our own, in no namespace.
fn custom_kind(group: &str) -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names = json!({"plural": "gadgets", "kind": "Gadget"});
    let spec = json!({"group": group, "scope": "Cluster", "names": names, "versions": [version]});
    let name = format!("gadgets.{group}");
    document("apiextensions.k8s.io/v1", "CustomResourceDefinition", &name, &json!({"spec": spec}))
}

fn exists(arguments: &[&str]) -> bool {
    server().kubectl(&[&["get"], arguments].concat()).status.success()
}

#[test]
fn documents_are_applied_and_deleted_as_they_are() {
    let site = Site::new(SETTINGS);
    let (other, name) = (unique("documents"), site.name.as_str());
    site.spec("namespace", &document("v1", "Namespace", &other, &json!({})));
    site.spec("secret", &document("v1", "Secret", "s", &json!({"namespace": other, "stringData": {"k": "hush-hush"}})));
    site.spec("map", &document("v1", "ConfigMap", name, &json!({"data": {"k": "1"}})));
    site.spec("role", &document("rbac.authorization.k8s.io/v1", "ClusterRole", name, &json!({"rules": []})));
    site.want(&["edge"], 80);

    let plan =
        site.run(&["plan"]).exits(0).says("+ create Namespace").says("7 objects to create, 1 namespace to create");
    assert!(!plan.out.contains("hush") && !plan.out.contains("Not claimed"), "{}", plan.out);
    let sync = site.sync().exits(0).says("7 objects created, 1 namespace created");
    assert!(!sync.out.contains("hush"), "{}", sync.out);
    assert!(exists(&["configmap", name, "-n", "default"]), "what says no namespace is in the default one");
    assert!(exists(&["secret", "s", "-n", &other]) && exists(&["clusterrole", name]));
    site.sync().exits(0).says("no changes, 8 objects up to date");

    // Somebody changes one, and it is as it was.
    server().kubectl_ok(&["patch", "configmap", name, "-n", "default", "-p", r#"{"data":{"k":"2"}}"#]);
    site.run(&["plan"]).exits(0).says(r#"data.k: "2" -> "1"  (last written by kubectl-patch"#);
    site.sync().exits(0).says("1 object updated");

    site.drop(&["namespace", "secret", "map", "role"]);
    let held = format!("Namespace {other} is held by guard confirm");
    site.run(&["plan"]).exits(3).says("3 objects to prune").says(&held);
    site.sync().exits(3).says("3 objects deleted").says(&held);
    assert!(exists(&["namespace", &other]), "with it goes all that is in it");
    assert!(!exists(&["configmap", name, "-n", "default"]) && !exists(&["clusterrole", name]));
    let again = site.sync().exits(3).says(&held).says("no changes");
    site.run(&["approve", &token(&again)]).exits(0);
    site.sync().exits(0).says("1 object deleted");
}

#[test]
fn a_kind_of_ones_own_goes_where_the_cluster_has_it() {
    let site = Site::new(SETTINGS);
    let group = format!("{}.example.com", site.name);
    site.spec("kind", &custom_kind(&group));
    site.spec("gadget", &document(&format!("{group}/v1"), "Gadget", "a", &json!({"namespace": "anywhere"})));
    let gadgets = format!("gadgets.{group}");

    let refusal = format!("the cluster has no {group}/v1 Gadget yet");
    site.run(&["plan"]).exits(1).says(&refusal);
    site.sync().exits(1).says("1 object created").says(&refusal);
    server().await_kind(&gadgets);
    site.sync().exits(0).says("+ create Gadget a\n").says("1 object created");
    assert!(exists(&[&gadgets, "a"]), "its kind is in no namespace");
    site.sync().exits(0).says("no changes, 2 objects up to date");

    // What stands in the source is not deleted because of a setting.
    site.configure(&site.name, "unclaimed: report");
    let kept = "kept: it stands in the source, and the sync does not write it any more";
    site.sync().exits(0).says("Not claimed by any pack, not applied").says(kept).says("no changes");
    assert!(exists(&[&gadgets, "a"]));
    site.configure(&site.name, SETTINGS);
    site.drop(&["gadget"]);
    site.sync().exits(0).says("1 object deleted");
}

#[test]
fn what_is_applied_is_awaited() {
    let desk = Desk::empty("gatewright.yaml");
    let group = format!("{}.example.com", unique("awaited"));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: ./state\nsources: {{specs: {{directory: {{path: ./specs}}}}}}\nclusters: {{c: {{kubeconfig: {{}}}}}}\n\
             syncs: {{{}: {{source: specs, clusters: {{names: [c]}}, unclaimed: apply, wait: {{timeout: 1s}}}}}}\n",
            unique("awaited")
        ),
    );
    desk.write("specs/kind.yaml", &custom_kind(&group));
    let admin = server().kubeconfig("admin");
    desk.run_with(&admin, &["sync"]).exits(0).says("1 object created");
    // Nobody here runs what would complete it.
    let container = json!({"name": "a", "image": "example.invalid/a:1"});
    let spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    desk.write("specs/job.yaml", &document("batch/v1", "Job", &unique("job"), &json!({"spec": spec})));
    desk.run_with(&admin, &["sync"]).exits(1).says("it is not complete yet");
}

#[test]
fn what_is_encrypted_is_refused() {
    let site = Site::new(SETTINGS);
    site.spec("sealed", &document("v1", "Secret", "s", &json!({"data": {"k": "ENC[x]"}, "sops": {"mac": "ENC[y]"}})));
    site.spec(
        "marked",
        &document(
            "v1",
            "ConfigMap",
            "m",
            &json!({"metadata": {
        "name": "m", "annotations": {"gatewright.dev/owner": "me"}}}),
        ),
    );
    site.spec("list", &document("v1", "ConfigMap", "l", &json!({"metadata": {"name": "l", "labels": ["a"]}})));
    let run = site.run(&["plan"]).exits(1);
    run.says("the document is still encrypted (it has a sops section)")
        .says("External Secrets")
        .says(r#""gatewright.dev/owner" is below gatewright.dev/, which is ours"#)
        .says("metadata.labels is no mapping")
        .says("no changes");
}

#[test]
fn what_is_deleted_from_the_source_while_it_is_broken_stays() {
    let site = Site::new(SETTINGS);
    site.spec("a", &document("v1", "ConfigMap", "a", &json!({"namespace": site.name})));
    site.spec("b", &document("v1", "ConfigMap", "b", &json!({"namespace": site.name})));
    site.sync().exits(0).says("2 objects created");
    site.spec("a", &document("v1", "ConfigMap", "a", &json!({"namespace": site.name, "sops": {}})));
    site.spec(
        "b",
        &document("v1", "ConfigMap", "b", &json!({"namespace": site.name})).repeat(2).replace("}{", "}\n---\n{"),
    );
    site.sync().exits(1).says("the same object stands at").says("kept: its spec is broken").says("no changes");
    assert_eq!((site.left_of("a").len(), site.left_of("b").len()), (1, 1));
}

#[test]
fn gateways_of_other_controllers_are_applied_as_they_are() {
    let desk = Desk::empty("gatewright.yaml");
    let version = "gateway.networking.k8s.io/v1";
    let class = json!({"spec": {"controllerName": "example.com/other"}});
    desk.write("specs/class.yaml", &document(version, "GatewayClass", "other", &class));
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    let spec = json!({"gatewayClassName": "other", "listeners": [listener]});
    let status = json!({"conditions": []});
    desk.write("specs/gateway.yaml", &document(version, "Gateway", "edge", &json!({"spec": spec, "status": status})));
    let set = json!({"parentRef": {"name": "edge"}, "listeners": [listener]});
    desk.write("specs/set.yaml", &document(version, "ListenerSet", "set", &json!({"spec": set})));
    desk.write("gatewright.yaml", "sources: {}\n");
    desk.run(&["check", "specs"]).exits(0).says("3 documents that no pack claims");
    let rendered = desk.run(&["render", "specs", "--unclaimed", "--target-namespace", "there"]).exits(0);
    let kinds: Vec<&str> = rendered.out.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    assert_eq!(kinds, ["GatewayClass", "Gateway", "ListenerSet"]);
    assert_eq!(rendered.out.matches("  namespace: there\n").count(), 2);
    assert!(!rendered.out.contains("status"), "{}", rendered.out);
}

#[test]
fn a_check_is_strict_about_what_is_applied_as_it_is() {
    let desk = Desk::empty("gatewright.yaml");
    let spec = json!({"minAvailable": "some", "selector": {"matchLabels": {"app": "a"}}});
    let budget = document("policy/v1", "PodDisruptionBudget", "budget", &json!({"namespace": "a", "spec": spec}));
    desk.write("specs/budget.yaml", &budget);
    let config = |unclaimed: &str| {
        format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs}}}}}}\n\
             clusters: {{local: {{directory: {{path: rendered}}}}}}\n\
             syncs: {{all: {{source: specs, clusters: {{names: [local]}}, unclaimed: {unclaimed}}}}}\n"
        )
    };
    desk.write("gatewright.yaml", &config("report"));
    desk.run(&["check", "specs"]).exits(0).complains("warning: PodDisruptionBudget").complains("[GW036]");
    desk.write("gatewright.yaml", &config("apply"));
    desk.run(&["check", "specs"]).exits(1).complains("error: PodDisruptionBudget").complains("[GW036]");
}

/// Readers of a report must not take a document for an object of the Gateway above it.
#[test]
fn documents_have_a_heading_of_their_own() {
    let desk = desk("gateways", &[("c", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "unclaimed: apply");
    desk.write("specs/edge.yaml", &gateway("infra", "edge", 80));
    desk.write("specs/map.yaml", &document("v1", "ConfigMap", "map", &json!({"namespace": "infra"})));
    desk.write("specs/secret.yaml", &document("v1", "Secret", "secret", &json!({"namespace": "infra"})));
    desk.write(
        "specs/route.yaml",
        &document("gateway.networking.k8s.io/v1", "HTTPRoute", "route", &json!({"namespace": "infra", "spec": {}})),
    );
    let no_namespace = "namespace \"infra\" does not exist";
    let heading = "\n  Documents applied as they are\n";
    let refused = desk.run(&["plan"]).exits(1).says(&format!("{heading}    ! ConfigMap infra/map: {no_namespace}"));
    refused.says(&format!("\n    ! Secret infra/secret: {no_namespace}")).says(&format!("! 4 objects: {no_namespace}"));

    desk.replace("gatewright.yaml", "unclaimed: apply", "unclaimed: apply\n    createNamespaces: true");
    let plan = desk.run(&["plan"]).exits(0);
    let plan = plan
        .says(&format!("    + create Namespace infra{heading}    + create ConfigMap infra/map\n    + create Secret"));
    let plan = plan.says("\n  Gateway infra/edge\n    + create ServiceAccount infra/edge\n");
    plan.says(&format!("\n    + create Deployment infra/edge{heading}    + create HTTPRoute infra/route\n"));
    let page = desk.run(&["plan", "--format", "markdown"]).exits(0);
    let page =
        page.says("<summary>Documents applied as they are (gateways on c)</summary>\n\n```diff\n+ create ConfigMap");
    assert_eq!(
        page.out.matches("<details><summary>").count(),
        3,
        "a namespace, a Gateway, and documents: {}",
        page.out
    );
    let page = desk.run(&["plan", "--format", "html"]).exits(0).says("<bdi>Documents applied as they are</bdi>");
    assert_eq!(page.out.matches("<summary><bdi>").count(), 3, "{}", page.out);
}

/// Whatever keeps the objects of a spec from being deleted keeps them from being changed for a document, and deleted with it.
#[test]
fn a_document_takes_nothing_from_a_spec_that_may_still_be_meant() {
    let good = gateway("shop", "a", 8080);
    let annotated = |value: &str| {
        good.replace("metadata: {", &format!("metadata: {{annotations: {{gatewright.dev/managed: \"{value}\"}}, "))
    };
    let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let commented = format!("# {}", good.replace('\n', "\n# "));
    let states: [(&str, Vec<u8>); 10] = [
        ("a slip in a field", good.replace("  listeners:", "  lstnrs:").into()),
        ("a slip in the kind", good.replace("kind: Gateway", "kind: Gatewya").into()),
        ("a slip in the version", good.replace("networking.k8s.io/v1", "networking.k8s.io/v1 /").into()),
        ("no name", good.replace("name: a, ", "").into()),
        ("comments", commented.into()),
        ("nothing", Vec::new()),
        ("half of it", good.as_bytes()[..good.len() / 2].to_vec()),
        ("UTF-16", utf16),
        ("somebody else's", annotated("false").into()),
        ("nobody knows whose", annotated("perhaps").into()),
    ];
    let spec = json!({"selector": {"app": "other"}, "ports": [{"port": 99}]});
    let service = document("v1", "Service", "a", &json!({"namespace": "shop", "spec": spec}));
    for (state, text) in states {
        let desk = desk("edges", &[("fine", folder())]);
        desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
        desk.write("specs/a.yaml", &good);
        desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
        desk.run(&["sync"]).exits(0);
        let objects =
            || ["service-a.yaml", "deployment-a.yaml"].map(|file| desk.read(&format!("rendered/shop/{file}")));
        let before = objects();
        fs::write(desk.path("specs/a.yaml"), &text).expect("it can be written");
        desk.write("specs/service.yaml", &service);
        let run = desk.run(&["sync"]);
        assert!(run.code != 0, "{state}: {}", run.out);
        assert!(objects() == before, "{state}, and a document\n{}", run.out);
        fs::remove_file(desk.path("specs/service.yaml")).expect("it is there");
        let run = desk.run(&["sync"]);
        assert!(objects() == before, "{state}, and no document any more\n{}", run.out);
        assert!(!desk.read_all("rendered").contains("Gatewya"), "what is an error is not written");
        desk.write("specs/a.yaml", &good);
        desk.run(&["sync"]).exits(0).says("no changes");
    }
}

#[test]
fn a_document_gets_what_a_person_lets_it_have() {
    let desk = desk("edges", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync"]).exits(0);
    desk.write("specs/a.yaml", "# not now\n");
    let spec = json!({"selector": {"app": "other"}, "ports": [{"port": 99}]});
    desk.write("specs/service.yaml", &document("v1", "Service", "a", &json!({"namespace": "shop", "spec": spec})));
    let held = desk.run(&["sync"]).exits(3).says(
        "Service shop/a would pass to it from Gateway shop/a, and it is not certain that this was withdrawn: a.yaml: \
         the file is there, and holds no document any more",
    );
    let (_, of_service) = held.out.split_once("would pass to it").expect("it was said");
    let token = of_service.split_once("gatewright approve ").and_then(|(_, rest)| rest.split_whitespace().next());
    desk.run(&["approve", token.expect("there is one")]).exits(0);
    desk.run(&["sync"]).exits(3);
    assert!(desk.read("rendered/shop/service-a.yaml").contains("99"));
    assert!(desk.path("rendered/shop/deployment-a.yaml").exists(), "the rest waits for its own approval");
    // Where the spec is gone for certain, nobody is asked.
    fs::remove_file(desk.path("specs/service.yaml")).expect("it is there");
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.run(&["sync"]);
    desk.run(&["sync"]).exits(0);
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.write("specs/service.yaml", &document("v1", "Service", "a", &json!({"namespace": "shop", "spec": spec})));
    desk.run(&["sync"]).exits(0);
    assert!(desk.read("rendered/shop/service-a.yaml").contains("99"));
    assert!(!desk.path("rendered/shop/deployment-a.yaml").exists());
}

/// A slip in what a document says of itself makes another object of it, and must not look like a withdrawal.
#[test]
fn a_slip_in_the_identity_of_a_document_deletes_nothing() {
    for (good, slip, says) in [
        (
            "namespace: shop",
            "namesapce: shop",
            "unknown field \"namesapce\" in metadata\n    did you mean \"namespace\"?",
        ),
        ("namespace: shop", "namespace: Shop", "metadata.namespace is \"Shop\""),
        ("namespace: shop", "namespace: shop\u{200b}", "metadata.namespace is \"shop"),
        ("name: m", "name: M", "metadata.name is \"M\""),
        ("name: m", "name: m\u{200b}", "metadata.name is \"m"),
        ("apiVersion: v1", "apiVersion: \" v1\"", "apiVersion is \" v1\", but must be VERSION or GROUP/VERSION"),
        ("apiVersion: v1", "apiVersion: v1/../x", "apiVersion is \"v1/../x\""),
        ("apiVersion: v1", "apiVersion: v1/", "apiVersion is \"v1/\""),
        ("kind: ConfigMap", "kind: \"ConfigMap \"", "kind is \"ConfigMap \""),
    ] {
        let desk = desk("edges", &[("fine", folder())]);
        desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  namespace: shop\ndata: {a: b}\n";
        desk.write("specs/m.yaml", map);
        desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
        desk.run(&["sync"]).exits(0);
        desk.write("specs/m.yaml", &map.replace(good, slip));
        desk.run(&["sync"]).exits(1).says(says);
        assert!(desk.path("rendered/shop/configmap-m.yaml").exists(), "{slip}");
        assert_eq!(desk.read_all("rendered").matches("a: b").count(), 1, "{slip}");
    }
}

/// The picker goes on for the pool that is there as long as that is there.
#[test]
fn a_renamed_pool_gets_its_picker_when_the_old_one_goes() {
    let desk = desk("pools", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    let pool = |name: &str| {
        let picker = json!({"name": "epp", "port": {"number": 9002}});
        let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 80}], "endpointPickerRef": picker});
        let rest = json!({"namespace": "apps", "spec": spec});
        document("inference.networking.k8s.io/v1", "InferencePool", name, &rest)
    };
    desk.write("specs/pool.yaml", &pool("old"));
    desk.run(&["sync"]).exits(0);
    let before = desk.read("rendered/apps/deployment-epp.yaml");
    desk.write("specs/pool.yaml", &pool("new"));
    let held =
        desk.run(&["sync"]).exits(3).says("Deployment apps/epp: kept: InferencePool apps/old stays and may need it");
    assert_eq!(desk.read("rendered/apps/deployment-epp.yaml"), before);

    // Without the new one all of it is the old one's still, and waits with it.
    let files = || fs::read_dir(desk.path("rendered/apps")).expect("it is there").count();
    let all = files();
    desk.write("specs/map.yaml", &document("v1", "ConfigMap", "map", &json!({"namespace": "apps"})));
    fs::remove_file(desk.path("specs/pool.yaml")).expect("it is there");
    let alone =
        desk.run(&["sync"]).exits(3).says("InferencePool apps/old is held by guard confirm: 9 objects to delete");
    assert!(!alone.out.contains("InferencePool apps/new is held"), "{}", alone.out);
    assert_eq!(files(), all + 1);

    // A round about the new one alone leaves the old one as it is.
    desk.write("specs/pool.yaml", &pool("new"));
    desk.run(&["sync", "--only", "InferencePool/apps/new"]).says("kept: InferencePool apps/old stays and may need it");
    assert_eq!(desk.read("rendered/apps/deployment-epp.yaml"), before);
    desk.run(&["sync"]).exits(3);
    desk.run(&["approve", &token(&held)]).exits(0);
    desk.run(&["sync"]).exits(0).says("1 object created, 1 object updated, 1 object deleted");
    desk.run(&["sync"]).exits(0).says("no changes");
}

/// Between syncs it is the spec that the inventory names which counts, whatever the document is called that wants the object.
#[test]
fn a_document_takes_nothing_from_another_sync_that_may_still_mean_it() {
    let good = gateway("shop", "a", 8080);
    let left = good.replace("metadata: {", "metadata: {annotations: {gatewright.dev/managed: \"false\"}, ");
    let states =
        [good.replace("  listeners:", "  lstnrs:"), good.replace("name: a, ", ""), left, "# not now\n".to_owned()];
    let spec = json!({"selector": {"app": "other"}, "ports": [{"port": 99}]});
    let service = document("v1", "Service", "a", &json!({"namespace": "shop", "spec": spec}));
    for state in states {
        let desk = Desk::empty("gatewright.yaml");
        let sync = "clusters: {names: [c]}, createNamespaces: true, wait: {enabled: false}";
        let config = format!(
            "stateDir: state\nsources: {{one: {{directory: {{path: one}}}}, two: {{directory: {{path: two}}}}}}\n\
             clusters: {{c: {{directory: {{path: rendered}}}}}}\n\
             syncs:\n  one: {{source: one, {sync}}}\n  two: {{source: two, unclaimed: apply, {sync}}}\n"
        );
        desk.write("gatewright.yaml", &config);
        desk.write("one/a.yaml", &good);
        desk.write("one/b.yaml", &gateway("shop", "b", 8080));
        desk.write("two/c.yaml", &gateway("shop", "c", 8080));
        desk.run(&["sync"]).exits(0);
        let before = desk.read("rendered/shop/service-a.yaml");
        desk.write("one/a.yaml", &state);
        desk.write("two/service.yaml", &service);
        let run = desk.run(&["sync", "two"]);
        assert!(run.code != 0, "{state}: {}", run.out);
        desk.run(&["sync"]);
        assert_eq!(desk.read("rendered/shop/service-a.yaml"), before, "{state}: {}", run.out);
        fs::remove_file(desk.path("two/service.yaml")).expect("it is there");
        desk.run(&["sync"]);
        assert_eq!(desk.read("rendered/shop/service-a.yaml"), before, "{state}");
        desk.write("one/a.yaml", &good);
        desk.run(&["sync"]).exits(0).says("no changes");
    }
}

/// A guard that lets everything but deletions go on lets nothing pass that is deleted with its unit otherwise.
#[test]
fn a_document_of_another_source_takes_nothing_before_that_is_approved() {
    let desk = desk("edges", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync"]).exits(0);
    let before = desk.read("rendered/shop/service-a.yaml");
    desk.replace("gatewright.yaml", "path: specs", "path: other");
    desk.write("other/b.yaml", &gateway("shop", "b", 9090));
    let spec = json!({"selector": {"app": "other"}, "ports": [{"port": 99}]});
    desk.write("other/service.yaml", &document("v1", "Service", "a", &json!({"namespace": "shop", "spec": spec})));
    let held = desk.run(&["sync"]).exits(3).says("held by guard source-identity");
    assert!(desk.read("rendered/shop/service-b.yaml").contains("9090"), "all else goes on: {}", held.out);
    assert_eq!(desk.read("rendered/shop/service-a.yaml"), before);
    desk.run(&["approve", &token(&held)]).exits(0);
    desk.run(&["sync"]).exits(0).says("3 objects deleted");
    assert!(desk.read("rendered/shop/service-a.yaml").contains("99"));
}

/// API servers prune nulls that the definition of a kind does not allow, and refuse them in what is applied.
#[test]
fn nulls_that_a_kind_does_not_allow_are_not_applied() {
    let desk = desk("routes", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    let rule = json!({"filters": null, "backendRefs": [{"name": "a", "port": 80, "namespace": null}]});
    let spec = json!({"hostnames": null, "parentRefs": [{"name": "a", "sectionName": null}], "rules": [rule]});
    let route = document("gateway.networking.k8s.io/v1", "HTTPRoute", "r", &json!({"namespace": "shop", "spec": spec}));
    desk.write("specs/route.yaml", &route);
    desk.run(&["sync"]).exits(0).says("1 object created");
    let written = desk.read_all("rendered/shop");
    assert!(!written.contains("null") && written.contains("backendRefs"), "{written}");
}
