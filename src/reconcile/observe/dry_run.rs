//! Dry runs: what the engine asks, until it asks nothing more.

use std::collections::BTreeMap;

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::object::Gvk;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::questions::{Purpose, Question, Request, questions};
use gatewright_engine::plan::recreate::Immutable;
use gatewright_engine::plan::{Observed, Obstacle, Over};
use gatewright_engine::unit::Unit;

use crate::cluster::{Cluster, ClusterError, Kinds, Mode, Precondition, Reason};
use crate::reconcile::requests::{join_bounded, only_local, read_each};

/// Asks the cluster until nothing is open. A status that was written between the LIST and the dry run is the usual
/// reason why an object has to be read again.
pub async fn ask(
    cluster: &dyn Cluster,
    wanted: &[Unit],
    policies: &Policies,
    purpose: Purpose,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    loop {
        let open = questions(wanted, observed, policies, purpose);
        if open.is_empty() {
            return Ok(());
        }
        let mut stale = BTreeMap::new();
        for (question, answer) in join_bounded(open.into_iter().map(|it| answered(cluster, it).boxed()).collect()).await
        {
            let (id, gvk) = (question.id.clone(), question.gvk.clone());
            let answer = match answer {
                Ok(live) => Ok(live),
                Err(error) => Err(obstacle(error)?),
            };
            if observed.answer(question, answer) {
                stale.insert(id, gvk);
            }
        }
        observed.live.retain(|id, _| !stale.contains_key(id));
        read_each(cluster, &stale, observed).await?;
    }
}

async fn answered(cluster: &dyn Cluster, question: Question) -> (Question, Result<Live, ClusterError>) {
    let answer = match &question.request {
        Request::Apply(object, None) => cluster.apply(object, &Precondition::Absent, Mode::DryRun).await,
        Request::Apply(object, Some(Over { uid, resource_version })) => {
            let (uid, resource_version) = (uid.clone(), resource_version.clone());
            cluster.apply(object, &Precondition::Unchanged { uid, resource_version }, Mode::DryRun).await
        }
        Request::Patch(operations, Over { uid, resource_version }) => {
            let (kind, id) = (&question.gvk, &question.id);
            cluster.patch(kind, id, uid, resource_version, operations, Mode::DryRun).await
        }
    };
    (question, answer)
}

/// Says why objects of a kind cannot even be tried, if they cannot.
pub fn unserved(kinds: &Kinds, gvk: &Gvk) -> Option<Obstacle> {
    match () {
        () if kinds.served.contains_key(gvk) => None,
        () if kinds.unanswered.contains(gvk) => {
            Some(Obstacle::Failed(format!("the part of the API that serves {gvk} does not answer")))
        }
        () => Some(Obstacle::NoSuchKind(gvk.to_string())),
    }
}

fn obstacle(error: ClusterError) -> Result<Obstacle, ClusterError> {
    let reason = error.reason;
    if let Some(immutable) = error.immutable() {
        let (fields, message) = (immutable.fields.clone(), Chain(&error).to_string());
        return Ok(Obstacle::Immutable(Box::new(Immutable { fields, message, instead: None })));
    }
    let text = only_local(error)?;
    Ok(match reason {
        Reason::Invalid => Obstacle::Invalid(text),
        Reason::Forbidden => Obstacle::Forbidden(text),
        Reason::Conflict => Obstacle::Stale(text),
        _ => Obstacle::Failed(text),
    })
}
