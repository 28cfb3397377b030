//! The quick start, as README.md tells it: on a directory, and on a real API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cluster::ApiServer;
use crate::program::Desk;

/// Every file below a folder, with its text; our own records aside.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("the folder is there").flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != ".gatewright" {
                folders.push(path);
            } else if path.is_file() {
                let name = path.strip_prefix(folder).expect("it is below").to_string_lossy().into_owned();
                files.insert(name, fs::read_to_string(&path).expect("it is text"));
            }
        }
    }
    files
}

#[test]
fn on_a_directory_it_goes_as_the_readme_says() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["plan", "--detailed-exitcode"]).exits(2).says("12 objects to create, 2 namespaces to create");
    assert!(!desk.path("rendered").exists(), "a plan writes nothing");
    desk.run(&["sync"]).exits(0).says("12 objects created, 2 namespaces created");
    let first = files(&desk.path("rendered"));
    assert_eq!(first.len(), 14);
    desk.run(&["sync"]).exits(0).says("no changes, 12 objects up to date");
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);

    // The same specs, rendered elsewhere, are the same bytes.
    let other = Desk::quickstart("gatewright.yaml");
    other.run(&["sync"]).exits(0);
    assert_eq!(files(&other.path("rendered")), first);

    desk.replace("specs/shop/storefront.yaml", "port: 8443", "port: 9443");
    desk.run(&["sync"]).exits(0).says("Gateway shop/storefront").says("2 objects updated, 10 unchanged");
    let edited = files(&desk.path("rendered"));
    let changed = |name: &&String| first.get(*name) != edited.get(*name);
    let changed: Vec<_> = edited.keys().filter(changed).cloned().collect();
    assert_eq!(changed, ["shop/deployment-storefront.yaml", "shop/service-storefront.yaml"]);

    desk.replace("rendered/shop/service-storefront.yaml", "9443", "9999");
    desk.run(&["sync"]).exits(0).says("1 object updated, 11 unchanged");
    assert_eq!(files(&desk.path("rendered")), edited);
}

#[test]
fn what_leaves_the_source_leaves_the_directory_but_never_all_of_it() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    fs::remove_file(desk.path("specs/shop/storefront.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0).says("4 objects deleted, 8 unchanged");
    let left = files(&desk.path("rendered"));
    assert!(left.keys().all(|name| !name.contains("storefront")), "{left:?}");
    assert!(left.contains_key("_cluster/namespace-shop.yaml"), "a namespace is never deleted");

    fs::remove_dir_all(desk.path("specs")).expect("it is there");
    fs::create_dir(desk.path("specs")).expect("it can be made");
    desk.run(&["sync"]).exits(3).says("held by guard empty-render").says("prune.allowEmpty");
    assert_eq!(files(&desk.path("rendered")), left);
}

/// All objects of the kinds that are rendered, in all namespaces, by kind and name, without what servers write.
fn objects(server: &ApiServer) -> BTreeMap<String, Value> {
    let kinds = "serviceaccounts,configmaps,services,deployments";
    let json = server.kubectl_ok(&["get", kinds, "-A", "-o", "json", "-l", "gatewright.dev/sync"]);
    let list: Value = serde_json::from_str(&json).expect("kubectl prints JSON");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let key = |item: &Value| {
        let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    };
    items.into_iter().map(|item| (key(&item), item)).collect()
}

fn versions(objects: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let of = |item: &Value| item["metadata"]["uid"].to_string() + &item["metadata"]["generation"].to_string();
    objects.iter().map(|(key, item)| (key.clone(), of(item))).collect()
}

#[test]
fn on_an_api_server_it_goes_as_the_readme_says() {
    let server = ApiServer::with_controllers();
    let kubeconfig = server.kubeconfig("admin");
    let desk = Desk::quickstart("gatewright-kube.yaml");
    let run = |arguments: &[&str]| desk.run_with(&kubeconfig, arguments);

    run(&["plan", "--detailed-exitcode"]).exits(2).says("12 objects to create, 2 namespaces to create");
    assert_eq!(server.kubectl_ok(&["get", "namespaces", "-o", "name"]).matches("infra").count(), 0);

    run(&["sync"]).exits(0).says("12 objects created, 2 namespaces created");
    let first = objects(&server);
    assert_eq!(first.len(), 12);
    let available = server.kubectl_ok(&[
        "get",
        "deployments",
        "-A",
        "-o",
        "jsonpath={.items[*].status.conditions[?(@.type=='Available')].status}",
    ]);
    assert_eq!(available, "True True True");
    run(&["status"]).exits(0).says("Gateway shop/storefront");

    run(&["sync"]).exits(0).says("no changes, 12 objects up to date");
    assert_eq!(versions(&objects(&server)), versions(&first));

    desk.replace("specs/shop/storefront.yaml", "port: 8443", "port: 9443");
    run(&["sync"]).exits(0).says("2 objects updated, 10 unchanged");
    let second = objects(&server);
    let is_changed = |key: &&String| second[*key]["spec"] != first[*key]["spec"];
    let changed: Vec<_> = second.keys().filter(is_changed).collect();
    assert_eq!(changed, ["Deployment shop/storefront", "Service shop/storefront"]);

    // Somebody edits a live Service; the plan names who it was.
    let patch = r#"[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1234}]"#;
    server.kubectl_ok(&["patch", "service", "edge", "-n", "infra", "--type", "json", "-p", patch]);
    run(&["plan"]).exits(0).says("targetPort: 1234 -> ").says("last written by kubectl-patch");
    run(&["sync"]).exits(0).says("1 object updated, 11 unchanged");
    assert_eq!(objects(&server)["Service infra/edge"]["spec"], second["Service infra/edge"]["spec"]);

    fs::remove_file(desk.path("specs/shop/storefront.yaml")).expect("it is there");
    run(&["sync"]).exits(0).says("4 objects deleted, 8 unchanged");
    let left = objects(&server);
    assert_eq!(left.len(), 8);
    assert!(left.keys().all(|key| !key.contains("storefront")));

    fs::remove_dir_all(desk.path("specs")).expect("it is there");
    fs::create_dir(desk.path("specs")).expect("it can be made");
    run(&["sync"]).exits(3).says("held by guard empty-render");
    assert_eq!(versions(&objects(&server)), versions(&left));
}
