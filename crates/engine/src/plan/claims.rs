//! The objects that our other syncs want on a cluster: what moves to one of them is handed over to it, and never
//! deleted.
//!
//! A commit that moves a spec from one sync to another is seen by the two at different times. Whichever goes first, the
//! object stays: the one that has it lets go of it only when the other has marked it, and the other takes it only when
//! it is certain that the first does not want it any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::guard::in_use::named;
use crate::inventory::Entry;
use crate::kinds;
use crate::object::{Object, ObjectId};
use crate::problem::{Scope, unreadable_files};
use crate::reading::Reading;
use crate::unit::{Rendering, Unit};

/// The objects that each of our other syncs wants on a cluster, by its name.
///
/// A sync that is configured and has nothing to do with the cluster wants nothing there; one that is not configured at
/// all is not in here, because nobody knows what becomes of its objects.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The syncs, by name.
    pub syncs: BTreeMap<String, Claim>,
    /// Those that only report. They adopt nothing, so nothing is handed over to them; but what bears their mark and
    /// stands in their source is not given up by that.
    pub reports: BTreeSet<String>,
}

/// The objects that one sync wants on a cluster.
#[derive(Clone, Debug)]
pub enum Claim {
    /// The wanted objects, as its source says.
    Known(Arc<Wanted>),
    /// Its source cannot be read, and why: it may want anything.
    Unknown(String),
}

/// The statement of a rendering about who wants what.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The objects that it wants.
    objects: BTreeSet<ObjectId>,
    /// Specs that are there and cannot be rendered: what belongs to them may be wanted.
    broken: BTreeSet<ObjectId>,
    /// Objects that stand in the source without being wanted: they are not deleted for want of a setting.
    mentioned: BTreeSet<ObjectId>,
    /// Specs that are there and leave what was made for them to somebody else.
    left: BTreeSet<ObjectId>,
    /// The reason why it may want anything at all.
    unclear: Option<String>,
    /// The evidence of its source about specs that are not there.
    reading: Reading,
    /// The objects that its pods and listeners need, each with what refers to it.
    uses: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
}

impl Wanted {
    /// Reads it off a rendering.
    pub fn of(rendering: &Rendering, kinds: &kinds::Table) -> Self {
        let mut uses: BTreeMap<ObjectId, BTreeSet<ObjectId>> = BTreeMap::new();
        for object in rendering.units.iter().flat_map(Unit::all) {
            for id in named(object, kinds) {
                uses.entry(id).or_default().insert(object.id().clone());
            }
        }
        for (by, id) in rendering.open.named() {
            uses.entry(id.clone()).or_default().insert(by.clone());
        }
        Self {
            objects: rendering.units.iter().flat_map(objects).collect(),
            broken: rendering.broken.clone(),
            mentioned: rendering.documents.union(&rendering.self_managed).cloned().collect(),
            left: rendering.self_managed.union(&rendering.passed_on).cloned().collect(),
            unclear: unclear(rendering),
            reading: rendering.reading.clone(),
            uses,
        }
    }

    /// Says why it cannot be known whether an object of a unit is wanted, if it cannot.
    fn may_claim(&self, id: &ObjectId, unit: &ObjectId) -> Option<String> {
        if self.broken.contains(id) || self.broken.contains(unit) {
            return Some(format!("its spec {unit} is broken"));
        }
        let near_miss = self.reading.near_miss(unit).map(|unclear| unclear.to_string());
        near_miss.or_else(|| self.unclear.clone())
    }

    /// Says why an object that its sync has made may be its business still, whatever the spec is called that wants it now.
    fn may_keep(&self, id: &ObjectId, entry: &Entry) -> Option<String> {
        if self.left.contains(&entry.unit) && *id != entry.unit {
            return Some(format!("its spec {} leaves it to somebody else", entry.unit));
        }
        let mut files = entry.files.iter().filter(|file| !self.reading.ignored.contains(file.as_str()));
        let unclear = files.find_map(|file| self.reading.unclear_file(file));
        self.may_claim(id, &entry.unit).or_else(|| unclear.map(|unclear| unclear.to_string()))
    }

    fn mention(&self, id: &ObjectId, unit: &ObjectId) -> Option<String> {
        let is_mentioned = self.mentioned.contains(id) || self.mentioned.contains(unit);
        is_mentioned.then(|| "it stands in its source, and is not written".to_owned())
    }
}

/// A file that cannot be read may speak of anything, and so may a source in which nothing is found but a mistake.
fn unclear(rendering: &Rendering) -> Option<String> {
    let file = unreadable_files(&rendering.problems).first().map(|file| format!("{file} cannot be read"));
    let problem = rendering.problems.iter().find(|problem| problem.scope != Scope::Warning);
    let lost = problem.filter(|_| rendering.documents.is_empty()).map(ToString::to_string);
    file.or(lost)
}

/// The objects of a unit; of one whose kind is not known here, it may be in a namespace or in none.
fn objects(unit: &Unit) -> impl Iterator<Item = ObjectId> {
    let places = unit.home.iter().flat_map(|home| ["", home.as_str()]).flat_map(|namespace| {
        let place = |object: &Object| object.id().within(namespace);
        unit.objects.iter().map(place)
    });
    unit.all().map(|object| object.id().clone()).chain(places)
}

impl Claim {
    fn wants(&self, id: &ObjectId) -> bool {
        matches!(self, Self::Known(wanted) if wanted.objects.contains(id))
    }

    /// Says why an object of a unit may be wanted without being rendered.
    fn may_claim(&self, id: &ObjectId, unit: &ObjectId) -> Option<String> {
        match self {
            Self::Unknown(why) => Some(why.clone()),
            Self::Known(wanted) => wanted.may_claim(id, unit).or_else(|| wanted.mention(id, unit)),
        }
    }
}

impl Claims {
    /// Tells whether a sync is configured beside this one.
    pub fn is_known(&self, sync: &str) -> bool {
        self.syncs.contains_key(sync)
    }

    /// Returns the syncs to which is handed over what they want.
    fn takers(&self) -> impl Iterator<Item = (&str, &Claim)> {
        let takers = self.syncs.iter().filter(|(sync, _)| !self.reports.contains(*sync));
        takers.map(|(sync, claim)| (sync.as_str(), claim))
    }

    /// Returns the sync that is going to have an object, because it wants it.
    pub fn by(&self, id: &ObjectId) -> Option<&str> {
        self.takers().find(|(_, claim)| claim.wants(id)).map(|(sync, _)| sync)
    }

    /// Returns what refers to an object for its pods or listeners and is going to be there, in words. A sync that only reports makes
    /// nothing; what somebody else has made of its source shows in pods.
    pub(crate) fn users(&self, id: &ObjectId) -> impl Iterator<Item = String> {
        self.takers().flat_map(move |(sync, claim)| {
            let uses = if let Claim::Known(wanted) = claim { wanted.uses.get(id) } else { None };
            uses.into_iter().flatten().map(move |user| format!("{user} of sync {sync:?}"))
        })
    }

    /// Says which sync may be going to have an object of a unit, and why that is not certain.
    pub(crate) fn possibly(&self, id: &ObjectId, unit: &ObjectId) -> Option<String> {
        self.takers()
            .find_map(|(sync, claim)| claim.may_claim(id, unit).map(|why| format!("sync {sync:?} may want it: {why}")))
    }

    /// Tells whether an object of a unit is the business of a sync, or may be, also of one that only reports.
    pub fn concerns(&self, id: &ObjectId, unit: &ObjectId) -> bool {
        self.syncs.values().any(|claim| claim.wants(id) || claim.may_claim(id, unit).is_some())
    }

    /// Tells whether a sync has certainly given up an object of a unit; if not, why. Its inventory says for which unit it
    /// has made that, which may be another one.
    ///
    /// A sync that is not configured has given up nothing.
    pub(crate) fn is_given_up(
        &self,
        sync: &str,
        (id, unit): (&ObjectId, &ObjectId),
        entry: Option<&Entry>,
    ) -> Result<bool, String> {
        match self.syncs.get(sync) {
            None => Ok(false),
            Some(Claim::Unknown(why)) => Err(format!("which may want it: {why}")),
            Some(Claim::Known(wanted)) if wanted.objects.contains(id) => Err("which wants it too".to_owned()),
            Some(Claim::Known(wanted)) => {
                match wanted.may_claim(id, unit).or_else(|| entry.and_then(|entry| wanted.may_keep(id, entry))) {
                    Some(why) => Err(format!("which may want it: {why}")),
                    None => Ok(true),
                }
            }
        }
    }
}
