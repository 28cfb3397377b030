//! The extent of a report, in one line: the first thing to be known before anybody agrees to it.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::kinds::has_pods;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::text::{count, listed};

use super::action::StepAction;
use super::{ClusterReport, Mode, Report, StepReport, UnitState};

/// The most clusters of a wave that are named.
const MOST_NAMES: usize = 4;

/// Says what changes, or has changed, over all clusters; `None` if nothing does.
pub fn blast(report: &Report) -> Option<String> {
    let mut reach = Reach::default();
    report.clusters.values().for_each(|cluster| reach.add(cluster, report.mode));
    if reach.clusters == 0 {
        return None;
    }
    let word = match report.mode {
        Mode::Plan => "change",
        Mode::Apply => "changed",
        Mode::Report => "differ",
    };
    let units = count(reach.units, "unit");
    let on = format!("{} of {}", reach.clusters, count(report.clusters.len(), "cluster"));
    let (touched, changes, pods) = (reach.touched, reach.changes(report.mode), reach.pods(report.mode));
    Some(format!("{touched} of {units} on {on} {word}: {changes}{pods}"))
}

/// Says in which order a plan reaches the clusters on which it replaces pods, and where a person agrees first; `None` if
/// that is at once.
pub fn order(report: &Report) -> Option<String> {
    let waits = |name: &String| report.clusters.get(name).is_some_and(|it| it.waits_for(Guard::RolloutApproval));
    let is_asked = |wave: &Vec<String>| wave.iter().any(waits);
    match report.waves.as_slice() {
        [] | [_] => None,
        [first, second] if first.len() == 1 && !is_asked(first) && !is_asked(second) => {
            Some(format!("first on cluster {}, on the others once it is healthy there", first[0]))
        }
        waves => {
            let names = |wave: &Vec<String>| match wave.as_slice() {
                [name] => format!("on {name}"),
                names => format!("on {} ({})", count(names.len(), "cluster"), listed(names, MOST_NAMES)),
            };
            let agreed = |wave: &Vec<String>| if is_asked(wave) { " once a person has agreed" } else { "" };
            let waves: Vec<String> = waves.iter().map(|wave| names(wave) + agreed(wave)).collect();
            Some(format!("in waves: {}, each once it is healthy on those before", waves.join("; ")))
        }
    }
}

/// The extent of a report, in numbers.
#[derive(Default)]
struct Reach {
    /// The clusters on which something changes.
    clusters: usize,
    /// All units, on each cluster apart.
    units: usize,
    /// Those of which something changes.
    touched: usize,
    /// The objects, by what is done with them.
    actions: BTreeMap<StepAction, usize>,
    /// The objects whose pods are replaced.
    rolled: usize,
}

impl StepReport {
    /// Tells whether pods are replaced by it: something of their template differs, or the workload is replaced.
    pub fn rolls_pods(&self) -> bool {
        let has_pods = self.id.group == "apps" && has_pods(&self.id.kind);
        let is_about_pods = || self.differences.iter().any(|difference| difference.path.starts_with("spec.template"));
        has_pods && (self.action == StepAction::Recreate || (self.is_change() && is_about_pods()))
    }
}

impl Reach {
    fn add(&mut self, cluster: &ClusterReport, mode: Mode) {
        let mut touched = BTreeSet::new();
        for step in cluster.changes_in(mode) {
            *self.actions.entry(step.action).or_default() += 1;
            self.rolled += usize::from(step.rolls_pods());
            touched.insert(&step.unit);
        }
        self.clusters += usize::from(!touched.is_empty());
        self.touched += touched.len();
        let known = cluster.units.iter().filter(|unit| unit.state != UnitState::Pruned).map(|unit| &unit.unit);
        self.units += known.chain(touched).collect::<BTreeSet<_>>().len();
    }

    fn changes(&self, mode: Mode) -> String {
        let verb = |action: &StepAction| action.verb(mode != Mode::Apply);
        let words =
            self.actions.iter().map(|(action, number)| format!("{} {}", count(*number, "object"), verb(action)));
        words.collect::<Vec<_>>().join(", ")
    }

    fn pods(&self, mode: Mode) -> String {
        let objects = count(self.rolled, "object");
        match (self.rolled, mode) {
            (0, _) => String::new(),
            (_, Mode::Apply) => format!("; pods of {objects} are replaced"),
            (_, Mode::Plan | Mode::Report) => format!("; would replace the pods of {objects}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewright_engine::diff::Difference;
    use gatewright_engine::object::ObjectId;
    use jiff::Timestamp;

    use super::*;
    use crate::report::UnitReport;

    fn step(unit: &str, kind: &str, action: StepAction, path: &str) -> StepReport {
        let group = |kind: &str| if kind == "Deployment" { "apps" } else { "" };
        let id = |kind: &str| ObjectId::new(group(kind), kind, "infra", unit);
        let difference = Difference {
            path: path.to_owned(),
            before: None,
            after: None,
            managers: Vec::new(),
            place: None,
            class: None,
            estimated: false,
            content: None,
        };
        StepReport { differences: vec![difference], ..StepReport::new(id("Gateway"), id(kind), action, None) }
    }

    fn empty() -> Report {
        Report::about(("edge", "specs"), Mode::Plan, Timestamp::UNIX_EPOCH)
    }

    fn cluster(steps: Vec<StepReport>, units: &[&str]) -> ClusterReport {
        let unit = |name: &&str| UnitReport::new(ObjectId::new("", "Gateway", "infra", name), UnitState::Current);
        ClusterReport { steps, units: units.iter().map(unit).collect(), ..ClusterReport::default() }
    }

    #[test]
    fn how_far_a_plan_reaches_is_one_line() {
        let quiet = cluster(vec![step("a", "Service", StepAction::Unchanged, "")], &["a"]);
        let busy = cluster(
            vec![
                step("a", "Deployment", StepAction::Update, "spec.template.spec.containers[a].image"),
                step("a", "Service", StepAction::Update, "spec.type"),
                step("b", "Deployment", StepAction::Update, "spec.replicas"),
                step("d", "Service", StepAction::Create, ""),
            ],
            &["a", "b", "c", "d"],
        );
        let report = Report { clusters: [("one".to_owned(), quiet), ("two".to_owned(), busy)].into(), ..empty() };
        assert_eq!(
            blast(&report).as_deref(),
            Some(
                "3 of 5 units on 1 of 2 clusters change: 1 object to create, 3 objects to update; would replace the pods \
                 of 1 object"
            )
        );
        assert_eq!(blast(&empty()), None);
    }
}
