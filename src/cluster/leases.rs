//! Leases of a management cluster, by which hosts agree who looks after what (`coordination.k8s.io/v1`).
//!
//! As with every record of ours, a write names the version that it is about, so that of two writers one loses and knows
//! it. Nothing here says when a Lease has run out: that is for whoever watches it, by a clock of its own.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::cluster::ClusterError;

/// A Lease, as far as we use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The name, in the namespace of our records.
    pub name: String,
    /// The labels; ours are not the only ones that may be there.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The identity of the holder; empty: nobody.
    pub holder: String,
    /// The time at which it was taken.
    pub acquired: Option<Timestamp>,
    /// The time of its last renewal, by the clock of the holder: only that it changes is worth anything to others.
    pub renewed: Option<Timestamp>,
    /// For how long it counts after that, in seconds.
    pub seconds: i32,
    /// The number of times that it has changed hands.
    pub transitions: i32,
    /// The version that a later write must quote; empty: it was never written.
    pub version: String,
}

/// A place for Leases.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Lists the Leases with a label, and returns the time by the clock of the server, if it says that.
    async fn list(&self, label: (&str, &str)) -> Result<(Vec<Lease>, Option<Timestamp>), ClusterError>;

    /// Writes a Lease, if its version is still the one that it bears, or as a new one; returns it with its new version. It is
    /// a conflict if somebody else was there first.
    async fn write(&self, lease: &Lease) -> Result<Lease, ClusterError>;

    /// Deletes a Lease, if its version is still the one that it bears. One that is gone is no error.
    async fn delete(&self, lease: &Lease) -> Result<(), ClusterError>;

    /// Reads values that are for nobody's eyes; `None` if there are none of this name.
    async fn read_secret(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, ClusterError>;

    /// Writes such values, if there are none of this name yet; else it is a conflict.
    async fn create_secret(&self, name: &str, values: &BTreeMap<String, String>) -> Result<(), ClusterError>;
}
