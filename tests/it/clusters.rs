//! `gatewright clusters`: the list, what it asks, and what it says of clusters that are gone or do not answer.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::commands::obeys;
use crate::errors::{desk, folder, gateway, kubeconfig};
use crate::program::Desk;

/// The clusters as JSON, by name.
pub(crate) fn clusters(desk: &Desk, code: i32, arguments: &[&str]) -> Value {
    let run = desk.run(&[&["clusters", "--format", "json"], arguments].concat()).exits(code);
    let printed: Value = serde_json::from_str(&run.out).expect("the program prints JSON");
    obeys("clusters-v1alpha1", &printed);
    let lines = printed["clusters"].as_array().expect("they are a list");
    lines.iter().map(|line| (line["name"].as_str().unwrap_or_default().to_owned(), line.clone())).collect()
}

#[test]
fn each_cluster_is_a_line_whatever_is_wrong_with_it() {
    let server = ApiServer::start();
    server.install_gateway_api();
    server.kubectl_ok(&[
        "annotate",
        "crd",
        "gateways.gateway.networking.k8s.io",
        "--overwrite",
        "gateway.networking.k8s.io/bundle-version=v1.5.0",
        "gateway.networking.k8s.io/channel=standard",
    ]);
    // One whose address nobody listens at any more, and one that accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = silent.local_addr().expect("a bound socket has an address");
    let known = fs::read_to_string(server.kubeconfig("admin")).expect("the server has kubeconfigs");
    let desk = desk(
        "edge",
        &[
            ("admin", kubeconfig(&server.kubeconfig("admin"), "")),
            ("folder", folder()),
            ("lost", kubeconfig(Path::new("lost.kubeconfig"), "")),
            ("silent", kubeconfig(Path::new("silent.kubeconfig"), "")),
        ],
    );
    desk.write("silent.kubeconfig", &known.replace(&server.url(), &format!("https://{address}")));
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    // They have one API server: a second name for it is a cluster of no sync.
    let path = server.kubeconfig("nobody");
    let nobody = format!("clusters:\n  nobody: {{labels: {{team: x}}, kubeconfig: {{path: {}}}}}\n", path.display());
    desk.replace("gatewright.yaml", "clusters:\n", &nobody);
    desk.run(&["sync", "--cluster", "admin,folder"]).exits(0);

    let found = clusters(&desk, 1, &["--timeout", "2s"]);
    let admin = &found["admin"];
    assert_eq!((&admin["state"], &admin["kind"]), (&json!("reachable"), &json!("api-server")), "{admin}");
    assert!(admin["version"].as_str().is_some_and(|version| version.starts_with("v1.")), "{admin}");
    assert_eq!(admin["gatewayApi"], json!({"bundle": "v1.5.0", "channel": "standard"}));
    assert_eq!(admin["syncs"]["edge"]["lastRound"]["state"], "done");
    assert_eq!(admin["syncs"]["edge"]["missingRights"], json!([]), "an administrator lacks nothing");
    assert_eq!(found["folder"]["kind"], "directory");
    assert_eq!(found["folder"]["state"], "reachable");
    assert_eq!(found["lost"]["state"], "misconfigured");
    assert_eq!(found["silent"]["state"], "unreachable");
    assert_eq!(found["nobody"]["syncs"], json!({}));

    let run = desk.run(&["clusters", "--timeout", "2s", "--cluster", "admin,nobody,silent"]).exits(4);
    let run = run.says("v1.5.0 standard").says("silent: no answer within 2s\n  --timeout gives it longer\n");
    assert!(run.out.lines().take(4).all(|line| line.len() < 140), "{}", run.out);
    let run = run.says("team=x");
    assert!(run.out.contains("  all\n") && run.out.contains("  none"), "{}", run.out);

    // Nobody is asked, and what is known here is told.
    let found = clusters(&desk, 0, &["--offline"]);
    assert_eq!((&found["silent"]["state"], &found["admin"]["state"]), (&json!("not-asked"), &json!("not-asked")));
    assert_eq!(found["admin"]["syncs"]["edge"]["lastRound"]["state"], "done");
    drop(silent);
}

#[test]
fn missing_rights_are_those_that_rbac_would_give() {
    let server = ApiServer::start();
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let desk = desk("edge", &[("only", kubeconfig(&server.kubeconfig("nobody"), ""))]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: false");
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    let missing = || {
        let found = clusters(&desk, 0, &["--timeout", "30s"]);
        found["only"]["syncs"]["edge"]["missingRights"].as_array().expect("they are known").clone()
    };
    let before = missing();
    let patch = json!({"namespace": "infra", "group": "apps", "resource": "deployments", "verb": "patch"});
    let list = json!({"group": "apps", "resource": "deployments", "verb": "list"});
    let identity = json!({"group": "", "resource": "namespaces", "verb": "get", "name": "kube-system"});
    assert!([&patch, &list, &identity].iter().all(|right| before.contains(right)), "{before:?}");
    let run = desk.run(&["clusters"]).exits(0).says("missing").says("only: sync edge lacks ");
    run.says("`gatewright rbac edge --cluster only` prints all that it needs");

    let printed = desk.run(&["rbac", "edge", "--user", "nobody"]).exits(0).out;
    server.kubectl_stdin(&["apply", "-f", "-"], &printed);
    // The authorizer hears of rights a moment later.
    assert!((0..100).any(|_| missing().is_empty()), "{:?}", missing());

    let patches = printed.replace("  - patch\n", "");
    server.kubectl_stdin(&["apply", "-f", "-"], &patches);
    assert!((0..100).any(|_| missing().contains(&patch)), "{:?}", missing());
    assert!(missing().iter().all(|right| right["verb"] == "patch"), "{:?}", missing());
}

/// A desk whose only clusters are those of a folder.
fn with_folder(more: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs}}}}}}\nclusterFolders: [clusters.d]\n\
             syncs: {{edge: {{source: specs, clusters: {{matchLabels: {{region: eu}}}}, createNamespaces: true, \
             wait: {{enabled: false}}}}}}\n{more}"
        ),
    );
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk
}

#[test]
fn a_kubeconfig_in_a_folder_is_a_cluster() {
    let server = ApiServer::start();
    let known = fs::read_to_string(server.kubeconfig("admin")).expect("the server has kubeconfigs");
    let desk = with_folder("");
    desk.write("clusters.d/eu-1.yaml", &known);
    desk.write("clusters.d/eu-1.labels.yaml", "region: eu\n");
    desk.write("clusters.d/eu-2.yaml", "apiVersion: v1\nkind: Config\nclu");
    desk.write("clusters.d/eu-2.labels.yaml", "region: eu\n");
    desk.write("clusters.d/.eu-3.yaml.swp", &known);
    desk.write("clusters.d/eu-4.conf", &known);
    std::os::unix::fs::symlink("../nowhere", desk.path("clusters.d/us-1.kubeconfig")).expect("the desk can be written");

    // What is half written is the failure of that cluster alone.
    let run = desk.run(&["sync"]).exits(1).says("cluster eu-1").says("4 objects created");
    run.says("clusters.d/eu-2.yaml\": it is not YAML: line 3");
    let found = clusters(&desk, 1, &[]);
    let names: Vec<&String> = found.as_object().expect("they are by name").keys().collect();
    assert_eq!(names, ["eu-1", "eu-2", "us-1"]);
    assert_eq!(found["eu-1"]["labels"], json!({"region": "eu"}));
    assert_eq!((&found["eu-2"]["state"], &found["us-1"]["state"]), (&json!("misconfigured"), &json!("misconfigured")));

    // What may be a mistake is a warning, and what is one has its file.
    let run = desk.run(&["config", "check"]).exits(64);
    let run = run.complains("clusters.d/eu-2.yaml: cluster \"eu-2\": ").complains("it is not YAML");
    run.complains("clusters.d/us-1.kubeconfig: cluster \"us-1\": ");
    desk.write("clusters.d/eu-2.yaml", &known.replace(&server.url(), "https://eu-2.example.com"));
    fs::remove_file(desk.path("clusters.d/us-1.kubeconfig")).expect("it is there");
    let run = desk.run(&["config", "check"]).exits(0).says("2 clusters");
    run.complains("clusters.d/eu-4.conf: it is no cluster: a kubeconfig there is named NAME.yaml");

    // What is printed is a config file that says the same.
    let shown = desk.run(&["config", "show"]).exits(0).out;
    assert!(shown.contains("clusters.d") && !shown.contains("eu-1"), "{shown}");
}

#[test]
fn a_name_has_one_cluster() {
    let desk = with_folder("clusters: {eu-1: {directory: {path: rendered}}}\n");
    desk.write("clusters.d/eu-1.yaml", "");
    let run = desk.run(&["plan"]).exits(64);
    run.complains("gatewright.yaml:5:").complains("clusters.d/eu-1.yaml, in a cluster folder").complains("keep one");
    desk.replace("gatewright.yaml", "[clusters.d]", "[clusters.d, more]");
    desk.replace("gatewright.yaml", "clusters: {eu-1", "clusters: {us-1");
    desk.write("more/eu-1.yml", "");
    let run = desk.run(&["plan"]).exits(64);
    run.complains("more/eu-1.yml: cluster \"eu-1\" is also").complains("clusters.d/eu-1.yaml");
    fs::remove_file(desk.path("more/eu-1.yml")).expect("it is there");
    let run = desk.run(&["plan"]).exits(64).complains("more has no kubeconfig in it");
    assert!(!run.err.contains("selects no cluster"), "that follows from the first: {}", run.err);
}

#[test]
fn settings_of_kubeconfigs_in_folders_are_common_to_them() {
    let server = ApiServer::start();
    let known = fs::read_to_string(server.kubeconfig("admin")).expect("the server has kubeconfigs");
    let desk = with_folder("");
    desk.write("clusters.d/eu-1.labels.yaml", "region: eu\n");
    let mut open: Value = serde_json::from_str(&known).expect("kubeconfigs of tests are JSON");
    open["clusters"][0]["cluster"] = json!({"server": server.url(), "insecure-skip-tls-verify": true});
    desk.write("clusters.d/eu-1.yaml", &open.to_string());
    let run = desk.run(&["sync"]).exits(1);
    run.says("set clusterFolderAccess.allowInsecureTls: true to take the risk");
    let config = desk.read("gatewright.yaml");
    desk.write("gatewright.yaml", &format!("{config}clusterFolderAccess: {{allowInsecureTls: true}}\n"));
    desk.run(&["sync"]).exits(0).says("4 objects created");
}

/// Two API servers with a Gateway each; then the second is gone from the config file.
fn with_one_gone() -> (Vec<ApiServer>, Desk, String) {
    let fleet = ApiServer::fleet(&["eu", "us"]);
    let path = |server: &ApiServer| server.kubeconfig("admin");
    let desk = desk("edge", &[("eu", kubeconfig(&path(&fleet[0]), "")), ("us", kubeconfig(&path(&fleet[1]), ""))]);
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk.run(&["sync"]).exits(0).says("on all 2 clusters (eu, us)");
    let us = format!("  us: {}\n", kubeconfig(&path(&fleet[1]), ""));
    desk.replace("gatewright.yaml", &us, "");
    desk.replace("gatewright.yaml", "[eu, us]", "[eu]");
    let file = path(&fleet[1]).display().to_string();
    (fleet, desk, file)
}

fn objects(server: &ApiServer) -> usize {
    let label = ["-l", "gatewright.dev/sync"];
    let arguments = ["get", "serviceaccounts,configmaps,services,deployments", "-n", "infra", "-o", "name"];
    server.kubectl_ok(&[&arguments[..], &label[..]].concat()).lines().count()
}

#[test]
fn a_cluster_that_is_gone_is_told_until_it_is_forgotten() {
    let (fleet, desk, _) = with_one_gone();
    let words = "cluster us: gone from the configuration; what was applied there stays as it is";
    desk.run(&["sync"]).exits(0).complains(words).complains("gatewright clusters forget us");
    desk.run(&["plan"]).exits(0).complains(words);
    desk.run(&["status"]).exits(0).says(words);
    let found = clusters(&desk, 0, &[]);
    assert_eq!(found["us"]["state"], "gone");
    assert_eq!(found["us"]["syncs"]["edge"]["lastRound"]["state"], "done");
    desk.run(&["clusters", "--offline"]).exits(0).says("us: gone from the configuration");

    desk.run(&["clusters", "forget", "eu"]).exits(64).complains("cluster \"eu\" is configured, in ");
    desk.run(&["clusters", "forget", "usa"]).exits(64).complains("did you mean \"us\"?");
    desk.run(&["clusters", "forget", "us"]).exits(0).says("cluster us is forgotten");
    let run = desk.run(&["sync"]).exits(0);
    assert!(!run.err.contains("gone"), "{}", run.err);
    assert!(clusters(&desk, 0, &[]).get("us").is_none());
    assert!(desk.path("state/seen/edge/eu.json").exists() && !desk.path("state/seen/edge/us.json").exists());
    assert_eq!(objects(&fleet[1]), 4, "nothing was touched");
    desk.run(&["clusters", "forget", "us"]).exits(64).complains("no cluster \"us\" is gone");
}

#[test]
fn what_is_on_a_cluster_that_is_gone_can_be_found_and_deleted() {
    let (fleet, desk, file) = with_one_gone();
    let wrong = fleet[0].kubeconfig("admin").display().to_string();
    let at = |words: &[&'static str], file: &str| {
        let arguments: Vec<&str> = words.iter().copied().chain(["--kubeconfig", file]).collect();
        desk.run(&arguments)
    };
    at(&["orphans", "--cluster", "us"], &file).exits(0).says("edge").says("INVENTORY OF SYNC");
    at(&["orphans"], &file).exits(64).complains("--kubeconfig is for one cluster");
    at(&["destroy", "edge", "--cluster", "eu", "--yes"], &file).exits(64).complains("is configured, in ");
    at(&["destroy", "other", "--cluster", "us", "--yes"], &file).exits(64).complains("does not know what sync");

    // Another server than the one that had the name: nothing is done.
    let run = at(&["destroy", "edge", "--cluster", "us", "--yes"], &wrong);
    assert_eq!((run.code, objects(&fleet[0]), objects(&fleet[1])), (3, 4, 4), "{}{}", run.out, run.err);

    at(&["destroy", "edge", "--cluster", "us", "--yes"], &file).exits(0).says("4 objects deleted");
    assert_eq!((objects(&fleet[0]), objects(&fleet[1])), (4, 0));
    let run = desk.run(&["sync"]).exits(0).says("no changes");
    assert!(!run.err.contains("gone"), "{}", run.err);
}
