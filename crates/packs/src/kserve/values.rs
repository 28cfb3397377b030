//! The values that templates get: the objects of a service, by family.

use std::collections::BTreeMap;

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::configs::Builtin;
use super::parameters::{Token, Trust};
use super::pods::{containers, list_items};
use super::quantity::make_canonical;
use super::route::{self, ALPHA_GROUP};
use super::service::Service;
use super::settings::Settings;
use super::storage::{self, MODEL_PATH, Model};
use super::tls::{self, Certificates};
use super::types::{Adapter, Spec};
use super::workload::{self, Load};
use super::{devices, lora, scheduler};
use crate::problems::warning;

/// A service on its way to objects.
pub(super) struct Unit<'a> {
    pub(super) service: &'a Service<'a>,
    /// Merged and filled.
    pub(super) spec: &'a Spec,
    pub(super) settings: &'a Settings,
    pub(super) builtin: &'a Builtin,
    pub(super) certificates: &'a Certificates,
    /// The token with which its model is loaded.
    pub(super) token: Option<&'a Token>,
    /// The object by which a gateway calls its scheduler in TLS, if one is asked for.
    pub(super) trust: Option<&'a Trust>,
    /// Whether its pool is rendered in the older version too.
    pub(super) has_alpha_pool: bool,
    /// Whether its scheduler is that of older releases.
    pub(super) is_legacy: bool,
    families: BTreeMap<&'static str, Vec<Value>>,
}

impl<'a> Unit<'a> {
    pub(super) fn new(
        service: &'a Service<'a>,
        spec: &'a Spec,
        (settings, builtin): (&'a Settings, &'a Builtin),
        certificates: &'a Certificates,
    ) -> Self {
        let families = FAMILIES.iter().map(|&family| (family, Vec::new())).collect();
        let (token, trust, has_alpha_pool, is_legacy) = (None, None, false, false);
        Self { service, spec, settings, builtin, certificates, token, trust, has_alpha_pool, is_legacy, families }
    }

    /// Adds an object.
    pub(super) fn add(&mut self, family: &'static str, object: Value) {
        self.families.entry(family).or_default().push(without_nothing(object));
    }

    /// Returns the address of the tokenizer, if there is one.
    pub(super) fn tokenizer(&self) -> Option<String> {
        let scheme = if self.certificates.is_on() { "https" } else { "http" };
        let (name, namespace) = (self.service.child("-tokenizer"), self.service.namespace);
        self.spec.tokenizer().map(|_| format!("{scheme}://{name}.{namespace}.svc.cluster.local:8000"))
    }

    /// Returns the model as it goes into a pod.
    pub(super) fn model<'b>(&'b self, uri: &'b str, adapters: &'b [Adapter]) -> Model<'b> {
        let (initializer, confidential) = (&self.settings.storage_initializer, self.spec.confidential());
        Model { uri, adapters, initializer, confidential, token: self.token }
    }

    /// Makes all objects, and returns them as the values of templates, with warnings.
    pub(super) fn values(mut self) -> Result<(Value, Vec<Problem>), Vec<Problem>> {
        let mut warnings = Vec::new();
        let adapters = lora::adapters(self.spec)
            .map_err(|message| vec![self.service.problem(&["spec", "model", "lora", "adapters"], message)])?;
        let devices = devices::read(self.service).map_err(|problem| vec![*problem])?;
        if self.spec.uri().is_some() {
            workload::add(&mut self, &Load { adapters: &adapters, devices: devices.as_ref() })?;
            if let Some(devices) = devices {
                self.add("devices", json!({"name": devices.name, "spec": devices.spec}));
            }
        } else {
            let message = "there is no model, so nothing is rendered that would serve it; what routes to it is";
            warnings.push(warning(self.service.document, &["spec"], message).hint("set spec.model.uri"));
        }
        if self.spec.route().is_some_and(|route| route.group.is_some()) {
            let message = "the services of a group share no requests here: each has its own route, without weights";
            warnings.push(warning(self.service.document, &["spec", "router", "route", "group"], message));
        }
        scheduler::add(&mut self)?;
        self.add_tokenizer()?;
        route::add(&mut self, &adapters);
        self.add_workload_service();
        tls::add(&mut self);
        Ok((self.finished(), warnings))
    }

    fn add_workload_service(&mut self) {
        let name = if self.certificates.is_on() { "https" } else { "http" };
        let port = json!({"name": name, "appProtocol": name, "port": 8000, "targetPort": 8000, "protocol": "TCP"});
        let mut selector = workload::labels(self.service, None);
        selector.insert("kserve.io/component".to_owned(), "workload".to_owned());
        let labels = workload::main_labels(self);
        let name = self.service.workload_service();
        let annotations = workload::own_annotations(&self.spec.workload);
        self.add(
            "services",
            json!({
                "name": name, "labels": labels, "annotations": annotations, "selector": selector, "type": "ClusterIP",
                "ports": [port],
            }),
        );
    }

    fn add_tokenizer(&mut self) -> Result<(), Vec<Problem>> {
        let Some(mut pod) = self.spec.tokenizer().cloned() else { return Ok(()) };
        if let Some(uri) = self.spec.uri() {
            let model = self.model(uri, &[]);
            storage::attach(&mut pod, &format!("{MODEL_PATH}/base"), &model)
                .map_err(|message| vec![self.service.problem(&["spec", "model", "uri"], message)])?;
        }
        let labels = workload::labels(self.service, Some("tokenizer"));
        let name = self.service.child("-tokenizer");
        let port = json!({"name": "render-http", "port": 8000, "targetPort": "render-http", "protocol": "TCP"});
        self.add(
            "deployments",
            json!({"name": name, "labels": labels, "selector": labels, "replicas": 1, "podLabels": labels, "pod": pod}),
        );
        self.add("services", json!({"name": name, "labels": labels, "selector": labels, "ports": [port]}));
        Ok(())
    }

    /// Returns what has been added, as the values of templates.
    pub(super) fn finished(mut self) -> Value {
        let mut families = std::mem::take(&mut self.families);
        for deployment in families.entry("deployments").or_default() {
            self.finish(&mut deployment["pod"]);
        }
        for set in families.entry("sets").or_default() {
            for template in ["leader", "worker"] {
                if let Some(pod) = set.pointer_mut(&format!("/{template}/pod")) {
                    self.finish(pod);
                }
            }
        }
        let replicas = self.spec.scheduler().and_then(|scheduler| scheduler.replicas);
        let is_passive = replicas.unwrap_or(1) > 1;
        let (name, namespace) = (self.service.name, self.service.namespace);
        let mut values = json!({"name": name, "namespace": namespace, "hasPassiveSchedulers": is_passive});
        for (family, objects) in families {
            values[family] = objects.into();
        }
        values
    }

    /// Makes the changes that every pod gets, wherever its spec comes from.
    fn finish(&self, pod: &mut Value) {
        tls::apply(pod, self);
        for container in containers(pod) {
            make_canonical(container);
            if !self.has_alpha_pool {
                name_group(container);
            }
        }
    }
}

/// The sidecar watches the pool that is there.
fn name_group(container: &mut Value) {
    let old = format!("--pool-group={ALPHA_GROUP}");
    for field in ["command", "args"] {
        for word in list_items(container, field).filter(|word| **word == old) {
            *word = "--pool-group=inference.networking.k8s.io".into();
        }
    }
}

/// The families of objects, each of which has a template or a part of one.
const FAMILIES: [&str; 13] = [
    "accounts",
    "autoscalers",
    "certificates",
    "clusterBindings",
    "deployments",
    "devices",
    "pools",
    "roles",
    "routes",
    "scaledObjects",
    "services",
    "sets",
    "trust",
];

/// Takes away fields of an object that say nothing, so that templates ask only whether a field is there.
fn without_nothing(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !(value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)));
    }
    object
}
