//! `specs: apply`: the specs themselves are written to the cluster, for the control plane that reads them there.

pub(crate) mod control_plane;

use serde_json::{Value, json};

use control_plane::{KIND, Reference, VERSION, document, gateway, server};

use crate::commands::obeys_the_schema;
use crate::ownership::site::Site;
use crate::support::kgateway::{Controller, Release};

const SETTINGS: &str = "specs: apply, prune: {maxDelete: {units: 9, percent: 100}}";

/// A class with parameters of its own, and a Gateway of the class that has some too.
fn write_specs(site: &Site, port: u16) {
    let class = format!("{}-class", site.name);
    let parameters = Reference { name: "of-class", namespace: Some(&site.name) }.to_value();
    let spec = json!({"controllerName": "kgateway.dev/kgateway", "parametersRef": parameters});
    let documents = [
        document("gateway.networking.k8s.io/v1", "GatewayClass", &class, None, &spec),
        document(VERSION, KIND, "of-class", Some(&site.name), &json!({"kube": {"service": {"type": "ClusterIP"}}})),
    ];
    site.spec("class", &documents.each_ref().map(Value::to_string).join("\n---\n"));
    let mut edge = gateway(&site.name, "edge", port);
    edge["spec"]["gatewayClassName"] = class.into();
    edge["spec"]["infrastructure"] = json!({"parametersRef": Reference { name: "own", namespace: None }.to_value()});
    let own = document(VERSION, KIND, "own", Some(&site.name), &json!({"kube": {"deployment": {"replicas": 2}}}));
    site.spec("edge", &format!("{edge}\n---\n{own}"));
}

fn class_of(site: &Site) -> Value {
    let class = format!("gatewayclass/{}-class", site.name);
    serde_json::from_str(&server().kubectl_ok(&["get", &class, "-o", "json"])).expect("kubectl prints JSON")
}

#[test]
fn specs_are_written_and_the_copy_of_a_gateway_is_self_managed() {
    let site = Site::on(server(), SETTINGS);
    write_specs(&site, 80);
    let note = format!(
        "its copy here is self-managed: GatewayParameters {}/edge-self-managed tells kgateway.dev/kgateway to make nothing for it",
        site.name
    );
    site.run(&["plan"]).exits(0).says(&note).says("8 objects to create");
    let json = site.run(&["plan", "--format", "json"]).exits(0);
    assert!(json.out.contains("its copy here is self-managed"), "{}", json.out);
    obeys_the_schema(&serde_json::from_str(&json.out).expect("it is JSON"));
    site.sync().exits(0).says(&note).says("8 objects created");
    let live = site.get("gateway/edge");
    assert_eq!(live["spec"]["infrastructure"]["parametersRef"]["name"], "edge-self-managed");
    assert_eq!(site.get("gatewayparameters/edge-self-managed")["spec"], json!({"selfManaged": {}}));
    assert_eq!(site.get("gatewayparameters/of-class")["spec"]["kube"]["service"]["type"], "ClusterIP");
    assert_eq!(class_of(&site)["spec"]["parametersRef"]["name"], "of-class");
    assert_eq!(site.get("deployment/edge")["spec"]["replicas"], 2, "the source keeps its own parameters");
    assert!(!server().kubectl(&["get", "gatewayparameters", "own", "-n", &site.name]).status.success());
    // By now its Service has an address.
    assert_eq!(live["spec"].get("addresses"), None);
    site.sync().exits(0).says("1 object updated");
    let cluster_ip = &site.get("service/edge")["spec"]["clusterIP"];
    assert_eq!(site.get("gateway/edge")["spec"]["addresses"], json!([{"type": "IPAddress", "value": cluster_ip}]));
    site.sync().exits(0).says("no changes, 8 objects up to date");

    write_specs(&site, 81);
    site.run(&["plan"]).exits(0).says("spec.listeners[http].port: 80 -> 81").says("3 objects to update");
    site.sync().exits(0).says("3 objects updated");

    // What stands in the source is not deleted because of a setting, nor what it needs.
    site.configure(&site.name, &SETTINGS.replace("apply", "render"));
    let kept = "4 objects kept";
    site.sync().exits(0).says("the sync does not write it any more").says("no changes").says(kept);
    site.configure(&site.name, SETTINGS);
    site.sync().exits(0).says("no changes, 8 objects up to date");
}

#[test]
fn specs_are_deleted_after_what_was_rendered_for_them() {
    let site = Site::on(server(), SETTINGS);
    write_specs(&site, 80);
    site.want(&["other"], 80);
    site.sync().exits(0).says("14 objects created");
    site.drop(&["edge", "class"]);
    let plan = site.run(&["plan"]).exits(0).says("8 objects to prune");
    let order: Vec<&str> =
        plan.out.lines().filter_map(|line| line.trim().strip_prefix("- prune ")?.split(' ').next()).collect();
    let expected = ["Deployment", "Service", "ConfigMap", "ServiceAccount", "Gateway", KIND, "GatewayClass", KIND];
    assert_eq!(order, expected);
    site.sync().exits(0).says("8 objects deleted");
    site.sync().exits(0).says("no changes, 6 objects up to date");
}

#[test]
fn a_gateway_is_healthy_when_its_control_plane_accepts_it() {
    let site = Site::on(server(), "specs: apply, wait: {timeout: 1s}");
    let mut edge = gateway(&site.name, "edge", 80);
    edge["spec"]["infrastructure"] = json!({"parametersRef": Reference { name: "none", namespace: None }.to_value()});
    let none = document(VERSION, KIND, "none", Some(&site.name), &json!({"selfManaged": {}}));
    site.spec("edge", &format!("{edge}\n---\n{none}"));
    site.sync().exits(1).says("2 objects created").says("no control plane has accepted it yet");
    assert_eq!(site.get("gateway/edge")["spec"]["infrastructure"]["parametersRef"]["name"], "none");
    let _controller = Controller::start(server(), Release::kgateway("v2.4.0"), &[&site.name]);
    site.sync().exits(0).says("no changes, 2 objects up to date");
}
