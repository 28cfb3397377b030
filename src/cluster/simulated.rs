//! A cluster that is in memory, and answers as an API server would that is some way off: for simulations of fleets.
//!
//! It has what a round goes by: uids, versions, generations, conditions of writes, dry runs, metadata with the time of
//! the last write, status that comes later, and our records. Each request takes its time, may fail, and is counted.
//!
//! It has not: defaults, validation, immutable fields, admission, other writers, and so no owners of single fields; the
//! kinds and the namespaces that are asked for are there. Nothing is deleted slowly.

pub mod link;
pub mod objects;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::patch::{PatchType, patch};
use gatewright_engine::text::digest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::cluster::{
    Cluster, ClusterError, KindScope, Kinds, MetadataList, Mode, Precondition, Range, Reason, Record, Search,
};
use link::{Fault, Latency, Link, Traffic, Verb};
use objects::{Bodies, Objects, Refusal, Stored};

/// The most objects in an answer to a list, as on a real server.
const PAGE: usize = 500;

/// The version of Kubernetes that it says it is.
const VERSION: &str = "v1.36.0";

/// The properties that all clusters of a simulation share.
pub struct World {
    /// The number from which all chances are drawn.
    pub seed: u64,
    /// The time of a request.
    pub latency: Latency,
    /// The time that controllers take until what was written is so.
    pub ready: Latency,
    /// The share of tries that are answered 503.
    pub errors: f64,
    /// The bodies of all objects.
    pub bodies: Arc<Bodies>,
}

/// A simulated API server.
pub struct SimulatedCluster {
    identity: String,
    link: Link,
    ready: Latency,
    kinds: kinds::Table,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    objects: Objects,
    records: BTreeMap<String, Record>,
    /// The time by which controllers will have brought about what was written.
    pending: BTreeSet<(Instant, ObjectId)>,
    /// Whether it was asked what kinds there are.
    is_discovered: bool,
}

/// The words for a failed condition.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("the object has been changed, or was made or deleted meanwhile")]
    Conflict,
    #[error("the patch does not fit the object")]
    Invalid,
}

impl SimulatedCluster {
    /// Makes an empty cluster. `limit` is how long a request may take.
    pub fn new(
        name: &str,
        (world, fault, limit): (&World, Fault, Duration),
        kinds: &kinds::Table,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let name = digest(format!("{} {name}", world.seed).as_bytes());
        let (identity, seed) = (name[..16].to_owned(), u64::from_str_radix(&name[16..32], 16).unwrap_or(world.seed));
        let objects = Objects::new(&identity, Arc::clone(&world.bodies));
        let (records, pending) = (BTreeMap::new(), BTreeSet::new());
        Self {
            identity,
            link: Link::new(fault, world.latency, world.errors, limit, seed),
            ready: world.ready,
            kinds: kinds.clone(),
            clock: Arc::clone(clock),
            state: Mutex::new(State { objects, records, pending, is_discovered: false }),
        }
    }

    /// Returns its fault.
    pub fn fault(&self) -> Fault {
        self.link.fault
    }

    /// Returns the traffic since the last call.
    pub fn take_traffic(&self) -> Traffic {
        self.link.take_traffic()
    }

    /// Returns the number of its objects.
    pub fn count(&self) -> usize {
        lock(&self.state).objects.len()
    }

    /// Sends a request, and has the server do its work when it arrives.
    async fn ask<T>(&self, verb: Verb, action: &str, work: impl FnOnce(&mut State) -> T) -> Result<T, ClusterError> {
        self.link.send(verb, action).await?;
        let mut state = lock(&self.state);
        state.settle();
        Ok(work(&mut state))
    }

    /// Asks for objects page by page.
    async fn pages<T>(
        &self,
        verb: Verb,
        kind: &Gvk,
        of: impl Fn(&Objects, &Stored) -> Option<T>,
    ) -> Result<(Vec<T>, u64), ClusterError> {
        let action = format!("list {}", kind.kind);
        let found = self.ask(verb, &action, |state| {
            let found = state.objects.of_kind(kind).filter_map(|stored| of(&state.objects, stored)).collect::<Vec<_>>();
            (found, state.objects.version)
        });
        let found = found.await?;
        for _ in 1..found.0.len().div_ceil(PAGE) {
            self.link.send(verb, &action).await?;
        }
        Ok(found)
    }

    async fn write(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let (now, id) = (self.clock.now(), object.id());
        let verb = if mode == Mode::DryRun { Verb::DryRun } else { Verb::Patch };
        let written = self.ask(verb, "apply an object", |state| match mode {
            Mode::DryRun => state.objects.tried(object, only_if, now),
            Mode::Real => {
                let (live, is_new) = state.objects.write(object, only_if, now)?;
                if is_new && status::has_controller(id) {
                    state.pending.insert((Instant::now() + self.link.draw(self.ready), id.clone()));
                }
                Ok(live)
            }
        });
        written.await?.map_err(|refusal| refused(&format!("apply {id}"), refusal))
    }
}

impl State {
    /// Has controllers report what they have brought about by now.
    fn settle(&mut self) {
        let now = Instant::now();
        while let Some((_, id)) = self.pending.first().filter(|(due, _)| *due <= now).cloned() {
            self.pending.pop_first();
            let version = self.objects.next();
            if let Some(stored) = self.objects.get_mut(&id) {
                stored.becomes_ready(version);
            }
        }
    }
}

fn refused(action: &str, refusal: Refusal) -> ClusterError {
    let Refusal::Conflict = refusal;
    failed(action, Reason::Conflict, Cause::Conflict)
}

fn failed(action: &str, reason: Reason, cause: Cause) -> ClusterError {
    ClusterError { action: action.to_owned(), reason, hint: None, source: Box::new(cause) }
}

fn unchanged(uid: &str, resource_version: &str) -> Precondition {
    Precondition::Unchanged { uid: uid.to_owned(), resource_version: resource_version.to_owned() }
}

#[async_trait]
impl Cluster for SimulatedCluster {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.ask(Verb::Get, "read the identity of the cluster", |_| self.identity.clone()).await
    }

    /// Two requests tell all kinds; after that nobody asks any more.
    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        let is_known = std::mem::replace(&mut lock(&self.state).is_discovered, true);
        for _ in 0..if is_known || kinds.is_empty() { 0 } else { 2 } {
            self.ask(Verb::Get, "find out which kinds the cluster has", |_| ()).await.inspect_err(|_| {
                lock(&self.state).is_discovered = false;
            })?;
        }
        let served = kinds.iter().map(|kind| (kind.clone(), KindScope::guessed(kind, &self.kinds))).collect();
        Ok(Kinds { served, ..Kinds::default() })
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        let labeled = |objects: &Objects, stored: &Stored| {
            (stored.object().label(label.0) == Some(label.1)).then(|| objects.live(stored))
        };
        self.pages(Verb::List, kind, labeled).await.map(|(found, _)| found)
    }

    async fn list_metadata(&self, kind: &Gvk, range: Range<'_>) -> Result<Option<MetadataList>, ClusterError> {
        let date = Some(self.clock.now());
        let wanted = |objects: &Objects, stored: &Stored| {
            let object = stored.object();
            let is_in = range.namespace.is_none_or(|namespace| object.id().namespace == namespace);
            let is_labeled = range.label.is_none_or(|(key, value)| object.label(key) == Some(value));
            (is_in && is_labeled).then(|| objects.metadata(stored))
        };
        let (objects, version) = self.pages(Verb::ListMetadata, kind, wanted).await?;
        Ok(Some(MetadataList { objects, version, date }))
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        let labeled = |objects: &Objects, stored: &Stored| stored.object().label(label).map(|_| objects.live(stored));
        self.pages(Verb::List, kind, labeled).await.map(|(found, _)| found)
    }

    /// There are no pods and no events.
    async fn search(&self, _kind: &Gvk, _search: Search<'_>) -> Result<Vec<Live>, ClusterError> {
        self.ask(Verb::List, "look for the cause", |_| Vec::new()).await
    }

    async fn get(&self, _kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        let live = |state: &mut State| match state.objects.get(id) {
            Some(stored) => Some(state.objects.live(stored)),
            // Every namespace is there.
            None if id.is_a("", "Namespace") => Live::new(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": id.name, "uid": format!("{}-{}", self.identity, id.name), "resourceVersion": "2"},
            }))
            .ok(),
            None => None,
        };
        self.ask(Verb::Get, &format!("read {id}"), live).await
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        let namespace = container.id().name.as_str();
        let within = |state: &mut State| {
            state.objects.within(namespace).map(|stored| state.objects.live(stored)).collect::<Vec<_>>()
        };
        self.ask(Verb::ListMetadata, &format!("look into {}", container.id()), within).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        self.write(object, only_if, mode).await
    }

    async fn patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, ClusterError> {
        let before = lock(&self.state).objects.get(id).map(|stored| stored.object().body().clone());
        let action = || format!("patch {id}");
        let Some(before) = before else { return Err(refused(&action(), Refusal::Conflict)) };
        let after = patch(&before, PatchType::Json, &operations.into(), kind).ok().and_then(|it| Object::new(it).ok());
        let Some(after) = after else { return Err(failed(&action(), Reason::Invalid, Cause::Invalid)) };
        self.write(&after, &unchanged(uid, resource_version), mode).await
    }

    async fn delete(&self, _kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        let (action, only_if) = (format!("delete {id}"), unchanged(uid, resource_version));
        let deleted = self.ask(Verb::Delete, &action, |state| state.objects.delete(id, &only_if)).await?;
        deleted.map_err(|refusal| refused(&action, refusal))
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        self.ask(Verb::Get, "read a record", |state| state.records.get(name).cloned()).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.ask(Verb::ListMetadata, "list our records", |state| state.records.keys().cloned().collect()).await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        // The namespace for the first record is made when the server has missed it.
        if lock(&self.state).records.is_empty() {
            self.link.send(Verb::Write, "write a record").await?;
            self.link.send(Verb::Write, "make the namespace of our records").await?;
        }
        let written = self.ask(Verb::Write, "write a record", |state| {
            if state.records.get(name).map(|record| record.version.as_str()) != over {
                return Err(Refusal::Conflict);
            }
            let version = state.objects.next().to_string();
            state.records.insert(name.to_owned(), Record { data: data.clone(), version: version.clone() });
            Ok(version)
        });
        written.await?.map_err(|refusal| refused("write a record", refusal))
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        let deleted = self.ask(Verb::Delete, "delete a record", |state| {
            if state.records.get(name).is_some_and(|record| over.is_some_and(|over| record.version != over)) {
                return Err(Refusal::Conflict);
            }
            state.records.remove(name);
            Ok(())
        });
        deleted.await?.map_err(|refusal| refused("delete a record", refusal))
    }

    async fn probe(&self) -> Result<(), ClusterError> {
        self.link.probe().await
    }

    async fn version(&self) -> Result<Option<String>, ClusterError> {
        self.ask(Verb::Get, "read the version of the cluster", |_| Some(VERSION.to_owned())).await
    }

    fn has_health(&self) -> bool {
        true
    }

    fn carries_marks(&self) -> bool {
        true
    }
}
