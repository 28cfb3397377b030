//! Every object of the cases is one that a real API server takes, by server-side apply as a round does it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::cluster::shared;
use crate::golden::cases;

/// Groups that every API server has; kinds of others are somebody's custom resources.
const GROUPS: [&str; 5] = ["", "apps", "autoscaling", "policy", "rbac.authorization.k8s.io"];

/// It has characters that kubectl cannot send; `cluster_kube` sends them.
const NOT_FOR_KUBECTL: &str = "text_changes_no_structure";

#[test]
fn an_api_server_takes_every_object_of_the_cases() {
    let server = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("objects.json");
    let write = |items: Vec<Value>| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(&file, list.to_string()).expect("a temporary folder can be written");
    };
    let file = file.to_str().expect("temporary folders have plain names");
    let mut cases = cases();
    cases.retain(|case| case.name != NOT_FOR_KUBECTL);
    let objects = || cases.iter().flat_map(|case| &case.rendering.units).flat_map(|unit| &unit.objects);
    let names: BTreeSet<&str> = objects().map(|object| object.id().namespace.as_str()).collect();
    let namespace = |name: &&str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    write(names.iter().filter(|name| !name.is_empty()).map(namespace).collect());
    server.kubectl_ok(&["apply", "-f", file]);
    let mut refused = Vec::new();
    for case in &cases {
        for unit in &case.rendering.units {
            let known = unit.objects.iter().filter(|object| GROUPS.contains(&object.id().group.as_str()));
            let known: Vec<Value> = known.map(|object| object.body().clone()).collect();
            if known.is_empty() {
                continue;
            }
            write(known);
            let output = server.kubectl(&["apply", "--server-side", "--dry-run=server", "-f", file]);
            if !output.status.success() {
                refused.push(format!("{}, {}: {}", case.name, unit.id, String::from_utf8_lossy(&output.stderr)));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
