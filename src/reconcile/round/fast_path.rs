//! A round in which nothing has changed: not what is wanted, not what is there, not what is owned.
//!
//! It is known from metadata alone. Nothing is rendered, no object is read, and what is reported is what was true after
//! the last round, but for the health of what has moved since.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::health::pods::Count;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::Plan;
use gatewright_engine::problem::Problem;
use serde::{Deserialize, Serialize};

use super::health_snapshot::{has_pods, vitals};
use super::{Conclusion, Memory, Task};
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::audit::Witness;
use crate::inventory::store;
use crate::reconcile::cache::{Note, Notes};
use crate::reconcile::observe::metadata::Sight;
use crate::report::{ClusterReport, ClusterState, Mode, Saved, StepReport, Unclaimed, UnitReport, UnitState};

/// A round after which there was nothing left to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// Names all that the rendering depended on.
    pub key: String,
    /// The version of the inventory.
    pub inventory: String,
    /// The key that has sealed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_by: Option<String>,
    /// The units.
    pub units: Vec<UnitReport>,
    /// Specs that have a mistake, and own nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<ObjectId>,
    /// What is wrong with the source and stands in nobody's way.
    pub problems: Vec<Problem>,
    /// Documents that no pack claims.
    pub unclaimed: Vec<Unclaimed>,
}

/// Concludes a round, if there is nothing to do.
pub(super) async fn conclude(
    cluster: &dyn Cluster,
    task: &Task<'_>,
    memory: &Memory,
    sight: &Sight,
) -> Result<Option<Conclusion>, ClusterError> {
    let Memory { notes, settled: Some(settled) } = memory else { return Ok(None) };
    let is_whole = task.policies.only.is_none() && task.policies.pinned.is_none();
    let is_same_want = is_whole && task.want.key().as_ref() == Some(&settled.key);
    let is_same_seal = task.witness.and_then(Witness::key_id) == settled.sealed_by;
    if !is_same_want || !is_same_seal || sight.is_older_than(&notes.versions) || !is_untouched(notes, sight) {
        return Ok(None);
    }
    if store::version(cluster, &task.policies.marker.sync).await?.as_ref() != Some(&settled.inventory) {
        return Ok(None);
    }
    let vitals = vitals(cluster, task, notes.objects.iter(), sight).await?;
    let mut seen = notes.clone();
    for note in &mut seen.objects {
        if let Some((metadata, date)) = sight.of(&note.id, &note.gvk) {
            note.see(metadata, date);
        }
        note.vital = vitals.get(&note.id).cloned().unwrap_or_default();
    }
    seen.versions.extend(sight.versions());
    let asks_for_health = task.patience.is_some() && cluster.has_health();
    let units = units(settled, &seen.objects, asks_for_health);
    let state = if task.mode == Mode::Plan { ClusterState::Planned } else { ClusterState::Done };
    let steps = seen.objects.iter().map(step).collect();
    let saved = Saved { identity: notes.cluster.clone(), steps: Vec::new() };
    let broken = settled.broken.clone();
    let report = ClusterReport { state, steps, units, broken, saved, ..ClusterReport::of(&Plan::default()) };
    let settled = Some(Settled { units: report.units.clone(), ..settled.clone() });
    let seen = Memory { notes: seen, settled };
    let is_new = seen != *memory;
    Ok(Some(Conclusion { report, memory: Some(seen), is_new, is_doubtful: false, rendering: None }))
}

fn is_untouched(notes: &Notes, sight: &Sight) -> bool {
    notes.objects.iter().all(|note| {
        let was_looked_at = sight.kinds.contains_key(&note.gvk);
        was_looked_at && sight.objects.get(&note.id).is_some_and(|seen| note.agrees(seen))
    })
}

/// The units as they were, with the state that their objects are in now.
fn units(settled: &Settled, notes: &[Note], asks_for_health: bool) -> Vec<UnitReport> {
    let mut of_unit: BTreeMap<&ObjectId, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        of_unit.entry(&note.unit).or_default().push(note);
    }
    let unit = |unit: &UnitReport| {
        let notes = of_unit.get(&unit.unit).map(Vec::as_slice).unwrap_or_default();
        let sick = notes.iter().filter(|_| asks_for_health).find_map(|note| Some((note, note.vital.sick.as_ref()?)));
        let service = notes.iter().find(|note| !note.vital.addresses.is_empty());
        UnitReport {
            state: if sick.is_some() { UnitState::Unhealthy } else { UnitState::Current },
            message: sick.map(|(note, what)| format!("{}: {what}", note.id)),
            addresses: service.map(|note| note.vital.addresses.clone()).unwrap_or_default(),
            pods: pods(notes),
            unawaited: if asks_for_health { None } else { notes.iter().find_map(|note| unwell(note)) },
            ..unit.clone()
        }
    };
    settled.units.iter().map(unit).collect()
}

fn pods(notes: &[&Note]) -> Option<Count> {
    let workloads = notes.iter().filter(|note| has_pods(&note.id.kind));
    workloads.map(|note| note.vital.counted()).reduce(|a, b| Some(a? + b?)).flatten()
}

fn unwell(note: &Note) -> Option<String> {
    Some(format!("{}: {}", note.id, note.vital.unwell()?))
}

fn step(note: &Note) -> StepReport {
    StepReport {
        unit: note.unit.clone(),
        id: note.id.clone(),
        action: "keep".to_owned(),
        differences: Vec::new(),
        fields: note.fields.clone(),
        note: note.remark.clone(),
        place: None,
        class: None,
        outcome: None,
        since: None,
        later: BTreeMap::new(),
    }
}
