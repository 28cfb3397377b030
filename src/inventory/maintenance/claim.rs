//! What another installation owned becomes ours.
//!
//! Its inventory holds everything all the while: objects are marked anew first, each by a patch of the one that was
//! looked at, and the inventory changes hands last. Whatever happens in between, a second try goes on.

use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::marks::FIELD_MANAGER;
use gatewright_engine::marks::{Marker, Owner};
use gatewright_engine::object::{Gvk, ObjectId};
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterError, Mode};
use crate::inventory::audit::Witness;
use crate::inventory::store::{self, Ledger};

/// What is to change hands.
pub struct Takeover {
    ledger: Ledger,
    /// The installation that owned it.
    pub from: String,
    /// Objects that bear its mark.
    pub objects: Vec<(ObjectId, Gvk, Live)>,
    /// Objects that bear ours already.
    pub done: Vec<ObjectId>,
    /// Objects that stand in its inventory and are not taken over, and why.
    pub left: Vec<(ObjectId, String)>,
}

/// Looks at what another installation owns under the name of a sync; `None` if it is not another's.
pub async fn plan(cluster: &dyn Cluster, marker: &Marker) -> Result<Option<Takeover>, ClusterError> {
    let ledger = store::load(cluster, &marker.sync).await?;
    let from = ledger.inventory.installation.clone();
    // A directory belongs to whoever goes on with it, and its files bear no marks.
    if !ledger.exists() || from == marker.installation || !cluster.carries_marks() {
        return Ok(None);
    }
    let theirs = Marker { installation: from.clone(), sync: marker.sync.clone() };
    let mut takeover = Takeover { from, objects: Vec::new(), done: Vec::new(), left: Vec::new(), ledger };
    for (id, entry) in &takeover.ledger.inventory.entries {
        let Some(live) = cluster.get(&entry.gvk, id).await? else {
            takeover.left.push((id.clone(), "it is not there".to_owned()));
            continue;
        };
        let is_same = entry.uid.as_ref().is_none_or(|uid| *uid == live.uid);
        match (theirs.owner(&live.object), marker.owner(&live.object)) {
            (_, Owner::Us) => takeover.done.push(id.clone()),
            (Owner::Us, _) if is_same => takeover.objects.push((id.clone(), entry.gvk.clone(), live)),
            (Owner::Us, _) => takeover.left.push((id.clone(), "it is another object of that name".to_owned())),
            (owner, _) => takeover.left.push((id.clone(), format!("it belongs to {owner}"))),
        }
    }
    Ok(Some(takeover))
}

/// Carries it out.
pub async fn carry_out(
    cluster: &dyn Cluster,
    marker: &Marker,
    takeover: Takeover,
    witness: Option<&Witness>,
) -> Result<usize, ClusterError> {
    for (id, kind, live) in &takeover.objects {
        let patch = marks(&marker.mark(live.object.clone()));
        let ours = cluster.patch(kind, id, &live.uid, &live.resource_version, &patch, Mode::Real).await?;
        if let Some(patch) = one_entry(&ours) {
            cluster.patch(kind, id, &ours.uid, &ours.resource_version, &patch, Mode::Real).await?;
        }
    }
    let mut ledger = takeover.ledger;
    let mut inventory = Inventory { installation: marker.installation.clone(), ..ledger.inventory.clone() };
    for (id, _) in &takeover.left {
        inventory.entries.remove(id);
    }
    for (id, _, live) in &takeover.objects {
        if let Some(entry) = inventory.entries.get_mut(id) {
            entry.uid = Some(live.uid.clone());
        }
    }
    ledger.replace(cluster, &marker.sync, &inventory, witness).await?;
    Ok(takeover.objects.len() + takeover.done.len())
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
