//! Clusters of Open Cluster Management and of Rancher Fleet, whose Secrets other objects of the management cluster lead to.

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster_secrets::{is_kept, kubeconfig, namespace, put};
use crate::clusters::clusters;
use crate::errors::gateway;
use crate::program::Desk;

/// The smallest definition of a kind, in place of that of the product.
fn define(management: &ApiServer, (group, version, kind): (&str, &str, &str), plural: &str, scope: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope, "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    put(management, &definition);
    management.await_kind(&format!("{plural}.{group}"));
}

/// The contents of the kubeconfig of a server: its address, its authority, and the token of an administrator.
fn known(server: &ApiServer) -> (String, String, String) {
    let known: Value = serde_json::from_str(&kubeconfig(server, "admin")).expect("kubeconfigs of tests are JSON");
    let authority = known["clusters"][0]["cluster"]["certificate-authority-data"].as_str().expect("it has one");
    (server.url(), authority.to_owned(), server.token("admin"))
}

/// A desk with an entry of `clusterSecrets`, and a sync on what has the label `region=eu`.
fn desk(management: &ApiServer, user: &str, entry: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs}}}}}}\nclusterSecrets:\n  \
             hub: {{kubeconfig: {{path: {}}}, {entry}}}\n\
             syncs: {{edge: {{source: specs, clusters: {{matchLabels: {{region: eu}}}}, createNamespaces: true, \
             wait: {{enabled: false}}}}}}\n",
            management.kubeconfig(user).display()
        ),
    );
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk
}

fn names(found: &Value) -> Vec<&str> {
    found.as_object().expect("they are by name").keys().map(String::as_str).collect()
}

/// A `ManagedCluster`, as the registration of Open Cluster Management leaves it.
fn managed(name: &str, labels: &Value, configs: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": configs},
    })
}

/// The Secret that the add-on keeps for a `ManagedServiceAccount`.
fn account(cluster: &str, name: &str, (_, authority, token): &(String, String, String)) -> Value {
    let token = json!({"token": token});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": token, "data": {"ca.crt": authority},
        "metadata": {
            "namespace": cluster, "name": name,
            "labels": {"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
        },
    })
}

#[test]
fn a_managed_cluster_with_a_managed_service_account_is_a_cluster() {
    let fleet = ApiServer::fleet(&["hub", "eu", "us"]);
    let hub = &fleet[0];
    define(hub, ("cluster.open-cluster-management.io", "v1", "ManagedCluster"), "managedclusters", "Cluster");
    let (eu, us) = (known(&fleet[1]), known(&fleet[2]));
    let region = json!({"region": "eu", "cluster.open-cluster-management.io/clusterset": "gateways"});
    for name in ["eu-1", "eu-2", "eu-3", "us-1"] {
        namespace(hub, name);
    }
    // One names its authority, one leaves that to the Secret, one has no address, and one is not for us.
    put(hub, &managed("eu-1", &region, &json!([{"url": eu.0, "caBundle": eu.1}])));
    put(hub, &managed("eu-2", &region, &json!([{"url": us.0}])));
    put(hub, &managed("eu-3", &region, &json!([])));
    put(hub, &managed("us-1", &json!({"region": "us"}), &json!([{"url": us.0}])));
    put(hub, &account("eu-1", "gatewright", &eu));
    put(hub, &account("eu-2", "gatewright", &us));
    put(hub, &account("eu-3", "gatewright", &us));
    put(hub, &account("us-1", "backup", &us));

    let entry = "format: open-cluster-management, managedServiceAccount: gatewright";
    let desk = desk(hub, "admin", entry);
    let run = desk.run(&["sync"]).exits(1).says("on 2 of 3 clusters").says("cluster eu-3");
    run.says("Secret eu-3/gatewright of clusterSecrets.hub: its ManagedCluster has no managedClusterClientConfigs")
        .says("cluster-proxy");
    let found = clusters(&desk, 1, &["--timeout", "30s"]);
    assert_eq!(names(&found), ["eu-1", "eu-2", "eu-3"]);
    assert_eq!((&found["eu-1"]["state"], &found["eu-1"]["labels"]), (&json!("reachable"), &region));
    assert_eq!(found["eu-2"]["state"], "reachable");
    for server in &fleet[1..] {
        server.kubectl_ok(&["get", "deployment", "-n", "infra", "a"]);
    }
    assert!(!is_kept(&desk.path("state")), "nothing of a Secret is on the disk");

    // Labels of the ManagedCluster choose, and a token that is rotated counts at once.
    put(hub, &account("eu-1", "gatewright", &(eu.0.clone(), eu.1.clone(), "no-more".to_owned())));
    desk.replace(
        "gatewright.yaml",
        entry,
        &format!("{entry}, matchExpressions: [{{key: region, operator: In, values: [eu]}}]"),
    );
    let found = clusters(&desk, 1, &["--timeout", "30s"]);
    assert_eq!((names(&found).len(), &found["eu-1"]["state"]), (3, &json!("refused")));
    put(hub, &account("eu-1", "gatewright", &eu));
    assert_eq!(clusters(&desk, 1, &["--timeout", "30s"])["eu-1"]["state"], "reachable");

    // Without the account's name, or with one for whom there is no Secret, it is no list.
    desk.replace("gatewright.yaml", "managedServiceAccount: gatewright", "managedServiceAccount: gatewrihgt");
    desk.run(&["plan"]).exits(64).complains("clusterSecrets.hub: no Secret there is a cluster");
    desk.replace("gatewright.yaml", ", managedServiceAccount: gatewrihgt", "");
    desk.run(&["config", "check"])
        .exits(64)
        .complains("gatewright.yaml:4: clusterSecrets \"hub\" has no managedServiceAccount");
}

/// A `Cluster` of Fleet whose Secret is `secret`, in `place` if that is not its own namespace.
fn registered(name: &str, labels: &Value, secret: &str, place: Option<&str>) -> Value {
    json!({
        "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster",
        "metadata": {"namespace": "fleet-default", "name": name, "labels": labels},
        "spec": {"kubeConfigSecret": secret, "kubeConfigSecretNamespace": place.unwrap_or_default()},
    })
}

fn secret(place: &str, name: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": place, "name": name},
        "stringData": {"value": kubeconfig, "apiServerURL": "https://rancher.example.com"},
    })
}

#[test]
fn a_cluster_of_fleet_with_a_kubeconfig_is_a_cluster() {
    let fleet = ApiServer::fleet(&["hub", "eu", "us"]);
    let hub = &fleet[0];
    let desk = desk(hub, "nobody", "format: fleet");
    define(hub, ("fleet.cattle.io", "v1alpha1", "Cluster"), "clusters", "Namespaced");
    let region = json!({"region": "eu"});
    namespace(hub, "fleet-default");
    namespace(hub, "keys");
    put(hub, &registered("eu-1", &region, "eu-1-kubeconfig", None));
    put(hub, &secret("fleet-default", "eu-1-kubeconfig", &kubeconfig(&fleet[1], "admin")));
    put(hub, &registered("eu-2", &region, "two", Some("keys")));
    put(hub, &secret("keys", "two", &kubeconfig(&fleet[2], "admin")));
    put(hub, &registered("eu-3", &region, "lost", None));
    // Its agent has registered itself.
    put(hub, &registered("eu-4", &region, "", None));

    // Who may not list the clusters, or read one of the Secrets, has no list.
    let run = desk.run(&["plan"]).exits(1);
    run.complains("cannot read the clusters of clusterSecrets.hub: cannot list the Clusters of Fleet")
        .complains("grant the right to list clusters.fleet.cattle.io in namespace \"fleet-default\"");
    let rights = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: hub}\nrules:\n\
                  - {apiGroups: [fleet.cattle.io], resources: [clusters], verbs: [list]}\n\
                  - {apiGroups: [\"\"], resources: [secrets], resourceNames: [eu-1-kubeconfig, lost], verbs: [get]}\n---\n\
                  apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: hub}\n\
                  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hub}\n\
                  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nobody}]\n";
    hub.kubectl_stdin(&["apply", "-f", "-"], rights);
    // The authorizer hears of rights a moment later.
    let says = "cannot read Secret keys/two";
    assert!((0..100).any(|_| desk.run(&["plan"]).err.contains(says)), "{}", desk.run(&["plan"]).err);
    desk.run(&["plan"]).exits(1).complains("grant the right to get secrets in namespace \"keys\"");
    hub.kubectl_stdin(&["apply", "-f", "-"], &rights.replace("lost]", "lost, two]"));
    assert!((0..100).any(|_| !desk.run(&["plan"]).err.contains(says)), "{}", desk.run(&["plan"]).err);

    let run = desk.run(&["sync"]).exits(1).says("on 2 of 3 clusters");
    run.says("Secret fleet-default/lost of clusterSecrets.hub: it is not there").says("kubeConfigSecret");
    let found = clusters(&desk, 1, &["--timeout", "30s"]);
    assert_eq!(names(&found), ["eu-1", "eu-2", "eu-3"]);
    assert_eq!((&found["eu-2"]["state"], &found["eu-2"]["labels"]), (&json!("reachable"), &region));
    for server in &fleet[1..] {
        server.kubectl_ok(&["get", "deployment", "-n", "infra", "a"]);
    }
    assert!(!is_kept(&desk.path("state")), "nothing of a Secret is on the disk");
}

#[test]
fn a_management_cluster_without_the_product_says_so() {
    let server = ApiServer::start();
    namespace(&server, "fleet-default");
    let desk = desk(&server, "admin", "format: fleet");
    let run = desk.run(&["plan"]).exits(1);
    run.complains("cannot list the Clusters of Fleet").complains("this management cluster has no Fleet");
    desk.replace("gatewright.yaml", "format: fleet", "format: open-cluster-management, managedServiceAccount: a");
    let run = desk.run(&["plan"]).exits(1);
    run.complains("cannot list the ManagedClusters")
        .complains("this management cluster has no Open Cluster Management");
    desk.replace("gatewright.yaml", "format: open-cluster-management", "format: argo-cd");
    desk.run(&["config", "check"])
        .exits(64)
        .complains("only format: open-cluster-management has a managedServiceAccount");
}
