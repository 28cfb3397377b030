//! Assumptions of the other tests about their cluster.

use std::fs;
use std::sync::Arc;

use super::etcd::Etcd;
use super::process::command;
use super::{ApiServer, Options, binaries, shared, unique};

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 3
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: web, image: "example.invalid/web:1" }]
"#;

fn apply_and_wait(server: &ApiServer, namespace: &str) {
    server.kubectl_ok(&["create", "namespace", namespace]);
    server.kubectl_stdin(&["apply", "-n", namespace, "-f", "-"], DEPLOYMENT);
    server.kubectl_ok(&["rollout", "status", "-n", namespace, "--timeout=60s", "deployment/web"]);
}

#[test]
fn a_deployment_becomes_available() {
    let namespace = unique("rollout");
    apply_and_wait(shared(), &namespace);
    let ready = "jsonpath={.status.availableReplicas}";
    assert_eq!(shared().kubectl_ok(&["get", "deployment", "web", "-n", &namespace, "-o", ready]), "3");
}

#[test]
fn a_server_comes_back_with_its_objects_and_controllers() {
    let mut server = ApiServer::with_controllers();
    server.kubectl_ok(&["create", "namespace", "before"]);
    server.stop();
    assert!(!server.kubectl(&["get", "namespace", "before"]).status.success(), "a stopped server answers");
    server.restart();
    server.kubectl_ok(&["get", "namespace", "before"]);
    apply_and_wait(&server, "after");
}

#[test]
fn servers_on_one_etcd_share_nothing_else() {
    let fleet = ApiServer::fleet(&["north", "south"]);
    let [north, south] = fleet.as_slice() else { unreachable!("two names make two servers") };
    assert_ne!(north.url(), south.url());
    north.kubectl_ok(&["create", "namespace", "only-north"]);
    assert!(!south.kubectl(&["get", "namespace", "only-north"]).status.success(), "south shows what north stores");
    let north_token = north.token("admin");
    assert!(
        !south.kubectl(&["--token", &north_token, "get", "nodes"]).status.success(),
        "south takes a token of north"
    );
    assert_eq!(south.kubectl_ok(&["config", "current-context"]).trim(), south.name());
}

#[test]
fn each_user_may_do_what_its_name_says() {
    let server = ApiServer::start();
    for (user, may_read, may_write) in [("admin", "yes", "yes"), ("viewer", "yes", "no"), ("nobody", "no", "no")] {
        let kubeconfig = server.kubeconfig(user).display().to_string();
        // kubectl fails when it says no.
        let may = |verb| server.kubectl(&["--kubeconfig", &kubeconfig, "auth", "can-i", verb, "secrets"]).stdout;
        assert_eq!(String::from_utf8_lossy(&may("list")).trim(), may_read, "{user} lists");
        assert_eq!(String::from_utf8_lossy(&may("create")).trim(), may_write, "{user} creates");
    }
}

#[test]
fn a_server_is_known_by_its_process() {
    let name = fs::read_to_string(format!("/proc/{}/comm", shared().pid())).expect("the server runs");
    assert_eq!(name.trim_end(), "kube-apiserver");
}

#[test]
fn further_arguments_reach_the_server() {
    let etcd = Arc::new(Etcd::start());
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n";
    fs::write(&policy, rules).expect("a new folder can be written");
    let args = vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
    let server = ApiServer::start_on(&etcd, Options { name: "audited".to_owned(), args, ..Options::default() });
    server.kubectl_ok(&["create", "configmap", "seen"]);
    let log = fs::read_to_string(log).expect("the server writes what it was told to write");
    assert!(log.contains("/api/v1/namespaces/default/configmaps"), "{log}");
}

#[test]
#[should_panic(expected = "kube-apiserver ended before certificate")]
fn a_server_that_cannot_start_fails_the_test_with_its_log() {
    let args = vec!["--no-such-flag".to_owned()];
    ApiServer::start_on(&Arc::new(Etcd::start()), Options { args, ..Options::default() });
}

#[test]
fn envoy_runs() {
    let output = command(binaries::envoy()).arg("--version").output().expect("envoy can be run");
    assert!(output.status.success(), "{output:?}");
}
