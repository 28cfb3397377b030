//! References to Secrets and `ConfigMap`s: whether they are allowed, and whether what they name is in the source.

use super::Id;
use super::found::{Sheet, dotted, text};
use super::known::asks_for_certificates;
use super::open::NOT_IN_SOURCE;
use super::table::REFERENCE_NOT_GRANTED;
use crate::check::suggest;
use crate::object::ObjectId;
use crate::spec::GATEWAY_API;
use crate::text::did_you_mean;
use crate::yaml::Node;

/// A reference as it stands in a document, with what is left out filled in.
pub(super) struct Reference<'a> {
    /// Its path in the document.
    pub(super) path: Vec<String>,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
}

impl<'a> Reference<'a> {
    /// Reads a reference, whose kind is `kind` if it names none.
    pub(super) fn read(sheet: &Sheet<'a>, node: &'a Node, path: Vec<String>, kind: &'static str) -> Option<Self> {
        let own = sheet.document.id.namespace.as_str();
        let namespace = text(node, &["namespace"]).filter(|namespace| !namespace.is_empty());
        Some(Self {
            path,
            group: text(node, &["group"]).unwrap_or_default(),
            kind: text(node, &["kind"]).unwrap_or(kind),
            name: text(node, &["name"])?,
            namespace: sheet.context.specs.namespace(namespace.unwrap_or(own)),
        })
    }

    pub(super) fn id(&self) -> ObjectId {
        ObjectId::new(self.group, self.kind, self.namespace, self.name)
    }

    fn parts(&self, field: &'static str) -> Vec<&str> {
        self.path.iter().map(String::as_str).chain((!field.is_empty()).then_some(field)).collect()
    }
}

impl Sheet<'_> {
    /// Says that a reference names something of the wrong kind.
    pub(super) fn wrong_kind(&mut self, rule: Id, reference: &Reference<'_>, wanted: &str) {
        let Reference { group, kind, .. } = reference;
        let field = if *kind == wanted { "group" } else { "kind" };
        let path = reference.parts(field);
        let message =
            format!("{} names a {kind} of group {group:?}, but must name a {wanted}", dotted(&reference.parts("")));
        let hint = format!("write {{kind: {wanted}, name: …}}, with group: \"\" or without a group");
        self.warn(rule, &path, (message, hint));
    }

    /// Says that a reference is not allowed, or leads nowhere, as far as the source shows. Who does not check the source
    /// itself is told only of what is in it: an object that no grant is for, and a name that is close to another one.
    pub(super) fn look_up(&mut self, rule: Id, reference: &Reference<'_>) {
        let id = reference.id();
        let own = &self.document.id;
        let specs = self.context.specs;
        if id.namespace != own.namespace && !specs.known.grants(own, &id) {
            if !self.asks_beyond_source(REFERENCE_NOT_GRANTED) && !self.is_there(&id) {
                return;
            }
            let said = not_granted(&dotted(&reference.parts("")), own, &id);
            return self.warn(REFERENCE_NOT_GRANTED, &reference.parts("namespace"), said);
        }
        self.named.insert(id.clone());
        if self.is_there(&id) {
            return;
        }
        let near = did_you_mean(suggest(&id.name, self.context.beside(&id)));
        let message = format!("{} names {id}, {NOT_IN_SOURCE}", dotted(&reference.parts("")));
        if near.is_none() && !self.asks_beyond_source(rule) {
            return self.leave_open(rule, (id, &reference.parts("name")), message);
        }
        let hint = near.unwrap_or_else(|| "it has to be on the cluster by then".to_owned());
        self.warn(rule, &reference.parts("name"), (message, hint));
    }

    /// Tells whether the source holds an object, or something of which a controller makes it.
    fn is_there(&self, id: &ObjectId) -> bool {
        self.context.holds(id) || (id.is_a("", "Secret") && asks_for_certificates(self.document))
    }
}

/// Says that nothing in the source allows a reference from one object to another, and what would.
pub(super) fn not_granted(place: &str, from: &ObjectId, to: &ObjectId) -> (String, String) {
    let message = format!("{place} names {to}, and no ReferenceGrant of the source allows that");
    let hint = format!(
        "put a ReferenceGrant into namespace {:?}: from: [{{group: {GATEWAY_API}, kind: {}, namespace: {}}}], to: [{{group: \
         {:?}, kind: {}}}]",
        to.namespace, from.kind, from.namespace, to.group, to.kind
    );
    (message, hint)
}
