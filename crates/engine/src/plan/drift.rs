//! Drift between what is wanted and a cluster that somebody else looks after: nothing is marked, owned or going to be
//! written, so objects are compared by kind, namespace and name.
//!
//! Pure as a plan is: what was seen comes in, and how every object stands comes out. Where a dry run may be asked for,
//! its result is what a live object is compared with; else an [`estimate`].

mod defaults;
pub mod estimate;
pub mod extra;
pub mod history;
pub mod model;
pub mod standing;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::conflicts::{Conflicts, FieldVerdict, Negotiated, compared};
use super::policies::Policies;
use super::refusal::Reason;
use crate::diff::{Difference, differences};
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, OWN_PREFIX};
use crate::mask::Masker;
use crate::object::{Object, ObjectId};
use crate::unit::Unit;

/// Names the tool that looks after an object, so it says nothing of how the object should be.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The paths of labels that name the tool.
const LABELS: [&str; 2] = ["/metadata/labels", "/spec/template/metadata/labels"];

/// A wanted object that exists, and what would have to be applied for it to be as it is wanted.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The decisions about its fields; its object is what would be applied.
    pub agreed: Negotiated,
    /// The live object.
    pub live: &'a Live,
}

impl<'a> Pair<'a> {
    /// Puts a wanted object beside the live one. What only says who looks after it is taken from the live one.
    ///
    /// Fails as a negotiation does.
    pub fn new(
        unit: &Unit,
        wanted: &Object,
        live: &'a Live,
        autoscaler: Option<&ObjectId>,
        policies: &Policies,
    ) -> Result<Self, Reason> {
        let wanted = adapted(wanted, live);
        Ok(Self { agreed: compared(unit, &wanted, live, autoscaler, policies)?, live })
    }

    /// Returns what differs between the live object and what it would become, and what was decided about fields.
    pub fn differences(&self, after: &Value, conflicts: &Conflicts) -> (Vec<Difference>, Vec<FieldVerdict>) {
        let mut found = differences(self.live.object.body(), after, FIELD_MANAGER, &conflicts.masker);
        found.retain(|difference| !self.is_chosen(difference) && !difference.changes_nothing());
        leave_out_chosen(&mut found, self.agreed.object.body());
        let fields = self.agreed.reported(&found, &conflicts.fights);
        (found, fields)
    }

    /// Tells whether a field has a value that nobody asks for: a dry run would show another one each time.
    fn is_chosen(&self, difference: &Difference) -> bool {
        let mut chosen = CHOSEN.iter().filter(|(end, _)| difference.path.ends_with(end));
        chosen.any(|(_, field)| !mentions(self.agreed.object.body(), field, difference.after.as_ref()))
    }
}

/// Fields that a server or a controller chooses where nobody asks for anything: the end of a path, and the field.
const CHOSEN: [(&str, &str); 7] = [
    (".nodePort", "nodePort"),
    (".healthCheckNodePort", "healthCheckNodePort"),
    (".clusterIP", "clusterIP"),
    (".clusterIPs", "clusterIPs"),
    (".ipFamilies", "ipFamilies"),
    (".ipFamilyPolicy", "ipFamilyPolicy"),
    ("[\"deprecated.daemonset.template.generation\"]", "deprecated.daemonset.template.generation"),
];

/// Takes what nobody asks for out of what is new as a whole, such as another port of a Service: the number that a dry run
/// shows is not the one that it gets.
pub(super) fn leave_out_chosen(found: &mut [Difference], wanted: &Value) {
    let added = found.iter_mut().filter_map(|difference| difference.after.as_mut());
    added.for_each(|value| strip(value, wanted));
}

fn strip(new: &mut Value, wanted: &Value) {
    match new {
        Value::Object(map) => {
            let is_chosen = |name: &String| CHOSEN.iter().any(|(_, field)| field == name);
            map.retain(|name, value| !is_chosen(name) || mentions(wanted, name, Some(value)));
            map.values_mut().for_each(|value| strip(value, wanted));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| strip(value, wanted)),
        _ => {}
    }
}

/// Tells whether a body has a field of this name anywhere; with this value, if there is one: that another port has a
/// number of its own says nothing of this one's.
fn mentions(body: &Value, name: &str, value: Option<&Value>) -> bool {
    match body {
        Value::Object(map) => map.iter().any(|(field, found)| {
            (field == name && value.is_none_or(|value| value == found)) || mentions(found, name, value)
        }),
        Value::Array(list) => list.iter().any(|found| mentions(found, name, value)),
        _ => false,
    }
}

/// A wanted object with the marks and the name of the tool that the live one has.
fn adapted(wanted: &Object, live: &Live) -> Object {
    let (mut body, other) = (wanted.body().clone(), live.object.body());
    for field in ["labels", "annotations"] {
        let is_mark = |key: &String| key.starts_with(OWN_PREFIX);
        let live = other["metadata"][field].as_object().cloned().unwrap_or_default();
        let marks: Map<_, _> = live.into_iter().filter(|(key, _)| is_mark(key)).collect();
        let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
        let map = metadata.entry(field).or_insert_with(|| Map::new().into());
        if let Some(map) = map.as_object_mut() {
            map.retain(|key, _| !is_mark(key));
            map.extend(marks);
        }
        if map.as_object().is_some_and(Map::is_empty) {
            metadata.remove(field);
        }
    }
    for place in LABELS {
        let live = other.pointer(place).and_then(|labels| labels.get(MANAGED_BY));
        let Some(labels) = body.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
        if labels.get(MANAGED_BY).is_some_and(|name| name == FIELD_MANAGER) {
            match live {
                Some(live) => drop(labels.insert(MANAGED_BY.to_owned(), live.clone())),
                None => drop(labels.remove(MANAGED_BY)),
            }
        }
    }
    Object::new(body).unwrap_or_else(|_| wanted.clone())
}

/// Returns the digest of a wanted object, without our marks. In the place of secrets are their fingerprints, so that it
/// serves nobody to guess one.
pub fn wanted_digest(object: &Object, masker: &Masker) -> String {
    let mut body = object.body().clone();
    crate::marks::strip(&mut body);
    crate::text::digest(masker.body(&body).to_string().as_bytes())
}

/// Returns the digest of a live object, as far as it is compared, in the same way.
pub fn live_digest(live: &Live, masker: &Masker) -> String {
    crate::text::digest(masker.body(&crate::diff::comparable(live.object.body())).to_string().as_bytes())
}
