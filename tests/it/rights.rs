//! Rights of proxies, on a real API server.

use crate::cluster::{shared, unique};
use crate::errors::{desk, gateway, kubeconfig};

/// How often kubectl asks for rights that are on their way; it takes a while for each answer.
const TRIES: usize = 200;

#[test]
fn rights_of_a_proxy_come_and_go_with_the_setting() {
    let (server, namespace, sync) = (shared(), unique("rights"), unique("rights"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    let config = desk.read("gatewright.yaml");
    let account = format!("system:serviceaccount:{namespace}:a");
    let may = |verb: &str, what: &str| {
        let output = server.kubectl(&["auth", "can-i", verb, what, "--all-namespaces", "--as", &account]);
        output.status.success()
    };
    let role = format!("clusterrole/kgateway-proxy.{namespace}.a");
    let binding = format!("clusterrolebinding/kgateway-proxy.{namespace}.a");

    desk.run(&["sync"]).exits(0).says("4 objects created");
    assert!(!may("list", "services"), "it has rights that nobody gave");

    desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {{rbac: {{enabled: true}}}}}}\n"));
    let run = desk.run(&["sync"]).exits(0);
    run.says("2 objects created").says(&format!("+ create ClusterRole kgateway-proxy.{namespace}.a"));
    server.kubectl_ok(&["get", &role, &binding]);
    // The authorizer hears of new rights a moment later.
    let arrived = (0..TRIES).any(|_| may("watch", "endpointslices.discovery.k8s.io"));
    assert!(arrived, "the rights do not arrive");
    assert!(may("list", "services") && !may("get", "secrets") && !may("create", "services"));
    desk.run(&["sync"]).exits(0).says("no changes, 6 objects up to date");

    desk.write("gatewright.yaml", &config);
    desk.run(&["sync"]).exits(0).says("2 objects deleted");
    assert!(!server.kubectl(&["get", &role]).status.success() && !server.kubectl(&["get", &binding]).status.success());
}
