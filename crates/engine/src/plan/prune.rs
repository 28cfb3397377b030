//! Objects that are owned and not wanted any more.
//!
//! A delete needs the inventory, the mark and the uid to agree, and the proof that its unit was withdrawn, which
//! [`withdrawal`] alone gives.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::finalizers;
use super::refusal::{Reason, Refusal};
use super::withdrawal::{self, Candidate, Evidence};
use super::{Action, Inputs, Over, Plan, Release, Step};
use crate::inventory::Entry;
use crate::live::Live;
use crate::marks::{Owner, keep_mark};
use crate::object::{Object, ObjectId};
use crate::unit::Unit;

/// Adds a step or a refusal for everything that is owned and not wanted.
pub(super) fn add(plan: &mut Plan, evidence: &Evidence<'_>, inputs: Inputs<'_>) {
    let Inputs { rendering, observed, owned, policies } = inputs;
    let wanted: BTreeSet<&ObjectId> = rendering.units.iter().flat_map(Unit::all).map(Object::id).collect();
    let mut held: BTreeSet<ObjectId> = plan.held_units().into_iter().cloned().collect();
    let is_unseen = |id: &ObjectId| observed.unknown.contains_key(id);
    held.extend(owned.entries.iter().filter(|(id, _)| is_unseen(id)).map(|(_, entry)| entry.unit.clone()));
    let context = Context { inputs, held };
    let mut candidates: BTreeMap<&ObjectId, Vec<Candidate<'_>>> = BTreeMap::new();
    let unwanted = owned.entries.iter().filter(|(id, entry)| !wanted.contains(id) && policies.is_about(&entry.unit));
    for (id, entry) in unwanted {
        match context.decide(id, entry) {
            Ok(Fate::Deleted(over)) => {
                candidates.entry(&entry.unit).or_default().push(Candidate { id, entry, over });
            }
            Ok(Fate::Left(action)) => {
                let note = note(&action);
                plan.steps.push(Step { note, ..Step::new(&entry.unit, id, entry.gvk.clone(), action) });
            }
            Err(reason) => plan.refusals.push(Refusal { unit: entry.unit.clone(), id: id.clone(), reason }),
        }
    }
    withdrawal::plan_deletions(plan, candidates, evidence, inputs);
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
    inputs: Inputs<'a>,
    /// Units of which something was refused or could not be seen: they stay as they are, as a whole.
    held: BTreeSet<ObjectId>,
}

impl Context<'_> {
    /// Keeps the parameters of each spec that stays in the cluster.
    fn keep_what_is_needed(&self, plan: &mut Plan) {
        let kept: BTreeSet<ObjectId> =
            plan.refusals.iter().filter(|refusal| refusal.id == refusal.unit).map(|r| r.unit.clone()).collect();
        plan.withhold(|step| kept.contains(&step.unit) && self.inputs.is_spec(&step.id), &Reason::UnitHeld);
    }

    fn decide(&self, id: &ObjectId, entry: &Entry) -> Result<Fate, Reason> {
        let Inputs { observed, policies, .. } = self.inputs;
        if let Some(message) = observed.unknown.get(id) {
            return Err(Reason::Unknown(message.clone()));
        }
        let Some(live) = observed.live.get(id) else { return Ok(Fate::Left(Action::Forget)) };
        let is_same = entry.uid.as_ref().map(|uid| *uid == live.uid);
        let owner = match self.inputs.owner(live) {
            owner if policies.is_former(&owner) => Owner::Us,
            // It bears the mark of another of our syncs, which writes its inventory before it marks anything.
            Owner::OtherSync(to) if policies.claims.is_known(&to) => {
                return Ok(Fate::Left(Action::Release(Release { to, is_taken: true })));
            }
            owner => owner,
        };
        self.check_spec(id, entry)?;
        if owner == Owner::Us
            && let Some(to) = policies.claims.by(id)
        {
            return Ok(Fate::Left(Action::Release(Release { to: to.to_owned(), is_taken: false })));
        }
        match (owner, is_same) {
            (Owner::Us, None | Some(true)) if entry.adopted && !policies.prune_adopted => Err(Reason::Adopted),
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
        self.inputs.check_stays(id, entry)?;
        let rendering = self.inputs.rendering;
        if rendering.broken.contains(id) {
            return Err(Reason::Broken);
        }
        // What the specs in the cluster need stays as long as they do.
        let is_left_over = self.inputs.is_spec(id) && !rendering.applies_specs;
        if rendering.documents.contains(id) || (is_left_over && rendering.documents.contains(&entry.unit)) {
            return Err(Reason::NotApplied);
        }
        if self.held.contains(&entry.unit) {
            return Err(Reason::UnitHeld);
        }
        Ok(())
    }

    fn check_live(&self, id: &ObjectId, unit: &ObjectId, live: &Live) -> Result<Fate, Reason> {
        let Inputs { observed, policies, .. } = self.inputs;
        if let Some(mark) = keep_mark(live.object.body()) {
            return Err(Reason::Protected(mark.to_owned()));
        }
        if let Some(reason) = policies.forbids(id) {
            return Err(reason);
        }
        if !policies.prune {
            return Err(Reason::PruneDisabled);
        }
        if observed.suspicion.is_some() {
            return Err(Reason::SuspectInventory);
        }
        if observed.unverified.contains(id) {
            return Err(Reason::Unverified);
        }
        if policies.first_round {
            return Err(Reason::FirstRound);
        }
        if live.is_terminating() {
            let why = finalizers(live);
            return Err(if why.is_empty() { Reason::Terminating } else { Reason::Finalized(why) });
        }
        if let Some(what) = policies.claims.possibly(id, unit) {
            return Err(Reason::MayBeClaimed(what));
        }
        Ok(Fate::Deleted(Over::of(live)))
    }
}
