//! Requests beside each other on one cluster, and which of their failures concern all of it.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use gatewright_engine::error::Chain;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::Observed;

use crate::cluster::{Cluster, ClusterError, Reason};

/// Requests under way at once on one cluster; more only adds latency.
pub(crate) const CONCURRENCY: usize = 8;

/// Awaits futures beside each other, at most [`CONCURRENCY`] at once; the results come in no order.
pub(crate) async fn join_bounded<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    join_at_most(futures, CONCURRENCY).await
}

/// The same, with another number at once.
pub(crate) async fn join_at_most<T>(futures: Vec<BoxFuture<'_, T>>, at_once: usize) -> Vec<T> {
    stream::iter(futures).buffer_unordered(at_once).collect().await
}

/// A failure that concerns one kind or object is kept; one that concerns the cluster ends the observation.
pub(crate) fn only_local(error: ClusterError) -> Result<String, ClusterError> {
    match error.reason {
        Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized | Reason::Overloaded => Err(error),
        Reason::Forbidden | Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Other => {
            Ok(Chain(&error).to_string())
        }
    }
}

/// Reads objects one by one: those that are there, and why others could not be read.
pub(crate) async fn read_each(
    cluster: &dyn Cluster,
    objects: &BTreeMap<ObjectId, Gvk>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let gets = objects.iter().map(|(id, gvk)| cluster.get(gvk, id).map(move |live| (id, live)).boxed()).collect();
    for (id, live) in join_bounded(gets).await {
        match live {
            Ok(Some(live)) => drop(observed.live.insert(id.clone(), live)),
            Ok(None) => {}
            Err(error) => drop(observed.unknown.insert(id.clone(), only_local(error)?)),
        }
    }
    Ok(())
}
