//! A round in values: what is asked for, what stands before it begins on a cluster, what is found out there, and what
//! came of it.
//!
//! [`Order`] is about all clusters of a sync. On each of them [`RoundSettings`] never change while the round runs, and
//! [`Facts`] do.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::health::Readiness;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::kinds;
use gatewright_engine::marks::Marker;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::bodies::Marks;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::questions::Purpose;
use gatewright_engine::plan::restore::Change;
use gatewright_engine::unit::Unit;
use gatewright_engine::unit::addresses::Addresses;
use gatewright_engine::unit::marked::Marked;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::config::settings::SyncSettings;
use crate::desired::rendering::Want;
use crate::desired::rendering::work::RenderingError;
use crate::desired::siblings::Siblings;
use crate::history::archive::Archive;
use crate::history::archive::record::Recorder;
use crate::history::journal::LastDrift;
use crate::inventory::audit::Audit;
use crate::inventory::hmac::Key;
use crate::reconcile::aliases::{Aliases, Names};
use crate::reconcile::breaker::{Breaker, Breakers};
use crate::reconcile::cache::{Cache, HealthSnapshot, LastRound};
use crate::reconcile::depends::{Dependencies, Waiting};
use crate::reconcile::events::EventRecorder;
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::phase::{Listener, Teller};
use crate::reconcile::places::{Place, Places};
use crate::reconcile::render_history::RenderHistory;
use crate::reconcile::rollout::{Rollout, Turn};
use crate::report::{ClusterReport, ClusterState, Mode, Saved};
use crate::state::suspension::Watch;

/// The clusters of a process, by name.
pub type Clusters = BTreeMap<String, Arc<dyn Cluster>>;

/// A cluster, with its name and its breaker.
pub(super) type Target = (String, Arc<dyn Cluster>, Option<Arc<Breaker>>);

/// The order for a round: what it is about.
#[derive(Clone)]
pub struct Order {
    /// Name of the sync.
    pub sync: String,
    /// Its settings.
    pub settings: SyncSettings,
    /// The clusters.
    pub clusters: Clusters,
    /// The table of kinds.
    pub kinds: kinds::Table,
    /// The id of this installation.
    pub installation: String,
    /// Whether anything is changed.
    pub mode: Mode,
    /// The units to which the round is limited.
    pub only: Option<BTreeSet<ObjectId>>,
    /// Whether everything is compared, whatever is known from earlier rounds.
    pub full: bool,
    /// Whether to wait for health.
    pub wait: bool,
    /// The plan that is carried out, by cluster; `None`: whatever is to be done.
    pub pinned: Option<BTreeMap<String, Saved>>,
    /// Our other syncs and what they want, by cluster.
    pub siblings: BTreeMap<String, Siblings>,
    /// The key that signs inventories.
    pub key: Option<Arc<Key>>,
    /// The masker: it decides what is shown of values that may be secret.
    pub masker: Masker,
    /// The archive of what rounds change and render; `None` keeps nothing.
    pub archive: Option<Arc<Archive>>,
    /// The cause, if something else than the source says what is wanted.
    pub cause: Option<String>,
    /// The changes of a round that are to be undone, by cluster.
    pub undo: Option<BTreeMap<String, Vec<Change>>>,
    /// All clusters that something is applied to, by any sync.
    pub aliases: Arc<Aliases>,
    /// The breakers of clusters that do not answer.
    pub breakers: Arc<Breakers>,
    /// The rollouts of the sync; `None`: no cluster waits for another.
    pub rollout: Option<Arc<Rollout>>,
    /// The dependencies between syncs.
    pub dependencies: Arc<Dependencies>,
    /// Whether a plan keeps the bodies of what it changes, and how much of them.
    pub bodies: Option<Marks>,
    /// The places of all rounds of the process.
    pub places: Places,
    /// Told how far the round is on each cluster.
    pub listener: Option<Arc<Listener>>,
}

impl Order {
    /// Has an archive keep what the round changes; its key is that of the fingerprints, too.
    pub fn keep_in(&mut self, archive: Arc<Archive>) {
        self.masker = archive.vault().masker().clone();
        self.archive = Some(archive);
    }

    /// Returns one of the clusters as the target of a round.
    pub(super) fn target(&self, name: &str, cluster: &Arc<dyn Cluster>) -> Target {
        (name.to_owned(), Arc::clone(cluster), self.breakers.get(name).cloned())
    }

    /// Returns the mark of what the sync owns.
    pub fn marker(&self) -> Marker {
        Marker { installation: self.installation.clone(), sync: self.sync.clone() }
    }
}

/// The settings of a round on a cluster, from its beginning to its end.
pub struct RoundSettings {
    /// The wanted objects, marks included.
    pub want: Want,
    /// The policies: what the sync may do.
    pub policies: Policies,
    /// Whether anything is changed.
    pub mode: Mode,
    /// The policy of waiting for health; `None`: no wait.
    pub wait_policy: Option<WaitPolicy>,
    /// The longest wait until Gateways are accepted of which something is adopted.
    pub acceptance: Duration,
    /// The record of the last round; `None`: everything is compared again.
    pub last_round: Option<LastRound>,
    /// The findings of the last drift report.
    pub last: Option<LastDrift>,
    /// Whether what matched then and has not moved since still does; else everything is compared.
    pub is_trusting: bool,
    /// The wishes of our other syncs on this cluster.
    pub siblings: Siblings,
    /// The names by which clusters answer.
    pub names: Names,
    /// The record that this host keeps of the inventory; `None` where that is authoritative, as in a directory.
    pub audit: Option<Audit>,
    /// The recorder of objects as they are before they are changed; `None` keeps nothing.
    pub recorder: Option<Arc<Recorder>>,
    /// The history of what was rendered; `None` keeps nothing.
    pub history: Option<RenderHistory>,
    /// The changes of a round that are to be undone; what is wanted holds all that may be wanted for it.
    pub undo: Option<Vec<Change>>,
    /// The plan that is carried out; `None`: whatever is to be done.
    pub pinned: Option<Saved>,
    /// The place in the rollout of what is wanted; `None`: it waits for nobody.
    pub turn: Option<Turn>,
    /// The syncs that have to be through first; `None`: it waits for none.
    pub waiting: Option<Waiting>,
    /// Whether a plan keeps the bodies of what it changes, and how much of them.
    pub bodies: Option<Marks>,
    /// Records Events of what is done; `None` records none.
    pub events: Option<EventRecorder>,
    /// The place of the round among those of the process.
    pub(crate) place: Place,
    /// Tells how far the round is.
    pub teller: Teller,
    /// Tells whether the sync was suspended meanwhile.
    pub suspension: Watch,
    /// Told when the process is to end.
    pub stop: CancellationToken,
}

impl RoundSettings {
    /// Returns the sync.
    pub fn sync(&self) -> &str {
        &self.policies.marker.sync
    }

    /// Returns the use of dry runs.
    pub fn purpose(&self) -> Purpose {
        match self.mode {
            Mode::Apply => Purpose::Apply,
            Mode::Plan => Purpose::Plan,
            Mode::Report => Purpose::Report,
        }
    }

    /// Returns what counts as healthy.
    pub fn readiness(&self) -> Readiness {
        self.wait_policy.map(|wait_policy| wait_policy.readiness).unwrap_or_default()
    }
}

/// The policy of waiting: what is awaited, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct WaitPolicy {
    /// For how long.
    pub timeout: Duration,
    /// For how long if a model server is among it.
    pub model_timeout: Duration,
    /// The definition of healthy.
    pub readiness: Readiness,
}

/// The objects that are not healthy, with what is wrong; empty is good.
pub type Unhealthy = BTreeMap<ObjectId, String>;

/// The facts about a cluster, once it is certain that there may be something to do.
pub struct Facts {
    /// The identity of the cluster.
    pub identity: String,
    /// The rendering of what is wanted there.
    pub rendering: Arc<Marked>,
    /// The same without the addresses that Services have at the moment, which are not to be kept.
    pub rendered: Arc<Marked>,
    /// The addresses of the Services of which copies of Gateways tell.
    pub service_addresses: Addresses,
    /// The digests of that.
    pub digests: BTreeMap<ObjectId, String>,
    /// The policies: what the sync may do, beside the others of this installation.
    pub policies: Policies,
    /// The inventory of what is owned.
    pub owned: Inventory,
    /// The cache of the last round.
    pub cache: Option<Arc<Cache>>,
    /// The metadata of our objects, where they were looked at.
    pub metadata: Option<MetadataView>,
    /// The observation.
    pub observed: Observed,
    /// The health of the objects that nobody has touched.
    pub snapshots: BTreeMap<ObjectId, HealthSnapshot>,
    /// The units whose rollout had reached the cluster in a round that did not live to see how it went.
    pub on_the_way: BTreeSet<ObjectId>,
}

impl Facts {
    /// Returns the units that the round is about.
    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.rendering.units.iter().filter(|unit| self.policies.is_about(&unit.id))
    }

    /// Returns the wanted objects. What may not be written is not asked for either.
    pub fn wanted(&self) -> impl Iterator<Item = &Object> {
        self.units().flat_map(Unit::all).filter(|object| self.policies.forbids(object.id()).is_none())
    }
}

/// The result of a round on a cluster.
#[derive(Debug)]
pub struct Conclusion {
    /// The report.
    pub report: ClusterReport,
    /// The record for the next round.
    pub last_round: Option<LastRound>,
    /// Whether that differs from what was known before.
    pub is_new: bool,
    /// The inventory is suspect, and nothing was changed: the next round is to read all of it again.
    pub is_suspect: bool,
    /// The rendering of what was wanted, if it had to be rendered.
    pub rendering: Option<Arc<Marked>>,
}

impl Conclusion {
    /// Concludes with a report and nothing else.
    pub fn of(report: ClusterReport) -> Self {
        Self { report, last_round: None, is_new: false, is_suspect: false, rendering: None }
    }

    /// Concludes that something could not be done at all.
    pub fn failed(error: &ClusterError) -> Self {
        let state = if error.is_unreachable() { ClusterState::Unreachable } else { ClusterState::Failed };
        // When nothing at all can be asked, it does not matter which question happened to be the first.
        let cause: &dyn Error = match error.reason {
            Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized => &*error.source,
            _ => error,
        };
        Self::of(ClusterReport::failed(state, Chain(cause).to_string(), error.hint.clone()))
    }

    /// Concludes that nothing was begun, because the process is to end.
    pub fn stopped() -> Self {
        Self::of(ClusterReport { state: ClusterState::Stopped, ..ClusterReport::default() })
    }

    /// Concludes that nothing could be rendered, because this program has a bug.
    pub fn unrendered(error: &RenderingError) -> Self {
        Self::of(ClusterReport::failed(ClusterState::Failed, error.to_string(), Some(error.hint().to_owned())))
    }
}
