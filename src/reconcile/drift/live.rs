//! What there is: lists of what bears the label of an implementation, and single reads of what does not.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::health::Readiness;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId, is_secret};
use gatewright_engine::plan::conflicts::autoscaled;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::unit::{Rendering, Unit};

use crate::cluster::{Cluster, ClusterError, Kinds};
use crate::reconcile::observe::{existence, join_limited, only_local, read_each};
use crate::reconcile::round::health_snapshot::HealthSnapshots;

/// What was seen on a cluster.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The objects that are there: the wanted ones, and all that bear the label of an implementation.
    pub(super) live: BTreeMap<ObjectId, Live>,
    /// Objects of which it is not known whether they are there, and why.
    pub(super) unknown: BTreeMap<ObjectId, String>,
    /// The kinds that the cluster has.
    pub(super) kinds: Kinds,
    /// What scales what.
    pub(super) autoscaled: BTreeMap<ObjectId, ObjectId>,
    /// What could not be looked at, in words.
    pub(super) notes: Vec<String>,
}

impl Seen {
    /// What is known of the state of objects.
    pub(super) fn snapshots(&self) -> HealthSnapshots<'_> {
        HealthSnapshots { live: &self.live, known: const { &BTreeMap::new() }, readiness: Some(Readiness::default()) }
    }
}

/// Looks at everything that is wanted, and at everything that an implementation has made.
pub(super) async fn look(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
) -> Result<Seen, ClusterError> {
    let wanted: BTreeMap<ObjectId, Gvk> =
        wanted(policies, rendering).map(|(_, object)| (object.id().clone(), object.gvk())).collect();
    let mut seen = Seen { autoscaled: autoscaled(&rendering.units), ..Seen::default() };
    let traced: BTreeSet<Gvk> = rendering.traces.iter().flat_map(|trace| trace.kinds.iter().cloned()).collect();
    let all: BTreeSet<Gvk> = wanted.values().cloned().chain(traced).collect();
    seen.kinds = cluster.kinds(&all).await?;
    list(cluster, rendering, &mut seen).await?;
    let is_open = |id: &ObjectId, gvk: &Gvk| !seen.live.contains_key(id) && seen.kinds.served.contains_key(gvk);
    let missing = wanted.into_iter().filter(|(id, gvk)| is_open(id, gvk)).collect();
    let unconfirmed = existence::unconfirmed(cluster, missing).await?;
    let (live, unknown) = read_each(cluster, &unconfirmed).await?;
    seen.live.extend(live);
    seen.unknown.extend(unknown);
    Ok(seen)
}

/// Returns every wanted object that the sync may look at, with its unit.
pub(super) fn wanted<'a>(
    policies: &'a Policies,
    rendering: &'a Rendering,
) -> impl Iterator<Item = (&'a Unit, &'a Object)> {
    let units = rendering.units.iter().filter(|unit| policies.is_about(&unit.id));
    let objects = units.flat_map(|unit| unit.all().map(move |object| (unit, object)));
    objects.filter(|(_, object)| policies.forbids(object.id()).is_none())
}

async fn list(cluster: &dyn Cluster, rendering: &Rendering, seen: &mut Seen) -> Result<(), ClusterError> {
    let labels: BTreeSet<&str> = rendering.traces.iter().map(|trace| trace.label.as_str()).collect();
    // Secrets are never asked for in all namespaces.
    let kinds: Vec<&Gvk> = seen.kinds.served.keys().filter(|gvk| !is_secret(&gvk.group, &gvk.kind)).collect();
    let pairs = labels.iter().flat_map(|label| kinds.iter().map(move |gvk| (*label, *gvk)));
    let lists = pairs.map(|(label, gvk)| cluster.list_bearing(gvk, label).map(move |list| (gvk, list)).boxed());
    let mut refused = BTreeMap::new();
    for (gvk, list) in join_limited(lists.collect()).await {
        match list {
            Ok(live) => seen.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            // What is wanted is asked for one by one below; perhaps that is allowed.
            Err(error) => drop(refused.insert(gvk.kind.clone(), only_local(error)?)),
        }
    }
    if let Some(why) = refused.values().next() {
        let kinds: Vec<&str> = refused.keys().map(String::as_str).collect();
        let kinds = kinds.join(", ");
        seen.notes.push(format!("skipping orphan detection for {kinds}: {why}"));
    }
    Ok(())
}
