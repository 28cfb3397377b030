//! The digests of what is wanted of units, by which it is known whether a change is the one that was seen before.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use gatewright_engine::object::ObjectId;
use gatewright_engine::unit::marked::Marked;

use super::Turn;
use crate::basics::lock::lock;

/// Digests by rendering: clusters on which the same is wanted have one, and to make them takes longer than the rest of a
/// turn.
#[derive(Debug, Default)]
pub(super) struct Contents(Vec<(Weak<Marked>, BTreeMap<ObjectId, String>)>);

impl Contents {
    fn of(&mut self, rendering: &Arc<Marked>) -> &mut BTreeMap<ObjectId, String> {
        let is_it = |(known, _): &(Weak<Marked>, _)| Weak::as_ptr(known) == Arc::as_ptr(rendering);
        // As long as somebody remembers where it is, nothing else is there.
        let index = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.retain(|(known, _)| known.strong_count() > 0);
            self.0.push((Arc::downgrade(rendering), BTreeMap::new()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }
}

impl Turn {
    /// Returns the digest of what is wanted of a unit in a rendering, made by `digest` if nobody has asked for it yet.
    pub(crate) fn content(&self, rendering: &Arc<Marked>, unit: &ObjectId, digest: impl FnOnce() -> String) -> String {
        if let Some(known) = lock(&self.rollout.contents).of(rendering).get(unit) {
            return known.clone();
        }
        let made = digest();
        lock(&self.rollout.contents).of(rendering).insert(unit.clone(), made.clone());
        made
    }
}
