//! An object that was deleted to be made again, and could be neither made nor put back: an undo brings it back.

use crate::cluster::ApiServer;
use crate::errors::{desk, kubeconfig};

const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: infra}\n\
                      immutable: true\ndata: {a: first}\n";

/// Nobody may make an object of that name. A dry run is of another name.
const POLICY: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "none"},
   "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
     "resources": ["configmaps"]}]}, "validations": [{"expression": "object.metadata.name != 'settings'"}]}},
  {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "none"},
   "spec": {"policyName": "none", "validationActions": ["Deny"]}}]}"#;

/// Waits until an object of that name can be made, or cannot.
fn wait_until(server: &ApiServer, can: bool) {
    let ask = ["create", "configmap", "settings", "-n", "default", "--dry-run=server"];
    let has_come = (0..600).any(|_| server.kubectl(&ask).status.success() == can);
    assert!(has_come, "the policy does not come into force, or stays there");
}

#[test]
fn what_could_not_be_made_again_comes_back_by_an_undo() {
    let server = ApiServer::start();
    let desk = desk("edge", &[("c", kubeconfig(&server.kubeconfig("admin"), ""))]);
    let settings = "createNamespaces: true\n    unclaimed: apply\n    recreate: {kinds: [ConfigMap]}";
    desk.replace("gatewright.yaml", "createNamespaces: true", settings);
    desk.write("specs/settings.yaml", OBJECT);
    desk.run(&["sync"]).exits(0);
    server.kubectl_stdin(&["create", "-f", "-"], POLICY);
    wait_until(&server, false);
    desk.replace("specs/settings.yaml", "first", "second");
    desk.run(&["sync"]).exits(1).says("could not be put back, which `gatewright undo` can do later");
    let get = ["get", "configmap", "settings", "-n", "infra", "-o", "jsonpath={.data.a}"];
    assert!(!server.kubectl(&get).status.success(), "it is gone");

    server.kubectl_ok(&["delete", "validatingadmissionpolicybinding", "none"]);
    wait_until(&server, true);
    let rounds = desk.run(&["undo"]).exits(0);
    let run = rounds.out.lines().next().and_then(|line| line.split_whitespace().last()).expect("it lists the round");
    desk.run(&["undo", run]).exits(0);
    assert_eq!(server.kubectl_ok(&get), "first");
}
