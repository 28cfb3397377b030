//! References: the documents that a field names.

use serde_json::Value;

use super::cursor::{Cursor, Role, Step};
use super::fields::Field;
use super::index::Entry;

/// The field that names a class, and is no mapping.
const CLASS_NAME: &str = "gatewayClassName";

/// A reference to a document, as far as it says what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// The group, if it says one, or its field has a default.
    group: Option<String>,
    /// The kind, if it says one, or its field has a default.
    kind: Option<String>,
    /// The namespace; empty if neither it nor the document says one.
    namespace: String,
    /// The name; empty if it is not written yet.
    pub(super) name: String,
}

/// Returns the reference that the cursor is in: the name of a class, or a mapping that names something. `root` is the schema
/// of the document; it knows what is meant where a kind is not said.
pub(super) fn at(cursor: &Cursor, root: Option<Field<'_>>) -> Option<Reference> {
    let path = match cursor.role {
        Role::Name => cursor.path.as_slice(),
        Role::Value => cursor.path.split_last()?.1,
        Role::Either => return None,
    };
    if cursor.path.last() == Some(&Step::Field(CLASS_NAME.to_owned())) {
        return Some(Reference {
            group: Some("gateway.networking.k8s.io".to_owned()),
            kind: Some("GatewayClass".to_owned()),
            namespace: String::new(),
            name: cursor.beside(CLASS_NAME).to_owned(),
        });
    }
    let around = path.iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name.to_lowercase()),
        Step::Item(_) => None,
    })?;
    let has = |name: &str| cursor.names().any(|it| it == name);
    if around == "metadata" || !(around.contains("ref") || has("kind") && has("name")) {
        return None;
    }
    let mapping = root.and_then(|root| root.follow(path));
    let default = |name: &str| {
        let field = mapping?.follow(&[Step::Field(name.to_owned())])?;
        field.default().and_then(Value::as_str).map(str::to_owned)
    };
    let said = |name: &str| if has(name) { Some(cursor.beside(name).to_owned()) } else { default(name) };
    let namespace =
        if has("namespace") { cursor.beside("namespace") } else { cursor.text_at(&["metadata"], "namespace") };
    let (group, kind) = (said("group"), said("kind").filter(|kind| !kind.is_empty()));
    Some(Reference { group, kind, namespace: namespace.to_owned(), name: cursor.beside("name").to_owned() })
}

impl Reference {
    /// Tells whether it may mean a document, whatever the name.
    pub(super) fn may_be(&self, entry: &Entry) -> bool {
        let is = |said: &Option<String>, own: &str| said.as_deref().is_none_or(|said| said == own);
        is(&self.group, &entry.group) && is(&self.kind, &entry.kind)
    }

    /// Tells whether it means a document: one without a namespace is in `default`, or in none.
    pub(super) fn means(&self, entry: &Entry) -> bool {
        let or_default =
            |namespace: &str| if namespace.is_empty() { "default".to_owned() } else { namespace.to_owned() };
        let own = entry.namespace.as_deref();
        let is_near = own.is_none_or(|own| or_default(own) == or_default(&self.namespace));
        self.may_be(entry) && *entry.name == *self.name && is_near
    }
}
