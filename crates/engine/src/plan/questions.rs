//! The dry runs that a cluster has to be asked for before a plan can be made.
//!
//! Pure: [`questions`] says what is open by what is known, whoever asks notes each answer with [`Observed::answer`], and
//! when nothing is open any more [`super::plan`] makes of the answers what it makes of them. Some questions follow from
//! an answer: a patch shows what an apply alone would not, and what cannot be changed is tried under another name.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use super::conflicts::{Negotiated, negotiated};
use super::deployer::{self, holder};
use super::drift::Pair;
use super::policies::Policies;
use super::recreate::{consent, stand_in};
use super::refusal::Reason;
use super::{NamespaceState, Observed, Obstacle, Over};
use crate::live::Live;
use crate::object::{Gvk, Object, ObjectId};
use crate::unit::Unit;

/// Tries of an object that somebody else changes in between.
const TRIES: u8 = 4;

/// The use of what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A round that writes: whether an object can be made is seen when it is made.
    Apply,
    /// A plan that a person reads: what is to be made is tried, too.
    Plan,
    /// A report on objects that somebody else looks after: nothing is going to be made, adopted or replaced.
    Report,
}

/// A dry run to ask for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The object that it is about.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The request.
    pub request: Request,
    stage: Stage,
    /// The result of the negotiation for an apply, if the object exists.
    agreed: Option<Box<Negotiated>>,
}

/// A request for a dry run.
#[derive(Clone, Debug)]
pub enum Request {
    /// An apply, over a live object or where nothing is.
    Apply(Object, Option<Over>),
    /// Operations of a JSON patch (RFC 6902) over a live object.
    Patch(Vec<Value>, Over),
}

/// The stages in which an object is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its apply.
    Apply,
    /// Its content where owners of its fields change before the apply: that one knows them as they are.
    Owners,
    /// Its content once it is adopted from a deployer: an apply would leave what only that has set.
    FromDeployer,
    /// Its create under another name, because its own is taken while the object exists.
    StandIn,
}

/// The dry runs of one object so far.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The result of the negotiation, if the object exists.
    pub agreed: Option<Box<Negotiated>>,
    /// The object as it would become, or why it cannot.
    pub result: Result<Live, Obstacle>,
    stage: Stage,
    /// The times that somebody else was faster.
    stale: u8,
}

impl From<Obstacle> for DryRun {
    /// Says why an object cannot even be tried.
    fn from(obstacle: Obstacle) -> Self {
        Self { agreed: None, result: Err(obstacle), stage: Stage::Apply, stale: 0 }
    }
}

impl Obstacle {
    /// Returns the words for it.
    pub fn message(&self) -> &str {
        match self {
            Self::Immutable(immutable) => &immutable.message,
            Self::Invalid(message)
            | Self::Forbidden(message)
            | Self::NoSuchKind(message)
            | Self::Stale(message)
            | Self::Failed(message) => message,
        }
    }
}

/// Returns the dry runs that are open: none when all is known that can be.
pub fn questions(wanted: &[Unit], observed: &Observed, policies: &Policies, purpose: Purpose) -> Vec<Question> {
    let inquiry = Inquiry { observed, policies, purpose };
    let units = wanted.iter().filter(|unit| policies.is_about(&unit.id));
    units.flat_map(|unit| unit.all().filter_map(move |object| inquiry.next(unit, object))).collect()
}

#[derive(Clone, Copy)]
struct Inquiry<'a> {
    observed: &'a Observed,
    policies: &'a Policies,
    purpose: Purpose,
}

impl Inquiry<'_> {
    /// Returns the next question about an object.
    fn next(self, unit: &Unit, object: &Object) -> Option<Question> {
        let (id, observed) = (object.id(), self.observed);
        let is_known =
            observed.unchanged.contains(id) || observed.unknown.contains_key(id) || observed.unasked.contains(id);
        // What may not be written is not asked for either.
        if is_known || self.policies.forbids(id).is_some() {
            return None;
        }
        let is_over = |run: &&DryRun| run.stale >= TRIES || !matches!(run.result, Err(Obstacle::Stale(_)));
        match (observed.dry_runs.get(id).filter(is_over), observed.live.get(id)) {
            (None, live) => self.apply(unit, object, live),
            (Some(run), Some(live)) => self.after(unit, object, run, live),
            (Some(_), None) => None,
        }
    }

    fn apply(self, unit: &Unit, object: &Object, live: Option<&Live>) -> Option<Question> {
        let Some(live) = live else {
            // In a namespace that is not there yet nothing can be tried.
            let namespace = self.observed.namespaces.get(&object.id().namespace);
            let is_possible = namespace.is_none_or(|state| *state == NamespaceState::Present);
            let is_tried = self.purpose == Purpose::Plan && is_possible;
            return is_tried.then(|| Question::new(object, Stage::Apply, Request::Apply(object.clone(), None)));
        };
        if live.is_terminating() {
            return None;
        }
        let wanted = unit.with_kept(object, live);
        // What is refused here is refused by the plan, too, and by it with the reason.
        let agreed = match self.purpose {
            Purpose::Apply | Purpose::Plan => negotiated(unit, &wanted, live, self.observed, self.policies),
            Purpose::Report => {
                let autoscaler = self.observed.autoscaled.get(object.id());
                Pair::new(unit, &wanted, live, autoscaler, self.policies).map(|pair| pair.agreed)
            }
        };
        let agreed = Box::new(agreed.ok()?);
        let request = Request::Apply(agreed.object.clone(), Some(Over::of(live)));
        Some(Question { agreed: Some(agreed), ..Question::new(object, Stage::Apply, request) })
    }

    /// Returns what follows from an answer.
    fn after(self, unit: &Unit, object: &Object, run: &DryRun, live: &Live) -> Option<Question> {
        let agreed = run.agreed.as_ref()?;
        let patch = |stage: Stage, operations: Vec<Value>| {
            Some(Question::new(object, stage, Request::Patch(operations, Over::of(live))))
        };
        let is_applied = run.stage == Stage::Apply;
        match &run.result {
            Ok(applied) if is_applied && !agreed.first.is_empty() => {
                patch(Stage::Owners, agreed.dry_run(live, applied))
            }
            Err(Obstacle::Invalid(_) | Obstacle::Immutable(_)) if is_applied && !agreed.first.is_empty() => {
                patch(Stage::Owners, agreed.draft(live))
            }
            Ok(applied) if run.stage != Stage::FromDeployer && self.takes_over(unit, live) => {
                patch(Stage::FromDeployer, deployer::dry_run(unit, live, applied))
            }
            Err(Obstacle::Immutable(immutable)) if immutable.instead.is_none() && self.replaces(object, live) => {
                Some(Question::new(object, Stage::StandIn, Request::Apply(stand_in(object), None)))
            }
            Ok(_) | Err(_) => None,
        }
    }

    fn takes_over(self, unit: &Unit, live: &Live) -> bool {
        let is_rendered = unit.specs.iter().all(|spec| spec.id() != live.object.id());
        let may_adopt = self.policies.adopt_deployer && self.purpose != Purpose::Report;
        may_adopt && is_rendered && holder(unit, live).is_some()
    }

    fn replaces(self, object: &Object, live: &Live) -> bool {
        self.purpose != Purpose::Report && consent(object, live, self.policies).is_ok()
    }
}

impl Question {
    fn new(object: &Object, stage: Stage, request: Request) -> Self {
        Self { id: object.id().clone(), gvk: object.gvk(), request, stage, agreed: None }
    }
}

impl Observed {
    /// Records the answer to a question. Tells whether the object has to be read again before anything else is asked of
    /// it, because somebody else has changed it.
    pub fn answer(&mut self, question: Question, answer: Result<Live, Obstacle>) -> bool {
        let Question { id, stage, agreed, .. } = question;
        let is_stale = matches!(answer, Err(Obstacle::Stale(_)));
        let stale = self.dry_runs.get(&id).map_or(0, |run| run.stale) + u8::from(is_stale);
        match (stage, self.dry_runs.get_mut(&id)) {
            (Stage::Apply, _) => {
                // Most are as they are, and are not kept twice.
                let same = self.live.get(&id).filter(|live| answer.as_ref().ok() == Some(live)).cloned();
                let result = same.map_or(answer, Ok);
                self.dry_runs.insert(id, DryRun { agreed, result, stage, stale });
                is_stale
            }
            (Stage::StandIn, Some(DryRun { result: Err(Obstacle::Immutable(immutable)), .. })) => {
                immutable.instead = Some(answer.map_err(|obstacle| obstacle.message().to_owned()));
                false
            }
            (_, Some(run)) => {
                (run.stage, run.result, run.stale) = (stage, answer, stale);
                is_stale
            }
            (_, None) => false,
        }
    }

    /// Returns what was negotiated about a wanted object when it was asked for, or negotiates it.
    pub(super) fn agreed(
        &self,
        unit: &Unit,
        object: &Object,
        live: &Live,
        policies: &Policies,
    ) -> Result<Cow<'_, Negotiated>, Reason> {
        let asked = self.dry_runs.get(object.id()).and_then(|run| run.agreed.as_deref());
        match asked.filter(|agreed| agreed.wanted == *object) {
            Some(agreed) => Ok(Cow::Borrowed(agreed)),
            None => negotiated(unit, object, live, self, policies).map(Cow::Owned),
        }
    }
}
