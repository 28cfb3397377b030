//! The stand-in for agentgateway's controller: it deletes more kinds, and only what belongs to the Gateway.

use serde_json::json;

use crate::ownership::site::Site;
use crate::specs::control_plane::{document, gateway, server};
use crate::support::kgateway::{Controller, Release, identities};

#[test]
fn what_belongs_to_the_gateway_and_is_not_rendered_goes_and_nothing_else() {
    let site = Site::on(server(), "");
    let controller = Controller::start(server(), Release::agentgateway("v1.5.0"), &[&site.name]);
    let group = "agentgateway.dev";
    let parameters =
        |spec| document("agentgateway.dev/v1alpha1", "AgentgatewayParameters", "edge", Some(&site.name), spec);
    site.create(&parameters(&json!({"podDisruptionBudget": {"spec": {"minAvailable": 1}}})));
    let mut edge = gateway(&site.name, "edge", 8080);
    edge["spec"]["gatewayClassName"] = "agentgateway".into();
    let reference = json!({"group": group, "kind": "AgentgatewayParameters", "name": "edge"});
    edge["spec"]["infrastructure"] = json!({"parametersRef": reference});
    site.create(&edge);
    controller.settle();
    let first = identities(server(), &site.name);
    for key in ["Deployment/edge", "Service/edge", "PodDisruptionBudget/edge", "Secret/edge-session-key"] {
        assert!(first.contains_key(key), "{first:?}");
    }
    let owner = site.get("deployment/edge")["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["controller"], true);

    // The same label on another's budget says nothing.
    let labels = json!({"gateway.networking.k8s.io/gateway-name": "edge"});
    let mut other = document("policy/v1", "PodDisruptionBudget", "other", None, &json!({"minAvailable": 1}));
    other["metadata"]["labels"] = labels;
    site.create(&other);
    controller.settle();
    assert_eq!(controller.deletions(), []);

    // A proxy on every node in place of a Deployment, and no budget any more.
    let patch = json!([{"op": "replace", "path": "/spec", "value": {"workload": {"kind": "DaemonSet"}}}]).to_string();
    site.kubectl(&["patch", "agentgatewayparameters/edge", "--type=json", "-p", &patch]);
    controller.settle();
    let ids: Vec<String> = controller.deletions().into_iter().map(|deletion| deletion.id).collect();
    assert_eq!(ids, [format!("Deployment {}/edge", site.name), format!("PodDisruptionBudget {}/edge", site.name)]);
    let last = identities(server(), &site.name);
    assert!(last.contains_key("DaemonSet/edge") && last.contains_key("PodDisruptionBudget/other"), "{last:?}");
    assert_eq!(last["Secret/edge-session-key"], first["Secret/edge-session-key"], "a key that was made stays");
}
