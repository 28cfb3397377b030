//! The record that this host keeps of the inventories that it has written: it detects tampering, and decides nothing.
//!
//! Whoever may edit our records on a cluster can restore an old copy, delete them, or add objects of others in the hope
//! that we delete those. None of it deletes anything, because a deletion needs the mark and the uid too; here it is
//! noticed, and from then on nothing at all is deleted until a person has looked.
//!
//! An inventory is remembered before it is written and confirmed afterwards, so that a process that dies between the
//! two has no reason to suspect itself. A memory that is there and cannot be read may have held a suspicion, so it is one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::{Encoded, Entry, Inventory, InventoryError};
use gatewright_engine::object::ObjectId;
use gatewright_engine::text::{count, listed};
use serde::{Deserialize, Serialize};

use crate::inventory::hmac::Key;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The records, by sync and cluster.
pub(crate) const SEEN: Store<Memory> = Store::new("seen");

/// The same files, of which only a part is read.
const PROGRESS: Store<Progress> = Store::new("seen");

/// The most objects that are named in a message.
const MOST_NAMES: usize = 3;

/// The record that this host keeps of one sync on one cluster.
#[derive(Clone, Debug)]
pub struct Audit {
    state: State,
    sync: String,
    cluster: String,
    key: Option<Arc<Key>>,
}

/// The shards of an inventory as this host has written them.
#[derive(Clone, Debug)]
pub struct Written {
    /// The version of the head that names them.
    pub version: String,
    /// The shards, by the digest in their name.
    pub shards: BTreeMap<String, BTreeMap<String, String>>,
}

/// The part of a memory that every round asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    #[serde(default = "yes")]
    is_complete: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Memory {
    /// A round has come to its end there. A file of an earlier version is there only if one has.
    #[serde(default = "yes")]
    is_complete: bool,
    /// The image of what was written last.
    known: Option<Image>,
    /// The image of what is about to be written.
    ahead: Option<Image>,
    /// The reason why the inventory is suspect; until a person has repaired it.
    #[serde(rename = "doubt")]
    suspicion: Option<String>,
}

/// An inventory as it was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Image {
    epoch: u64,
    /// The version of its head; empty if that is not known.
    #[serde(default)]
    version: String,
    records: Encoded,
    /// Entries of which it was not proven even then that they are ours.
    #[serde(rename = "unproven", default, skip_serializing_if = "BTreeSet::is_empty")]
    unverified: BTreeSet<ObjectId>,
}

/// The result of comparing an inventory with what is remembered of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The reason why it is suspect.
    pub suspicion: Option<String>,
    /// It is, to the letter, what this host has written; all of it is ours but what was not proven then.
    pub agrees: Option<BTreeSet<ObjectId>>,
}

impl Verdict {
    fn suspect(suspicion: impl Into<String>) -> Self {
        Self { suspicion: Some(suspicion.into()), agrees: None }
    }

    fn agrees(image: &Image) -> Self {
        Self { suspicion: None, agrees: Some(image.unverified.clone()) }
    }
}

impl Image {
    fn of(inventory: &Inventory, version: &str, unverified: &BTreeSet<ObjectId>, records: Encoded) -> Self {
        Self { epoch: inventory.epoch, version: version.to_owned(), records, unverified: unverified.clone() }
    }

    /// Returns the remembered inventory. It is never newer than this program, unless somebody went back to an older
    /// one.
    fn inventory(&self) -> Inventory {
        Inventory::decode(&self.records).unwrap_or_default()
    }
}

impl Audit {
    /// Names what is to be remembered: a sync on a cluster.
    pub fn new(state: &State, sync: &str, cluster: &str, key: Option<Arc<Key>>) -> Self {
        Self { state: state.clone(), sync: sync.to_owned(), cluster: cluster.to_owned(), key }
    }

    /// The same for another sync on the cluster.
    #[must_use]
    pub fn of(&self, sync: &str) -> Self {
        Self { sync: sync.to_owned(), ..self.clone() }
    }

    fn memory(&self) -> Memory {
        match SEEN.load(&self.state, &[&self.sync, &self.cluster]) {
            Ok(memory) => memory.unwrap_or_default(),
            Err(error) => {
                let suspicion = format!("this host has lost what it remembers of it: {}", Chain(&error));
                Memory { suspicion: Some(suspicion), ..Memory::default() }
            }
        }
    }

    fn remember(&self, memory: &Memory) -> Result<(), StateError> {
        SEEN.write(&self.state, &[&self.sync, &self.cluster], memory)
    }

    /// Tells whether a round of this host has come to its end there. One that is damaged stays as it is until a person has
    /// looked.
    pub fn has_seen(&self) -> bool {
        let progress = PROGRESS.load(&self.state, &[&self.sync, &self.cluster]);
        progress.map_or(true, |progress| progress.is_some_and(|progress| progress.is_complete))
    }

    /// Records that one has.
    pub fn record_seen(&self) -> Result<(), StateError> {
        if self.has_seen() {
            return Ok(());
        }
        self.remember(&Memory { is_complete: true, ..self.memory() })
    }

    /// Forgets everything.
    pub fn forget(&self) -> Result<(), StateError> {
        SEEN.remove(&self.state, &[&self.sync, &self.cluster])
    }

    /// Names the key that signs the inventory, if there is one.
    pub fn key_id(&self) -> Option<String> {
        self.key.as_ref().map(|key| key.id())
    }

    /// Returns the inventory that this host has written last, or has tried to.
    pub fn recall(&self) -> Option<Inventory> {
        let memory = self.memory();
        let mut inventory = memory.known.as_ref().map(Image::inventory)?;
        let ahead = memory.ahead.as_ref().map(Image::inventory).unwrap_or_default();
        for (id, entry) in ahead.entries {
            inventory.entries.entry(id).or_insert(entry);
        }
        Some(inventory)
    }

    /// Returns what identifies the cluster that this host has written to last; `None` if it has not, or nothing of it was
    /// left after it.
    pub fn cluster(&self) -> Option<String> {
        Inventory::cluster_of(&self.memory().known?.records.head).ok()
    }

    /// Returns the shards that this host has written last; `None` while the inventory is suspect.
    pub fn copy(&self) -> Option<Written> {
        let memory = self.memory();
        let known = memory.known.filter(|_| memory.suspicion.is_none())?;
        Some(Written { version: known.version, shards: known.records.shards })
    }

    /// Compares what stands on a cluster with what is remembered. `version` is that of its head, `None` if there is
    /// none; `damage` says why it could not be read whole.
    pub fn judge(&self, found: &Inventory, version: Option<&str>, damage: Option<&InventoryError>) -> Verdict {
        let memory = self.memory();
        if let Some(suspicion) = memory.suspicion {
            return Verdict::suspect(suspicion);
        }
        if let Some(damage) = damage {
            return Verdict::suspect(format!("it cannot be read: {damage}"));
        }
        let Some(known) = memory.known else { return Verdict::default() };
        if version == Some(known.version.as_str()) {
            return Verdict::agrees(&known);
        }
        let written = known.inventory();
        if version.is_none() {
            let held = count(written.entries.len(), "object");
            let gone = || Verdict::suspect(format!("it is gone, and held {held} when it was last written here"));
            return if written.entries.is_empty() { Verdict::default() } else { gone() };
        }
        let is_it = |image: &Inventory| image.epoch == found.epoch && image.entries == found.entries;
        if is_it(&written) {
            return Verdict::agrees(&known);
        }
        let ahead = memory.ahead.as_ref().map(Image::inventory);
        if let Some(image) = memory.ahead.as_ref().filter(|_| ahead.as_ref().is_some_and(is_it)) {
            return Verdict::agrees(image);
        }
        if found.epoch < written.epoch {
            return Verdict::suspect(format!(
                "it is an older copy: it was written for the {}th time, and this host has written it for the {}th",
                found.epoch, written.epoch
            ));
        }
        changed(found, &written, ahead.as_ref())
    }

    /// Keeps in mind that the inventory is suspect, until it is repaired.
    pub fn keep_suspicion(&self, suspicion: &str) -> Result<(), StateError> {
        let memory = self.memory();
        if memory.suspicion.is_some() {
            return Ok(());
        }
        self.remember(&Memory { suspicion: Some(suspicion.to_owned()), ..memory })
    }

    /// Returns the entries of which it is not proven that they are ours. What this host has written needs no signature, so
    /// that a key can be introduced or changed; without a key none is missed.
    pub fn unverified(&self, inventory: &Inventory, verdict: &Verdict) -> BTreeSet<ObjectId> {
        let Some(key) = &self.key else { return BTreeSet::new() };
        if let Some(unverified) = &verdict.agrees {
            return unverified.iter().filter(|id| inventory.entries.contains_key(*id)).cloned().collect();
        }
        let is_signed = |id: &ObjectId| {
            let signature = inventory.signatures.get(id);
            signature.is_some_and(|signature| key.verifies(&self.sync, inventory, id, signature))
        };
        inventory.entries.keys().filter(|id| !is_signed(id)).cloned().collect()
    }

    /// Signs every entry but those that are not proven to be ours.
    pub fn sign(&self, inventory: &mut Inventory, unverified: &BTreeSet<ObjectId>) {
        let Some(key) = &self.key else {
            inventory.signatures.clear();
            return;
        };
        let signature = |id: &ObjectId| {
            if unverified.contains(id) {
                inventory.signatures.get(id).cloned()
            } else {
                Some(key.sign(&self.sync, inventory, id))
            }
        };
        inventory.signatures = inventory.entries.keys().filter_map(|id| Some((id.clone(), signature(id)?))).collect();
    }

    /// Makes the signature of words that go with an inventory, if there is a key.
    pub fn sign_words(&self, inventory: &Inventory, words: &str) -> Option<String> {
        self.key.as_ref().map(|key| key.sign_words(&self.sync, inventory, words))
    }

    /// Tells whether words that go with an inventory are those of who has the key; without a key none is asked for.
    pub fn are_signed(&self, inventory: &Inventory, words: &str, signature: Option<&str>) -> bool {
        let Some(key) = &self.key else { return true };
        signature.is_some_and(|signature| key.verifies_words(&self.sync, inventory, words, signature))
    }

    /// Remembers what is about to be written: an inventory and its records.
    pub fn ahead(
        &self,
        inventory: &Inventory,
        unverified: &BTreeSet<ObjectId>,
        records: &Encoded,
    ) -> Result<(), StateError> {
        let memory = self.memory();
        if memory.suspicion.is_some() {
            return Ok(());
        }
        let ahead = Some(Image::of(inventory, "", unverified, records.clone()));
        self.remember(&Memory { ahead, ..memory })
    }

    /// Remembers what was written; its records are made if nobody has them. While the inventory is suspect, what was
    /// known before stays.
    pub fn written(
        &self,
        inventory: &Inventory,
        version: &str,
        unverified: &BTreeSet<ObjectId>,
        records: Option<Encoded>,
    ) -> Result<(), StateError> {
        let memory = self.memory();
        let is_known = memory.known.as_ref().is_some_and(|known| known.version == version) && memory.ahead.is_none();
        if memory.suspicion.is_some() || is_known {
            return Ok(());
        }
        let records = records.unwrap_or_else(|| inventory.encode());
        let known = Some(Image::of(inventory, version, unverified, records));
        self.remember(&Memory { known, ahead: None, ..memory })
    }

    /// Trusts an inventory from now on: a person has looked at it. `is_complete`: what it holds is what a round of this host may
    /// compare its source with; otherwise the next round there counts as the first of this host.
    pub fn trust(&self, inventory: &Inventory, version: &str, is_complete: bool) -> Result<(), StateError> {
        let known = Some(Image::of(inventory, version, &BTreeSet::new(), inventory.encode()));
        self.remember(&Memory { is_complete, known, ahead: None, suspicion: None })
    }
}

fn yes() -> bool {
    true
}

/// Compares an inventory with those of which it is a later one, or should be the same.
fn changed(found: &Inventory, written: &Inventory, ahead: Option<&Inventory>) -> Verdict {
    // Of what somebody has changed in an entry nothing is harmless: `adopted` and `unit` say what may be deleted, and
    // `files` what holds it.
    let is_known = |(id, entry): (&ObjectId, &Entry)| {
        let agrees = |image: &Inventory| image.entries.get(id).is_some_and(|known| is_same(known, entry));
        agrees(written) || ahead.is_some_and(agrees)
    };
    let added: Vec<&ObjectId> = found.entries.iter().filter(|entry| !is_known(*entry)).map(|(id, _)| id).collect();
    let lost: Vec<&ObjectId> = written.entries.keys().filter(|id| !found.entries.contains_key(*id)).collect();
    match (added.is_empty(), found.epoch == written.epoch) {
        (false, _) => Verdict::suspect(format!("it has entries that this host never wrote: {}", names(&added))),
        (true, true) if lost.is_empty() => Verdict::suspect("it was edited since this host has written it"),
        (true, true) => Verdict::suspect(format!("it was edited, and lacks what this host wrote: {}", names(&lost))),
        // Another host of this installation has gone on.
        (true, false) => Verdict::default(),
    }
}

/// Tells whether two entries say the same; of two about to be made or just made, one knows the uid.
fn is_same(a: &Entry, b: &Entry) -> bool {
    let without_uid = |entry: &Entry| Entry { uid: None, ..entry.clone() };
    (a.uid.is_none() || b.uid.is_none() || a.uid == b.uid) && without_uid(a) == without_uid(b)
}

fn names(ids: &[&ObjectId]) -> String {
    listed(ids, MOST_NAMES)
}
