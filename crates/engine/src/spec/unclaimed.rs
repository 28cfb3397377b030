//! Documents that no pack claims: who they are on a cluster as far as their source tells, and what an API server would say.

use super::{Document, Kinds, Specs, known, metadata, overlay, suspect};
use crate::check::{self, Mistake};
use crate::object::ObjectId;
use crate::problem::Problem;
use crate::reading::{Flaw, is_slip};

/// The namespace of objects that do not name one.
const DEFAULT_NAMESPACE: &str = "default";

impl Specs {
    /// Files a document of a kind that nobody here reads, and says what was probably meant by it.
    pub(super) fn add_unclaimed(&mut self, document: Document, kinds: &Kinds) {
        let same_group =
            || kinds.keys().filter(|(group, _)| *group == document.id.group).map(|(_, kind)| kind.as_str());
        // What exists beside ours was meant as it is.
        let exists = self.kinds.knows(&document.id.group, &document.id.kind);
        let near = if exists { None } else { known::slip(&document.id.kind, same_group()) };
        let group = if exists { None } else { meant_group(&document.id, kinds) };
        // What is meant for us is nobody else's.
        let is_ours = document.id.group == overlay::GROUP;
        if near.is_some() || is_ours {
            let message = format!("unknown kind {:?} in {}", document.id.kind, document.gvk.api_version());
            let problem = Problem::document(document.place_of(&["kind"]), message);
            let only = near.and_then(|_| check::only(&document.id.kind, same_group()));
            let problem = match near {
                None => problem.hint(format!("there are: {}", same_group().collect::<Vec<_>>().join(", "))),
                near => problem.meant(near).fixed(&document.id.kind, only),
            };
            self.problems.push(problem);
        } else if let Some(group) = group {
            let message = format!("unknown group {:?} of kind {:?}", document.id.group, document.id.kind);
            let problem = Problem::document(document.place_of(&["apiVersion"]), message);
            self.problems.push(problem.meant(Some(group)));
        }
        let meant = near.map(str::to_owned).or_else(|| group.map(|group| format!("{}.{group}", document.id.kind)));
        let flaw = meant.map_or(Flaw::Unclaimed, Flaw::Misspelled);
        if !exists {
            self.reading.suspects.push(suspect(&document, flaw, self));
        }
        if is_ours {
            return self.keep_overlay(document);
        }
        if !self.kinds.is_cluster_scoped(&document.gvk) {
            self.note_unplaced(&document);
        }
        self.judge(&document);
        self.unclaimed.push(document);
    }

    /// Notes what an API server would say of such a document, as far as its kind is known.
    fn judge(&mut self, document: &Document) {
        if let Some(successor) = self.definitions.successor(&document.id.group, &document.id.kind) {
            let message = format!("newer releases of {} have no {}", document.id.group, document.id.kind);
            let problem = Problem::warning(document.place_of(&["kind"]), message).about(document.id.clone());
            self.problems.push(problem.hint(format!("use {successor}")));
        }
        let mistakes = self.definitions.mistakes(document);
        if !mistakes.is_empty() {
            self.refused.insert(document.id.clone(), document.problems(mistakes));
        }
        self.problems.extend(self.definitions.doubts(document, false));
    }

    /// Returns why such a document is not applied as it is: it may be another object than was meant, or one that an API
    /// server would refuse. Where nothing is applied, the first is nobody's trouble: other programs have files like these.
    pub(crate) fn mistakes(&self, document: &Document) -> Vec<Mistake> {
        let mistakes = metadata::of_identity(&document.id.group, &document.root);
        if mistakes.is_empty() { self.definitions.mistakes(document) } else { mistakes }
    }

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

/// Returns the group that was probably meant: one that has such a kind, and is close to what was written.
fn meant_group<'a>(id: &ObjectId, kinds: &'a Kinds) -> Option<&'a str> {
    let mut has_kind = kinds.keys().filter(|(_, kind)| *kind == id.kind).map(|(group, _)| group.as_str());
    has_kind.find(|group| !id.group.is_empty() && *group != id.group && is_slip(&id.group, group))
}
