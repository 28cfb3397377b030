//! The objects that are there: lists of what bears the label of an implementation, and single reads of what does not.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};
use gatewright_engine::plan::conflicts::autoscaled;
use gatewright_engine::plan::drift::standing::wanted;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Observed, Obstacle};
use gatewright_engine::unit::Rendering;

use crate::cluster::{Cluster, ClusterError, Kinds};
use crate::reconcile::observe::dry_run::unserved;
use crate::reconcile::observe::existence;
use crate::reconcile::requests::{join_bounded, only_local, read_each};

/// Looks at everything that is wanted, and at everything that an implementation has made; also returns what could not be
/// looked at, in words.
pub(super) async fn look(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
) -> Result<(Observed, Vec<String>), ClusterError> {
    let objects: BTreeMap<ObjectId, Gvk> =
        wanted(policies, rendering).map(|(_, object)| (object.id().clone(), object.gvk())).collect();
    let traced: BTreeSet<Gvk> = rendering.traces.iter().flat_map(|trace| trace.kinds.iter().cloned()).collect();
    let all: BTreeSet<Gvk> = objects.values().cloned().chain(traced).collect();
    let kinds = cluster.kinds(&all).await?;
    let mut observed = Observed { autoscaled: autoscaled(&rendering.units), ..Observed::default() };
    let notes = list(cluster, rendering, &kinds, &mut observed).await?;
    let mut missing = BTreeMap::new();
    for (id, gvk) in objects {
        match unserved(&kinds, &gvk) {
            Some(Obstacle::Failed(silence)) => drop(observed.unknown.insert(id, silence)),
            Some(obstacle) => drop(observed.dry_runs.insert(id, obstacle.into())),
            None if observed.live.contains_key(&id) => {}
            None => drop(missing.insert(id, gvk)),
        }
    }
    let unconfirmed = existence::unconfirmed(cluster, missing).await?;
    read_each(cluster, &unconfirmed, &mut observed).await?;
    Ok((observed, notes))
}

async fn list(
    cluster: &dyn Cluster,
    rendering: &Rendering,
    kinds: &Kinds,
    observed: &mut Observed,
) -> Result<Vec<String>, ClusterError> {
    let labels: BTreeSet<&str> = rendering.traces.iter().map(|trace| trace.label.as_str()).collect();
    // Secrets are never asked for in all namespaces.
    let kinds: Vec<&Gvk> = kinds.served.keys().filter(|gvk| !is_secret(&gvk.group, &gvk.kind)).collect();
    let pairs = labels.iter().flat_map(|label| kinds.iter().map(move |gvk| (*label, *gvk)));
    let lists = pairs.map(|(label, gvk)| cluster.list_bearing(gvk, label).map(move |list| (gvk, list)).boxed());
    let mut refused = BTreeMap::new();
    for (gvk, list) in join_bounded(lists.collect()).await {
        match list {
            Ok(live) => observed.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            // What is wanted is asked for one by one below; perhaps that is allowed.
            Err(error) => drop(refused.insert(gvk.kind.clone(), only_local(error)?)),
        }
    }
    let kinds: Vec<&str> = refused.keys().map(String::as_str).collect();
    let kinds = kinds.join(", ");
    let note = |why| format!("skipping orphan detection for {kinds}: {why}");
    Ok(refused.values().next().map(note).into_iter().collect())
}
