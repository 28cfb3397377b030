//! Its writes: as the release that it is, in its own layout, and owned by the Gateway.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::{create, deployed, looked_after, with_parameters};
use crate::ownership::site::Site;
use crate::specs::control_plane::{KIND, MANAGER, VERSION, document, server};
use crate::support::kgateway::{Controller, Release};

/// Returns what our program renders for the same Gateway, as the settings say that follow.
fn rendered(site: &Site, settings: &str) -> Vec<Value> {
    let [own, edge] = with_parameters(site, "edge", &json!({"kube": {}}));
    site.spec("edge", &format!("{own}\n---\n{edge}"));
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {settings}}}\n"));
    yaml::parse_values(&site.run(&["render", "specs"]).exits(0).out).expect("what is rendered is YAML")
}

#[test]
fn objects_are_those_of_its_release_and_of_the_gateway() {
    let (site, _controller) = deployed(&json!({"kube": {}}));
    let gateway = site.get("gateway/edge");
    for kind in ["serviceaccount", "configmap", "service", "deployment"] {
        let object = site.get(&format!("{kind}/edge"));
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&gateway["metadata"]["uid"], &json!(true)), "{kind}");
        let entry = &object["metadata"]["managedFields"][0];
        assert_eq!((&entry["manager"], &entry["operation"]), (&json!(MANAGER), &json!("Apply")), "{kind}");
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/version"], "v2.4.0");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "kgateway");
    }
    let container = &site.get("deployment/edge")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "cr.kgateway.dev/envoy-wrapper:v2.4.0");
    let env = container["env"].as_array().expect("it has variables");
    let otel = env.iter().find(|it| it["name"] == "OTEL_RESOURCE_ATTRIBUTES").expect("it has this one");
    assert!(otel["value"].as_str().is_some_and(|value| value.contains("service.version=v2.4.0,")), "{otel}");
}

#[test]
fn a_build_that_was_not_released_has_the_version_that_it_was_linked_with() {
    let site = Site::on(server(), "");
    create(&site, &with_parameters(&site, "edge", &json!({"kube": {}})));
    let mut release = Release::kgateway("1.0.0-ci1");
    release.settings["image"]["registry"] = "registry.example".into();
    let controller = Controller::start(server(), release, &[&site.name]);
    controller.settle();
    let live = site.get("deployment/edge");
    assert_eq!(live["metadata"]["labels"]["app.kubernetes.io/version"], "1.0.0-ci1");
    let image = &live["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, "registry.example/envoy-wrapper:1.0.0-ci1");
}

/// Two texts that nobody would call equal, and that say the same.
#[test]
fn documents_in_a_config_map_are_laid_out_otherwise_and_mean_the_same() {
    let (site, _controller) = deployed(&json!({"kube": {}}));
    let ours = rendered(&site, "{managedBy: kgateway, version: v2.4.0}");
    let ours = ours.iter().find(|object| object["kind"] == "ConfigMap").expect("there is one");
    let theirs = site.get("configmap/edge");
    let keys = ["envoy.yaml", "xds_service_account_token.json"];
    assert_eq!(theirs["data"].as_object().expect("it has data").keys().collect::<Vec<_>>(), keys);
    for key in keys {
        let text = |object: &Value| object["data"][key].as_str().expect("it is a text").to_owned();
        assert_ne!(text(&theirs), text(ours), "{key}");
        let parsed = |object: &Value| yaml::parse_values(&text(object)).expect("it is a document");
        assert_eq!(parsed(&theirs), parsed(ours), "{key}");
    }
    let lines = theirs["data"]["envoy.yaml"].as_str().expect("it is a text").lines().collect::<Vec<_>>();
    let tops: Vec<&&str> = lines.iter().filter(|line| !line.starts_with([' ', '-'])).collect();
    assert!(tops.is_sorted(), "{tops:?}");
    assert!(lines.iter().all(|line| !line.contains("{ ") && !line.contains("[\"")), "no flow style");
}

#[test]
fn replicas_are_a_number() {
    let (site, _controller) = looked_after("");
    let refused = |replicas: Value| {
        let spec = json!({"kube": {"deployment": {"replicas": replicas}}});
        site.desk.write("own.json", &document(VERSION, KIND, "own", Some(&site.name), &spec).to_string());
        let file = site.desk.path("own.json").display().to_string();
        let apply = ["apply", "--server-side", "--validate=false", "-f", &file];
        let output = server().kubectl(&apply);
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let message = refused(Value::Null).expect("null is no number");
    assert!(message.contains("spec.kube.deployment.replicas"), "{message}");
    assert!(refused(json!("two")).is_some());
    assert_eq!(refused(json!(0)), None);
}

#[test]
fn a_service_of_somebody_else_is_not_applied_over() {
    let (site, controller) = looked_after("");
    let port = json!({"port": 80, "protocol": "TCP"});
    site.create(&document("v1", "Service", "edge", Some(&site.name), &json!({"ports": [port]})));
    create(&site, &with_parameters(&site, "edge", &json!({"kube": {}})));
    controller.reconcile_all();
    let failures = controller.failures();
    assert!(
        failures.iter().any(|it| it.contains("refusing to apply") && it.contains("/services/edge")),
        "{failures:?}"
    );
    assert_eq!(site.left_of("edge"), ["ConfigMap", "Service", "ServiceAccount"]);
}
