//! How much a report is about, in one line: the first thing to be known before anybody agrees to it.

use std::collections::BTreeMap;

use gatewright_engine::text::count;

use super::outline::{ACTIONS, verb};
use super::{Mode, Report, StepReport, UnitState};
use crate::apply::Outcome;

/// Says what changes, or has changed, over all clusters; `None` if nothing does.
pub fn blast(report: &Report) -> Option<String> {
    let is_planned = report.mode != Mode::Apply;
    let is_over = |step: &&StepReport| is_planned || step.outcome == Some(Outcome::Done);
    let of_cluster = |steps: &'_ [StepReport]| steps.iter().filter(|step| step.is_change()).filter(is_over).count() > 0;
    let clusters = report.clusters.values().filter(|cluster| of_cluster(&cluster.steps)).count();
    if clusters == 0 {
        return None;
    }
    let (mut actions, mut touched, mut rolled): (BTreeMap<&str, usize>, usize, usize) = (BTreeMap::new(), 0, 0);
    let mut units = 0;
    for cluster in report.clusters.values() {
        let mut of_cluster = std::collections::BTreeSet::new();
        for step in cluster.steps.iter().filter(|step| step.is_change()).filter(is_over) {
            *actions.entry(step.action.as_str()).or_default() += 1;
            rolled += usize::from(step.rolls_pods());
            of_cluster.insert(&step.unit);
        }
        touched += of_cluster.len();
        let known = cluster.units.iter().filter(|unit| unit.state != UnitState::Pruned).map(|unit| &unit.unit);
        units += known.chain(of_cluster).collect::<std::collections::BTreeSet<_>>().len();
    }
    let changes = ACTIONS.iter().filter_map(|action| Some((action, *actions.get(action)?)));
    let changes: Vec<String> =
        changes.map(|(action, number)| format!("{} {}", count(number, "object"), verb(action, is_planned))).collect();
    let word = if is_planned && report.mode == Mode::Plan { "touches" } else { "is about" };
    let pods = match (rolled, report.mode) {
        (0, _) => String::new(),
        (number, Mode::Apply) => format!("; pods of {} are replaced", count(number, "object")),
        (number, _) => format!("; would replace the pods of {}", count(number, "object")),
    };
    let on = format!("{clusters} of {}", count(report.clusters.len(), "cluster"));
    Some(format!("{word} {touched} of {} on {on}: {}{pods}", count(units, "unit"), changes.join(", ")))
}

#[cfg(test)]
mod tests {
    use gatewright_engine::diff::Difference;
    use gatewright_engine::object::ObjectId;
    use gatewright_engine::plan::Plan;

    use super::*;
    use crate::report::{ClusterReport, UnitReport};

    fn step(unit: &str, kind: &str, action: &str, path: &str) -> StepReport {
        let id = |kind: &str| ObjectId::new("", kind, "infra", unit);
        let difference = Difference {
            path: path.to_owned(),
            before: None,
            after: None,
            managers: Vec::new(),
            place: None,
            class: None,
            estimated: false,
        };
        StepReport { differences: vec![difference], ..StepReport::compared(id("Gateway"), id(kind), action, None) }
    }

    fn cluster(steps: Vec<StepReport>, units: &[&str]) -> ClusterReport {
        let unit = |name: &&str| UnitReport {
            unit: ObjectId::new("", "Gateway", "infra", name),
            state: UnitState::Current,
            message: None,
            addresses: Vec::new(),
            ports: Vec::new(),
            since: None,
        };
        ClusterReport { steps, units: units.iter().map(unit).collect(), ..ClusterReport::of(&Plan::default()) }
    }

    #[test]
    fn how_far_a_plan_reaches_is_one_line() {
        let quiet = cluster(vec![step("a", "Service", "keep", "")], &["a"]);
        let busy = cluster(
            vec![
                step("a", "Deployment", "update", "spec.template.spec.containers[a].image"),
                step("a", "Service", "update", "spec.type"),
                step("b", "Deployment", "update", "spec.replicas"),
                step("d", "Service", "create", ""),
            ],
            &["a", "b", "c", "d"],
        );
        let report = Report {
            clusters: [("one".to_owned(), quiet), ("two".to_owned(), busy)].into(),
            ..crate::report::tests::empty(Mode::Plan)
        };
        assert_eq!(
            blast(&report).as_deref(),
            Some(
                "touches 3 of 5 units on 1 of 2 clusters: 1 object to create, 3 objects to update; would replace the pods \
                 of 1 object"
            )
        );
        assert_eq!(blast(&crate::report::tests::empty(Mode::Plan)), None);
    }
}
