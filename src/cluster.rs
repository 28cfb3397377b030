//! A target: a Kubernetes API server, or a directory that receives rendered manifests.
//!
//! Everything above sees the [`Cluster`] trait, so that inventory, diff, plan, guards, prune and report are one code
//! for both. The trait speaks of single requests: what to ask and what to change is decided elsewhere.

pub mod account;
pub(crate) mod budget;
pub mod directory;
pub mod exec;
pub mod kube;
pub mod kubeconfig;
pub mod leases;
pub(crate) mod permit;
pub mod right;
pub mod secrets;
pub mod simulated;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::sync::Arc;

use async_trait::async_trait;
use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cluster::account::Account;
use crate::cluster::right::Right;

/// The condition that must be true on the cluster for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No object of that name exists.
    Absent,
    /// The object is this one, and nobody has changed it since it was read.
    Unchanged {
        /// Its uid.
        uid: String,
        /// Its resource version.
        resource_version: String,
    },
}

/// Whether a write is carried out or only a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The server answers as if it had been done, and does nothing.
    DryRun,
    /// It is done.
    Real,
}

/// The way in which an object of a kind is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KindScope {
    /// In a namespace.
    Namespaced,
    /// By name alone.
    Cluster,
}

impl KindScope {
    /// Says where objects of a kind belong when there is no server to ask.
    pub fn guessed(kind: &Gvk, kinds: &kinds::Table) -> Self {
        if kinds.is_cluster_scoped(kind) { Self::Cluster } else { Self::Namespaced }
    }
}

/// The answer of a cluster about some kinds; it does not have one that is in neither part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Those that can be asked for.
    pub served: BTreeMap<Gvk, KindScope>,
    /// Those of a part of the API that is out of order: nobody knows whether they exist.
    pub unanswered: BTreeSet<Gvk>,
}

/// A small text record that gatewright keeps on a cluster for itself: a ConfigMap in [`SYSTEM_NAMESPACE`], or a file
/// below `.gatewright/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The content of the record.
    pub data: BTreeMap<String, String>,
    /// The version that a later write must quote, so that two writers notice each other.
    pub version: String,
}

/// The objects of a kind that a look is about; without any limit all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// Only those with this label.
    pub label: Option<(&'a str, &'a str)>,
    /// Only those in this namespace.
    pub namespace: Option<&'a str>,
}

/// The objects of a namespace that a question is about.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The namespace of the objects.
    pub namespace: &'a str,
    /// The labels that they have, such as `app=edge,tier=web`; empty: any.
    pub labels: &'a str,
    /// The fields that they have, such as `involvedObject.uid=…,type=Warning`; empty: any.
    pub fields: &'a str,
}

/// The metadata of the objects of a kind, as they were listed.
#[derive(Clone, Debug, Default)]
pub struct MetadataList {
    /// The objects, in no order.
    pub objects: Vec<Metadata>,
    /// The state of the cluster that was seen: grows with every write, unless the cluster was set back to an older state.
    pub version: u64,
    /// The time by the cluster's own clock; what it writes into metadata is by the same clock. `None` if it did not
    /// say.
    pub date: Option<Timestamp>,
}

/// An Event on an API server: word of something that has happened to an object, for people who look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether something is wrong.
    pub event_type: EventType,
    /// The reason in one word, such as `Updated`.
    pub reason: &'static str,
    /// The action, such as `update`.
    pub action: &'static str,
    /// The message; it is cut where Kubernetes takes no more.
    pub note: String,
    /// The object.
    pub regarding: (Gvk, ObjectId),
    /// Its uid; empty if it does not exist.
    pub uid: String,
    /// The round. What a round says of an object a second time is the same Event.
    pub run: String,
    /// When it happened.
    pub time: Timestamp,
}

/// The type of an Event, as Kubernetes knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something is wrong.
    Warning,
}

/// The namespace of Events about what is in none; the API takes no other but `kube-system`.
pub(crate) const NO_NAMESPACE: &str = "default";

/// The namespace of our own records on an API server.
pub const SYSTEM_NAMESPACE: &str = "gatewright-system";

/// The prefix of the names of our records.
pub const RECORD_PREFIX: &str = "gatewright.";

/// A target of rounds.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Returns what identifies the cluster for as long as it lives: the uid of `kube-system`, or the random id of a
    /// directory. Empty: not known yet, because nothing was ever written to the directory.
    async fn identity(&self) -> Result<String, ClusterError>;

    /// Prepares for requests of a round that recognizes the cluster by its objects, and so may not ask for its identity:
    /// looks whether the way to it has changed, and forgets what was learned of one with another identity.
    async fn expect(&self, _identity: &str) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Finds out which of these kinds the cluster has.
    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError>;

    /// Lists all objects of a kind with this label, in all namespaces.
    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError>;

    /// Looks at the metadata of objects of a kind, which costs a small part of reading them; `None` if this sort of
    /// cluster keeps no record there of who has touched what, so that it must be read.
    async fn list_metadata(&self, _kind: &Gvk, _range: Range<'_>) -> Result<Option<MetadataList>, ClusterError> {
        Ok(None)
    }

    /// Lists all objects of a kind that bear this label, whatever it says.
    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError>;

    /// Reads objects of others that may say why one of ours is not healthy, such as pods and events: a page of them. None,
    /// where nothing comes to life.
    async fn search(&self, _kind: &Gvk, _search: Search<'_>) -> Result<Vec<Live>, ClusterError> {
        Ok(Vec::new())
    }

    /// Lists all objects of a kind in a namespace, whoever has made them. None, where nothing comes to life.
    async fn list_within(&self, _kind: &Gvk, _namespace: &str) -> Result<Vec<Live>, ClusterError> {
        Ok(Vec::new())
    }

    /// Reads one object; `None` if it does not exist.
    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError>;

    /// Tells whether an object exists. Nothing of it is read where that can be avoided, so that a Secret stays where it is.
    async fn exists(&self, kind: &Gvk, id: &ObjectId) -> Result<bool, ClusterError> {
        Ok(self.get(kind, id).await?.is_some())
    }

    /// Lists what goes with a namespace or with the definition of a kind when it is deleted, of every kind; only the
    /// metadata counts. Nothing, where objects do not hold others.
    async fn contents(&self, _container: &Object) -> Result<Vec<Live>, ClusterError> {
        Ok(Vec::new())
    }

    /// Applies an object, server side, and returns what it became. Of one that was made, the metadata are what counts:
    /// defaults that the server adds to the rest may be missing, but never the address of a Service.
    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError>;

    /// Changes an object by a JSON patch (RFC 6902), only if it is still the one that was read, and returns what it
    /// became.
    async fn patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, ClusterError>;

    /// Deletes an object, only if it is still the one that was read. An object that is already gone is no error.
    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError>;

    /// Records an Event. Nothing, where there are none.
    async fn record_event(&self, _event: &Event) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Reads a record of ours.
    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError>;

    /// Lists the names of our records.
    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError>;

    /// Writes a record of ours if its version still is `over` (`None`: if it does not exist), and returns the new
    /// version. The place where records live is made when it is missing.
    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError>;

    /// Deletes a record of ours, if its version still is `over` (`None`: whichever it is); else it is a conflict. One that is
    /// already gone is no error.
    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError>;

    /// Returns those of some kinds of which objects may be applied, or their apply dry-run: everywhere, or in a
    /// namespace. Nothing is tried for it.
    async fn may_apply(&self, kinds: &BTreeSet<Gvk>, _namespace: Option<&str>) -> Result<BTreeSet<Gvk>, ClusterError> {
        Ok(kinds.clone())
    }

    /// Returns those of some rights that the credentials lack. Nothing is tried for it.
    async fn lacking(&self, _rights: &BTreeSet<Right>) -> Result<BTreeSet<Right>, ClusterError> {
        Ok(BTreeSet::new())
    }

    /// Finds out by one small request, which is not repeated, whether anybody answers.
    async fn probe(&self) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Returns the version of Kubernetes, such as `v1.35.0`; `None`, where none runs.
    async fn version(&self) -> Result<Option<String>, ClusterError> {
        Ok(None)
    }

    /// Reads what the cluster says about the kinds of a version (`OpenAPI` 3); `None` if it says nothing.
    async fn openapi(&self, _api_version: &str) -> Result<Option<Value>, ClusterError> {
        Ok(None)
    }

    /// Returns the same cluster, on which objects are read and written as an account; what we keep there for ourselves is
    /// not. `because` is the setting that says so. `None` where there are no accounts.
    fn acting_as(&self, _account: &Account, _because: &str) -> Option<Arc<dyn Cluster>> {
        None
    }

    /// Tells whether objects on it come to life: pods that run, addresses that are given out.
    fn has_health(&self) -> bool;

    /// Tells whether the objects carry our marks. Where they do not, the inventory alone says what is ours.
    fn carries_marks(&self) -> bool;
}

/// The reason why a cluster did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct ClusterError {
    /// The action that was attempted, and its object: `apply Service infra/edge`.
    pub action: String,
    /// The kind of failure.
    pub reason: Reason,
    /// Advice on what to do next, a sentence of its own.
    pub hint: Option<String>,
    /// The cause, with the server's own words where there are any; never with a secret in it.
    #[source]
    pub source: Box<dyn StdError + Send + Sync>,
}

/// The source of a [`ClusterError`] where an API server has said nothing else of an update than that some fields of what
/// the object is cannot be changed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ImmutableFields {
    /// The fields, such as `spec.selector`.
    pub fields: Vec<String>,
    /// The words of the server.
    pub message: String,
}

/// Kinds of failure that a caller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody answered, or not in time, or what answered is no API server.
    Unreachable,
    /// The configuration of the cluster cannot be used: kubeconfig, context, credential plugin.
    Misconfigured,
    /// 401: the credentials were refused.
    Unauthorized,
    /// 403: the credentials do not allow this.
    Forbidden,
    /// 404: the object, its namespace or its kind does not exist.
    NotFound,
    /// 409 or a failed precondition: somebody else was there first.
    Conflict,
    /// 422 or 400: the object is not valid.
    Invalid,
    /// 429, 500, 503, 504 after all retries.
    Overloaded,
    /// Anything else.
    Other,
}

impl ClusterError {
    /// Returns the fields that cannot be changed, if that is all that is wrong.
    pub fn immutable(&self) -> Option<&ImmutableFields> {
        self.source.downcast_ref()
    }

    /// Tells whether the cluster as a whole cannot be talked to.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.reason, Reason::Unreachable)
    }
}
