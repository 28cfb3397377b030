//! Specs that are no Gateways: documents that a pack claims by their kind.
//!
//! Their parameters are those that the annotation [`PARAMETERS`] names, else those of their own name, in their namespace.
//! Parameters may be claimed themselves: where no other spec refers to them, they are a spec of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, Resolution, Resolved};
use crate::merge::origin::LayerName;
use crate::object::{ObjectId, Parts};
use crate::overlay::Assignment;
use crate::pack::{Pack, Packs};
use crate::problem::{Problem, Scope};
use crate::spec::config_map::{PARAMETERS, is_shared};
use crate::spec::gateway::{Gateway, GatewaySpec};
use crate::spec::{Document, Metadata, Specs};
use crate::yaml::Node;

/// Resolves all that packs claim, in the order of the identities.
pub(super) fn resolve<'a>(
    specs: &'a Specs,
    packs: &'a Packs,
    overlays: &'a Assignment,
) -> impl Iterator<Item = (&'a Document, Resolution<'a>)> {
    let twins = twins(specs, packs);
    let used = used(specs, packs);
    let claimed = specs.documents.values().filter_map(|document| {
        let pack = packs.claiming(&document.id.group, &document.id.kind)?;
        (!used.contains(&document.id)).then_some((document, pack))
    });
    let resolve = |(document, pack): (&'a Document, &'a Pack)| {
        let context = Context { specs, packs, document };
        let resolution = match twins.get(&document.id) {
            Some(problem) => Ok(Resolution::Broken(problem.iter().cloned().collect())),
            None => context.claimed(pack.on(overlays.cluster.as_ref(), None), overlays),
        };
        (document, resolution.unwrap_or_else(|problem| Resolution::Broken(vec![*problem])))
    };
    claimed.map(resolve).collect::<Vec<_>>().into_iter()
}

/// Finds documents of one kind and name that stand in two API groups of one pack: they are about the same thing, and
/// nobody can say which of them is meant. The last one has the problem.
fn twins(specs: &Specs, packs: &Packs) -> BTreeMap<ObjectId, Option<Problem>> {
    let mut alike: BTreeMap<_, Vec<&Document>> = BTreeMap::new();
    for document in specs.documents.values() {
        let Parts { group, kind, namespace, name } = &*document.id;
        if let Some(pack) = packs.claiming(group, kind) {
            alike.entry((&pack.manifest.name, kind, namespace, name)).or_default().push(document);
        }
    }
    let mut twins = BTreeMap::new();
    for documents in alike.values().filter(|documents| documents.len() > 1) {
        for (index, document) in documents.iter().enumerate() {
            let first = documents[0];
            let problem = (index > 0).then(|| {
                let (group, other) = (&document.id.group, &first.id.group);
                let message = format!("it stands here in group {group}, and at {} in {other}", first.place());
                document.problem(&[], message).hint("remove one of the two; until then neither is used")
            });
            twins.insert(document.id.clone(), problem);
        }
    }
    twins
}

/// Returns the parameters that other specs refer to.
fn used(specs: &Specs, packs: &Packs) -> BTreeSet<ObjectId> {
    let claimed = specs.documents.values().chain(&specs.broken_documents);
    let of = |document: &Document| {
        let pack = packs.claiming(&document.id.group, &document.id.kind)?;
        let (id, _) = parameters_of(document, pack)?;
        (id != document.id).then_some(id)
    };
    claimed.filter_map(of).collect()
}

/// Returns which parameters govern a spec, and whether it names them; `None` if the spec is parameters itself.
fn parameters_of(document: &Document, pack: &Pack) -> Option<(ObjectId, bool)> {
    let kind = &pack.own.kind;
    if document.id.group == kind.group && document.id.kind == kind.kind {
        return None;
    }
    let named = document.root.at(["metadata", "annotations", PARAMETERS]).and_then(Node::as_str);
    let name = named.unwrap_or(&document.id.name);
    Some((ObjectId::new(&kind.group, &kind.kind, &document.id.namespace, name), named.is_some()))
}

impl<'a> Context<'a> {
    fn claimed(&self, pack: &'a Pack, overlays: &'a Assignment) -> Result<Resolution<'a>, Box<Problem>> {
        let mut resolved = Resolved::new(self.document, self.specs, nameless(self.document), pack);
        match parameters_of(self.document, pack) {
            None => {
                self.check_freedom()?;
                // Without a spec they say nothing.
                drop(self.add_layer(LayerName::Parameters, &self.document.id, &mut resolved));
            }
            Some((id, is_named)) if is_named || (self.specs.has(&id) && !is_shared(&id.group, &id.kind)) => {
                let at = |message: String| self.document.problem(&["metadata", "annotations", PARAMETERS], message);
                self.add_layer(LayerName::Parameters, &id, &mut resolved).map_err(at)?;
            }
            Some(_) => {}
        }
        self.governed(resolved, overlays)
    }

    /// Parameters are a spec of their own where nothing refers to them, and that must be certain.
    fn check_freedom(&self) -> Result<(), Box<Problem>> {
        let unreadable = self.specs.problems.iter().find(|problem| problem.scope == Scope::File);
        unreadable.map_or(Ok(()), |problem| {
            let message =
                format!("{} cannot be read, and may hold the spec that these parameters are for", problem.place);
            Err(Box::new(self.document.problem(&[], message)))
        })
    }
}

/// Returns a Gateway that says nothing but the name of another spec.
pub(super) fn nameless(document: &Document) -> Gateway {
    let (name, namespace) = (document.id.name.clone(), document.id.namespace.clone());
    Gateway {
        api_version: document.gvk.api_version(),
        kind: document.gvk.kind.clone(),
        metadata: Metadata { name, namespace: Some(namespace), ..Metadata::default() },
        spec: GatewaySpec::default(),
        status: None,
    }
}
