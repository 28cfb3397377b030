//! Beside a controller that is at work nothing is lost, nothing differs, and no pod moves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fleet::{changes, is_about_ownership};
use super::{create, deployed, looked_after, scaled, with_parameters};
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::ownership::site::Site;
use crate::specs::control_plane::{KIND, Reference, VERSION, document, gateway, server};
use crate::support::kgateway::{Addresses, Controller, Identity, identities};

const APPLY: &str = "specs: apply";

/// Writes the config; `pack` is what it says of kgateway.
pub(super) fn configure(site: &Site, settings: &str, pack: &str) {
    site.configure(&site.name, settings);
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {pack}}}\n"));
}

/// The settings with which we write what the release of these tests writes.
pub(super) const AS_THEIRS: &str = "{managedBy: kgateway, version: v2.4.0}";

/// Has a Gateway with parameters in the source.
fn want(site: &Site, name: &str, parameters: &Value) {
    let [own, gateway] = with_parameters(site, name, parameters);
    site.spec(name, &format!("{own}\n---\n{gateway}"));
}

/// A Gateway that a release has deployed, whose pods run and whose source is ours.
fn to_be_adopted(parameters: &Value, pack: &str) -> (Site, Controller) {
    let (site, controller) = deployed(parameters);
    configure(&site, APPLY, pack);
    want(&site, "edge", parameters);
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=300s"]);
    controller.settle();
    (site, controller)
}

/// Returns budgets and autoscalers.
fn scalers(site: &Site) -> BTreeMap<String, Identity> {
    const KINDS: [&str; 3] = ["PodDisruptionBudget/", "HorizontalPodAutoscaler/", "VerticalPodAutoscaler/"];
    let mut all = identities(server(), &site.name);
    all.retain(|key, _| KINDS.iter().any(|kind| key.starts_with(kind)));
    all
}

/// Has the controller look ten times, and after a restart.
fn look_often(controller: &mut Controller) {
    for _ in 0..10 {
        controller.reconcile_all();
    }
    controller.restart();
}

#[test]
fn autoscalers_and_budgets_of_a_fresh_sync_live() {
    let (site, mut controller) = looked_after(APPLY);
    want(&site, "edge", &scaled());
    site.sync().exits(0).says("9 objects created");
    let before = scalers(&site);
    assert_eq!(before.len(), 3, "{before:?}");
    look_often(&mut controller);
    assert_eq!(controller.deletions(), []);
    assert_eq!(scalers(&site), before);
    site.sync().exits(0).says("no changes");
}

#[test]
fn autoscalers_and_budgets_of_an_adopted_gateway_live() {
    let (site, mut controller) = to_be_adopted(&scaled(), AS_THEIRS);
    let before = scalers(&site);
    site.run(&["adopt"]).exits(0);
    look_often(&mut controller);
    assert_eq!(controller.deletions(), []);
    assert_eq!(scalers(&site), before);
    site.sync().exits(0).says("no changes");
}

/// A budget whose label says that it is the controller's is deleted by it, and made by us, until somebody decides.
#[test]
fn a_budget_that_it_deletes_again_and_again_is_named_in_the_third_round() {
    let (site, controller) = looked_after("specs: apply, unclaimed: apply");
    want(&site, "edge", &json!({"kube": {}}));
    let labels = json!({"gateway.networking.k8s.io/gateway-name": "edge"});
    let metadata = json!({"name": "own", "namespace": site.name, "labels": labels});
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec});
    site.spec("budget", &budget.to_string());
    let round = || {
        let run = site.sync();
        controller.reconcile_all();
        run
    };
    for _ in 0..2 {
        let run = round().exits(0).says("create PodDisruptionBudget");
        assert!(!run.out.contains("again and again"), "{}", run.out);
    }
    round()
        .exits(0)
        .says("deleted again and again: 3 rounds have made it, with this one; then it is left alone for 1 round");
    round().exits(1).says("3 rounds have made it, and it is gone each time; the next round makes it again");
    assert_eq!(controller.deletions().len(), 3);
}

fn addresses(site: &Site) -> Vec<Value> {
    let all = site.get("gateway/edge")["status"]["addresses"].as_array().cloned().unwrap_or_default();
    all.into_iter().map(|address| address["value"].clone()).collect()
}

#[test]
fn the_addresses_of_an_adopted_gateway_are_there_all_the_while() {
    let (site, controller) = to_be_adopted(&json!({"kube": {}}), AS_THEIRS);
    server().give_ingress(&site.name, "edge", &["192.0.2.10"]);
    controller.settle();
    let watch = Addresses::watch(server(), &site.name, "edge");
    site.run(&["adopt"]).exits(0);
    controller.settle();
    site.sync().exits(0);
    controller.settle();
    assert_eq!(watch.seen(), [["192.0.2.10"]]);
    assert_eq!(site.get("service/edge")["spec"].get("loadBalancerIP"), None);
}

#[test]
fn a_service_that_cannot_be_read_for_a_moment_takes_no_address_away() {
    let (site, controller) = looked_after(APPLY);
    want(&site, "edge", &json!({"kube": {}}));
    site.sync().exits(0);
    server().give_ingress(&site.name, "edge", &["192.0.2.10"]);
    site.sync().exits(0);
    controller.settle();
    let watch = Addresses::watch(server(), &site.name, "edge");
    let proxy = Proxy::start(site.server);
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    // All of them, and then the one alone.
    let is_service = |seen: &Seen| seen.method == "GET" && seen.path.contains("/services");
    proxy.answer(2, is_service, Answer::Refused(403, "not now"));
    site.desk.run_with(&proxy.kubeconfig(), &["sync", "--full"]).exits(0);
    controller.settle();
    assert_eq!((proxy.left(), watch.seen()), (0, vec![vec!["192.0.2.10".to_owned()]]));
}

#[test]
fn the_addresses_of_a_fresh_sync_are_those_of_its_service() {
    let (site, controller) = looked_after(APPLY);
    want(&site, "edge", &json!({"kube": {}}));
    site.sync().exits(0);
    server().give_ingress(&site.name, "edge", &["192.0.2.10"]);
    site.sync().exits(0);
    controller.settle();
    assert_eq!(addresses(&site), ["192.0.2.10"]);
    assert_eq!(site.get("service/edge")["spec"].get("loadBalancerIP"), None);
    site.sync().exits(0).says("no changes");
}

#[test]
fn a_plan_to_adopt_shows_marks_and_owners_only() {
    for shape in [json!({"kube": {}}), scaled()] {
        let (site, _controller) = to_be_adopted(&shape, AS_THEIRS);
        let run = site.run(&["plan", "--adopt", "--format", "json"]).exits(0);
        let changes = changes(&run);
        assert!(changes.iter().any(|(_, it)| it["path"] == "metadata.ownerReferences"), "{changes:?}");
        let others: Vec<&(String, Value)> = changes.iter().filter(|change| !is_about_ownership(change)).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

#[test]
fn adopting_moves_no_pod_no_uid_and_no_generation() {
    for shape in [json!({"kube": {}}), scaled()] {
        let (site, controller) = to_be_adopted(&shape, AS_THEIRS);
        let before = identities(server(), &site.name);
        assert!(before.keys().any(|key| key.starts_with("Pod/")), "{before:?}");
        site.run(&["adopt"]).exits(0);
        controller.settle();
        assert_eq!(identities(server(), &site.name), before);
        site.sync().exits(0).says("no changes");
    }
}

/// Whoever edits a class has its controller look at all Gateways of that class, in the middle of their adoption.
#[test]
fn a_class_and_parameters_are_marked_when_the_gateways_are_taken_over() {
    let (site, controller) = looked_after(APPLY);
    let class = format!("{}-class", site.name);
    let reference = Reference { name: "of-class", namespace: Some(&site.name) }.to_value();
    let spec = json!({"controllerName": "kgateway.dev/kgateway", "parametersRef": reference});
    let mut edge = gateway(&site.name, "edge", 8080);
    edge["spec"]["gatewayClassName"] = class.as_str().into();
    let documents = [
        document(VERSION, KIND, "of-class", Some(&site.name), &scaled()),
        document("gateway.networking.k8s.io/v1", "GatewayClass", &class, None, &spec),
        edge,
    ];
    create(&site, &documents);
    controller.settle();
    configure(&site, APPLY, AS_THEIRS);
    site.spec("edge", &documents.each_ref().map(Value::to_string).join("\n---\n"));
    let proxy = Proxy::start(site.server);
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    site.desk.run_with(&proxy.kubeconfig(), &["adopt", "--yes"]).exits(0);
    controller.settle();
    assert_eq!(controller.deletions(), []);
    let writes: Vec<Seen> = proxy.seen().into_iter().filter(Seen::is_write).collect();
    let at = |path: &str| writes.iter().position(|seen| seen.path.contains(path)).expect("it is written");
    let gateway = at(&format!("{}/gateways/edge", site.name));
    assert!(gateway < at("/gatewayclasses/"), "{writes:#?}");
    assert!(gateway < at("/gatewayparameters/of-class"), "{writes:#?}");
    server().kubectl_ok(&["delete", "gatewayclass", &class]);
}

#[test]
fn the_release_of_the_defaults_is_adopted_without_a_restart() {
    let (site, controller) = to_be_adopted(&json!({"kube": {}}), "{}");
    let before = identities(server(), &site.name);
    site.run(&["adopt"]).exits(0);
    controller.settle();
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=300s"]);
    assert_eq!(identities(server(), &site.name), before);
}

#[test]
fn replicas_that_only_the_live_parameters_say_stay() {
    let (site, controller) = to_be_adopted(&json!({"kube": {"deployment": {"replicas": 3}}}), AS_THEIRS);
    want(&site, "edge", &json!({"kube": {}}));
    let before = identities(server(), &site.name);
    let plan = site.run(&["plan", "--adopt"]);
    assert!(!plan.out.contains("spec.replicas: 3 -> 1"), "{}", plan.out);
    site.run(&["adopt"]);
    controller.settle();
    site.sync();
    assert_eq!(site.get("deployment/edge")["spec"]["replicas"], 3);
    assert_eq!(identities(server(), &site.name), before);
}

#[test]
fn what_a_check_takes_of_replicas_the_server_takes_too() {
    let (site, _controller) = looked_after(APPLY);
    let class = format!("{}-class", site.name);
    let parameters = Reference { name: "of-class", namespace: Some(&site.name) }.to_value();
    let spec = json!({"controllerName": "kgateway.dev/kgateway", "parametersRef": parameters});
    let of_class = json!({"kube": {"deployment": {"replicas": null}}});
    let documents = [
        document("gateway.networking.k8s.io/v1", "GatewayClass", &class, None, &spec),
        document(VERSION, KIND, "of-class", Some(&site.name), &of_class),
    ];
    site.spec("class", &documents.each_ref().map(Value::to_string).join("\n---\n"));
    let mut edge = gateway(&site.name, "edge", 8080);
    edge["spec"]["gatewayClassName"] = class.as_str().into();
    site.spec("edge", &edge.to_string());
    if site.run(&["check", "specs"]).code == 0 {
        site.sync().exits(0);
    }
    server().kubectl_ok(&["delete", "gatewayclass", &class, "--ignore-not-found"]);
}
