//! Two syncs, `a` and `b`, with a folder of Gateways each, on one cluster and in one namespace.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::cluster::{ApiServer, unique};
use crate::ownership::site::{server, version};
use crate::program::{Desk, Run};
use crate::rounds::installation::gateway;

const KINDS: &str = "serviceaccounts,configmaps,services,deployments";

pub(crate) struct Pair {
    pub(crate) desk: Desk,
    pub(crate) namespace: String,
    pub(crate) server: &'static ApiServer,
    settings: String,
}

impl Pair {
    /// `settings` is what the config says of both syncs, in YAML's flow style.
    pub(crate) fn new(settings: &str) -> Self {
        let (namespace, server) = (unique("moved"), server());
        server.kubectl_ok(&["create", "namespace", &namespace]);
        let pair = Self { desk: Desk::empty("gatewright.yaml"), namespace, server, settings: settings.to_owned() };
        for folder in ["specs/a", "specs/b"] {
            fs::create_dir_all(pair.desk.path(folder)).expect("a new folder can be written");
        }
        pair.together();
        pair
    }

    /// The name of a sync; other tests on this server have theirs.
    pub(crate) fn sync(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// Both syncs in the config.
    pub(crate) fn together(&self) {
        self.configure(&[(&self.sync("a"), "a", ""), (&self.sync("b"), "b", "")]);
    }

    /// Both, and the source of one of them is not there any more.
    pub(crate) fn elsewhere(&self, lost: &str) {
        self.together();
        let (from, to) =
            (format!("{}: {{source: specs", self.sync(lost)), format!("{}: {{source: other", self.sync(lost)));
        self.desk.replace("gatewright.yaml", &from, &to);
        self.desk.replace("gatewright.yaml", "sources: {", "sources: {other: {directory: {path: ./lost}}, ");
    }

    /// Both, on a directory.
    pub(crate) fn directory(&self) {
        self.desk.replace("gatewright.yaml", "{kubeconfig: {}}", "{directory: {path: ./rendered}}");
    }

    /// Writes the config: the name of each sync, its folder, and what else is said of it.
    pub(crate) fn configure(&self, syncs: &[(&str, &str, &str)]) {
        let sync = |(name, path, more): &(&str, &str, &str)| {
            let settings = ["wait: {enabled: false}", self.settings.as_str(), more];
            let settings: Vec<&str> = settings.into_iter().filter(|text| !text.is_empty()).collect();
            let more = settings.join(", ");
            format!("  {name}: {{source: specs, path: {path}, clusters: {{names: [c]}}, {more}}}\n")
        };
        let syncs: String = syncs.iter().map(sync).collect();
        let config = format!(
            "stateDir: ./state\nsources: {{specs: {{directory: {{path: ./specs}}}}}}\n\
             clusters: {{c: {{kubeconfig: {{}}}}}}\nsyncs:\n{syncs}"
        );
        self.desk.write("gatewright.yaml", &config);
    }

    pub(crate) fn want(&self, folder: &str, names: &[&str]) {
        for name in names {
            self.desk.write(&format!("specs/{folder}/{name}.json"), &gateway(&self.namespace, name, 80));
        }
    }

    pub(crate) fn drop(&self, folder: &str, names: &[&str]) {
        for name in names {
            fs::remove_file(self.desk.path(&format!("specs/{folder}/{name}.json"))).expect("it is there");
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.desk.run_with(&self.server.kubeconfig("admin"), arguments)
    }

    fn list(&self, namespace: &str, kinds: &str) -> Vec<Value> {
        self.server.objects(namespace, kinds)
    }

    /// The objects in the namespace, as `Kind/name`, each with its uid and version.
    pub(crate) fn versions(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = |item: &Value| format!("{}/{}", text(&item["kind"]), text(&item["metadata"]["name"]));
        self.list(&self.namespace, KINDS).iter().map(|item| (key(item), version(item))).collect()
    }

    /// The sync whose mark the Service of a Gateway bears.
    pub(crate) fn owner(&self, gateway: &str) -> String {
        let service = self.server.object(&self.namespace, &format!("service/{gateway}"));
        let label = service["metadata"]["labels"]["gatewright.dev/sync"].as_str().unwrap_or_default();
        label.rsplit_once('.').map(|(sync, _)| sync.to_owned()).unwrap_or_default()
    }

    /// The names of our own records of a sync.
    pub(crate) fn records(&self, sync: &str) -> Vec<String> {
        let items = self.list("gatewright-system", "configmaps");
        let names = items.iter().filter_map(|item| item["metadata"]["name"].as_str());
        let head = format!("gatewright.{sync}");
        let is_its = |name: &&str| *name == head || name.starts_with(&format!("{head}."));
        names.filter(is_its).map(str::to_owned).collect()
    }

    /// The objects in the inventory of a sync.
    pub(crate) fn owned(&self, sync: &str) -> Vec<String> {
        let records = self.list("gatewright-system", "configmaps");
        let inventory = crate::ownership::site::inventory_in(&records, sync);
        inventory.entries.into_keys().map(|id| id.to_string()).collect()
    }
}
