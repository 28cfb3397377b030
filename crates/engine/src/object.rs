//! Kubernetes objects as values: what they are, what they are called, how they are ordered.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The identity of an object on a cluster: group and kind, but no version, because a new API version of the same
/// kind is the same object.
///
/// Its text form is `Kind namespace/name` for people ([`fmt::Display`]) and `group/Kind/namespace/name` for marks
/// and inventories ([`ObjectId::key`]). The namespace of a cluster-scoped object is empty.
///
/// It is shared by whoever has a clone of it: plans, reports and what is known of a cluster name the same objects many
/// times, and a fleet has a hundred thousand of them.
#[derive(Clone)]
pub struct ObjectId(Arc<Shared>);

/// An identity with the text by which it is compared: rounds look up thousands of them in each other's maps, and one
/// comparison of what lies in one place takes a fraction of four of what lies in four.
struct Shared {
    /// The parts one after the other, each but the last with a NUL behind it: it sorts as they do one by one.
    key: Box<[u8]>,
    parts: Parts,
}

/// The parts of an identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename = "ObjectId")]
pub struct Parts {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind, as in `kind:`.
    pub kind: String,
    /// Namespace, empty if cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectId {
    /// Puts an identity together.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Parts { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }.into()
    }

    /// Returns the same in another namespace; none if that is empty.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        Self::new(&self.group, &self.kind, namespace, &self.name)
    }

    /// Returns group and kind.
    pub fn group_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    /// Tells whether it is of a kind.
    pub fn is_a(&self, group: &str, kind: &str) -> bool {
        self.group_kind() == (group, kind)
    }

    /// Returns the unambiguous text form `group/Kind/namespace/name`, empty parts kept.
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }

    /// Returns `Kind/namespace/name`, the form that commands take.
    pub fn path(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{}/{}", self.kind, self.name),
            namespace => format!("{}/{namespace}/{}", self.kind, self.name),
        }
    }
}

impl From<Parts> for ObjectId {
    fn from(parts: Parts) -> Self {
        let Parts { group, kind, namespace, name } = &parts;
        let key = [group.as_bytes(), kind.as_bytes(), namespace.as_bytes(), name.as_bytes()].join(&0);
        Self(Arc::new(Shared { key: key.into_boxed_slice(), parts }))
    }
}

impl Shared {
    /// Returns the lengths that tell where each part begins: a part may hold a NUL itself, where nobody has checked it.
    fn lengths(&self) -> [usize; 3] {
        [&self.parts.group, &self.parts.kind, &self.parts.namespace].map(String::len)
    }
}

impl Deref for ObjectId {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0.parts
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        let is_same = || self.0.key == other.0.key && self.0.lengths() == other.0.lengths();
        Arc::ptr_eq(&self.0, &other.0) || is_same()
    }
}

impl Eq for ObjectId {}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || self.0.key.cmp(&other.0.key).then_with(|| self.0.lengths().cmp(&other.0.lengths()));
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { by_key() }
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parts.fmt(f)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Parts::deserialize(deserializer).map(Self::from)
    }
}

/// Returns the group and kind of an object's body, empty where it does not say them.
pub(crate) fn group_kind(body: &Value) -> (&str, &str) {
    let api_version = body["apiVersion"].as_str().unwrap_or_default();
    (api_version.split_once('/').map_or("", |(group, _)| group), body["kind"].as_str().unwrap_or_default())
}

/// Tells whether objects of a kind hold what nobody else may read.
pub fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The text was not of the form `group/Kind/namespace/name`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not of the form group/Kind/namespace/name")]
pub struct KeyError(String);

impl FromStr for ObjectId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [group, kind, namespace, name] if !kind.is_empty() && !name.is_empty() => {
                Ok(Self::new(group, kind, namespace, name))
            }
            _ => Err(KeyError(text.to_owned())),
        }
    }
}

/// A group, version and kind: what an API server needs to find the endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// Reads `apiVersion` and `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns `group/version`, or the bare version for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

/// An object with its identity read out once.
///
/// The body is always a JSON object whose `apiVersion`, `kind` and `metadata` agree with the identity. Clones share it:
/// what is wanted stands in a rendering, a plan and a record at once, and a fleet is large.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Object {
    id: ObjectId,
    version: String,
    body: Arc<Value>,
}

/// A value that is not a Kubernetes object.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectError {
    /// A string field that every object has is absent, empty or of another type.
    #[error("{0} is missing or not a string")]
    Missing(&'static str),
}

impl TryFrom<Value> for Object {
    type Error = ObjectError;

    fn try_from(body: Value) -> Result<Self, ObjectError> {
        Self::new(body)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body.serialize(serializer)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.into_body()
    }
}

impl Object {
    /// Reads the identity out of a body.
    pub fn new(body: Value) -> Result<Self, ObjectError> {
        let text = |pointer: &'static str| body.pointer(pointer).and_then(Value::as_str);
        let need = |pointer: &'static str, name: &'static str| {
            text(pointer).filter(|text| !text.is_empty()).ok_or(ObjectError::Missing(name))
        };
        let gvk = Gvk::new(need("/apiVersion", "apiVersion")?, need("/kind", "kind")?);
        let name = need("/metadata/name", "metadata.name")?;
        let id = ObjectId::new(&gvk.group, &gvk.kind, text("/metadata/namespace").unwrap_or(""), name);
        Ok(Self { id, version: gvk.version, body: Arc::new(body) })
    }

    /// Returns the identity.
    pub fn id(&self) -> &ObjectId {
        &self.id
    }

    /// Returns group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk { group: self.id.group.clone(), version: self.version.clone(), kind: self.id.kind.clone() }
    }

    /// Returns the whole object as JSON.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Returns the body, as it is shared with clones of the object.
    pub(crate) fn shared_body(&self) -> &Arc<Value> {
        &self.body
    }

    /// Returns the whole object as JSON, consuming it.
    pub fn into_body(self) -> Value {
        Arc::unwrap_or_clone(self.body)
    }

    /// Returns it with nothing in its body but who it is.
    #[must_use]
    pub(crate) fn outlined(&self) -> Self {
        let metadata = ["name", "namespace"].map(|field| (field, &self.body["metadata"][field]));
        let metadata: Map<_, _> = metadata
            .into_iter()
            .filter(|(_, it)| !it.is_null())
            .map(|(name, it)| (name.to_owned(), it.clone()))
            .collect();
        let body = json!({"apiVersion": self.body["apiVersion"], "kind": self.body["kind"], "metadata": metadata});
        Self { id: self.id.clone(), version: self.version.clone(), body: Arc::new(body) }
    }

    /// Puts the object into a namespace; an empty one is none.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        let metadata = &mut Arc::make_mut(&mut self.body)["metadata"];
        match metadata.as_object_mut() {
            Some(metadata) if namespace.is_empty() => drop(metadata.remove("namespace")),
            _ => metadata["namespace"] = Value::from(namespace),
        }
        self.id = self.id.within(namespace);
        self
    }

    /// Returns the object with labels or annotations (`field`) added; what `entries` says wins.
    #[must_use]
    pub fn with_metadata(mut self, field: &str, entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let metadata = &mut Arc::make_mut(&mut self.body)["metadata"];
        for (key, value) in entries {
            metadata[field][key] = Value::from(value);
        }
        self
    }

    /// Returns the object with its body changed in a way that leaves its identity as it is.
    #[must_use]
    pub(crate) fn edited(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(Arc::make_mut(&mut self.body));
        self
    }

    /// Returns the object without a field of its metadata that does not identify it.
    #[must_use]
    pub(crate) fn without_metadata(mut self, field: &str) -> Self {
        if let Some(metadata) = Arc::make_mut(&mut self.body)["metadata"].as_object_mut() {
            metadata.remove(field);
        }
        self
    }

    /// Returns a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        metadata(&self.body, "labels", key)
    }

    /// Returns an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        metadata(&self.body, "annotations", key)
    }
}

/// Returns what stands at a path, such as `spec.rules.*.name`, in which `*` stands for each item of a list.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    path.split('.').fold(vec![value], |found, field| match field {
        "*" => found.into_iter().filter_map(Value::as_array).flatten().collect(),
        field => found.into_iter().filter_map(|value| value.get(field)).collect(),
    })
}

/// Returns one label or annotation (`field`) of an object's body.
pub fn metadata<'a>(body: &'a Value, field: &str, key: &str) -> Option<&'a str> {
    body.get("metadata")?.get(field)?.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn identities_are_one_only_where_all_parts_are_and_sort_as_their_parts_do() {
        let texts = ["", "a", "b", "a\0", "a\0b", "\0"];
        let mut all = Vec::new();
        for one in texts {
            for other in texts {
                all.extend(texts.map(|text| ObjectId::new(one, other, "x", text)));
                all.extend(texts.map(|text| ObjectId::new("x", one, other, text)));
            }
        }
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            assert_eq!(one == other, **one == **other, "{one:?} {other:?}");
            assert_eq!(one.cmp(other) == Ordering::Equal, one == other, "{one:?} {other:?}");
            let is_plain = ![one, other].iter().any(|id| id.key().contains('\0'));
            assert!(!is_plain || one.cmp(other) == (**one).cmp(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_key_reads_back() {
        for id in [ObjectId::new("apps", "Deployment", "infra", "edge"), ObjectId::new("", "Namespace", "", "infra")] {
            assert_eq!(id.key().parse::<ObjectId>(), Ok(id));
        }
        assert!("Deployment/infra/edge".parse::<ObjectId>().is_err());
    }

    #[test]
    fn a_body_without_a_name_is_no_object() {
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": ""}});
        assert_eq!(Object::new(body), Err(ObjectError::Missing("metadata.name")));
    }

    #[test]
    fn an_object_knows_itself() {
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "edge"}});
        let object = Object::new(body).expect("it has all that it needs").in_namespace("infra");
        assert_eq!(object.id().to_string(), "Deployment infra/edge");
        assert_eq!(object.gvk().to_string(), "apps/v1 Deployment");
    }
}
