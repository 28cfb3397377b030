//! Objects that bear the marks of this installation and stand in no inventory of its syncs, and inventories of syncs
//! that are not configured.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::inventory::Inventory;
use gatewright_engine::kinds::Table;
use gatewright_engine::marks::{Marker, Owner, SYNC_LABEL};
use gatewright_engine::object::ObjectId;
use serde::Serialize;

use super::{kinds, list_marked};
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store;

/// Objects and inventories that nobody looks after on a cluster.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// Objects.
    pub objects: Vec<Orphan>,
    /// Inventories.
    pub inventories: Vec<Abandoned>,
    /// The reasons why some kinds cannot be listed.
    pub blind: Vec<String>,
}

impl Orphans {
    /// Tells whether nothing was found, and everything was looked at.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.inventories.is_empty() && self.blind.is_empty()
    }
}

/// An object that bears our mark and stands in no inventory.
#[derive(Clone, Debug, Serialize)]
pub struct Orphan {
    /// The object.
    pub id: ObjectId,
    /// Its uid.
    pub uid: String,
    /// The sync whose mark it bears.
    pub sync: String,
}

/// An inventory of a sync that is not configured for the cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Abandoned {
    /// The sync.
    pub sync: String,
    /// The installation that wrote it.
    pub installation: String,
    /// Whether that is this one.
    pub is_ours: bool,
    /// The number of objects in it.
    pub objects: usize,
}

/// Looks for them; `configured` are the syncs that go to the cluster.
pub async fn find(
    cluster: &dyn Cluster,
    installation: &str,
    configured: &BTreeSet<&str>,
    known: &Table,
) -> Result<Orphans, ClusterError> {
    let mut inventories: BTreeMap<String, Inventory> = BTreeMap::new();
    for sync in store::syncs(cluster).await? {
        let (store, _) = store::salvage(cluster, &sync).await?;
        inventories.insert(sync, store.inventory);
    }
    let seen = list_marked(cluster, &kinds(known, inventories.values()), SYNC_LABEL, None).await?;
    let nobody = Marker { installation: installation.to_owned(), sync: String::new() };
    let objects = seen.live.iter().filter_map(|(id, live)| {
        let Owner::OtherSync(sync) = nobody.owner(&live.object) else { return None };
        let entry = inventories.get(&sync).and_then(|inventory| inventory.entries.get(id));
        let is_known = entry.is_some_and(|entry| entry.uid.as_ref().is_none_or(|uid| *uid == live.uid));
        (!is_known || !configured.contains(sync.as_str())).then(|| Orphan {
            id: id.clone(),
            uid: live.uid.clone(),
            sync,
        })
    });
    let abandoned = inventories.iter().filter(|(sync, _)| !configured.contains(sync.as_str()));
    let abandoned = abandoned.map(|(sync, inventory)| Abandoned {
        sync: sync.clone(),
        installation: inventory.installation.clone(),
        is_ours: inventory.installation == installation,
        objects: inventory.entries.len(),
    });
    Ok(Orphans { objects: objects.collect(), inventories: abandoned.collect(), blind: seen.blind })
}
