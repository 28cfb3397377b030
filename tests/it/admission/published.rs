//! The definitions as their authors publish them, in Go modules, and a server that has them.

use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::yaml;
use kube::Client;
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

use crate::cluster::ApiServer;
use crate::cluster::process::command;
use crate::cluster::reading::config;

/// The modules, and their folders with definitions.
const MODULES: [(&str, &str); 5] = [
    ("sigs.k8s.io/gateway-api@v1.6.3", "config/crd/experimental"),
    ("sigs.k8s.io/gateway-api-inference-extension@v1.5.0", "config/crd/bases"),
    ("github.com/kgateway-dev/kgateway/v2@v2.2.0", "install/helm/kgateway-crds/templates"),
    ("github.com/kgateway-dev/kgateway/v2@v2.2.0", "install/helm/agentgateway-crds/templates"),
    ("github.com/kserve/kserve@v0.20.0", "config/crd/full/llmisvc"),
];

/// The annotations that say what a definition is of.
const ANNOTATIONS: [&str; 4] = [
    "api-approved.kubernetes.io",
    "gateway.networking.k8s.io/bundle-version",
    "gateway.networking.k8s.io/channel",
    "inference.networking.k8s.io/bundle-version",
];

/// Returns the folder of the definitions that are built in.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/crds")
}

/// Definitions are data: to take a newer release change `MODULES`, and run this with `GATEWRIGHT_BLESS=1`.
#[test]
fn definitions_are_those_that_their_authors_publish() {
    let published: Vec<(String, String)> = MODULES.iter().flat_map(|(module, path)| published(module, path)).collect();
    assert!(published.len() > 15, "only {} were found", published.len());
    if is_blessed() {
        fs::create_dir_all(folder()).expect("it can be made");
    }
    for (name, text) in &published {
        let file = folder().join(name);
        if is_blessed() {
            fs::write(&file, text).expect("it can be written");
        }
        let ours = fs::read_to_string(&file).unwrap_or_default();
        assert!(ours == *text, "{name} is not what is published");
    }
    let files = fs::read_dir(folder()).expect("it is there").flatten();
    let unknown = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let unknown = unknown.filter(|name| name != "README.md" && published.iter().all(|(it, _)| it != name));
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0]);
}

#[expect(clippy::disallowed_methods, reason = "the switch of all tests that write what they compare with")]
fn is_blessed() -> bool {
    std::env::var_os("GATEWRIGHT_BLESS").is_some()
}

/// Reads the definitions of a module: names of files, and their content.
fn published(module: &str, folder: &str) -> Vec<(String, String)> {
    let output = command("go").args(["mod", "download", "-json", module]).current_dir("/").output();
    let output = output.expect("go runs").stdout;
    let module: Value = serde_json::from_slice(&output).expect("it is JSON");
    let folder = Path::new(module["Dir"].as_str().expect("it was downloaded")).join(folder);
    let files = fs::read_dir(&folder).expect("it is there").flatten();
    let documents = files.flat_map(|entry| {
        yaml::parse_values(&fs::read_to_string(entry.path()).unwrap_or_default()).unwrap_or_default()
    });
    let is_whole = |it: &Value| it["kind"] == "CustomResourceDefinition" && it["spec"]["versions"].is_array();
    let definitions = documents.filter(is_whole);
    definitions.map(|definition| (name(&definition), lines(&kept(&definition)))).collect()
}

/// Writes a value on a line of its own each, without the spaces in front of them, which would be most of it.
fn lines(value: &Value) -> String {
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(b"");
    value.serialize(&mut Serializer::with_formatter(&mut text, formatter)).expect("it can be written");
    String::from_utf8(text).expect("it is text") + "\n"
}

fn name(definition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}_{}.json", text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["kind"]))
}

/// Returns what is kept of a definition: what decides, and nothing that is for people.
fn kept(definition: &Value) -> Value {
    let spec = &definition["spec"];
    let annotation = |key: &&str| Some(((*key).to_owned(), definition["metadata"]["annotations"].get(key)?.clone()));
    let annotations: Map<String, Value> = ANNOTATIONS.iter().filter_map(annotation).collect();
    let version = |version: &Value| {
        let mut schema = without_descriptions(&version["schema"]["openAPIV3Schema"]);
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.remove("status");
        }
        json!({
            "name": version["name"],
            "served": version["served"],
            "storage": version["storage"],
            "schema": {"openAPIV3Schema": schema},
            "subresources": version["subresources"],
        })
    };
    let versions: Vec<Value> = spec["versions"].as_array().into_iter().flatten().map(version).collect();
    json!({
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {"name": definition["metadata"]["name"], "annotations": annotations},
        "spec": {
            "group": spec["group"],
            "names": {"kind": spec["names"]["kind"], "plural": spec["names"]["plural"]},
            "scope": spec["scope"],
            "versions": versions,
        },
    })
}

fn without_descriptions(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let below = fields.iter().filter(|(key, _)| *key != "description").map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(map)) => {
                map.iter().map(|(name, it)| (name.clone(), without_descriptions(it))).collect()
            }
            ("items" | "additionalProperties" | "not", it) => without_descriptions(it),
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => list.iter().map(without_descriptions).collect(),
            (_, other) => other.clone(),
        };
        (key.clone(), value)
    });
    below.collect()
}

#[test]
fn warnings_name_the_release_of_the_definitions() {
    for (group, release) in gatewright_packs::RELEASES {
        let (product, version) = release.split_once(' ').expect("a product and its version");
        let is_it = |(module, _): &&(&str, &str)| module.contains(product) && module.ends_with(&format!("@{version}"));
        assert!(MODULES.iter().any(|module| is_it(&module)), "{group}: {release}");
    }
}

/// Returns the definitions that are built in.
pub(super) fn all() -> Vec<Value> {
    let files = fs::read_dir(folder()).expect("it is there").flatten();
    files.filter_map(|it| serde_json::from_str(&fs::read_to_string(it.path()).ok()?).ok()).collect()
}

/// Makes the kinds known to a server.
pub(super) fn install(server: &ApiServer) {
    let folder = folder();
    server.kubectl_ok(&["apply", "--server-side", "--filename", folder.to_str().expect("it is text")]);
    // It fails at once as long as one of them has no status yet.
    let wait = ["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"];
    assert!((0..100).any(|_| server.kubectl(&wait).status.success()), "the kinds are there");
}

/// Asks a server by dry runs.
pub(super) struct Judge {
    client: Client,
    namespace: String,
    plurals: Map<String, Value>,
}

impl Judge {
    pub(super) fn new(server: &ApiServer, namespace: &str) -> Self {
        let config = futures::executor::block_on(config(&server.kubeconfig("admin")));
        let plural = |definition: Value| {
            Some((definition["spec"]["names"]["kind"].as_str()?.to_owned(), definition["spec"].clone()))
        };
        Self {
            client: Client::try_from(config).expect("it is sound"),
            namespace: namespace.to_owned(),
            plurals: all().into_iter().filter_map(plural).collect(),
        }
    }

    /// Returns why a server refuses to create an object, if it does.
    pub(super) async fn refused(&self, document: &Value) -> Option<String> {
        let spec = &self.plurals[document["kind"].as_str().expect("it says its kind")];
        let plural = spec["names"]["plural"].as_str().expect("it has one");
        let version = document["apiVersion"].as_str().expect("it says its version");
        let within = if spec["scope"] == "Cluster" { String::new() } else { format!("namespaces/{}/", self.namespace) };
        let path = format!("/apis/{version}/{within}{plural}?dryRun=All&fieldValidation=Strict");
        let body = serde_json::to_vec(document).expect("it is JSON");
        let request = axum::http::Request::post(path).header("content-type", "application/json").body(body);
        let answer = self.client.request::<Value>(request.expect("it is sound")).await;
        match answer {
            Err(kube::Error::Api(status)) if [400, 422].contains(&status.code) => Some(status.message.clone()),
            answer => {
                answer.expect("the server answers");
                None
            }
        }
    }
}

/// Writes lines into a file in the folder of this test run.
pub(super) fn write(name: &str, lines: &[String]) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), lines.join("\n")).expect("it can be written");
}
