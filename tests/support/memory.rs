//! The engine's cluster in memory as the daemon talks to one, for tests of whole rounds.
//!
//! It counts requests, keeps records, and fails when it is told to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gatewright::cluster::{Cluster, ClusterError, KindScope, Kinds, Mode, Precondition, Reason, Record};
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::memory;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::patch::{PatchType, patch};
use gatewright_engine::plan::Over;
use gatewright_engine::spec::GATEWAY_API;
use serde_json::{Value, json};

/// A request, as it is counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    /// [`Cluster::identity`].
    Identity,
    /// [`Cluster::kinds`].
    Kinds,
    /// [`Cluster::list`].
    List,
    /// [`Cluster::get`].
    Get,
    /// [`Cluster::apply`] with [`Mode::DryRun`].
    DryRun,
    /// [`Cluster::apply`] with [`Mode::Real`].
    Apply,
    /// [`Cluster::patch`] with [`Mode::Real`]; a dry run is a [`Verb::DryRun`].
    Patch,
    /// [`Cluster::delete`].
    Delete,
    /// [`Cluster::read_record`].
    ReadRecord,
    /// [`Cluster::write_record`].
    WriteRecord,
    /// [`Cluster::delete_record`].
    DeleteRecord,
}

/// A cluster in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryCluster {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    identity: String,
    cluster: memory::Cluster,
    records: BTreeMap<String, Record>,
    missing: BTreeSet<Gvk>,
    requests: BTreeMap<Verb, usize>,
    failures: VecDeque<Failure>,
    record_version: u64,
    accepts_gateways: bool,
}

#[derive(Debug)]
struct Failure {
    verb: Verb,
    id: Option<ObjectId>,
    reason: Reason,
    /// Whether the request has been carried out all the same, and only its answer is lost.
    done: bool,
}

/// The error behind every [`ClusterError`] of a cluster in memory.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(&'static str);

impl MemoryCluster {
    /// Makes an empty cluster with this identity.
    pub(crate) fn new(identity: &str) -> Self {
        let cluster = memory::Cluster::new(identity);
        let state = State { identity: identity.to_owned(), cluster, ..State::default() };
        Self { state: Mutex::new(state) }
    }

    /// Has a control plane that accepts every Gateway at once.
    pub(crate) fn accept_gateways(&self) {
        self.state().accepts_gateways = true;
    }

    /// Puts an object there as somebody else would, and returns it with its uid and new version.
    pub(crate) fn put(&self, object: Object) -> Live {
        self.state().store(object)
    }

    /// Takes an object away as somebody else would.
    pub(crate) fn remove(&self, id: &ObjectId) -> Option<Live> {
        self.state().cluster.remove(id)
    }

    /// Returns all objects.
    pub(crate) fn objects(&self) -> BTreeMap<ObjectId, Live> {
        self.state().cluster.objects().clone()
    }

    /// Takes a kind away, as if its CRD had never been installed.
    pub(crate) fn forget_kind(&self, kind: Gvk) {
        self.state().missing.insert(kind);
    }

    /// Makes the next request of this verb fail, or, with an `id`, the next one for that object.
    pub(crate) fn fail_next(&self, verb: Verb, id: Option<ObjectId>, reason: Reason) {
        self.state().failures.push_back(Failure { verb, id, reason, done: false });
    }

    /// Has the next such request carried out, and loses the answer: whoever asked cannot know.
    pub(crate) fn lose_next_answer(&self, verb: Verb, id: Option<ObjectId>) {
        self.state().failures.push_back(Failure { verb, id, reason: Reason::Unreachable, done: true });
    }

    /// Returns how often each verb was asked since the last call.
    pub(crate) fn take_requests(&self) -> BTreeMap<Verb, usize> {
        std::mem::take(&mut self.state().requests)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked has left nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request and answers it, or fails as it was told to.
    fn answer<T>(
        &self,
        verb: Verb,
        id: Option<&ObjectId>,
        work: impl FnOnce(&mut State) -> Result<T, (Reason, &'static str)>,
    ) -> Result<T, ClusterError> {
        let mut state = self.state();
        *state.requests.entry(verb).or_default() += 1;
        let error = |(reason, problem)| {
            let on = id.map(|id| format!(" on {id}")).unwrap_or_default();
            ClusterError {
                action: format!("carry out {verb:?}{on}"),
                reason,
                hint: None,
                source: Box::new(Refused(problem)),
            }
        };
        let hit = |failure: &Failure| failure.verb == verb && (failure.id.is_none() || failure.id.as_ref() == id);
        let failure = state.failures.iter().position(hit).and_then(|index| state.failures.remove(index));
        match failure {
            None => work(&mut state).map_err(error),
            Some(failure) => {
                if failure.done {
                    drop(work(&mut state));
                }
                Err(error((failure.reason, "it was told to fail")))
            }
        }
    }
}

impl State {
    fn store(&mut self, object: Object) -> Live {
        let object = self.accepted(object);
        self.cluster.put(object)
    }

    fn stored(&mut self, object: Object) -> Live {
        let object = self.accepted(object);
        self.cluster.stored(object)
    }

    /// Returns an object that was just written as a control plane leaves it.
    fn accepted(&self, object: Object) -> Object {
        if !self.accepts_gateways || !object.id().is_a(GATEWAY_API, "Gateway") {
            return object;
        }
        let mut body = object.clone().into_body();
        body["metadata"]["generation"] = 1.into();
        let condition = json!({"type": "Accepted", "status": "True", "observedGeneration": 1});
        body["status"] = json!({"conditions": [condition]});
        Object::new(body).unwrap_or(object)
    }

    fn check(&self, id: &ObjectId, only_if: &Precondition) -> Result<(), (Reason, &'static str)> {
        let over = match only_if {
            Precondition::Absent => None,
            Precondition::Unchanged { uid, resource_version } => {
                Some(Over { uid: uid.clone(), resource_version: resource_version.clone() })
            }
        };
        if self.cluster.agrees(id, over.as_ref()) {
            Ok(())
        } else {
            Err((Reason::Conflict, "somebody else was there first"))
        }
    }

    fn has(&self, kind: &Gvk) -> Result<(), (Reason, &'static str)> {
        if self.missing.contains(kind) { Err((Reason::NotFound, "the cluster has no such kind")) } else { Ok(()) }
    }
}

#[async_trait]
impl Cluster for MemoryCluster {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.answer(Verb::Identity, None, |state| Ok(state.identity.clone()))
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        self.answer(Verb::Kinds, None, |state| {
            let known = kinds.iter().filter(|kind| !state.missing.contains(kind));
            let served = known.map(|kind| (kind.clone(), KindScope::guessed(kind, &kinds::Table::builtin()))).collect();
            Ok(Kinds { served, ..Kinds::default() })
        })
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        self.answer(Verb::List, None, |state| {
            state.has(kind)?;
            let of_kind = |live: &&Live| live.object.id().group == kind.group && live.object.id().kind == kind.kind;
            let labeled = |live: &&Live| live.object.label(label.0) == Some(label.1);
            Ok(state.cluster.objects().values().filter(of_kind).filter(labeled).cloned().collect())
        })
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        self.answer(Verb::List, None, |state| {
            state.has(kind)?;
            let of_kind = |live: &&Live| live.object.id().group == kind.group && live.object.id().kind == kind.kind;
            let labeled = |live: &&Live| live.object.label(label).is_some();
            Ok(state.cluster.objects().values().filter(of_kind).filter(labeled).cloned().collect())
        })
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.answer(Verb::Get, Some(id), |state| {
            state.has(kind)?;
            Ok(state.cluster.objects().get(id).cloned())
        })
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        let (namespace, kind) = (container.id().name.clone(), container.body().pointer("/spec/names/kind").cloned());
        self.answer(Verb::List, Some(container.id()), |state| {
            let is_in = |live: &&Live| match container.id().kind.as_str() {
                "Namespace" => live.object.id().namespace == namespace,
                _ => kind.as_ref().is_some_and(|kind| *kind == live.object.id().kind.as_str()),
            };
            Ok(state.cluster.objects().values().filter(is_in).cloned().collect())
        })
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let (id, verb) = match mode {
            Mode::DryRun => (object.id(), Verb::DryRun),
            Mode::Real => (object.id(), Verb::Apply),
        };
        self.answer(verb, Some(id), |state| {
            state.has(&object.gvk())?;
            state.check(id, only_if)?;
            Ok(match mode {
                Mode::DryRun => state.stored(object.clone()),
                Mode::Real => state.store(object.clone()),
            })
        })
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
        let verb = if mode == Mode::DryRun { Verb::DryRun } else { Verb::Patch };
        let only_if = Precondition::Unchanged { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        self.answer(verb, Some(id), |state| {
            state.has(kind)?;
            state.check(id, &only_if)?;
            let live = state.cluster.objects().get(id);
            let body = live.and_then(|live| patch(live.object.body(), PatchType::Json, &operations.into(), kind).ok());
            let object = body.and_then(|body| Object::new(body).ok()).ok_or((Reason::Invalid, "no such patch"))?;
            Ok(if mode == Mode::DryRun { state.stored(object) } else { state.store(object) })
        })
    }

    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        let only_if = Precondition::Unchanged { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        self.answer(Verb::Delete, Some(id), |state| {
            state.has(kind)?;
            if state.cluster.objects().contains_key(id) {
                state.check(id, &only_if)?;
                state.cluster.remove(id);
            }
            Ok(())
        })
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        self.answer(Verb::ReadRecord, None, |state| Ok(state.records.get(name).cloned()))
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.answer(Verb::ReadRecord, None, |state| Ok(state.records.keys().cloned().collect()))
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        self.answer(Verb::WriteRecord, None, |state| {
            if state.records.get(name).map(|record| record.version.as_str()) != over {
                return Err((Reason::Conflict, "somebody else has written it"));
            }
            state.record_version += 1;
            let version = state.record_version.to_string();
            state.records.insert(name.to_owned(), Record { data: data.clone(), version: version.clone() });
            Ok(version)
        })
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        self.answer(Verb::DeleteRecord, None, |state| {
            if state.records.get(name).is_some_and(|record| over.is_some_and(|over| record.version != over)) {
                return Err((Reason::Conflict, "somebody else has written it"));
            }
            state.records.remove(name);
            Ok(())
        })
    }

    fn has_health(&self) -> bool {
        false
    }

    fn carries_marks(&self) -> bool {
        true
    }
}

mod tests {
    use super::*;

    fn service(port: u16) -> Object {
        let metadata = json!({"name": "edge", "namespace": "infra", "labels": {"a": "b"}});
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"port": port}});
        Object::new(body).expect("it has all that it needs")
    }

    fn unchanged(live: &Live) -> Precondition {
        Precondition::Unchanged { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
    }

    fn reason<T: std::fmt::Debug>(result: Result<T, ClusterError>) -> Option<Reason> {
        result.err().map(|error| error.reason)
    }

    #[tokio::test]
    async fn preconditions_hold_as_on_a_server() {
        let cluster = MemoryCluster::new("c");
        let apply = async |port, only_if, mode| cluster.apply(&service(port), &only_if, mode).await;
        assert!(apply(80, Precondition::Absent, Mode::DryRun).await.is_ok());
        assert!(cluster.objects().is_empty(), "a dry run changes nothing");
        let created = apply(80, Precondition::Absent, Mode::Real).await.expect("nothing is there");
        assert_eq!(reason(apply(80, Precondition::Absent, Mode::Real).await), Some(Reason::Conflict));
        assert_eq!(
            apply(80, unchanged(&created), Mode::Real).await.ok(),
            Some(created.clone()),
            "identical is identical"
        );
        let theirs = cluster.put(service(90));
        assert_eq!(theirs.uid, created.uid);
        assert_eq!(reason(apply(81, unchanged(&created), Mode::Real).await), Some(Reason::Conflict));
        assert!(apply(81, unchanged(&theirs), Mode::Real).await.is_ok());

        let (kind, id) = (service(80).gvk(), service(80).id().clone());
        assert_eq!(
            reason(cluster.delete(&kind, &id, &theirs.uid, &theirs.resource_version).await),
            Some(Reason::Conflict)
        );
        assert!(cluster.remove(&id).is_some());
        assert!(cluster.delete(&kind, &id, "a", "b").await.is_ok(), "gone is gone");
        assert_eq!(cluster.list(&kind, ("a", "b")).await.map(|listed| listed.len()).ok(), Some(0));
    }

    #[tokio::test]
    async fn requests_are_counted_and_fail_when_told_to() {
        let cluster = MemoryCluster::new("c");
        let id = service(80).id().clone();
        cluster.fail_next(Verb::Apply, Some(ObjectId::new("", "Service", "infra", "other")), Reason::Invalid);
        cluster.fail_next(Verb::Apply, Some(id.clone()), Reason::Forbidden);
        cluster.lose_next_answer(Verb::Apply, None);
        let apply = async || cluster.apply(&service(80), &Precondition::Absent, Mode::Real).await;
        assert_eq!(reason(apply().await), Some(Reason::Forbidden));
        assert!(cluster.objects().is_empty());
        assert_eq!(reason(apply().await), Some(Reason::Unreachable));
        assert!(cluster.objects().contains_key(&id), "only the answer was lost");
        assert_eq!(reason(apply().await), Some(Reason::Conflict));
        assert_eq!(cluster.take_requests(), BTreeMap::from([(Verb::Apply, 3)]));
        assert_eq!(cluster.take_requests(), BTreeMap::new());
    }

    #[tokio::test]
    async fn a_kind_that_is_missing_is_no_absent_object() {
        let cluster = MemoryCluster::new("c");
        let kind = service(80).gvk();
        cluster.forget_kind(kind.clone());
        assert_eq!(cluster.kinds(&BTreeSet::from([kind.clone()])).await.ok(), Some(Kinds::default()));
        assert_eq!(reason(cluster.get(&kind, service(80).id()).await), Some(Reason::NotFound));
    }

    #[tokio::test]
    async fn records_are_compared_and_swapped() {
        let cluster = MemoryCluster::new("c");
        let write = async |over: Option<&str>| cluster.write_record("r", &BTreeMap::new(), over).await;
        let first = write(None).await.expect("nobody was here before");
        assert_eq!(reason(write(None).await), Some(Reason::Conflict));
        let second = write(Some(&first)).await.expect("it is the one that was written");
        assert_eq!(reason(write(Some(&first)).await), Some(Reason::Conflict));
        assert_eq!(cluster.read_record("r").await.ok().flatten().map(|record| record.version), Some(second));
        assert_eq!(reason(cluster.delete_record("r", Some(&first)).await), Some(Reason::Conflict));
        assert!(cluster.delete_record("r", None).await.is_ok());
        assert_eq!(cluster.read_record("r").await.ok(), Some(None));
    }
}
