//! Fingerprints: has anybody but the reporters of status touched an object?
//!
//! Comparing an object exactly costs a dry run. Its metadata tells for nothing whether that is needed: whoever sets,
//! changes or removes a field through the API leaves a trace in `managedFields` (KEP-555). What only reports (an entry of
//! the subresource `status`) leaves the fingerprint alone, unless it took away or changed a label or an annotation of
//! ours.
//!
//! A trace has a resolution of one second, so that two changes within one may look like one: [`Metadata::newest`] says
//! how fresh the newest is, and whoever keeps a fingerprint that is as fresh must not rely on it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::marks::FIELD_MANAGER;
use crate::object::{Gvk, ObjectId};
use crate::text::hex;

/// The length of the part of the digest that is kept, in bytes: far beyond chance, and nobody gains by two objects that
/// look alike.
const BYTES: usize = 16;

/// A digest of everything about an object that changes when somebody touches it; 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The metadata of a live object, as far as it tells whose the object is and who has touched it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// `name`.
    pub name: String,
    /// `namespace`; empty for what is in none.
    pub namespace: String,
    /// `uid`.
    pub uid: String,
    /// `resourceVersion`.
    pub resource_version: String,
    /// `generation`; Services, `ConfigMap`s and `ServiceAccount`s have none.
    pub generation: Option<i64>,
    /// `creationTimestamp`.
    pub creation_timestamp: Option<String>,
    /// `deletionTimestamp`.
    pub deletion_timestamp: Option<String>,
    /// `finalizers`.
    pub finalizers: Vec<String>,
    /// `ownerReferences`, as they were sent.
    pub owner_references: Option<Box<RawValue>>,
    /// `labels`, as they were sent: they are asked for only where a version has moved.
    pub labels: Option<Box<RawValue>>,
    /// `annotations`, as they were sent.
    pub annotations: Option<Box<RawValue>>,
    /// `managedFields`.
    pub managed_fields: Vec<Manager>,
}

/// An entry of `managedFields`: which fields somebody has set, and when.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manager {
    /// The name of the field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The version that its fields are named after.
    pub api_version: String,
    /// When it last changed its set of fields, RFC 3339, in whole seconds.
    pub time: String,
    /// The subresource that it wrote to, if any.
    pub subresource: String,
    /// The fields (`FieldsV1`), as they were sent.
    #[serde(rename = "fieldsV1")]
    pub fields: Option<Box<RawValue>>,
}

/// Returns the fingerprint of a live object; `None` if its metadata are not those of an object.
pub fn of(body: &Value) -> Option<Fingerprint> {
    Metadata::deserialize(body.get("metadata")?).ok().map(|metadata| metadata.fingerprint())
}

impl Metadata {
    /// Returns the identity of the object.
    pub fn id(&self, kind: &Gvk) -> ObjectId {
        ObjectId::new(&kind.group, &kind.kind, &self.namespace, &self.name)
    }

    /// Returns the fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            // The length in front keeps two texts from reading like two others.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        add(&self.uid);
        add(&self.generation.map(|generation| generation.to_string()).unwrap_or_default());
        add(self.deletion_timestamp.as_deref().unwrap_or_default());
        for finalizer in &self.finalizers {
            add(finalizer);
        }
        add(self.owner_references.as_deref().map_or("", RawValue::get));
        for (key, value) in self.own_entries() {
            add(&key);
            add(&value);
        }
        for entry in self.touches() {
            for text in [&entry.manager, &entry.operation, &entry.api_version, &entry.time, &entry.subresource] {
                add(text);
            }
            add(entry.fields.as_deref().map_or("", RawValue::get));
        }
        Fingerprint(hex(&hasher.finalize()[..BYTES]))
    }

    /// Returns when somebody last touched the object, as the server wrote it down; whoever only reports does not count.
    pub fn newest(&self) -> Option<&str> {
        // All of them are in the same form and time zone, in which the order of texts is that of time.
        self.touches().map(|entry| entry.time.as_str()).max().filter(|time| !time.is_empty())
    }

    /// The entries of those who do not only report. Each entry keeps its place as long as nobody touches the object.
    fn touches(&self) -> impl Iterator<Item = &Manager> {
        self.managed_fields.iter().filter(|entry| entry.subresource != "status")
    }

    /// The labels and annotations that are ours, by what the server says of us, and what they are now.
    fn own_entries(&self) -> Vec<(String, String)> {
        let (labels, annotations) = (entries(self.labels.as_deref()), entries(self.annotations.as_deref()));
        let mut found = Vec::new();
        for entry in self.touches().filter(|entry| entry.manager == FIELD_MANAGER && entry.operation == "Apply") {
            let text = entry.fields.as_deref().map_or("{}", RawValue::get);
            let own: OwnMetadata<'_> = serde_json::from_str::<OwnFields<'_>>(text).unwrap_or_default().metadata;
            found.extend(chosen(&labels, &own.labels));
            found.extend(chosen(&annotations, &own.annotations));
        }
        found
    }
}

/// Labels or annotations. An API server sends nothing but texts.
fn entries(sent: Option<&RawValue>) -> BTreeMap<String, String> {
    sent.and_then(|sent| serde_json::from_str(sent.get()).ok()).unwrap_or_default()
}

/// The entries whose keys are in a set of fields.
fn chosen(entries: &BTreeMap<String, String>, fields: &Keys<'_>) -> Vec<(String, String)> {
    let keys = fields.keys().filter_map(|field| field.strip_prefix("f:"));
    keys.filter_map(|key| Some((key.to_owned(), entries.get(key)?.clone()))).collect()
}

type Keys<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The part of a set of fields that is about metadata; the rest is not read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnFields<'a> {
    #[serde(rename = "f:metadata", borrow)]
    metadata: OwnMetadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnMetadata<'a> {
    #[serde(rename = "f:labels", borrow)]
    labels: Keys<'a>,
    #[serde(rename = "f:annotations", borrow)]
    annotations: Keys<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An object of ours with a label, as it is after a Deployment has reported.
    fn object() -> Value {
        json!({"metadata": {
            "name": "edge", "uid": "u", "resourceVersion": "5", "generation": 2,
            "labels": {"ours": "1", "theirs": "1"}, "annotations": {"note": "x"},
            "managedFields": [
                {
                    "manager": "gatewright", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:ours": {}}}, "f:spec": {"f:replicas": {}}},
                },
                {
                    "manager": "kubelet", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-02T00:00:00Z",
                    "subresource": "status", "fieldsV1": {"f:status": {}},
                },
            ],
        }})
    }

    #[track_caller]
    fn check(pointer: &str, value: Value, is_seen: bool) {
        let mut changed = object();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let place = changed.pointer_mut(parent).expect("it is there");
        match key.parse::<usize>() {
            Ok(index) => place[index] = value,
            Err(_) => place[key] = value,
        }
        assert_eq!(of(&changed) != of(&object()), is_seen, "{pointer}");
    }

    #[test]
    fn what_somebody_touches_is_seen_and_what_is_reported_is_not() {
        check("/metadata/resourceVersion", json!("6"), false);
        check("/metadata/managedFields/1/time", json!("2026-01-03T00:00:00Z"), false);
        check("/metadata/managedFields/1/fieldsV1", json!({"f:status": {"f:replicas": {}}}), false);
        check("/metadata/labels/theirs", json!("2"), false);
        check("/metadata/annotations/note", json!("y"), false);
        check("/metadata/labels/ours", json!("2"), true);
        check("/metadata/uid", json!("v"), true);
        check("/metadata/generation", json!(3), true);
        check("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), true);
        check("/metadata/finalizers", json!(["x"]), true);
        check("/metadata/ownerReferences", json!([{"uid": "x"}]), true);
        check("/metadata/managedFields/0/time", json!("2026-01-03T00:00:00Z"), true);
        check("/metadata/managedFields/0/fieldsV1", json!({"f:metadata": {"f:labels": {"f:ours": {}}}}), true);
        check("/metadata/managedFields/1/subresource", json!("scale"), true);
    }

    #[test]
    fn it_is_the_same_from_text_and_from_a_value() {
        let text = object()["metadata"].to_string();
        let metadata: Metadata = serde_json::from_str(&text).expect("it is sound");
        assert_eq!(Some(metadata.fingerprint()), of(&object()));
        assert_eq!(metadata.newest(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn what_is_no_object_has_none() {
        assert_eq!(of(&json!({"metadata": {"finalizers": 5}})), None);
        assert_eq!(of(&json!([])), None);
    }
}
