//! `gatewright import` of what a release of kgateway has deployed, and the mistakes that are made with it.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::deployed;
use super::fleet::Fleet;
use crate::ownership::site::Site;
use crate::program::Run;
use crate::specs::control_plane::{document, gateway};

/// Runs the program as somebody does who has no config file.
fn run(site: &Site, arguments: &[&str]) -> Run {
    Run::of(site.desk.without_config(arguments).output().expect("the program starts"))
}

/// Imports the namespace of a site into a folder of its desk.
fn import(site: &Site, folder: &str) -> Run {
    let kubeconfig = site.server.kubeconfig("admin");
    let kubeconfig = kubeconfig.to_str().expect("it is text");
    run(site, &["import", folder, "--namespace", &site.name, "--kubeconfig", kubeconfig])
}

/// Runs a command with the config file that an import has written.
fn with_imported(site: &Site, folder: &str, arguments: &[&str]) -> Run {
    run(site, &[arguments, &["--config", &format!("{folder}/gatewright.yaml")]].concat())
}

/// Returns what a plan changes: kind and path of each field.
fn differences(run: &Run) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&run.out).expect("it is JSON");
    let steps = report["clusters"]["local"]["steps"].as_array().expect("a report has steps");
    let of = |step: &Value| {
        let kind = step["id"]["kind"].as_str().unwrap_or_default().to_owned();
        let paths = step["differences"].as_array().cloned().unwrap_or_default();
        let path = |difference: &Value| difference["path"].as_str().unwrap_or_default().to_owned();
        paths.iter().map(|difference| (kind.clone(), path(difference))).collect::<Vec<_>>()
    };
    steps.iter().flat_map(of).collect()
}

/// Of what a release has deployed nothing differs when it is imported, and of one edited Service that.
pub(super) fn is_faithful(fleet: &Fleet) {
    let site = &fleet.site;
    let run = import(site, "imported").exits(0).says("Gateway (100)").says("report: no differences");
    assert!(!run.out.contains("left out"), "{}", run.out);
    fleet.assert_unmoved();
    with_imported(site, "imported", &["plan", "--detailed-exitcode"]).exits(0).says("report: no differences");
    let written = site.desk.read_all("imported/specs");
    for field in ["managedFields", "resourceVersion", "creationTimestamp", "last-applied", "\nstatus:"] {
        assert!(!written.contains(field), "{field} is from the server");
    }
    with_imported(site, "imported", &["check", "imported/specs"]).exits(0);

    let name = fleet.names().next().expect("there are some");
    let policy = |policy: &str| {
        let patch = json!({"spec": {"externalTrafficPolicy": policy, "type": "LoadBalancer"}}).to_string();
        site.kubectl(&["patch", "service", &name, "--type=merge", "-p", &patch]);
    };
    policy("Local");
    let plan = with_imported(site, "imported", &["plan", "--format", "json"]).exits(0);
    assert_eq!(differences(&plan), [("Service".to_owned(), "spec.externalTrafficPolicy".to_owned())]);
    // Who imports after the edit sees it, too.
    import(site, "later").exits(0).says("externalTrafficPolicy");
    policy("Cluster");
}

#[test]
fn what_is_imported_is_what_is_there_and_nothing_that_others_make() {
    let (site, _controller) = deployed(&json!({"kube": {"deployment": {"replicas": 2}}}));
    let mut other = gateway(&site.name, "theirs", 81);
    let class = format!("{}-theirs", site.name);
    let controller = json!({"controllerName": "example.com/theirs"});
    site.create(&document("gateway.networking.k8s.io/v1", "GatewayClass", &class, None, &controller));
    other["spec"]["gatewayClassName"] = class.clone().into();
    site.create(&other);
    let mut made = gateway(&site.name, "made", 82);
    let uid = &site.get("gateway/edge")["metadata"]["uid"];
    let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "edge", "uid": uid});
    made["metadata"]["ownerReferences"] = json!([owner]);
    made["metadata"]["ownerReferences"][0]["controller"] = true.into();
    site.create(&made);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hidden-1"}});
    site.create(&secret);

    let run = import(&site, "imported").says("imported 2 documents into imported: Gateway (1), GatewayParameters (1)");
    let run = run.says(&format!("no pack renders it (class {class})")).says("it was made for Gateway edge");
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let folder = site.desk.path(&format!("imported/specs/{}", site.name));
    let mut files: Vec<String> = fs::read_dir(folder)
        .expect("it is written")
        .map(|it| it.expect("it is there").file_name().into_string().expect("it is text"))
        .collect();
    files.sort();
    assert_eq!(files, ["gateway-edge.yaml", "gatewayparameters-edge.yaml"]);
    let all = format!("{}{}{}", site.desk.read_all("imported"), run.out, run.err);
    assert!(!all.contains("hidden-1"), "no Secret is read");

    assert!(site.desk.read(&format!("imported/specs/{}/gateway-edge.yaml", site.name)).ends_with('\n'));

    // Nothing that is there is written over.
    let before = site.desk.read_all("imported/specs");
    import(&site, "imported").exits(64).complains("it is not empty").complains("nothing is overwritten");
    assert_eq!(site.desk.read_all("imported/specs"), before);
}

/// Whatever kubectl talks to tomorrow, what was imported is about the same cluster.
#[test]
fn the_cluster_is_that_of_the_import_whatever_kubectl_talks_to_later() {
    let (site, _controller) = deployed(&json!({"kube": {}}));
    let arguments = ["import", "imported", "--namespace", &site.name];
    let kubeconfig = site.server.kubeconfig("admin");
    Run::of(site.desk.without_config(&arguments).env("KUBECONFIG", kubeconfig).output().expect("the program starts"))
        .exits(0);
    let config = site.desk.read("imported/gatewright.yaml");
    assert!(config.contains(r#""context":"test""#), "{config}");
    with_imported(&site, "imported", &["plan"]).exits(0).says("report: ");
}

#[test]
fn a_mistake_says_what_to_do_and_writes_nothing() {
    let site = Site::new("");
    let nothing = import(&site, "new").exits(64);
    nothing.complains("there is nothing to import").complains("Gateways of a known class");
    let free = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let port = free.local_addr().expect("a bound socket has an address").port();
    drop(free);
    let known = fs::read_to_string(site.server.kubeconfig("admin")).expect("the server has kubeconfigs");
    let mut dead: Value = serde_json::from_str(&known).expect("it is JSON");
    dead["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{port}").into();
    site.desk.write("dead.kubeconfig", &dead.to_string());
    run(&site, &["import", "new", "--kubeconfig", "dead.kubeconfig"]).exits(4).complains(&format!("127.0.0.1:{port}"));
    run(&site, &["import", "new", "--kubeconfig", "daed.kubeconfig"]).exits(64).complains("did you mean");
    for name in ["a b", "../x", "", "a: {b"] {
        run(&site, &["import", "new", "--name", name, "--kubeconfig", "dead.kubeconfig"])
            .exits(64)
            .complains("cannot be the name");
    }
    for namespace in ["", "../x", "a b"] {
        let wrong = run(&site, &["import", "new", "--namespace", namespace, "--kubeconfig", "dead.kubeconfig"]);
        wrong.exits(64).complains("cannot be the name of a namespace");
    }
    assert!(!site.desk.path("new").exists(), "nothing is written");
}

#[test]
fn what_may_not_be_listed_is_said() {
    let (site, _controller) = deployed(&json!({"kube": {}}));
    let kubeconfig = site.server.kubeconfig("nobody");
    let kubeconfig = kubeconfig.to_str().expect("it is text");
    let run = run(&site, &["import", "new", "--namespace", &site.name, "--kubeconfig", kubeconfig]);
    let run = run.exits(1).says("could not be read").says("forbidden").complains("nothing was imported");
    assert!(!site.desk.path("new").exists(), "{}", run.out);
}
