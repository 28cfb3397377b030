//! A whole fleet of Gateways, of every shape, that a release has deployed: adopted, released, and adopted again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::promises::configure;
use super::{import, scaled, with_parameters};
use crate::cases;
use crate::cluster::ApiServer;
use crate::ownership::site::Site;
use crate::program::Run;
use crate::support::kgateway::{Controller, Identity, Release, identities};

const NUMBER: usize = 100;
/// The number of those that go back to their deployer and come again.
const RELEASED: usize = 34;
const MANAGED: &str = "gatewright.dev/managed";

/// Parameters as people write them.
fn shapes() -> Vec<Value> {
    let container = |fields: Value| json!({"kube": {"envoyContainer": fields}});
    let log = |format: Value| container(json!({"bootstrap": {"logFormat": format}}));
    let line = "%Y-%m-%dT%H:%M:%S.%e a line of a log that is longer than a line of a document, # with \"marks\": yes";
    let matcher = json!({"inclusionList": [{"prefix": "http."}, {"safeRegex": r"^cluster\.(.*)$"}]});
    vec![
        json!({"kube": {}}),
        scaled(),
        json!({"kube": {"service": {"type": "ClusterIP"}}}),
        json!({"kube": {"service": {"type": "NodePort", "extraAnnotations": {"a": "true"}}}}),
        json!({"kube": {"stats": {"enabled": false}}}),
        json!({"kube": {"stats": {"matcher": matcher}}}),
        log(json!({"text": line})),
        log(json!({"text": "several\nlines\n"})),
        log(json!({"json": {"time": "%Y", "level": "%l", "nested": {"on": "yes", "number": "0x1"}}})),
        container(json!({"bootstrap": {"dnsResolver": {"udpMaxQueries": 0}, "logLevel": "debug"}})),
        container(json!({"extraArgs": ["--concurrency", "2"], "env": [{"name": "A", "value": "1"}]})),
        container(json!({"resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}})),
        json!({"kube": {"omitDefaultSecurityContext": true, "podTemplate": {"nodeSelector": {"a": "b"}}}}),
        json!({"kube": {"deployment": {"replicas": 0, "strategy": {"type": "Recreate"}}}}),
    ]
}

/// One Gateway and what belongs to it, all with names that begin with its own.
struct Shape {
    gateway: Value,
    beside: Vec<Value>,
}

/// The Gateways of a case, each under a name of its own in this namespace; the first has all else.
fn of_case(file: &Path, namespace: &str, prefix: &str) -> Vec<Shape> {
    let text = fs::read_to_string(file).expect("a case can be read");
    let mut documents = yaml::parse_values(&text).expect("a case is YAML");
    documents.retain(|document| {
        ["Gateway", "GatewayClass", "GatewayParameters"].map(Value::from).contains(&document["kind"])
    });
    let own = |name: &mut Value| *name = format!("{prefix}-{}", name.as_str().unwrap_or_default()).into();
    let is_class = |document: &&Value| document["kind"] == "GatewayClass";
    let classes: Vec<Value> =
        documents.iter().filter(is_class).map(|class| class["metadata"]["name"].clone()).collect();
    for document in &mut documents {
        own(&mut document["metadata"]["name"]);
        match document["kind"].as_str() {
            Some("GatewayClass") => {
                if let Some(reference) = document["spec"].get_mut("parametersRef") {
                    own(&mut reference["name"]);
                    reference["namespace"] = namespace.into();
                }
                continue;
            }
            Some("Gateway") => {
                let class = &mut document["spec"]["gatewayClassName"];
                if classes.contains(class) {
                    own(class);
                } else {
                    *class = "kgateway".into();
                }
                let reference = document.pointer_mut("/spec/infrastructure/parametersRef/name");
                reference.into_iter().for_each(own);
            }
            _ => {}
        }
        document["metadata"]["namespace"] = namespace.into();
    }
    let (gateways, beside): (Vec<Value>, Vec<Value>) = documents.into_iter().partition(|it| it["kind"] == "Gateway");
    let mut beside = Some(beside);
    gateways.into_iter().map(|gateway| Shape { gateway, beside: beside.take().unwrap_or_default() }).collect()
}

/// As many Gateways, each of another shape than the one before.
fn gateways(site: &Site, number: usize) -> Vec<Shape> {
    let mut suites = cases::suites(&cases::folders()).into_iter();
    let kgateway = suites.find(|suite| suite.name == "kgateway").expect("it is known");
    let files: Vec<_> = kgateway.cases().into_iter().map(|(_, folder)| folder).collect();
    let files: Vec<_> = files.iter().filter(|it| it.join("out.yaml").exists()).map(|it| it.join("in.yaml")).collect();
    let ours = |turn: usize| {
        let shape = move |(n, parameters): (usize, Value)| {
            let [own, gateway] = with_parameters(site, &format!("edge-{turn}-{n}"), &parameters);
            Shape { gateway, beside: vec![own] }
        };
        shapes().into_iter().enumerate().map(shape)
    };
    let theirs = |turn: usize| {
        let files = files.iter().enumerate();
        files.flat_map(move |(n, file)| of_case(file, &site.name, &format!("{}-{turn}-{n}", site.name)))
    };
    (0..).flat_map(|turn| ours(turn).chain(theirs(turn))).take(number).collect()
}

/// Writes the source, which leaves them to their deployer or does not.
fn want(site: &Site, all: &[Shape], is_left: bool) {
    for (n, Shape { gateway, beside }) in all.iter().enumerate() {
        let mut gateway = gateway.clone();
        if is_left {
            gateway["metadata"]["annotations"][MANAGED] = "false".into();
        }
        let documents: Vec<String> = beside.iter().chain([&gateway]).map(Value::to_string).collect();
        site.spec(&format!("{n}"), &documents.join("\n---\n"));
    }
}

/// Returns what a plan changes of objects that are there: the kind, and the difference.
pub(super) fn changes(run: &Run) -> Vec<(String, Value)> {
    let report: Value = serde_json::from_str(&run.out).expect("it is JSON");
    let steps = report["clusters"]["c"]["steps"].as_array().expect("a report has steps");
    let of = |step: &Value| {
        let kind = step["id"]["kind"].as_str().unwrap_or_default().to_owned();
        let differences = step["differences"].as_array().cloned().unwrap_or_default();
        differences.into_iter().map(|difference| (kind.clone(), difference)).collect::<Vec<_>>()
    };
    steps.iter().filter(|step| step["action"] != "create").flat_map(of).collect()
}

/// Tells whether it is about who an object belongs to: marks of ours, owners, and the label by which it is found.
pub(super) fn is_about_ownership((kind, difference): &(String, Value)) -> bool {
    let path = difference["path"].as_str().expect("a difference has a path");
    let is_mark = |key: &str| key.contains("gatewright.dev/");
    let are_marks = |value: &Value| value.as_object().is_some_and(|all| all.keys().all(|key| is_mark(key)));
    let is_copy = kind == "Gateway" && ["spec.infrastructure", "spec.addresses"].iter().any(|it| path.starts_with(it));
    let is_scaler = ["PodDisruptionBudget", "HorizontalPodAutoscaler", "VerticalPodAutoscaler"].contains(&&**kind);
    match path {
        "metadata.labels" | "metadata.annotations" => difference["before"].is_null() && are_marks(&difference["after"]),
        r#"metadata.labels["gateway.networking.k8s.io/gateway-name"]"# => is_scaler,
        _ => path.starts_with("metadata.ownerReferences") || is_mark(path) || is_copy,
    }
}

/// Returns the settings that a report proposes, as they stand in a config file below `packs.kgateway`.
fn proposed(run: &Run) -> String {
    let line = run.out.lines().find(|line| line.contains("renders the same")).expect("it proposes");
    let settings = line.split_once("packs: {kgateway: ").expect("it names the pack").1;
    settings.split_once("} renders the same").expect("it is of one line").0.to_owned()
}

/// Gateways that a release has deployed, and all objects as they were then.
pub(super) struct Fleet {
    pub(super) site: Site,
    all: Vec<Shape>,
    controller: Controller,
    before: BTreeMap<String, Identity>,
}

/// Returns all objects once the controllers of the cluster have made what they make of them: pods, and as many as
/// autoscalers want at least, which look only now and then. The deployer is at rest then too: it looks at a Gateway for
/// each pod that becomes ready.
fn settled(site: &Site, controller: &Controller) -> BTreeMap<String, Identity> {
    let mut before = (BTreeMap::new(), 0);
    for _ in 0..200 {
        let now = (identities(site.server, &site.name), controller.all_reconciles());
        if now == before && is_scaled(site) {
            return now.0;
        }
        before = now;
        std::thread::sleep(Duration::from_secs(3));
    }
    before.0
}

/// Tells whether every Deployment has the replicas that its autoscaler wants at least.
fn is_scaled(site: &Site) -> bool {
    let list = |kind: &str| site.server.objects(&site.name, kind);
    let replicas = |deployment: &Value| deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let of = |deployment: Value| (deployment["metadata"]["name"].clone(), replicas(&deployment));
    let deployments: Vec<(Value, u64)> = list("deployments").into_iter().map(of).collect();
    list("hpa").iter().all(|scaler| {
        let target = &scaler["spec"]["scaleTargetRef"]["name"];
        let least = scaler["spec"]["minReplicas"].as_u64().unwrap_or(1);
        deployments.iter().filter(|(name, _)| name == target).all(|(_, replicas)| *replicas == 0 || *replicas >= least)
    })
}

impl Fleet {
    pub(super) fn deployed(release: Release) -> Self {
        let (server, guard) = ApiServer::for_one_test();
        server.install_gateway_api();
        server.install_deployers();
        let site = Site { _guard: Some(guard), ..Site::on(server, "") };
        let all = gateways(&site, NUMBER);
        let documents: Vec<&Value> = all.iter().flat_map(|shape| shape.beside.iter().chain([&shape.gateway])).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
        server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &list);
        let controller = Controller::start(server, release, &[&site.name]);
        controller.settle();
        assert_eq!(controller.failures(), Vec::<String>::new());
        let before = settled(&site, &controller);
        assert_eq!(before.keys().filter(|key| key.starts_with("Deployment/")).count(), NUMBER);
        Self { site, all, controller, before }
    }

    /// Says that no object is another one than before, and none was edited.
    pub(super) fn assert_unmoved(&self) {
        self.controller.settle();
        let now = identities(self.site.server, &self.site.name);
        let names: BTreeSet<&String> = now.keys().chain(self.before.keys()).collect();
        let moved: Vec<_> = names.into_iter().filter(|name| now.get(*name) != self.before.get(*name)).collect();
        assert_eq!(moved, [""; 0], "{:?}", self.controller.deletions());
        assert_eq!((self.controller.deletions(), self.controller.failures()), (Vec::new(), Vec::new()));
    }

    fn adopt(&self) {
        want(&self.site, &self.all, false);
        self.site.run(&["adopt", "--yes"]).exits(0);
        self.assert_unmoved();
        self.site.sync().exits(0).says("no changes");
        assert_eq!(self.owned(), NUMBER);
    }

    /// Releases some of them; the others stay ours.
    fn release(&self) {
        let (some, others) = self.all.split_at(RELEASED);
        want(&self.site, some, true);
        let units: Vec<String> =
            self.names().take(some.len()).map(|name| format!("Gateway/{}/{name}", self.site.name)).collect();
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        self.site.run(&[&["release", "--yes"], units.as_slice()].concat()).exits(0);
        self.assert_unmoved();
        assert_eq!(self.owned(), others.len());
    }

    /// The names of its Gateways.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let name = |shape: &Shape| shape.gateway["metadata"]["name"].as_str().expect("it has a name").to_owned();
        self.all.iter().map(name)
    }

    /// The number of Gateways that are ours.
    fn owned(&self) -> usize {
        self.site.inventory().entries.keys().filter(|id| id.kind == "Gateway").count()
    }
}

/// One fleet for all of it: to deploy it takes a minute of two CPUs.
#[test]
fn a_fleet_is_imported_and_adopted_and_released_and_adopted_again_and_nothing_moves() {
    let mut fleet = Fleet::deployed(Release::kgateway("v2.3.2"));
    import::is_faithful(&fleet);
    // One Service was edited, and put back.
    fleet.before = settled(&fleet.site, &fleet.controller);
    let site = &fleet.site;
    want(site, &fleet.all, false);
    configure(site, "mode: report", "{}");
    let settings = proposed(&site.run(&["plan"]).exits(0));
    configure(site, "mode: report", &settings);
    site.run(&["plan"]).exits(0).says("report: no differences");

    configure(site, "specs: apply, adopt: {policy: if-unowned}", &settings);
    let changes = changes(&site.run(&["plan", "--adopt", "--format", "json"]).exits(0));
    let others: Vec<&(String, Value)> = changes.iter().filter(|change| !is_about_ownership(change)).collect();
    assert!(others.is_empty(), "{others:#?}");
    fleet.adopt();
    fleet.release();
    fleet.adopt();
}
