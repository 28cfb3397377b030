//! Objects that two units want.

use std::collections::BTreeMap;

use super::{Rendering, Unit};
use crate::object::ObjectId;
use crate::problem::Problem;

impl Rendering {
    /// Two units that want one object would take turns for ever: neither is used.
    pub(super) fn refuse_collisions(&mut self) {
        let mut owners: BTreeMap<&ObjectId, Vec<&Unit>> = BTreeMap::new();
        for unit in &self.units {
            unit.all().for_each(|object| owners.entry(object.id()).or_default().push(unit));
        }
        let mut problems = Vec::new();
        for (object, units) in owners.into_iter().filter(|(_, units)| units.len() > 1) {
            problems.extend(units.iter().map(|unit| {
                let message = match units.iter().find(|other| other.id == unit.id && other.place != unit.place) {
                    Some(twin) => format!("the same object stands at {} too", twin.place),
                    None if units.iter().all(|other| other.id == unit.id) => {
                        format!("{object} is rendered for it twice")
                    }
                    None => format!("{object} is rendered for {} too", others(unit, &units)),
                };
                Problem::document(unit.place.clone(), message).about(unit.id.clone())
            }));
        }
        let flawed = problems.iter().filter_map(|problem| Some((problem.object.clone()?, problem.place.clone())));
        self.flawed.extend(flawed);
        self.broken.extend(problems.iter().filter_map(|problem| problem.object.clone()));
        self.units.retain(|unit| !problems.iter().any(|problem| problem.object.as_ref() == Some(&unit.id)));
        self.problems.extend(problems);
    }
}

/// Names the other units that want the same object.
fn others(unit: &Unit, units: &[&Unit]) -> String {
    let others = units.iter().filter(|other| other.id != unit.id).map(|other| other.id.to_string());
    others.collect::<Vec<_>>().join(" and ")
}
