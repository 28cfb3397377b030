//! References that nothing in a source answers: whoever has a cluster looks there.
//!
//! What pods and listeners name may be made by somebody else, before or after us. So it holds nothing, and is said only
//! once it is known that the cluster does not have it either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::table::REFERENCE_NOT_FOUND;
use crate::kinds;
use crate::object::{Object, ObjectId};
use crate::problem::{Problem, Scope};
use crate::references::of_pods;
use crate::unit::{Rendering, Unit};

/// The end of what is said of a reference that the source alone does not answer.
pub(super) const NOT_IN_SOURCE: &str = "which is not in the source";

/// The same, once a cluster was asked.
const NOWHERE: &str = "which is not on the cluster, and nothing here makes it";

/// The hint where nobody knows better.
const WAITS: &str = "what names it waits until somebody makes it";

/// The references of a rendering that only a cluster can answer.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Those that somebody has written, by unit, each with what is said if it leads nowhere.
    written: BTreeMap<ObjectId, Vec<(ObjectId, Problem)>>,
    /// Those of which something is said already.
    said: BTreeSet<(ObjectId, ObjectId)>,
    /// Certificates and authorities that Gateways and listener sets name, wherever they are: by whom, and what.
    named: BTreeSet<(ObjectId, ObjectId)>,
    /// Secrets that controllers make of what the source holds: namespace and name.
    made: Arc<BTreeSet<(String, String)>>,
    /// Nobody wants to know of what pods name.
    is_off: bool,
}

impl Open {
    pub(super) fn new(made: Arc<BTreeSet<(String, String)>>, is_off: bool) -> Self {
        Self { made, is_off, ..Self::default() }
    }

    /// Adds a reference that somebody has written.
    pub(super) fn add(&mut self, unit: ObjectId, id: ObjectId, problem: &Problem) {
        if self.is_off && problem.rule == Some(REFERENCE_NOT_FOUND) {
            return;
        }
        let message = problem.message.replace(NOT_IN_SOURCE, NOWHERE);
        let problem = Problem { message, scope: Scope::Warning, ..problem.clone() }.hint(WAITS);
        self.written.entry(unit).or_default().push((id, problem));
    }

    /// Notes what a document names.
    pub(super) fn is_named(&mut self, by: &ObjectId, ids: BTreeSet<ObjectId>) {
        self.named.extend(ids.into_iter().map(|id| (by.clone(), id)));
    }

    /// Returns the certificates and authorities that Gateways and listener sets name: by whom, and what.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&ObjectId, &ObjectId)> {
        self.named.iter().map(|(by, id)| (by, id))
    }

    /// Notes that something is said of a reference without a cluster.
    pub(super) fn is_said(&mut self, unit: ObjectId, id: ObjectId) {
        self.said.insert((unit, id));
    }

    fn is_made(&self, id: &ObjectId) -> bool {
        id.is_a("", "Secret") && self.made.contains(&(id.namespace.clone(), id.name.clone()))
    }
}

impl Rendering {
    /// Returns what some units need and nothing of this rendering is, each with what to say if the cluster does not have
    /// it either.
    pub fn open_references(&self, units: &BTreeSet<&ObjectId>, kinds: &kinds::Table) -> BTreeMap<ObjectId, Problem> {
        let mut open: BTreeMap<ObjectId, Problem> = BTreeMap::new();
        for unit in self.units.iter().filter(|unit| units.contains(&unit.id)) {
            for (id, problem) in self.open.written.get(&unit.id).into_iter().flatten() {
                open.entry(id.clone()).or_insert_with(|| problem.clone());
            }
            for (object, id) in self.named_by_pods(unit, kinds) {
                open.entry(id.clone()).or_insert_with(|| self.nowhere(unit, object, &id));
            }
        }
        if !open.is_empty() {
            let wanted: BTreeSet<&ObjectId> = self.units.iter().flat_map(Unit::all).map(Object::id).collect();
            open.retain(|id, _| !wanted.contains(id) && !self.open.is_made(id));
        }
        open
    }

    /// Returns what the pods of a unit do not start without, each with the object that has the template.
    fn named_by_pods<'a>(
        &'a self,
        unit: &'a Unit,
        kinds: &kinds::Table,
    ) -> impl Iterator<Item = (&'a Object, ObjectId)> {
        let objects = unit.all().filter(|_| !self.open.is_off);
        let named = objects.flat_map(|object| of_pods(object.body(), kinds).into_iter().map(move |it| (object, it)));
        let needed = named.filter(|(_, it)| !it.is_optional && !it.is_everywhere());
        let ids = needed.map(|(object, it)| (object, it.id(&object.id().namespace)));
        ids.filter(|(_, id)| !self.open.said.contains(&(unit.id.clone(), id.clone())))
    }

    fn nowhere(&self, unit: &Unit, object: &Object, id: &ObjectId) -> Problem {
        // A document that is applied as it is need not be named twice.
        let owner = if *object.id() == unit.id { String::new() } else { format!("{}: ", object.id()) };
        let message = format!("{owner}names {id}, {NOWHERE}");
        let is_here = self.documents.contains(id);
        let hint = if is_here { "it stands in the source, and is not applied" } else { WAITS };
        Problem::warning(unit.place.clone(), message).about(unit.id.clone()).hint(hint).by(REFERENCE_NOT_FOUND)
    }
}
