//! Objects that what changes needs, and that nothing here makes: whether its cluster has them.
//!
//! It is looked at only for units that change, once for each object, so that a round that changes nothing sends nothing
//! more. Others may make such an object later, as operators for certificates and secrets do: it is told, and nothing waits
//! for it. Whoever may not look says so once.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::stream::{self, StreamExt as _};
use gatewright_engine::error::Chain;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::Plan;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::problem::Problem;
use gatewright_engine::references::{asked_as, of_pods};
use gatewright_engine::text::{count, listed};
use gatewright_engine::unit::Unit;
use gatewright_engine::unit::marked::Marked;
use tracing::debug;

use crate::cluster::{Cluster, Reason};
use crate::reconcile::model::{Facts, Unhealthy};
use crate::reconcile::requests::{CONCURRENCY, only_local};

/// The most objects that are looked for in a round.
const MOST: usize = 100;

/// The most of them that are named where nobody knows.
const NAMED: usize = 3;

/// The result of a look.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Objects that are not there, each with what is said of it.
    absent: BTreeMap<ObjectId, Problem>,
    /// Those of which that is not known because the credentials do not allow to look.
    unseen: Vec<ObjectId>,
    /// The number of those that nobody has looked for.
    more: usize,
}

/// Looks for what the units that a plan changes need.
pub(crate) async fn missing(cluster: &dyn Cluster, plan: &Plan, facts: &Facts) -> Missing {
    let mut open = if cluster.has_health() { open(plan, &facts.rendering, &facts.policies) } else { BTreeMap::new() };
    open.retain(|id, _| !facts.observed.live.contains_key(id));
    let mut missing = Missing { more: open.len().saturating_sub(MOST), ..Missing::default() };
    let looks = open.into_iter().take(MOST);
    let looks = looks.map(async |(id, problem)| (cluster.exists(&asked_as(&id), &id).await, id, problem));
    let mut looks = pin!(stream::iter(looks).buffer_unordered(CONCURRENCY));
    while let Some((there, id, problem)) = looks.next().await {
        match there {
            Ok(true) => {}
            Ok(false) => drop(missing.absent.insert(id, problem)),
            Err(error) if error.reason == Reason::Forbidden => missing.unseen.push(id),
            // The cluster has no such kind, or takes no object of such a name.
            Err(error) if [Reason::Invalid, Reason::NotFound].contains(&error.reason) => {
                missing.absent.insert(id, problem);
            }
            Err(error) => {
                debug!(object = %id, error = %Chain(&error), "cannot look for what is needed");
                // Whoever answers this with an error answers the others so as well, each after a while. The round itself
                // says so if it is still so then.
                if only_local(error).is_err() {
                    break;
                }
            }
        }
    }
    missing.unseen.sort();
    missing
}

/// Returns what only the cluster can answer.
fn open(plan: &Plan, rendering: &Marked, policies: &Policies) -> BTreeMap<ObjectId, Problem> {
    let changed: BTreeSet<&ObjectId> =
        plan.changes().filter(|step| step.object.is_some()).map(|step| &step.unit).collect();
    let mut open = rendering.open_references(&changed, &policies.kinds);
    open.retain(|id, _| policies.claims.by(id).is_none());
    open
}

impl Missing {
    /// Returns it in words, a line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut problems: Vec<&Problem> = self.absent.values().collect();
        problems.sort();
        let mut notes: Vec<String> = problems.iter().map(|problem| format!("{}{problem}", problem.mark())).collect();
        if !self.unseen.is_empty() {
            let ids = listed(&self.unseen, NAMED);
            notes.push(format!("the credentials do not show whether these are there, which are needed: {ids}"));
        }
        if self.more > 0 {
            notes.push(format!("{} more that are needed were not looked for", count(self.more, "object")));
        }
        notes
    }

    /// Adds to what is awaited of objects what their pods need and do not find.
    pub(crate) fn explain(&self, rendering: &Marked, policies: &Policies, unhealthy: &mut Unhealthy) {
        if self.absent.is_empty() || unhealthy.is_empty() {
            return;
        }
        for object in rendering.units.iter().flat_map(Unit::all) {
            let Some(what) = unhealthy.get_mut(object.id()) else { continue };
            let absent = self.needed_by(object, policies);
            if !absent.is_empty() {
                let verb = if absent.len() == 1 { "is" } else { "are" };
                *what = format!("{what}; {} {verb} not there, which its pods need", listed(absent, NAMED));
            }
        }
    }

    fn needed_by(&self, object: &Object, policies: &Policies) -> BTreeSet<ObjectId> {
        let needed = of_pods(object.body(), &policies.kinds).into_iter().filter(|it| !it.is_optional);
        let ids = needed.map(|it| it.id(&object.id().namespace));
        ids.filter(|id| self.absent.contains_key(id)).collect()
    }
}
