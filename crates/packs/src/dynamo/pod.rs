//! The pod of a component: what its type begins with, what the user says over it, what its backend needs beside.
//!
//! Expressions in the data of types and backends see `graph`, `namespace`, `component`, `name`, `dynamoNamespace`,
//! `type`, `settings`, `annotations`, `provider` (`grove`, `lws`, `deployment`), `nodes`, `gpus`, `cache`, `image` and
//! `numbers`; those of several nodes also `leader` and `leaderInShell` (its address), `rank` and `rankInShell` (which
//! node it is, 0 the leader), `workersInShell`, `hostsInShell`, `variables` (names of the environment) and `command`
//! (as a line of a shell). The filter `quote` writes a text as one word of a shell.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::backend::{Backend, Launch, Node};
use super::command::Command;
use super::fill::{fill, fill_text};
use super::model::{Component, Fields, Graph, QUEUE, Type, by_name, fields, list, set_list};
use super::nodes::{Provider, Role, add_addresses};
use super::settings::{ServiceMesh, Settings};
use crate::json::{items, layered, said};
use gatewright_engine::pack::gateway::Map as Texts;

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
            "settings": self.settings.to_value(),
            "annotations": annotations,
            "provider": self.provider,
            "nodes": component.nodes,
            "gpus": component.gpus(),
            "cache": component.cache.as_deref().unwrap_or_default(),
            "image": component.main.get("image"),
            "numbers": backend.map(|backend| backend.numbers(&command)).unwrap_or_default(),
            "pickerConfig": config,
            "pickerKey": key,
            "pickerHome": PICKER_HOME,
        })
    }

    /// Returns labels and annotations of the pods of a component, and what selects them.
    pub(super) fn metadata(&self, component: &Component) -> (Texts, Texts) {
        let graph = self.graph;
        let labels = layered([&graph.labels, &component.labels, &self.own_labels(component)]);
        let mut annotations = layered([&graph.annotations, &component.annotations]);
        if let Some(id) = &graph.restart {
            annotations.insert("nvidia.com/restartAt".to_owned(), id.clone());
        }
        if component.kind == Type::Epp && self.settings.service_mesh == ServiceMesh::Istio {
            annotations.entry("sidecar.istio.io/inject".to_owned()).or_insert_with(|| "false".to_owned());
        }
        (labels, annotations)
    }

    fn own_labels(&self, component: &Component) -> Texts {
        let graph = self.graph;
        let is_measured = graph.switch_of(component, "nvidia.com/enable-metrics") != Some("false");
        let is_picked = graph.has_picker() && component.kind.is_worker();
        let is_discovered = self.settings.provisions_discovery();
        let only_if = |holds: bool, text: &str| holds.then(|| text.to_owned());
        let labels = [
            ("nvidia.com/selector", Some(graph.child(component))),
            ("nvidia.com/dynamo-graph-deployment-name", Some(graph.name.clone())),
            ("nvidia.com/dynamo-component", Some(component.name.clone())),
            ("nvidia.com/dynamo-namespace", Some(graph.dynamo_namespace(component))),
            ("nvidia.com/dynamo-component-type", said(&component.kind_text).map(str::to_owned)),
            ("nvidia.com/dynamo-sub-component-type", component.sub_type.clone()),
            ("nvidia.com/dynamo-base-model-hash", component.model.as_deref().map(model_hash)),
            ("nvidia.com/metrics-enabled", only_if(is_measured, "true")),
            ("nvidia.com/dynamo-component-class", only_if(is_picked, "worker")),
            ("nvidia.com/dynamo-discovery-backend", only_if(is_discovered, "kubernetes")),
            ("nvidia.com/dynamo-discovery-enabled", only_if(is_discovered, "true")),
            ("kai.scheduler/queue", self.queue(component)),
        ];
        labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    /// The queue of KAI that its pods wait in, if anybody names one.
    fn queue(&self, component: &Component) -> Option<String> {
        let named = self.graph.switch_of(component, QUEUE);
        said(named.unwrap_or(&self.settings.orchestrators.kai.queue)).map(str::to_owned)
    }

    /// Returns the spec of a pod.
    pub(super) fn pod(&self, part: Part<'_>, role: Role) -> Result<Value, String> {
        let component = part.component;
        let scope = self.scope(component, part.backend);
        let base = fill(&json!([self.types["common"], self.types[component.kind.key()]]), &scope)?;
        let based = |part: &str| items(&base).flat_map(|layer| fields(&layer[part])).collect::<Fields>();
        let mut main = based("container");
        main_over(&mut main, &component.main);
        let backend_env = part.backend.map(|it| fill(&json!(it.env), &scope)).transpose()?.unwrap_or_default();
        let own = [&base[0]["env"], &base[1]["env"], &backend_env].map(filled_env);
        let user = [self.graph.env.clone(), list(component.main.get("env"))];
        main.insert("env".to_owned(), env(own.into_iter().chain(user)).into());
        let mut pod = based("pod");
        self.pod_over(&mut pod, component);
        if let Some(launch) = part.launch.filter(|_| role != Role::Single) {
            self.launch(launch, role, part, (&mut pod, &mut main), scope)?;
        }
        shared_memory(component, &mut pod, &mut main);
        let mut containers = vec![Value::from(main)];
        containers.extend(list(pod.get("containers")));
        pod.insert("containers".to_owned(), containers.into());
        Ok(pod.into())
    }

    /// Puts what a user says of the pod over what its type begins with, and adds a volume for what is mounted.
    fn pod_over(&self, pod: &mut Fields, component: &Component) {
        let volumes = by_name(list(pod.get("volumes")), list(component.pod.get("volumes")));
        pod.extend(component.pod.clone());
        let claims = component.mounted_claims.iter().filter(|claim| !volumes.iter().any(|it| it["name"] == **claim));
        let claim = |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let claims: Vec<Value> = claims.map(claim).collect();
        pod.insert("volumes".to_owned(), by_name(volumes, claims).into());
        pod.entry("securityContext").or_insert_with(|| json!({"fsGroup": 1000}));
        if let Some(account) = self.account(component) {
            pod.entry("serviceAccountName").or_insert_with(|| account.into());
        }
        if self.queue(component).is_some() {
            pod.entry("schedulerName").or_insert_with(|| "kai-scheduler".into());
        }
    }

    /// The service account of a component whose user names none.
    fn account(&self, component: &Component) -> Option<String> {
        let named = |name: &str| if name.is_empty() { self.graph.child(component) } else { name.to_owned() };
        match component.kind {
            Type::Planner => Some(named(&self.settings.service_accounts.planner)),
            Type::Epp => Some(named(&self.settings.service_accounts.epp)),
            _ => self.settings.provisions_discovery().then(|| discovery_account(self.graph)),
        }
    }

    /// Makes the pod one of several nodes.
    fn launch(
        &self,
        launch: &Launch,
        role: Role,
        part: Part<'_>,
        (pod, main): (&mut Fields, &mut Fields),
        mut scope: Value,
    ) -> Result<(), String> {
        let node = if role == Role::Leader { &launch.leader } else { &launch.worker };
        add_addresses(&mut scope, self.provider, part.component);
        scope["variables"] = list(main.get("env")).iter().map(|it| it["name"].clone()).collect();
        let mut command = Command::of(main);
        if let (false, Some(backend)) = (node.flags.is_empty(), part.backend) {
            let flags = fill_text(&node.flags, &scope)?;
            let with_flags = command.with_flags(&backend.module, &flags, flags.contains("$(("));
            command = with_flags.ok_or_else(|| format!("the command does not run {} by itself", backend.module))?;
        }
        scope["command"] = command.line().into();
        if !node.script.is_empty() {
            command = Command::run(fill_text(&node.script, &scope)?);
        }
        command.put(main);
        add(node, pod, main, &scope)
    }
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
    let env = env([filled_env(&fill(&json!(node.env), scope)?), list(main.get("env"))]);
    main.insert("env".to_owned(), env.into());
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

/// Puts what the user says of the main container in place of what its type begins with; mounts of other volumes are
/// added, and a command of one's own does not inherit arguments.
fn main_over(main: &mut Fields, user: &Fields) {
    let mounts = by_name(list(main.get("volumeMounts")), list(user.get("volumeMounts")));
    if user.contains_key("command") {
        main.remove("args");
    }
    main.extend(user.clone());
    main.insert("name".to_owned(), super::read::MAIN.into());
    if !mounts.is_empty() {
        main.insert("volumeMounts".to_owned(), mounts.into());
    }
    main.retain(|field, value| field != "command" || *value != json!([]));
}

/// Memory that processes of a pod share, which is small unless a volume makes it larger.
fn shared_memory(component: &Component, pod: &mut Fields, main: &mut Fields) {
    const NAME: &str = "shared-memory";
    const FOLDER: &str = "/dev/shm";
    let size = component.shared_memory.as_deref().unwrap_or("8Gi");
    let (mut volumes, mut mounts) = (list(pod.get("volumes")), list(main.get("volumeMounts")));
    let is_there = volumes.iter().any(|it| it["name"] == NAME) || mounts.iter().any(|it| it["mountPath"] == FOLDER);
    if size != "0" && !is_there {
        volumes.push(json!({"name": NAME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}));
        mounts.push(json!({"name": NAME, "mountPath": FOLDER}));
    }
    set_list(pod, "volumes", volumes);
    set_list(main, "volumeMounts", mounts);
}

/// Puts environments over each other by name, sorted.
fn env(layers: impl IntoIterator<Item = Vec<Value>>) -> Vec<Value> {
    let named = |item: Value| (item["name"].as_str().unwrap_or_default().to_owned(), item);
    let all: BTreeMap<String, Value> = layers.into_iter().flatten().map(named).collect();
    all.into_values().collect()
}

/// Returns the environment that the pack's data gives, without what is empty.
fn filled_env(env: &Value) -> Vec<Value> {
    items(env).filter(|item| item.get("valueFrom").is_some() || item["value"] != "").cloned().collect()
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
