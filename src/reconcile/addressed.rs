//! The addresses of Services, for the copies of Gateways that a control plane leaves to us.

use std::collections::BTreeMap;

use gatewright_engine::health::addresses;
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::unit::Rendering;
use gatewright_engine::unit::addresses::Addresses;
use serde_json::Value;

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::cache::{CachedObject, NoChange};
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::requests::{only_local, read_each};

/// Reads where the Services can be reached whose Gateways are to say so. Of one that cannot be read the copy of its Gateway
/// keeps what it says.
pub(super) async fn service_addresses(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
) -> Result<Addresses, ClusterError> {
    let mut open: BTreeMap<ObjectId, Gvk> = rendering
        .addressed()
        .filter(|(_, copy)| policies.is_about(copy.id()))
        .map(|(service, _)| (service.id().clone(), service.gvk()))
        .collect();
    if open.is_empty() || !cluster.has_health() {
        return Ok(Addresses::new());
    }
    let label = policies.marker.label();
    let ours = match cluster.list(&Gvk::new("v1", "Service"), (SYNC_LABEL, &label)).await {
        Ok(ours) => ours,
        // Perhaps they can be read one by one.
        Err(error) => only_local(error).map(|_| Vec::new())?,
    };
    let mut known = Addresses::new();
    let mut learn = |live: Live| drop(known.insert(live.object.id().clone(), addresses(live.object.body())));
    ours.into_iter().filter(|live| open.remove(live.object.id()).is_some()).for_each(&mut learn);
    // What is to be adopted does not bear our label yet.
    let mut observed = Observed::default();
    read_each(cluster, &open, &mut observed).await?;
    observed.live.into_values().for_each(&mut learn);
    for (service, copy) in rendering.addressed().filter(|(service, _)| observed.unknown.contains_key(service.id())) {
        if let Ok(Some(copy)) = cluster.get(&copy.gvk(), copy.id()).await {
            known.insert(service.id().clone(), copied(&copy));
        }
    }
    Ok(known)
}

/// The addresses that a copy has now.
fn copied(copy: &Live) -> Vec<String> {
    let addresses = copy.object.body().pointer("/spec/addresses").and_then(Value::as_array).into_iter().flatten();
    addresses.filter_map(|address| address["value"].as_str().map(str::to_owned)).collect()
}

/// Tells whether the Services still are where the copies of their Gateways say.
pub(super) async fn are_as_copied(
    cluster: &dyn Cluster,
    cached: &[CachedObject],
    no_change: &NoChange,
    metadata: &MetadataView,
) -> Result<bool, ClusterError> {
    let mut moved = BTreeMap::new();
    for service in cached {
        let Some(copied) = no_change.copied_addresses.get(&service.id) else { continue };
        let seen = metadata.objects.get(&service.id).map(|seen| &seen.resource_version);
        if seen != Some(&service.version) {
            moved.insert(service.id.clone(), service.gvk.clone());
        } else if service.health.addresses != *copied {
            return Ok(false);
        }
    }
    let mut observed = Observed::default();
    read_each(cluster, &moved, &mut observed).await?;
    let live = observed.live;
    let is_as_copied = |id: &ObjectId| {
        live.get(id).is_some_and(|live| addresses(live.object.body()) == no_change.copied_addresses[id])
    };
    Ok(moved.keys().all(is_as_copied))
}
