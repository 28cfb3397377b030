use gatewright_engine::diff::Difference;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::report::{ClusterState, Failure, Mode, UnitState, text};

const GATEWAY: &str = "gateway.networking.k8s.io";

fn difference(path: &str, before: &str, after: &str) -> Difference {
    let (before, after) = (Some(json!(before)), Some(json!(after)));
    let (managers, place, class, content) = (Vec::new(), None, None, None);
    Difference { path: path.to_owned(), before, after, managers, place, class, estimated: false, content }
}

fn update(kind: &str, differences: Vec<Difference>) -> StepReport {
    let unit = ObjectId::new(GATEWAY, "Gateway", "infra", "edge");
    let id = ObjectId::new(if kind == "Deployment" { "apps" } else { "" }, kind, "infra", "edge");
    StepReport { differences, ..StepReport::new(unit, id, StepAction::Update, None) }
}

fn image() -> StepReport {
    update("Deployment", vec![difference("spec.template.spec.containers[proxy].image", "v1", "v2")])
}

fn address(number: usize) -> StepReport {
    let address = |net: usize| format!("10.{net}.0.{number}");
    let size = difference("spec.externalTrafficPolicy", "Cluster", "Local");
    update("Service", vec![size, difference("spec.loadBalancerIP", &address(0), &address(1))])
}

fn fleet(number: usize, steps: impl Fn(usize) -> Vec<StepReport>) -> Report {
    let cluster = |number| {
        let (state, steps) = (ClusterState::Planned, steps(number));
        (format!("c-{number:02}"), ClusterReport { state, steps, ..ClusterReport::default() })
    };
    let report = Report::about(("edge", "specs"), Mode::Plan, Timestamp::UNIX_EPOCH);
    Report { clusters: (1..=number).map(cluster).collect(), ..report }
}

fn told(report: &Report) -> String {
    let text = text::write(report, text::Look::default());
    text.split_once("\n\n").map_or_else(String::new, |(_, rest)| rest.to_owned())
}

#[test]
fn the_same_change_of_a_fleet_is_told_once() {
    let report = fleet(40, |_| vec![image()]);
    let expected = "on all 40 clusters
  Gateway infra/edge
    ~ update Deployment infra/edge  (replaces pods)
        spec.template.spec.containers[proxy].image: \"v1\" -> \"v2\"
  plan on each: 1 object to update
";
    assert_eq!(told(&report), expected);
}

#[test]
fn a_field_with_another_value_on_each_cluster_is_told_with_them() {
    let report = fleet(7, |number| vec![image(), address(number)]);
    let told = told(&report);
    let field = "        spec.externalTrafficPolicy: \"Cluster\" -> \"Local\"
        spec.loadBalancerIP differs by cluster:
          c-01: \"10.0.0.1\" -> \"10.1.0.1\"
";
    assert!(told.contains(field), "{told}");
    assert!(told.contains("          … 2 more\n"), "{told}");
    assert_eq!(told.matches("clusters").count(), 1, "{told}");
}

#[test]
fn what_is_true_of_some_comes_after_what_is_true_of_more_and_failures_last() {
    let mut report = fleet(12, |number| if number > 9 { Vec::new() } else { vec![image()] });
    let failed = ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None);
    report.clusters.insert("c-03".to_owned(), failed);
    report.clusters.get_mut("c-05").expect("it is there").steps.push(address(5));
    let told = told(&report);
    let headings: Vec<&str> = told.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    let expected = [
        "on 8 of 12 clusters (c-01, c-02, c-04, c-05, c-06, c-07, c-08, c-09)",
        "cluster c-05",
        "on 7 of 12 clusters (c-01, c-02, c-04, c-06, c-07, c-08, c-09)",
        "on 3 of 12 clusters (c-10, c-11, c-12)",
        "cluster c-03",
    ];
    assert_eq!(headings, expected, "{told}");
}

/// However clusters differ, everything that is said of a cluster by itself is said where they are together.
#[test]
fn nothing_is_lost_in_a_fold() {
    for seed in 0..200_usize {
        let has = |cluster: usize, bit: usize| (seed.wrapping_mul(2_654_435_761) >> (cluster * 3 + bit)) & 1 == 1;
        let mut report = fleet(5, |cluster| {
            let steps = [image(), address(cluster * seed % 3), image()];
            steps.into_iter().enumerate().filter(|(bit, _)| has(cluster, *bit)).map(|(_, step)| step).collect()
        });
        for (number, cluster) in report.clusters.values_mut().enumerate().filter(|(number, _)| has(*number, 2)) {
            cluster.notes.push(format!("note {}", number % 2));
            let message = "no pod is ready".to_owned();
            cluster.error = has(number, 1).then_some(Failure { message, hint: None });
            let unit = ObjectId::new(GATEWAY, "Gateway", "infra", "edge");
            cluster.units.push(UnitReport::new(unit, UnitState::Unhealthy));
        }
        for (name, cluster) in &report.clusters {
            let of_it: Vec<Paragraph<'_>> =
                fold(&report).filter(|it| it.clusters.names.contains(&name.as_str())).collect();
            let steps: usize = of_it.iter().map(|it| it.part.steps.len()).sum();
            assert_eq!(steps, cluster.steps.len(), "seed {seed}, {name}");
            let differences = |step: &StepReport, it: &Paragraph<'_>| {
                step.differences.len() + it.differing(step).iter().filter(|field| is_for(field, name)).count()
            };
            let found = of_it.iter().flat_map(|it| it.part.steps.iter().map(|step| differences(step, it)));
            let all = cluster.steps.iter().map(|step| step.differences.len());
            assert_eq!(found.sum::<usize>(), all.sum::<usize>(), "seed {seed}, {name}");
            let notes: usize = of_it.iter().map(|it| it.part.notes.len() + it.part.units.len()).sum();
            assert_eq!(notes, cluster.notes.len() + cluster.units.len(), "seed {seed}, {name}");
            let errors = of_it.iter().filter(|it| it.part.error.is_some()).count();
            assert_eq!(errors, usize::from(cluster.error.is_some()), "seed {seed}, {name}");
            assert_eq!(of_it.iter().filter(|it| it.summary.is_some()).count(), 1, "seed {seed}, {name}");
        }
    }
}

fn is_for(field: &Differing<'_>, name: &str) -> bool {
    field.values.iter().any(|(clusters, _)| clusters.names.contains(&name))
}

#[test]
fn clusters_are_named_as_far_as_there_is_room() {
    let names: Vec<String> = (1..=40).map(|number| format!("c-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let check = |on: Vec<usize>, expected: &str| assert_eq!(Clusters::of(&names, &on).to_string(), expected);
    check(vec![4], "c-05");
    check(vec![0, 1], "2 of 40 clusters (c-01, c-02)");
    check((0..40).collect(), "all 40 clusters");
    check((3..40).collect(), "37 of 40 clusters (all but c-01, c-02, c-03)");
    check((0..20).collect(), "20 of 40 clusters (c-01, c-02, c-03, c-04, c-05, c-06, c-07, c-08 and 12 more)");
    assert_eq!(Clusters::of(&names[..2], &[0, 1]).to_string(), "all 2 clusters (c-01, c-02)");
    assert!(Clusters::of(&names, &(0..20).collect::<Vec<_>>()).words(true).ends_with("c-19, c-20)"));
}
