//! How objects are that nobody has touched: as they were, unless their status has moved.

use std::collections::BTreeMap;

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::health::addresses;
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};
use tracing::warn;

use super::Task;
use crate::cluster::{Cluster, ClusterError, Reason};
use crate::notes::{Note, Vital};
use crate::observe::beside;
use crate::observe::sight::Sight;

/// What is known of the state of objects.
#[derive(Clone, Copy)]
pub struct Vitals<'a> {
    /// Those that were read.
    pub live: &'a BTreeMap<ObjectId, Live>,
    /// Those that need not be.
    pub known: &'a BTreeMap<ObjectId, Vital>,
}

impl Vitals<'_> {
    /// Returns where a Service can be reached.
    pub fn addresses(&self, service: &ObjectId) -> Vec<String> {
        match (self.known.get(service), self.live.get(service)) {
            (Some(vital), _) => vital.addresses.clone(),
            (None, live) => live.map(|live| addresses(live.object.body())).unwrap_or_default(),
        }
    }
}

/// Returns the state of objects that nobody has touched. The kinds of those that were not well, or whose status has
/// moved, are listed; a round that does not ask for health takes what was known, and so does one in which a kind cannot
/// be listed: the next round tries again.
pub(super) async fn vitals<'a>(
    cluster: &dyn Cluster,
    task: &Task<'_>,
    notes: impl Iterator<Item = &'a Note>,
    sight: &Sight,
) -> Result<BTreeMap<ObjectId, Vital>, ClusterError> {
    let mut vitals = BTreeMap::new();
    let mut open: BTreeMap<&Gvk, Vec<&ObjectId>> = BTreeMap::new();
    for note in notes {
        let has_moved = sight.objects.get(&note.id).is_none_or(|seen| seen.resource_version != note.version);
        let is_old = has_moved || note.vital.is_old;
        if is_old || note.vital.sick.is_some() {
            open.entry(&note.gvk).or_default().push(&note.id);
        }
        vitals.insert(note.id.clone(), Vital { is_old, ..note.vital.clone() });
    }
    let Some(patience) = task.patience.filter(|_| cluster.has_health()) else { return Ok(vitals) };
    let label = task.policies.marker.label();
    let label = (SYNC_LABEL, label.as_str());
    let lists = open.keys().map(|gvk| async move { (*gvk, list(cluster, gvk, label).await) }.boxed()).collect();
    for (gvk, list) in beside(lists).await {
        let live = match list {
            Ok(live) => live,
            Err(error) if concerns_all(&error) => return Err(error),
            Err(error) => {
                warn!(%gvk, error = %Chain(&error), "cannot see how objects are, and takes what was known");
                continue;
            }
        };
        for id in &open[gvk] {
            vitals.entry((*id).clone()).and_modify(|vital| vital.is_old = false);
        }
        for live in live {
            if let Some(vital) = vitals.get_mut(live.object.id()) {
                *vital = Vital::of(&live, patience.demands);
            }
        }
    }
    Ok(vitals)
}

/// Whether nothing else can be asked either. A 500 for one kind may well be about an object that nobody can read.
fn concerns_all(error: &ClusterError) -> bool {
    matches!(error.reason, Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized)
}

/// Of a Secret nothing is to be known.
async fn list(cluster: &dyn Cluster, gvk: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
    if is_secret(&gvk.group, &gvk.kind) { Ok(Vec::new()) } else { cluster.list(gvk, label).await }
}
