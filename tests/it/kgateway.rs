//! Beside the controller of kgateway: what the stand-in for it does, and that we get on with that.

mod agentgateway;
mod fleet;
mod import;
mod promises;
mod prunes;
mod release;
mod reports;
pub(crate) mod road;
mod triggers;
mod writes;

use serde_json::{Value, json};

use crate::ownership::site::Site;
use crate::specs::control_plane::{KIND, Reference, VERSION, document, gateway, server};
use crate::support::kgateway::{Controller, Release};

/// The parameters of people who scale their proxies.
fn scaled() -> Value {
    json!({"kube": {
        "deployment": {"replicas": 2},
        "podDisruptionBudget": {"spec": {"minAvailable": 1}},
        "horizontalPodAutoscaler": {"spec": {"minReplicas": 2, "maxReplicas": 5}},
        "verticalPodAutoscaler": {"spec": {"updatePolicy": {"updateMode": "Off"}}},
    }})
}

/// A Gateway with parameters of its own.
pub(crate) fn with_parameters(site: &Site, name: &str, parameters: &Value) -> [Value; 2] {
    let mut gateway = gateway(&site.name, name, 8080);
    gateway["spec"]["infrastructure"] = json!({"parametersRef": Reference { name, namespace: None }.to_value()});
    [document(VERSION, KIND, name, Some(&site.name), parameters), gateway]
}

fn create(site: &Site, objects: &[Value]) {
    for object in objects {
        site.create(object);
    }
}

/// A namespace that a release of kgateway looks after.
fn looked_after(settings: &str) -> (Site, Controller) {
    let site = Site::on(server(), settings);
    let controller = Controller::start(server(), Release::kgateway("v2.4.0"), &[&site.name]);
    (site, controller)
}

/// A namespace with a Gateway that a release of kgateway has deployed.
fn deployed(parameters: &Value) -> (Site, Controller) {
    let (site, controller) = looked_after("");
    create(&site, &with_parameters(&site, "edge", parameters));
    controller.settle();
    (site, controller)
}

/// Has a release of kgateway deploy a Gateway in a namespace.
fn deployed_on(site: &Site, parameters: &Value) -> Controller {
    let controller = Controller::start(server(), Release::kgateway("v2.4.0"), &[&site.name]);
    create(site, &with_parameters(site, "edge", parameters));
    controller.settle();
    controller
}

/// Says in the cluster, as a person would, that a Gateway is provisioned by somebody else.
fn set_self_managed(site: &Site, name: &str) {
    site.kubectl(&[
        "patch",
        &format!("gatewayparameters/{name}"),
        "--type=json",
        "-p",
        r#"[{"op": "replace", "path": "/spec", "value": {"selfManaged": {}}}]"#,
    ]);
}
