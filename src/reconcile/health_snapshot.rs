//! The health of objects that nobody has touched: as it was, unless their status has moved.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::health::pods::Count;
use gatewright_engine::health::{Readiness, addresses};
use gatewright_engine::inventory::Inventory;
use gatewright_engine::kinds::{self, has_pods};
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, Object, ObjectId, is_secret};
use gatewright_engine::references::images;
use gatewright_engine::relations;
use gatewright_engine::unit::Unit;
use serde_json::Value;
use tracing::warn;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::reconcile::cache::{CachedObject, HealthSnapshot};
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::model::{Facts, RoundSettings};
use crate::reconcile::requests::join_bounded;
use crate::report::{UnitReport, UnitState};

/// The known health of objects.
#[derive(Clone, Copy)]
pub(crate) struct HealthSnapshots<'a> {
    /// Those that were read.
    pub live: &'a BTreeMap<ObjectId, Live>,
    /// Those that need not be.
    pub known: &'a BTreeMap<ObjectId, HealthSnapshot>,
    /// The kinds, by which it is known what is healthy, and where requests come in.
    pub kinds: &'a kinds::Table,
    /// The definition of healthy; `None` where nothing has health, as in a directory.
    pub readiness: Option<Readiness>,
}

/// The reason why it is not known whether an object is healthy that nobody has looked at.
const PASSED_BY: &str = "its status has changed, and nobody has looked at it since";

impl<'a> HealthSnapshots<'a> {
    /// Returns what is known in a round; `live` is newer than what was seen.
    pub(crate) fn of_round(
        settings: &'a RoundSettings,
        facts: &'a Facts,
        live: Option<&'a BTreeMap<ObjectId, Live>>,
    ) -> Self {
        let readiness = (!facts.observed.is_unmarked).then(|| settings.readiness());
        let (live, kinds) = (live.unwrap_or(&facts.observed.live), &settings.policies.kinds);
        Self { live, known: &facts.snapshots, kinds, readiness }
    }

    /// Returns where a Service can be reached.
    fn addresses(&self, service: &ObjectId) -> Option<Vec<String>> {
        let known = self.known.get(service).map(|health| health.addresses.clone());
        known.or_else(|| Some(addresses(self.live.get(service)?.object.body())))
    }

    /// Returns what is not well of a unit as far as that was seen; of several objects the first.
    pub(crate) fn unwell(&self, unit: &Unit) -> Option<String> {
        let readiness = self.readiness?;
        unit.all().find_map(|object| {
            let what = match self.of(object.id(), readiness) {
                Some(health) => health.unwell()?,
                None => "it is not there".to_owned(),
            };
            Some(format!("{}: {what}", object.id()))
        })
    }

    /// Returns the pods of a unit; `None` if it has none, or those of a workload are not known.
    pub(crate) fn pods(&self, unit: &Unit) -> Option<Count> {
        let readiness = self.readiness?;
        let workloads = unit.all().filter(|object| has_pods(&object.id().kind));
        workloads.map(|object| self.of(object.id(), readiness)?.counted()).reduce(|a, b| Some(a? + b?)).flatten()
    }

    /// Begins the report of a unit, with where it can be reached.
    pub(crate) fn unit_report(&self, unit: &Unit, state: UnitState) -> UnitReport {
        let bodies: Vec<&Value> = unit.objects.iter().map(Object::body).collect();
        let service = relations::entrance(&bodies, self.kinds);
        let id = service.and_then(|service| unit.objects.iter().find(|object| std::ptr::eq(object.body(), service)));
        let addresses = id.and_then(|object| self.addresses(object.id()));
        let images: BTreeSet<&str> = unit.all().flat_map(|object| images(object.body(), self.kinds)).collect();
        UnitReport {
            addresses: addresses.unwrap_or_default(),
            ports: service.map(ports).unwrap_or_default(),
            images: images.into_iter().map(str::to_owned).collect(),
            pods: self.pods(unit),
            ..UnitReport::new(unit.id.clone(), state)
        }
    }

    /// Begins the report of a unit that is there and was not rendered: it can be reached where its Service is.
    pub(crate) fn left(&self, unit: &ObjectId, state: UnitState, owned: &Inventory) -> UnitReport {
        let ids = || owned.entries.iter().filter(|(_, entry)| entry.unit == *unit).map(|(id, _)| id);
        let live: Vec<&Object> = ids().filter_map(|id| Some(&self.live.get(id)?.object)).collect();
        let bodies: Vec<&Value> = live.iter().map(|object| object.body()).collect();
        let service = relations::entrance(&bodies, self.kinds);
        let id = service.and_then(|service| live.iter().find(|object| std::ptr::eq(object.body(), service)));
        let id = id.map(|object| object.id()).or_else(|| ids().find(|id| id.is_a("", "Service")));
        UnitReport {
            addresses: id.and_then(|id| self.addresses(id)).unwrap_or_default(),
            ports: service.map(ports).unwrap_or_default(),
            ..UnitReport::new(unit.clone(), state)
        }
    }

    fn of(&self, id: &ObjectId, readiness: Readiness) -> Option<HealthSnapshot> {
        let now = |live| HealthSnapshot::of(live, (readiness, self.kinds));
        self.known.get(id).cloned().or_else(|| self.live.get(id).map(now))
    }
}

/// The ports of a Service.
fn ports(service: &Value) -> Vec<u16> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| u16::try_from(port["port"].as_u64()?).ok()).collect()
}

impl HealthSnapshot {
    /// Returns what is wrong with the object, or why nobody knows.
    pub fn unwell(&self) -> Option<String> {
        self.sick.clone().or_else(|| self.is_old.then(|| PASSED_BY.to_owned()))
    }

    /// Returns its pods, if they were looked at.
    pub fn counted(&self) -> Option<Count> {
        self.pods.filter(|_| !self.is_old)
    }
}

/// Returns the state of objects that nobody has touched. The kinds of those that were not well, or whose status has
/// moved, are listed; a round that does not ask for health takes what was known, and so does one in which a kind cannot
/// be listed: the next round tries again.
pub(crate) async fn snapshots<'a>(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    cached: impl Iterator<Item = &'a CachedObject>,
    metadata: &MetadataView,
) -> Result<BTreeMap<ObjectId, HealthSnapshot>, ClusterError> {
    let mut snapshots = BTreeMap::new();
    let mut open: BTreeMap<&Gvk, Vec<&ObjectId>> = BTreeMap::new();
    for object in cached {
        let has_changed = metadata.objects.get(&object.id).is_none_or(|seen| seen.resource_version != object.version);
        let is_old = has_changed || object.health.is_old;
        if is_old || object.health.sick.is_some() {
            open.entry(&object.gvk).or_default().push(&object.id);
        }
        snapshots.insert(object.id.clone(), HealthSnapshot { is_old, ..object.health.clone() });
    }
    let Some(wait_policy) = settings.wait_policy.filter(|_| cluster.has_health()) else { return Ok(snapshots) };
    let label = settings.policies.marker.label();
    let label = (SYNC_LABEL, label.as_str());
    let lists = open.keys().map(|gvk| async move { (*gvk, list(cluster, gvk, label).await) }.boxed()).collect();
    for (gvk, list) in join_bounded(lists).await {
        let live = match list {
            Ok(live) => live,
            Err(error) if concerns_all(&error) => return Err(error),
            Err(error) => {
                warn!(%gvk, error = %Chain(&error), "cannot see how objects are, and takes what was known");
                continue;
            }
        };
        for id in &open[gvk] {
            snapshots.entry((*id).clone()).and_modify(|health| health.is_old = false);
        }
        for live in live {
            if let Some(health) = snapshots.get_mut(live.object.id()) {
                *health = HealthSnapshot::of(&live, (wait_policy.readiness, &settings.policies.kinds));
            }
        }
    }
    Ok(snapshots)
}

/// Whether nothing else can be asked either. A 500 for one kind may well be about an object that nobody can read.
fn concerns_all(error: &ClusterError) -> bool {
    matches!(error.reason, Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized)
}

/// Of a Secret nothing is to be known.
async fn list(cluster: &dyn Cluster, gvk: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
    if is_secret(&gvk.group, &gvk.kind) { Ok(Vec::new()) } else { cluster.list(gvk, label).await }
}
