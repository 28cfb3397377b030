//! Objects of which a field cannot be changed: what they would be if they were made anew.

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::recreate::{consent, stand_in};
use gatewright_engine::plan::{Observed, Obstacle};

use super::{Scope, beside, only_local};
use crate::cluster::{Cluster, ClusterError, Mode, Precondition};

/// Rehearses those that may be made anew, under another name: their own is taken while they exist.
pub(super) async fn rehearse(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let candidates: Vec<(ObjectId, Object)> = scope
        .wanted()
        .filter(|object| matches!(observed.rehearsed.get(object.id()), Some(Err(Obstacle::Immutable(_)))))
        .filter(|object| {
            observed.live.get(object.id()).is_some_and(|live| consent(object, live, scope.policies).is_ok())
        })
        .map(|object| (object.id().clone(), stand_in(object)))
        .collect();
    let mut runs = Vec::with_capacity(candidates.len());
    for (id, object) in &candidates {
        let run = cluster.apply(object, &Precondition::Absent, Mode::DryRun);
        runs.push(run.map(move |result| (id, result)).boxed());
    }
    for (id, result) in beside(runs).await {
        let result = match result {
            Ok(live) => Ok(live),
            Err(error) => Err(match error.immutable() {
                Some(_) => Chain(&error).to_string(),
                None => only_local(error)?,
            }),
        };
        if let Some(Err(Obstacle::Immutable(immutable))) = observed.rehearsed.get_mut(id) {
            immutable.instead = Some(result);
        }
    }
    Ok(())
}
