//! The table of kinds with the rows of packs: what the built-in packs say, and a data plane that is added by its pack
//! alone.

mod products;
mod served;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gatewright::cluster::Cluster;
use gatewright::config::packs::{build, folders};
use gatewright::report::ClusterReport;
use gatewright::report::action::StepAction;
use gatewright_engine::error::Chain;
use gatewright_engine::health::{Readiness, health};
use gatewright_engine::kinds::name::KindName;
use gatewright_engine::live::Live;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::pack::builtin::Builtin;
use gatewright_engine::plan::guard::confirm::is_slow;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::recreate::consent;
use gatewright_engine::relations::{Branch, branches};
use gatewright_engine::unit::Unit;
use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::rounds::installation::{Installation, Specs};
use crate::support::memory::MemoryCluster;

/// A data plane: planes, which lanes need, each of objects of kinds that nobody else knows.
const PACK: &str = r#"
name: acme
claims:
  - {group: acme.example.com, kind: Lane, versions: [v1]}
  - {group: acme.example.com, kind: Plane, versions: [v1]}
parameters: {group: acme.example.com, kind: PlaneParameters, versions: [v1]}
templates:
  - {file: lane.yaml, when: 'resource.kind == "Lane"'}
  - {file: plane.yaml, when: 'resource.kind == "Plane"'}
kinds:
  acme.example.com:
    Plane: {wave: base}
    Track: {confirm: true}
    Engine:
      order: account
      recreate: false
      slow: true
      templates: [spec.pod]
      health: {said: {by: pilot, conditions: [Flying], unsaid: nobody has heard of it yet}}
    Fabric:
      scope: cluster
      order: route
      selects: pods
      refersTo: [{path: 'spec.parts.*', kind: Track}]
      health: {current: object.status.phase == 'Woven', message: it is still on the loom}
    Cloth:
      health: {current: object.status.phase == 'Woven'}
"#;

const LANE: &str = "
apiVersion: acme.example.com/v1
kind: Track
metadata: {name: {{ name | json }}}
spec: {}
";

const PLANE: &str = "
apiVersion: acme.example.com/v1
kind: Fabric
metadata: {name: {{ name | json }}}
spec: {parts: [{name: left}], selector: {app: {{ name | json }}}}
---
apiVersion: acme.example.com/v1
kind: Engine
metadata: {name: {{ name | json }}}
spec: {pod: {metadata: {labels: {app: {{ name | json }}}}, spec: {containers: [{name: main, image: i}]}}}
";

/// Builds the built-in packs, and these beside them: the name of the folder and its `pack.yaml`.
fn packs_with(manifests: &[(&str, &str)]) -> Result<Packs, String> {
    let root = tempfile::tempdir().expect("temporary folders can be made");
    for (name, manifest) in manifests {
        let folder = root.path().join(name);
        fs::create_dir(&folder).expect("it is new");
        let write = |file: &str, text: &str| fs::write(Path::new(&folder).join(file), text).expect("it can be written");
        write("pack.yaml", manifest);
        write("lane.yaml", LANE);
        write("plane.yaml", PLANE);
    }
    let folders = folders(&gatewright_packs::all().into(), [root.path()]).map_err(|error| Chain(&error).to_string())?;
    build(None, &folders).map_err(|error| Chain(&error).to_string())
}

fn acme() -> &'static Packs {
    Box::leak(Box::new(packs_with(&[("acme", PACK)]).expect("it is sound")))
}

fn spec(kind: &str, name: &str) -> (String, String) {
    let metadata = json!({"name": name, "namespace": "sky"});
    let spec = json!({"apiVersion": "acme.example.com/v1", "kind": kind, "metadata": metadata, "spec": {}});
    (format!("{name}.json"), spec.to_string())
}

fn object(kind: &str, name: &str, rest: &Value) -> Object {
    let mut body = rest.clone();
    body["apiVersion"] = "acme.example.com/v1".into();
    body["kind"] = kind.into();
    body["metadata"] = json!({"name": name, "namespace": "sky", "uid": name, "generation": 1});
    Object::new(body).expect("it has all that it needs")
}

/// The steps with an action, as kinds and names.
fn steps(report: &ClusterReport, action: StepAction) -> Vec<String> {
    let steps = report.steps.iter().filter(|step| step.action == action);
    steps.map(|step| step.id.path()).collect()
}

#[tokio::test]
async fn a_data_plane_is_added_by_its_pack_alone() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new("c"));
    let specs = Specs::from([spec("Lane", "left"), spec("Plane", "main"), spec("Lane", "right")]);
    let installation = Installation::new("edge", &json!({})).with_packs(acme());
    let report = installation.round(&specs, &cluster).await;
    let created = ["Namespace/sky", "Engine/sky/main", "Fabric/main", "Track/sky/left", "Track/sky/right"];
    assert_eq!(steps(&report, StepAction::Create), created, "{report:?}");

    // A lane waits for a person, and the plane for its lanes.
    let fewer = Specs::from([spec("Lane", "right")]);
    let report = installation.plan(&fewer, &cluster).await;
    assert_eq!(steps(&report, StepAction::Prune), Vec::<String>::new(), "{report:?}");
    let held: Vec<&str> = report.holds.iter().map(|hold| hold.what.message.as_str()).collect();
    assert_eq!(held, ["1 object to delete, and Track sky/left is a Track"]);
    let refused = report.refusals.iter().map(|refusal| refusal.id.path()).collect::<Vec<_>>();
    assert_eq!(refused, ["Track/sky/left", "Engine/sky/main", "Fabric/main"]);

    // Where nobody has to agree, all goes in reverse order.
    let hasty = json!({"prune": {"confirm": {"kinds": []}}});
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new("d"));
    let installation = Installation::new("edge", &hasty).with_packs(acme());
    installation.round(&specs, &cluster).await;
    let report = installation.plan(&fewer, &cluster).await;
    assert_eq!(steps(&report, StepAction::Prune), ["Track/sky/left", "Fabric/main", "Engine/sky/main"], "{report:?}");
}

#[test]
fn a_kind_of_a_pack_is_replaced_only_if_its_row_allows_it() {
    let kinds = ["Engine", "Fabric"].map(|kind| KindName::exact("acme.example.com", kind));
    let marker = Marker { installation: "i".to_owned(), sync: "edge".to_owned() };
    let policies = Policies { kinds: acme().table().clone(), recreate: kinds.into(), ..Policies::new(marker) };
    let consent = |kind: &str| {
        let object = object(kind, "main", &json!({}));
        let live = Live::new(object.body().clone()).expect("it has all that it needs");
        consent(&object, &live, &policies)
    };
    assert_eq!(consent("Fabric"), Ok(()));
    let refused = consent("Engine").expect_err("its row says so");
    assert!(refused.starts_with("a Engine.acme.example.com is never deleted for that"), "{refused}");
}

#[test]
fn a_kind_of_a_pack_is_healthy_by_its_row() {
    let of = |kind: &str, status: Value| {
        let object = object(kind, "main", &json!({"status": status}));
        health(object.body(), Readiness::default(), acme().table()).to_string()
    };
    let flying = |status: &str| json!({"conditions": [{"type": "Flying", "status": status, "message": "no wind"}]});
    assert_eq!(of("Engine", json!({})), "nobody has heard of it yet");
    assert_eq!(of("Engine", json!({"observedGeneration": 0})), "its pilot has not seen the change yet");
    assert_eq!(of("Engine", flying("False")), "no wind");
    assert_eq!(of("Engine", flying("True")), "current");
    assert_eq!(of("Fabric", json!({"phase": "Woven"})), "current");
    assert_eq!(of("Fabric", json!({"phase": "Torn"})), "it is still on the loom");
    assert_eq!(of("Cloth", json!({"phase": "Torn"})), "it is not healthy yet by the rule of its pack");
    assert_eq!(of("Track", json!({})), "current");
    let slow = |kind: &str| is_slow(&ObjectId::new("acme.example.com", kind, "sky", "main"), None, acme().table());
    assert_eq!([slow("Engine"), slow("Fabric")], [true, false]);
}

#[test]
fn a_kind_of_a_pack_leads_to_what_its_row_says() {
    fn drawn(objects: &[&Value], branches: &[Branch]) -> String {
        let draw = |branch: &Branch| {
            let kind = objects[branch.index]["kind"].as_str().unwrap_or_default();
            let below = drawn(objects, &branch.below);
            if below.is_empty() { kind.to_owned() } else { format!("{kind}({below})") }
        };
        branches.iter().map(draw).collect::<Vec<_>>().join(" ")
    }
    let specs = Specs::from([spec("Lane", "left"), spec("Plane", "main")]);
    let rendering = Installation::new("edge", &json!({})).with_packs(acme()).rendering(&specs);
    let objects: Vec<&Value> = rendering.units.iter().flat_map(Unit::all).map(Object::body).collect();
    assert_eq!(drawn(&objects, &branches(&objects, acme().table())), "Fabric(Track Engine)");
    let strangers = Packs::new(Vec::new()).expect("there are none");
    assert_eq!(drawn(&objects, &branches(&objects, strangers.table())), "Track Fabric Engine");
}

#[test]
fn packs_that_disagree_about_a_kind_are_refused_by_name() {
    let error = |others: &[(&str, &str)]| packs_with(others).expect_err("it is refused");
    let other = PACK.replace("name: acme", "name: other").replace("Track: {confirm: true}", "Track: {}");
    let disagreement = r#"pack "other" and pack "acme" say different things about the kind Track.acme.example.com"#;
    let said = error(&[("acme", PACK), ("other", &other)]);
    assert!(said.contains(disagreement), "{said}");
    let same = PACK.replace("name: acme", "name: other");
    assert!(packs_with(&[("acme", PACK), ("other", &same)]).is_ok());
    let core = PACK
        .replace("  acme.example.com:\n    Plane", "  core: {Secret: {confirm: true}}\n  acme.example.com:\n    Plane");
    let said = error(&[("acme", &core)]);
    assert!(
        said.contains(r#"pack "acme" and gatewright itself say different things about the kind Secret.core"#),
        "{said}"
    );
}

#[test]
fn who_replaces_the_manifest_of_a_built_in_pack_loses_nothing_that_it_says_of_kinds() {
    let usual = build(None, &folders(&gatewright_packs::all().into(), []).expect("there are none")).expect("they load");
    let manifest = |pack: &Builtin| {
        let documents = yaml::parse_values(pack.files["pack.yaml"]).expect("it is YAML");
        documents.into_iter().next().expect("it is one document")
    };
    let load = |name: &str, manifest: &str| {
        let root = tempfile::tempdir().expect("temporary folders can be made");
        fs::create_dir(root.path().join(name)).expect("it is new");
        fs::write(root.path().join(name).join("pack.yaml"), manifest).expect("it can be written");
        let folders = folders(&gatewright_packs::all().into(), [root.path()]).expect("the folder can be read");
        build(None, &folders).map_err(|error| Chain(&error).to_string()).expect("it is sound")
    };
    for pack in gatewright_packs::all() {
        let mut manifest = manifest(&pack);
        let said = manifest.as_object_mut().and_then(|manifest| manifest.remove("kinds"));
        let packs = load(pack.name, &manifest.to_string());
        assert!(packs.table().all().eq(usual.table().all()), "{} without {said:?}", pack.name);
    }

    // What the folder says itself holds.
    let mut manifest = manifest(gatewright_packs::all().iter().find(|pack| pack.name == "dynamo").expect("it is one"));
    manifest["kinds"] = json!({"nvidia.com": {"DynamoModel": {"confirm": false}}});
    let packs = load("dynamo", &manifest.to_string());
    let confirm = |kind: &str| packs.table().row("nvidia.com", kind).confirm;
    assert_eq!([confirm("DynamoModel"), confirm("DynamoGraphDeployment")], [false, true]);
}

#[test]
fn mistakes_in_the_rows_of_a_pack_are_found_when_it_is_loaded() {
    let error = |from: &str, to: &str| {
        assert!(PACK.contains(from));
        packs_with(&[("acme", &PACK.replace(from, to))]).expect_err("it is refused")
    };
    let said = error("confirm: true", "confrim: true");
    assert!(said.contains("cannot read pack.yaml: unknown field `confrim`"), "{said}");
    let said = error("order: route", "order: last");
    assert!(said.contains("unknown variant `last`"), "{said}");
    let said = error("object.status.phase == 'Woven'", "objekt.status");
    assert!(said.contains("acme/pack.yaml") && said.contains("objekt"), "{said}");
}
