//! An installation with one sync, whose rounds run in this process and on any cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gatewright::basics::clock::Clock;
use gatewright::cluster::{Cluster, Record};
use gatewright::config::settings::{Moved, SyncSettings};
use gatewright::desired::rendering::{Reading, Want, Wanted};
use gatewright::desired::siblings::{Sibling, Siblings};
use gatewright::history::archive::{self, Archive, runs};
use gatewright::reconcile::fleet;
use gatewright::reconcile::model::Order;
use gatewright::reconcile::places::Places;
use gatewright::report::{ClusterReport, Mode};
use gatewright::source::Snapshot;
use gatewright::state::State;
use gatewright_engine::inventory::{Encoded, Inventory};
use gatewright_engine::marks::Marker;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::Packs;
use gatewright_engine::plan::restore::candidates;
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::unit::Rendering;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The files of a source: path and text.
pub(crate) type Specs = BTreeMap<String, String>;

/// One sync with its state folder.
pub(crate) struct Installation {
    /// The mark that it knows its objects by.
    pub(crate) marker: Marker,
    settings: SyncSettings,
    packs: &'static Packs,
    state: TempDir,
    clock: Ticking,
    archive: Option<Arc<Archive>>,
}

/// A clock that goes on by a second whenever somebody looks at it, so that no two rounds begin at once.
struct Ticking(Mutex<Timestamp>);

impl Ticking {
    fn go_on(&self, time: Duration) -> Timestamp {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.checked_add(time).expect("a test does not last so long");
        *now
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.go_on(Duration::from_secs(1))
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

impl Installation {
    /// Makes a new one; `settings` is what the config says of the sync beyond source and clusters.
    pub(crate) fn new(sync: &str, settings: &Value) -> Self {
        let mut all = json!({"source": "specs", "clusters": {"names": ["test"]}, "createNamespaces": true});
        for (key, value) in settings.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        let settings = serde_json::from_value(all).expect("a test knows the settings");
        let state = tempfile::tempdir().expect("temporary folders can be made");
        let installation = State::open(state.path()).make_installation().expect("a new folder can be written");
        Self {
            marker: Marker { installation, sync: sync.to_owned() },
            settings,
            packs: packs(),
            state,
            clock: Ticking(Mutex::default()),
            archive: None,
        }
    }

    /// The same, which keeps what its rounds change.
    pub(crate) fn keeping(self) -> Self {
        let archive = Archive::open(&self.state(), &archive::Settings::default(), 10).expect("a key can be made");
        Self { archive: Some(Arc::new(archive)), ..self }
    }

    fn state(&self) -> State {
        State::open(self.state.path())
    }

    /// The folder in which the changes of rounds are kept.
    pub(crate) fn folder(&self) -> PathBuf {
        self.state().path(runs::FOLDER)
    }

    /// The rounds that can be undone, the newest first.
    pub(crate) fn runs(&self) -> Vec<String> {
        runs::list(&self.folder())
    }

    /// The name of the next round.
    pub(crate) fn next_run(&self, of: &str) -> String {
        let now = self.clock.go_on(Duration::ZERO).checked_add(Duration::from_secs(1)).expect("it is not that late");
        format!("{}-{of}", now.strftime("%Y%m%dT%H%M%S%.3fZ"))
    }

    /// Lets time pass.
    pub(crate) fn wait(&self, time: Duration) {
        self.clock.go_on(time);
    }

    /// Deletes what was kept for long enough.
    pub(crate) fn expire(&self) {
        self.archive.as_ref().expect("it keeps something").expire(self.clock.now());
    }

    /// Undoes a round.
    pub(crate) async fn undo(&self, run: &str, cluster: &Arc<dyn Cluster>) -> ClusterReport {
        let archive = self.archive.as_ref().expect("it keeps something");
        let (_, changes) = runs::read(archive.vault(), run).expect("it is whole").remove("test").expect("it has one");
        let wanted = self.ready(candidates(&changes));
        let undo = Some(BTreeMap::from([("test".to_owned(), changes)]));
        self.carry_out(Order { undo, ..self.order(cluster, Mode::Apply) }, &Specs::new(), &wanted).await
    }

    /// The same with other packs.
    pub(crate) fn with_packs(self, packs: &'static Packs) -> Self {
        Self { packs, ..self }
    }

    /// The same under another name, whose objects are those of the old one.
    pub(crate) fn renamed(self, sync: &str) -> Self {
        let mut settings = self.settings;
        settings.moved = vec![Moved { from: self.marker.sync.clone() }];
        Self { marker: Marker { sync: sync.to_owned(), ..self.marker }, settings, ..self }
    }

    /// Another sync of the same installation, with a memory of its own.
    pub(crate) fn other(&self, sync: &str) -> Self {
        let state = tempfile::tempdir().expect("temporary folders can be made");
        let marker = Marker { sync: sync.to_owned(), ..self.marker.clone() };
        let (clock, archive) = (Ticking(Mutex::default()), None);
        Self { marker, settings: self.settings.clone(), packs: self.packs, state, clock, archive }
    }

    /// Runs a round that knows what another sync of the same installation wants.
    pub(crate) async fn round_beside(
        &self,
        specs: &Specs,
        other: (&Self, &Specs),
        cluster: &Arc<dyn Cluster>,
    ) -> ClusterReport {
        let wants = Sibling::Wants(Want::ready(other.0.rendering(other.1), &other.0.marker));
        let siblings = Siblings::of([(other.0.marker.sync.clone(), wants)]);
        self.run(specs, cluster, Mode::Apply, siblings).await
    }

    /// Runs a round that changes the cluster.
    pub(crate) async fn round(&self, specs: &Specs, cluster: &Arc<dyn Cluster>) -> ClusterReport {
        self.run(specs, cluster, Mode::Apply, Siblings::default()).await
    }

    /// Runs a round on several clusters that want the same.
    pub(crate) async fn round_on(
        &self,
        specs: &Specs,
        clusters: &BTreeMap<String, Arc<dyn Cluster>>,
    ) -> BTreeMap<String, ClusterReport> {
        let want = |name: &String| (name.clone(), Want::ready(self.rendering(specs), &self.marker));
        let wanted: Wanted = clusters.keys().map(want).collect();
        let (snapshot, stop) = (snapshot(specs), CancellationToken::new());
        let any = clusters.values().next().expect("there are some");
        let order = Order { clusters: clusters.clone(), ..self.order(any, Mode::Apply) };
        fleet::run(&order, &snapshot, &wanted, &self.state(), &self.clock, &stop).await.clusters
    }

    /// Runs a round of a revision that is remembered from before the process started.
    pub(crate) async fn round_of_memory(&self, specs: &Specs, cluster: &Arc<dyn Cluster>) -> ClusterReport {
        let (wanted, stop) = (self.ready(self.rendering(specs)), CancellationToken::new());
        let snapshot = Snapshot { is_polled: false, ..snapshot(specs) };
        let order = self.order(cluster, Mode::Apply);
        let mut report = fleet::run(&order, &snapshot, &wanted, &self.state(), &self.clock, &stop).await;
        report.clusters.remove("test").expect("every cluster has a report")
    }

    /// Runs a round that only says what it would do.
    pub(crate) async fn plan(&self, specs: &Specs, cluster: &Arc<dyn Cluster>) -> ClusterReport {
        self.run(specs, cluster, Mode::Plan, Siblings::default()).await
    }

    async fn run(&self, specs: &Specs, cluster: &Arc<dyn Cluster>, mode: Mode, siblings: Siblings) -> ClusterReport {
        let wanted = self.ready(self.rendering(specs));
        let siblings = BTreeMap::from([("test".to_owned(), siblings)]);
        self.carry_out(Order { siblings, ..self.order(cluster, mode) }, specs, &wanted).await
    }

    fn ready(&self, rendering: Rendering) -> Wanted {
        Wanted::from([("test".to_owned(), Want::ready(rendering, &self.marker))])
    }

    fn order(&self, cluster: &Arc<dyn Cluster>, mode: Mode) -> Order {
        Order {
            sync: self.marker.sync.clone(),
            settings: self.settings.clone(),
            clusters: BTreeMap::from([("test".to_owned(), Arc::clone(cluster))]),
            kinds: self.packs.table().clone(),
            installation: self.marker.installation.clone(),
            mode,
            only: None,
            full: false,
            wait: false,
            pinned: None,
            siblings: BTreeMap::new(),
            key: None,
            masker: Masker::new([7; 32]),
            archive: self.archive.clone(),
            cause: None,
            undo: None,
            aliases: Arc::default(),
            breakers: Arc::default(),
            rollout: None,
            dependencies: Arc::default(),
            bodies: None,
            places: Places::default(),
            listener: None,
        }
    }

    async fn carry_out(&self, order: Order, specs: &Specs, wanted: &Wanted) -> ClusterReport {
        let (snapshot, stop) = (snapshot(specs), CancellationToken::new());
        let mut report = fleet::run(&order, &snapshot, wanted, &self.state(), &self.clock, &stop).await;
        report.clusters.remove("test").expect("every cluster has a report")
    }

    /// Returns what specs become, without marks.
    pub(crate) fn rendering(&self, specs: &Specs) -> Rendering {
        let cluster = ClusterFacts { name: "test".to_owned(), ..ClusterFacts::default() };
        Reading::new(&snapshot(specs), &self.settings, self.packs).render(self.packs, &cluster)
    }

    /// Returns the objects that specs want.
    pub(crate) fn wanted(&self, specs: &Specs) -> BTreeSet<ObjectId> {
        let units = self.rendering(specs).units;
        units.iter().flat_map(|unit| unit.all().map(|object| object.id().clone())).collect()
    }

    /// Reads the inventory off a cluster, as a stranger would who knows the format; empty if there is none.
    pub(crate) async fn inventory(&self, cluster: &dyn Cluster) -> Inventory {
        let name = format!("gatewright.{}", self.marker.sync);
        let Some(head) = read(cluster, &name).await else { return Inventory::default() };
        let mut shards = BTreeMap::new();
        for digest in Inventory::shards_of(&head.data).expect("the head is always whole") {
            let shard =
                read(cluster, &format!("{name}.{digest}")).await.expect("a shard outlives the head that names it");
            shards.insert(digest, shard.data);
        }
        Inventory::decode(&Encoded { head: head.data, shards }).expect("the inventory is always whole")
    }
}

/// Reads a record, past failures that a test has in store.
async fn read(cluster: &dyn Cluster, name: &str) -> Option<Record> {
    for _ in 0..30 {
        if let Ok(record) = cluster.read_record(name).await {
            return record;
        }
    }
    unreachable!("a test has no more failures in store")
}

fn snapshot(specs: &Specs) -> Snapshot {
    let files = specs.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    Snapshot::new("test".to_owned(), files.collect())
}

fn packs() -> &'static Packs {
    static PACKS: OnceLock<Packs> = OnceLock::new();
    PACKS.get_or_init(|| {
        let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("the built-in pack is sound");
        Packs::new(vec![pack]).expect("the built-in pack is sound")
    })
}

/// Returns a Gateway with one port.
pub(crate) fn gateway(namespace: &str, name: &str, port: u16) -> String {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": "kgateway", "listeners": [{"name": "http", "protocol": "HTTP", "port": port}]},
    })
    .to_string()
}

/// Returns a source with a file for each Gateway.
pub(crate) fn gateways(namespace: &str, gateways: &[(&str, u16)]) -> Specs {
    gateways.iter().map(|(name, port)| (format!("{name}.json"), gateway(namespace, name, *port))).collect()
}
