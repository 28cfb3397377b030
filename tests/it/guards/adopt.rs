//! Objects that bear nobody's mark were made by somebody: they become ours when a person agrees, and not before.

use serde_json::{Value, json};

use super::{document, token};
use crate::ownership::site::{Site, version};
use crate::rounds::installation::gateway;

fn stranger(site: &Site, api_version: &str, kind: &str, name: &str) {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if kind == "Service" {
        object["spec"] = json!({"ports": [{"port": 1}]});
    }
    site.create(&object);
}

#[test]
fn what_nobody_has_marked_is_adopted_when_a_person_agrees_and_not_before() {
    let site = Site::new("");
    stranger(&site, "v1", "ConfigMap", "edge");
    let before = version(&site.get("configmap/edge"));
    site.want(&["edge", "other"], 80);
    let held = format!("Gateway {}/edge is held by guard adopt", site.name);
    let what = format!("1 object exists and bears nobody's mark: ConfigMap {}/edge (differs in ", site.name);
    let first = site.run(&["plan"]).exits(3).says(&held).says(&what);
    let sync = site.sync().exits(3).says(&held).says("4 objects created");
    assert_eq!(token(&first), token(&sync), "the first plan knows already who we are");
    let plan = site.run(&["plan"]).exits(3).says(&held).says(&what);
    assert_eq!(token(&plan), token(&sync), "what is seen is what is approved");
    let again = site.sync().exits(3).says(&held);
    assert_eq!(version(&site.get("configmap/edge")), before);
    assert_eq!(site.left_of("edge"), ["ConfigMap"], "half of a data plane helps nobody");
    assert!(!site.inventory().entries.keys().any(|id| id.name == "edge"), "what is not ours is not written down");

    site.run(&["approve", &token(&again)]).exits(0);
    site.sync().exits(0).says("3 objects created, 1 object adopted");
    site.sync().exits(0).says("no changes, 8 objects up to date");
}

#[test]
fn a_token_for_adoption_lifts_exactly_what_was_seen() {
    let site = Site::new("");
    stranger(&site, "v1", "ConfigMap", "edge");
    site.want(&["edge"], 80);
    let first = token(&site.sync().exits(3));
    site.run(&["approve", &first]).exits(0);
    // Somebody makes one thing more before the round.
    stranger(&site, "v1", "Service", "edge");
    let service = version(&site.get("service/edge"));
    let held = site.sync().exits(3).says("2 objects exist and bear nobody's mark");
    assert_ne!(token(&held), first);
    assert_eq!(version(&site.get("service/edge")), service);

    // Another object of that name is another one.
    site.kubectl(&["delete", "service", "edge"]);
    site.kubectl(&["delete", "configmap", "edge"]);
    stranger(&site, "v1", "ConfigMap", "edge");
    assert_ne!(token(&site.sync().exits(3)), first);
}

#[test]
fn what_has_lost_its_marks_is_mended_without_asking() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    site.kubectl(&["label", "configmap/edge", "gatewright.dev/sync-"]);
    site.kubectl(&["annotate", "configmap/edge", "gatewright.dev/owner-"]);
    site.sync().exits(0).says("1 object adopted");
}

#[test]
fn objects_of_the_system_are_never_adopted() {
    for policy in ["confirm", "if-unowned", "always"] {
        let site = Site::new(&format!("unclaimed: apply, adopt: {{policy: {policy}}}"));
        let service = |site: &Site| -> Value {
            let json = site.server.kubectl_ok(&["-n", "default", "get", "service", "kubernetes", "-o", "json"]);
            serde_json::from_str(&json).expect("kubectl prints JSON")
        };
        let before = version(&service(&site));
        stranger(&site, "v1", "ConfigMap", "kube-root-ca.crt");
        stranger(&site, "v1", "ServiceAccount", "default");
        site.spec("kubernetes", &gateway("default", "kubernetes", 80));
        site.spec("ca", &document(&site, "v1", "ConfigMap", "kube-root-ca.crt", &json!({"data": {"ca.crt": "ours"}})));
        site.spec("account", &document(&site, "v1", "ServiceAccount", "default", &json!({})));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
        site.spec("namespace", &namespace.to_string());

        let mut run = site.sync().exits(3);
        for object in [
            "Service default/kubernetes".to_owned(),
            format!("ConfigMap {}/kube-root-ca.crt", site.name),
            format!("ServiceAccount {}/default", site.name),
            "Namespace kube-system".to_owned(),
        ] {
            run = run.says(&format!("{object}: foreign: it belongs to the system"));
        }
        assert!(!run.out.contains("gatewright approve"), "nobody can agree to that: {}", run.out);
        assert_eq!(version(&service(&site)), before, "{policy}");
    }
}
