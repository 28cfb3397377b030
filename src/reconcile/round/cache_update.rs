//! The cache update that a round leaves for the next: which objects are exactly what is wanted, and how that is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::conflicts::{FieldVerdict, Verdict};
use gatewright_engine::plan::{Action, Plan, Step};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::inventory::audit::Audit;
use crate::inventory::store::Store;
use crate::reconcile::apply::model::Applied;
use crate::reconcile::cache::{Cache, CachedObject, HealthSnapshot, LastRound, NoChange};
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::model::{Facts, RoundSettings};
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, UnitReport, UnitState};

/// Traces that are younger are not relied on, so that to look for them sooner is of no use.
const QUIESCENT: Duration = Duration::from_secs(6);

/// Looks at the metadata of what was written, if that was long enough ago: controllers have reported since, and what
/// they did not touch need not be compared again.
pub(super) async fn closing(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    plan: &Plan,
    applied: &Applied,
    written: Instant,
) -> Option<MetadataView> {
    let steps = plan.steps.iter().filter(|step| applied.live.contains_key(&step.id));
    let objects: BTreeMap<ObjectId, Gvk> = steps.map(|step| (step.id.clone(), step.gvk.clone())).collect();
    let is_of_use = written.elapsed() >= QUIESCENT && applied.lost.is_none() && settings.undo.is_none();
    if objects.is_empty() || !is_of_use {
        return None;
    }
    // Without it the next round has more to do, and that is all.
    MetadataView::default().widened(cluster, &objects, &settings.policies.marker).await.ok().flatten()
}

/// Returns what will still be so of a field in the next round; what was handed over is left to its new owner then.
fn lasting(field: &FieldVerdict) -> Option<FieldVerdict> {
    match field.verdict {
        Verdict::Yielded | Verdict::HandedOver => Some(FieldVerdict { verdict: Verdict::Yielded, ..field.clone() }),
        Verdict::Ignored => Some(field.clone()),
        Verdict::Taken | Verdict::Removed | Verdict::Migrated | Verdict::Fighting => None,
    }
}

/// The facts that a cache is made from.
pub(super) struct Basis<'a> {
    pub(super) settings: &'a RoundSettings,
    pub(super) facts: &'a Facts,
    pub(super) plan: &'a Plan,
    pub(super) applied: &'a Applied,
    /// The newest state of objects.
    pub(super) live: &'a BTreeMap<ObjectId, Live>,
    /// The metadata seen at the end.
    pub(super) closing: Option<&'a MetadataView>,
}

impl Basis<'_> {
    /// Returns what is known after a round; `None` where there are no metadata to go by, and after an undo: what that
    /// wants is not what the next round wants.
    pub(super) fn last_round(&self, store: &Store, report: &ClusterReport) -> Option<LastRound> {
        if self.facts.observed.is_unmarked || self.settings.undo.is_some() {
            return None;
        }
        let cache = self.cache();
        let no_change = self.no_change(&cache, store, report);
        Some(LastRound { cache: Arc::new(cache), no_change })
    }

    /// Returns the subject of a round after which there is nothing left to do.
    fn no_change(&self, cache: &Cache, store: &Store, report: &ClusterReport) -> Option<NoChange> {
        let Self { settings, facts, plan, applied, .. } = self;
        let right: BTreeSet<&ObjectId> = cache.objects.iter().map(|cached| &cached.id).collect();
        let is_over = |step: &Step| match step.action {
            Action::Prune(_) | Action::DeleteFirst(_) => {
                applied.outcomes.get(&step.id) == Some(&Outcome::Done) && !applied.deleting.contains(&step.id)
            }
            Action::CreateNamespace => applied.outcomes.get(&step.id) == Some(&Outcome::Done),
            Action::Release(_) | Action::Forget | Action::Omit => false,
            Action::Create
            | Action::Update(_)
            | Action::Adopt(_)
            | Action::AdoptFromDeployer(_)
            | Action::Generate(_)
            | Action::Recreate(_)
            | Action::Unchanged => right.contains(&step.id),
        };
        let is_no_change = settings.policies.only.is_none()
            && plan.refusals.is_empty()
            && plan.holds.is_empty()
            && plan.steps.iter().all(is_over)
            && applied.lost.is_none();
        if !is_no_change {
            return None;
        }
        let units = report.units.iter().filter(|unit| unit.state != UnitState::Pruned);
        let current = |unit: &UnitReport| match unit.state {
            UnitState::Changed => UnitReport { state: UnitState::Current, ..unit.clone() },
            _ => unit.clone(),
        };
        let rendering = &facts.rendering;
        Some(NoChange {
            key: settings.want.key()?,
            inventory: store.version()?.to_owned(),
            signed_by: settings.audit.as_ref().and_then(Audit::key_id),
            units: units.map(current).collect(),
            broken: rendering.broken.clone(),
            problems: rendering.problems.clone(),
            copied_addresses: facts.service_addresses.clone(),
            unclaimed: rendering.unclaimed.iter().map(Into::into).collect(),
        })
    }

    /// Returns the notes on the objects, which are all that the next look of the same round needs.
    pub(super) fn cache(&self) -> Cache {
        let Self { settings, facts, plan, .. } = self;
        let mut cache = Cache::on(&facts.identity);
        let last_round = settings.last_round.as_ref().map(|last_round| &*last_round.cache);
        let old = last_round.filter(|cache| cache.are_about(&facts.identity));
        let known = old.map(Cache::by_object).unwrap_or_default();
        cache.versions = facts.metadata.as_ref().map(MetadataView::versions).unwrap_or_default();
        cache.proven = old.and_then(|cache| cache.proven);
        cache.objects = plan.steps.iter().filter_map(|step| self.cached(step, known.get(&step.id).copied())).collect();
        if settings.policies.only.is_some() {
            // Of the rest nothing was asked.
            let planned: BTreeSet<&ObjectId> = plan.steps.iter().map(|step| &step.id).collect();
            let others = known.into_values().filter(|cached| !planned.contains(&cached.id)).cloned();
            cache.objects.extend(others);
        }
        cache
    }

    /// Returns what is cached of an object that is as it should be.
    fn cached(&self, step: &Step, known: Option<&CachedObject>) -> Option<CachedObject> {
        // What rests from a fight is not what is wanted.
        if step.fields.iter().any(|field| field.verdict == Verdict::Fighting) {
            return None;
        }
        let is_kept = step.action == Action::Unchanged && !self.applied.outcomes.contains_key(&step.id);
        let written = self.applied.live.get(&step.id);
        if self.facts.observed.unchanged.contains(&step.id) && written.is_none() {
            let mut cached = known?.clone();
            let (metadata, date) = self.facts.metadata.as_ref()?.of(&step.id, &step.gvk)?;
            cached.see(metadata, date);
            cached.health = self.facts.snapshots.get(&step.id).cloned().unwrap_or_default();
            return Some(cached);
        }
        let live = written.or_else(|| self.facts.observed.live.get(&step.id).filter(|_| is_kept))?;
        let metadata = Metadata::deserialize(&live.object.body()["metadata"]).ok()?;
        let seen = self.facts.metadata.as_ref().and_then(|metadata| metadata.kinds.get(&step.gvk)?.date);
        let date: Option<Timestamp> = seen.filter(|_| written.is_none());
        let newest = self.live.get(&step.id).unwrap_or(live);
        let mut cached = CachedObject {
            id: step.id.clone(),
            gvk: step.gvk.clone(),
            unit: step.unit.clone(),
            uid: live.uid.clone(),
            version: live.resource_version.clone(),
            fingerprint: CachedObject::traces(&metadata, date),
            wanted: self.facts.digests.get(&step.id)?.clone(),
            fields: step.fields.iter().filter_map(lasting).collect(),
            note: step.note.clone(),
            health: HealthSnapshot::of(newest, (self.settings.readiness(), &self.settings.policies.kinds)),
        };
        if let Some((seen, date)) = self.closing.and_then(|metadata| metadata.of(&step.id, &step.gvk)) {
            let traces = self.applied.traces.get(&step.id).cloned();
            cached.see_again(&traces.unwrap_or_else(|| metadata.fingerprint()), seen, date);
        }
        Some(cached)
    }
}
