//! Where in the source that stands which a report is about: of every step its spec, and of what differs the line that asks
//! for it.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::diff::Difference;
use gatewright_engine::explain::Questions;
use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Place;
use gatewright_engine::unit::Rendering;

use crate::rendering::Want;
use crate::report::{ClusterReport, StepReport};

/// Of so many units the lines are looked for; it takes some ten milliseconds for each. Of the others the spec is named.
const MOST_UNITS: usize = 50;

/// Notes in a report where its specs stand.
pub(super) fn specs(report: &mut ClusterReport, rendering: &Rendering) {
    let places: BTreeMap<&ObjectId, &Place> = rendering.units.iter().map(|unit| (&unit.id, &unit.place)).collect();
    for step in &mut report.steps {
        step.place = places.get(&step.unit).map(|place| (*place).clone());
    }
}

/// Notes in a report where its differences are asked for.
pub(super) async fn fields(report: &mut ClusterReport, want: &Want) {
    let questions = questions(&report.steps);
    if questions.is_empty() {
        return;
    }
    let mut origins = want.origins(questions).await;
    for step in &mut report.steps {
        let Some(places) = origins.get_mut(&step.id) else { continue };
        for difference in &mut step.differences {
            difference.place = places.get(&difference.path).cloned();
        }
    }
}

/// What is asked for has a place; what is to go has none.
fn questions(steps: &[StepReport]) -> Questions {
    let mut questions = Questions::new();
    for step in steps {
        let is_wanted = |difference: &&Difference| difference.after.is_some();
        let paths: BTreeSet<String> =
            step.differences.iter().filter(is_wanted).map(|difference| difference.path.clone()).collect();
        let is_room = questions.len() < MOST_UNITS || questions.contains_key(&step.unit);
        if !paths.is_empty() && is_room {
            questions.entry(step.unit.clone()).or_default().insert(step.id.clone(), paths);
        }
    }
    questions
}
