//! The claim of an inventory: what another installation owned becomes ours.
//!
//! Its inventory holds everything all the while: objects are marked again first, each by a patch of the one that was
//! looked at, and the inventory changes hands last. Whatever happens in between, a second try goes on.

use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::marks::{FIELD_MANAGER, Marker, Owner};
use gatewright_engine::object::{Gvk, ObjectId};
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterError, Mode};
use crate::inventory::audit::Audit;
use crate::inventory::store::{self, Store};

/// The inventory whose owner is to change.
pub struct ForeignInventory {
    store: Store,
    /// The installation that owned it.
    pub from: String,
    /// Objects that bear its mark.
    pub objects: Vec<(ObjectId, Gvk, Live)>,
    /// Objects that bear ours already.
    pub done: Vec<ObjectId>,
    /// Objects that stand in its inventory and are not claimed, and why.
    pub left: Vec<(ObjectId, String)>,
}

/// Looks at what another installation owns under the name of a sync; `None` if it is not another's.
pub async fn plan(cluster: &dyn Cluster, marker: &Marker) -> Result<Option<ForeignInventory>, ClusterError> {
    let store = store::load(cluster, &marker.sync).await?;
    let from = store.inventory.installation.clone();
    if !store.exists() || from == marker.installation {
        return Ok(None);
    }
    // The files of a directory bear no marks: its inventory alone says whose they are.
    let has_marks = cluster.carries_marks();
    let theirs = Marker { installation: from.clone(), sync: marker.sync.clone() };
    let mut foreign = ForeignInventory { from, objects: Vec::new(), done: Vec::new(), left: Vec::new(), store };
    for (id, entry) in &foreign.store.inventory.entries {
        let Some(live) = cluster.get(&entry.gvk, id).await? else {
            foreign.left.push((id.clone(), "it is not there".to_owned()));
            continue;
        };
        let is_same = entry.uid.as_ref().is_none_or(|uid| *uid == live.uid);
        match (theirs.owner(&live.object), marker.owner(&live.object)) {
            _ if !has_marks && is_same => foreign.objects.push((id.clone(), entry.gvk.clone(), live)),
            (_, Owner::Us) => foreign.done.push(id.clone()),
            (Owner::Us, _) if is_same => foreign.objects.push((id.clone(), entry.gvk.clone(), live)),
            (Owner::Us, _) => foreign.left.push((id.clone(), "it is another object of that name".to_owned())),
            (owner, _) => foreign.left.push((id.clone(), format!("it belongs to {owner}"))),
        }
    }
    Ok(Some(foreign))
}

/// Carries it out.
pub async fn carry_out(
    cluster: &dyn Cluster,
    marker: &Marker,
    foreign: ForeignInventory,
    audit: Option<&Audit>,
) -> Result<usize, ClusterError> {
    for (id, kind, live) in foreign.objects.iter().filter(|_| cluster.carries_marks()) {
        let patch = marks(&marker.mark(live.object.clone()));
        let ours = cluster.patch(kind, id, &live.uid, &live.resource_version, &patch, Mode::Real).await?;
        if let Some(patch) = one_entry(&ours) {
            cluster.patch(kind, id, &ours.uid, &ours.resource_version, &patch, Mode::Real).await?;
        }
    }
    let mut store = foreign.store;
    let mut inventory = Inventory { installation: marker.installation.clone(), ..store.inventory.clone() };
    for (id, _) in &foreign.left {
        inventory.entries.remove(id);
    }
    for (id, _, live) in &foreign.objects {
        if let Some(entry) = inventory.entries.get_mut(id) {
            entry.uid = Some(live.uid.clone());
        }
    }
    // A person has said whose it is, and not that the source lacks nothing of it.
    store.replace(cluster, &marker.sync, &inventory, (audit, false)).await?;
    Ok(foreign.objects.len() + foreign.done.len())
}

/// The patch that puts what we have patched with what we have applied: an API server tells the two apart, and what is
/// only patched would stay there when it is not applied any more.
fn one_entry(live: &Live) -> Option<Vec<Value>> {
    let entries = live.object.body().pointer("/metadata/managedFields")?.as_array()?;
    let is_ours = |entry: &&Value, operation: &str| {
        let is_whole = entry["subresource"].as_str().unwrap_or_default().is_empty();
        entry["manager"] == FIELD_MANAGER && entry["operation"] == operation && is_whole
    };
    let patched = entries.iter().find(|entry| is_ours(entry, "Update"))?;
    entries.iter().find(|entry| is_ours(entry, "Apply"))?;
    let others = entries.iter().filter(|entry| !is_ours(entry, "Update"));
    let merged = others.map(|entry| {
        let mut entry = entry.clone();
        if is_ours(&&entry, "Apply") {
            merge(&mut entry["fieldsV1"], &patched["fieldsV1"]);
        }
        entry
    });
    let merged: Vec<Value> = merged.collect();
    Some(vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": merged})])
}

fn merge(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else { return };
    for (key, value) in from {
        merge(into.entry(key.clone()).or_insert_with(|| json!({})), value);
    }
}

/// The patch that puts the metadata of a marked object in place of the live one's.
fn marks(marked: &gatewright_engine::object::Object) -> Vec<Value> {
    let metadata = &marked.body()["metadata"];
    let fields = ["labels", "annotations"].into_iter().filter(|field| metadata[*field].is_object());
    fields.map(|field| json!({"op": "add", "path": format!("/metadata/{field}"), "value": metadata[field]})).collect()
}
