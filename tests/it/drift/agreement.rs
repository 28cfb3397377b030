//! Estimates say what a dry run says: on objects of the real systems' cases that were changed in any way that the
//! server takes, by anybody.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use gatewright::basics::clock::SystemClock;
use gatewright::cluster::Cluster;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::reconcile::observe::dry_run::ask;
use gatewright_engine::diff::Difference;
use gatewright_engine::live::Live;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Gvk, Object};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::drift::Pair;
use gatewright_engine::plan::drift::estimate::estimated;
use gatewright_engine::plan::drift::model::Model;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::questions::Purpose;
use gatewright_engine::unit::Unit;
use http::Request;
use kube::Client;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config as Trials, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cases;
use crate::cluster::reading::config;
use crate::cluster::{ApiServer, unique};
use crate::golden;

/// The number of times that objects of some case are made, changed and compared.
const TRIALS: u32 = 80;

/// The least number of differences that have to be compared for the test to mean anything.
const LEAST_DIFFERENCES: usize = 150;

/// The managers that change things: a person, a controller, a tool, and the deployer itself.
const MANAGERS: [&str; 4] = ["kubectl-edit", "some-controller", "helm", "kgateway.dev/kgateway"];

/// A change that somebody makes to an object.
#[derive(Clone, Debug)]
enum Change {
    /// Another value in one of its fields.
    Other(Index, u8),
    /// One of its fields, or an element of a list, goes.
    Remove(Index),
    /// Two elements of a list change places.
    Swap(Index),
    /// Something that it did not have.
    Add(Index),
    /// Somebody applies a part of it, server side.
    Apply(Index),
}

/// The maker of the objects.
#[derive(Clone, Copy, Debug)]
enum Maker {
    /// The deployer, by server-side apply.
    Deployer,
    /// A tool that creates them, and so owns what the server has filled in, too.
    Tool(&'static str),
}

fn changes() -> impl Strategy<Value = (Index, Maker, Vec<(Index, Change, Index)>)> {
    let index = any::<Index>;
    let change = prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(field, value)| Change::Other(field, value)),
        3 => index().prop_map(Change::Remove),
        1 => index().prop_map(Change::Swap),
        3 => index().prop_map(Change::Add),
        1 => index().prop_map(Change::Apply),
    ];
    let maker = prop_oneof![
        2 => Just(Maker::Deployer),
        1 => Just(Maker::Tool("helm")),
        1 => Just(Maker::Tool("kubectl-create")),
    ];
    (index(), maker, vec((index(), change, index()), 1..14))
}

/// Places of a body that may be changed: everything but what identifies an object.
fn places(body: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        let step = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                found.push(step(key));
                walk(value, &step(key), found);
            }),
            Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| {
                found.push(step(&index.to_string()));
                walk(value, &step(&index.to_string()), found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(body, "", &mut found);
    let is_open = |place: &String| {
        let parts: Vec<&str> = place.split('/').skip(1).collect();
        match parts.as_slice() {
            ["apiVersion" | "kind" | "status" | "metadata", ..] if parts.first() != Some(&"metadata") => false,
            ["metadata", "labels" | "annotations", _] => true,
            ["metadata", ..] => false,
            _ => true,
        }
    };
    found.retain(is_open);
    found
}

/// Things that people and tools add.
fn additions(kind: &str) -> Vec<Value> {
    let mut all = vec![
        json!({"op": "add", "path": "/metadata/labels/added", "value": "yes"}),
        json!({"op": "add", "path": "/metadata/annotations", "value": {"example.com/added": "yes"}}),
    ];
    if matches!(kind, "Deployment" | "DaemonSet") {
        let pod = "/spec/template/spec";
        let env = json!([{"name": "ADDED", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
        all.extend([
            json!({"op": "add", "path": format!("{pod}/containers/0/env/-"), "value": {"name": "ADDED", "value": "1"}}),
            json!({"op": "add", "path": format!("{pod}/containers/0/env/0"), "value": {"name": "FIRST", "value": "1"}}),
            json!({"op": "add", "path": format!("{pod}/containers/0/env"), "value": env}),
            json!({"op": "add", "path": format!("{pod}/containers/0/args/-"), "value": "--added"}),
            json!({"op": "add", "path": format!("{pod}/tolerations"), "value": [{"key": "a", "operator": "Exists"}]}),
            json!({"op": "add", "path": format!("{pod}/nodeSelector"), "value": {"disk": "fast"}}),
            json!({"op": "add", "path": format!("{pod}/hostNetwork"), "value": true}),
            json!({"op": "add", "path": format!("{pod}/terminationGracePeriodSeconds"), "value": 77}),
            json!({"op": "add", "path": format!("{pod}/priorityClassName"), "value": "system-node-critical"}),
            json!({"op": "add", "path": format!("{pod}/containers/-"), "value": {"name": "added", "image": "added"}}),
            json!({"op": "add", "path": format!("{pod}/volumes/-"), "value": {"name": "added"}}),
            json!({"op": "add", "path": format!("{pod}/containers/0/resources"), "value": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}),
            json!({"op": "add", "path": "/spec/template/metadata/annotations", "value": {"added": "yes"}}),
            json!({"op": "add", "path": "/spec/replicas", "value": 4}),
            json!({"op": "add", "path": "/spec/strategy", "value": {"type": "Recreate"}}),
        ]);
    }
    if kind == "Service" {
        let port = json!({"name": "added", "port": 9999});
        all.extend([
            json!({"op": "add", "path": "/spec/ports/-", "value": port}),
            json!({"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}),
            json!({"op": "add", "path": "/spec/externalTrafficPolicy", "value": "Local"}),
            json!({"op": "add", "path": "/spec/selector/added", "value": "yes"}),
        ]);
    }
    if kind == "ConfigMap" {
        all.push(json!({"op": "add", "path": "/data/added", "value": "yes"}));
    }
    all
}

/// The test's own hands on the cluster.
struct Hands {
    runtime: Runtime,
    client: Client,
}

impl Hands {
    fn new(kubeconfig: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime can be made");
        let client = runtime.block_on(async { Client::try_from(config(kubeconfig).await).expect("it is sound") });
        Self { runtime, client }
    }

    fn patch(&self, object: &Object, manager: &str, sort: &str, body: &Value) -> Result<Value, kube::Error> {
        let force = if sort == "apply-patch+yaml" { "&force=true" } else { "" };
        let manager = manager.replace('/', "%2F");
        let request = Request::patch(format!("{}?fieldManager={manager}{force}", address(object)))
            .header("content-type", format!("application/{sort}"))
            .body(body.to_string().into_bytes())
            .expect("it is a request");
        self.runtime.block_on(self.client.request(request))
    }

    /// Makes an object; tells whether the server takes it.
    fn make(&self, object: &Object, maker: Maker) -> bool {
        let Maker::Tool(manager) = maker else {
            return self.patch(object, "kgateway.dev/kgateway", "apply-patch+yaml", object.body()).is_ok();
        };
        let place = address(object);
        let place = place.rsplit_once('/').map_or("", |(place, _)| place);
        let request = Request::post(format!("{place}?fieldManager={manager}"))
            .header("content-type", "application/json")
            .body(object.body().to_string().into_bytes())
            .expect("it is a request");
        self.runtime.block_on(self.client.request::<Value>(request)).is_ok()
    }

    /// Does something to an object; what the server does not take is not done.
    fn change(&self, object: &Object, live: &Live, change: &Change, manager: &str) {
        let (body, places) = (live.object.body(), places(live.object.body()));
        if places.is_empty() {
            return;
        }
        let operation = match change {
            Change::Other(at, value) => {
                let place = at.get(&places);
                let value = other(body.pointer(place).unwrap_or(&Value::Null), *value);
                json!({"op": "replace", "path": place, "value": value})
            }
            Change::Remove(at) => json!({"op": "remove", "path": at.get(&places)}),
            Change::Swap(at) => {
                let is_list = |place: &&String| {
                    body.pointer(place).is_some_and(|it| it.as_array().is_some_and(|it| it.len() > 1))
                };
                let lists: Vec<&String> = places.iter().filter(is_list).collect();
                if lists.is_empty() {
                    return;
                }
                json!({"op": "move", "from": format!("{}/0", at.get(&lists)), "path": format!("{}/1", at.get(&lists))})
            }
            Change::Add(which) => which.get(&additions(&object.id().kind)).clone(),
            Change::Apply(which) => {
                let labels = [json!({"app.kubernetes.io/name": "applied"}), json!({"applied": "yes"})];
                let id = object.id();
                let body = json!({
                    "apiVersion": object.gvk().api_version(), "kind": id.kind,
                    "metadata": {"name": id.name, "namespace": id.namespace, "labels": which.get(&labels)},
                });
                return drop(self.patch(object, "argocd-controller", "apply-patch+yaml", &body));
            }
        };
        drop(self.patch(object, manager, "json-patch+json", &json!([operation])));
    }
}

fn other(value: &Value, by: u8) -> Value {
    match value {
        Value::String(text) if by.is_multiple_of(3) => json!(format!("{text}-other")),
        Value::String(text) => {
            ["250m", "2Gi", "Always", "ClusterIP", "NodePort", "UDP", "HTTPS", text.trim_end_matches('0')]
                [usize::from(by) % 8]
                .into()
        }
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + i64::from(by % 5) - 1),
        Value::Bool(value) => json!(!value),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        Value::Null => json!("other"),
    }
}

fn address(object: &Object) -> String {
    let (id, gvk) = (object.id(), object.gvk());
    let root = if gvk.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}", gvk.api_version()) };
    let plural = format!("{}s", id.kind.to_lowercase());
    format!("{root}/namespaces/{}/{plural}/{}", id.namespace, id.name)
}

/// The objects of all cases, each with its unit, moved to where the test is.
fn units() -> Vec<Unit> {
    let suites = cases::suites(&cases::folders());
    let real = suites.iter().flat_map(|suite| {
        suite.cases().into_iter().flat_map(move |(stem, folder)| suite.case(&stem, &folder).rendering.units)
    });
    let own = golden::cases().iter().flat_map(|case| case.rendering.units.clone());
    real.chain(own).collect()
}

#[test]
fn an_estimate_says_what_a_dry_run_says() {
    let server = ApiServer::start();
    let hands = Hands::new(&server.kubeconfig("admin"));
    let settings = Settings { path: Some(server.kubeconfig("admin")), ..Settings::default() };
    let cluster = KubeCluster::new("test", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let units = units();
    let kinds: BTreeSet<Gvk> = units.iter().flat_map(|unit| unit.objects.iter().map(Object::gvk)).collect();
    let model = hands.runtime.block_on(async {
        let mut model = Model::default();
        for version in kinds.iter().map(Gvk::api_version).collect::<BTreeSet<String>>() {
            let document = cluster.openapi(&version).await.expect("the schemas can be read");
            if let Some(document) = document {
                model.add(&document, &kinds);
            }
        }
        model
    });
    let site = Site { server: &server, hands: &hands, cluster: &cluster, model: &model };
    let config = Trials { cases: TRIALS, failure_persistence: None, ..Trials::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let found = Cell::new(0);
    let outcome = TestRunner::new_with_rng(config, rng).run(&changes(), |(unit, maker, changes)| {
        found.set(found.get() + site.trial(unit.get(&units), maker, &changes)?);
        Ok(())
    });
    let mismatch = outcome.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(mismatch.is_empty(), "{mismatch}");
    let found = found.get();
    assert!(found >= LEAST_DIFFERENCES, "only {found} differences were compared");
}

/// The server on which it happens, and the means to change and compare objects there.
struct Site<'a> {
    server: &'a ApiServer,
    hands: &'a Hands,
    cluster: &'a KubeCluster,
    model: &'a Model,
}

impl Site<'_> {
    /// Makes the objects of a unit, changes them, and compares; returns how many differences there were.
    fn trial(&self, unit: &Unit, maker: Maker, changes: &[(Index, Change, Index)]) -> Result<usize, TestCaseError> {
        let namespace = unique("agreement");
        self.server.kubectl_ok(&["create", "namespace", &namespace]);
        let objects = unit.objects.iter().map(|object| object.clone().in_namespace(&namespace));
        let objects: Vec<Object> = objects.filter(|object| self.hands.make(object, maker)).collect();
        if objects.is_empty() {
            return Ok(0);
        }
        for (at, change, manager) in changes {
            let object = at.get(&objects);
            if let Some(live) = self.live(object) {
                let manager: &&str = manager.get(&MANAGERS);
                self.hands.change(object, &live, change, manager);
            }
        }
        let mut found = 0;
        for object in &objects {
            found += self.compare(unit, object)?;
        }
        Ok(found)
    }

    fn live(&self, object: &Object) -> Option<Live> {
        let live = self.hands.runtime.block_on(self.cluster.get(&object.gvk(), object.id()));
        live.expect("it can be read")
    }

    fn compare(&self, unit: &Unit, object: &Object) -> Result<usize, TestCaseError> {
        let Some(live) = self.live(object) else { return Ok(0) };
        let marker = Marker { installation: "0123456789abcdef".to_owned(), sync: "edge".to_owned() };
        let policies = Policies::new(marker);
        let pair = Pair::new(unit, object, &live, None, &policies).expect("nothing is refused");
        let mut observed = Observed { live: [(object.id().clone(), live.clone())].into(), ..Observed::default() };
        let wanted = [Unit { objects: vec![object.clone()], ..unit.clone() }];
        let asked = ask(self.cluster, &wanted, &policies, Purpose::Report, &mut observed);
        self.hands.runtime.block_on(asked).expect("the server answers");
        // What the server does not take back cannot be compared.
        let Some(Ok(after)) = observed.dry_runs.remove(object.id()).map(|run| run.result) else { return Ok(0) };
        let (exact, _) = pair.differences(after.object.body(), &policies.conflicts);
        let (guess, _) = pair.differences(&estimated(&pair.agreed, &live, self.model), &policies.conflicts);
        let lines = |all: &[Difference]| {
            let text = |it: &Difference| format!("{}: {:?} -> {:?}", it.path, it.before, it.after);
            all.iter().map(text).collect::<Vec<_>>().join("\n")
        };
        let fields = serde_json::to_string_pretty(&live.object.body()["metadata"]["managedFields"]).unwrap_or_default();
        prop_assert_eq!(lines(&guess), lines(&exact), "{}: what was estimated, and what is\n{}", object.id(), fields);
        Ok(exact.len())
    }
}
