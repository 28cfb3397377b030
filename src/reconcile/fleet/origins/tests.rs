use std::fmt::Write as _;
use std::sync::Arc;

use gatewright_engine::marks::Marker;
use gatewright_engine::pack::Packs;
use gatewright_engine::plan::Plan;
use gatewright_engine::selector::ClusterFacts;
use serde_json::{Value, json};

use super::*;
use crate::desired::rendering::renderings::Renderings;
use crate::report::action::StepAction;
use crate::source::Snapshot;

const OVERLAY: &str = "
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: eu}
spec:
  clusters: {names: [eu-1, eu-2]}
  parameters: {kube: {deployment: {replicas: 3}}}
";

/// Returns what is wanted on these clusters: so many Gateways, with more replicas in the EU.
fn wanted(clusters: &[&str], gateways: usize) -> Wanted {
    let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("it is sound");
    let packs = Arc::new(Packs::new(vec![pack]).expect("it is sound"));
    let settings = serde_json::from_value(json!({"source": "specs", "clusters": {}})).expect("a test knows them");
    let marker = Marker::new("i", "edge");
    let renderings = Arc::new(Renderings::new(settings, packs, "packs", marker));
    let mut specs = String::new();
    for number in 0..gateways {
        let _ = write!(
            specs,
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: n{number}, namespace: shop}}\n\
             spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n---\n"
        );
    }
    let tree = [("overlay.yaml", OVERLAY), ("specs.yaml", specs.as_str())].into_iter().collect();
    let snapshot = Arc::new(Snapshot::new("one".to_owned(), tree));
    let facts = |name: &str| ClusterFacts { name: name.to_owned(), ..ClusterFacts::default() };
    let want = |name: &&str| ((*name).to_owned(), Want::later(&renderings, &snapshot, &facts(name)));
    clusters.iter().map(want).collect()
}

/// A round that has found on every cluster that fields of the Deployments of these Gateways differ.
fn found(clusters: &[(&str, std::ops::Range<usize>, &str)]) -> BTreeMap<String, Conclusion> {
    let step = |number: usize, path: &str| {
        let id = |group: &str, kind: &str| ObjectId::new(group, kind, "shop", &format!("n{number}"));
        let (unit, id) = (id("gateway.networking.k8s.io", "Gateway"), id("apps", "Deployment"));
        let difference = json!({"path": path, "before": 1, "after": 3, "managers": []});
        let difference = serde_json::from_value(difference).expect("it is a difference");
        StepReport { differences: vec![difference], ..StepReport::new(unit, id, StepAction::Different, None) }
    };
    let conclusion = |(name, units, path): &(&str, std::ops::Range<usize>, &str)| {
        let steps = units.clone().map(|number| step(number, path)).collect();
        ((*name).to_owned(), Conclusion::of(ClusterReport { steps, ..ClusterReport::of(&Plan::default()) }))
    };
    clusters.iter().map(conclusion).collect()
}

/// Returns where a cluster's differences are asked for.
fn places(conclusion: &Conclusion) -> Vec<Option<String>> {
    let differences = conclusion.report.steps.iter().flat_map(|step| &step.differences);
    differences.map(|difference| difference.place.as_ref().map(ToString::to_string)).collect()
}

#[tokio::test]
async fn clusters_that_share_a_rendering_are_asked_about_once() {
    let wanted = wanted(&["eu-1", "eu-2", "lab", "us-1"], 3);
    let (replicas, ports) =
        ("spec.replicas", "spec.template.spec.containers[kgateway-proxy].ports[listener-8080].containerPort");
    let mut round =
        found(&[("eu-1", 0..2, replicas), ("eu-2", 1..3, replicas), ("lab", 0..0, ""), ("us-1", 0..1, ports)]);
    let groups = grouped(&round, &wanted).await;
    let asked: Vec<(Vec<&str>, usize)> =
        groups.iter().map(|it| (it.clusters.iter().map(String::as_str).collect(), it.questions.len())).collect();
    let (eu, us) = ((vec!["eu-1", "eu-2"], 3), (vec!["us-1"], 1));
    assert!(asked == [eu.clone(), us.clone()] || asked == [us, eu], "{asked:?}");
    fields(&mut round, &wanted).await;
    let overlay = Some("overlay.yaml:7".to_owned());
    assert_eq!(places(&round["eu-1"]), [overlay.clone(), overlay.clone()]);
    assert_eq!(places(&round["eu-2"]), [overlay.clone(), overlay.clone()]);
    assert_eq!(places(&round["us-1"]), [Some("specs.yaml:4".to_owned())]);

    // What is asked for on one cluster may be what is to go from another one.
    let mut round = found(&[("eu-1", 0..1, replicas), ("eu-2", 0..1, replicas)]);
    let other = &mut round.get_mut("eu-2").expect("it is there").report.steps[0].differences[0];
    other.after = None;
    fields(&mut round, &wanted).await;
    assert_eq!((places(&round["eu-1"]), places(&round["eu-2"])), (vec![overlay], vec![None]));
}

#[tokio::test]
async fn a_round_has_its_limit_whatever_the_number_of_its_clusters() {
    let units = MOST_UNITS + 5;
    let wanted = wanted(&["eu-1", "eu-2", "us-1"], units);
    let path = "spec.replicas";
    let half = MOST_UNITS / 2;
    let check = async |round: &[(&str, std::ops::Range<usize>, &str)], expected: &[usize]| {
        let mut asked: Vec<usize> =
            grouped(&found(round), &wanted).await.iter().map(|group| group.questions.len()).collect();
        asked.sort_unstable();
        assert_eq!(asked, expected, "{round:?}");
    };
    check(&[("eu-1", 0..units, path), ("eu-2", 0..units, path), ("us-1", 0..units, path)], &[MOST_UNITS]).await;
    check(&[("eu-1", 0..half, path), ("eu-2", half..units, path)], &[MOST_UNITS]).await;
    check(&[("eu-1", 0..half, path), ("us-1", 0..units, path)], &[half, MOST_UNITS - half]).await;
}
