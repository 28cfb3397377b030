//! A cluster that is a Kubernetes API server.
//!
//! Requests are single and conditional; what to ask and what to change is decided elsewhere. There are no watches and
//! no caches but one: which kinds the server has. Nothing is connected before the first request, so that a cluster
//! that cannot be reached, or whose credential plugin hangs, delays nobody but those who ask it.

mod contents;
mod discovery;
#[cfg(test)]
mod endless;
mod events;
mod failure;
#[cfg(test)]
mod faults;
mod leases;
mod lists;
mod objects;
mod records;
mod resource;
mod review;
mod secrets;
mod session;
mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use kube::api::GetParams;
use kube::core::Request as Address;
use serde_json::Value;

use crate::basics::clock::Clock;
use crate::cluster::account::{Account, Acting};
use crate::cluster::budget::Budget;
use crate::cluster::kubeconfig::{Settings, StandardLookup};
use crate::cluster::right::Right;
use crate::cluster::{Cluster, ClusterError, Event, Kinds, MetadataList, Mode, Precondition, Range, Record, Search};
use discovery::Discovery;
use failure::Failure;
use resource::Attempt;
use session::Sessions;
use transport::Transport;

/// An API server as a target of rounds.
pub struct KubeCluster {
    /// Requests about objects: as the account of a sync, where it has one.
    transport: Transport,
    /// Requests for ourselves: which cluster it is, what it serves, our records and what bears our label.
    own: Transport,
    discovery: Arc<Discovery>,
    /// An object that was written by a dry run.
    dry_run_ignored: Arc<OnceLock<String>>,
    /// The account of objects.
    account: Option<Account>,
}

impl KubeCluster {
    /// Prepares a cluster. Reads no file and connects to nothing: that happens at the first request.
    ///
    /// `name` is what the configuration calls it. `settings.path` is resolved; without one, `standard` is read.
    pub fn new(name: &str, settings: Settings, standard: StandardLookup, clock: Arc<dyn Clock>) -> Self {
        let limit = settings.timeout.0.max(Duration::from_secs(1));
        let budget = Budget::new(settings.max_bytes, settings.setting(name, "maxBytes"));
        let transport = Transport::new(Sessions::new(name, settings, standard, limit, clock), limit, budget);
        let own = transport.clone();
        Self { transport, own, discovery: Arc::default(), dry_run_ignored: Arc::default(), account: None }
    }

    /// Keeps what the server has in a file, so that the next process need not ask.
    #[must_use]
    pub fn with_cache(self, file: PathBuf) -> Self {
        Self { discovery: Arc::new(Discovery::kept_in(Some(file))), ..self }
    }

    /// Lists all objects of a kind, whoever has made them, in a namespace or in all.
    pub async fn list_all(&self, kind: &Gvk, namespace: Option<&str>) -> Result<Vec<Live>, ClusterError> {
        self.told(kind, &Attempt::on_all(kind, "list"), self.try_list_all(kind, namespace).await)
    }

    /// Says what came of a request about a kind to the caller.
    fn told<T>(&self, kind: &Gvk, attempt: &Attempt, result: Result<T, Failure>) -> Result<T, ClusterError> {
        result.map_err(|failure| self.without_kind(kind, failure).into_error(attempt))
    }

    /// Returns what lists the objects with a label. Those with our own are ours alone, whoever may list others.
    fn reader(&self, label: Option<&str>) -> &Transport {
        if label == Some(SYNC_LABEL) { &self.own } else { &self.transport }
    }

    async fn try_version(&self) -> Result<String, Failure> {
        let version = self.own.ask_afresh(http::Request::get("/version").body(Vec::new())?).await?;
        match version["gitVersion"].as_str().filter(|version| !version.is_empty()) {
            Some(version) => Ok(version.to_owned()),
            None => Err(Failure::NotKubernetes { what: "it does not say its version".to_owned(), code: None }),
        }
    }

    async fn uid_of_system(&self) -> Result<String, Failure> {
        let request = Address::new("/api/v1/namespaces").get("kube-system", &GetParams::default());
        let namespace = self.own.ask_afresh(request?).await?;
        match namespace["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
            Some(uid) => Ok(uid.to_owned()),
            None => Err(Failure::NotKubernetes { what: "its namespace kube-system has no uid".to_owned(), code: None }),
        }
    }
}

#[async_trait]
impl Cluster for KubeCluster {
    /// Also looks whether the kubeconfig has changed, so that a round begins with what it says now.
    async fn identity(&self) -> Result<String, ClusterError> {
        let attempt = Attempt::to("read the identity of the cluster");
        let identity = self.uid_of_system().await.map_err(|failure| failure.into_error(&attempt))?;
        self.discovery.is_of(&identity);
        Ok(identity)
    }

    async fn expect(&self, identity: &str) -> Result<(), ClusterError> {
        let attempt = Attempt::to("prepare requests to the cluster");
        self.own.look_afresh().await.map_err(|failure| failure.into_error(&attempt))?;
        self.discovery.is_of(identity);
        Ok(())
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        let attempt = Attempt::to("find out which kinds the cluster has");
        self.discovery.find_all(&self.own, kinds).await.map_err(|failure| failure.into_error(&attempt))
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        self.told(kind, &Attempt::on_all(kind, "list"), self.try_list(kind, label.0, Some(label.1)).await)
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        self.told(kind, &Attempt::on_all(kind, "list"), self.try_list(kind, label, None).await)
    }

    async fn list_metadata(&self, kind: &Gvk, range: Range<'_>) -> Result<Option<MetadataList>, ClusterError> {
        self.told(kind, &Attempt::on_all(kind, "list"), self.try_list_metadata(kind, range).await).map(Some)
    }

    async fn search(&self, kind: &Gvk, search: Search<'_>) -> Result<Vec<Live>, ClusterError> {
        let attempt = Attempt::on_all(kind, "list");
        self.try_search(kind, search).await.map_err(|failure| failure.into_error(&attempt))
    }

    async fn list_within(&self, kind: &Gvk, namespace: &str) -> Result<Vec<Live>, ClusterError> {
        self.list_all(kind, Some(namespace)).await
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.told(kind, &Attempt::on(id, "read"), self.try_get(kind, id).await)
    }

    async fn exists(&self, kind: &Gvk, id: &ObjectId) -> Result<bool, ClusterError> {
        self.told(kind, &Attempt::on(id, "look for"), self.try_exists(kind, id).await)
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        let attempt = Attempt::on(container.id(), "look into");
        contents::list(&self.transport, container).await.map_err(|failure| failure.into_error(&attempt))
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let (kind, applied) = (object.gvk(), self.try_apply(object, only_if, mode).await);
        let attempt = || Attempt::in_mode(object.id(), "apply", mode).sending(object.body());
        applied.map_err(|failure| self.without_kind(&kind, failure).into_error(&attempt()))
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
        let patched = self.try_patch(kind, id, (uid, resource_version), operations, mode).await;
        let attempt = || Attempt::in_mode(id, "patch", mode).sending(&operations.iter().cloned().collect());
        patched.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt()))
    }

    /// Deletes the object alone, and leaves what hangs on it to the garbage collector.
    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        let deleted = self.try_delete(kind, id, uid, resource_version).await;
        self.told(kind, &Attempt::on(id, "delete"), deleted)
    }

    async fn record_event(&self, event: &Event) -> Result<(), ClusterError> {
        events::record(&self.transport, event).await
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        records::read(&self.own, name).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        records::names(&self.own).await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        records::write(&self.own, name, data, over).await
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        records::delete(&self.own, name, over).await
    }

    async fn may_apply(&self, kinds: &BTreeSet<Gvk>, namespace: Option<&str>) -> Result<BTreeSet<Gvk>, ClusterError> {
        let attempt = Attempt::to("find out what the credentials allow");
        let allowed = match namespace {
            None => self.allowed_everywhere(kinds).await,
            Some(namespace) => self.allowed_within(kinds, namespace).await,
        };
        allowed.map_err(|failure| failure.into_error(&attempt))
    }

    async fn lacking(&self, rights: &BTreeSet<Right>) -> Result<BTreeSet<Right>, ClusterError> {
        let attempt = Attempt::to("find out what the credentials allow");
        self.try_lacking(rights).await.map_err(|failure| failure.into_error(&attempt))
    }

    /// Also looks whether the kubeconfig has changed.
    async fn version(&self) -> Result<Option<String>, ClusterError> {
        let attempt = Attempt::to("read the version of the cluster");
        self.try_version().await.map(Some).map_err(|failure| failure.into_error(&attempt))
    }

    /// Whoever refuses us has answered.
    async fn probe(&self) -> Result<(), ClusterError> {
        let attempt = Attempt::to("find out whether the cluster answers");
        match self.own.probe("/version").await {
            Ok(_) | Err(Failure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure.into_error(&attempt)),
        }
    }

    async fn openapi(&self, api_version: &str) -> Result<Option<Value>, ClusterError> {
        let attempt = Attempt::to(format!("read the schemas of {api_version}"));
        self.try_openapi(api_version).await.map_err(|failure| failure.into_error(&attempt))
    }

    fn acting_as(&self, account: &Account, because: &str) -> Option<Arc<dyn Cluster>> {
        // It was checked with the settings.
        let acting = Acting::new(account, because).ok()?;
        let (own, discovery) = (self.own.clone(), Arc::clone(&self.discovery));
        let dry_run_ignored = Arc::clone(&self.dry_run_ignored);
        let (transport, account) = (self.own.acting_as(acting), Some(account.clone()));
        Some(Arc::new(Self { transport, own, discovery, dry_run_ignored, account }))
    }

    fn has_health(&self) -> bool {
        true
    }

    fn carries_marks(&self) -> bool {
        true
    }
}
