//! An end at each side effect of a round, on both sides of it: the next round finishes the work, and does nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::memory::MemoryCluster;
use futures::future::join_all;
use gatewright::basics::clock::SystemClock;
use gatewright::cluster::Cluster;
use gatewright::cluster::directory::DirectoryCluster;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::report::{ClusterReport, ClusterState};
use gatewright_engine::live::Live;
use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{ApiServer, unique};
use crate::rounds::installation::{Installation, Specs, gateways};
use crate::rounds::mortal::{Death, Effect, End, Mortal, Side};

const RENDERED: [(&str, &str); 4] =
    [("v1", "ServiceAccount"), ("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "Deployment")];

const ALL: [(&str, &str); 6] = [
    RENDERED[0],
    RENDERED[1],
    RENDERED[2],
    RENDERED[3],
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.kgateway.dev/v1alpha1", "GatewayParameters"),
];

fn object(body: Value) -> Object {
    Object::new(body).expect("it has all that it needs")
}

/// An object as kgateway's deployer has made it: with a field that we do not set.
fn deployers(object: Object, gateway: &str) -> Object {
    let mut body = object.into_body();
    let owner = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": gateway, "uid": "1", "controller": true,
    });
    let fields = json!({"f:metadata": {"f:ownerReferences": {}}, "f:theirs": {}});
    let entry = json!({"manager": "kgateway.dev/kgateway", "operation": "Apply", "fieldsV1": fields});
    body["metadata"]["ownerReferences"] = json!([owner]);
    body["metadata"]["managedFields"] = json!([entry]);
    body["theirs"] = json!(true);
    self::object(body)
}

/// The change that a round is to make: an installation has made what was before, and is to make what is after of it.
struct Change {
    before: Specs,
    after: Specs,
    /// The specs of another round, later.
    later: Specs,
}

impl Change {
    fn new(namespace: &str, before: &[(&str, u16)], after: &[(&str, u16)]) -> Self {
        let of = |list: &[(&str, u16)]| gateways(namespace, list);
        Self { before: of(before), after: of(after), later: of(&[after, &[("later", 80)]].concat()) }
    }
}

/// An installation, its cluster, and all that was done to it by whom.
struct Setup {
    installation: Installation,
    cluster: Arc<dyn Cluster>,
    /// The kinds of what it may own.
    kinds: &'static [(&'static str, &'static str)],
    done: Vec<Effect>,
    /// The folder that goes with the setup.
    _folder: Option<TempDir>,
}

impl Setup {
    fn new(sync: &str, cluster: Arc<dyn Cluster>, folder: Option<TempDir>) -> Self {
        let installation = Installation::new(sync, &json!({}));
        Self { installation, cluster, kinds: &RENDERED, done: Vec::new(), _folder: folder }
    }

    /// A Gateway that the deployer in the cluster has made, and a sync that may take it over.
    fn deployed(name: &str) -> Self {
        let memory = MemoryCluster::new("c");
        memory.accept_gateways();
        let specs = gateways("infra", &[(name, 80)]);
        let gateway = specs.values().next().expect("there is one Gateway");
        memory.put(object(serde_json::from_str(gateway).expect("it is JSON")));
        for unit in Installation::new("edge", &json!({})).rendering(&specs).units {
            unit.objects.into_iter().for_each(|object| drop(memory.put(deployers(object, name))));
        }
        let settings = json!({"specs": "apply", "adopt": {"deployer": true, "prune": true}});
        let installation = Installation::new("edge", &settings);
        Self { installation, kinds: &ALL, ..Self::new("edge", Arc::new(memory), None) }
    }

    /// Runs a round that ends as `death` says; tells whether it came through.
    async fn round(&mut self, specs: &Specs, death: Death) -> bool {
        let mortal = Mortal::new(&self.cluster, Some(death));
        let cluster: Arc<dyn Cluster> = mortal.clone();
        let survived = mortal.survives(self.installation.round(specs, &cluster)).await;
        self.done.extend(mortal.done());
        survived
    }

    /// Runs a round that nothing happens to, and returns what it did.
    async fn whole_round(&mut self, specs: &Specs) -> (ClusterReport, Vec<Effect>) {
        let immortal = Mortal::new(&self.cluster, None);
        let cluster: Arc<dyn Cluster> = immortal.clone();
        let report = self.installation.round(specs, &cluster).await;
        self.done.extend(immortal.done());
        (report, immortal.done())
    }

    /// All objects with our label.
    async fn owned(&self) -> BTreeMap<ObjectId, Live> {
        let label = self.installation.marker.label();
        let mut owned = BTreeMap::new();
        for (version, kind) in self.kinds {
            let list = self.cluster.list(&Gvk::new(version, kind), (SYNC_LABEL, &label)).await;
            let list = list.expect("the cluster itself is well");
            owned.extend(list.into_iter().map(|live| (live.object.id().clone(), live)));
        }
        owned
    }

    /// Nothing that is ours is unknown, and nothing is taken for something else.
    async fn assert_known(&self, moment: &str) {
        let inventory = self.installation.inventory(self.cluster.as_ref()).await;
        for (id, live) in self.owned().await {
            let entry = inventory.entries.get(&id);
            assert!(entry.is_some(), "{moment}: {id} is not in the inventory");
            let uid = entry.and_then(|entry| entry.uid.as_ref());
            assert!(uid.is_none_or(|uid| *uid == live.uid), "{moment}: the inventory has another {id}");
        }
    }

    /// Everything is as it is wanted, and there is nothing else.
    async fn assert_converged(&self, specs: &Specs, moment: &str) {
        let wanted = self.installation.wanted(specs);
        let owned = self.owned().await;
        assert_eq!(owned.keys().cloned().collect::<BTreeSet<_>>(), wanted, "{moment}");
        let inventory = self.installation.inventory(self.cluster.as_ref()).await;
        let known: BTreeMap<_, _> = inventory.entries.into_iter().map(|(id, entry)| (id, entry.uid)).collect();
        let exists = owned.into_iter().map(|(id, live)| (id, Some(live.uid))).collect();
        assert_eq!(known, exists, "{moment}");
        self.assert_nothing_is_done_twice(moment);
        self.assert_no_record_is_forgotten(moment).await;
    }

    /// Nothing of one round is done by the next one again. What was there before is never made or deleted.
    fn assert_nothing_is_done_twice(&self, moment: &str) {
        let is_object = |effect: &&Effect| !matches!(effect, Effect::WriteRecord(_) | Effect::DeleteRecord(_));
        let mut seen = BTreeSet::new();
        for effect in self.done.iter().filter(is_object) {
            assert!(seen.insert(effect), "{moment}: {effect:?} twice, in {:?}", self.done);
        }
    }

    /// Of the records that were written only those are left that the head knows of.
    async fn assert_no_record_is_forgotten(&self, moment: &str) {
        let (left, inventory) = self.records_left().await;
        let head = self.cluster.read_record(&self.head()).await.expect("records can be read");
        let former = head.and_then(|head| head.data.get("former").cloned()).unwrap_or_default();
        let former = former.split(' ').map(|digest| format!("{}.{digest}", self.head()));
        let known: BTreeSet<_> = inventory.iter().cloned().chain(former).collect();
        assert!(left.is_subset(&known), "{moment}: {left:?} are not all of {known:?}: {:?}", self.done);
        assert!(left.is_superset(&inventory), "{moment}: {left:?} are too few for {inventory:?}");
    }

    /// The records that were written and not deleted, and those that make up the inventory.
    async fn records_left(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let mut left = BTreeSet::new();
        for effect in &self.done {
            match effect {
                Effect::WriteRecord(name) => drop(left.insert(name.clone())),
                Effect::DeleteRecord(name) => drop(left.remove(name)),
                Effect::Create(_) | Effect::Update(_) | Effect::Patch(_) | Effect::Delete(_) => {}
            }
        }
        let inventory = self.installation.inventory(self.cluster.as_ref()).await;
        let shards = inventory.encode().shards.into_keys().map(|digest| format!("{}.{digest}", self.head()));
        (left, shards.chain([self.head()]).collect())
    }

    fn head(&self) -> String {
        format!("gatewright.{}", self.installation.marker.sync)
    }
}

/// Lets a round of `change` die, and has the next one put it right. Tells whether it came through instead.
async fn dies(mut setup: Setup, change: &Change, death: Death) -> bool {
    let moment = format!("{death:?}");
    if !change.before.is_empty() {
        let (report, _) = setup.whole_round(&change.before).await;
        assert_eq!(report.state, ClusterState::Done, "{report:?}");
        // It is no doing twice if the next round does another thing to the same object.
        setup.done.retain(|effect| matches!(effect, Effect::WriteRecord(_) | Effect::DeleteRecord(_)));
    }
    let existed = setup.owned().await;
    let survived = setup.round(&change.after, death).await;
    setup.assert_known(&moment).await;

    let (report, _) = setup.whole_round(&change.after).await;
    assert_eq!(report.state, ClusterState::Done, "{moment}: {report:?}");
    setup.assert_converged(&change.after, &moment).await;
    for (id, live) in setup.owned().await {
        let same = existed.get(&id).is_none_or(|before| before.uid == live.uid);
        assert!(same, "{moment}: {id} was replaced");
    }
    let (_, done) = setup.whole_round(&change.after).await;
    assert_eq!(done, [], "{moment}: there was nothing left to do");

    setup.whole_round(&change.later).await;
    let (left, inventory) = setup.records_left().await;
    assert_eq!(left, inventory, "{moment}: the next change tidies up, {:?}", setup.done);
    survived
}

/// Lets a round of `change` die at each of its side effects, in each way; returns how many it has.
async fn dies_everywhere(change: &Change, ends: &[End], setup: impl Fn() -> Setup) -> usize {
    for at in 1.. {
        let mut survived = false;
        for (side, end) in
            [Side::Before, Side::After].into_iter().flat_map(|side| ends.iter().map(move |end| (side, *end)))
        {
            survived = dies(setup(), change, Death { at, side, end }).await;
        }
        if survived {
            return at - 1;
        }
    }
    unreachable!("a round has an end")
}

async fn dies_everywhere_in_memory(change: &Change) -> usize {
    let setup = || Setup::new("edge", Arc::new(MemoryCluster::new("c")), None);
    dies_everywhere(change, &[End::Killed, End::CutOff], setup).await
}

#[tokio::test]
async fn a_round_that_creates_may_die_anywhere() {
    let effects = dies_everywhere_in_memory(&Change::new("infra", &[], &[("a", 80), ("b", 8080)])).await;
    // A shard and the head, the namespace and eight objects, a shard and the head, and one shard less.
    assert_eq!(effects, 2 + 9 + 3);
}

#[tokio::test]
async fn a_round_that_adopts_may_die_anywhere() {
    let setup = || {
        let metadata = json!({"name": "a", "namespace": "infra"});
        let memory = MemoryCluster::new("c");
        memory.put(object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})));
        let installation = Installation::new("edge", &json!({"adopt": {"policy": "if-unowned"}}));
        Setup { installation, ..Setup::new("edge", Arc::new(memory), None) }
    };
    let change = Change::new("infra", &[], &[("a", 80)]);
    assert_eq!(dies_everywhere(&change, &[End::Killed, End::CutOff], setup).await, 2 + 5 + 3);
}

#[tokio::test]
async fn a_round_that_takes_over_may_die_anywhere() {
    let change = Change::new("infra", &[], &[("a", 80)]);
    let effects = dies_everywhere(&change, &[End::Killed, End::CutOff], || Setup::deployed("a")).await;
    // The namespace and the parameters are made, the Gateway is adopted, and four objects are patched and then applied.
    assert_eq!(effects, 2 + 3 + 4 * 2 + 3);
}

#[tokio::test]
async fn a_round_that_updates_may_die_anywhere() {
    let effects =
        dies_everywhere_in_memory(&Change::new("infra", &[("a", 80), ("b", 8080)], &[("a", 81), ("b", 8081)])).await;
    assert_eq!(effects, 4, "the Service and the Deployment of each");
}

#[tokio::test]
async fn a_round_that_prunes_may_die_anywhere() {
    let effects =
        dies_everywhere_in_memory(&Change::new("infra", &[("a", 80), ("b", 80), ("c", 80)], &[("b", 80)])).await;
    // A shard that the first round has deleted is deleted again: nobody knows that it was.
    assert_eq!(effects, 8 + 3 + 1);
}

#[tokio::test]
async fn a_round_that_does_all_of_it_may_die_anywhere() {
    let change = Change::new("infra", &[("a", 80), ("b", 80), ("c", 80)], &[("b", 81), ("c", 80), ("d", 80)]);
    let effects = dies_everywhere_in_memory(&change).await;
    assert_eq!(effects, 4 + 2 + 4 + 3 + 4 + 3);
}

#[tokio::test]
async fn a_round_on_a_directory_may_die_anywhere() {
    let setup = || {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let cluster = DirectoryCluster::new(folder.path().join("rendered"));
        Setup::new("edge", Arc::new(cluster), Some(folder))
    };
    let change = Change::new("infra", &[("a", 80), ("b", 80)], &[("b", 81), ("c", 80)]);
    let effects = dies_everywhere(&change, &[End::Killed], setup).await;
    assert_eq!(effects, 4 + 2 + 4 + 3 + 4 + 3);
}

/// Everything that a round may do, on the real thing, with what this host remembers and keeps in play.
#[tokio::test]
async fn a_round_on_an_api_server_may_die_anywhere() {
    let server = ApiServer::start();
    let dies = async |at, side, end| {
        let name = unique("step");
        let settings = Settings { path: Some(server.kubeconfig("admin")), ..Settings::default() };
        let cluster = KubeCluster::new(&name, settings, StandardLookup::default(), Arc::new(SystemClock::new()));
        let setup = Setup::new(&name, Arc::new(cluster), None);
        let setup = Setup { installation: setup.installation.keeping(), ..setup };
        let change = Change::new(&name, &[("a", 80), ("b", 80)], &[("b", 81), ("c", 80)]);
        dies(setup, &change, Death { at, side, end }).await
    };
    for at in 1.. {
        let ends = [End::Killed, End::CutOff].map(|end| [Side::Before, Side::After].map(|side| dies(at, side, end)));
        let survived = join_all(ends.into_iter().flatten()).await;
        if survived.iter().all(|survived| *survived) {
            assert_eq!(at - 1, 4 + 2 + 4 + 3 + 4 + 3);
            return;
        }
        assert_eq!(survived, [false; 4], "at {at}");
    }
}
