//! The inventories of our other syncs on a cluster, as far as a round needs them: those of former names of the sync,
//! which become its own, and those of syncs that objects move from.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::inventory::Inventory;
use gatewright_engine::marks::Owner;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Elsewhere, Observed, Suspicion};
use tracing::{info, warn};

use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store::{self, Shards, Store};
use crate::reconcile::model::RoundSettings;

/// The inventory of a sync, and what it needs of those of others.
pub(super) struct Stores {
    pub(super) own: Store,
    /// Those of former names.
    former: BTreeMap<String, Store>,
    /// The reason why one of those cannot be trusted.
    suspicion: Option<Suspicion>,
}

impl Stores {
    /// Reads them. Of former names, one of another installation stays.
    pub(super) async fn load(
        cluster: &dyn Cluster,
        settings: &RoundSettings,
        shards: Shards,
    ) -> Result<Self, ClusterError> {
        let policies = &settings.policies;
        let mut own = store::watched(cluster, settings.sync(), settings.audit.as_ref(), shards).await?;
        let (mut former, mut suspicion) = (BTreeMap::new(), None);
        for name in &policies.renamed_from {
            let audit = settings.audit.as_ref().map(|audit| audit.of(name));
            let store = store::watched(cluster, name, audit.as_ref(), shards).await?;
            let wrong =
                |what: &String| Suspicion { sync: name.clone(), what: format!("that of sync {name:?}: {what}") };
            suspicion = suspicion.or_else(|| store.suspicion.as_ref().map(wrong));
            let installation = &store.inventory.installation;
            if !store.exists() {
                continue;
            }
            if cluster.carries_marks() && *installation != policies.marker.installation {
                warn!(sync = name, installation, "left alone, because it belongs to another installation");
                continue;
            }
            own.unverified.extend(store.unverified.iter().cloned());
            former.insert(name.clone(), store);
        }
        Ok(Self { own, former, suspicion })
    }

    /// Tells whether one of them is suspect.
    pub(super) fn are_suspect(&self) -> bool {
        self.own.suspicion.is_some() || self.suspicion.is_some()
    }

    /// Adds to what was seen what stands in them.
    pub(super) async fn report(
        &self,
        cluster: &dyn Cluster,
        policies: &Policies,
        observed: &mut Observed,
    ) -> Result<(), ClusterError> {
        observed.elsewhere = self.elsewhere(cluster, observed, policies).await?;
        let suspicion = |what: &String| Suspicion { sync: policies.marker.sync.clone(), what: what.clone() };
        observed.suspicion = self.own.suspicion.as_ref().map(suspicion).or_else(|| self.suspicion.clone());
        observed.unverified.clone_from(&self.own.unverified);
        Ok(())
    }

    /// Returns what is owned under the name of the sync and under its former ones. What stands in both was renamed
    /// by a round that did not come to its end.
    pub(super) fn owned(&self) -> Inventory {
        let mut all = self.own.inventory.clone();
        for store in self.former.values() {
            for (id, entry) in &store.inventory.entries {
                let known = all.entries.entry(id.clone()).or_insert_with(|| entry.clone());
                known.uid = known.uid.take().or_else(|| entry.uid.clone());
            }
            if all.cluster.is_empty() {
                all.cluster.clone_from(&store.inventory.cluster);
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
        policies: &Policies,
    ) -> Result<BTreeMap<ObjectId, Elsewhere>, ClusterError> {
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
        for (sync, store) in &self.former {
            add(sync, &store.inventory);
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

    /// Removes the inventories of former names: all that is in them is in ours now. What is suspect stays until
    /// it is repaired.
    pub(super) async fn dissolve(&self, cluster: &dyn Cluster) -> Result<(), ClusterError> {
        if self.suspicion.is_some() {
            return Ok(());
        }
        for (sync, store) in &self.former {
            store.forget(sync)?;
            store::remove(cluster, sync, store.clone()).await?;
            info!(sync, "its inventory goes on under another name");
        }
        Ok(())
    }
}
