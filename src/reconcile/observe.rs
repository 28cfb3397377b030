//! Looking at a cluster before anything is decided: what exists, whose it is, and what our objects would become.
//!
//! Where this host has a cache from its last round, the metadata of all our objects are looked at, and only what has changed
//! since is read and dry-run. Else all of it is: one LIST per kind by our label, and one dry run for each that exists.
//! What was not seen is said to be unknown, never to be absent.

mod deletions;
pub mod dry_run;
mod exclusive;
pub mod existence;
mod gateways;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::marks::{Marker, SYNC_LABEL};
use gatewright_engine::object::{Gvk, Object, ObjectId, is_secret};
use gatewright_engine::plan::conflicts::autoscaled;
use gatewright_engine::plan::{NamespaceState, Observed};

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::metadata::{MetadataView, outline};
use crate::reconcile::model::{Facts, RoundSettings};
use crate::reconcile::requests::{join_bounded, only_local, read_each};
use dry_run::unserved;

/// From so many objects of a kind on that have changed, and if they are more than one in ten, the kind is listed.
const MANY_CHANGED: usize = 20;

/// Looks at a cluster. Fails only if the cluster as a whole cannot be talked to.
///
/// Also returns the metadata that were seen, where they were looked at.
pub async fn observe(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    facts: &Facts,
) -> Result<(Observed, Option<MetadataView>), ClusterError> {
    let wanted: Vec<&Object> = facts.wanted().collect();
    let is_unmarked = !cluster.carries_marks();
    let mut observed = Observed { is_unmarked, ..Observed::from_objects(&facts.identity, []) };
    observed.autoscaled = autoscaled(&facts.rendering.units);
    let owned = facts.owned.entries.values().map(|entry| entry.gvk.clone());
    let kinds = wanted.iter().map(|object| object.gvk()).chain(owned).collect();
    let objects = objects(facts);
    let found = cluster.kinds(&kinds).await?;
    let obstacle = |object: &&Object| Some((object.id().clone(), unserved(&found, &object.gvk())?.into()));
    observed.dry_runs.extend(wanted.iter().filter_map(obstacle));
    let known: BTreeSet<Gvk> = found.served.into_keys().collect();
    let metadata = list_metadata(cluster, facts, &objects, &known, &mut observed).await?;
    if metadata.is_none() {
        list(cluster, &known, &facts.policies.marker, &mut observed).await?;
    }
    let unknown = unseen(facts, &observed, &known);
    observed.unknown.extend(unknown);
    let is_open = |id: &ObjectId| !observed.live.contains_key(id) && !observed.unknown.contains_key(id);
    let missing = objects.into_iter().filter(|(id, gvk)| is_open(id) && known.contains(gvk)).collect();
    let unconfirmed = existence::unconfirmed(cluster, missing).await?;
    read_each(cluster, &unconfirmed, &mut observed).await?;
    namespaces(cluster, &wanted, &mut observed).await?;
    gateways::look(cluster, facts, &mut observed).await?;
    dry_run::ask(cluster, &facts.rendering.units, &facts.policies, settings.purpose(), &mut observed).await?;
    deletions::look(cluster, facts, &mut observed).await?;
    exclusive::look(cluster, facts, &mut observed).await?;
    Ok((observed, metadata))
}

/// All that is wanted or owned, and its kind.
fn objects(facts: &Facts) -> BTreeMap<ObjectId, Gvk> {
    let owned = facts.owned.entries.iter().map(|(id, entry)| (id.clone(), entry.gvk.clone()));
    owned.chain(facts.wanted().map(|object| (object.id().clone(), object.gvk()))).collect()
}

/// Objects that are owned, not wanted, and of a kind that the cluster does not show. They need not be absent: a part of
/// the API may be out of order.
fn unseen(facts: &Facts, observed: &Observed, known: &BTreeSet<Gvk>) -> BTreeMap<ObjectId, String> {
    let wanted: BTreeSet<&ObjectId> = facts.wanted().map(Object::id).collect();
    let is_open = |id: &ObjectId| !observed.live.contains_key(id) && !wanted.contains(id);
    let owned = facts.owned.entries.iter().filter(|(id, entry)| !known.contains(&entry.gvk) && is_open(id));
    owned.map(|(id, entry)| (id.clone(), format!("the cluster has no {}", entry.gvk))).collect()
}

/// Looks at metadata, and reads only what is not as it was when it was right.
async fn list_metadata(
    cluster: &dyn Cluster,
    facts: &Facts,
    objects: &BTreeMap<ObjectId, Gvk>,
    known: &BTreeSet<Gvk>,
    observed: &mut Observed,
) -> Result<Option<MetadataView>, ClusterError> {
    let (Some(cache), Some(metadata)) = (&facts.cache, &facts.metadata) else { return Ok(None) };
    let mut objects = objects.clone();
    objects.retain(|_, gvk| known.contains(gvk));
    let Some(metadata) = metadata.clone().widened(cluster, &objects, &facts.policies.marker).await? else {
        return Ok(None);
    };
    if metadata.is_older_than(&cache.versions) {
        return Ok(None);
    }
    let cache = cache.by_object();
    let is_cached = |id: &ObjectId| {
        let seen = cache.get(id).zip(metadata.objects.get(id));
        seen.is_some_and(|(cached, seen)| facts.digests.get(id) == Some(&cached.wanted) && cached.agrees(seen))
    };
    let shown = objects.into_iter().filter(|(id, _)| metadata.objects.contains_key(id));
    let (unchanged, changed): (BTreeMap<ObjectId, Gvk>, BTreeMap<ObjectId, Gvk>) =
        shown.partition(|(id, _)| is_cached(id));
    for (id, gvk) in unchanged {
        if let Some(live) = outline(&id, &gvk, &metadata.objects[&id]) {
            observed.live.insert(id.clone(), live);
            observed.unchanged.insert(id);
        }
    }
    read(cluster, facts, &metadata, changed, observed).await?;
    Ok(Some(metadata))
}

/// Reads objects that are there: one by one, or, where that is less work, all of their kind.
async fn read(
    cluster: &dyn Cluster,
    facts: &Facts,
    metadata: &MetadataView,
    mut objects: BTreeMap<ObjectId, Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let mut changed: BTreeMap<&Gvk, usize> = BTreeMap::new();
    for gvk in objects.values() {
        *changed.entry(gvk).or_default() += 1;
    }
    let shown = |gvk: &Gvk| metadata.objects.keys().filter(|id| id.group == gvk.group && id.kind == gvk.kind).count();
    let many = changed.into_iter().filter(|(gvk, number)| *number >= MANY_CHANGED && number * 10 > shown(gvk));
    let many: BTreeSet<Gvk> = many.map(|(gvk, _)| gvk.clone()).collect();
    let before = std::mem::take(&mut observed.live);
    list(cluster, &many, &facts.policies.marker, observed).await?;
    observed.live.retain(|id, _| objects.contains_key(id));
    objects.retain(|id, _| !observed.live.contains_key(id));
    observed.live.extend(before);
    read_each(cluster, &objects, observed).await
}

async fn list(
    cluster: &dyn Cluster,
    kinds: &BTreeSet<Gvk>,
    marker: &Marker,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let label = marker.label();
    let listed = kinds.iter().filter(|gvk| !is_secret(&gvk.group, &gvk.kind) || !cluster.carries_marks());
    let lists = listed.map(|gvk| cluster.list(gvk, (SYNC_LABEL, &label))).collect();
    for list in join_bounded(lists).await {
        match list {
            Ok(live) => observed.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            // The objects are asked for one by one below; perhaps that is allowed.
            Err(error) => drop(only_local(error)?),
        }
    }
    Ok(())
}

/// Namespaces that every cluster has from its beginning; a folder has no object of them.
const FROM_THE_BEGINNING: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Only the namespaces of objects that would be made: where something lives, there is a namespace.
async fn namespaces(cluster: &dyn Cluster, wanted: &[&Object], observed: &mut Observed) -> Result<(), ClusterError> {
    let absent = wanted.iter().filter(|object| !observed.live.contains_key(object.id()));
    let names: BTreeSet<&str> =
        absent.map(|object| object.id().namespace.as_str()).filter(|name| !name.is_empty()).collect();
    let gvk = Gvk::new("v1", "Namespace");
    for name in names {
        if !cluster.carries_marks() && FROM_THE_BEGINNING.contains(&name) {
            observed.namespaces.insert(name.to_owned(), NamespaceState::Present);
            continue;
        }
        let state = match cluster.get(&gvk, &ObjectId::new("", "Namespace", "", name)).await {
            Ok(None) => NamespaceState::Absent,
            Ok(Some(live)) if live.is_terminating() => NamespaceState::Terminating,
            Ok(Some(_)) => NamespaceState::Present,
            // Without the right to read it, creating will tell.
            Err(error) => only_local(error).map(|_| NamespaceState::Present)?,
        };
        observed.namespaces.insert(name.to_owned(), state);
    }
    Ok(())
}
