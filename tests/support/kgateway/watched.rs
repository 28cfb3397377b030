//! The kinds that are watched, and the Gateways that a change there is about.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use kube::Error;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedSender;

use super::api::{Api, place};
use super::reconcile::gateway_api;
use super::{BACK_OFF, Event, Key, Product};

/// The kinds of objects that belong to a Gateway that owns them.
const CHILDREN: [(&str, &str); 4] =
    [("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "ServiceAccount")];

/// The last states of what refers to parameters.
#[derive(Default)]
pub(super) struct Watched {
    gateways: BTreeMap<Key, Value>,
    classes: BTreeMap<String, Value>,
    versions: BTreeMap<(&'static str, Key), Value>,
}

/// Starts to watch.
pub(super) fn start(
    runtime: &Runtime,
    api: &Api,
    product: Product,
    namespaces: &BTreeSet<String>,
    events: &UnboundedSender<Event>,
) {
    let (version, parameters) = product.parameters();
    let gateway_api = gateway_api();
    let mut kinds = vec![(gateway_api.as_str(), "Gateway"), (&gateway_api, "ListenerSet"), (version, parameters)];
    kinds.extend(CHILDREN);
    let mut places = vec![("GatewayClass", place(&gateway_api, "GatewayClass", None))];
    for namespace in namespaces {
        places.extend(kinds.iter().map(|(version, kind)| (*kind, place(version, kind, Some(namespace)))));
    }
    for (kind, place) in places {
        let (api, events) = (api.clone(), events.clone());
        runtime.spawn(async move {
            loop {
                // A watch ends now and then, and does not even begin while a kind is unknown.
                drop(watch(&api, kind, &place, &events).await);
                tokio::time::sleep(BACK_OFF).await;
            }
        });
    }
}

/// Tells all that is there, and then what changes, until the connection ends.
async fn watch(api: &Api, kind: &'static str, place: &str, events: &UnboundedSender<Event>) -> Result<(), Error> {
    let Some(list) = api.get(place).await? else { return Ok(()) };
    let tell = |object: Value, is_gone| drop(events.send(Event::Changed { kind, object, is_gone }));
    list["items"].as_array().into_iter().flatten().for_each(|object| tell(object.clone(), false));
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut watch = api.watch(&format!("{place}?allowWatchBookmarks=false"), version).await?;
    while let Some(event) = watch.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => tell(object, false),
            WatchEvent::Deleted(object) => tell(object, true),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    Ok(())
}

impl Watched {
    /// Returns the Gateways that have to be looked at again.
    pub(super) fn affected(&mut self, kind: &'static str, object: &Value, is_gone: bool) -> Vec<Key> {
        let key = key_of(object);
        match kind {
            "Gateway" => {
                self.gateways.insert(key.clone(), object.clone());
                self.gateways.retain(|it, _| !(is_gone && *it == key));
                if self.is_news(kind, object, is_gone) && !is_gone { vec![key] } else { Vec::new() }
            }
            "GatewayClass" => {
                self.classes.insert(key.name.clone(), object.clone());
                let is_news = self.is_news(kind, object, is_gone);
                self.gateways_where(|gateway| is_news && gateway["spec"]["gatewayClassName"] == *key.name)
            }
            "ListenerSet" => {
                let parent = &object["spec"]["parentRef"];
                let name = parent["name"].as_str().unwrap_or_default().to_owned();
                let namespace = parent["namespace"].as_str().unwrap_or(&key.namespace).to_owned();
                let is_news = self.is_news(kind, object, is_gone);
                is_news.then_some(Key { namespace, name }).into_iter().collect()
            }
            kind if CHILDREN.iter().any(|(_, child)| *child == kind) => owners(object, &key.namespace),
            _ => {
                let is_news = self.is_news(kind, object, is_gone);
                self.gateways_where(|gateway| is_news && self.refers(gateway, &key))
            }
        }
    }

    /// Tells whether more has changed than the status.
    fn is_news(&mut self, kind: &'static str, object: &Value, is_gone: bool) -> bool {
        let metadata = &object["metadata"];
        let version = Value::from(vec![
            metadata["uid"].clone(),
            metadata["generation"].clone(),
            metadata["annotations"].clone(),
            metadata["deletionTimestamp"].clone(),
            is_gone.into(),
        ]);
        self.versions.insert((kind, key_of(object)), version.clone()) != Some(version)
    }

    fn gateways_where(&self, is_meant: impl Fn(&Value) -> bool) -> Vec<Key> {
        self.gateways.iter().filter(|(_, gateway)| is_meant(gateway)).map(|(key, _)| key.clone()).collect()
    }

    /// Tells whether a Gateway, or its class, refers to parameters.
    fn refers(&self, gateway: &Value, parameters: &Key) -> bool {
        let own = &gateway["spec"]["infrastructure"]["parametersRef"]["name"];
        let class = gateway["spec"]["gatewayClassName"].as_str().and_then(|name| self.classes.get(name));
        let of_class = class.map(|class| &class["spec"]["parametersRef"]);
        let is_of_class = |it: &Value| it["name"] == *parameters.name && it["namespace"] == *parameters.namespace;
        let is_own = *own == *parameters.name && gateway["metadata"]["namespace"] == *parameters.namespace;
        is_own || of_class.is_some_and(is_of_class)
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Key { namespace: text("namespace"), name: text("name") }
}

fn owners(object: &Value, namespace: &str) -> Vec<Key> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let names = owners.filter(|owner| owner["kind"] == "Gateway").filter_map(|owner| owner["name"].as_str());
    names.map(|name| Key { namespace: namespace.to_owned(), name: name.to_owned() }).collect()
}
