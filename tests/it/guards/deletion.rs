//! Deletions that wait for a person.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{document, token};
use crate::cluster::{ApiServer, unique};
use crate::ownership::site::Site;
use crate::rounds::installation::gateway;

fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::start();
        server.install_gateway_api();
        server
    })
}

fn claim() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn model(gpus: u8) -> Value {
    let container = json!({"name": "model", "image": "model", "resources": {"limits": {"nvidia.com/gpu": gpus}}});
    let labels = json!({"app": "model"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    json!({"spec": {"selector": {"matchLabels": labels}, "template": template}})
}

#[test]
fn what_holds_data_or_a_gpu_waits_for_a_person() {
    let site = Site::on(server(), "unclaimed: apply");
    let (claim, model, small) = (claim(), model(8), model(0));
    site.spec("claim", &document(&site, "v1", "PersistentVolumeClaim", "weights", &claim));
    site.spec("model", &document(&site, "apps/v1", "Deployment", "model", &model));
    site.spec("small", &document(&site, "apps/v1", "Deployment", "small", &small));
    site.want(&["edge"], 80);
    site.sync().exits(0);
    site.drop(&["claim", "model", "small"]);

    // What nobody is asked about goes.
    let held = site.sync().exits(3).says("1 object deleted");
    held.says("PersistentVolumeClaim").says("asks for nvidia.com/gpu").says("held by guard confirm");
    assert_eq!(site.left_of("small"), [""; 0]);
    let uid = site.get("pvc/weights")["metadata"]["uid"].clone();
    assert_eq!(site.left_of("model"), ["Deployment"]);

    let json: Value = serde_json::from_str(&site.run(&["plan", "--format", "json"]).exits(3).out).expect("it is JSON");
    let holds = json["clusters"]["c"]["holds"].as_array().expect("there are some");
    let token_of = |kind: &str| {
        let of_kind = holds.iter().find(|hold| hold["unit"]["kind"] == kind).expect("it is held");
        of_kind["token"].as_str().expect("it can be approved").to_owned()
    };
    let (claim, model) = (token_of("PersistentVolumeClaim"), token_of("Deployment"));
    site.run(&["approve", &model]).exits(0);
    site.sync().exits(3).says("1 object deleted").says("held by guard confirm");
    assert_eq!((site.left_of("model").len(), &site.get("pvc/weights")["metadata"]["uid"]), (0, &uid));
    site.run(&["approve", &claim]).exits(0);
    site.sync().exits(0).says("1 object deleted");

    // Whoever has other kinds in mind says so.
    site.configure(&site.name, "unclaimed: apply, prune: {confirm: {kinds: [ConfigMap], gpus: false}}");
    site.spec("model", &document(&site, "apps/v1", "Deployment", "model", &super::deletion::model(8)));
    site.sync().exits(0);
    site.drop(&["model"]);
    site.sync().exits(0).says("1 object deleted");
    site.want(&["other"], 80);
    site.sync().exits(0);
    site.drop(&["other"]);
    let held = site.sync().exits(3).says("4 objects to delete").says("is a ConfigMap").says("look at what goes");
    let objects = ["ConfigMap", "Service", "ServiceAccount", "Deployment"];
    let goes = objects.map(|kind| format!("{kind} {}/other", site.name)).join(", ");
    held.says(&format!("    prune {goes}\n"));
    let plan = |format| site.run(&["plan", "--format", format]).exits(3);
    plan("markdown").says(&format!("\n  - `prune {goes}`\n"));
    plan("html").says(&format!("put the spec back</small><br><small>prune {goes}</small></li>"));
    site.run(&["status"]).exits(0).says(&format!("      prune {goes}\n"));
}

#[test]
fn what_is_held_has_the_address_of_its_service() {
    let site = Site::on(server(), "prune: {confirm: {kinds: [Service]}}");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0);
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}).to_string();
    site.kubectl(&["patch", "service", "edge", "--subresource=status", "--type=merge", "-p", &status]);
    let line = |state: &str| {
        let all = site.run(&["status"]).exits(0).out;
        let name = format!("Gateway {}/edge ", site.name);
        let is_state = |line: &&str| line.trim_start().starts_with(&name) && !line.contains(" is held by ");
        let line = all.lines().find(is_state).expect("it has a line").to_owned();
        assert!(line.contains(state) && line.contains("  192.0.2.7  80"), "{state}: {line}");
    };
    site.sync().exits(0);
    line(" unawaited ");
    // There is a mistake in it.
    site.spec("edge", &gateway(&site.name, "edge", 80).replace("listeners", "listenres"));
    site.sync().exits(1);
    line(" held ");
    // Nobody can read it.
    site.spec("edge", "{");
    site.sync().exits(1);
    line(" held ");
    // It is gone, and waits for a person.
    site.drop(&["edge"]);
    site.sync().exits(3).says("held by guard confirm");
    line(" held ");
}

#[test]
fn marks_of_all_tools_keep_or_ask() {
    let site = Site::new("");
    site.want(&["a", "b", "c", "d"], 80);
    site.sync().exits(0).says("16 objects created");
    site.kubectl(&["annotate", "service", "a", "gatewright.dev/prune=Confirm"]);
    site.kubectl(&["annotate", "service", "b", "argocd.argoproj.io/sync-options=Validate=false,Prune=confirm"]);
    site.kubectl(&["annotate", "service", "c", "argocd.argoproj.io/sync-options=Prune=false"]);
    site.drop(&["a", "b", "c"]);
    site.configure(&site.name, "prune: {maxDelete: {units: 9, percent: 100}}");
    let held = site.sync().exits(3).says("it carries argocd.argoproj.io/sync-options").says("3 objects deleted");
    held.says("carries gatewright.dev/prune");
    assert_eq!([site.left_of("a").len(), site.left_of("b").len()], [4, 4], "a unit waits as a whole");
    assert_eq!(site.left_of("c"), ["Service"]);
    let listed = site.run(&["approve"]).exits(0);
    let tokens: Vec<&str> =
        listed.out.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(tokens.len(), 2, "{}", listed.out);
    site.run(&["approve", tokens[0], tokens[1]]).exits(0);
    site.sync().exits(0).says("8 objects deleted");
    assert_eq!(site.left_of("c"), ["Service"], "what is to be kept is kept, and not forgotten");
    assert_eq!(site.inventory().entries.len(), 5);
}

#[test]
fn a_gateway_with_routes_waits_for_a_person() {
    let site = Site::on(server(), "");
    site.want(&["edge", "other"], 80);
    let spec = json!({"spec": {"gatewayClassName": "kgateway", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}});
    let gateway = document(&site, "gateway.networking.k8s.io/v1", "Gateway", "edge", &spec);
    server().kubectl_stdin(&["create", "--validate=false", "-f", "-"], &gateway);
    let attach = |routes: u8| {
        let listeners = ["http", "https"]
            .map(|name| json!({"name": name, "attachedRoutes": routes, "supportedKinds": [], "conditions": []}));
        let patch = json!({"status": {"listeners": listeners}}).to_string();
        site.kubectl(&["patch", "gateway", "edge", "--subresource=status", "--type=merge", "-p", &patch]);
    };
    attach(2);
    site.sync().exits(0).says("8 objects created");
    site.drop(&["edge"]);
    let message = format!("4 objects to delete, and 4 routes are attached to Gateway {}/edge", site.name);
    let held = site.run(&["plan"]).exits(3).says(&message);
    site.sync().exits(3).says(&message);
    assert_eq!(site.left_of("edge").len(), 4);

    // It is the deletion that is approved, and routes come and go.
    attach(3);
    site.run(&["approve", &token(&held)]).exits(0);
    site.sync().exits(0).says("4 objects deleted");
}

#[test]
fn a_namespace_goes_only_with_what_is_ours_and_after_approval() {
    let site = Site::new("unclaimed: apply");
    let other = unique("ours");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
    let map = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": other}}).to_string()
    };
    site.want(&["edge"], 80);
    site.spec("namespace", &namespace.to_string());
    site.spec("map", &map("ours"));
    site.sync().exits(0);
    site.server.kubectl_stdin(&["create", "-f", "-"], &map("theirs"));
    site.drop(&["namespace", "map"]);
    let kept = format!("it holds what others have made (ConfigMap {other}/theirs)");
    site.sync().exits(0).says(&kept).says("1 object deleted");
    site.server.kubectl_ok(&["delete", "configmap", "theirs", "-n", &other]);
    let held = site.sync().exits(3).says("held by guard confirm");
    site.run(&["approve", &token(&held)]).exits(0);

    // Somebody comes by in the last moment.
    site.server.kubectl_stdin(&["create", "-f", "-"], &map("theirs"));
    site.sync().exits(0).says(&kept);
    site.server.kubectl_ok(&["delete", "configmap", "theirs", "-n", &other]);
    site.sync().exits(0).says("1 object deleted");
    let phase = site.server.kubectl_ok(&["get", "namespace", &other, "-o", "jsonpath={.status.phase}"]);
    assert_eq!(phase, "Terminating", "without controllers it stays so");
}

#[test]
fn a_kind_goes_only_when_nothing_of_it_is_left() {
    let site = Site::on(server(), "unclaimed: apply");
    let plural = format!("{}s", unique("widget").replace('-', ""));
    let group = "example.com";
    let name = format!("{plural}.{group}");
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names = json!({"plural": plural, "singular": format!("a{plural}"), "kind": "Widget"});
    let spec = json!({"group": group, "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec,
    });
    site.want(&["edge"], 80);
    site.spec("kind", &definition.to_string());
    site.sync().exits(0);
    server().await_kind(&name);
    let widget = document(&site, "example.com/v1", "Widget", "theirs", &json!({}));
    server().kubectl_stdin(&["create", "--validate=false", "-f", "-"], &widget);
    site.drop(&["kind"]);
    site.sync().exits(0).says(&format!("what others have made (Widget {}/theirs)", site.name));
    server().kubectl_ok(&["delete", &format!("{plural}.{group}"), "theirs", "-n", &site.name]);
    let held = site.sync().exits(3).says("held by guard confirm");
    site.run(&["approve", &token(&held)]).exits(0);
    site.sync().exits(0).says("1 object deleted");
}
