//! The pod of a component: what its type begins with, what the user says over it, what its backend needs beside.
//!
//! Expressions in the data of types and backends see `graph`, `namespace`, `component`, `name`, `dynamoNamespace`,
//! `type`, `container` (its name), `settings`, `annotations`, `provider` (`grove`, `lws`, `deployment`), `nodes`,
//! `gpus`, `cache`, `image`, `numbers`, `texts`, `switches` and `executor` (mp or ray); those of several nodes also
//! `leader` and `leaderInShell` (its address), `rank` (which node it is, 0 the leader), `workers` and `hosts` (addresses),
//! `variables` (names of the environment), `command` (as a line of a shell) and `words` (the same without looking into a
//! script). The filter `nested` writes a text of a shell so that it can stand between single quotes.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::pack::gateway::Map as Texts;
use gatewright_engine::quantity::Quantity;
use serde_json::{Value, json};

use super::backend::{Backend, Launch, Node};
use super::command::Command;
use super::fill::{fill, fill_text};
use super::metadata::ORIGIN;
use super::model::{Component, Fields, Graph, Type, by_name, fields, list, set_list};
use super::nodes::{Provider, Role, add_addresses};
use super::read::MAIN;
use super::settings::Settings;
use crate::json::{items, layered, said};
use crate::typed::as_typed;

/// The folder of the user in the images of endpoint pickers.
const PICKER_HOME: &str = concat!("/ho", "me/nonroot");

/// The context that a pod is made for.
pub(super) struct Maker<'a> {
    pub(super) settings: &'a Settings,
    pub(super) graph: &'a Graph,
    pub(super) types: &'a Value,
    pub(super) provider: Provider,
}

/// A component with what runs it.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) component: &'a Component,
    pub(super) backend: Option<&'a Backend>,
    /// The way in which it is launched, if it is several nodes.
    pub(super) launch: Option<&'a Launch>,
}

impl Maker<'_> {
    /// Returns what expressions see.
    pub(super) fn scope(&self, component: &Component, backend: Option<&Backend>) -> Value {
        let graph = self.graph;
        let command = Command::of(&component.main);
        let annotations = layered([&graph.switches, &graph.annotations, &component.annotations]);
        let (config, key) = picker_config(graph, component);
        json!({
            "graph": graph.name,
            "namespace": graph.namespace,
            "component": component.lower(),
            "name": graph.child(component),
            "dynamoNamespace": graph.dynamo_namespace(component),
            "type": component.kind_text,
            "container": MAIN,
            "settings": self.settings.to_value(),
            "executor": executor(&annotations, &self.settings.operator_version),
            "annotations": annotations,
            "provider": self.provider,
            "nodes": component.nodes,
            "gpus": component.gpus(),
            "cache": component.cache.as_deref().unwrap_or_default(),
            "image": component.main.get("image"),
            "numbers": backend.map(|backend| backend.numbers(&command)).unwrap_or_default(),
            "texts": backend.map(|backend| backend.texts(&command)).unwrap_or_default(),
            "switches": backend.map(|backend| backend.switches(&command)).unwrap_or_default(),
            "pickerConfig": config,
            "pickerKey": key,
            "pickerHome": PICKER_HOME,
        })
    }

    /// Returns the spec of a pod.
    pub(super) fn pod(&self, part: Part<'_>, role: Role) -> Result<Value, String> {
        let component = part.component;
        let scope = self.scope(component, part.backend);
        let base = self.base(component.kind, &scope)?;
        let mut main = self.container(&base, &component.main);
        main.insert("name".to_owned(), MAIN.into());
        let mut pod = based(&base, "pod");
        self.pod_over(&mut pod, component);
        let node = part.launch.filter(|_| role != Role::Single).map(|launch| launch.node(role));
        if let Some(node) = node {
            self.launch(node, part, (&mut pod, &mut main), scope.clone())?;
        }
        let backend_env = part.backend.map(|it| fill(&json!(it.env), &scope)).transpose()?.unwrap_or_default();
        add_env(&mut main, filled_env(&backend_env));
        let mounts = list(main.get("volumeMounts"));
        shared_memory(component, &mut pod, &mut main);
        if let Some(node) = node {
            let later = list(Some(&fill(&json!(node.later_volumes), &scope)?));
            let volumes = by_name(list(pod.get("volumes")), later);
            set_list(&mut pod, "volumes", volumes);
        }
        in_order_of_mounts(&mut pod, &main);
        let mut containers = vec![Value::from(main)];
        for container in list(pod.get("containers")) {
            containers.push(self.beside(component, container, &mounts, &scope)?);
        }
        pod.insert("containers".to_owned(), containers.into());
        Ok(as_typed(pod.into()))
    }

    /// Returns what a pod with a component of a type begins with.
    fn base(&self, kind: Type, scope: &Value) -> Result<Value, String> {
        fill(&json!([self.types["common"], self.types[kind.key()]]), scope)
    }

    /// Returns a container of a user over what its type begins with.
    fn container(&self, base: &Value, user: &Fields) -> Fields {
        let mut container = based(base, "container");
        user_over(&mut container, user);
        let layers = items(base).map(|layer| filled_env(&layer["env"]));
        let user = [self.graph.env.clone(), list(user.get("env"))];
        container.insert("env".to_owned(), env(layers.chain(user)).into());
        container
    }

    /// Returns a container beside the main one: as it is, or a frontend that serves only this worker.
    fn beside(
        &self,
        component: &Component,
        container: Value,
        mounts: &[Value],
        scope: &Value,
    ) -> Result<Value, String> {
        if component.sidecar.is_none() || container["name"].as_str() != component.sidecar.as_deref() {
            return Ok(container);
        }
        let mut scope = scope.clone();
        scope["type"] = Type::Frontend.key().into();
        scope["container"] = container["name"].clone();
        let user = fields(&container);
        let mut frontend = self.container(&self.base(Type::Frontend, &scope)?, &user);
        frontend.insert("name".to_owned(), container["name"].clone());
        let own = list(user.get("volumeMounts"));
        let is_free = |mount: &&Value| own.iter().all(|it| it["mountPath"] != mount["mountPath"]);
        let inherited: Vec<Value> = mounts.iter().filter(is_free).cloned().collect();
        set_list(&mut frontend, "volumeMounts", own.iter().cloned().chain(inherited).collect());
        Ok(frontend.into())
    }

    /// Puts what a user says of the pod over what its type begins with, and adds a volume for what is mounted.
    fn pod_over(&self, pod: &mut Fields, component: &Component) {
        let volumes = by_name(list(pod.get("volumes")), list(component.pod.get("volumes")));
        said_over(pod, &component.pod);
        let claims = component.mounted_claims.iter().filter(|claim| !volumes.iter().any(|it| it["name"] == **claim));
        let claim = |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let claims: Vec<Value> = claims.map(claim).collect();
        pod.insert("volumes".to_owned(), by_name(volumes, claims).into());
        pod.entry("securityContext").or_insert_with(|| json!({"fsGroup": 1000}));
        if let Some(account) = self.account(component) {
            // The operator gives a planner the account with the rights that it needs, whatever its user names.
            let is_fixed = component.kind == Type::Planner
                && self.provider != Provider::Grove
                && !self.settings.service_accounts.planner.is_empty();
            if is_fixed || !pod.get("serviceAccountName").is_some_and(|named| *named != "") {
                pod.insert("serviceAccountName".to_owned(), account.into());
            }
        }
        if self.queue(component).is_some() {
            pod.entry("schedulerName").or_insert_with(|| "kai-scheduler".into());
        }
    }

    /// The service account of a component whose user names none.
    fn account(&self, component: &Component) -> Option<String> {
        let named = |name: &str| said(name).map_or_else(|| self.graph.child(component), str::to_owned);
        match component.kind {
            Type::Planner => Some(named(&self.settings.service_accounts.planner)),
            Type::Epp => Some(named(&self.settings.service_accounts.epp)),
            _ => self.settings.provisions_discovery().then(|| discovery_account(self.graph)),
        }
    }

    /// Makes the pod one of several nodes.
    fn launch(
        &self,
        node: &Node,
        part: Part<'_>,
        (pod, main): (&mut Fields, &mut Fields),
        mut scope: Value,
    ) -> Result<(), String> {
        add_addresses(&mut scope, self.provider, part.component);
        add_env(main, filled_env(&fill(&json!(node.env), &scope)?));
        let named = list(main.get("env")).into_iter().filter_map(|it| it["name"].as_str().map(str::to_owned));
        scope["variables"] = json!(named.chain(node.variables.clone()).collect::<BTreeSet<String>>());
        let mut command = Command::of(main);
        if let (false, Some(backend)) = (node.flags.is_empty(), part.backend) {
            let flags = fill_text(&node.flags, &scope)?;
            match command.with_flags(&backend.module, &flags, flags.contains("$((")) {
                Some(with_flags) => command = with_flags,
                // A program of its own is told nothing.
                None if command.module().is_none() => {}
                None => return Err(format!("the command does not run {} by itself", backend.module)),
            }
        }
        scope["command"] = command.line().into();
        scope["words"] = command.quoted().into();
        if !node.script.is_empty() {
            command = Command::run(fill_text(&node.script, &scope)?);
        }
        command.put(main);
        add(node, pod, main, &scope)
    }
}

/// The way in which processes of several nodes are started: as an annotation says, whatever its case, else by the version of the
/// operator that a graph was first made for, which before 1.0 was Ray.
fn executor(annotations: &Texts, version: &str) -> &'static str {
    let said = annotations.get("nvidia.com/vllm-distributed-executor-backend").map(|text| text.to_lowercase());
    let origin = annotations.get(ORIGIN).map_or(version, String::as_str);
    let is_old = || origin.trim_start_matches('v').starts_with("0.");
    match said.as_deref() {
        Some("mp") => "mp",
        Some("ray") => "ray",
        _ if is_old() => "ray",
        _ => "mp",
    }
}

/// Returns a part of what a pod begins with: that of all types, and over it that of its own.
fn based(base: &Value, part: &str) -> Fields {
    items(base).flat_map(|layer| fields(&layer[part])).collect()
}

/// Adds what is special about a node.
fn add(node: &Node, pod: &mut Fields, main: &mut Fields, scope: &Value) -> Result<(), String> {
    for (probe, value) in &node.probes {
        if value.is_null() {
            main.remove(probe);
        } else {
            main.insert(probe.clone(), value.clone());
        }
    }
    let lists = [(&node.volumes, "volumes"), (&node.init_containers, "initContainers")];
    for (more, field) in lists.into_iter().filter(|(more, _)| !more.is_empty()) {
        let all = by_name(list(pod.get(field)), list(Some(&fill(&json!(more), scope)?)));
        pod.insert(field.to_owned(), all.into());
    }
    let mut mounts = list(main.get("volumeMounts"));
    mounts.extend(list(Some(&fill(&json!(node.volume_mounts), scope)?)));
    set_list(main, "volumeMounts", mounts);
    Ok(())
}

/// Puts what the user says of a container in place of what its type begins with; mounts of other volumes are added.
///
/// Like the operator it lets a command inherit the arguments that the type begins with, where the user gives none.
fn user_over(main: &mut Fields, user: &Fields) {
    let mounts = by_name(list(main.get("volumeMounts")), list(user.get("volumeMounts")));
    said_over(main, user);
    if !mounts.is_empty() {
        main.insert("volumeMounts".to_owned(), mounts.into());
    }
    main.retain(|field, value| field != "command" || *value != json!([]));
}

/// Puts what a user says over what is there. As with the operator, which merges values of Go, what is null says nothing, and
/// an empty text, an empty list, a zero and a `false` do not take away what is there.
fn said_over(fields: &mut Fields, user: &Fields) {
    let is_empty = |value: &Value| match value {
        Value::Bool(switch) => !switch,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Object(_) => false,
    };
    for (field, value) in user.iter().filter(|(_, value)| !value.is_null()) {
        if !(is_empty(value) && fields.contains_key(field)) {
            fields.insert(field.clone(), value.clone());
        }
    }
}

/// Puts the volumes in the order in which the main container mounts them, and behind them the others.
fn in_order_of_mounts(pod: &mut Fields, main: &Fields) {
    let mut volumes = list(pod.get("volumes"));
    let mounts = list(main.get("volumeMounts"));
    let place = |volume: &Value| mounts.iter().position(|mount| mount["name"] == volume["name"]);
    volumes.sort_by_key(|volume| place(volume).unwrap_or(mounts.len()));
    set_list(pod, "volumes", volumes);
}

/// Memory that processes of a pod share, which is small unless a volume makes it larger.
fn shared_memory(component: &Component, pod: &mut Fields, main: &mut Fields) {
    const NAME: &str = "shared-memory";
    const FOLDER: &str = "/dev/shm";
    let size = component.shared_memory.as_deref().unwrap_or("8Gi");
    let (mut volumes, mut mounts) = (list(pod.get("volumes")), list(main.get("volumeMounts")));
    if !is_zero(size) {
        // What a user has mounted there gives way, as with the operator; its volume stays, and others may mount it.
        let is_there = |mount: &Value| mount["mountPath"] == FOLDER || mount["name"] == NAME;
        let (replaced, kept): (Vec<Value>, Vec<Value>) = mounts.into_iter().partition(is_there);
        let is_replaced = |volume: &Value| replaced.iter().any(|mount| mount["name"] == volume["name"]);
        let (others, mut all): (Vec<Value>, Vec<Value>) = volumes.into_iter().partition(is_replaced);
        all.retain(|volume| volume["name"] != NAME);
        all.push(json!({"name": NAME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}));
        all.extend(others.into_iter().filter(|volume| volume["name"] != NAME));
        (volumes, mounts) = (all, kept);
        mounts.push(json!({"name": NAME, "mountPath": FOLDER}));
    }
    set_list(pod, "volumes", volumes);
    set_list(main, "volumeMounts", mounts);
}

/// Tells whether a size is none, however it is written.
pub(super) fn is_zero(size: &str) -> bool {
    Quantity::parse(size) == Some(Quantity::default())
}

/// Adds variables behind the others, but for those that somebody has set already.
fn add_env(main: &mut Fields, more: Vec<Value>) {
    let own = list(main.get("env"));
    let is_new = |item: &Value| own.iter().all(|it| it["name"] != item["name"]);
    let more: Vec<Value> = more.into_iter().filter(is_new).collect();
    set_list(main, "env", own.into_iter().chain(more).collect());
}

/// Puts environments over each other by name, sorted.
fn env(layers: impl IntoIterator<Item = Vec<Value>>) -> Vec<Value> {
    let named = |item: Value| (item["name"].as_str().unwrap_or_default().to_owned(), item);
    let all: BTreeMap<String, Value> = layers.into_iter().flatten().map(named).collect();
    all.into_values().collect()
}

/// Returns the environment that the pack's data gives, without what is empty, and without what has an empty `when`.
fn filled_env(env: &Value) -> Vec<Value> {
    let is_said = |item: &&Value| item.get("valueFrom").is_some() || item["value"] != "" || item["always"] == true;
    let is_wanted = |item: &&Value| item["when"] != "";
    let plain = |item: &Value| {
        let mut item = fields(item);
        item.remove("always");
        item.remove("when");
        item.retain(|field, value| field != "value" || *value != "");
        Value::from(item)
    };
    items(env).filter(is_wanted).filter(is_said).map(plain).collect()
}

/// Returns the service account with the rights that discovery by Kubernetes needs.
pub(super) fn discovery_account(graph: &Graph) -> String {
    format!("{}-k8s-service-discovery", graph.name)
}

/// Stands for the name of a model where that would be too long or of letters that are not allowed.
pub(super) fn model_hash(model: &str) -> String {
    gatewright_engine::text::digest(model.as_bytes())[..8].to_owned()
}

/// Returns the `ConfigMap` of an endpoint picker's configuration, and its key.
pub(super) fn picker_config(graph: &Graph, component: &Component) -> (String, String) {
    let reference = component.picker.as_ref().and_then(|picker| picker.config_map_ref.clone()).unwrap_or_default();
    let own = || format!("{}-epp-config", graph.name);
    (reference.name.unwrap_or_else(own), reference.key.unwrap_or_else(|| super::PICKER_KEY.to_owned()))
}
