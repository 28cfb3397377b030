//! Metrics of a round.

use std::collections::BTreeMap;

use gatewright_engine::plan::refusal::{Reason, Severity};
use gatewright_engine::problem::Scope;
use jiff::Timestamp;

use crate::process::metrics::Metrics;
use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, Report, StepReport, UnitReport, UnitState};

/// The most kinds that are counted apart: a source may name any, and each is a series.
const MOST_KINDS: usize = 50;

/// The kind under which the others are counted.
const OTHER_KIND: &str = "other";

/// Tells the metrics of a round on one cluster.
///
/// A round that could not look leaves in place what the last one has seen: an alert must not end because the cluster
/// cannot be asked.
pub(super) fn measure(metrics: &Metrics, report: &Report, (name, cluster): (&str, &ClusterReport)) {
    let sync = report.sync.as_str();
    let result = result(report, cluster);
    metrics.round(sync, name, result);
    let is_up = cluster.state != ClusterState::Unreachable;
    metrics.cluster_up(name, is_up);
    metrics.unreachable(name, (!is_up).then(|| seconds(cluster.since.unwrap_or(report.started))));
    if result == "done" {
        metrics.succeeded(sync, name, seconds(report.finished));
    }
    let is_done = |step: &&StepReport| step.outcome == Some(Outcome::Done);
    let actions = counted(cluster.steps.iter().filter(is_done).map(|step| step.action.word()));
    for (action, number) in actions {
        metrics.changed(sync, name, action, number);
    }
    let is_mistake = |scope: Scope| scope != Scope::Warning;
    let problems = report.problems.iter().filter(|it| it.is_on(name) && is_mistake(it.problem.scope)).count();
    metrics.problems(sync, name, problems);
    if has_looked(cluster) {
        metrics.objects(sync, name, &objects(cluster));
        metrics.units(sync, name, &counted(cluster.units.iter().filter_map(unit)));
        let guards: Vec<String> = cluster.holds.iter().map(|hold| hold.guard.to_string()).collect();
        metrics.holds(sync, name, &counted(guards.iter().map(String::as_str)));
    }
}

/// Returns a time in seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "metrics are floats; milliseconds need far fewer digits")]
pub(super) fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1000.0
}

/// Returns how a round ended, as its exit code says; a report of the daemon is about one cluster.
fn result(report: &Report, cluster: &ClusterReport) -> &'static str {
    match report.exit_code() {
        _ if cluster.state == ClusterState::Stopped => "stopped",
        0 => "done",
        3 => "held",
        4 => "unreachable",
        _ => "failed",
    }
}

/// Tells whether a round got far enough to see everything.
fn has_looked(cluster: &ClusterReport) -> bool {
    let is_cut_off = matches!(
        cluster.state,
        ClusterState::Unreachable | ClusterState::Stopped | ClusterState::Suspended | ClusterState::Unknown
    );
    cluster.error.is_none() && !is_cut_off && !cluster.is_elsewhere()
}

/// Counts objects by state and kind; what is not there any more, or was never to be, is none.
fn objects(cluster: &ClusterReport) -> BTreeMap<(&'static str, &str), u32> {
    let steps = cluster.steps.iter().filter_map(|step| Some((step_state(step, cluster)?, step.id.kind.as_str())));
    let refused = cluster.refusals.iter().map(|it| (refusal_state(&it.reason), it.id.kind.as_str()));
    let mut all = counted(steps.chain(refused));
    let kinds = counted(all.keys().map(|(_, kind)| *kind));
    let others: Vec<&str> = kinds.into_keys().skip(MOST_KINDS).collect();
    for ((state, _), number) in all.extract_if(.., |(_, kind), _| others.contains(kind)).collect::<Vec<_>>() {
        *all.entry((state, OTHER_KIND)).or_default() += number;
    }
    all
}

fn step_state(step: &StepReport, cluster: &ClusterReport) -> Option<&'static str> {
    let is_deletion = matches!(step.action, StepAction::Prune | StepAction::DeleteFirst);
    match (step.action, &step.outcome) {
        (StepAction::Unchanged, _) => Some("current"),
        (StepAction::Missing | StepAction::Omit | StepAction::Forget, _) => None,
        (StepAction::Different, _) => Some("different"),
        (StepAction::Extra, _) => Some("extra"),
        (StepAction::HandOver, outcome) => (*outcome != Some(Outcome::Done)).then_some("kept"),
        (_, Some(Outcome::Done)) => (!is_deletion).then_some("changed"),
        (_, Some(Outcome::Failed(_) | Outcome::Stale(_))) => Some("failed"),
        (_, Some(Outcome::Skipped)) => Some("held"),
        (_, None) if cluster.state == ClusterState::Held => Some("held"),
        (_, None) => Some("pending"),
    }
}

fn refusal_state(reason: &Reason) -> &'static str {
    match reason.severity() {
        Severity::Kept => "kept",
        Severity::Held => "held",
        Severity::Refused => "refused",
        Severity::Failed => "failed",
    }
}

/// The state of a unit; one that was deleted has none.
fn unit(unit: &UnitReport) -> Option<&'static str> {
    match unit.state {
        UnitState::Current | UnitState::Changed if unit.unawaited.is_some() => Some("unawaited"),
        UnitState::Current => Some("current"),
        UnitState::Changed => Some("changed"),
        UnitState::Pending => Some("pending"),
        UnitState::Different => Some("different"),
        UnitState::Held => Some("held"),
        UnitState::Unhealthy => Some("unhealthy"),
        UnitState::Failed => Some("failed"),
        UnitState::Pruned => None,
    }
}

fn counted<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, u32> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(more: &Value) -> Report {
        let id = |kind: &str| json!({"group": "", "kind": kind, "namespace": "shop", "name": "a"});
        let step = |kind: &str, action: &str, outcome: Value| {
            let mut step = json!({"unit": id("Gateway"), "id": id(kind), "action": action, "differences": []});
            if !outcome.is_null() {
                step["outcome"] = outcome;
            }
            step
        };
        let done = || json!({"result": "done"});
        let refusal = |kind: &str, reason: Value| json!({"unit": id("Gateway"), "id": id(kind), "reason": reason});
        let mut cluster = json!({
            "state": "done",
            "steps": [
                step("Service", "keep", Value::Null), step("Service", "update", done()), step("Job", "prune", done()),
                step("Job", "create", json!({"result": "failed", "message": "no"})),
                step("Role", "prune", json!({"result": "skipped"})), step("Role", "release", Value::Null),
            ],
            "refusals": [
                refusal("Secret", json!({"reason": "kept", "detail": "a mark"})),
                refusal("Deployment", json!({"reason": "held", "detail": "max-delete"})),
                refusal("Deployment", json!({"reason": "unit-held"})),
                refusal("Service", json!({"reason": "foreign", "detail": "argocd"})),
            ],
            "holds": [{"guard": "max-delete", "message": "m", "hint": "h"}],
            "units": [{"unit": id("Gateway"), "state": "held", "addresses": [], "ports": []}],
        });
        for (field, value) in more.as_object().expect("these are fields") {
            cluster[field] = value.clone();
        }
        let report = json!({
            "schema": "s", "sync": "gateways", "source": "platform", "revision": "r1", "mode": "apply",
            "started": "2026-11-20T06:00:00Z", "finished": "2026-11-20T06:00:00Z", "problems": [], "unclaimed": [],
            "clusters": {"eu": cluster},
        });
        serde_json::from_value(report).expect("it is a report")
    }

    fn page(reports: &[Report]) -> String {
        let metrics = Metrics::new("1");
        for report in reports {
            measure(&metrics, report, ("eu", &report.clusters["eu"]));
        }
        metrics.encode().expect("metrics can be written to memory")
    }

    #[test]
    fn objects_are_counted_by_state_and_kind() {
        let page = page(&[report(&json!({}))]);
        let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("gatewright_objects{")).collect();
        let expected = [
            ("Service", "changed", 1),
            ("Service", "current", 1),
            ("Job", "failed", 1),
            ("Deployment", "held", 2),
            ("Role", "held", 1),
            ("Role", "kept", 1),
            ("Secret", "kept", 1),
            ("Service", "refused", 1),
        ];
        let mut expected: Vec<String> = expected
            .iter()
            .map(|(kind, state, number)| {
                format!("sync=\"gateways\",cluster=\"eu\",state=\"{state}\",kind=\"{kind}\"}} {number}")
            })
            .collect();
        expected.sort();
        let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_round_that_could_not_look_takes_nothing_back() {
        let lost = json!({"state": "unreachable", "steps": [], "refusals": [], "holds": [], "units": [],
            "error": {"message": "no answer"}});
        let before = page(&[report(&json!({}))]);
        let after = page(&[report(&json!({})), report(&lost)]);
        for name in ["gatewright_objects", "gatewright_holds", "gatewright_units"] {
            let of = |page: &str| -> Vec<String> {
                page.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
            };
            assert_eq!(of(&after), of(&before), "{name}");
            assert!(!of(&before).is_empty(), "{name}");
        }
        assert!(after.contains("result=\"unreachable\"} 1"), "{after}");
    }

    #[test]
    fn a_source_with_a_thousand_kinds_has_few_series() {
        let refusal = |number: usize| {
            let id = json!({"group": "x", "kind": format!("K{number}"), "namespace": "shop", "name": "a"});
            json!({"unit": id, "id": id, "reason": {"reason": "no-such-kind", "detail": "x"}})
        };
        let refusals: Vec<Value> = (0..1000).map(refusal).collect();
        let page = page(&[report(&json!({"steps": [], "refusals": refusals}))]);
        assert_eq!(page.lines().filter(|line| line.starts_with("gatewright_objects{")).count(), MOST_KINDS + 1);
        assert!(page.contains("state=\"failed\",kind=\"other\"} 950"), "{page}");
    }

    #[test]
    fn the_result_of_a_round_is_its_exit_code() {
        let result = |more: Value| {
            let report = report(&more);
            super::result(&report, &report.clusters["eu"])
        };
        let well = json!({"steps": [], "refusals": [], "holds": [], "units": []});
        let with = |field: &str, value: Value| {
            let mut well = well.clone();
            well[field] = value;
            well
        };
        assert_eq!(result(well.clone()), "done");
        assert_eq!(result(json!({"steps": [], "units": []})), "held");
        assert_eq!(result(with("state", json!("unreachable"))), "unreachable");
        assert_eq!(result(with("state", json!("stopped"))), "stopped");
        let id = json!({"group": "", "kind": "Gateway", "namespace": "shop", "name": "a"});
        let unhealthy = json!([{"unit": id, "state": "unhealthy", "addresses": [], "ports": []}]);
        assert_eq!(result(with("units", unhealthy)), "failed");
        let mut broken = report(&well);
        let problem = json!({"scope": "document", "place": {"file": "a", "line": 1, "column": 1}, "message": "m"});
        broken.problems = vec![serde_json::from_value(problem).expect("it is a problem")];
        assert_eq!(super::result(&broken, &broken.clusters["eu"]), "failed");
        let page = page(&[broken]);
        assert!(!page.contains("gatewright_last_success_timestamp_seconds{"), "{page}");
        assert!(page.contains("gatewright_problems{sync=\"gateways\",cluster=\"eu\"} 1"), "{page}");
    }
}
