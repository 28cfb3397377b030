//! A cluster on which one sync changes something only as long as this host looks after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::Value;

use super::fence::Fence;
use crate::cluster::permit;
use crate::cluster::right::Right;
use crate::cluster::{Cluster, ClusterError, Event, Kinds, MetadataList, Mode, Precondition, Range, Record, Search};

/// A cluster behind the fence of a sync: what only looks goes through, what changes something asks first.
pub(crate) struct Fenced {
    inner: Arc<dyn Cluster>,
    fence: Fence,
}

impl Fenced {
    /// Puts a cluster behind a fence.
    pub(crate) fn behind(inner: Arc<dyn Cluster>, fence: Fence) -> Arc<dyn Cluster> {
        Arc::new(Self { inner, fence })
    }

    /// Makes a change, if this host may, and each try of it only as long as it may. A dry run changes nothing.
    async fn change<T>(
        &self,
        mode: Mode,
        action: impl FnOnce() -> String,
        change: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        match mode {
            Mode::DryRun => change.await,
            Mode::Real => {
                self.fence.pass(&action()).await?;
                permit::under(self.fence.permit(), change).await
            }
        }
    }
}

#[async_trait]
impl Cluster for Fenced {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.inner.identity().await
    }

    async fn expect(&self, identity: &str) -> Result<(), ClusterError> {
        self.inner.expect(identity).await
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        self.inner.kinds(kinds).await
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        self.inner.list(kind, label).await
    }

    async fn list_metadata(&self, kind: &Gvk, range: Range<'_>) -> Result<Option<MetadataList>, ClusterError> {
        self.inner.list_metadata(kind, range).await
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        self.inner.list_bearing(kind, label).await
    }

    async fn search(&self, kind: &Gvk, search: Search<'_>) -> Result<Vec<Live>, ClusterError> {
        self.inner.search(kind, search).await
    }

    async fn list_within(&self, kind: &Gvk, namespace: &str) -> Result<Vec<Live>, ClusterError> {
        self.inner.list_within(kind, namespace).await
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.inner.get(kind, id).await
    }

    async fn exists(&self, kind: &Gvk, id: &ObjectId) -> Result<bool, ClusterError> {
        self.inner.exists(kind, id).await
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        self.inner.contents(container).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let change = self.inner.apply(object, only_if, mode);
        self.change(mode, || format!("apply {}", object.id()), change).await
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
        let change = self.inner.patch(kind, id, uid, resource_version, operations, mode);
        self.change(mode, || format!("patch {id}"), change).await
    }

    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        let change = self.inner.delete(kind, id, uid, resource_version);
        self.change(Mode::Real, || format!("delete {id}"), change).await
    }

    async fn record_event(&self, event: &Event) -> Result<(), ClusterError> {
        let change = self.inner.record_event(event);
        self.change(Mode::Real, || format!("record an Event about {}", event.regarding.1), change).await
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        self.inner.read_record(name).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.inner.record_names().await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        let change = self.inner.write_record(name, data, over);
        self.change(Mode::Real, || format!("write the record {name:?}"), change).await
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        let change = self.inner.delete_record(name, over);
        self.change(Mode::Real, || format!("delete the record {name:?}"), change).await
    }

    async fn may_apply(&self, kinds: &BTreeSet<Gvk>, namespace: Option<&str>) -> Result<BTreeSet<Gvk>, ClusterError> {
        self.inner.may_apply(kinds, namespace).await
    }

    async fn lacking(&self, rights: &BTreeSet<Right>) -> Result<BTreeSet<Right>, ClusterError> {
        self.inner.lacking(rights).await
    }

    async fn probe(&self) -> Result<(), ClusterError> {
        self.inner.probe().await
    }

    async fn version(&self) -> Result<Option<String>, ClusterError> {
        self.inner.version().await
    }

    async fn openapi(&self, api_version: &str) -> Result<Option<Value>, ClusterError> {
        self.inner.openapi(api_version).await
    }

    fn has_health(&self) -> bool {
        self.inner.has_health()
    }

    fn carries_marks(&self) -> bool {
        self.inner.carries_marks()
    }
}
