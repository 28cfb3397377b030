//! Something of ours has the place that something new needs.

use serde_json::{Value, json};

use super::{document, token};
use crate::ownership::site::Site;

/// A port of nodes for each test: the tests share a server. It gives nobody who asks for any port one of the first 86
/// (KEP-3668).
fn port(of: u16) -> u16 {
    30_010 + of
}

fn service(site: &Site, name: &str, spec: &Value) -> String {
    document(site, "v1", "Service", name, &json!({"spec": spec}))
}

fn node_port(port: u16) -> Value {
    json!({"type": "NodePort", "selector": {"app": "a"}, "ports": [{"port": 80, "nodePort": port}]})
}

/// A Gateway whose Service has a fixed port on the nodes.
fn gateway(site: &Site, name: &str, port: u16) {
    let reference = json!({"group": "gateway.kgateway.dev", "kind": "GatewayParameters", "name": name});
    let gateway = crate::rounds::installation::gateway(&site.name, name, 80)
        .replace("\"listeners\"", &format!("\"infrastructure\":{{\"parametersRef\":{reference}}},\"listeners\""));
    let service = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    let spec = json!({"spec": {"kube": {"service": service}}});
    let parameters = document(site, "gateway.kgateway.dev/v1alpha1", "GatewayParameters", name, &spec);
    site.spec(name, &format!("{gateway}\n---\n{parameters}\n"));
}

#[test]
fn a_renamed_gateway_takes_the_port_of_the_old_one_by_approval() {
    let site = Site::new("");
    gateway(&site, "old", port(0));
    site.sync().exits(0).says("4 objects created");
    let before = site.versions();
    site.drop(&["old"]);
    gateway(&site, "new", port(0));

    let message = format!(
        "Service {0}/old, which is to be deleted, has nodePort {1} that Service {0}/new needs",
        site.name,
        port(0)
    );
    let plan = site.run(&["plan"]).exits(3).says("held by guard delete-first").says(&message);
    site.sync().exits(3).says(&message).says("no changes");
    assert_eq!(site.versions(), before, "both stay as they are");
    assert_eq!(site.inventory().entries.len(), 4);

    site.run(&["approve", &token(&plan)]).exits(0).says("delete-first Service").says("create Service");
    let json: Value = serde_json::from_str(&site.run(&["plan", "--format", "json"]).exits(0).out).expect("it is JSON");
    crate::commands::obeys_the_schema(&json);
    let steps = json["clusters"]["c"]["steps"].as_array().expect("there are some");
    let place = |action: &str, name: &str| {
        let is_it =
            |step: &Value| step["action"] == action && step["id"]["kind"] == "Service" && step["id"]["name"] == name;
        steps.iter().position(is_it).expect("it is planned")
    };
    assert_eq!(place("release-first", "old") + 1, place("create", "new"));
    site.sync().exits(0).says("delete-first Service").says("4 objects created").says("3 objects deleted");
    assert_eq!((site.left_of("old").len(), site.left_of("new").len()), (0, 4));
    assert_eq!(site.get("service/new")["spec"]["ports"][0]["nodePort"], port(0));
    assert_eq!(site.inventory().entries.len(), 4);
    site.sync().exits(0).says("no changes");
}

#[test]
fn what_went_first_comes_back_if_it_was_for_nothing() {
    let site = Site::new("unclaimed: apply");
    site.spec("old", &service(&site, "old", &node_port(port(1))));
    site.want(&["edge"], 80);
    site.sync().exits(0);
    let address = site.get("service/old")["spec"]["clusterIP"].clone();
    site.drop(&["old"]);
    // Only when it is really made it shows that this is no address of the cluster.
    let mut spec = node_port(port(1));
    spec["clusterIP"] = "192.0.2.1".into();
    site.spec("new", &service(&site, "new", &spec));
    let held = site.sync().exits(3).says("held by guard delete-first");
    site.run(&["approve", &token(&held)]).exits(0);
    let run = site.sync().exits(1);
    run.says("what it made room for failed; the former Service").says("was put back");
    let old = site.get("service/old");
    assert_eq!((&old["spec"]["clusterIP"], &old["spec"]["ports"][0]["nodePort"]), (&address, &json!(port(1))));
    let uid = old["metadata"]["uid"].as_str().map(str::to_owned);
    let entries = site.inventory().entries;
    let entry = entries.iter().find(|(id, _)| id.name == "old").map(|(_, entry)| entry.uid.clone());
    assert_eq!(entry, Some(uid), "it is ours as before");

    // And goes as ever when nobody needs its place.
    site.drop(&["new"]);
    site.sync().exits(0).says("1 object deleted");
}

#[test]
fn a_place_of_something_that_stays_is_not_taken() {
    let site = Site::new("unclaimed: apply");
    site.spec("old", &service(&site, "old", &node_port(port(2))));
    site.sync().exits(0);
    site.spec("new", &service(&site, "new", &node_port(port(2))));
    let refusal = format!("taken: Service {}/old has nodePort {}, and stays", site.name, port(2));
    site.run(&["plan"]).exits(1).says(&refusal);
    site.sync().exits(1).says(&refusal).says("no changes");
    site.kubectl(&["annotate", "service", "old", "gatewright.dev/prune=disabled"]);
    site.drop(&["old"]);
    site.sync().exits(1).says(&refusal).says("kept: it carries gatewright.dev/prune");
}
