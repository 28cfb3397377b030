//! Carrying out deletions, when everything that they depend on is done.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::kinds::is_container;
use gatewright_engine::live::Live;
use gatewright_engine::marks::Owner;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::contents::{foreign, in_words};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Action, Plan, Step};
use tokio_util::sync::CancellationToken;

use super::model::{Applied, Terms, grouped};
use super::replace::reason_to_keep;
use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::requests::join_bounded;
use crate::report::outcome::Outcome;

/// Carries out the deletions but those of `postponed` units, in the order of the plan, units beside each other. What
/// others may need waits until all that comes before it is gone.
///
/// Time has passed since the plan: each object is read again, and deleted only if it still is ours, the same one, and
/// nobody asks for it to be kept.
pub(crate) async fn prune(
    cluster: &dyn Cluster,
    plan: &Plan,
    postponed: &BTreeMap<ObjectId, String>,
    terms: Terms<'_>,
) -> Applied {
    let mut applied = Applied::default();
    let lost = CancellationToken::new();
    let prunes = plan.steps.iter().filter(|step| matches!(step.action, Action::Prune(_)));
    let mut goes_on = true;
    for steps in grouped(prunes, |step| terms.policies.kinds.wave(&step.unit)).into_values().rev() {
        let ids: BTreeSet<&ObjectId> = steps.iter().map(|step| &step.id).collect();
        let (now, later): (Vec<&Step>, Vec<&Step>) =
            steps.iter().copied().partition(|step| goes_on && !postponed.contains_key(&step.unit));
        applied.outcomes.extend(later.into_iter().map(|step| (step.id.clone(), Outcome::Skipped)));
        let units = grouped(now, |step| &step.unit).into_values();
        let runs = units.map(|steps| prune_unit(cluster, steps, terms, &lost).boxed()).collect();
        join_bounded(runs).await.into_iter().for_each(|unit| applied.absorb(unit));
        goes_on &= ids.into_iter().all(|id| applied.outcomes.get(id) == Some(&Outcome::Done));
    }
    applied
}

/// Deletes the objects of a unit. What is left of it keeps all that it needs: after a failure nothing more is deleted.
async fn prune_unit(cluster: &dyn Cluster, steps: Vec<&Step>, terms: Terms<'_>, lost: &CancellationToken) -> Applied {
    let mut applied = Applied::default();
    let mut goes_on = true;
    for step in steps {
        if !goes_on || terms.stop.is_cancelled() || lost.is_cancelled() {
            applied.outcomes.insert(step.id.clone(), Outcome::Skipped);
            continue;
        }
        goes_on = match delete(cluster, step, terms).await {
            Err(error) => applied.record(&step.id, Err(error)),
            Ok(outcome) => {
                let is_done = outcome == Outcome::Done;
                applied.outcomes.insert(step.id.clone(), outcome);
                if is_done && !matches!(cluster.get(&step.gvk, &step.id).await, Ok(None)) {
                    applied.deleting.insert(step.id.clone());
                }
                is_done
            }
        };
        if applied.lost.is_some() {
            lost.cancel();
        }
    }
    applied
}

async fn delete(cluster: &dyn Cluster, step: &Step, terms: Terms<'_>) -> Result<Outcome, ClusterError> {
    let Action::Prune(deletion) = &step.action else { return Ok(Outcome::Skipped) };
    let over = &deletion.over;
    let Some(live) = cluster.get(&step.gvk, &step.id).await? else { return Ok(Outcome::Done) };
    if let Some(why) = reason_to_keep(cluster, &live, over, terms.policies) {
        return Ok(Outcome::Stale(why));
    }
    if is_container(&step.id)
        && let Some(what) = holds_others(cluster, &live, terms.policies).await?
    {
        return Ok(Outcome::Stale(format!("it holds what others have made by now: {what}")));
    }
    terms.keep.live(&live).await?;
    cluster.delete(&step.gvk, &step.id, &live.uid, &live.resource_version).await?;
    terms.keep.after(&step.id, None);
    Ok(Outcome::Done)
}

/// Returns what a namespace holds of others, in words; what was ours in it is gone or going by now.
async fn holds_others(cluster: &dyn Cluster, live: &Live, policies: &Policies) -> Result<Option<String>, ClusterError> {
    let contents = cluster.contents(&live.object).await?;
    let is_ours = |live: &Live| live.is_terminating() && policies.marker.owner(&live.object) == Owner::Us;
    Ok(in_words(&foreign(&contents, is_ours)))
}
