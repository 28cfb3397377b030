//! Objects of which a field cannot be changed: what they would be if they were replaced.

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::recreate::{consent, stand_in};
use gatewright_engine::plan::{Observed, Obstacle};

use super::{Scope, join_limited, only_local};
use crate::cluster::{Cluster, ClusterError, Mode, Precondition};

/// Dry-runs those that may be replaced, under another name: their own is taken while they exist.
pub(super) async fn dry_run(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    let candidates: Vec<(ObjectId, Object)> = scope
        .wanted()
        .filter(|object| matches!(observed.dry_runs.get(object.id()), Some(Err(Obstacle::Immutable(_)))))
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
    for (id, result) in join_limited(runs).await {
        let result = match result {
            Ok(live) => Ok(live),
            Err(error) => Err(match error.immutable() {
                Some(_) => Chain(&error).to_string(),
                None => only_local(error)?,
            }),
        };
        if let Some(Err(Obstacle::Immutable(immutable))) = observed.dry_runs.get_mut(id) {
            immutable.instead = Some(result);
        }
    }
    Ok(())
}
