//! The Applier: carries out a plan on a cluster and decides nothing.
//!
//! Units go beside each other; within a unit the order of the plan holds, and what follows a failure is not tried.
//! The inventory was written ahead, so that whatever happens in here, nothing that was made is unknown.

mod generate;
pub(crate) mod model;
pub(crate) mod pre_image;
pub(crate) mod prune;
mod replace;

use futures::FutureExt;
use gatewright_engine::health::UNANSWERED;
use gatewright_engine::kinds;
use gatewright_engine::kinds::row::Wave;
use gatewright_engine::live::Live;
use gatewright_engine::marks;
use gatewright_engine::object::Object;
use gatewright_engine::plan::deployer::Awaited;
use gatewright_engine::plan::{Action, Over, Plan, Step};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, ClusterError, Mode, Precondition, Reason};
use crate::reconcile::requests::{CONCURRENCY, join_at_most};
use crate::reconcile::wait::{Acceptance, accepted};
use crate::report::outcome::Outcome;
use model::{Applied, Terms, grouped};
use replace::{Removal, make, put_back, remove};

/// Units at once: some more than there are requests at once, so that there is always one to send while answers are read.
const UNITS: usize = CONCURRENCY + 4;

/// Carries out everything but the deletions: namespaces first, then the units of each wave beside each other, and last
/// what is only marked.
///
/// `terms.stop` ends it after the requests that are under way.
/// `acceptance` is when it is too late for a control plane to accept a Gateway, before what it has made is adopted.
pub(crate) async fn apply(cluster: &dyn Cluster, plan: &Plan, terms: Terms<'_>, acceptance: Instant) -> Applied {
    let (lost, late) = (CancellationToken::new(), CancellationToken::new());
    let run = Run { cluster, terms, acceptance, lost: &lost, late: &late };
    let mut applied = Applied::default();
    let (namespaces, others): (Vec<&Step>, Vec<&Step>) =
        writes(plan).partition(|step| step.action == Action::CreateNamespace);
    for step in namespaces {
        applied.record(&step.id, run.make_namespace(step).await);
    }
    for steps in grouped(others, |step| turn(&terms.policies.kinds, step)).into_values() {
        let runs = grouped(steps, |step| &step.unit).into_values().map(|steps| run.unit(steps).boxed()).collect();
        join_at_most(runs, UNITS).await.into_iter().for_each(|unit| applied.absorb(unit));
    }
    applied
}

/// Returns when a step has its turn.
///
/// A control plane looks again at every Gateway of a class, or of parameters, that somebody has edited, if only to mark
/// them. While Gateways are taken over from its deployer it had better be at rest: nobody waits for the marks.
fn turn(kinds: &kinds::Table, step: &Step) -> (bool, Wave) {
    let wave = kinds.wave(&step.unit);
    let is_adopted = matches!(step.action, Action::Adopt(_));
    (wave != Wave::Unit && is_adopted && marks::are_all_that_differs(&step.differences), wave)
}

fn writes(plan: &Plan) -> impl Iterator<Item = &Step> {
    plan.changes().filter(|step| !matches!(step.action, Action::Prune(_)))
}

/// The data that all units of a run share.
#[derive(Clone, Copy)]
struct Run<'a> {
    cluster: &'a dyn Cluster,
    terms: Terms<'a>,
    acceptance: Instant,
    /// Told when a unit finds that the cluster does not answer: the others need not wait for it too.
    lost: &'a CancellationToken,
    /// Told when a Gateway was not accepted by the deadline: it is that of all, and nobody begins after it.
    late: &'a CancellationToken,
}

impl Run<'_> {
    async fn unit(&self, steps: Vec<&Step>) -> Applied {
        let mut applied = Applied::default();
        if self.late.is_cancelled() && steps.iter().any(|step| awaited(step).is_some()) {
            applied.unaccepted.extend(steps.first().map(|step| (step.unit.clone(), None)));
            applied.outcomes.extend(steps.iter().map(|step| (step.id.clone(), Outcome::Skipped)));
            return applied;
        }
        let (mut goes_on, mut is_accepted) = (true, false);
        let mut released = Vec::new();
        for step in steps {
            // What was deleted to make room is not left without what needs the room.
            let is_over = (self.terms.stop.is_cancelled() || self.lost.is_cancelled()) && released.is_empty();
            if !goes_on || is_over {
                applied.outcomes.insert(step.id.clone(), Outcome::Skipped);
                continue;
            }
            if let (Some(gateway), false) = (awaited(step), is_accepted) {
                is_accepted = self.is_accepted(step, gateway, &mut applied).await;
                if !is_accepted {
                    goes_on = false;
                    continue;
                }
            }
            goes_on = match &step.action {
                Action::Recreate(over) => self.recreate(step, over, &mut applied).await,
                Action::DeleteFirst(deletion) => self.release(step, &deletion.over, &mut released, &mut applied).await,
                _ => applied.record(&step.id, self.write(step).await),
            };
            if applied.lost.is_some() {
                self.lost.cancel();
            }
            if !goes_on {
                self.restore(&mut released, &mut applied).await;
            } else if !matches!(step.action, Action::DeleteFirst(_)) {
                // What it was for is there.
                released.clear();
            }
        }
        applied
    }

    /// Waits until a Gateway is accepted of which a step adopts something.
    async fn is_accepted(&self, step: &Step, gateway: &Awaited, applied: &mut Applied) -> bool {
        let kinds = &self.terms.policies.kinds;
        match accepted(self.cluster, gateway, kinds, self.acceptance, self.terms.stop).await {
            Ok(Acceptance::Accepted) => return true,
            Err(error) => return applied.record(&step.id, Err(error)),
            Ok(Acceptance::Late(what)) => {
                self.late.cancel();
                applied.unaccepted.insert(step.unit.clone(), Some(what).filter(|what| what != UNANSWERED));
            }
            Ok(Acceptance::Lost(why)) => {
                let message = format!("{}: {why}; nothing more was adopted", gateway.id);
                applied.postponed.insert(step.unit.clone(), message);
            }
        }
        applied.outcomes.insert(step.id.clone(), Outcome::Skipped);
        false
    }

    /// Deletes an object and creates it again.
    async fn recreate(&self, step: &Step, over: &Over, applied: &mut Applied) -> bool {
        let Some(object) = &step.object else { return true };
        let object_id = (&step.gvk, &step.id);
        let removal = match remove(self.cluster, object_id, over, self.terms, &mut applied.removed).await {
            Ok(removal) => removal,
            Err(error) => return applied.record(&step.id, Err(error)),
        };
        let outcome = match removal {
            Removal::Not(outcome) => outcome,
            Removal::Gone(former) => match make(self.cluster, object, former.as_deref(), self.terms.keep).await {
                Ok(live) => return applied.record(&step.id, Ok(Some(live))),
                Err((outcome, restored)) => {
                    applied.keep(&step.id, restored);
                    outcome
                }
            },
        };
        applied.outcomes.insert(step.id.clone(), outcome);
        false
    }

    /// Deletes an object whose place another one needs.
    async fn release<'b>(
        &self,
        step: &'b Step,
        over: &Over,
        released: &mut Vec<(&'b Step, Option<Box<Live>>)>,
        applied: &mut Applied,
    ) -> bool {
        match remove(self.cluster, (&step.gvk, &step.id), over, self.terms, &mut applied.removed).await {
            Err(error) => applied.record(&step.id, Err(error)),
            Ok(Removal::Not(outcome)) => {
                applied.outcomes.insert(step.id.clone(), outcome);
                false
            }
            Ok(Removal::Gone(former)) => {
                released.push((step, former));
                applied.record(&step.id, Ok(None))
            }
        }
    }

    /// Restores what was deleted for something that could not be made.
    async fn restore(&self, released: &mut Vec<(&Step, Option<Box<Live>>)>, applied: &mut Applied) {
        for (step, former) in released.drain(..) {
            let (words, restored) = put_back(self.cluster, former.as_deref(), self.terms.keep).await;
            applied.keep(&step.id, restored);
            applied.outcomes.insert(step.id.clone(), Outcome::Failed(format!("what it made room for failed; {words}")));
        }
    }

    async fn write(&self, step: &Step) -> Result<Option<Live>, ClusterError> {
        let Some(object) = &step.object else { return Ok(None) };
        self.terms.keep.before(self.cluster, step).await?;
        let written = self.apply(step, object).await?;
        self.terms.keep.after(&step.id, written.as_ref());
        Ok(written)
    }

    async fn apply(&self, step: &Step, object: &Object) -> Result<Option<Live>, ClusterError> {
        let only_if = match step.action.over() {
            None => Precondition::Absent,
            Some(over) if step.first.is_empty() => unchanged(&over.uid, &over.resource_version),
            Some(Over { uid, resource_version }) => {
                let (kind, id) = (&step.gvk, &step.id);
                let patched = self.cluster.patch(kind, id, uid, resource_version, &step.first, Mode::Real).await?;
                unchanged(&patched.uid, &patched.resource_version)
            }
        };
        let Action::Generate(it) = &step.action else {
            return self.cluster.apply(object, &only_if, Mode::Real).await.map(Some);
        };
        let made = it.value.filled(object, &generate::value(&it.value, &step.id)?);
        self.cluster.apply(&made, &only_if, Mode::Real).await.map(Some)
    }

    /// A namespace that somebody else has made in the meantime is as good.
    async fn make_namespace(&self, step: &Step) -> Result<Option<Live>, ClusterError> {
        match self.write(step).await {
            Err(error) if error.reason == Reason::Conflict => Ok(None),
            other => other,
        }
    }
}

fn unchanged(uid: &str, resource_version: &str) -> Precondition {
    Precondition::Unchanged { uid: uid.to_owned(), resource_version: resource_version.to_owned() }
}

/// The Gateway that must be accepted before a step.
fn awaited(step: &Step) -> Option<&Awaited> {
    if let Action::AdoptFromDeployer(it) = &step.action { it.awaits.as_ref() } else { None }
}
