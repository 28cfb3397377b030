//! Documents that no pack claims: who they are on a cluster, as far as their source tells.

use super::{Document, Specs};
use crate::object::ObjectId;

/// The namespace of objects that do not name one.
const DEFAULT_NAMESPACE: &str = "default";

impl Specs {
    /// Returns the namespace of a document of an unknown kind, if its kind has namespaces.
    pub(crate) fn home<'a>(&'a self, document: &'a Document) -> &'a str {
        let said = Some(document.id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        self.target_namespace.as_deref().or(said).unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the object that such a document is. Whether its kind has namespaces shows only on a cluster; where nobody
    /// knows the kind, it counts as one that has.
    pub(crate) fn placed(&self, document: &Document) -> ObjectId {
        let namespace = if self.kinds.is_cluster_scoped(&document.gvk) { "" } else { self.home(document) };
        document.id.within(namespace)
    }

    /// Returns such documents with the objects that they are.
    pub(crate) fn unclaimed_objects(&self) -> impl Iterator<Item = (ObjectId, &Document)> {
        self.unclaimed.iter().map(|document| (self.placed(document), document))
    }
}
