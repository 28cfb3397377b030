use gatewright_engine::health::pods::Count;
use gatewright_engine::plan::guard::{Guard, Hold};
use gatewright_engine::problem::{Place, Problem};

use super::*;
use crate::report::{Failure, Mode, ProblemReport};

fn gateway(name: &str) -> ObjectId {
    ObjectId::new(GATEWAY_API, "Gateway", "infra", name)
}

fn unit(name: &str, address: usize) -> UnitReport {
    let addresses = vec![format!("10.0.0.{address}")];
    let pods = Some(Count { ready: 1, wanted: 1 });
    UnitReport { addresses, ports: vec![80], pods, ..UnitReport::new(gateway(name), UnitState::Current) }
}

fn report(cluster: &str, second: usize, units: Vec<UnitReport>) -> Report {
    let at = Timestamp::from_second(i64::try_from(second).unwrap_or_default()).unwrap_or_default();
    let state = ClusterReport { state: ClusterState::Done, units, ..ClusterReport::default() };
    let report = Report::about(("edge", "specs"), Mode::Apply, at);
    Report { revision: "r1".to_owned(), clusters: [(cluster.to_owned(), state)].into(), ..report }
}

fn fleet(number: usize, units: impl Fn(usize) -> Vec<UnitReport>) -> Reports {
    let cluster = |number| {
        let name = format!("c-{number:02}");
        (name.clone(), Some(report(&name, number, units(number))))
    };
    (1..=number).map(cluster).collect()
}

fn change(reports: &mut Reports, number: usize, change: impl FnOnce(&mut ClusterReport)) {
    let name = format!("c-{number:02}");
    let cluster = reports.get_mut(&name).and_then(Option::as_mut).and_then(|report| report.clusters.get_mut(&name));
    change(cluster.expect("it has a report"));
}

fn hold(token: &str) -> HoldReport {
    let (message, hint) = ("24 objects would be deleted".to_owned(), "approve it".to_owned());
    let (token, fleet_token) = (Some(token.to_owned()), Some("all".to_owned()));
    let hold = Hold {
        guard: Guard::MaxDelete,
        unit: None,
        units: Vec::new(),
        message,
        hint,
        token,
        fleet_token,
        steps: [].into(),
    };
    HoldReport::from(hold)
}

#[test]
fn clusters_that_stand_alike_are_told_once() {
    let reports = fleet(40, |number| vec![unit("a", number), unit("b", 1)]);
    let expected = "  on all 40 clusters: done between 1970-01-01 00:00:01 and 1970-01-01 00:00:40 UTC, r1
    Gateway infra/a  current    10.0.0.1, 10.0.0.2 and 38 more  80  1 of 1 pods
    Gateway infra/b  current    10.0.0.1  80  1 of 1 pods
";
    assert_eq!(write(&reports, false), expected);
    let verbose = write(&reports, true);
    assert!(verbose.contains("      c-37: 10.0.0.37\n"), "{verbose}");
    assert!(verbose.contains("    c-37: 1970-01-01 00:00:37 UTC\n"), "{verbose}");
    assert_eq!(summary(&reports, false), "  on all 40 clusters: done, r1; 2 units current\n  40 clusters: 40 done\n");
}

#[test]
fn a_cluster_by_itself_is_told_as_ever() {
    let mut reports = fleet(1, |_| vec![unit("b", 1), unit("long-name", 2)]);
    change(&mut reports, 1, |cluster| {
        cluster.state = ClusterState::Held;
        cluster.holds = vec![hold("one")];
        cluster.units[0].message = Some("it waits".to_owned());
    });
    let expected = "  cluster c-01: held at 1970-01-01 00:00:01 UTC, r1
    held by guard max-delete: 24 objects would be deleted
      approve it
      gatewright approve one
    Gateway infra/b          current    10.0.0.1  80  1 of 1 pods  it waits
    Gateway infra/long-name  current    10.0.0.2  80  1 of 1 pods
";
    assert_eq!(write(&reports, false), expected);
    let nothing = Reports::from([("c-01".to_owned(), None)]);
    assert_eq!(write(&nothing, false), "  cluster c-01: no round yet\n");
}

#[test]
fn what_differs_comes_after_what_is_as_it_should_be() {
    let mut reports = fleet(12, |_| vec![unit("a", 1)]);
    for number in [3, 4] {
        change(&mut reports, number, |cluster| cluster.holds = vec![hold(&format!("t{number}"))]);
    }
    for number in 5..=8 {
        let message = format!("c-{number:02}.example.com does not answer");
        change(&mut reports, number, |cluster| {
            *cluster = ClusterReport::failed(ClusterState::Unreachable, message, Some("look at it".to_owned()));
        });
    }
    change(&mut reports, 9, |cluster| cluster.units[0].state = UnitState::Unhealthy);
    reports.insert("c-12".to_owned(), None);
    let expected = "  on 7 of 12 clusters (c-01, c-02, c-03, c-04, c-09, c-10, c-11): done between \
                    1970-01-01 00:00:01 and 1970-01-01 00:00:11 UTC, r1
  on 6 of 12 clusters (c-01, c-02, c-03, c-04, c-10, c-11)
    Gateway infra/a  current    10.0.0.1  80  1 of 1 pods
  on 2 of 12 clusters (c-03, c-04)
    held by guard max-delete: 24 objects would be deleted
      approve it
      gatewright approve all
  cluster c-09
    Gateway infra/a  unhealthy  10.0.0.1  80  1 of 1 pods
  on 4 of 12 clusters (c-05, c-06, c-07, c-08): unreachable between 1970-01-01 00:00:05 and 1970-01-01 00:00:08 UTC
    look at it
    c-05: c-05.example.com does not answer
    c-06: c-06.example.com does not answer
    … 2 more
  cluster c-12: no round yet
";
    assert_eq!(write(&reports, false), expected);
    let expected = "  on 4 of 12 clusters (c-01, c-02, c-10, c-11): done, r1; 1 unit current
  on 2 of 12 clusters (c-03, c-04): done, r1; 1 hold; 1 unit current
  cluster c-09: done, r1; 1 unit unhealthy
  cluster c-05: unreachable: c-05.example.com does not answer
  cluster c-06: unreachable: c-06.example.com does not answer
  cluster c-07: unreachable: c-07.example.com does not answer
  cluster c-08: unreachable: c-08.example.com does not answer
  cluster c-12: no round yet
  12 clusters: 7 done, 4 unreachable, 1 without a round
";
    assert_eq!(summary(&reports, false), expected);
}

/// However clusters differ, everything that is said of a cluster by itself is said where they are together.
#[test]
fn nothing_is_lost_in_a_fold() {
    for seed in 0..300_usize {
        let has = |cluster: usize, bit: usize| (seed.wrapping_mul(2_654_435_761) >> (cluster * 4 + bit)) & 1 == 1;
        let mut reports = fleet(5, |number| {
            let units = [unit("a", number * seed % 3), unit("b", 1), unit("a", number * seed % 3)];
            units.into_iter().enumerate().filter(|(bit, _)| has(number, *bit)).map(|(_, unit)| unit).collect()
        });
        for number in 1..=5 {
            change(&mut reports, number, |cluster| {
                cluster
                    .holds
                    .extend((0..usize::from(has(number, 1)) * 2).map(|copy| hold(&format!("{number}-{copy}"))));
                let (message, hint) = (format!("trouble {}", number % 2), has(number, 3).then(|| "look".to_owned()));
                cluster.error = has(number, 2).then_some(Failure { message, hint });
                cluster.units.iter_mut().for_each(|unit| unit.unawaited = has(number, 3).then(|| "why".to_owned()));
            });
        }
        reports.values_mut().flatten().for_each(|report| {
            let problem = Problem::document(Place::file("a.yaml"), "it is broken");
            report.problems.push(ProblemReport { problem, clusters: vec!["c-02".to_owned()], since: None });
        });
        check(&reports, seed);
    }
}

fn check(reports: &Reports, seed: usize) {
    let names: Vec<&str> = reports.keys().map(String::as_str).collect();
    let paragraphs = fold(&names, reports);
    let verbose = write(reports, true);
    for (position, (name, report)) in reports.iter().enumerate() {
        let of_it = paragraphs.iter().filter(|it| it.on.contains(&position)).flat_map(|it| &it.statements);
        let values = |it: &Statement| {
            let found = it.values.iter().filter(|(_, on)| on.contains(&position)).map(|(values, _)| values.clone());
            found.map(|values| (it.said.clone(), values)).collect::<Vec<_>>()
        };
        let mut found: Vec<(Said, Values)> = of_it.flat_map(values).collect();
        let mut expected = statements(name, report.as_ref());
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "seed {seed}, {name}");
        let values = expected.iter().flat_map(|(_, values)| {
            [values.message.clone(), values.token.clone(), values.addresses.clone(), values.pods.clone()]
        });
        for value in values.flatten() {
            assert!(verbose.contains(&value), "seed {seed}, {name}: no {value:?} in\n{verbose}");
        }
    }
}
