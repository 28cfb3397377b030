//! The standing of every wanted object: as its dry run says, or where none may be asked for by an estimate.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Pair;
use super::estimate::estimated;
use super::history::Proof;
use super::model::Model;
use crate::diff::Difference;
use crate::live::Live;
use crate::object::{Object, ObjectId};
use crate::plan::conflicts::{FieldVerdict, Verdict};
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;
use crate::plan::{Observed, Obstacle};
use crate::unit::{Rendering, Unit};

/// A wanted object, and how it stands.
#[derive(Debug)]
pub struct Compared {
    /// Its unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Its standing.
    pub standing: Standing,
    /// A note on what else is to be known.
    pub note: Option<String>,
}

/// The state of a wanted object.
#[derive(Debug)]
pub enum Standing {
    /// It is not there.
    Missing,
    /// It is there.
    Found {
        /// The differences: none, if it is as it should be.
        differences: Vec<Difference>,
        /// The fields that are left to others.
        fields: Vec<FieldVerdict>,
        /// The way in which that was found out.
        proof: Proof,
    },
    /// Nobody knows.
    Unknown(Reason),
}

/// Facts about a cluster beside those that were seen now.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    /// The observation, with the answers to all questions.
    pub observed: &'a Observed,
    /// The policies: what the sync may look at, and what is never a difference.
    pub policies: &'a Policies,
    /// The schemas of the cluster, for estimates.
    pub model: &'a Model,
    /// Proofs that matched before and still do.
    pub proofs: &'a BTreeMap<ObjectId, Proof>,
}

/// Returns every wanted object that the sync may look at, with its unit.
pub fn wanted<'a>(policies: &'a Policies, rendering: &'a Rendering) -> impl Iterator<Item = (&'a Unit, &'a Object)> {
    let units = rendering.units.iter().filter(|unit| policies.is_about(&unit.id));
    let objects = units.flat_map(|unit| unit.all().map(move |object| (unit, object)));
    objects.filter(|(_, object)| policies.forbids(object.id()).is_none())
}

/// Says how all that is wanted stands, in the order of units and objects.
pub fn standings(rendering: &Rendering, grounds: Grounds<'_>) -> Vec<Compared> {
    let compared = wanted(grounds.policies, rendering).map(|(unit, object)| grounds.compared(unit, object));
    let mut compared: Vec<Compared> = compared.collect();
    compared.sort_by(|a, b| (&a.unit, &a.id).cmp(&(&b.unit, &b.id)));
    compared
}

impl Grounds<'_> {
    fn compared(self, unit: &Unit, object: &Object) -> Compared {
        let (id, observed) = (object.id(), self.observed);
        let mut note = unit.notes.get(id).cloned();
        let answer = observed.dry_runs.get(id).map(|run| &run.result);
        let standing = if let Some(Err(Obstacle::NoSuchKind(kind))) = answer {
            Standing::Unknown(Reason::NoSuchKind(kind.clone()))
        } else if let Some(why) = observed.unknown.get(id) {
            Standing::Unknown(Reason::Unknown(why.clone()))
        } else if let Some(proof) = self.proofs.get(id) {
            Standing::Found { differences: Vec::new(), fields: Vec::new(), proof: *proof }
        } else if let Some(live) = observed.live.get(id) {
            if live.is_terminating() {
                note = Some("it is being deleted".to_owned());
            }
            self.found(unit, object, live, &mut note).unwrap_or_else(Standing::Unknown)
        } else {
            Standing::Missing
        };
        Compared { unit: unit.id.clone(), id: id.clone(), standing, note }
    }

    fn found(self, unit: &Unit, object: &Object, live: &Live, note: &mut Option<String>) -> Result<Standing, Reason> {
        let run = self.observed.dry_runs.get(object.id()).filter(|_| !live.is_terminating());
        let pair = if let Some(agreed) = run.and_then(|run| run.agreed.as_deref()) {
            Pair { agreed: agreed.clone(), live }
        } else {
            let (wanted, autoscaler) = (unit.with_kept(object, live), self.observed.autoscaled.get(object.id()));
            Pair::new(unit, &wanted, live, autoscaler, self.policies)?
        };
        match run.map(|run| &run.result) {
            Some(Ok(after)) => return Ok(self.standing(&pair, after.object.body(), Proof::DryRun)),
            Some(Err(Obstacle::Stale(_))) => {
                let why = "somebody changes it again and again while it is looked at";
                return Err(Reason::Unknown(why.to_owned()));
            }
            Some(Err(obstacle)) => *note = note.take().or_else(|| Some(obstacle.message().to_owned())),
            None => {}
        }
        Ok(self.standing(&pair, &estimated(&pair.agreed, live, self.model), Proof::Estimate))
    }

    fn standing(self, pair: &Pair<'_>, after: &Value, proof: Proof) -> Standing {
        let (mut differences, mut fields) = pair.differences(after, &self.policies.conflicts);
        for difference in &mut differences {
            difference.estimated = proof == Proof::Estimate;
        }
        fields.retain(|field| matches!(field.verdict, Verdict::Yielded | Verdict::Ignored));
        Standing::Found { differences, fields, proof }
    }
}
