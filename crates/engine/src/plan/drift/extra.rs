//! Objects that an implementation has made for a spec that is not in the source any more.

use std::collections::BTreeSet;

use crate::live::Live;
use crate::marks::OWN_PREFIX;
use crate::object::{Object, ObjectId};
use crate::plan::conflicts::managed_fields;
use crate::text::safe_name;
use crate::unit::trace::Trace;
use crate::unit::{Rendering, Unit};

/// The parts of a source that keep objects from being extra.
#[derive(Debug)]
pub struct Expected<'a> {
    wanted: BTreeSet<&'a ObjectId>,
    /// Namespaces and labels of specs of which it is not known what they want, or that are left to others.
    open: BTreeSet<(&'a str, String)>,
}

impl<'a> Expected<'a> {
    /// Reads it off a rendering.
    pub fn of(rendering: &'a Rendering) -> Self {
        let open = rendering.broken.iter().chain(&rendering.self_managed);
        Self {
            wanted: rendering.units.iter().flat_map(Unit::all).map(Object::id).collect(),
            open: open.map(|spec| (spec.namespace.as_str(), safe_name(&spec.name))).collect(),
        }
    }

    /// Tells whether an object bears a trace and nothing in the source asks for it.
    pub fn is_extra(&self, live: &Live, trace: &Trace) -> bool {
        let id = live.object.id();
        let Some(spec) = live.object.label(&trace.label) else { return false };
        let is_made = || managed_fields(live).iter().any(|entry| entry["manager"] == trace.manager.as_str());
        let is_marked = || live.object.label(&format!("{OWN_PREFIX}sync")).is_some();
        !self.wanted.contains(id)
            && !self.open.contains(&(id.namespace.as_str(), spec.to_owned()))
            && !live.is_terminating()
            && (is_made() || is_marked())
    }
}

/// Names the spec that an object was made for, by what it bears: of a name that is too long for a label, the label.
pub fn spec_of(live: &Live, trace: &Trace) -> ObjectId {
    let id = live.object.id();
    let name = live.object.label(&trace.label).unwrap_or(&id.name);
    ObjectId::new(crate::spec::GATEWAY_API, "Gateway", &id.namespace, name)
}
