//! How objects are that nobody has touched: as they were, unless their status has moved.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::health::addresses;
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, ObjectId};

use super::Task;
use crate::cluster::{Cluster, ClusterError};
use crate::notes::{Note, Vital};
use crate::observe::beside;
use crate::observe::sight::Sight;

/// What is known of the state of objects.
#[derive(Clone, Copy)]
pub(super) struct Vitals<'a> {
    /// Those that were read.
    pub(super) live: &'a BTreeMap<ObjectId, Live>,
    /// Those that need not be.
    pub(super) known: &'a BTreeMap<ObjectId, Vital>,
}

impl Vitals<'_> {
    /// Returns where a Service can be reached.
    pub(super) fn addresses(&self, service: &ObjectId) -> Vec<String> {
        match (self.known.get(service), self.live.get(service)) {
            (Some(vital), _) => vital.addresses.clone(),
            (None, live) => live.map(|live| addresses(live.object.body())).unwrap_or_default(),
        }
    }
}

/// Returns the state of objects that nobody has touched. The kinds of those that were not well, or whose status has
/// moved, are listed; a round that does not ask for health takes what was known.
pub(super) async fn vitals<'a>(
    cluster: &dyn Cluster,
    task: &Task<'_>,
    notes: impl Iterator<Item = &'a Note>,
    sight: &Sight,
) -> Result<BTreeMap<ObjectId, Vital>, ClusterError> {
    let mut vitals = BTreeMap::new();
    let mut open: BTreeSet<&Gvk> = BTreeSet::new();
    for note in notes {
        let has_moved = sight.objects.get(&note.id).is_none_or(|seen| seen.resource_version != note.version);
        if has_moved || note.vital.sick.is_some() {
            open.insert(&note.gvk);
        }
        vitals.insert(note.id.clone(), note.vital.clone());
    }
    let Some(patience) = task.patience.filter(|_| cluster.has_health()) else { return Ok(vitals) };
    let label = task.policies.marker.label();
    // Of a Secret nothing is to be known.
    let kinds = open.into_iter().filter(|gvk| !(gvk.group.is_empty() && gvk.kind == "Secret"));
    let lists = kinds.map(|gvk| cluster.list(gvk, (SYNC_LABEL, &label)).boxed()).collect();
    for list in beside(lists).await {
        for live in list? {
            if let Some(vital) = vitals.get_mut(live.object.id()) {
                *vital = Vital::of(&live, patience.demands);
            }
        }
    }
    Ok(vitals)
}
