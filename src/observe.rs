//! Looking at a cluster before anything is decided: what exists, whose it is, and what our objects would become.
//!
//! One LIST per kind by our label, one GET for each wanted object that the LIST does not show (a label does not prove
//! absence), one dry run for each that exists. What was not seen is said to be unknown, never to be absent.

mod anew;
mod gateways;
mod going;

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::marks::{Marker, SYNC_LABEL};
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::recreate::Immutable;
use gatewright_engine::plan::{NamespaceState, Observed, Obstacle};
use gatewright_engine::unit::Unit;
use gatewright_engine::unit::generated::Generated;

use crate::cluster::{Cluster, ClusterError, Mode, Precondition, Reason};

/// Requests under way at once on one cluster; more only adds latency.
pub const CONCURRENCY: usize = 8;

/// How often an object that moves while it is looked at is rehearsed.
const REHEARSALS: usize = 4;

/// Awaits futures beside each other, at most [`CONCURRENCY`] at once; the results come in no order.
pub async fn beside<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(futures).buffer_unordered(CONCURRENCY).collect().await
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The wanted units, marks included.
    pub units: &'a [Unit],
    /// What is owned.
    pub owned: &'a Inventory,
    /// What the sync may do.
    pub policies: &'a Policies,
    /// Whether objects that are to be created are rehearsed too: for a plan that a person reads.
    pub rehearse_creates: bool,
}

/// Looks at a cluster. Fails only if the cluster as a whole cannot be talked to.
pub async fn observe(cluster: &dyn Cluster, scope: Scope<'_>) -> Result<Observed, ClusterError> {
    let identity = cluster.identity().await?;
    let wanted: Vec<&Object> = scope.wanted().collect();
    let mut observed = Observed { cluster: identity, carries_marks: cluster.carries_marks(), ..Observed::default() };
    let kinds = scope.kinds();
    let known = cluster.kinds(&kinds).await?;
    for gvk in kinds.iter().filter(|gvk| !known.contains_key(*gvk)) {
        let of_kind = wanted.iter().filter(|object| object.gvk() == *gvk);
        let obstacle = || Err(Obstacle::NoSuchKind(gvk.to_string()));
        observed.rehearsed.extend(of_kind.map(|object| (object.id().clone(), obstacle())));
    }
    let known: BTreeSet<Gvk> = known.into_keys().collect();
    list(cluster, &known, &scope.policies.marker, &mut observed).await?;
    let unknown = scope.without_kind(&observed, &known);
    observed.unknown.extend(unknown);
    get(cluster, scope.missing(&observed, &known), &mut observed).await?;
    namespaces(cluster, &wanted, &mut observed).await?;
    gateways::look(cluster, scope, &mut observed).await?;
    rehearse(cluster, scope, &known, &mut observed).await?;
    gateways::rehearse(cluster, scope, &mut observed).await?;
    anew::rehearse(cluster, scope, &mut observed).await?;
    going::look(cluster, scope, &mut observed).await?;
    Ok(observed)
}

impl<'a> Scope<'a> {
    fn about(self) -> impl Iterator<Item = &'a Unit> {
        self.units.iter().filter(move |unit| self.policies.is_about(&unit.id))
    }

    fn wanted(self) -> impl Iterator<Item = &'a Object> {
        // What may not be written is not asked for either.
        self.about().flat_map(Unit::all).filter(move |object| self.policies.forbids(object.id()).is_none())
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
        let wanted = self.wanted().map(|object| (object.id().clone(), object.gvk()));
        let owned = self.owned.entries.iter().map(|(id, entry)| (id.clone(), entry.gvk.clone()));
        let is_open = |id: &ObjectId| !observed.live.contains_key(id) && !observed.unknown.contains_key(id);
        wanted.chain(owned).filter(|(id, gvk)| is_open(id) && known.contains(gvk)).collect()
    }
}

/// A failure that concerns one kind or object is kept; one that concerns the cluster ends the observation.
fn only_local(error: ClusterError) -> Result<String, ClusterError> {
    match error.reason {
        Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized | Reason::Overloaded => Err(error),
        Reason::Forbidden | Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Other => {
            Ok(Chain(&error).to_string())
        }
    }
}

async fn list(
    cluster: &dyn Cluster,
    kinds: &BTreeSet<Gvk>,
    marker: &Marker,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let label = marker.label();
    let lists = kinds.iter().map(|gvk| cluster.list(gvk, (SYNC_LABEL, &label))).collect();
    for list in beside(lists).await {
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
    missing: BTreeMap<ObjectId, Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let gets = missing.iter().map(|(id, gvk)| cluster.get(gvk, id).map(move |live| (id, live)).boxed()).collect();
    for (id, live) in beside(gets).await {
        let id = id.clone();
        match live {
            Ok(Some(live)) => drop(observed.live.insert(id, live)),
            Ok(None) => {}
            Err(error) => drop(observed.unknown.insert(id, only_local(error)?)),
        }
    }
    Ok(())
}

/// Only the namespaces of objects that would be made: where something lives, there is a namespace.
async fn namespaces(cluster: &dyn Cluster, wanted: &[&Object], observed: &mut Observed) -> Result<(), ClusterError> {
    let absent = wanted.iter().filter(|object| !observed.live.contains_key(object.id()));
    let names: BTreeSet<&str> =
        absent.map(|object| object.id().namespace.as_str()).filter(|name| !name.is_empty()).collect();
    let gvk = Gvk::new("v1", "Namespace");
    for name in names {
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

async fn rehearse(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    known: &BTreeSet<Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let mut objects: Vec<&Object> = scope
        .wanted()
        .filter(|object| known.contains(&object.gvk()) && !observed.unknown.contains_key(object.id()))
        .collect();
    let generated = scope.about().flat_map(|unit| &unit.generated);
    let generated: BTreeMap<&ObjectId, &Generated> = generated.map(|it| (it.object.id(), it)).collect();
    for _ in 0..REHEARSALS {
        let candidates: Vec<(&Object, Option<Object>, Precondition)> = objects
            .into_iter()
            .filter_map(|object| {
                let only_if = precondition(object, observed, scope.rehearse_creates)?;
                // What has a value that is made once is rehearsed with the value that it has.
                let live = observed.live.get(object.id());
                let kept = generated.get(object.id()).and_then(|generated| generated.kept(live?));
                Some((object, kept, only_if))
            })
            .collect();
        let mut runs = Vec::with_capacity(candidates.len());
        for (object, kept, only_if) in &candidates {
            let rehearsal = cluster.apply(kept.as_ref().unwrap_or(object), only_if, Mode::DryRun);
            runs.push(rehearsal.map(|result| (*object, result)).boxed());
        }
        let mut moved = Vec::new();
        for (object, result) in beside(runs).await {
            let result = match result {
                Ok(live) => Ok(live),
                Err(error) if error.reason == Reason::Conflict => {
                    moved.push(object);
                    Err(Obstacle::Failed(Chain(&error).to_string()))
                }
                Err(error) => Err(obstacle(error)?),
            };
            observed.rehearsed.insert(object.id().clone(), result);
        }
        objects = moved;
        if objects.is_empty() {
            break;
        }
        // A status that was written between the LIST and the dry run is the usual reason: look again.
        let again = objects.iter().map(|object| (object.id().clone(), object.gvk())).collect();
        for object in &objects {
            observed.live.remove(object.id());
        }
        get(cluster, again, observed).await?;
    }
    Ok(())
}

fn precondition(object: &Object, observed: &Observed, rehearse_creates: bool) -> Option<Precondition> {
    match observed.live.get(object.id()) {
        Some(live) if live.is_terminating() => None,
        Some(live) => {
            Some(Precondition::Unchanged { uid: live.uid.clone(), resource_version: live.resource_version.clone() })
        }
        // In a namespace that is not there yet nothing can be rehearsed.
        None => {
            let is_possible =
                observed.namespaces.get(&object.id().namespace).is_none_or(|s| *s == NamespaceState::Present);
            (rehearse_creates && is_possible).then_some(Precondition::Absent)
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
