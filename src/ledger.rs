//! Reading and writing inventories on a cluster: shards first, the head last, by compare-and-swap.

use std::collections::BTreeMap;

use gatewright_engine::inventory::{Encoded, Inventory, InventoryError};

use crate::cluster::{Cluster, ClusterError, Reason};

/// In the record of a head: shards that are of no use any more. They are still there if the process that wrote the
/// head ended before it had deleted them; the next one to write does it then.
const FORMER: &str = "former";

/// An inventory as it stands on a cluster.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// What it says; empty if there is none.
    pub inventory: Inventory,
    /// The version of the head, `None` if there is none yet.
    version: Option<String>,
    shards: Vec<String>,
    /// Shards that may have been left behind.
    former: Vec<String>,
}

/// Returns the name of the record that holds the head.
fn head_name(sync: &str) -> String {
    format!("gatewright.{sync}")
}

fn shard_name(sync: &str, digest: &str) -> String {
    format!("gatewright.{sync}.{digest}")
}

fn unusable(sync: &str, source: InventoryError) -> ClusterError {
    ClusterError {
        action: format!("read the inventory of sync {sync:?}"),
        reason: Reason::Invalid,
        hint: Some(
            "nothing is changed; restore the ConfigMaps gatewright.* in gatewright-system from a backup".to_owned(),
        ),
        source: Box::new(source),
    }
}

/// Reads the inventory of a sync.
pub async fn load(cluster: &dyn Cluster, sync: &str) -> Result<Ledger, ClusterError> {
    let Some(head) = cluster.read_record(&head_name(sync)).await? else { return Ok(Ledger::default()) };
    let names = Inventory::shards_of(&head.data).map_err(|error| unusable(sync, error))?;
    let mut shards = BTreeMap::new();
    for name in &names {
        if let Some(shard) = cluster.read_record(&shard_name(sync, name)).await? {
            shards.insert(name.clone(), shard.data);
        }
    }
    let former = head.data.get(FORMER).map(String::as_str).unwrap_or_default();
    let former = former.split_whitespace().map(str::to_owned).collect();
    let inventory = Inventory::decode(&Encoded { head: head.data, shards }).map_err(|error| unusable(sync, error))?;
    Ok(Ledger { inventory, version: Some(head.version), shards: names, former })
}

/// Returns the version of the inventory of a sync, without reading it; `None` if there is none.
pub async fn version(cluster: &dyn Cluster, sync: &str) -> Result<Option<String>, ClusterError> {
    Ok(cluster.read_record(&head_name(sync)).await?.map(|head| head.version))
}

impl Ledger {
    /// Returns the version of the inventory; `None` if there is none yet.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Writes an inventory, if it differs from what is there.
    ///
    /// A conflict means that another process has written in the meantime; nothing is lost then, and nothing was
    /// written.
    pub async fn save(&mut self, cluster: &dyn Cluster, sync: &str, inventory: &Inventory) -> Result<(), ClusterError> {
        let unchanged = Inventory { epoch: self.inventory.epoch, ..inventory.clone() } == self.inventory;
        let needless = self.version.is_none() && inventory.entries.is_empty();
        if unchanged || needless {
            return Ok(());
        }
        let inventory = Inventory { epoch: self.inventory.epoch + 1, ..inventory.clone() };
        let mut encoded = inventory.encode();
        let former = self.shards.iter().chain(&self.former).filter(|digest| !encoded.shards.contains_key(*digest));
        let former: Vec<String> = former.cloned().collect();
        if !former.is_empty() {
            encoded.head.insert(FORMER.to_owned(), former.join(" "));
        }
        for (digest, shard) in encoded.shards.iter().filter(|(digest, _)| !self.shards.contains(digest)) {
            write_shard(cluster, &shard_name(sync, digest), shard).await?;
        }
        let version = cluster.write_record(&head_name(sync), &encoded.head, self.version.as_deref()).await?;
        for digest in &former {
            cluster.delete_record(&shard_name(sync, digest)).await?;
        }
        self.version = Some(version);
        self.shards = encoded.shards.into_keys().collect();
        self.former.clear();
        self.inventory = inventory;
        Ok(())
    }
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
