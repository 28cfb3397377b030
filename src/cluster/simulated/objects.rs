//! The objects of a simulated API server: who they are, which version they have, and how they look when they are read.
//!
//! A fleet wants nearly the same everywhere. So bodies are shared by all clusters that have the same, and a cluster holds
//! of each object a few numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gatewright_engine::fingerprint::{Manager, Metadata};
use gatewright_engine::live::Live;
use gatewright_engine::marks::FIELD_MANAGER;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::status::status;
use crate::basics::lock::lock;
use crate::cluster::Precondition;

/// The bodies that any cluster of a simulation has, each once.
#[derive(Default)]
pub struct Bodies(Mutex<BTreeMap<Arc<ObjectId>, Vec<Arc<Object>>>>);

impl Bodies {
    /// Returns the shared copy of an object.
    fn shared(&self, object: &Object) -> (Arc<ObjectId>, Arc<Object>) {
        let mut bodies = lock(&self.0);
        let id = match bodies.get_key_value(object.id()) {
            Some((id, _)) => Arc::clone(id),
            None => Arc::new(object.id().clone()),
        };
        let known = bodies.entry(Arc::clone(&id)).or_default();
        if let Some(same) = known.iter().find(|same| same.body() == object.body()) {
            return (id, Arc::clone(same));
        }
        // What no cluster has any more is not kept.
        known.retain(|body| Arc::strong_count(body) > 1);
        let body = Arc::new(object.clone());
        known.push(Arc::clone(&body));
        (id, body)
    }

    /// Returns the number of bodies.
    pub fn count(&self) -> usize {
        lock(&self.0).values().map(Vec::len).sum()
    }
}

/// An object as the server keeps it.
#[derive(Clone)]
pub(super) struct Stored {
    object: Arc<Object>,
    /// Makes its uid.
    number: u64,
    version: u64,
    generation: i64,
    created: Timestamp,
    /// The time of the last write to its fields.
    written: Timestamp,
    /// The generation that its controller has brought about.
    pub(super) observed: i64,
}

/// The reason why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The object is not what the condition says.
    Conflict,
}

/// The objects of one server.
pub(super) struct Objects {
    identity: String,
    stored: BTreeMap<Arc<ObjectId>, Stored>,
    bodies: Arc<Bodies>,
    /// Grows with every write.
    pub(super) version: u64,
}

impl Objects {
    pub(super) fn new(identity: &str, bodies: Arc<Bodies>) -> Self {
        // A real server never answers with version 1, which stands for no object at all.
        Self { identity: identity.to_owned(), stored: BTreeMap::new(), bodies, version: 1 }
    }

    pub(super) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(super) fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub(super) fn of_kind(&self, kind: &Gvk) -> impl Iterator<Item = &Stored> {
        let (group, kind) = (kind.group.clone(), kind.kind.clone());
        let is_first = ObjectId::new(&group, &kind, "", "");
        let from = self.stored.range::<ObjectId, _>(is_first..);
        from.take_while(move |(id, _)| id.group == group && id.kind == kind).map(|(_, stored)| stored)
    }

    pub(super) fn within(&self, namespace: &str) -> impl Iterator<Item = &Stored> {
        self.stored.values().filter(move |stored| stored.object.id().namespace == namespace)
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<&Stored> {
        self.stored.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &ObjectId) -> Option<&mut Stored> {
        self.stored.get_mut(id)
    }

    pub(super) fn live(&self, stored: &Stored) -> Live {
        stored.live(&self.identity)
    }

    pub(super) fn metadata(&self, stored: &Stored) -> Metadata {
        stored.metadata(&self.identity)
    }

    /// Returns what an object would become; nothing is changed.
    pub(super) fn tried(&self, object: &Object, only_if: &Precondition, now: Timestamp) -> Result<Live, Refusal> {
        self.check(object.id(), only_if)?;
        let Some(before) = self.stored.get(object.id()) else {
            let new = Stored::new(Arc::new(object.clone()), (0, 1), now);
            return Ok(new.live(&self.identity));
        };
        let mut after = before.clone();
        if before.object.body() != object.body() {
            after.replace(Arc::new(object.clone()), now);
        }
        Ok(after.live(&self.identity))
    }

    /// Writes an object, and returns what it became, and whether that is something else than before.
    pub(super) fn write(
        &mut self,
        object: &Object,
        only_if: &Precondition,
        now: Timestamp,
    ) -> Result<(Live, bool), Refusal> {
        self.check(object.id(), only_if)?;
        if let Some(same) = self.stored.get(object.id()).filter(|before| before.object.body() == object.body()) {
            return Ok((same.live(&self.identity), false));
        }
        let version = self.next();
        let (id, shared) = self.bodies.shared(object);
        let stored = match self.stored.get(object.id()).cloned() {
            None => Stored::new(shared, (version, version), now),
            Some(mut before) => {
                before.replace(shared, now);
                Stored { version, ..before }
            }
        };
        let live = stored.live(&self.identity);
        self.stored.insert(id, stored);
        Ok((live, true))
    }

    /// Deletes an object; one that is gone is no error.
    pub(super) fn delete(&mut self, id: &ObjectId, only_if: &Precondition) -> Result<(), Refusal> {
        if self.stored.contains_key(id) {
            self.check(id, only_if)?;
            self.next();
            self.stored.remove(id);
        }
        Ok(())
    }

    fn check(&self, id: &ObjectId, only_if: &Precondition) -> Result<(), Refusal> {
        let is_met = match (self.stored.get(id), only_if) {
            (None, Precondition::Absent) => true,
            (Some(stored), Precondition::Unchanged { uid, resource_version }) => {
                *uid == stored.uid(&self.identity) && *resource_version == stored.version.to_string()
            }
            (Some(_), Precondition::Absent) | (None, Precondition::Unchanged { .. }) => false,
        };
        if is_met { Ok(()) } else { Err(Refusal::Conflict) }
    }
}

impl Stored {
    fn new(object: Arc<Object>, (number, version): (u64, u64), now: Timestamp) -> Self {
        Self { object, number, version, generation: 1, created: now, written: now, observed: 0 }
    }

    /// Takes another body. What is neither metadata nor status makes a new generation.
    fn replace(&mut self, object: Arc<Object>, now: Timestamp) {
        if !content(&self.object).eq(content(&object)) {
            self.generation += 1;
        }
        (self.object, self.written) = (object, now);
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    /// Takes note that its controller has brought it about, which is a write of status.
    pub(super) fn becomes_ready(&mut self, version: u64) {
        (self.observed, self.version) = (self.generation, version);
    }

    fn uid(&self, identity: &str) -> String {
        format!("{identity}-{:x}", self.number)
    }

    /// Services, `ConfigMap`s and others without a `spec` have no generation.
    fn has_generation(&self) -> bool {
        self.object.body().get("spec").is_some() && !self.object.id().is_a("", "Service")
    }

    fn live(&self, identity: &str) -> Live {
        let (uid, resource_version) = (self.uid(identity), self.version.to_string());
        let mut body = self.object.body().clone();
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.insert("uid".to_owned(), uid.clone().into());
            metadata.insert("resourceVersion".to_owned(), resource_version.clone().into());
            metadata.insert("creationTimestamp".to_owned(), seconds(self.created).into());
            metadata.insert("managedFields".to_owned(), json!([self.manager()]));
            if self.has_generation() {
                metadata.insert("generation".to_owned(), self.generation.into());
            }
        }
        if let Some(status) = status(self.object.id(), self.object.body(), self.observed) {
            body["status"] = status;
        }
        let object = Object::new(body).unwrap_or_else(|_| (*self.object).clone());
        Live { object, uid, resource_version }
    }

    fn metadata(&self, identity: &str) -> Metadata {
        let of_body = &self.object.body()["metadata"];
        let raw = |field: &str| of_body.get(field).and_then(raw);
        let manager = self.manager();
        Metadata {
            name: self.object.id().name.clone(),
            namespace: self.object.id().namespace.clone(),
            uid: self.uid(identity),
            resource_version: self.version.to_string(),
            generation: self.has_generation().then_some(self.generation),
            creation_timestamp: Some(seconds(self.created)),
            labels: raw("labels"),
            annotations: raw("annotations"),
            managed_fields: vec![Manager {
                manager: FIELD_MANAGER.to_owned(),
                operation: "Apply".to_owned(),
                api_version: self.object.gvk().api_version(),
                time: seconds(self.written),
                subresource: String::new(),
                fields: self::raw(&manager["fieldsV1"]),
            }],
            ..Metadata::default()
        }
    }

    /// The entry of `managedFields`: all of it is ours, and of that the labels and annotations are written down.
    fn manager(&self) -> Value {
        let metadata = &self.object.body()["metadata"];
        let keys = |field: &str| -> Map<String, Value> {
            let keys = metadata[field].as_object().into_iter().flatten();
            keys.map(|(key, _)| (format!("f:{key}"), json!({}))).collect()
        };
        let fields = json!({"f:metadata": {"f:annotations": keys("annotations"), "f:labels": keys("labels")}});
        json!({
            "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": self.object.gvk().api_version(),
            "time": seconds(self.written), "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }
}

/// Returns all fields of an object but metadata and status.
fn content(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
    let fields = object.body().as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != "metadata" && *name != "status")
}

fn raw(value: &Value) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}

/// Servers tell time in whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
