//! Its reports of a Gateway: conditions of each generation, and the addresses of the Service that it renders.

use serde_json::{Value, json};

use super::{deployed, set_self_managed, with_parameters};
use crate::specs::control_plane::server;
use crate::support::kgateway::Addresses;

fn addresses(gateway: &Value) -> Vec<&str> {
    let all = gateway["status"]["addresses"].as_array().into_iter().flatten();
    all.filter_map(|address| address["value"].as_str()).collect()
}

#[test]
fn addresses_are_those_of_the_service_that_it_renders() {
    let (site, controller) = deployed(&json!({"kube": {}}));
    assert_eq!(addresses(&site.get("gateway/edge")), [""; 0], "no cloud has given any yet");
    server().give_ingress(&site.name, "edge", &["192.0.2.10", "192.0.2.11"]);
    controller.settle();
    assert_eq!(addresses(&site.get("gateway/edge")), ["192.0.2.10", "192.0.2.11"]);

    // Nobody renders a Service any more: what is there still works, and its address is gone.
    let watch = Addresses::watch(server(), &site.name, "edge");
    set_self_managed(&site, "edge");
    controller.settle();
    let (before, after) = (vec!["192.0.2.10".to_owned(), "192.0.2.11".to_owned()], Vec::new());
    assert_eq!(watch.seen(), [before, after]);
    assert_eq!(site.get("service/edge")["status"]["loadBalancer"]["ingress"][0]["ip"], "192.0.2.10");

    // It says what the Gateway asks for.
    let patch = r#"{"spec": {"addresses": [{"value": "192.0.2.10"}]}}"#;
    site.kubectl(&["patch", "gateway/edge", "--type=merge", "-p", patch]);
    controller.settle();
    assert_eq!(addresses(&site.get("gateway/edge")), ["192.0.2.10"]);
}

#[test]
fn a_service_within_the_cluster_has_its_own_address_before_those_that_were_asked_for() {
    let (site, controller) = deployed(&json!({"kube": {"service": {"type": "ClusterIP"}}}));
    let patch = r#"{"spec": {"addresses": [{"type": "Hostname", "value": "edge.example.com"}]}}"#;
    site.kubectl(&["patch", "gateway/edge", "--type=merge", "-p", patch]);
    controller.settle();
    let ip = site.get("service/edge")["spec"]["clusterIP"].clone();
    let gateway = site.get("gateway/edge");
    assert_eq!(addresses(&gateway), [ip.as_str().expect("it has an address"), "edge.example.com"]);
    assert_eq!(gateway["status"]["addresses"][1]["type"], "Hostname");
}

/// Returns type, status, generation and time of what it says.
fn conditions(gateway: &Value) -> Vec<(String, String, i64, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |it: &Value| {
        let generation = it["observedGeneration"].as_i64().unwrap_or_default();
        (text(&it["type"]), text(&it["status"]), generation, text(&it["lastTransitionTime"]))
    };
    gateway["status"]["conditions"].as_array().into_iter().flatten().map(of).collect()
}

#[test]
fn conditions_come_for_self_managed_gateways_as_for_others() {
    let (site, controller) = deployed(&json!({"kube": {}}));
    let first = conditions(&site.get("gateway/edge"));
    let types: Vec<&str> = first.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(types, ["Accepted", "Programmed", "ResolvedRefs"]);
    assert!(first.iter().all(|(_, status, generation, _)| status == "True" && *generation == 1), "{first:?}");

    // The time is that of a change, and another generation is none. It is written to the second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    set_self_managed(&site, "edge");
    let patch = r#"{"spec": {"addresses": [{"value": "192.0.2.10"}]}}"#;
    site.kubectl(&["patch", "gateway/edge", "--type=merge", "-p", patch]);
    controller.settle();
    let of_generation = |generation: i64| {
        let with = |(kind, status, _, time): &(String, String, i64, String)| {
            (kind.clone(), status.clone(), generation, time.clone())
        };
        first.iter().map(with).collect::<Vec<_>>()
    };
    assert_eq!(conditions(&site.get("gateway/edge")), of_generation(2));

    // Nothing is said of pods: of one that was never there it is content.
    site.kubectl(&["delete", "deployment/edge"]);
    controller.settle();
    assert_eq!(conditions(&site.get("gateway/edge")), of_generation(2));
}

#[test]
fn parameters_that_cannot_be_used_are_told_and_change_nothing() {
    let (site, controller) = deployed(&json!({"kube": {}}));
    let before = site.versions();
    let patch = r#"{"spec": {"infrastructure": {"parametersRef": {"name": "none"}}}}"#;
    site.kubectl(&["patch", "gateway/edge", "--type=merge", "-p", patch]);
    controller.reconcile_all();
    let gateway = site.get("gateway/edge");
    let accepted = &gateway["status"]["conditions"][0];
    let said = (&accepted["type"], &accepted["status"], &accepted["reason"]);
    assert_eq!(said, (&json!("Accepted"), &json!("False"), &json!("InvalidParameters")));
    assert_eq!(site.left_of("edge").len(), 4);
    assert_eq!(site.versions().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());

    // It tries again and again, and is content as soon as it can be.
    let [none, _] = with_parameters(&site, "none", &json!({"kube": {}}));
    site.create(&none);
    controller.settle();
    assert_eq!(site.get("gateway/edge")["status"]["conditions"][0]["status"], "True");
}
