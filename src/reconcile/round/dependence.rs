//! The deletions of a round, and the changes that each waits for.
//!
//! What is deleted may be what a change of this round replaces: a Gateway that got another name, or moved to another
//! namespace. Nobody says so, therefore everything counts that looks like it: a change of the same unit, one that stands
//! in the same file, or has the same name, or lives in the same namespace. Such a change has to be done, and healthy.
//! What classes, parameters and namespaces do concerns everything, and what all may need goes only if all went well.
//!
//! What this round did not touch is a bystander and blocks nobody, however sick it is; with one exception: what stands
//! in the file of what is deleted, and is younger, is taken for its replacement as long as it is not healthy, also in
//! later rounds. What was refused or is broken is held already when the round is planned.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::withdrawal::is_near;
use gatewright_engine::plan::{Action, Plan};
use gatewright_engine::unit::{Rendering, Unit};

use crate::reconcile::apply::model::Applied;
use crate::reconcile::model::Unhealthy;
use crate::report::outcome::Outcome;

/// A unit that is not as it should be.
pub(super) struct Open {
    unit: ObjectId,
    files: BTreeSet<String>,
    /// When its sick object was made, if this round did not touch it.
    bystander_since: Option<String>,
    why: String,
}

/// Returns the units that deletions may have to wait for.
pub(super) fn open(
    plan: &Plan,
    applied: &Applied,
    (unhealthy, bystanders): (&Unhealthy, &Unhealthy),
    rendering: &Rendering,
    live: &BTreeMap<ObjectId, Live>,
) -> Vec<Open> {
    let mut open = Vec::new();
    let units: BTreeMap<&ObjectId, &Unit> = rendering.units.iter().map(|unit| (&unit.id, unit)).collect();
    for step in &plan.steps {
        let outcome = applied.outcomes.get(&step.id).filter(|outcome| **outcome != Outcome::Done);
        let failed = outcome.map(|outcome| match outcome {
            Outcome::Failed(_) => format!("{} failed", step.id),
            Outcome::Stale(_) | Outcome::Skipped | Outcome::Done => format!("{} is not done", step.id),
        });
        let sick = |of: &Unhealthy| of.get(&step.id).map(|what| format!("{}: {what}", step.id));
        let (why, bystander_since) = match (failed.or_else(|| sick(unhealthy)), sick(bystanders)) {
            (Some(why), _) => (why, None),
            (None, Some(why)) => (why, Some(made(live, &step.id))),
            (None, None) => continue,
        };
        let files = units.get(&step.unit).into_iter().flat_map(|unit| &unit.files).map(ToString::to_string).collect();
        open.push(Open { unit: step.unit.clone(), files, bystander_since, why });
    }
    open
}

/// Returns the units whose deletion waits, and for what.
pub(super) fn postponed(
    plan: &Plan,
    open: &[Open],
    live: &BTreeMap<ObjectId, Live>,
    kinds: &kinds::Table,
) -> BTreeMap<ObjectId, String> {
    let mut postponed = BTreeMap::new();
    for step in plan.steps.iter().filter(|step| matches!(step.action, Action::Prune(_))) {
        let files = plan.inventory.entries.get(&step.id).map(|entry| &entry.files);
        if let Some(open) = open.iter().find(|open| open.concerns(&step.unit, files, &made(live, &step.id), kinds)) {
            let message = format!("not deleted before {} is as it should be: {}", open.unit, open.why);
            postponed.insert(step.unit.clone(), message);
        }
    }
    postponed
}

/// Times of one form and zone are in the order of their text.
fn made(live: &BTreeMap<ObjectId, Live>, id: &ObjectId) -> String {
    let time = live.get(id).and_then(|live| live.object.body().pointer("/metadata/creationTimestamp")?.as_str());
    time.unwrap_or_default().to_owned()
}

impl Open {
    fn concerns(&self, unit: &ObjectId, files: Option<&BTreeSet<String>>, made: &str, kinds: &kinds::Table) -> bool {
        let is_of_file = files.is_some_and(|files| !files.is_disjoint(&self.files));
        if let Some(since) = &self.bystander_since {
            return is_of_file && since.as_str() > made && self.unit != *unit;
        }
        is_of_file || self.unit.name == unit.name || is_near(&self.unit, unit, kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether a deletion is blocked. What is open has the file of its name, `shared.yaml` apart, and what is
    /// deleted was made at noon.
    #[track_caller]
    fn check(open: (&str, &str, Option<&str>), pruned: (&str, &str, &str), is_blocked: bool) {
        let id = |namespace: &str, name: &str| ObjectId::new("gateway.networking.k8s.io", "Gateway", namespace, name);
        let files = BTreeSet::from([format!("{}.yaml", open.1)]);
        let bystander_since = open.2.map(str::to_owned);
        let sick = Open { unit: id(open.0, open.1), files, bystander_since, why: String::new() };
        let files = BTreeSet::from([pruned.2.to_owned()]);
        let is_concerned = sick.concerns(&id(pruned.0, pruned.1), Some(&files), "12:00", &kinds::Table::builtin());
        assert_eq!(is_concerned, is_blocked, "{open:?} {pruned:?}");
    }

    #[test]
    fn a_deletion_waits_for_what_may_replace_it() {
        check(("a", "new", None), ("a", "old", "old.yaml"), true);
        check(("b", "edge", None), ("a", "edge", "a.yaml"), true);
        check(("b", "new", None), ("a", "old", "new.yaml"), true);
        check(("b", "new", None), ("a", "old", "old.yaml"), false);
        check(("a", "new", Some("12:01")), ("a", "old", "old.yaml"), false);
        check(("a", "new", Some("12:01")), ("a", "old", "new.yaml"), true);
        check(("a", "new", Some("11:59")), ("a", "old", "new.yaml"), false);
    }
}
