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
pub mod metadata;
mod replacements;

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::marks::{Marker, SYNC_LABEL};
use gatewright_engine::object::{Gvk, Object, ObjectId, is_secret};
use gatewright_engine::plan::conflicts::autoscaled;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::recreate::Immutable;
use gatewright_engine::plan::{NamespaceState, Observed, Obstacle};
use gatewright_engine::unit::Unit;
use gatewright_engine::unit::generated::Generated;

use crate::cluster::{Cluster, ClusterError, Kinds, Precondition, Reason};
use crate::reconcile::cache::Cache;
use dry_run::DryRun;
use metadata::{MetadataView, outline};

/// Requests under way at once on one cluster; more only adds latency.
pub const CONCURRENCY: usize = 8;

/// How often an object that moves while it is looked at is dry-run.
const DRY_RUN_TRIES: usize = 4;

/// From so many objects of a kind on that have changed, and if they are more than one in ten, the kind is listed.
const MANY_CHANGED: usize = 20;

/// Awaits futures beside each other, at most [`CONCURRENCY`] at once; the results come in no order.
pub async fn join_limited<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    join_bounded(futures, CONCURRENCY).await
}

/// The same, with another number at once.
pub async fn join_bounded<T>(futures: Vec<BoxFuture<'_, T>>, at_once: usize) -> Vec<T> {
    stream::iter(futures).buffer_unordered(at_once).collect().await
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// What identifies the cluster.
    pub identity: &'a str,
    /// The wanted units, marks included.
    pub units: &'a [Unit],
    /// What is owned.
    pub owned: &'a Inventory,
    /// What the sync may do.
    pub policies: &'a Policies,
    /// Whether objects that are to be created are dry-run too: for a plan that a person reads.
    pub dry_run_creates: bool,
    /// What is known from the last round, and what was seen since.
    pub known: Option<Known<'a>>,
}

/// What is known before a cluster is looked at.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// What the last round found.
    pub cache: &'a Cache,
    /// The metadata of what it was about, as they are now.
    pub metadata: &'a MetadataView,
    /// The digests of all that is wanted.
    pub digests: &'a BTreeMap<ObjectId, String>,
}

/// Looks at a cluster. Fails only if the cluster as a whole cannot be talked to.
///
/// Also returns the metadata that were seen, where they were looked at.
pub async fn observe(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
) -> Result<(Observed, Option<MetadataView>), ClusterError> {
    let wanted: Vec<&Object> = scope.wanted().collect();
    let is_unmarked = !cluster.carries_marks();
    let mut observed = Observed { is_unmarked, ..Observed::from_objects(scope.identity, []) };
    observed.autoscaled = autoscaled(scope.units);
    let kinds = scope.kinds();
    let found = cluster.kinds(&kinds).await?;
    observed.dry_runs.extend(without_kind(&wanted, &kinds, &found));
    let known: BTreeSet<Gvk> = found.served.into_keys().collect();
    let metadata = match scope.known {
        Some(last) => list_metadata(cluster, scope, last, &known, &mut observed).await?,
        None => None,
    };
    if metadata.is_none() {
        list(cluster, &known, &scope.policies.marker, &mut observed).await?;
    }
    let unknown = scope.without_kind(&observed, &known);
    observed.unknown.extend(unknown);
    let unconfirmed = existence::unconfirmed(cluster, scope.missing(&observed, &known)).await?;
    get(cluster, unconfirmed, &mut observed).await?;
    namespaces(cluster, &wanted, &mut observed).await?;
    gateways::look(cluster, scope, &mut observed).await?;
    dry_run(cluster, scope, &known, &mut observed).await?;
    gateways::dry_run(cluster, scope, &mut observed).await?;
    replacements::dry_run(cluster, scope, &mut observed).await?;
    deletions::look(cluster, scope, &mut observed).await?;
    exclusive::look(cluster, scope, &mut observed).await?;
    Ok((observed, metadata))
}

impl<'a> Scope<'a> {
    fn about(self) -> impl Iterator<Item = &'a Unit> {
        self.units.iter().filter(move |unit| self.policies.is_about(&unit.id))
    }

    fn wanted(self) -> impl Iterator<Item = &'a Object> {
        // What may not be written is not asked for either.
        self.about().flat_map(Unit::all).filter(move |object| self.policies.forbids(object.id()).is_none())
    }

    /// All that is wanted or owned, and its kind.
    fn objects(self) -> BTreeMap<ObjectId, Gvk> {
        let owned = self.owned.entries.iter().map(|(id, entry)| (id.clone(), entry.gvk.clone()));
        owned.chain(self.wanted().map(|object| (object.id().clone(), object.gvk()))).collect()
    }

    fn kinds(self) -> BTreeSet<Gvk> {
        self.wanted().map(Object::gvk).chain(self.owned.entries.values().map(|entry| entry.gvk.clone())).collect()
    }

    /// Objects that are owned, not wanted, and of a kind that the cluster does not show. They need not be absent: a part
    /// of the API may be out of order.
    fn without_kind(self, observed: &Observed, known: &BTreeSet<Gvk>) -> BTreeMap<ObjectId, String> {
        let wanted: BTreeSet<&ObjectId> = self.wanted().map(Object::id).collect();
        let is_open = |id: &ObjectId| !observed.live.contains_key(id) && !wanted.contains(id);
        let owned = self.owned.entries.iter().filter(|(id, entry)| !known.contains(&entry.gvk) && is_open(id));
        owned.map(|(id, entry)| (id.clone(), format!("the cluster has no {}", entry.gvk))).collect()
    }

    /// Objects that are wanted or owned and that no LIST has shown.
    fn missing(self, observed: &Observed, known: &BTreeSet<Gvk>) -> BTreeMap<ObjectId, Gvk> {
        let is_open = |id: &ObjectId| !observed.live.contains_key(id) && !observed.unknown.contains_key(id);
        self.objects().into_iter().filter(|(id, gvk)| is_open(id) && known.contains(gvk)).collect()
    }
}

/// Says of wanted objects whose kind cannot be asked for why that is.
fn without_kind(
    wanted: &[&Object],
    kinds: &BTreeSet<Gvk>,
    found: &Kinds,
) -> BTreeMap<ObjectId, Result<Live, Obstacle>> {
    let mut obstacles = BTreeMap::new();
    for gvk in kinds.iter().filter(|gvk| !found.served.contains_key(*gvk)) {
        let obstacle = if found.unanswered.contains(gvk) {
            Obstacle::Failed(format!("the part of the API that serves {gvk} does not answer"))
        } else {
            Obstacle::NoSuchKind(gvk.to_string())
        };
        let of_kind = wanted.iter().filter(|object| object.gvk() == *gvk);
        obstacles.extend(of_kind.map(|object| (object.id().clone(), Err(obstacle.clone()))));
    }
    obstacles
}

/// A failure that concerns one kind or object is kept; one that concerns the cluster ends the observation.
pub fn only_local(error: ClusterError) -> Result<String, ClusterError> {
    match error.reason {
        Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized | Reason::Overloaded => Err(error),
        Reason::Forbidden | Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Other => {
            Ok(Chain(&error).to_string())
        }
    }
}

/// Looks at metadata, and reads only what is not as it was when it was right.
async fn list_metadata(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    last: Known<'_>,
    known: &BTreeSet<Gvk>,
    observed: &mut Observed,
) -> Result<Option<MetadataView>, ClusterError> {
    let mut objects = scope.objects();
    objects.retain(|_, gvk| known.contains(gvk));
    let Some(metadata) = last.metadata.clone().widened(cluster, &objects, &scope.policies.marker).await? else {
        return Ok(None);
    };
    if metadata.is_older_than(&last.cache.versions) {
        return Ok(None);
    }
    let cache = last.cache.by_object();
    let is_cached = |id: &ObjectId| {
        let seen = cache.get(id).zip(metadata.objects.get(id));
        seen.is_some_and(|(cached, seen)| last.digests.get(id) == Some(&cached.wanted) && cached.agrees(seen))
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
    read(cluster, scope, &metadata, changed, observed).await?;
    Ok(Some(metadata))
}

/// Reads objects that are there: one by one, or, where that is less work, all of their kind.
async fn read(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
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
    list(cluster, &many, &scope.policies.marker, observed).await?;
    observed.live.retain(|id, _| objects.contains_key(id));
    objects.retain(|id, _| !observed.live.contains_key(id));
    observed.live.extend(before);
    get(cluster, objects, observed).await
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
    for list in join_limited(lists).await {
        match list {
            Ok(live) => observed.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            // The objects are asked for one by one below; perhaps that is allowed.
            Err(error) => drop(only_local(error)?),
        }
    }
    Ok(())
}

async fn get(
    cluster: &dyn Cluster,
    objects: BTreeMap<ObjectId, Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let (live, unknown) = read_each(cluster, &objects).await?;
    observed.live.extend(live);
    observed.unknown.extend(unknown);
    Ok(())
}

/// Reads objects one by one; returns those that are there, and why others could not be read.
pub async fn read_each(
    cluster: &dyn Cluster,
    objects: &BTreeMap<ObjectId, Gvk>,
) -> Result<(BTreeMap<ObjectId, Live>, BTreeMap<ObjectId, String>), ClusterError> {
    let gets = objects.iter().map(|(id, gvk)| cluster.get(gvk, id).map(move |live| (id, live)).boxed()).collect();
    let (mut there, mut unknown) = (BTreeMap::new(), BTreeMap::new());
    for (id, live) in join_limited(gets).await {
        match live {
            Ok(Some(live)) => drop(there.insert(id.clone(), live)),
            Ok(None) => {}
            Err(error) => drop(unknown.insert(id.clone(), only_local(error)?)),
        }
    }
    Ok((there, unknown))
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

async fn dry_run(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    known: &BTreeSet<Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let objects = scope
        .wanted()
        .filter(|object| known.contains(&object.gvk()) && !observed.unknown.contains_key(object.id()))
        .filter(|object| !observed.unchanged.contains(object.id()))
        .collect();
    dry_run_all(cluster, scope, objects, observed).await
}

async fn dry_run_all(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    mut objects: Vec<&Object>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let generated = scope.about().flat_map(|unit| &unit.generated);
    let generated: BTreeMap<&ObjectId, &Generated> = generated.map(|it| (it.object.id(), it)).collect();
    let units = scope.about().flat_map(|unit| unit.all().map(move |object| (object.id(), unit)));
    let units: BTreeMap<&ObjectId, &Unit> = units.collect();
    for _ in 0..DRY_RUN_TRIES {
        let candidates: Vec<(&Object, DryRun<'_>)> = objects
            .into_iter()
            .filter_map(|object| {
                let only_if = precondition(object, observed, scope.dry_run_creates)?;
                let unit = units.get(object.id())?;
                // What has a generated value is dry-run with the value that it has.
                let live = observed.live.get(object.id());
                let kept = generated.get(object.id()).and_then(|generated| generated.kept(live?));
                let wanted = kept.as_ref().unwrap_or(object);
                Some((object, DryRun::of(unit, wanted, only_if, observed, scope.policies)?))
            })
            .collect();
        let mut runs = Vec::with_capacity(candidates.len());
        for (object, dry_run) in &candidates {
            runs.push(dry_run.run(cluster).map(|result| (*object, result)).boxed());
        }
        let mut changed = Vec::new();
        for (object, result) in join_limited(runs).await {
            let result = match result {
                Ok(live) => Ok(live),
                Err(error) if error.reason == Reason::Conflict => {
                    changed.push(object);
                    Err(Obstacle::Failed(Chain(&error).to_string()))
                }
                Err(error) => Err(obstacle(error)?),
            };
            observed.dry_runs.insert(object.id().clone(), result);
        }
        objects = changed;
        if objects.is_empty() {
            break;
        }
        // A status that was written between the LIST and the dry run is the usual reason: look again.
        get_again(cluster, &objects, observed).await?;
    }
    Ok(())
}

async fn get_again(cluster: &dyn Cluster, objects: &[&Object], observed: &mut Observed) -> Result<(), ClusterError> {
    let again = objects.iter().map(|object| (object.id().clone(), object.gvk())).collect();
    for object in objects {
        observed.live.remove(object.id());
    }
    get(cluster, again, observed).await
}

fn precondition(object: &Object, observed: &Observed, dry_run_creates: bool) -> Option<Precondition> {
    match observed.live.get(object.id()) {
        Some(live) if live.is_terminating() => None,
        Some(live) => {
            Some(Precondition::Unchanged { uid: live.uid.clone(), resource_version: live.resource_version.clone() })
        }
        // In a namespace that is not there yet nothing can be dry-run.
        None => {
            let is_possible =
                observed.namespaces.get(&object.id().namespace).is_none_or(|s| *s == NamespaceState::Present);
            (dry_run_creates && is_possible).then_some(Precondition::Absent)
        }
    }
}

fn obstacle(error: ClusterError) -> Result<Obstacle, ClusterError> {
    let reason = error.reason;
    if let Some(immutable) = error.immutable() {
        let (fields, message) = (immutable.fields.clone(), immutable.message.clone());
        return Ok(Obstacle::Immutable(Box::new(Immutable { fields, message, instead: None })));
    }
    let text = only_local(error)?;
    Ok(match reason {
        Reason::Invalid => Obstacle::Invalid(text),
        Reason::Forbidden => Obstacle::Forbidden(text),
        _ => Obstacle::Failed(text),
    })
}
