//! Objects that are owned and not wanted any more.
//!
//! A delete needs the inventory, the mark and the uid to agree, and the proof that its unit was withdrawn, which
//! [`withdrawal`] alone gives.

use std::collections::{BTreeMap, BTreeSet};

use super::policies::Policies;
use super::refusal::{Reason, Refusal};
use super::withdrawal::{self, Candidate, Evidence};
use super::{Action, Observed, Over, Plan, Release, Step, owner};
use crate::inventory::{Entry, Inventory};
use crate::live::Live;
use crate::marks::{Owner, keep_mark};
use crate::object::ObjectId;
use crate::unit::Rendering;

/// Adds a step or a refusal for everything that is owned and not wanted.
pub(super) fn add(
    plan: &mut Plan,
    rendering: &Rendering,
    evidence: &Evidence<'_>,
    observed: &Observed,
    owned: &Inventory,
    policies: &Policies,
) {
    let wanted: BTreeSet<&ObjectId> =
        rendering.units.iter().flat_map(|unit| unit.all().map(crate::object::Object::id)).collect();
    let mut held: BTreeSet<ObjectId> = plan.held_units().into_iter().cloned().collect();
    let is_unseen = |id: &ObjectId| observed.unknown.contains_key(id);
    held.extend(owned.entries.iter().filter(|(id, _)| is_unseen(id)).map(|(_, entry)| entry.unit.clone()));
    let context = Context { rendering, observed, owned, policies, held };
    let mut candidates: BTreeMap<&ObjectId, Vec<Candidate<'_>>> = BTreeMap::new();
    let unwanted = owned.entries.iter().filter(|(id, entry)| !wanted.contains(id) && policies.is_about(&entry.unit));
    for (id, entry) in unwanted {
        match context.decide(id, entry) {
            Ok(Fate::Deleted(over)) => {
                candidates.entry(&entry.unit).or_default().push(Candidate { id, entry, over });
            }
            Ok(Fate::Left(action)) => plan.steps.push(Step {
                note: note(&action),
                unit: entry.unit.clone(),
                id: id.clone(),
                gvk: entry.gvk.clone(),
                action,
                object: None,
                first: Vec::new(),
                differences: Vec::new(),
                fields: Vec::new(),
            }),
            Err(reason) => plan.refusals.push(Refusal { unit: entry.unit.clone(), id: id.clone(), reason }),
        }
    }
    withdrawal::plan_deletions(plan, candidates, evidence, observed, policies);
    context.keep_what_is_needed(plan);
}

/// The fate of something that nobody wants any more.
enum Fate {
    /// It is deleted, if its unit was withdrawn.
    Deleted(Over),
    /// Nothing happens to it on the cluster.
    Left(Action),
}

fn note(action: &Action) -> Option<String> {
    let Action::Release(Release { to, is_taken }) = action else { return None };
    Some(match is_taken {
        true => format!("sync {to:?} has it now"),
        false => format!("sync {to:?} wants it; it leaves this inventory when that has taken it over"),
    })
}

struct Context<'a> {
    rendering: &'a Rendering,
    observed: &'a Observed,
    owned: &'a Inventory,
    policies: &'a Policies,
    /// Units of which something was refused or could not be seen: they stay as they are, as a whole.
    held: BTreeSet<ObjectId>,
}

impl Context<'_> {
    /// Keeps the parameters of each spec that stays in the cluster.
    fn keep_what_is_needed(&self, plan: &mut Plan) {
        let kept: BTreeSet<ObjectId> =
            plan.refusals.iter().filter(|refusal| refusal.id == refusal.unit).map(|r| r.unit.clone()).collect();
        let is_needed = |step: &Step| {
            matches!(step.action, Action::Prune(_)) && kept.contains(&step.unit) && self.is_spec(&step.id)
        };
        let (needed, others) = std::mem::take(&mut plan.steps).into_iter().partition(is_needed);
        plan.steps = others;
        let needed: Vec<Step> = needed;
        plan.refusals.extend(needed.into_iter().map(|step| Refusal {
            unit: step.unit,
            id: step.id,
            reason: Reason::UnitHeld,
        }));
    }

    fn decide(&self, id: &ObjectId, entry: &Entry) -> Result<Fate, Reason> {
        if let Some(message) = self.observed.unknown.get(id) {
            return Err(Reason::Unknown(message.clone()));
        }
        let Some(live) = self.observed.live.get(id) else { return Ok(Fate::Left(Action::Forget)) };
        let is_same = entry.uid.as_ref().map(|uid| *uid == live.uid);
        let owner = match owner(live, self.observed, self.owned, &self.policies.marker) {
            owner if self.policies.is_former(&owner) => Owner::Us,
            // It bears the mark of another of our syncs, which writes its inventory before it marks anything.
            Owner::OtherSync(to) if self.policies.claims.is_known(&to) => {
                return Ok(Fate::Left(Action::Release(Release { to, is_taken: true })));
            }
            owner => owner,
        };
        self.check_spec(id, entry)?;
        if owner == Owner::Us
            && let Some(to) = self.policies.claims.by(id)
        {
            return Ok(Fate::Left(Action::Release(Release { to: to.to_owned(), is_taken: false })));
        }
        match (owner, is_same) {
            (Owner::Us, None | Some(true)) if entry.adopted && !self.policies.prune_adopted => Err(Reason::Adopted),
            (Owner::Us, None | Some(true)) => self.check_live(id, &entry.unit, live),
            // Somebody has put it back from a copy, marks and all: not the one that we made, nor to be lost sight of.
            (Owner::Us, Some(false)) => {
                Err(Reason::Protected("our mark, but is not the object that was made here (another uid)".to_owned()))
            }
            (Owner::Nobody | Owner::OtherSync(_) | Owner::OtherInstallation(_) | Owner::Other(_), Some(true)) => {
                Err(Reason::Unmarked)
            }
            // Somebody has made a new object in its place, and ours is gone; or it never came to be ours.
            (
                Owner::Nobody | Owner::OtherSync(_) | Owner::OtherInstallation(_) | Owner::Other(_),
                None | Some(false),
            ) => Ok(Fate::Left(Action::Forget)),
        }
    }

    /// Does its spec still stand in the source?
    fn check_spec(&self, id: &ObjectId, entry: &Entry) -> Result<(), Reason> {
        if self.rendering.broken.contains(&entry.unit) || self.rendering.broken.contains(id) {
            return Err(Reason::Broken);
        }
        if self.rendering.self_managed.contains(&entry.unit) && !self.is_spec(id) {
            return Err(Reason::SelfManaged);
        }
        // The operator's own kinds are what we leave to it; everything else it makes, and perhaps out of what is there.
        if self.rendering.passed_on.contains(&entry.unit) && id.group != entry.unit.group {
            return Err(Reason::PassedOn);
        }
        // What the specs in the cluster need stays as long as they do.
        let is_left_over = self.is_spec(id) && !self.rendering.applies_specs;
        if self.rendering.documents.contains(id) || (is_left_over && self.rendering.documents.contains(&entry.unit)) {
            return Err(Reason::NotApplied);
        }
        if self.held.contains(&entry.unit) {
            return Err(Reason::UnitHeld);
        }
        Ok(())
    }

    fn is_spec(&self, id: &ObjectId) -> bool {
        self.rendering.spec_kinds.contains(&(id.group.clone(), id.kind.clone()))
    }

    fn check_live(&self, id: &ObjectId, unit: &ObjectId, live: &Live) -> Result<Fate, Reason> {
        if let Some(mark) = keep_mark(live.object.body()) {
            return Err(Reason::Protected(mark.to_owned()));
        }
        if let Some(reason) = self.policies.forbids(id) {
            return Err(reason);
        }
        if !self.policies.prune {
            return Err(Reason::PruneDisabled);
        }
        if self.observed.suspicion.is_some() {
            return Err(Reason::SuspectInventory);
        }
        if self.observed.unverified.contains(id) {
            return Err(Reason::Unverified);
        }
        if self.policies.first_round {
            return Err(Reason::FirstRound);
        }
        if live.is_terminating() {
            return Err(Reason::Terminating);
        }
        if let Some(what) = self.policies.claims.possibly(id, unit) {
            return Err(Reason::MayBeClaimed(what));
        }
        Ok(Fate::Deleted(Over::of(live)))
    }
}
