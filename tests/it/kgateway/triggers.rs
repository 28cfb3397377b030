//! The changes that make it look at a Gateway again.

use serde_json::json;

use super::{create, deployed, looked_after, set_self_managed, with_parameters};
use crate::ownership::site::Site;
use crate::pickers::wait_until;
use crate::specs::control_plane::{Reference, document, gateway, server};
use crate::support::kgateway::Controller;

/// Does something and waits until the Gateway was reconciled for it.
fn causes_a_reconcile(what: &str, site: &Site, controller: &Controller, act: impl FnOnce()) {
    controller.settle();
    let before = controller.reconciles(&site.name, "edge");
    act();
    wait_until(what, || controller.reconciles(&site.name, "edge") > before);
}

#[test]
fn changes_to_a_gateway_to_what_it_refers_to_and_to_its_children_do() {
    let (site, controller) = deployed(&json!({"kube": {}}));
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=300s"]);
    let patch = |what: &str, patch: &str| drop(site.kubectl(&["patch", what, "--type=merge", "-p", patch]));
    let causes = |what: &str, act: &dyn Fn()| causes_a_reconcile(what, &site, &controller, act);
    causes("a change of its parameters", &|| {
        patch("gatewayparameters/edge", r#"{"spec": {"kube": {"deployment": {"replicas": 2}}}}"#);
    });
    assert_eq!(site.get("deployment/edge")["spec"]["replicas"], 2);
    causes("an annotation of the Gateway", &|| patch("gateway/edge", r#"{"metadata": {"annotations": {"a": "b"}}}"#));
    for child in ["serviceaccount/edge", "configmap/edge", "service/edge", "deployment/edge"] {
        causes(child, &|| patch(child, r#"{"metadata": {"annotations": {"by": "hand"}}}"#));
    }
    let port = json!({"name": "more", "port": 9090, "protocol": "HTTP"});
    let spec = json!({"parentRef": {"name": "edge"}, "listeners": [port]});
    let set = document("gateway.networking.k8s.io/v1", "ListenerSet", "more", Some(&site.name), &spec);
    causes("a ListenerSet", &|| site.create(&set));
    controller.settle();
    assert_eq!(site.get("service/edge")["spec"]["ports"][1]["port"], 9090);

    // What is deleted is back at once, and what somebody else has set is its own again.
    causes("a child that is gone", &|| drop(site.kubectl(&["delete", "service/edge"])));
    controller.settle();
    assert_eq!(site.get("service/edge")["spec"]["ports"][0]["port"], 8080);
    causes("a field of its own", &|| patch("deployment/edge", r#"{"spec": {"replicas": 7}}"#));
    controller.settle();
    assert_eq!(site.get("deployment/edge")["spec"]["replicas"], 2);
    assert_eq!(controller.failures(), [""; 0]);
}

#[test]
fn a_status_and_what_does_not_belong_to_the_gateway_do_not() {
    let (site, controller) = deployed(&json!({"kube": {}}));
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=300s"]);
    set_self_managed(&site, "edge");
    for child in ["serviceaccount/edge", "configmap/edge", "service/edge", "deployment/edge"] {
        let patch = r#"[{"op": "remove", "path": "/metadata/ownerReferences"}]"#;
        site.kubectl(&["patch", child, "--type=json", "-p", patch]);
    }
    controller.settle();
    let before = controller.reconciles(&site.name, "edge");
    let status = r#"{"status": {"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]}}"#;
    site.kubectl(&["patch", "gateway/edge", "--subresource=status", "--type=merge", "-p", status]);
    site.kubectl(&["label", "service/edge", "by=hand"]);
    site.kubectl(&["delete", "deployment/edge"]);
    // Another Gateway that comes after all that is behind it in the queue.
    site.create(&gateway(&site.name, "later", 80));
    wait_until("a reconcile of another Gateway", || controller.reconciles(&site.name, "later") > 0);
    assert_eq!(controller.reconciles(&site.name, "edge"), before);
}

#[test]
fn a_class_that_says_something_else_does() {
    let (site, controller) = looked_after("");
    let class = format!("{}-class", site.name);
    let parameters = Reference { name: "edge", namespace: Some(&site.name) }.to_value();
    let [own, mut edge] = with_parameters(&site, "edge", &json!({"kube": {"deployment": {"replicas": 3}}}));
    edge["spec"]["gatewayClassName"] = class.as_str().into();
    edge["spec"].as_object_mut().expect("it is one").remove("infrastructure");
    site.create(&document(
        "gateway.networking.k8s.io/v1",
        "GatewayClass",
        &class,
        None,
        &json!({
            "controllerName": "kgateway.dev/kgateway",
        }),
    ));
    create(&site, &[own, edge]);
    causes_a_reconcile("a class with parameters", &site, &controller, || {
        let patch = json!({"spec": {"parametersRef": parameters}}).to_string();
        server().kubectl_ok(&["patch", "gatewayclass", &class, "--type=merge", "-p", &patch]);
    });
    controller.settle();
    assert_eq!(site.get("deployment/edge")["spec"]["replicas"], 3);
    causes_a_reconcile("parameters of the class", &site, &controller, || {
        let patch = r#"{"spec": {"kube": {"deployment": {"replicas": 4}}}}"#;
        site.kubectl(&["patch", "gatewayparameters/edge", "--type=merge", "-p", patch]);
    });
    server().kubectl_ok(&["delete", "gatewayclass", &class]);
}
