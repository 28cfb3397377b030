//! One look at one Gateway: what is on the cluster, rendered, applied, pruned, and said.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright::basics::clock::{Clock as _, SystemClock};
use gatewright_engine::pack::Packs;
use kube::Error;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::api::{Api, path_of, place};
use super::release::{GATEWAY_API, Made, Product, render};
use super::status::{addresses_of_service, addresses_of_spec, conditions, is_controlled};
use super::{Deletion, Key, Log};

/// By what it finds the objects of a Gateway.
const LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// The things that all reconciles share.
pub(super) struct Context {
    pub(super) api: Api,
    pub(super) packs: Packs,
    pub(super) product: Product,
    pub(super) clock: SystemClock,
    pub(super) log: Arc<Mutex<Log>>,
}

/// The reason why a reconcile is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the API server: {0}")]
    Server(#[from] Error),
    #[error("{0}")]
    Other(String),
}

impl Context {
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the classes, as the controller does when it starts.
    pub(super) async fn make_classes(&self) -> Result<(), Error> {
        for class in self.product.classes() {
            self.api.apply(&class, self.product.controller()).await?;
        }
        Ok(())
    }

    /// Tells whether the Gateway is one of ours at all.
    pub(super) async fn reconcile(&self, key: &Key) -> Result<bool, Failure> {
        let at = format!("{}/{}", gateways(&key.namespace), key.name);
        let Some(gateway) = self.api.get(&at).await? else { return Ok(false) };
        let name = gateway["spec"]["gatewayClassName"].as_str().unwrap_or_default();
        let class = self.api.get(&format!("{}/{name}", place(&gateway_api(), "GatewayClass", None))).await?;
        let class = class.ok_or_else(|| Failure::Other(format!("Gateway {key}: there is no GatewayClass {name:?}")))?;
        let is_going = gateway["metadata"]["deletionTimestamp"].is_string();
        if is_going || class["spec"]["controllerName"] != self.product.controller() {
            return Ok(false);
        }
        let beside = self.beside(key, class).await?;
        match render(&self.packs, &gateway, &beside) {
            Made::Refusal(refusal) => {
                self.say_conditions(&at, &gateway, Some(&refusal)).await?;
                return Err(Failure::Other(format!("Gateway {key}: {refusal}")));
            }
            Made::Nothing => {
                self.say_conditions(&at, &gateway, None).await?;
                self.prune(&gateway, &[]).await?;
                self.say_addresses(&at, &gateway, addresses_of_spec(&gateway)).await?;
            }
            Made::Objects(objects) => {
                self.say_conditions(&at, &gateway, None).await?;
                self.deploy(&gateway, &objects).await?;
                self.prune(&gateway, &objects).await?;
                let service = objects.iter().find(|object| object["kind"] == "Service").map(path_of);
                let service = self.api.get(&service.unwrap_or_default()).await?;
                if let Some(addresses) = addresses_of_service(&gateway, service.as_ref()) {
                    self.say_addresses(&at, &gateway, addresses).await?;
                }
            }
        }
        Ok(true)
    }

    /// Reads what has a say in a Gateway, parameters first.
    async fn beside(&self, key: &Key, class: Value) -> Result<Vec<Value>, Error> {
        let (version, kind) = self.product.parameters();
        let mut all = self.api.items(&place(version, kind, Some(&key.namespace))).await?;
        let reference = &class["spec"]["parametersRef"];
        let elsewhere = reference["namespace"].as_str().filter(|namespace| *namespace != key.namespace);
        if let Some((namespace, name)) = elsewhere.zip(reference["name"].as_str()) {
            all.extend(self.api.get(&format!("{}/{name}", place(version, kind, Some(namespace)))).await?);
        }
        all.extend(self.api.items(&place(&gateway_api(), "ListenerSet", Some(&key.namespace))).await?);
        all.push(class);
        Ok(all)
    }

    /// Applies one object after the other, and stops at the first that cannot be.
    async fn deploy(&self, gateway: &Value, objects: &[Value]) -> Result<(), Failure> {
        const ORDER: [&str; 4] = ["ServiceAccount", "Secret", "ConfigMap", "Service"];
        let rank = |object: &&Value| ORDER.iter().position(|kind| object["kind"] == **kind).unwrap_or(ORDER.len());
        let mut objects: Vec<&Value> = objects.iter().collect();
        objects.sort_by_key(rank);
        for object in objects {
            let live = self.api.get(&path_of(object)).await?;
            match &live {
                // What it has made up once it keeps.
                Some(_) if object["kind"] == "Secret" => continue,
                Some(live) if object["kind"] == "Service" && !may_take(live, object, gateway, self.product) => {
                    let (name, manager) = (path_of(object), self.product.name());
                    return Err(Failure::Other(format!("refusing to apply {name}: it is not owned by {manager}")));
                }
                _ => {}
            }
            let after = self.api.apply(object, self.product.controller()).await?;
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            if live.as_ref().map(version) != Some(version(&after)) {
                self.log().writes += 1;
            }
        }
        Ok(())
    }

    /// Deletes what bears the Gateway's label and is not rendered.
    async fn prune(&self, gateway: &Value, rendered: &[Value]) -> Result<(), Error> {
        let namespace = gateway["metadata"]["namespace"].as_str().unwrap_or_default();
        let label = safe_label(gateway["metadata"]["name"].as_str().unwrap_or_default());
        for (version, kind) in self.product.pruned() {
            let place = place(version, kind, Some(namespace));
            for object in self.api.items(&format!("{place}?labelSelector={LABEL}%3D{label}")).await? {
                let name = &object["metadata"]["name"];
                let is_rendered = rendered.iter().any(|it| it["kind"] == *kind && it["metadata"]["name"] == *name);
                // One of the two looks at owners.
                let is_meant = self.product == Product::Kgateway || is_controlled(&object, gateway);
                if is_meant && !is_rendered {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    self.api.delete(&format!("{place}/{}", text(name))).await?;
                    let id = format!("{kind} {namespace}/{}", text(name));
                    let mut log = self.log();
                    log.deletions.push(Deletion { id, uid: text(&object["metadata"]["uid"]) });
                    log.writes += 1;
                }
            }
        }
        Ok(())
    }

    async fn say_conditions(&self, at: &str, gateway: &Value, refusal: Option<&str>) -> Result<(), Error> {
        let conditions = conditions(gateway, refusal, &self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        self.say(at, gateway, "conditions", conditions).await
    }

    async fn say_addresses(&self, at: &str, gateway: &Value, addresses: Vec<Value>) -> Result<(), Error> {
        self.say(at, gateway, "addresses", addresses).await
    }

    /// Writes a list of the status if it is another one.
    async fn say(&self, at: &str, gateway: &Value, field: &str, list: Vec<Value>) -> Result<(), Error> {
        let before = gateway["status"][field].as_array().cloned().unwrap_or_default();
        if before != list {
            self.api.merge(&format!("{at}/status"), &json!({"status": {field: list}})).await?;
            self.log().writes += 1;
        }
        Ok(())
    }
}

pub(super) fn gateway_api() -> String {
    format!("{GATEWAY_API}/v1")
}

/// Returns where the Gateways of a namespace are.
pub(super) fn gateways(namespace: &str) -> String {
    place(&gateway_api(), "Gateway", Some(namespace))
}

/// Returns what stands for a name in labels.
pub(super) fn safe_label(name: &str) -> String {
    if name.len() <= 63 {
        return name.to_owned();
    }
    let head = &name[..50];
    let mut digits = [0; 8];
    digits[2..].copy_from_slice(&Sha256::digest(name)[..6]);
    format!("{}-{:012x}", head.strip_suffix('-').unwrap_or(head), u64::from_be_bytes(digits))
}

/// Tells whether a Service that is there may be applied over.
fn may_take(live: &Value, wanted: &Value, gateway: &Value, product: Product) -> bool {
    const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
    const CLASS: &str = "gateway.networking.k8s.io/gateway-class-name";
    let label = |object: &Value, key: &str| object["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    if is_controlled(live, gateway) {
        return true;
    }
    let managed_by = label(live, MANAGED_BY);
    let is_by_another = !managed_by.is_empty() && managed_by != product.name();
    if is_by_another || label(live, CLASS) != label(wanted, CLASS) {
        return false;
    }
    let labels = live["metadata"]["labels"].as_object().into_iter().flat_map(|labels| labels.values());
    let names_it = |value: &Value| value.as_str().is_some_and(|value| value.contains(product.name()));
    match label(live, LABEL) {
        name if name.is_empty() => labels.into_iter().any(names_it),
        name => name == label(wanted, LABEL),
    }
}
