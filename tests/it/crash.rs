//! A process that ends in the middle of a round leaves nothing that the next one cannot put right.
//!
//! Here the real program is killed at random moments; in `steps` rounds end at each of their side effects in turn.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gatewright::basics::clock::SystemClock;
use gatewright::cluster::Cluster;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright_engine::inventory::{Encoded, Inventory};
use gatewright_engine::object::{Gvk, ObjectId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::cluster::ApiServer;
use crate::program::Desk;

/// The seed of the random moments; another seed is another set of moments.
const SEED: u64 = 3;

const KINDS: &str = "serviceaccounts,configmaps,services,deployments";

/// The work that a round is about to do when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Create,
    Update,
    Prune,
}

/// The number of kills for each (twenty in all), and about how many milliseconds it writes.
const KILLS: [(Work, u32, u64); 3] = [(Work::Create, 8, 35), (Work::Update, 6, 5), (Work::Prune, 6, 15)];

/// About how many milliseconds a round takes.
const WHOLE: u64 = 400;

/// A quick start of its own on a server that many share.
struct Site<'a> {
    server: &'a ApiServer,
    desk: Desk,
    name: String,
}

/// When a round is killed. What it writes takes a small part of its time, and would seldom be met by the clock alone.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// This long after its start.
    Started(Duration),
    /// This long after the first trace that it leaves on the server.
    Traced(Duration),
}

/// The first trace of a round: a record or an object that is another one then.
struct Trace {
    cluster: KubeCluster,
    runtime: Runtime,
    /// `None` for a record.
    kind: Option<Gvk>,
    id: ObjectId,
    before: Option<String>,
}

/// The state of one site on the server.
struct Seen {
    /// Objects with the site's label, `Kind/namespace/name` to uid.
    owned: BTreeMap<String, String>,
    inventory: Inventory,
    /// The version of what is somebody else's, and of the same kind and in the same namespace as ours.
    bystander: String,
    /// The first port of the Service that an update changes.
    port: Option<u64>,
}

impl<'a> Site<'a> {
    fn new(server: &'a ApiServer, name: &str) -> Self {
        let desk = Desk::quickstart("gatewright.yaml");
        for file in ["class.yaml", "infra/gateways.yaml", "shop/storefront.yaml"] {
            let text = desk.read(&format!("specs/{file}"));
            let text = text.replace("namespace: infra", &format!("namespace: {name}-infra"));
            desk.write(&format!("specs/{file}"), &text.replace("namespace: shop", &format!("namespace: {name}-shop")));
        }
        let sync = format!("{name}: {{source: specs, clusters: {{names: [c]}}, createNamespaces: true}}");
        let config = format!(
            "sources: {{specs: {{directory: {{path: ./specs}}}}}}\nclusters: {{c: {{kubeconfig: {{}}}}}}\n\
             stateDir: ./state\nsyncs:\n  {sync}\n"
        );
        desk.write("gatewright.yaml", &config);
        let bystander = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}-infra}}}}\n---\n\
             {{apiVersion: v1, kind: ConfigMap, metadata: {{name: bystander, namespace: {name}-infra}}}}\n"
        );
        server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &bystander);
        Self { server, desk, name: name.to_owned() }
    }

    /// Makes the change that the round to be killed is to carry out.
    fn prepare(&self, work: Work) {
        if work == Work::Create {
            return;
        }
        self.desk.run_with(&self.server.kubeconfig("admin"), &["sync", "--no-wait"]).exits(0);
        match work {
            Work::Create => {}
            Work::Update => {
                self.desk.replace("specs/shop/storefront.yaml", "port: 8080", "port: 8081");
                self.desk.replace("specs/infra/gateways.yaml", "port: 80\n", "port: 81\n");
            }
            Work::Prune => fs::remove_file(self.desk.path("specs/shop/storefront.yaml")).expect("it is there"),
        }
    }

    /// Starts a round and kills it at `moment`, if it has not come to its end by then.
    fn kill_at(&self, work: Work, moment: Moment) {
        let trace = self.trace(work);
        let mut round = self.start();
        let wait = match moment {
            Moment::Started(wait) => wait,
            Moment::Traced(wait) => {
                trace.wait_for(&mut round);
                wait
            }
        };
        thread::sleep(wait);
        round.kill().expect("a child can be killed until it is waited for");
        round.wait().expect("a child can be waited for");
    }

    fn start(&self) -> Child {
        let mut command = self.desk.command(&["sync", "--no-wait"]);
        command.env("KUBECONFIG", self.server.kubeconfig("admin")).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    fn trace(&self, work: Work) -> Trace {
        let settings = Settings { path: Some(self.server.kubeconfig("admin")), ..Settings::default() };
        let cluster = KubeCluster::new("c", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let namespace = format!("{}-shop", self.name);
        let (kind, id) = match work {
            Work::Create => ("", ObjectId::new("", "", "", &format!("gatewright.{}", self.name))),
            Work::Update => ("v1 Service", ObjectId::new("", "Service", &namespace, "storefront")),
            Work::Prune => ("apps/v1 Deployment", ObjectId::new("apps", "Deployment", &namespace, "storefront")),
        };
        let kind = kind.split_once(' ').map(|(version, kind)| Gvk::new(version, kind));
        let mut trace = Trace { cluster, runtime, kind, id, before: None };
        trace.before = trace.look();
        trace
    }

    fn look(&self) -> Seen {
        let items = &self.server.objects("", KINDS);
        let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = |item: &Value| {
            let kind = item["kind"].as_str().unwrap_or_default();
            format!("{kind}/{}/{}", text(item, "namespace"), text(item, "name"))
        };
        let is_ours = |item: &&Value| {
            let label = item["metadata"]["labels"]["gatewright.dev/sync"].as_str();
            label.is_some_and(|label| label.starts_with(&format!("{}.", self.name)))
        };
        let find = |name: &str| items.iter().find(|item| key(item) == name);
        let bystander = find(&format!("ConfigMap/{}-infra/bystander", self.name)).expect("nobody deletes it");
        let port = find(&format!("Service/{}-shop/storefront", self.name));
        Seen {
            owned: items.iter().filter(is_ours).map(|item| (key(item), text(item, "uid"))).collect(),
            inventory: self.inventory(items),
            bystander: text(bystander, "resourceVersion"),
            port: port.and_then(|service| service["spec"]["ports"][0]["port"].as_u64()),
        }
    }

    /// Reads the inventory out of its `ConfigMap`s.
    fn inventory(&self, items: &[Value]) -> Inventory {
        let head = format!("gatewright.{}", self.name);
        let mut records = BTreeMap::new();
        for item in items.iter().filter(|item| item["metadata"]["namespace"] == "gatewright-system") {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let data: BTreeMap<String, String> =
                serde_json::from_value(item["data"].clone()).expect("a ConfigMap holds text");
            records.insert(name, data);
        }
        let Some(data) = records.remove(&head) else { return Inventory::default() };
        let shard = |(name, data): (String, _)| Some((name.strip_prefix(&format!("{head}."))?.to_owned(), data));
        let shards = records.into_iter().filter_map(shard).collect();
        Inventory::decode(&Encoded { head: data, shards }).expect("the inventory is always whole")
    }
}

impl Trace {
    fn look(&self) -> Option<String> {
        self.runtime.block_on(async {
            match &self.kind {
                Some(kind) => self.cluster.get(kind, &self.id).await.ok().flatten().map(|live| live.resource_version),
                None => self.cluster.read_record(&self.id.name).await.ok().flatten().map(|record| record.version),
            }
        })
    }

    /// Returns when a round has left it, or is over.
    fn wait_for(&self, round: &mut Child) {
        while self.look() == self.before && round.try_wait().is_ok_and(|ended| ended.is_none()) {}
    }
}

impl Seen {
    fn known(&self) -> BTreeSet<String> {
        self.inventory.entries.keys().map(ObjectId::path).collect()
    }
}

/// The objects of the quick start after `work`.
fn wanted(name: &str, work: Work) -> BTreeSet<String> {
    let mut gateways = vec![format!("{name}-infra/edge"), format!("{name}-infra/internal")];
    gateways.extend((work != Work::Prune).then(|| format!("{name}-shop/storefront")));
    let kinds = ["ServiceAccount", "ConfigMap", "Service", "Deployment"];
    gateways.iter().flat_map(|gateway| kinds.map(|kind| format!("{kind}/{gateway}"))).collect()
}

/// Returns the objects that a killed round has made or deleted and that no report says so of.
fn untold(site: &Site<'_>, before: &Seen, after: &Seen) -> BTreeSet<String> {
    let is_missing = |all: &Seen, object: &&String| !all.owned.contains_key(*object);
    let made = after.owned.keys().filter(|object| is_missing(before, object)).map(|object| format!("create {object}"));
    let deleted =
        before.owned.keys().filter(|object| is_missing(after, object)).map(|object| format!("prune {object}"));
    let mut untold: BTreeSet<String> = made.chain(deleted).collect();
    let reports = fs::read_dir(site.desk.path("state/reports")).expect("a round was reported");
    for report in reports.flatten().filter(|file| file.path().extension().is_some_and(|it| it == "json")) {
        let report = fs::read(report.path()).expect("it can be read");
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        let steps = report["clusters"]["c"]["steps"].as_array().into_iter().flatten();
        for step in steps.filter(|step| step["outcome"]["result"] != "skipped") {
            let text = |field: &str| step["id"][field].as_str().unwrap_or_default();
            let action = step["action"].as_str().unwrap_or_default();
            untold.remove(&format!("{action} {}/{}/{}", text("kind"), text("namespace"), text("name")));
        }
    }
    untold
}

/// Returns the number of rounds that the audit log has.
fn audited(site: &Site<'_>) -> usize {
    let audit = site.desk.run(&["audit", "-o", "json"]).exits(0);
    let audit: Value = serde_json::from_str(&audit.out).expect("it is JSON");
    audit["entries"].as_array().into_iter().flatten().filter(|entry| entry["event"] == "round").count()
}

/// Tells whether nothing is left to be made or deleted.
fn is_done(seen: &Seen, name: &str, work: Work) -> bool {
    seen.owned.keys().cloned().collect::<BTreeSet<_>>() == wanted(name, work)
}

/// Kills a round at a moment, and has the next ones put it right.
fn kill(server: &ApiServer, name: &str, work: Work, moment: Moment) {
    let context = format!("{name}, killed at {moment:?} (seed {SEED})");
    let site = Site::new(server, name);
    site.prepare(work);
    let (before, rounds) = (site.look(), audited(&site));
    site.kill_at(work, moment);

    let after = site.look();
    let owned: BTreeSet<String> = after.owned.keys().cloned().collect();
    assert!(owned.is_subset(&after.known()), "{context}: {owned:?} are not all of {:?}", after.known());

    let kubeconfig = server.kubeconfig("admin");
    let first = site.desk.run_with(&kubeconfig, &["sync", "--no-wait"]);
    assert_eq!(first.code, 0, "{context}: {}{}", first.out, first.err);
    let missed = untold(&site, &before, &after);
    assert!(missed.is_empty(), "{context}: the history does not have {missed:?}");
    let is_changed = !before.owned.keys().eq(after.owned.keys());
    // The round that was killed, and the one that goes on where something is left.
    let least = rounds + 1 + usize::from(!is_done(&after, name, work));
    assert!(!is_changed || audited(&site) >= least, "{context}: the audit log does not have the round");
    let second = site.desk.run_with(&kubeconfig, &["sync", "--no-wait"]);
    assert!(second.code == 0 && second.out.contains("no changes"), "{context}: {}{}", second.out, second.err);

    let end = site.look();
    assert_eq!(end.owned.keys().cloned().collect::<BTreeSet<_>>(), wanted(name, work), "{context}");
    assert_eq!(end.known(), wanted(name, work), "{context}");
    let port = match work {
        Work::Create => Some(8080),
        Work::Update => Some(8081),
        Work::Prune => None,
    };
    assert_eq!(end.port, port, "{context}");
    assert_eq!(end.bystander, before.bystander, "{context}: it was written to");
    for (object, uid) in before.owned.iter().chain(&after.owned) {
        let is_same = end.owned.get(object).is_none_or(|now| now == uid);
        assert!(is_same, "{context}: {object} was replaced");
    }
}

#[test]
fn a_sync_may_be_killed_at_any_moment() {
    let server = ApiServer::start();
    let mut random = StdRng::seed_from_u64(SEED);
    for (work, times, writing) in KILLS {
        for number in 0..times {
            let moment = match number % 3 {
                0 => Moment::Started(Duration::from_micros(random.random_range(0..WHOLE * 1000))),
                _ => Moment::Traced(Duration::from_micros(random.random_range(0..writing * 1000))),
            };
            kill(&server, &format!("{work:?}-{number}").to_lowercase(), work, moment);
        }
    }
}
