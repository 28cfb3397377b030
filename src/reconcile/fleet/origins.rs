//! The places in the source of what a report is about: of every step its spec, and of what differs the line that asks
//! for it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::explain::blame::place;
use gatewright_engine::explain::{Origins, Questions};
use gatewright_engine::object::ObjectId;
use gatewright_engine::overlay::Variant;
use gatewright_engine::problem::Place;
use gatewright_engine::unit::Rendering;

use crate::desired::rendering::{Want, Wanted};
use crate::reconcile::model::Conclusion;
use crate::report::{ClusterReport, StepReport};

/// Of so many units of a round the lines are looked for; it takes some twenty milliseconds of CPU time for each (17 for a
/// Gateway without parameters, 24 for one with those of two levels, among a hundred). Of the others the spec is named.
const MOST_UNITS: usize = 50;

/// Clusters on which the same is wanted, but for values of each, and what is asked about all of them.
struct Group<'a> {
    want: &'a Want,
    clusters: Vec<String>,
    questions: Questions,
}

/// Records in a report where its specs stand.
pub(super) fn specs(report: &mut ClusterReport, rendering: &Rendering) {
    let places: BTreeMap<&ObjectId, &Place> = rendering.units.iter().map(|unit| (&unit.id, &unit.place)).collect();
    for step in &mut report.steps {
        step.place = places.get(&step.unit).map(|place| (*place).clone());
    }
}

/// Records in the reports of a round where their differences are asked for.
pub(super) async fn fields(conclusions: &mut BTreeMap<String, Conclusion>, wanted: &Wanted) {
    for Group { want, clusters, questions } in grouped(conclusions, wanted).await {
        let origins = want.origins(questions).await;
        for cluster in clusters {
            conclusions.entry(cluster).and_modify(|conclusion| note(&mut conclusion.report, &origins));
        }
    }
}

/// Collects what is asked, once for all clusters on which the same lines say what is wanted.
async fn grouped<'a>(conclusions: &BTreeMap<String, Conclusion>, wanted: &'a Wanted) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<Variant, Group<'a>> = BTreeMap::new();
    let mut room = MOST_UNITS;
    for (name, conclusion) in conclusions {
        let steps = &conclusion.report.steps;
        let Some(want) = wanted.get(name).filter(|_| steps.iter().any(|step| !paths(step).is_empty())) else {
            continue;
        };
        let Some(variant) = want.variant().await else { continue };
        let fresh = || Group { want, clusters: Vec::new(), questions: Questions::new() };
        let group = groups.entry(variant.without_values()).or_insert_with(fresh);
        group.clusters.push(name.clone());
        ask(steps, &mut group.questions, &mut room);
    }
    groups.into_values().filter(|group| !group.questions.is_empty()).collect()
}

/// Adds what a report has to ask, as long as there is room for other units than those that are asked about already.
fn ask(steps: &[StepReport], questions: &mut Questions, room: &mut usize) {
    for step in steps {
        let paths = paths(step);
        let is_known = questions.contains_key(&step.unit);
        if paths.is_empty() || (!is_known && *room == 0) {
            continue;
        }
        *room -= usize::from(!is_known);
        let objects = questions.entry(step.unit.clone()).or_default();
        objects.entry(step.id.clone()).or_default().extend(paths);
    }
}

/// Returns the paths that have a place: what is asked for has one; what is to go has none.
fn paths(step: &StepReport) -> BTreeSet<String> {
    let wanted = step.differences.iter().filter(|difference| difference.after.is_some());
    wanted.map(|difference| difference.path.clone()).collect()
}

/// Writes answers into a report; other clusters may have asked for more than it has.
fn note(report: &mut ClusterReport, origins: &Origins) {
    for step in &mut report.steps {
        let Some(places) = origins.get(&step.id) else { continue };
        for difference in step.differences.iter_mut().filter(|difference| difference.after.is_some()) {
            let (Some(origins), Some(after)) = (places.get(&difference.path), &difference.after) else { continue };
            difference.place = place(origins, difference.before.as_ref(), after).cloned();
        }
    }
}
