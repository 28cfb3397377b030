//! Objects that may be deleted: what goes with them, and what still needs them.

mod users;

use std::collections::BTreeSet;

use futures::FutureExt;
use gatewright_engine::kinds::is_container;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::unit::Unit;
use serde_json::Value;

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::model::Facts;
use crate::reconcile::requests::{join_bounded, only_local};

/// Looks into namespaces and kinds that may be deleted, and at Gateways of which everything may be.
pub(super) async fn look(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    contents(cluster, facts, observed).await?;
    routes(cluster, facts, observed).await?;
    users::look(cluster, facts, observed).await
}

async fn contents(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    let wanted: BTreeSet<&ObjectId> = facts.rendering.units.iter().flat_map(Unit::all).map(Object::id).collect();
    let unwanted = facts.owned.entries.keys().filter(|id| is_container(id) && !wanted.contains(id));
    let containers: Vec<Object> =
        unwanted.filter_map(|id| observed.live.get(id)).map(|live| live.object.clone()).collect();
    for container in containers {
        let contents = match cluster.contents(&container).await {
            Ok(contents) => Ok(contents),
            Err(error) => Err(only_local(error)?),
        };
        observed.contents.insert(container.id().clone(), contents);
    }
    Ok(())
}

/// A Gateway that cannot be read says nothing: without the right to, its objects can be deleted as ever.
async fn routes(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    if !cluster.has_health() {
        return Ok(());
    }
    let wanted: BTreeSet<&ObjectId> = facts.rendering.units.iter().map(|unit| &unit.id).collect();
    let owned: BTreeSet<&ObjectId> = facts.owned.entries.values().map(|entry| &entry.unit).collect();
    let deleted = owned.into_iter().filter(|id| id.is_a(GATEWAY_API, "Gateway") && !wanted.contains(id));
    let deleted: Vec<&ObjectId> = deleted.filter(|id| facts.policies.is_about(id)).collect();
    let gvk = Gvk::new(&format!("{GATEWAY_API}/v1"), "Gateway");
    if deleted.is_empty() || !cluster.kinds(&BTreeSet::from([gvk.clone()])).await?.served.contains_key(&gvk) {
        return Ok(());
    }
    let looks = deleted.into_iter().map(|id| {
        let known = observed.live.get(id).cloned();
        let gvk = &gvk;
        async move { (id.clone(), if known.is_some() { Ok(known) } else { cluster.get(gvk, id).await }) }.boxed()
    });
    for (id, live) in join_bounded(looks.collect()).await {
        match live {
            Ok(live) => drop(observed.routes.insert(id, live.as_ref().map_or(0, attached))),
            Err(error) => drop(only_local(error)?),
        }
    }
    Ok(())
}

/// Counts the routes that are attached to the listeners of a Gateway; one at two listeners counts twice.
fn attached(gateway: &Live) -> usize {
    let listeners = gateway.object.body().pointer("/status/listeners").and_then(Value::as_array);
    let counts = listeners.into_iter().flatten().filter_map(|listener| listener["attachedRoutes"].as_u64());
    counts.filter_map(|count| usize::try_from(count).ok()).sum()
}
