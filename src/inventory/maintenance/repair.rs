//! An inventory rebuilt: from what bears our mark, from what stands in it, and from what this host remembers.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::{Entry, Inventory, InventoryError};
use gatewright_engine::kinds::Table;
use gatewright_engine::live::Live;
use gatewright_engine::marks::{Marker, Owner, SYNC_LABEL};
use gatewright_engine::object::ObjectId;
use gatewright_engine::spec::GATEWAY_API;

use super::{kinds, list_marked};
use crate::cluster::{Cluster, ClusterError, Reason};
use crate::inventory::audit::{Audit, Verdict};
use crate::inventory::store::{self, Store};

/// Names the Gateway that an object was rendered for.
const GATEWAY_LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// The repair of an inventory: what it is to become.
pub struct Repair {
    /// As it is.
    pub store: Store,
    /// The verdict: what is wrong with it.
    pub verdict: Verdict,
    /// As it will be.
    pub inventory: Inventory,
    /// The change of each object that stands in it now, will stand in it, or is remembered.
    pub changes: BTreeMap<ObjectId, Change>,
    /// The reasons why some kinds cannot be listed.
    pub blind: Vec<String>,
}

/// The change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays.
    Keep,
    /// It comes in, and why.
    Add(&'static str),
    /// It goes, and why.
    Drop(String),
}

/// Works out what an inventory should say; changes nothing.
pub async fn plan(
    cluster: &dyn Cluster,
    marker: &Marker,
    audit: Option<&Audit>,
    known: &Table,
) -> Result<Repair, ClusterError> {
    let sync = &marker.sync;
    let (store, damage) = store::salvage(cluster, sync).await?;
    let newer = |error: &InventoryError| matches!(error, InventoryError::Newer(_));
    if damage.as_ref().is_some_and(newer) {
        store::load(cluster, sync).await?;
    }
    let judge = |audit: &Audit| audit.judge(&store.inventory, store.version(), damage.as_ref());
    let verdict = audit.map(judge).unwrap_or_default();
    let remembered = audit.and_then(Audit::recall).unwrap_or_default();
    let listed =
        list_marked(cluster, &kinds(known, [&store.inventory, &remembered]), SYNC_LABEL, Some(&marker.label())).await?;
    let is_ours = |live: &Live| marker.owner(&live.object) == Owner::Us;
    let mut sketch =
        Sketch { found: &store.inventory, remembered: &remembered, entries: BTreeMap::new(), changes: BTreeMap::new() };
    for (id, live) in listed.live.iter().filter(|(_, live)| is_ours(live)) {
        sketch.ours(id, live);
    }
    for (id, entry) in remembered.entries.iter().chain(&store.inventory.entries) {
        if sketch.changes.contains_key(id) {
            continue;
        }
        match cluster.get(&entry.gvk, id).await {
            Ok(Some(live)) if is_ours(&live) || !cluster.carries_marks() => sketch.ours(id, &live),
            Ok(Some(_)) => sketch.drop(id, "it does not bear our mark"),
            Ok(None) => sketch.drop(id, "it is not there"),
            // Nobody knows whether it is there.
            Err(error) if matches!(error.reason, Reason::Forbidden | Reason::NotFound) => {
                sketch.unseen(id, entry, &Chain(&error).to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let Sketch { entries, changes, .. } = sketch;
    let inventory = Inventory {
        installation: marker.installation.clone(),
        source: [&store.inventory.source, &remembered.source].into_iter().max().cloned().unwrap_or_default(),
        cluster: cluster.identity().await?,
        epoch: store.inventory.epoch.max(remembered.epoch),
        entries,
        ..Inventory::default()
    };
    Ok(Repair { store, verdict, inventory, changes, blind: listed.blind })
}

struct Sketch<'a> {
    found: &'a Inventory,
    remembered: &'a Inventory,
    entries: BTreeMap<ObjectId, Entry>,
    changes: BTreeMap<ObjectId, Change>,
}

impl Sketch<'_> {
    /// Counts the object that is there now as ours, because it bears our mark. Whether it was adopted nobody knows any
    /// more where neither the inventory nor this host does, and then it counts as adopted.
    fn ours(&mut self, id: &ObjectId, live: &Live) {
        let known = self.remembered.entries.get(id).or_else(|| self.found.entries.get(id));
        let change = match (self.found.entries.contains_key(id), known) {
            (true, _) => Change::Keep,
            (false, Some(_)) => Change::Add("this host has written it"),
            (false, None) => Change::Add("it bears our mark; it counts as adopted, because nobody knows"),
        };
        let entry = known.cloned().unwrap_or_else(|| Entry {
            gvk: live.object.gvk(),
            uid: None,
            unit: unit_of(live),
            adopted: true,
            files: [].into(),
            overlays: [].into(),
        });
        self.entries.insert(id.clone(), Entry { uid: Some(live.uid.clone()), ..entry });
        self.changes.insert(id.clone(), change);
    }

    fn unseen(&mut self, id: &ObjectId, entry: &Entry, why: &str) {
        if self.remembered.entries.contains_key(id) || self.remembered.entries.is_empty() {
            let change =
                if self.found.entries.contains_key(id) { Change::Keep } else { Change::Add("it cannot be read") };
            self.entries.insert(id.clone(), entry.clone());
            self.changes.insert(id.clone(), change);
        } else {
            self.drop(id, &format!("this host has not written it, and it cannot be read: {why}"));
        }
    }

    fn drop(&mut self, id: &ObjectId, why: &str) {
        self.changes.insert(id.clone(), Change::Drop(why.to_owned()));
    }
}

/// The spec that an object was probably rendered from.
fn unit_of(live: &Live) -> ObjectId {
    let id = live.object.id();
    match live.object.label(GATEWAY_LABEL) {
        Some(gateway) => ObjectId::new(GATEWAY_API, "Gateway", &id.namespace, gateway),
        None => id.clone(),
    }
}
