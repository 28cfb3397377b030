//! A round in which nothing has changed: not what is wanted, not what is there, not what is owned.
//!
//! It is known from metadata alone. Nothing is rendered, no object is read, and what is reported is what was true after
//! the last round, but for the health of what has moved since.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::health::pods::Count;
use gatewright_engine::kinds::has_pods;
use gatewright_engine::object::ObjectId;

use super::kept;
use crate::cluster::{Cluster, ClusterError};
use crate::inventory::audit::Audit;
use crate::inventory::store;
use crate::reconcile::addressed::are_as_copied;
use crate::reconcile::cache::{Cache, CachedObject, LastRound, NoChange};
use crate::reconcile::health_snapshot::snapshots;
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::model::{Conclusion, RoundSettings};
use crate::reconcile::rollout::Turn;
use crate::report::action::StepAction;
use crate::report::{ClusterReport, ClusterState, Mode, Saved, StepReport, UnitReport, UnitState};

/// Concludes a round, if there is nothing to do.
pub(super) async fn conclude(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    last_round: &LastRound,
    metadata: &MetadataView,
) -> Result<Option<Conclusion>, ClusterError> {
    let LastRound { cache, no_change: Some(no_change) } = last_round else { return Ok(None) };
    let is_whole = settings.policies.only.is_none() && settings.policies.pinned.is_none();
    let is_same_want = is_whole && settings.want.key().as_ref() == Some(&no_change.key);
    let is_same_key = settings.audit.as_ref().and_then(Audit::key_id) == no_change.signed_by;
    if !is_same_want || !is_same_key || metadata.is_older_than(&cache.versions) || !is_untouched(cache, metadata) {
        return Ok(None);
    }
    let head = store::head(cluster, settings.sync()).await?;
    let Some(head) = head.filter(|head| head.version == no_change.inventory) else { return Ok(None) };
    kept::read(settings, &head.inventory, head.rollouts.as_deref()).await;
    if !are_as_copied(cluster, &cache.objects, no_change, metadata).await? {
        return Ok(None);
    }
    let snapshots = snapshots(cluster, settings, cache.objects.iter(), metadata).await?;
    let mut seen = Cache::clone(cache);
    for cached in &mut seen.objects {
        if let Some((metadata, date)) = metadata.of(&cached.id, &cached.gvk) {
            cached.see(metadata, date);
        }
        cached.health = snapshots.get(&cached.id).cloned().unwrap_or_default();
    }
    seen.versions.extend(metadata.versions());
    let asks_for_health = settings.wait_policy.is_some() && cluster.has_health();
    let units = units(no_change, &seen.objects, asks_for_health);
    let on_the_way = settings.turn.as_ref().map(Turn::on_the_way).unwrap_or_default();
    if units.iter().any(|unit| unit.state == UnitState::Unhealthy && on_the_way.contains(&unit.unit)) {
        // An earlier round did not live to see how it went: this one waits for it.
        return Ok(None);
    }
    let state = if settings.mode == Mode::Plan { ClusterState::Planned } else { ClusterState::Done };
    let steps = seen.objects.iter().map(step).collect();
    let saved = Saved { identity: cache.cluster.clone(), steps: Vec::new() };
    let broken = no_change.broken.clone();
    let report = ClusterReport { state, steps, units, broken, saved, ..ClusterReport::default() };
    let no_change = Some(NoChange { units: report.units.clone(), ..no_change.clone() });
    let seen = LastRound { cache: Arc::new(seen), no_change };
    let is_new = seen != *last_round;
    Ok(Some(Conclusion { report, last_round: Some(seen), is_new, is_suspect: false, rendering: None }))
}

fn is_untouched(cache: &Cache, metadata: &MetadataView) -> bool {
    cache.objects.iter().all(|cached| {
        let was_looked_at = metadata.kinds.contains_key(&cached.gvk);
        was_looked_at && metadata.objects.get(&cached.id).is_some_and(|seen| cached.agrees(seen))
    })
}

/// The units as they were, with the state that their objects are in now.
fn units(no_change: &NoChange, cache: &[CachedObject], asks_for_health: bool) -> Vec<UnitReport> {
    let mut of_unit: BTreeMap<&ObjectId, Vec<&CachedObject>> = BTreeMap::new();
    for cached in cache {
        of_unit.entry(&cached.unit).or_default().push(cached);
    }
    let unit = |unit: &UnitReport| {
        let cache = of_unit.get(&unit.unit).map(Vec::as_slice).unwrap_or_default();
        let sick =
            cache.iter().filter(|_| asks_for_health).find_map(|cached| Some((cached, cached.health.sick.as_ref()?)));
        let service = cache.iter().find(|cached| !cached.health.addresses.is_empty());
        UnitReport {
            state: if sick.is_some() { UnitState::Unhealthy } else { UnitState::Current },
            message: sick.map(|(cached, what)| format!("{}: {what}", cached.id)),
            addresses: service.map(|cached| cached.health.addresses.clone()).unwrap_or_default(),
            pods: pods(cache),
            unawaited: if asks_for_health { None } else { cache.iter().find_map(|cached| unwell(cached)) },
            ..unit.clone()
        }
    };
    no_change.units.iter().map(unit).collect()
}

fn pods(cache: &[&CachedObject]) -> Option<Count> {
    let workloads = cache.iter().filter(|cached| has_pods(&cached.id.kind));
    workloads.map(|cached| cached.health.counted()).reduce(|a, b| Some(a? + b?)).flatten()
}

fn unwell(cached: &CachedObject) -> Option<String> {
    Some(format!("{}: {}", cached.id, cached.health.unwell()?))
}

fn step(cached: &CachedObject) -> StepReport {
    let step = StepReport::new(cached.unit.clone(), cached.id.clone(), StepAction::Unchanged, cached.note.clone());
    StepReport { fields: cached.fields.clone(), ..step }
}
