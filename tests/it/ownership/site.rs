//! A config with one sync and a folder of Gateways, in a namespace of its own on a server that the tests here share.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use gatewright_engine::inventory::{Encoded, Inventory};
use serde_json::{Value, json};

use crate::cluster::{ApiServer, ServerGuard, unique};
use crate::program::{Desk, Run};
use crate::rounds::installation::gateway;

const KINDS: &str = "serviceaccounts,configmaps,services,deployments";

/// Without controllers nothing is written to but by those who are watched here.
pub(crate) fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::start();
        // Whichever test comes first would make it, and count one request more than the others.
        server.kubectl_ok(&["create", "namespace", "gatewright-system"]);
        server
    })
}

/// The config, its folder, and the namespace, which is named like the sync.
pub(crate) struct Site {
    pub(crate) desk: Desk,
    pub(crate) name: String,
    pub(crate) server: &'static ApiServer,
    /// The server ends with the test, if it is for this one alone.
    pub(crate) _guard: Option<ServerGuard>,
}

impl Site {
    /// Makes a namespace and a config for it; `settings` is what it says of the sync, in YAML's flow style.
    pub(crate) fn new(settings: &str) -> Self {
        Self::on(server(), settings)
    }

    /// The same on another server.
    pub(crate) fn on(server: &'static ApiServer, settings: &str) -> Self {
        let name = unique("owned");
        server.kubectl_ok(&["create", "namespace", &name]);
        let site = Self { desk: Desk::empty("gatewright.yaml"), name, server, _guard: None };
        site.configure(&site.name, settings);
        fs::create_dir(site.desk.path("specs")).expect("a new folder can be written");
        site
    }

    /// Makes another installation with the same files: what somebody has who copies all of it but the state.
    pub(crate) fn copied(&self) -> Self {
        let copy =
            Self { _guard: None, desk: Desk::empty("gatewright.yaml"), name: self.name.clone(), server: self.server };
        copy.desk.write("gatewright.yaml", &self.desk.read("gatewright.yaml"));
        for file in fs::read_dir(self.desk.path("specs")).expect("it was made at the start") {
            let name = format!("specs/{}", file.expect("it can be listed").file_name().to_string_lossy());
            copy.desk.write(&name, &self.desk.read(&name));
        }
        copy
    }

    /// Writes the config, with another name for the sync if wanted.
    pub(crate) fn configure(&self, sync: &str, settings: &str) {
        let wait = if settings.contains("wait:") { "" } else { "wait: {enabled: false}, " };
        let sync = format!("{sync}: {{source: specs, clusters: {{names: [c]}}, {wait}{settings}}}");
        let config = format!(
            "stateDir: ./state\nsources: {{specs: {{directory: {{path: ./specs}}}}}}\n\
             clusters: {{c: {{kubeconfig: {{}}}}}}\nsyncs:\n  {sync}\n"
        );
        self.desk.write("gatewright.yaml", &config);
    }

    /// Has Gateways with this port in the source, each in a file of its name.
    pub(crate) fn want(&self, names: &[&str], port: u16) {
        for name in names {
            self.spec(name, &gateway(&self.name, name, port));
        }
    }

    /// Writes a file of the source.
    pub(crate) fn spec(&self, name: &str, text: &str) {
        self.desk.write(&format!("specs/{name}.yaml"), text);
    }

    /// Takes files out of the source.
    pub(crate) fn drop(&self, names: &[&str]) {
        for name in names {
            fs::remove_file(self.desk.path(&format!("specs/{name}.yaml"))).expect("it is there");
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.desk.run_with(&self.server.kubeconfig("admin"), arguments)
    }

    pub(crate) fn sync(&self) -> Run {
        self.run(&["sync"])
    }

    /// Runs kubectl in the namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.server.kubectl_ok(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// Creates an object in the namespace, as somebody else would.
    pub(crate) fn create(&self, object: &Value) {
        self.server.kubectl_stdin(&["-n", &self.name, "create", "--validate=false", "-f", "-"], &object.to_string());
    }

    /// Reads an object of the namespace, such as `configmap/edge`.
    pub(crate) fn get(&self, object: &str) -> Value {
        self.server.object(&self.name, object)
    }

    /// The objects in the namespace, as `Kind/name`, each with its uid and version.
    pub(crate) fn versions(&self) -> BTreeMap<String, String> {
        self.objects().iter().map(|(key, object)| (key.clone(), version(object))).collect()
    }

    fn objects(&self) -> BTreeMap<String, Value> {
        let items = self.server.objects(&self.name, KINDS);
        let key = |item: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{}/{}", text(&item["kind"]), text(&item["metadata"]["name"]))
        };
        items.into_iter().map(|item| (key(&item), item)).collect()
    }

    /// The names of what is left of a Gateway.
    pub(crate) fn left_of(&self, gateway: &str) -> Vec<String> {
        let suffix = format!("/{gateway}");
        self.versions().into_keys().filter_map(|key| key.strip_suffix(&suffix).map(str::to_owned)).collect()
    }

    /// Our own records of this sync, by name.
    pub(crate) fn records(&self) -> BTreeMap<String, Value> {
        let items = self.server.objects("gatewright-system", "configmaps");
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let head = format!("gatewright.{}", self.name);
        let is_ours = |name: &str| name == head || name.starts_with(&format!("{head}."));
        items.into_iter().map(|item| (name(&item), item)).filter(|(name, _)| is_ours(name)).collect()
    }

    pub(crate) fn inventory(&self) -> Inventory {
        inventory_in(&self.records().into_values().collect::<Vec<_>>(), &self.name)
    }

    /// Overwrites the inventory, as somebody could who may edit our `ConfigMap`s.
    pub(crate) fn forge(&self, inventory: &Inventory) {
        let head = format!("gatewright.{}", self.name);
        let Encoded { head: data, shards } = inventory.encode();
        let shards = shards.into_iter().map(|(digest, shard)| (format!("{head}.{digest}"), shard));
        let records = shards.chain([(head.clone(), data)]).map(|(name, data)| {
            let metadata = json!({"name": name, "namespace": "gatewright-system"});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": records.collect::<Vec<_>>()});
        let arguments = ["apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-"];
        self.server.kubectl_stdin(&arguments, &list.to_string());
    }
}

/// Reads the inventory of a sync out of the records of a cluster; there must be one.
pub(crate) fn inventory_in(records: &[Value], sync: &str) -> Inventory {
    let text = |record: &Value| serde_json::from_value(record["data"].clone()).expect("a ConfigMap holds text");
    let named = |record: &Value| Some((record["metadata"]["name"].as_str()?.to_owned(), text(record)));
    let mut records: BTreeMap<String, _> = records.iter().filter_map(named).collect();
    let head = format!("gatewright.{sync}");
    let data = records.remove(&head).expect("there is an inventory");
    let digest = |name: &str| Some(name.strip_prefix(&format!("{head}."))?.to_owned());
    let shards = records.into_iter().filter_map(|(name, shard)| Some((digest(&name)?, shard))).collect();
    Inventory::decode(&Encoded { head: data, shards }).expect("the inventory is whole")
}

/// The uid and version of an object.
pub(crate) fn version(object: &Value) -> String {
    format!("{} {}", object["metadata"]["uid"], object["metadata"]["resourceVersion"])
}
