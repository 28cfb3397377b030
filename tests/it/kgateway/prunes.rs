//! Its deletions: by kind and label, whoever owns the object.

use serde_json::{Value, json};

use super::{create, deployed, looked_after, scaled, set_self_managed, with_parameters};
use crate::ownership::site::Site;
use crate::support::kgateway::{Deletion, identities};

const LABEL: &str = "gateway.networking.k8s.io/gateway-name";

fn budget(name: &str, labels: &Value) -> Value {
    let selector = json!({"matchLabels": {"app": "x"}});
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "labels": labels},
        "spec": {"minAvailable": 1, "selector": selector},
    })
}

fn deleted(site: &Site, kinds_and_names: &[&str]) -> Vec<String> {
    let id = |it: &&str| it.replace(' ', &format!(" {}/", site.name));
    kinds_and_names.iter().map(id).collect()
}

#[test]
fn autoscalers_and_budgets_go_by_their_label_alone() {
    let (site, controller) = deployed(&scaled());
    let before = identities(site.server, &site.name);
    for kind in ["PodDisruptionBudget", "HorizontalPodAutoscaler", "VerticalPodAutoscaler"] {
        assert!(before.contains_key(&format!("{kind}/edge")), "{before:?}");
    }
    assert_eq!(controller.deletions(), []);

    // Nobody tells it of those: it finds them when it looks the next time.
    site.create(&budget("by-hand", &json!({LABEL: "edge"})));
    site.create(&budget("of-another", &json!({LABEL: "other"})));
    site.create(&budget("without", &json!({"app": "edge"})));
    controller.settle();
    let ids = |deletions: Vec<Deletion>| -> Vec<String> { deletions.into_iter().map(|deletion| deletion.id).collect() };
    assert_eq!(ids(controller.deletions()), deleted(&site, &["PodDisruptionBudget by-hand"]));
    let left = site.kubectl(&["get", "pdb", "-o", "name"]);
    assert_eq!(left.lines().count(), 3, "{left}");

    // Of a Gateway that is not its own to provision it renders nothing, so that all of them go.
    set_self_managed(&site, "edge");
    controller.settle();
    let all = [
        "PodDisruptionBudget by-hand",
        "PodDisruptionBudget edge",
        "HorizontalPodAutoscaler edge",
        "VerticalPodAutoscaler edge",
    ];
    assert_eq!(ids(controller.deletions()), deleted(&site, &all));
    let after = identities(site.server, &site.name);
    for kind in ["ServiceAccount", "ConfigMap", "Service", "Deployment"] {
        let key = format!("{kind}/edge");
        assert_eq!(after[&key], before[&key]);
    }
}

#[test]
fn names_that_are_too_long_for_a_label_are_shortened_there_as_everywhere() {
    let (site, controller) = looked_after("");
    let name = "a-gateway-with-a-name-that-is-longer-than-any-label-of-kubernetes-may-be";
    create(&site, &with_parameters(&site, name, &scaled()));
    controller.settle();
    let label = format!("jsonpath={{.items[*].metadata.labels.{}}}", LABEL.replace('.', "\\."));
    let label = site.kubectl(&["get", "pdb", "-o", &label]);
    assert!(label.len() == 63 && name.starts_with(&label[..50]), "{label}");
    site.create(&budget("by-hand", &json!({LABEL: label})));
    controller.settle();
    assert_eq!(controller.deletions().len(), 1, "{:?}", controller.deletions());
    assert!(controller.deletions()[0].id.ends_with("/by-hand"));
}

#[test]
fn it_looks_when_it_starts() {
    let (site, mut controller) = deployed(&json!({"selfManaged": {}}));
    controller.stop();
    site.create(&budget("edge", &json!({LABEL: "edge"})));
    let reconciles = controller.reconciles(&site.name, "edge");
    controller.restart();
    assert!(controller.reconciles(&site.name, "edge") > reconciles);
    assert_eq!(controller.deletions().len(), 1);
}
