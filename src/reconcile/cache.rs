//! The cache of what this host knows of a cluster from its last round, so that a round in which nothing has changed
//! costs next to nothing.
//!
//! A cached object says: at this version, with these traces of who has touched it, it was exactly what is wanted.
//! They are a cache and no more: to lose them costs dry runs, never correctness. They are of one sync on one cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::fingerprint::{Fingerprint, Metadata};
use gatewright_engine::health::pods::Count;
use gatewright_engine::health::{Health, Readiness, addresses, health};
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::conflicts::{Conflicts, FieldVerdict, autoscaled};
use gatewright_engine::problem::Problem;
use gatewright_engine::text::digest;
use gatewright_engine::unit::addresses::Addresses;
use gatewright_engine::unit::marked::Marked;
use gatewright_engine::unit::pairs;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::report::{Unclaimed, UnitReport};

/// The version of the form: what is written in another one says nothing.
const FORM: u32 = 2;

/// Metadata tell time in whole seconds, and clocks of API servers differ a little: what was touched as shortly as this
/// before it was read may have been touched again since, and look the same.
const FRESH: SignedDuration = SignedDuration::from_secs(5);

/// The record that this host keeps of a sync on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastRound {
    /// Its objects; shared, because a round looks at them all the time.
    pub cache: Arc<Cache>,
    /// The subject of the last round, if there was nothing left to do after it.
    pub no_change: Option<NoChange>,
}

/// A round after which there was nothing left to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoChange {
    /// Names all that the rendering depended on.
    pub key: String,
    /// The version of the inventory.
    pub inventory: String,
    /// The key that has signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// The units.
    pub units: Vec<UnitReport>,
    /// Specs that have a mistake, and own nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<ObjectId>,
    /// Problems of the source that block nothing.
    pub problems: Vec<Problem>,
    /// Documents that no pack claims.
    pub unclaimed: Vec<Unclaimed>,
    /// The addresses that the copies of Gateways have, by the Service that had them.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub copied_addresses: Addresses,
}

/// The cached objects of one sync on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    form: u32,
    /// The cluster that it is about.
    pub cluster: String,
    /// The newest state of the cluster that was seen, by kind.
    pub versions: BTreeMap<String, u64>,
    /// When all objects were last compared by a dry run.
    pub proven: Option<Timestamp>,
    /// The objects, in the order of the plan.
    pub objects: Vec<CachedObject>,
}

/// The cache entry of one object: what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CachedObject {
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The unit that it belongs to.
    pub unit: ObjectId,
    /// Its uid.
    pub uid: String,
    /// The version of it that is what is wanted.
    pub version: String,
    /// The traces of who has touched it, if they were old enough to be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The digest of what is wanted.
    pub wanted: String,
    /// The decisions about fields that others write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldVerdict>,
    /// The note of the plan on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its health at that version.
    #[serde(default, skip_serializing_if = "HealthSnapshot::is_unremarkable")]
    pub health: HealthSnapshot,
}

/// The health of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthSnapshot {
    /// The reason why it is not healthy, if it is not.
    pub sick: Option<String>,
    /// The addresses at which it can be reached.
    pub addresses: Vec<String>,
    /// Its pods, if it has any and its controller has seen the newest change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Count>,
    /// Whether it has reported since, and could not be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_old: bool,
}

impl Cache {
    /// Begins a new cache of a cluster.
    pub fn on(cluster: &str) -> Self {
        Self { form: FORM, cluster: cluster.to_owned(), ..Self::default() }
    }

    /// Tells whether they are in this form, and about this cluster.
    pub fn are_about(&self, cluster: &str) -> bool {
        self.form == FORM && self.cluster == cluster
    }

    /// Returns the cached objects by name.
    pub fn by_object(&self) -> BTreeMap<&ObjectId, &CachedObject> {
        self.objects.iter().map(|cached| (&cached.id, cached)).collect()
    }

    /// Returns the objects and their kinds.
    pub fn kinds(&self) -> BTreeMap<ObjectId, Gvk> {
        self.objects.iter().map(|cached| (cached.id.clone(), cached.gvk.clone())).collect()
    }
}

impl CachedObject {
    /// Tells whether an object still is what it was when it was what is wanted.
    pub fn agrees(&self, metadata: &Metadata) -> bool {
        let is_untouched = || self.fingerprint.as_ref() == Some(&metadata.fingerprint());
        self.uid == metadata.uid && (self.version == metadata.resource_version || is_untouched())
    }

    /// Takes in a look at the object that agrees with what is cached.
    pub fn see(&mut self, seen: &Metadata, date: Option<Timestamp>) {
        if self.fingerprint.is_none() {
            // It is the same version as then, and by now its traces may be old enough.
            self.fingerprint = Self::traces(seen, date);
        }
        seen.resource_version.clone_into(&mut self.version);
    }

    /// Takes in a later look at an object that was just written: if nobody has left a trace since, it still is what is
    /// wanted.
    pub fn see_again(&mut self, written: &Fingerprint, seen: &Metadata, date: Option<Timestamp>) {
        if seen.uid == self.uid && seen.fingerprint() == *written {
            seen.resource_version.clone_into(&mut self.version);
            self.fingerprint = Self::traces(seen, date);
        }
    }

    /// Returns the traces of who has touched an object that was seen at a time by the cluster's own clock; `None` if they
    /// are too fresh, or that time is not known.
    pub fn traces(metadata: &Metadata, date: Option<Timestamp>) -> Option<Fingerprint> {
        let newest: Option<Timestamp> = metadata.newest().and_then(|time| time.parse().ok());
        let is_old = newest.zip(date).is_some_and(|(newest, date)| date.duration_since(newest) > FRESH);
        is_old.then(|| metadata.fingerprint())
    }
}

impl HealthSnapshot {
    /// Reads it off an object.
    pub fn of(live: &Live, (readiness, kinds): (Readiness, &kinds::Table)) -> Self {
        let sick = match health(live.object.body(), readiness, kinds) {
            Health::Current => None,
            other @ (Health::InProgress(_) | Health::Failed(_)) => Some(other.to_string()),
        };
        let is_service = live.object.id().is_a("", "Service");
        let addresses = if is_service { addresses(live.object.body()) } else { Vec::new() };
        Self { sick, addresses, pods: Count::of(live.object.body()), is_old: false }
    }

    fn is_unremarkable(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the digests of all that is wanted, by object. Who wins where others write to its fields is a part of it.
pub(crate) fn digests(rendering: &Marked, conflicts: &Conflicts) -> BTreeMap<ObjectId, String> {
    let rules = digest(format!("{:?} {:?}", conflicts.rules, conflicts.ignore).as_bytes());
    let autoscaled = autoscaled(&rendering.units);
    let of = |(id, body): (&ObjectId, &String)| {
        let text = format!("{body} {rules} {:?}", autoscaled.get(id));
        (id.clone(), digest(text.as_bytes())[..32].to_owned())
    };
    rendering.digests().iter().map(of).collect()
}
