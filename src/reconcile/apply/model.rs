//! The terms of carrying out a plan, its steps in groups, and their outcomes.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::fingerprint::{self, Fingerprint};
use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Plan, Step};
use tokio_util::sync::CancellationToken;

use super::pre_image::Keep;
use crate::cluster::{ClusterError, Reason};
use crate::reconcile::model::{Facts, RoundSettings};
use crate::report::outcome::Outcome;

/// The terms for carrying out a plan.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The policies: what the sync may do.
    pub policies: &'a Policies,
    /// The place where objects are kept before they are changed or deleted.
    pub keep: Keep<'a>,
    /// Told when the process is to end.
    pub stop: &'a CancellationToken,
}

impl<'a> Terms<'a> {
    /// Returns those of a round.
    pub(crate) fn of(settings: &'a RoundSettings, facts: &'a Facts) -> Self {
        let keep = Keep { recorder: settings.recorder.as_ref(), observed: &facts.observed };
        Self { policies: &facts.policies, keep, stop: &settings.stop }
    }
}

/// The outcomes of the steps of a plan.
#[derive(Clone, Debug, Default)]
#[must_use]
pub(crate) struct Applied {
    /// By object.
    pub outcomes: BTreeMap<ObjectId, Outcome>,
    /// The objects as they are now, of those that were written; without `managedFields`.
    pub live: BTreeMap<ObjectId, Live>,
    /// The fingerprints of who had touched them by then.
    pub traces: BTreeMap<ObjectId, Fingerprint>,
    /// Objects whose deletion was asked for and of which it is not known that it is over: a finalizer may hold them.
    pub deleting: BTreeSet<ObjectId>,
    /// Objects that were deleted for something that takes their place, whether or not that is there now.
    pub removed: BTreeSet<ObjectId>,
    /// Units that were left half done though nothing is wrong with them, with the reason: the next round goes on.
    pub postponed: BTreeMap<ObjectId, String>,
    /// Units whose Gateway was not accepted in time, with what its control plane has said of it, if anything.
    pub unaccepted: BTreeMap<ObjectId, Option<String>>,
    /// The cluster could not be talked to any more.
    pub lost: Option<String>,
}

impl Applied {
    /// Returns the units of which a step was not done.
    pub(crate) fn unfinished<'a>(&self, plan: &'a Plan) -> BTreeSet<&'a ObjectId> {
        let is_open = |step: &&Step| self.outcomes.get(&step.id).is_some_and(|outcome| *outcome != Outcome::Done);
        plan.steps.iter().filter(is_open).map(|step| &step.unit).collect()
    }

    /// Returns why a unit was left half done though nothing is wrong with it, where that is a matter of this unit.
    pub(crate) fn left_undone(&self, unit: &ObjectId) -> Option<&String> {
        self.postponed.get(unit).or_else(|| self.unaccepted.get(unit)?.as_ref())
    }

    pub(super) fn record(&mut self, id: &ObjectId, result: Result<Option<Live>, ClusterError>) -> bool {
        let outcome = match result {
            Ok(live) => {
                self.keep(id, live);
                Outcome::Done
            }
            Err(error) if error.reason == Reason::Conflict => Outcome::Stale(Chain(&error).to_string()),
            Err(error) => {
                let text = Chain(&error).to_string();
                if error.is_unreachable() {
                    self.lost.get_or_insert_with(|| text.clone());
                }
                Outcome::Failed(text)
            }
        };
        let is_done = outcome == Outcome::Done;
        self.outcomes.insert(id.clone(), outcome);
        is_done
    }

    /// Keeps how an object is now. Who has set which of its fields is half of it, and only the digest of that is of use
    /// from here on.
    pub(super) fn keep(&mut self, id: &ObjectId, live: Option<Live>) {
        let Some(live) = live else { return };
        self.traces.extend(fingerprint::of(live.object.body()).map(|traces| (id.clone(), traces)));
        self.live.insert(id.clone(), live.without_managers());
    }

    /// Adds the outcomes of other steps.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.live.extend(other.live);
        self.traces.extend(other.traces);
        self.deleting.extend(other.deleting);
        self.removed.extend(other.removed);
        self.postponed.extend(other.postponed);
        self.unaccepted.extend(other.unaccepted);
        self.lost = self.lost.take().or(other.lost);
    }
}

/// Puts steps together that have the same of something, in the order of the plan.
pub(super) fn grouped<'a, K: Ord>(
    steps: impl IntoIterator<Item = &'a Step>,
    key: impl Fn(&'a Step) -> K,
) -> BTreeMap<K, Vec<&'a Step>> {
    let mut groups: BTreeMap<K, Vec<_>> = BTreeMap::new();
    for step in steps {
        groups.entry(key(step)).or_default().push(step);
    }
    groups
}
