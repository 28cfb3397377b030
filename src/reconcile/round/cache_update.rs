//! What a round leaves behind for the next: which objects are exactly what is wanted, and how that is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::health::Demands;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::conflicts::{Settled as Field, Verdict};
use gatewright_engine::plan::{Action, Step};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;

use super::fast_path::Settled;
use super::{Here, Memory, View};
use crate::cluster::Cluster;
use crate::desired::rendering::Want;
use crate::inventory::audit::Witness;
use crate::inventory::store::Ledger;
use crate::reconcile::apply::Applied;
use crate::reconcile::cache::{Note, Notes, Vital};
use crate::reconcile::observe::metadata::Sight;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, UnitReport, UnitState};

/// Traces that are younger are not relied on, so that to look for them sooner is of no use.
const SETTLING: Duration = Duration::from_secs(6);

/// Notes of a round that changed nothing, because it was not to. A plan for what no source says leaves them as they are.
pub(super) fn planned(here: &Here<'_>, view: &View, ledger: &Ledger, report: &ClusterReport) -> Option<Memory> {
    if matches!(here.task.want, Want::Ready(_)) {
        return None;
    }
    finished(here, view, &Applied::default(), &view.observed.live, (ledger, report), None)
}

/// Notes in the middle of a round, for its next look.
pub(super) fn so_far(here: &Here<'_>, view: &View, applied: &Applied) -> Notes {
    Noting { here, view, applied, live: &applied.live, closing: None }.notes()
}

/// Looks at the metadata of what was written, if that was long enough ago: controllers have reported since, and what
/// they did not touch need not be compared again.
pub(super) async fn closing(
    cluster: &dyn Cluster,
    here: &Here<'_>,
    view: &View,
    applied: &Applied,
    written: Instant,
) -> Option<Sight> {
    let steps = view.plan.steps.iter().filter(|step| applied.live.contains_key(&step.id));
    let objects: BTreeMap<ObjectId, Gvk> = steps.map(|step| (step.id.clone(), step.gvk.clone())).collect();
    let is_of_use = written.elapsed() >= SETTLING && applied.lost.is_none() && here.task.undo.is_none();
    if objects.is_empty() || !is_of_use {
        return None;
    }
    // Without it the next round has more to do, and that is all.
    Sight::default().widened(cluster, &objects, &here.task.policies.marker).await.ok().flatten()
}

/// Notes after a round; `None` where there are no metadata to go by, and after an undo: what that wants is not what the
/// next round wants.
pub(super) fn finished(
    here: &Here<'_>,
    view: &View,
    applied: &Applied,
    live: &BTreeMap<ObjectId, Live>,
    (ledger, report): (&Ledger, &ClusterReport),
    closing: Option<&Sight>,
) -> Option<Memory> {
    if !view.observed.carries_marks || here.task.undo.is_some() {
        return None;
    }
    let notes = Noting { here, view, applied, live, closing }.notes();
    let settled = settled(here, view, applied, &notes, (ledger, report));
    Some(Memory { notes, settled })
}

/// What a round after which there is nothing left to do was about.
fn settled(
    here: &Here<'_>,
    view: &View,
    applied: &Applied,
    notes: &Notes,
    (ledger, report): (&Ledger, &ClusterReport),
) -> Option<Settled> {
    let (task, plan) = (here.task, &view.plan);
    let right: BTreeSet<&ObjectId> = notes.objects.iter().map(|note| &note.id).collect();
    let is_over = |step: &Step| match step.action {
        Action::Prune(_) | Action::ReleaseFirst(_) => {
            applied.outcomes.get(&step.id) == Some(&Outcome::Done) && !applied.going.contains(&step.id)
        }
        Action::CreateNamespace => applied.outcomes.get(&step.id) == Some(&Outcome::Done),
        Action::Release(_) | Action::Forget | Action::Omit => false,
        Action::Create
        | Action::Update(_)
        | Action::Adopt(_)
        | Action::TakeOver(_)
        | Action::Generate(_)
        | Action::Recreate(_)
        | Action::Keep => right.contains(&step.id),
    };
    let is_settled = task.policies.only.is_none()
        && plan.refusals.is_empty()
        && plan.holds.is_empty()
        && plan.steps.iter().all(is_over)
        && applied.lost.is_none();
    if !is_settled {
        return None;
    }
    let units = report.units.iter().filter(|unit| unit.state != UnitState::Pruned);
    let current = |unit: &UnitReport| match unit.state {
        UnitState::Changed => UnitReport { state: UnitState::Current, ..unit.clone() },
        _ => unit.clone(),
    };
    let rendering = &here.place.rendering;
    Some(Settled {
        key: task.want.key()?,
        inventory: ledger.version()?.to_owned(),
        sealed_by: task.witness.and_then(Witness::key_id),
        units: units.map(current).collect(),
        broken: rendering.broken.clone(),
        problems: rendering.problems.clone(),
        unclaimed: rendering.unclaimed.iter().map(Into::into).collect(),
    })
}

/// What will still be so of a field in the next round; what was handed over is left to its new owner then.
fn lasting(field: &Field) -> Option<Field> {
    match field.verdict {
        Verdict::Yielded | Verdict::HandedOver => Some(Field { verdict: Verdict::Yielded, ..field.clone() }),
        Verdict::Ignored => Some(field.clone()),
        Verdict::Taken | Verdict::Removed | Verdict::Migrated | Verdict::Fighting => None,
    }
}

/// What notes are made from.
struct Noting<'a> {
    here: &'a Here<'a>,
    view: &'a View,
    applied: &'a Applied,
    /// The newest state of objects.
    live: &'a BTreeMap<ObjectId, Live>,
    /// What was seen at the end.
    closing: Option<&'a Sight>,
}

impl Noting<'_> {
    fn notes(&self) -> Notes {
        let mut notes = Notes::on(&self.here.place.identity);
        let memory = self.here.task.memory.map(|memory| &memory.notes);
        let old = memory.filter(|notes| notes.are_about(&self.here.place.identity));
        let known = old.map(Notes::by_object).unwrap_or_default();
        notes.versions = self.view.sight.as_ref().map(Sight::versions).unwrap_or_default();
        notes.proven = old.and_then(|notes| notes.proven);
        notes.objects =
            self.view.plan.steps.iter().filter_map(|step| self.note(step, known.get(&step.id).copied())).collect();
        if self.here.task.policies.only.is_some() {
            // Of the rest nothing was asked.
            let planned: BTreeSet<&ObjectId> = self.view.plan.steps.iter().map(|step| &step.id).collect();
            let others = known.into_values().filter(|note| !planned.contains(&note.id)).cloned();
            notes.objects.extend(others);
        }
        notes
    }

    /// Makes a note of an object that is as it should be.
    fn note(&self, step: &Step, known: Option<&Note>) -> Option<Note> {
        // What rests from a fight is not what is wanted.
        if step.fields.iter().any(|field| field.verdict == Verdict::Fighting) {
            return None;
        }
        let is_kept = step.action == Action::Keep && !self.applied.outcomes.contains_key(&step.id);
        let written = self.applied.live.get(&step.id);
        if self.view.observed.unchanged.contains(&step.id) && written.is_none() {
            let mut note = known?.clone();
            let (metadata, date) = self.view.sight.as_ref()?.of(&step.id, &step.gvk)?;
            note.see(metadata, date);
            note.vital = self.view.vitals.get(&step.id).cloned().unwrap_or_default();
            return Some(note);
        }
        let live = written.or_else(|| self.view.observed.live.get(&step.id).filter(|_| is_kept))?;
        let metadata = Metadata::deserialize(&live.object.body()["metadata"]).ok()?;
        let seen = self.view.sight.as_ref().and_then(|sight| sight.kinds.get(&step.gvk)?.date);
        let date: Option<Timestamp> = seen.filter(|_| written.is_none());
        let newest = self.live.get(&step.id).unwrap_or(live);
        let mut note = Note {
            id: step.id.clone(),
            gvk: step.gvk.clone(),
            unit: step.unit.clone(),
            uid: live.uid.clone(),
            version: live.resource_version.clone(),
            fingerprint: Note::traces(&metadata, date),
            wanted: self.here.place.digests.get(&step.id)?.clone(),
            fields: step.fields.iter().filter_map(lasting).collect(),
            remark: step.note.clone(),
            vital: Vital::of(newest, self.demands()),
        };
        if let Some((seen, date)) = self.closing.and_then(|sight| sight.of(&step.id, &step.gvk)) {
            let traces = self.applied.traces.get(&step.id).cloned();
            note.see_again(&traces.unwrap_or_else(|| metadata.fingerprint()), seen, date);
        }
        Some(note)
    }

    fn demands(&self) -> Demands {
        self.here.task.patience.map(|patience| patience.demands).unwrap_or_default()
    }
}
