//! A cluster as a process sees it that dies at one of its side effects; until then it keeps a log of them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gatewright::cluster::{Cluster, ClusterError, Kinds, MetadataList, Mode, Precondition, Range, Reason, Record};
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::Value;
use tokio::sync::Notify;

/// Something that was done to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    Create(ObjectId),
    Update(ObjectId),
    Patch(ObjectId),
    Delete(ObjectId),
    WriteRecord(String),
    DeleteRecord(String),
}

/// On which side of a side effect the end comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// The way in which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process is killed: nothing that it was doing goes on.
    Killed,
    /// The process lives, and every request fails from then on: nobody knows whether the last one was done.
    CutOff,
}

/// The moment of death.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// At which side effect, from 1.
    pub(crate) at: usize,
    pub(crate) side: Side,
    pub(crate) end: End,
}

/// The wrapper.
pub(crate) struct Mortal {
    inner: Arc<dyn Cluster>,
    death: Option<Death>,
    state: Mutex<State>,
    died: Notify,
    /// The next list meets a bug.
    is_buggy: AtomicBool,
}

#[derive(Default)]
struct State {
    begun: usize,
    is_dead: bool,
    done: Vec<Effect>,
}

#[derive(Debug, thiserror::Error)]
#[error("the process is dead")]
struct Dead;

impl Mortal {
    /// Wraps a cluster; without a death it only keeps the log.
    pub(crate) fn new(inner: &Arc<dyn Cluster>, death: Option<Death>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            death,
            state: Mutex::default(),
            died: Notify::new(),
            is_buggy: AtomicBool::default(),
        })
    }

    /// Has the next list panic.
    pub(crate) fn has_a_bug(&self) {
        self.is_buggy.store(true, Ordering::Relaxed);
    }

    /// Runs a round until it is over or the process is killed; tells whether it came through untouched.
    pub(crate) async fn survives<T>(&self, round: impl Future<Output = T>) -> bool {
        tokio::select! {
            biased;
            () = self.died.notified() => {}
            _ = round => {}
        }
        !self.state().is_dead
    }

    /// Returns what was done, in order.
    pub(crate) fn done(&self) -> Vec<Effect> {
        self.state().done.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer that a dead process gets from a cluster.
    async fn nothing<T>(&self) -> Result<T, ClusterError> {
        if self.death.is_some_and(|death| death.end == End::Killed) {
            self.died.notify_one();
            pending::<()>().await;
        }
        let (action, reason) = ("reach the cluster".to_owned(), Reason::Unreachable);
        Err(ClusterError { action, reason, hint: None, source: Box::new(Dead) })
    }

    async fn ask<T>(&self, request: impl Future<Output = Result<T, ClusterError>>) -> Result<T, ClusterError> {
        if self.state().is_dead { self.nothing().await } else { request.await }
    }

    async fn effect<T>(
        &self,
        effect: Effect,
        request: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let number = {
            let mut state = self.state();
            state.begun += 1;
            state.begun
        };
        if self.ends(number, Side::Before) {
            return self.nothing().await;
        }
        let answer = request.await;
        if answer.is_ok() {
            self.state().done.push(effect);
        }
        if self.ends(number, Side::After) { self.nothing().await } else { answer }
    }

    /// Tells whether the process is dead by now; others may have been at work when it died.
    fn ends(&self, number: usize, side: Side) -> bool {
        let mut state = self.state();
        state.is_dead |= self.death.is_some_and(|death| (death.at, death.side) == (number, side));
        state.is_dead
    }
}

#[async_trait]
impl Cluster for Mortal {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.ask(self.inner.identity()).await
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        self.ask(self.inner.kinds(kinds)).await
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        assert!(!self.is_buggy.swap(false, Ordering::Relaxed), "this is the bug of a test");
        self.ask(self.inner.list(kind, label)).await
    }

    async fn list_metadata(&self, kind: &Gvk, range: Range<'_>) -> Result<Option<MetadataList>, ClusterError> {
        self.ask(self.inner.list_metadata(kind, range)).await
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        self.ask(self.inner.list_bearing(kind, label)).await
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.ask(self.inner.get(kind, id)).await
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        self.ask(self.inner.contents(container)).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let request = self.inner.apply(object, only_if, mode);
        let id = object.id().clone();
        match (mode, only_if) {
            (Mode::DryRun, _) => self.ask(request).await,
            (Mode::Real, Precondition::Absent) => self.effect(Effect::Create(id), request).await,
            (Mode::Real, Precondition::Unchanged { .. }) => self.effect(Effect::Update(id), request).await,
        }
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
        let request = self.inner.patch(kind, id, uid, resource_version, operations, mode);
        match mode {
            Mode::DryRun => self.ask(request).await,
            Mode::Real => self.effect(Effect::Patch(id.clone()), request).await,
        }
    }

    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        self.effect(Effect::Delete(id.clone()), self.inner.delete(kind, id, uid, resource_version)).await
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        self.ask(self.inner.read_record(name)).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.ask(self.inner.record_names()).await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        self.effect(Effect::WriteRecord(name.to_owned()), self.inner.write_record(name, data, over)).await
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        self.effect(Effect::DeleteRecord(name.to_owned()), self.inner.delete_record(name, over)).await
    }

    fn has_health(&self) -> bool {
        self.inner.has_health()
    }

    fn carries_marks(&self) -> bool {
        self.inner.carries_marks()
    }
}
