//! Reading and writing inventories on a cluster: shards first, the head last, by compare-and-swap.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::inventory::{Encoded, Inventory, InventoryError};
use gatewright_engine::object::ObjectId;

use crate::cluster::{Cluster, ClusterError, RECORD_PREFIX, Reason, Record};
use crate::inventory::audit::{Audit, Written};
use crate::state::StateError;

/// In the record of a head: shards that are of no use any more. They are still there if the process that wrote the
/// head ended before it had deleted them; the next one to write does it then.
const FORMER: &str = "former";

/// In the record of a head: how far rollouts are there, in words of their own. An earlier version does not look at it.
const ROLLOUTS: &str = "rollouts";

/// Tries to read an inventory that somebody else is writing.
const READS: usize = 5;

/// The place where the shards of an inventory are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    /// On the cluster.
    There,
    /// In the copy of this host, if the head is the one that it has written: it names them by their digests.
    Here,
}

/// An inventory as it stands on a cluster.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// The inventory; empty if there is none.
    pub inventory: Inventory,
    /// The version of the head, `None` if there is none yet.
    version: Option<String>,
    shards: Vec<String>,
    /// Shards that may have been left behind.
    former: Vec<String>,
    /// The reason why it is not what this host has written, if it is not.
    pub suspicion: Option<String>,
    /// Entries that bear no signature of ours, and should.
    pub unverified: BTreeSet<ObjectId>,
    /// The words about rollouts that go with it.
    rollouts: Option<String>,
    /// These are other words than those on the cluster.
    has_other_rollouts: bool,
    /// It could not be read whole, and is to be written even if nothing changes.
    is_damaged: bool,
    /// The audit that remembers what is written.
    audit: Option<Audit>,
}

/// The head of an inventory.
#[derive(Debug)]
pub struct Head {
    /// All that it says of the inventory; the entries stand elsewhere.
    pub inventory: Inventory,
    /// Its version.
    pub version: String,
    /// The words about rollouts that go with it.
    pub rollouts: Option<String>,
    /// The reason why it cannot be understood.
    pub damage: Option<InventoryError>,
}

/// Returns the name of the record that holds the head.
fn head_name(sync: &str) -> String {
    format!("{RECORD_PREFIX}{sync}")
}

fn shard_name(sync: &str, digest: &str) -> String {
    format!("{RECORD_PREFIX}{sync}.{digest}")
}

/// Returns the syncs that have an inventory on a cluster.
pub async fn syncs(cluster: &dyn Cluster) -> Result<BTreeSet<String>, ClusterError> {
    let names = cluster.record_names().await?;
    let heads = names.iter().filter_map(|name| name.strip_prefix(RECORD_PREFIX)).filter(|name| !name.contains('.'));
    Ok(heads.map(str::to_owned).collect())
}

fn unusable(sync: &str, source: InventoryError) -> ClusterError {
    ClusterError {
        action: format!("read the inventory of sync {sync:?}"),
        reason: Reason::Invalid,
        hint: Some(format!(
            "nothing is changed; restore the records gatewright.{sync}* from a backup, or run `gatewright inventory repair {sync} --cluster` with its name"
        )),
        source: Box::new(source),
    }
}

/// Makes the error for what cannot be remembered: without a memory nothing is written.
pub(crate) fn forgetful(sync: &str, source: StateError) -> ClusterError {
    let action = format!("remember the inventory of sync {sync:?}");
    let hint = Some("let this user write in stateDir, and see whether the disk is full".to_owned());
    ClusterError { action, reason: Reason::Other, hint, source: Box::new(source) }
}

/// Reads the inventory of a sync.
pub async fn load(cluster: &dyn Cluster, sync: &str) -> Result<Store, ClusterError> {
    match salvage(cluster, sync).await? {
        (store, None) => Ok(store),
        (_, Some(error)) => Err(unusable(sync, error)),
    }
}

/// Reads the inventory of a sync and compares it with what this host remembers of it. Where that is enough to go on
/// with, a damaged one is suspect and no error.
pub async fn watched(
    cluster: &dyn Cluster,
    sync: &str,
    audit: Option<&Audit>,
    shards: Shards,
) -> Result<Store, ClusterError> {
    let Some(audit) = audit else { return load(cluster, sync).await };
    let (mut store, damage) = found(cluster, sync, audit, shards).await?;
    let verdict = audit.judge(&store.inventory, store.version.as_deref(), damage.as_ref());
    if let Some(error) = damage {
        let is_newer = matches!(error, InventoryError::Newer(_));
        match audit.recall().filter(|_| !is_newer) {
            Some(remembered) => store.complete(remembered),
            None => return Err(unusable(sync, error)),
        }
    }
    store.unverified = audit.unverified(&store.inventory, &verdict);
    store.suspicion = verdict.suspicion;
    store.audit = Some(audit.clone());
    Ok(store)
}

/// Reads an inventory with the help of this host's copy, if that is wanted and the copy is whole.
async fn found(
    cluster: &dyn Cluster,
    sync: &str,
    audit: &Audit,
    shards: Shards,
) -> Result<(Store, Option<InventoryError>), ClusterError> {
    if shards == Shards::Here
        && let Some(copy) = audit.copy()
        && let (store, None) = read(cluster, sync, Some(copy)).await?
    {
        return Ok((store, None));
    }
    salvage(cluster, sync).await
}

/// Reads what can be read of the inventory of a sync, and returns the first thing that cannot.
pub async fn salvage(cluster: &dyn Cluster, sync: &str) -> Result<(Store, Option<InventoryError>), ClusterError> {
    let mut read = read(cluster, sync, None).await?;
    for _ in 1..READS {
        // Whoever writes one takes the old shards away, also from under the eyes of a reader.
        if !matches!(read.1, Some(InventoryError::Missing(_))) {
            break;
        }
        let head = cluster.read_record(&head_name(sync)).await?;
        if head.map(|head| head.version) == read.0.version {
            break;
        }
        read = self::read(cluster, sync, None).await?;
    }
    Ok(read)
}

async fn read(
    cluster: &dyn Cluster,
    sync: &str,
    copy: Option<Written>,
) -> Result<(Store, Option<InventoryError>), ClusterError> {
    let Some(head) = cluster.read_record(&head_name(sync)).await? else { return Ok((Store::default(), None)) };
    let names = Inventory::shards_of(&head.data).unwrap_or_default();
    let copy = copy.filter(|copy| copy.version == head.version);
    let mut shards = copy.map(|copy| copy.shards).unwrap_or_default();
    for name in names.iter().filter(|name| !shards.contains_key(*name)).collect::<Vec<_>>() {
        if let Some(shard) = cluster.read_record(&shard_name(sync, name)).await? {
            shards.insert(name.clone(), shard.data);
        }
    }
    let former = head.data.get(FORMER).map(String::as_str).unwrap_or_default();
    let former = former.split_whitespace().map(str::to_owned).collect();
    let rollouts = head.data.get(ROLLOUTS).cloned();
    let (inventory, damage) = Inventory::salvage(&Encoded { head: head.data, shards });
    let version = Some(head.version);
    Ok((Store { inventory, version, shards: names, former, rollouts, ..Store::default() }, damage))
}

/// Reads the head of the inventory of a sync, without its shards; `None` if there is none.
pub async fn head(cluster: &dyn Cluster, sync: &str) -> Result<Option<Head>, ClusterError> {
    let Some(Record { mut data, version }) = cluster.read_record(&head_name(sync)).await? else { return Ok(None) };
    let rollouts = data.remove(ROLLOUTS);
    let (inventory, damage) = Inventory::salvage(&Encoded { head: data, shards: BTreeMap::new() });
    let damage = damage.filter(|damage| !matches!(damage, InventoryError::Missing(_)));
    Ok(Some(Head { inventory, version, rollouts, damage }))
}

impl Store {
    /// Adds what is remembered to what could be read. All of it is written again then.
    pub(crate) fn complete(&mut self, remembered: Inventory) {
        self.former.append(&mut self.shards);
        let read = std::mem::take(&mut self.inventory);
        let epoch = read.epoch.max(remembered.epoch);
        let entries = remembered.entries.into_iter().chain(read.entries).collect();
        self.inventory = Inventory { entries, epoch, signatures: read.signatures, ..remembered };
        self.is_damaged = true;
    }

    /// Returns the version of its head, `None` if there is none.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the words about rollouts that go with it.
    pub fn rollouts(&self) -> Option<&str> {
        self.rollouts.as_deref()
    }

    /// Has other words about rollouts written with it the next time, also if nothing else changes.
    pub fn tell_of_rollouts(&mut self, words: Option<String>) {
        self.has_other_rollouts |= self.rollouts != words;
        self.rollouts = words;
    }

    /// Writes an inventory whatever stands there, and has this host trust it from now on: a person has decided so.
    /// `is_complete`: the next round may delete what its sources no longer have.
    pub async fn replace(
        &mut self,
        cluster: &dyn Cluster,
        sync: &str,
        inventory: &Inventory,
        (audit, is_complete): (Option<&Audit>, bool),
    ) -> Result<(), ClusterError> {
        let epoch = self.inventory.epoch.max(inventory.epoch);
        self.former.append(&mut self.shards);
        (self.inventory, self.is_damaged) = (Inventory { epoch, ..Inventory::default() }, true);
        self.unverified.clear();
        self.audit = audit.cloned();
        self.save(cluster, sync, inventory).await?;
        let version = self.version.as_deref().unwrap_or_default();
        let trust = |audit: &Audit| audit.trust(&self.inventory, version, is_complete);
        audit.map_or(Ok(()), trust).map_err(|error| forgetful(sync, error))
    }

    /// Has this host remember nothing of it any more.
    pub fn forget(&self, sync: &str) -> Result<(), ClusterError> {
        self.audit.as_ref().map_or(Ok(()), |audit| audit.forget().map_err(|error| forgetful(sync, error)))
    }

    /// Tells whether there is one.
    pub fn exists(&self) -> bool {
        self.version.is_some()
    }

    /// Writes an inventory, if it differs from what is there.
    ///
    /// A conflict means that another process has written in the meantime; nothing is lost then, and nothing was
    /// written.
    pub async fn save(&mut self, cluster: &dyn Cluster, sync: &str, inventory: &Inventory) -> Result<(), ClusterError> {
        let mut inventory = Inventory { epoch: self.inventory.epoch, ..inventory.clone() };
        if let Some(audit) = &self.audit {
            audit.sign(&mut inventory, &self.unverified);
        }
        let needless = self.version.is_none() && inventory.entries.is_empty();
        let is_there = inventory.agrees_with(&self.inventory) && !self.has_other_rollouts;
        if needless || (is_there && !self.is_damaged) {
            return self.remember(sync, None);
        }
        inventory.epoch += 1;
        let encoded = inventory.encode();
        if let Some(audit) = &self.audit {
            audit.ahead(&inventory, &self.unverified, &encoded).map_err(|error| forgetful(sync, error))?;
        }
        let former = self.shards.iter().chain(&self.former).filter(|digest| !encoded.shards.contains_key(*digest));
        let former: Vec<String> = former.cloned().collect();
        let mut head = encoded.head.clone();
        if !former.is_empty() {
            head.insert(FORMER.to_owned(), former.join(" "));
        }
        head.extend(self.rollouts.iter().map(|words| (ROLLOUTS.to_owned(), words.clone())));
        for (digest, shard) in encoded.shards.iter().filter(|(digest, _)| !self.shards.contains(digest)) {
            write_shard(cluster, &shard_name(sync, digest), shard).await?;
        }
        let version = cluster.write_record(&head_name(sync), &head, self.version.as_deref()).await?;
        for digest in &former {
            cluster.delete_record(&shard_name(sync, digest), None).await?;
        }
        self.version = Some(version);
        self.shards = encoded.shards.keys().cloned().collect();
        self.former.clear();
        (self.is_damaged, self.has_other_rollouts) = (false, false);
        self.inventory = inventory;
        self.remember(sync, Some(encoded))
    }

    fn remember(&self, sync: &str, records: Option<Encoded>) -> Result<(), ClusterError> {
        let (Some(audit), Some(version)) = (&self.audit, &self.version) else { return Ok(()) };
        audit.written(&self.inventory, version, &self.unverified, records).map_err(|error| forgetful(sync, error))
    }
}

/// Removes an inventory that another one has taken in: shards first, so that nothing is left behind.
///
/// The head says before that it has none, so that it can be read at any moment.
pub async fn remove(cluster: &dyn Cluster, sync: &str, mut store: Store) -> Result<(), ClusterError> {
    let Some(_) = &store.version else { return Ok(()) };
    let empty = Inventory { entries: BTreeMap::new(), ..store.inventory.clone() };
    store.save(cluster, sync, &empty).await?;
    for digest in store.shards.iter().chain(&store.former) {
        cluster.delete_record(&shard_name(sync, digest), None).await?;
    }
    // Not one that somebody has written since.
    cluster.delete_record(&head_name(sync), store.version.as_deref()).await
}

/// A shard is named after its content, so one that is there already is the right one, unless somebody has changed it.
async fn write_shard(cluster: &dyn Cluster, name: &str, shard: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    let conflict = match cluster.write_record(name, shard, None).await {
        Err(error) if error.reason == Reason::Conflict => error,
        other => return other.map(|_| ()),
    };
    match cluster.read_record(name).await? {
        Some(record) if record.data == *shard => Ok(()),
        Some(record) => cluster.write_record(name, shard, Some(&record.version)).await.map(|_| ()),
        // Not every conflict means that it is there: two creations may be in each other's way at a quota.
        None => Err(conflict),
    }
}
