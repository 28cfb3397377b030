//! Generated values: a key that no file and no output has, and that stays what it is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::support::memory::{MemoryCluster, Verb};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright::basics::clock::SystemClock;
use gatewright::cli::render::documents;
use gatewright::cluster::Cluster;
use gatewright::cluster::directory::DirectoryCluster;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::report::{ClusterReport, ClusterState};
use gatewright_engine::merge::origin::Merged;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::pack::{Pack, PackError, Packs, Provision, Subject, ValuesGenerator};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use serde_json::{Value, json};

use crate::cluster::{shared, unique};
use crate::rounds::installation::{Installation, Specs, gateway};

const PACK: &str = "
name: keyed
controllers: [example.com/keyed]
classes: {keyed: example.com/keyed}
parameters: {group: example.com, kind: KeyedParameters, versions: [v1]}
templates: [map.yaml]
generate: [{template: secret.yaml, key: key, bytes: 32, encoding: hex}]
";

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ name | json }}}}";

const SECRET: &str = "{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: {{ name | json }}, \
                      labels: {port: {{ port | json }}}}}";

/// A pack with one ordinary object and one Secret with a key.
struct Keyed;

impl ValuesGenerator for Keyed {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        Merged::empty()
    }

    fn values(&self, subject: &Subject<'_>, _parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let port = subject.gateway.spec.listeners[0].port.to_string();
        Ok(Provision::Values(json!({"name": subject.gateway.metadata.name, "port": port})))
    }
}

fn pack(manifest: &str, secret: &str) -> Result<Pack, PackError> {
    let files = BTreeMap::from([("pack.yaml", manifest), ("map.yaml", MAP), ("secret.yaml", secret)]);
    let schema = Schema::of::<BTreeMap<String, String>>().expect("it has a schema");
    Pack::new(&files, schema, Arc::new(Keyed))
}

fn packs() -> &'static Packs {
    static PACKS: OnceLock<Packs> = OnceLock::new();
    PACKS.get_or_init(|| Packs::new(vec![pack(PACK, SECRET).expect("the pack is sound")]).expect("it is sound"))
}

fn installation(sync: &str) -> Installation {
    Installation::new(sync, &json!({})).with_packs(packs())
}

fn specs(namespace: &str, port: u16) -> Specs {
    let text = gateway(namespace, "edge", port).replace("\"kgateway\"", "\"keyed\"");
    BTreeMap::from([("edge.json".to_owned(), text)])
}

fn secret(namespace: &str) -> ObjectId {
    ObjectId::new("", "Secret", namespace, "edge")
}

fn action(report: &ClusterReport) -> &str {
    let step = report.steps.iter().find(|step| step.id.kind == "Secret").expect("the Secret has a step");
    step.action.word()
}

/// The key itself, out of a Secret.
fn key_in(body: &Value) -> String {
    let data = body["data"]["key"].as_str().expect("the key is there");
    let text = STANDARD.decode(data).expect("data is base64");
    String::from_utf8(text).expect("it is text")
}

#[tokio::test]
async fn a_value_is_made_once_and_stays_on_a_server() {
    let name = unique("generate");
    let settings = Settings { path: Some(shared().kubeconfig("admin")), ..Settings::default() };
    let cluster = KubeCluster::new("c", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let cluster: Arc<dyn Cluster> = Arc::new(cluster);
    let installation = installation(&name);
    let read = || {
        let json = shared().kubectl_ok(&["get", "secret", "edge", "-n", &name, "-o", "json", "--show-managed-fields"]);
        serde_json::from_str::<Value>(&json).expect("kubectl prints JSON")
    };

    let plan = installation.plan(&specs(&name, 80), &cluster).await;
    assert_eq!(action(&plan), "generate", "{plan:?}");
    let made = installation.round(&specs(&name, 80), &cluster).await;
    assert_eq!((action(&made), made.state), ("generate", ClusterState::Done), "{made:?}");
    let key = key_in(&read());
    assert!(key.len() == 64 && key.chars().all(|digit| digit.is_ascii_hexdigit()), "32 bytes are not {key:?}");

    let kept = installation.round(&specs(&name, 80), &cluster).await;
    assert_eq!(action(&kept), "keep", "{kept:?}");
    // Its metadata is managed like that of everything else.
    let updated = installation.round(&specs(&name, 81), &cluster).await;
    assert_eq!(action(&updated), "update", "{updated:?}");
    let live = read();
    assert_eq!((key_in(&live), &live["metadata"]["labels"]["port"]), (key.clone(), &json!("81")));
    assert_eq!(live["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));

    // Whoever takes the value away gets another one.
    shared().kubectl_ok(&[
        "patch",
        "secret",
        "edge",
        "-n",
        &name,
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/data"}]"#,
    ]);
    let remade = installation.round(&specs(&name, 81), &cluster).await;
    assert_eq!(action(&remade), "generate", "{remade:?}");
    let other = key_in(&read());
    assert_ne!(other, key);

    for report in [plan, made, kept, updated, remade] {
        let text = format!("{report:?} {}", serde_json::to_string(&report).expect("a report is plain data"));
        for key in [&key, &other] {
            assert!(!text.contains(key) && !text.contains(&STANDARD.encode(key)), "{text}");
        }
    }
}

#[tokio::test]
async fn a_secret_of_somebody_else_keeps_its_value() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let metadata = json!({"name": "edge", "namespace": "infra"});
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "dGhlaXJz"}});
    let put = |body: &Value| memory.put(Object::new(body.clone()).expect("it has all that it needs"));
    put(&theirs);
    let never = Installation::new("edge", &json!({"adopt": {"policy": "never"}})).with_packs(packs());
    let report = never.round(&specs("infra", 80), &cluster).await;
    assert_eq!((report.refusals.len(), memory.objects().len()), (2, 1), "{report:?}");

    let unowned = Installation::new("edge", &json!({"adopt": {"policy": "if-unowned"}})).with_packs(packs());
    let report = unowned.round(&specs("infra", 80), &cluster).await;
    assert_eq!(action(&report), "adopt", "{report:?}");
    assert_eq!(key_in(memory.objects()[&secret("infra")].object.body()), "theirs");
}

#[tokio::test]
async fn a_value_is_not_made_twice_when_an_answer_is_lost() {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let installation = installation("edge");
    memory.lose_next_answer(Verb::Apply, Some(secret("infra")));
    let report = installation.round(&specs("infra", 80), &cluster).await;
    assert_eq!(report.state, ClusterState::Unreachable, "{report:?}");
    let key = key_in(memory.objects()[&secret("infra")].object.body());
    let report = installation.round(&specs("infra", 80), &cluster).await;
    assert_eq!((action(&report), report.state), ("keep", ClusterState::Done), "{report:?}");
    assert_eq!(key_in(memory.objects()[&secret("infra")].object.body()), key);

    // It goes like everything else.
    let more =
        BTreeMap::from([("other.json".to_owned(), specs("infra", 80)["edge.json"].replace("\"edge\"", "\"other\""))]);
    let report = installation.round(&more, &cluster).await;
    assert_eq!(report.state, ClusterState::Done, "{report:?}");
    assert!(!memory.objects().contains_key(&secret("infra")));
    assert_eq!(installation.inventory(memory.as_ref()).await.entries.len(), 2);
}

#[tokio::test]
async fn no_file_has_a_value() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let root = folder.path().join("rendered");
    let cluster: Arc<dyn Cluster> = Arc::new(DirectoryCluster::new(&root));
    let installation = installation("edge");
    for _ in 0..2 {
        let report = installation.round(&specs("infra", 80), &cluster).await;
        assert_eq!((action(&report), report.state), ("omit", ClusterState::Done), "{report:?}");
        let step = report.steps.iter().find(|step| step.id.kind == "Secret").and_then(|step| step.note.clone());
        let note = "data.key is generated once, on each cluster: 32 random bytes, and never written to a file";
        assert_eq!(step.as_deref(), Some(note));
        assert!(root.join("infra/configmap-edge.yaml").exists() && !root.join("infra/secret-edge.yaml").exists());
    }
    assert_eq!(installation.inventory(cluster.as_ref()).await.entries.len(), 1);

    let documents = documents(&installation.rendering(&specs("infra", 80)));
    let secret = documents.iter().find(|document| document.contains("kind: Secret")).expect("it is rendered");
    assert!(
        secret.starts_with("---\n# data.key is generated once, on each cluster: 32 random bytes\napiVersion: v1\n")
    );
    assert!(!secret.contains("\ndata:"), "{secret}");
}

#[test]
fn a_pack_that_says_too_little_of_a_value_is_refused() {
    let short = pack(&PACK.replace("bytes: 32", "bytes: 8"), SECRET).err();
    assert!(matches!(short, Some(PackError::Guessable(8))), "{short:?}");
    let filled = pack(PACK, &SECRET.replace("type: Opaque", "stringData: {key: guessed}")).expect("it can be loaded");
    let packs = Box::leak(Box::new(Packs::new(vec![filled]).expect("it is sound")));
    let rendering = Installation::new("edge", &json!({})).with_packs(packs).rendering(&specs("infra", 80));
    assert!(rendering.problems[0].message.contains("must yield a Secret without \"key\""), "{:?}", rendering.problems);
}
