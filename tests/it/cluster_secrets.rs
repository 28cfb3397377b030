//! Secrets of a management cluster that are clusters, in the forms of Cluster API and of Argo CD.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::audit::Audited;
use crate::clusters::clusters;
use crate::errors::gateway;
use crate::program::{Desk, Run};

/// The beginning of every token of a test cluster, which must be nowhere, not even by half.
const TOKEN: &str = "admin-of";

/// The Secret of Cluster API for a cluster, with labels.
pub(crate) fn capi(namespace: &str, name: &str, labels: &Value, kubeconfig: &str) -> Value {
    let mut labels = labels.clone();
    labels["cluster.x-k8s.io/cluster-name"] = json!(name);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"namespace": namespace, "name": format!("{name}-kubeconfig"), "labels": labels},
        "stringData": {"value": kubeconfig},
    })
}

/// The Secret of Argo CD for a cluster, with labels.
pub(crate) fn argo(secret: &str, labels: &Value, data: &Value) -> Value {
    let mut labels = labels.clone();
    labels["argocd.argoproj.io/secret-type"] = json!("cluster");
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": "argocd", "name": secret, "labels": labels}, "stringData": data,
    })
}

/// The kubeconfig of a user of a server.
pub(crate) fn kubeconfig(server: &ApiServer, user: &str) -> String {
    fs::read_to_string(server.kubeconfig(user)).expect("the server has kubeconfigs")
}

/// The address and credentials of a server as Argo CD writes them.
fn argo_config(name: &str, server: &ApiServer) -> Value {
    let known: Value = serde_json::from_str(&kubeconfig(server, "admin")).expect("kubeconfigs of tests are JSON");
    let authority = &known["clusters"][0]["cluster"]["certificate-authority-data"];
    let config = json!({
        "bearerToken": server.token("admin"), "tlsClientConfig": {"insecure": false, "caData": authority},
    });
    json!({"name": name, "server": server.url(), "config": config.to_string()})
}

/// Writes an object as whoever manages clusters does.
pub(crate) fn put(management: &ApiServer, object: &Value) {
    management.kubectl_stdin(&["apply", "-f", "-"], &object.to_string());
}

/// Makes a namespace.
pub(crate) fn namespace(management: &ApiServer, name: &str) {
    management.kubectl_ok(&["create", "namespace", name]);
}

/// A desk with Secrets of Cluster API in the namespace `capi`, and a sync on what has the label `region=eu`.
fn desk(management: &ApiServer, more: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let path = management.kubeconfig("admin");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs}}}}}}\nclusterSecrets:\n  \
             capi: {{kubeconfig: {{path: {}}}, format: cluster-api, namespace: capi}}\n\
             syncs: {{edge: {{source: specs, clusters: {{matchLabels: {{region: eu}}}}, createNamespaces: true, \
             wait: {{enabled: false}}}}}}\n{more}",
            path.display()
        ),
    );
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk
}

/// Runs a command, and asserts that nothing of a token is told.
#[track_caller]
fn quietly(desk: &Desk, arguments: &[&str]) -> Run {
    let run = desk.run(arguments);
    assert!(!run.out.contains(TOKEN) && !run.err.contains(TOKEN), "{arguments:?}:\n{}\n{}", run.out, run.err);
    run
}

/// Tells whether a token stands in a file below a folder.
pub(crate) fn is_kept(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).any(|path| {
        let bytes = fs::read(&path).unwrap_or_default();
        is_kept(&path) || bytes.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes())
    })
}

#[test]
fn secrets_of_both_formats_are_clusters() {
    let mut fleet = ApiServer::fleet(&["mgmt", "eu", "us"]);
    let eu = json!({"region": "eu", "env": "prod"});
    namespace(&fleet[0], "capi");
    namespace(&fleet[0], "argocd");
    put(&fleet[0], &capi("capi", "eu-1", &eu, &kubeconfig(&fleet[1], "admin")));
    let mut authority = capi("capi", "eu-1", &json!({}), "no kubeconfig");
    authority["metadata"]["name"] = json!("eu-1-ca");
    put(&fleet[0], &authority);
    put(&fleet[0], &argo("cluster-us-1", &json!({"region": "eu"}), &argo_config("us-1", &fleet[2])));
    put(&fleet[0], &argo("cluster-dev", &json!({"dev": "yes"}), &json!({"name": "dev"})));
    let path = fleet[0].kubeconfig("admin");
    let desk = desk(&fleet[0], &format!("clusters: {{mgmt: {{kubeconfig: {{path: {}}}}}}}\n", path.display()));
    let argo_cd = "clusterSecrets:\n  argo:\n    cluster: mgmt\n    format: argo-cd\n    \
                   matchExpressions: [{key: dev, operator: DoesNotExist}]\n";
    desk.replace("gatewright.yaml", "clusterSecrets:\n", argo_cd);

    quietly(&desk, &["config", "check"])
        .exits(0)
        .says("1 cluster,")
        .complains("clusterSecrets.argo are not known here");
    quietly(&desk, &["plan"]).exits(0).says("on all 2 clusters (eu-1, us-1)");
    quietly(&desk, &["sync"]).exits(0).says("on all 2 clusters (eu-1, us-1)");
    quietly(&desk, &["sync"]).exits(0).says("no changes");
    let found = clusters(&desk, 0, &[]);
    let names: Vec<&String> = found.as_object().expect("they are by name").keys().collect();
    assert_eq!(names, ["eu-1", "mgmt", "us-1"]);
    assert_eq!((&found["eu-1"]["labels"], &found["us-1"]["labels"]), (&eu, &json!({"region": "eu"})));
    assert_eq!((&found["eu-1"]["state"], &found["us-1"]["state"]), (&json!("reachable"), &json!("reachable")));
    quietly(&desk, &["clusters"]).exits(0);
    quietly(&desk, &["clusters", "forget", "eu-1"])
        .exits(64)
        .complains("Secret capi/eu-1-kubeconfig of clusterSecrets.capi");
    let shown = quietly(&desk, &["config", "show"]).exits(0).out;
    assert!(shown.contains("argo-cd") && !shown.contains("eu-1"), "{shown}");
    assert!(!is_kept(&desk.path("state")), "nothing of a Secret is on the disk");

    // What asks no cluster works without the management cluster too; what does ask says what is wrong, and does nothing.
    fleet[0].stop();
    quietly(&desk, &["status"]).exits(0).says("us-1");
    let found = clusters(&desk, 0, &["--offline"]);
    assert_eq!((&found["eu-1"]["state"], &found["eu-1"]["labels"]), (&json!("not-asked"), &eu));
    let run = quietly(&desk, &["sync"]).exits(1);
    run.complains("cannot read the clusters of clusterSecrets.").complains("no connection to ");
    let run = quietly(&desk, &["config", "check"]).exits(0).says("1 cluster,");
    assert!(!run.err.contains("not known here"), "{}", run.err);
    desk.write("gatewright.yaml", &shown);
    quietly(&desk, &["config", "check"]).exits(0).says("1 cluster,");
}

#[test]
fn a_damaged_secret_is_the_failure_of_its_cluster() {
    let fleet = ApiServer::fleet(&["mgmt", "eu"]);
    let eu = json!({"region": "eu"});
    namespace(&fleet[0], "capi");
    put(&fleet[0], &capi("capi", "eu-1", &eu, &kubeconfig(&fleet[1], "admin")));
    let desk = desk(&fleet[0], "");
    let whole = kubeconfig(&fleet[1], "admin");
    let middle = whole.find(TOKEN).expect("it has a token") + TOKEN.len() + 1;
    let file = json!({"tokenFile": "/etc/hostname"});
    let damages = [
        (whole[..middle].to_owned(), "the kubeconfig in it is not YAML: line "),
        (format!("{TOKEN}: 1\n{TOKEN}: 2\n"), "the kubeconfig in it is not YAML: line 2"),
        (format!("{TOKEN}-eu"), "what is in it is not a kubeconfig"),
        (whole.replace(&json!({"token": fleet[1].token("admin")}).to_string(), &file.to_string()), "name of a file"),
        (whole.replace("\"server\":\"https:", "\"server\":\"http:"), "without encryption"),
    ];
    for (kubeconfig, says) in damages {
        put(&fleet[0], &capi("capi", "eu-2", &eu, &kubeconfig));
        let run = quietly(&desk, &["sync"]).exits(1).says("cluster eu-1");
        run.says("Secret capi/eu-2-kubeconfig of clusterSecrets.capi: ").says(says);
        quietly(&desk, &["plan"]).exits(1);
        quietly(&desk, &["status"]).exits(0);
    }
    let mut empty = capi("capi", "eu-2", &eu, "");
    empty["stringData"] = json!({"values": "a"});
    fleet[0].kubectl_ok(&["delete", "secret", "-n", "capi", "eu-2-kubeconfig"]);
    put(&fleet[0], &empty);
    quietly(&desk, &["sync"]).exits(1).says("it has no value").says("cluster eu-1");
    assert!(!is_kept(&desk.path("state")), "reports hold nothing of it");

    // Mended, it is a second name of one server, and neither has a round there.
    put(&fleet[0], &capi("capi", "eu-2", &eu, &whole));
    let run = quietly(&desk, &["sync"]);
    assert_ne!(run.code, 0, "{}{}", run.out, run.err);
}

#[test]
fn a_list_of_secrets_that_is_not_certain_is_an_error() {
    let server = ApiServer::start();
    let (eu, known) = (json!({"region": "eu"}), kubeconfig(&server, "admin"));
    namespace(&server, "capi");
    namespace(&server, "other");
    let desk = desk(&server, "clusterFolders: [clusters.d]\n");
    desk.write("clusters.d/eu-3.yaml", &known);
    // A list without any cluster is not taken for clusters that are gone.
    let run = quietly(&desk, &["plan"]).exits(64);
    run.complains("clusterSecrets.capi: no Secret there is a cluster").complains("check its namespace and labels");

    let refused = |name: &str, says: &[&str]| {
        put(&server, &capi("capi", name, &eu, &known));
        says.iter().fold(quietly(&desk, &["plan"]).exits(64), |run, says| run.complains(says));
        server.kubectl_ok(&["delete", "secret", "-n", "capi", &format!("{name}-kubeconfig")]);
    };
    refused(
        "eu.1",
        &["Secret capi/eu.1-kubeconfig of clusterSecrets.capi: the name in it cannot be the name of a cluster"],
    );
    refused(
        "eu-3",
        &["Secret capi/eu-3-kubeconfig of clusterSecrets.capi: cluster \"eu-3\" is also ", "clusters.d/eu-3.yaml"],
    );
    put(&server, &capi("other", "eu-1", &eu, &known));
    desk.replace("gatewright.yaml", "namespace: capi", "namespace: \"*\"");
    let other = ["Secret other/eu-1-kubeconfig of clusterSecrets.capi: ", "is also Secret capi/eu-1-kubeconfig of "];
    refused("eu-1", &other);
    server.kubectl_ok(&["delete", "secret", "-n", "other", "eu-1-kubeconfig"]);
    desk.replace("gatewright.yaml", "clusterFolders", "clusters: {eu-1: {directory: {path: out}}}\nclusterFolders");
    refused("eu-1", &["cluster \"eu-1\" is also ", "gatewright.yaml:"]);

    // Nor is one that we may not read, and it says which right is missing.
    desk.replace("gatewright.yaml", "namespace: \"*\"", "namespace: capi");
    let (admin, nobody) = (server.kubeconfig("admin"), server.kubeconfig("nobody"));
    desk.replace("gatewright.yaml", &admin.display().to_string(), &nobody.display().to_string());
    let run = quietly(&desk, &["plan"]).exits(1);
    let run = run.complains("cannot read the clusters of clusterSecrets.capi: cannot list the Secrets of clusters in ");
    run.complains("grant the right to list secrets in namespace \"capi\"");
    let rights = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: clusters, namespace: capi}\n\
                  rules: [{apiGroups: [\"\"], resources: [secrets], verbs: [list]}]\n---\n\
                  apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
                  metadata: {name: clusters, namespace: capi}\n\
                  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: clusters}\n\
                  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nobody}]\n";
    server.kubectl_stdin(&["apply", "-f", "-"], rights);
    put(&server, &capi("capi", "eu-2", &eu, &known));
    let is_listed = || clusters(&desk, 0, &["--timeout", "30s"]).get("eu-2").is_some();
    // The authorizer hears of rights a moment later.
    assert!((0..100).any(|_| desk.run(&["clusters"]).code == 0) && is_listed());
}

#[test]
fn a_secret_that_leads_to_another_server_is_held() {
    let fleet = ApiServer::fleet(&["mgmt", "eu", "us"]);
    let eu = json!({"region": "eu"});
    namespace(&fleet[0], "capi");
    put(&fleet[0], &capi("capi", "eu-1", &eu, &kubeconfig(&fleet[1], "admin")));
    let desk = desk(&fleet[0], "");
    quietly(&desk, &["sync"]).exits(0).says("4 objects created");
    put(&fleet[0], &capi("capi", "eu-1", &eu, &kubeconfig(&fleet[2], "admin")));
    quietly(&desk, &["sync"]).exits(3).says("cluster-identity");
    let there = fleet[2].kubectl_ok(&["get", "services,deployments", "-A", "-l", "gatewright.dev/sync", "-o", "name"]);
    assert_eq!(there, "", "nothing was done on the other one");

    // Without its Secret it is gone, and told.
    put(&fleet[0], &capi("capi", "eu-2", &eu, &kubeconfig(&fleet[2], "admin")));
    fleet[0].kubectl_ok(&["delete", "secret", "-n", "capi", "eu-1-kubeconfig"]);
    let run = quietly(&desk, &["sync"]).exits(0).says("cluster eu-2");
    run.complains("cluster eu-1: gone from the configuration; what was applied there stays as it is");
    assert_eq!(clusters(&desk, 0, &[])["eu-1"]["state"], "gone");
    quietly(&desk, &["clusters", "forget", "eu-1"]).exits(0);
    assert!(clusters(&desk, 0, &[]).get("eu-1").is_none());
}

#[test]
fn a_command_lists_the_secrets_once() {
    let audited = Audited::start();
    namespace(&audited.server, "capi");
    put(&audited.server, &capi("capi", "eu-1", &json!({"region": "eu"}), &kubeconfig(&audited.server, "admin")));
    let desk = desk(&audited.server, "");
    desk.run(&["clusters"]).exits(0);
    let lists: Vec<_> = audited.requests().into_iter().filter(|request| request.resource == "secrets").collect();
    assert_eq!(lists.len(), 1, "{lists:?}");
    let list = &lists[0];
    assert!(list.verb == "list" && list.uri.starts_with("/api/v1/namespaces/capi/secrets?"), "{list:?}");
    let selected = "fieldSelector=type%3Dcluster.x-k8s.io%2Fsecret&labelSelector=cluster.x-k8s.io%2Fcluster-name";
    assert!(list.uri.contains(selected) && list.uri.contains("limit=500"), "{list:?}");
}

#[test]
fn mistakes_in_the_settings_are_told_before_anything_is_asked() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        "clusters: {out: {directory: {path: out}}}\nclusterSecrets:\n  A: {format: argo-cd}\n  \
         b: {cluster: out, format: cluster-api, namespace: a/b}\n  c: {cluster: outt, format: argo-cd, poll: 10ms}\n  \
         d: {kubeconfig: {path: gone}, cluster: out, format: cluster-api}\n  \
         e: {kubeconfig: {path: gone}, format: argo-cd, matchLabels: {env: \"a,b\"}}\n  \
         f: {kubeconfig: {path: gone}, format: argo-cd, namespace: \"\"}\n",
    );
    let run = quietly(&desk, &["config", "check"]).exits(64);
    let all = [
        "gatewright.yaml:3: \"A\" cannot be the name of Secrets",
        "gatewright.yaml:3: clusterSecrets \"A\" has to have one of cluster and kubeconfig",
        "gatewright.yaml:4: cluster \"out\" cannot be asked for Secrets",
        "gatewright.yaml:4: \"a/b\" cannot be a namespace",
        "gatewright.yaml:5: there is no cluster \"outt\"",
        "gatewright.yaml:5: they would be read more often than once a second",
        "gatewright.yaml:6: clusterSecrets \"d\" has to have one of cluster and kubeconfig",
        "gatewright.yaml:6: clusterSecrets \"d\" has no namespace",
        "gatewright.yaml:7: \"a,b\" can be no label of a Secret",
        "gatewright.yaml:8: \"\" cannot be a namespace",
    ];
    all.iter().fold(run, |run, says| run.complains(says));
    desk.write("gatewright.yaml", "clusterSecrets: {e: {kubeconfig: {path: gone}, format: argo-cd}}\n");
    let run = quietly(&desk, &["config", "check"]).exits(64).complains("clusterSecrets.e: kubeconfig ");
    run.complains("it cannot be read");
}
