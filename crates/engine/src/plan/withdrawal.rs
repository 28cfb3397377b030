//! Withdrawal: the evidence that a deletion needs, and the only place where it is made.
//!
//! A unit is withdrawn only if every file that fed it is gone, in a reading that saw everything at and above its path, or
//! is still there, was read whole, and holds at least one document and none that nobody understands; and if no document
//! anywhere is a near miss for it. What cannot replace it, because it is refused or broken, is an open change, and what
//! may depend on that waits. Everything else holds: a person reads the reason and approves it, or mends the source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::guard::token::HeldStep;
use super::guard::{Guard, Hold};
use super::refusal::{Reason, Refusal};
use super::{Action, Inputs, Over, Plan, Step};
use crate::inventory::{Entry, Inventory};
use crate::kinds::{self, row::Wave};
use crate::object::ObjectId;
use crate::overlay::idle::Idle;
use crate::problem::Place;
use crate::reading::{Reading, Suspect, Unclear, is_slip};
use crate::text::count;
use crate::unit::{Rendering, Unit};

/// The most reasons that are named.
const NAMED: usize = 3;

/// The proof that an object may be deleted: nobody wants it any more, or a person has approved it. Only this module makes
/// one, so that no deletion can be planned without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn(());

/// A deletion: of which live object, and by which proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The live object.
    pub over: Over,
    _proof: Withdrawn,
}

/// Something that may be deleted if its unit is withdrawn.
pub(super) struct Candidate<'a> {
    pub(super) id: &'a ObjectId,
    pub(super) entry: &'a Entry,
    pub(super) over: Over,
}

/// Everything that speaks for or against a withdrawal, looked up once for all units.
pub(super) struct Evidence<'a> {
    reading: &'a Reading,
    /// The files that fed each unit.
    files: BTreeMap<&'a ObjectId, BTreeSet<&'a str>>,
    /// The overlays that fed each unit, with the digests of their selections.
    overlays: BTreeMap<&'a ObjectId, BTreeSet<(&'a str, &'a str)>>,
    /// Those that have no say here, or name what is not there.
    idle: &'a BTreeMap<String, Idle>,
    /// The units that are wanted.
    wanted: BTreeMap<&'a ObjectId, &'a Unit>,
    /// The specs that are there, and of which nothing is rendered.
    unrendered: &'a BTreeMap<ObjectId, (Place, String)>,
    /// The documents of which nobody knows what they are, by file.
    unclear: BTreeMap<&'a str, Vec<&'a Suspect>>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(rendering: &'a Rendering, owned: &'a Inventory) -> Self {
        let mut files: BTreeMap<&ObjectId, BTreeSet<&str>> = BTreeMap::new();
        let mut overlays: BTreeMap<&ObjectId, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for entry in owned.entries.values() {
            files.entry(&entry.unit).or_default().extend(entry.files.iter().map(String::as_str));
            let said = entry.overlays.iter().map(|(name, selection)| (name.as_str(), selection.as_str()));
            overlays.entry(&entry.unit).or_default().extend(said);
        }
        let mut unclear: BTreeMap<&str, Vec<&Suspect>> = BTreeMap::new();
        for suspect in rendering.reading.suspects.iter().filter(|suspect| suspect.flaw.is_unclear()) {
            unclear.entry(&suspect.place.file).or_default().push(suspect);
        }
        let wanted = rendering.units.iter().map(|unit| (&unit.id, unit)).collect();
        let (reading, idle, unrendered) = (&rendering.reading, &rendering.idle_overlays, &rendering.unrendered);
        Self { reading, files, overlays, idle, wanted, unrendered, unclear }
    }

    /// Tells whether a unit was withdrawn, or what of it that is not wanted any more.
    pub(super) fn of(&self, unit: &ObjectId) -> Result<Withdrawn, BTreeSet<Unclear>> {
        let files = self.files.get(unit).into_iter().flatten();
        let mut unclear: BTreeSet<Unclear> = files.filter_map(|file| self.reading.unclear_file(file)).collect();
        // Nobody has taken it out: another class, or a pack that is missing, is the reason that nothing wants its objects.
        let unrendered = self.unrendered.get(unit).cloned();
        unclear.extend(unrendered.map(|(place, why)| Unclear { place, why }));
        // A unit that is there is not what another document was meant to be.
        if let Some(unit) = self.wanted.get(unit) {
            unclear.extend(self.lost_overlays(unit));
        } else {
            unclear.extend(self.reading.near_miss(unit));
            unclear.extend(self.reading.unplaced(unit));
            // What fed something before is known for that; anything else that was not read may hold a moved spec.
            unclear.extend(self.reading.unread_anywhere(|path| self.has_fed(path)));
        }
        if unclear.is_empty() { Ok(Withdrawn(())) } else { Err(unclear) }
    }

    fn has_fed(&self, path: &str) -> bool {
        self.files.values().any(|files| files.contains(path))
    }

    /// Returns why a unit that is wanted stays as it is: a file that had a say in it says nothing that can be understood
    /// now, so that without it the unit would become something else than what the source says.
    pub(super) fn lost_inputs(&self, unit: &Unit) -> BTreeMap<Arc<str>, Unclear> {
        let files = self.files.get(&unit.id).into_iter().flatten();
        files.filter_map(|file| Some((Arc::from(*file), self.lost_input(unit, file)?))).collect()
    }

    /// Returns the overlays that had a say in a unit, are still there, and have none any more for a reason that nobody may
    /// have meant: they name what is not there, or it is not they that were changed but the cluster.
    pub(super) fn lost_overlays(&self, unit: &Unit) -> BTreeSet<Unclear> {
        let files = self.files.get(&unit.id).into_iter().flatten().filter(|file| !unit.files.contains(**file));
        let left_out = files.filter_map(|file| self.reading.left_out(file));
        let fed = self.overlays.get(&unit.id).into_iter().flatten();
        let gone = fed.filter(|(name, _)| !unit.overlays.contains_key(*name));
        gone.filter_map(|(name, selection)| self.lost_overlay(name, selection)).chain(left_out).collect()
    }

    fn lost_overlay(&self, name: &str, selection: &str) -> Option<Unclear> {
        let idle = self.idle.get(name)?;
        let why = match &idle.lost {
            Some(lost) => lost.clone(),
            None if idle.selection.as_deref() == Some(selection) => {
                "it does not select the cluster by the name and the labels that it has now".to_owned()
            }
            None => return None,
        };
        Some(Unclear { place: idle.place.clone(), why: format!("ClusterOverlay {name}: {why}") })
    }

    fn lost_input(&self, unit: &Unit, file: &str) -> Option<Unclear> {
        // Somebody has left it out on purpose.
        if self.reading.ignored.contains(file) {
            return None;
        }
        let may_feed = |suspect: &&&Suspect| !suspect.is_of_kind(&unit.id.kind);
        if let Some(suspect) = self.unclear.get(file).into_iter().flatten().find(may_feed) {
            return Some(suspect.unclear());
        }
        let is_clear = self.unclear.contains_key(file);
        self.reading.unclear_file(file).filter(|_| !is_clear)
    }
}

impl Suspect {
    /// Tells whether it was certainly meant as an object of a kind: such an object feeds no other of its kind.
    fn is_of_kind(&self, kind: &str) -> bool {
        self.kind.as_deref().is_some_and(|said| is_slip(said, kind))
    }
}

/// Plans deletions where they are proven or approved, and holds the others, unit by unit.
pub(super) fn plan_deletions(
    plan: &mut Plan,
    candidates: BTreeMap<&ObjectId, Vec<Candidate<'_>>>,
    evidence: &Evidence<'_>,
    inputs: Inputs<'_>,
) {
    for (unit, candidates) in candidates {
        let proof = evidence.of(unit).or_else(|unclear| {
            let hold = hold(unit, candidates.iter().map(Candidate::held).collect(), &unclear);
            if plan.stops(hold, inputs) { Err(()) } else { Ok(Withdrawn(())) }
        });
        match proof {
            Ok(proof) => plan.steps.extend(candidates.into_iter().map(|candidate| candidate.step(&proof))),
            Err(()) => plan.refusals.extend(candidates.into_iter().map(|candidate| Refusal {
                unit: unit.clone(),
                id: candidate.id.clone(),
                reason: Reason::Held(Guard::Withdrawal),
            })),
        }
    }
}

impl Candidate<'_> {
    fn held(&self) -> HeldStep {
        HeldStep { id: self.id.clone(), action: "prune".to_owned(), uid: Some(self.over.uid.clone()), wanted: None }
    }

    fn step(self, proof: &Withdrawn) -> Step {
        let action = Action::Prune(Deletion { over: self.over, _proof: proof.clone() });
        Step::new(&self.entry.unit, self.id, self.entry.gvk.clone(), action)
    }
}

fn hold(unit: &ObjectId, steps: Vec<HeldStep>, unclear: &BTreeSet<Unclear>) -> Hold {
    let message = format!(
        "{} would be deleted, and it is not certain that {unit} was withdrawn: {}",
        count(steps.len(), "object"),
        in_words(unclear)
    );
    let hint = "correct the source; if all of this is to be deleted, approve it";
    Hold::on_unit(Guard::Withdrawal, unit, message, hint, steps)
}

pub(super) fn in_words(unclear: &BTreeSet<Unclear>) -> String {
    let mut reasons: Vec<String> = unclear.iter().take(NAMED).map(ToString::to_string).collect();
    if unclear.len() > NAMED {
        reasons.push(format!("and {} more", unclear.len() - NAMED));
    }
    reasons.join("; ")
}

/// A change that did not come about: something was refused or is broken.
struct Open<'a> {
    unit: &'a ObjectId,
    files: BTreeSet<&'a str>,
    /// Nothing of it is owned yet, so that it may be another unit under a new name.
    is_new: bool,
    why: Unclear,
}

/// Holds the deletion of units that may be replaced by what was refused or is broken.
pub(super) fn hold_replaced(plan: &mut Plan, inputs: Inputs<'_>) {
    let mut units: BTreeMap<ObjectId, Vec<HeldStep>> = BTreeMap::new();
    for step in plan.prunes().filter(|step| !plan.is_approved(&step.unit)) {
        units.entry(step.unit.clone()).or_default().push(inputs.held(step));
    }
    for (unit, unclear) in replaced(plan, &units.keys().collect(), inputs) {
        let steps = units.remove(&unit).unwrap_or_default();
        if plan.stops(hold(&unit, steps, &unclear), inputs) {
            plan.withhold(|step| step.unit == unit, &Reason::Held(Guard::Withdrawal));
        }
    }
}

/// Says of units whose deletion waits for approval already what may replace them: one more thing to know.
pub(super) fn tell_replaced(plan: &mut Plan, inputs: Inputs<'_>) {
    let waiting = plan.holds.iter().filter(|hold| hold.guard == Guard::Confirm).filter_map(|hold| hold.unit.as_ref());
    for (unit, unclear) in replaced(plan, &waiting.collect(), inputs) {
        let held = plan.holds.iter_mut().filter(|hold| hold.guard == Guard::Confirm);
        for hold in held.filter(|hold| hold.unit.as_ref() == Some(&unit)) {
            hold.message = format!("{}; {}", hold.message, in_words(&unclear));
        }
    }
}

/// Returns what is open of all that the deletion of each of some units may depend on.
fn replaced(
    plan: &Plan,
    units: &BTreeSet<&ObjectId>,
    Inputs { rendering, owned, policies, .. }: Inputs<'_>,
) -> Vec<(ObjectId, BTreeSet<Unclear>)> {
    if units.is_empty() {
        return Vec::new();
    }
    let open = open(plan, rendering, owned);
    let of = |unit: &ObjectId| {
        let of_unit = owned.entries.values().filter(|entry| entry.unit == *unit);
        let files: BTreeSet<&str> = of_unit.flat_map(|entry| entry.files.iter().map(String::as_str)).collect();
        let unclear =
            open.iter().filter(|open| open.may_replace(unit, &files, &policies.kinds)).map(|open| open.why.clone());
        (unit.clone(), unclear.collect::<BTreeSet<Unclear>>())
    };
    units.iter().map(|unit| of(unit)).filter(|(_, unclear)| !unclear.is_empty()).collect()
}

fn open<'a>(plan: &Plan, rendering: &'a Rendering, owned: &Inventory) -> Vec<Open<'a>> {
    let known = owned.units();
    let refused: BTreeMap<&ObjectId, &Refusal> =
        plan.refusals.iter().rev().map(|refusal| (&refusal.id, refusal)).collect();
    let units = rendering.units.iter().filter_map(|unit| {
        let refusals = unit.all().filter_map(|object| refused.get(object.id()));
        // The object that is the reason says more than those that wait for it.
        let refusal = refusals.min_by_key(|refusal| matches!(refusal.reason, Reason::UnitHeld))?;
        let why = format!("{} may take its place and is refused: {}: {}", unit.id, refusal.id, refusal.reason);
        let files = unit.files.iter().map(AsRef::as_ref).collect();
        let why = Unclear { place: unit.place.clone(), why };
        Some(Open { unit: &unit.id, files, is_new: !known.contains(&unit.id), why })
    });
    let broken = rendering.flawed.iter().map(|(id, place): (&ObjectId, &Place)| {
        let why = Unclear { place: place.clone(), why: format!("{id} may take its place and is broken") };
        Open { unit: id, files: BTreeSet::from([place.file.as_ref()]), is_new: !known.contains(id), why }
    });
    units.chain(broken).collect()
}

impl Open<'_> {
    fn may_replace(&self, unit: &ObjectId, files: &BTreeSet<&str>, kinds: &kinds::Table) -> bool {
        let is_of_file = !self.files.is_disjoint(files);
        if self.unit == unit {
            return false;
        }
        // A unit that was there before takes the place of another only if they belong together.
        let is_alike = self.unit.name == unit.name || self.is_new && is_near(self.unit, unit, kinds);
        is_of_file || is_alike
    }
}

/// Tells whether two units may depend on each other: they share a namespace, or one is what others need.
pub fn is_near(one: &ObjectId, other: &ObjectId, kinds: &kinds::Table) -> bool {
    let is_needed = |unit: &ObjectId| kinds.wave(unit) < Wave::Unit;
    one.namespace == other.namespace || is_needed(one) || is_needed(other)
}
