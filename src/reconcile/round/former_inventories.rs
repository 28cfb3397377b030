//! The inventories of our other syncs on a cluster, as far as a round needs them: those of former names of the sync,
//! which are taken over, and those of syncs that objects move from.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::inventory::Inventory;
use gatewright_engine::marks::Owner;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Doubt, Elsewhere, Observed};
use tracing::{info, warn};

use super::Task;
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store::{self, Ledger, Shards};

/// The inventory of a sync, and what it needs of those of others.
pub(super) struct Ledgers {
    pub(super) own: Ledger,
    pub(super) others: Others,
}

impl Ledgers {
    /// Reads them.
    pub(super) async fn load(cluster: &dyn Cluster, task: &Task<'_>, shards: Shards) -> Result<Self, ClusterError> {
        let mut own = store::watched(cluster, &task.policies.marker.sync, task.witness, shards).await?;
        let others = Others::load(cluster, task, shards).await?;
        own.unproven.extend(others.unproven().cloned());
        Ok(Self { own, others })
    }

    /// Tells whether one of them is in doubt.
    pub(super) fn are_doubtful(&self) -> bool {
        self.own.doubt.is_some() || self.others.doubt.is_some()
    }

    /// Adds to what was seen what stands in them.
    pub(super) async fn report(
        &self,
        cluster: &dyn Cluster,
        task: &Task<'_>,
        observed: &mut Observed,
    ) -> Result<(), ClusterError> {
        observed.elsewhere = self.others.elsewhere(cluster, observed, task).await?;
        let doubt = |what: &String| Doubt { sync: task.policies.marker.sync.clone(), what: what.clone() };
        observed.doubt = self.own.doubt.as_ref().map(doubt).or_else(|| self.others.doubt.clone());
        observed.unproven.clone_from(&self.own.unproven);
        Ok(())
    }
}

/// Inventories of former names.
pub(super) struct Others {
    former: BTreeMap<String, Ledger>,
    /// Why one of them cannot be trusted.
    doubt: Option<Doubt>,
}

impl Others {
    /// Reads the inventories of former names. One of another installation is not taken over.
    async fn load(cluster: &dyn Cluster, task: &Task<'_>, shards: Shards) -> Result<Self, ClusterError> {
        let policies = task.policies;
        let (mut former, mut doubt) = (BTreeMap::new(), None);
        for name in &policies.moved {
            let witness = task.witness.map(|witness| witness.of(name));
            let ledger = store::watched(cluster, name, witness.as_ref(), shards).await?;
            let wrong = |what: &String| Doubt { sync: name.clone(), what: format!("that of sync {name:?}: {what}") };
            doubt = doubt.or_else(|| ledger.doubt.as_ref().map(wrong));
            let installation = &ledger.inventory.installation;
            if !ledger.exists() {
                continue;
            }
            if cluster.carries_marks() && *installation != policies.marker.installation {
                warn!(sync = name, installation, "not taken over, because it belongs to another installation");
                continue;
            }
            former.insert(name.clone(), ledger);
        }
        Ok(Self { former, doubt })
    }

    /// Returns the entries that bear no seal of ours, and should.
    fn unproven(&self) -> impl Iterator<Item = &ObjectId> {
        self.former.values().flat_map(|ledger| &ledger.unproven)
    }

    /// Returns what is owned under the name of the sync and under its former ones. What stands in both was taken over
    /// by a round that did not come to its end.
    pub(super) fn taken_over(&self, owned: &Inventory) -> Inventory {
        let mut all = owned.clone();
        for ledger in self.former.values() {
            for (id, entry) in &ledger.inventory.entries {
                let known = all.entries.entry(id.clone()).or_insert_with(|| entry.clone());
                known.uid = known.uid.take().or_else(|| entry.uid.clone());
            }
            if all.cluster.is_empty() {
                all.cluster.clone_from(&ledger.inventory.cluster);
            }
        }
        all
    }

    /// Returns what stands in the inventories of our other syncs and is of interest: where objects bear marks, only of
    /// syncs that have marked what is wanted here.
    async fn elsewhere(
        &self,
        cluster: &dyn Cluster,
        observed: &Observed,
        task: &Task<'_>,
    ) -> Result<BTreeMap<ObjectId, Elsewhere>, ClusterError> {
        let policies = task.policies;
        let claims = &policies.claims;
        let mut elsewhere = BTreeMap::new();
        let mut add = |sync: &str, inventory: &Inventory| {
            for (id, entry) in &inventory.entries {
                let is_wanted = claims.by(id) == Some(sync);
                elsewhere.insert(id.clone(), Elsewhere { sync: sync.to_owned(), entry: entry.clone(), is_wanted });
            }
        };
        for sync in self.of_interest(cluster, observed, policies) {
            add(&sync, &store::load(cluster, &sync).await?.inventory);
        }
        for (sync, ledger) in &self.former {
            add(sync, &ledger.inventory);
        }
        Ok(elsewhere)
    }

    fn of_interest(&self, cluster: &dyn Cluster, observed: &Observed, policies: &Policies) -> BTreeSet<String> {
        let claims = &policies.claims;
        if !cluster.carries_marks() {
            return claims.syncs.keys().cloned().collect();
        }
        let owners = observed.live.values().map(|live| policies.marker.owner(&live.object));
        let syncs = owners.filter_map(|owner| match owner {
            Owner::OtherSync(sync) => Some(sync),
            Owner::Us | Owner::Nobody | Owner::OtherInstallation(_) | Owner::Other(_) => None,
        });
        syncs.filter(|sync| claims.is_known(sync) && !self.former.contains_key(sync)).collect()
    }

    /// Removes the inventories that were taken over: all that is in them is in ours now. What is in doubt stays until
    /// it is repaired.
    pub(super) async fn dissolve(&self, cluster: &dyn Cluster) -> Result<(), ClusterError> {
        if self.doubt.is_some() {
            return Ok(());
        }
        for (sync, ledger) in &self.former {
            ledger.forget(sync)?;
            store::remove(cluster, sync, ledger.clone()).await?;
            info!(sync, "its inventory was taken over under another name");
        }
        Ok(())
    }
}
