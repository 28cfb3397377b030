//! Documents that no pack claims: they are listed, or each is a unit of its own and applied as it is.

use std::collections::BTreeSet;

use super::written::written;
use super::{Options, Rendering, Unit, finish};
use crate::kinds;
use crate::object::{Gvk, ObjectId};
use crate::pack::Packs;
use crate::problem::Problem;
use crate::resolve::parent;
use crate::spec::gateway::GatewayClass;
use crate::spec::listener_set::ListenerSet;
use crate::spec::{Document, GATEWAY_API, Specs};

/// The namespace of objects that do not name one.
const DEFAULT_NAMESPACE: &str = "default";

/// Returns the documents of known kinds that belong to a controller that no pack renders for: classes, and listener
/// sets of its Gateways (`foreign`) or of Gateways that are not here.
pub(super) fn foreign<'a>(specs: &'a Specs, packs: &Packs, foreign: &BTreeSet<&ObjectId>) -> Vec<&'a Document> {
    let is_foreign_class = |document: &&Document| {
        let class = document.read::<GatewayClass>();
        class.is_ok_and(|class| packs.of_controller(&class.spec.controller_name).is_none())
    };
    let is_foreign_set = |document: &&Document| {
        let Ok(set) = document.read::<ListenerSet>() else { return false };
        let parent = parent(specs, document, &set);
        foreign.contains(&parent) || !(specs.documents.contains_key(&parent) || specs.broken.contains_key(&parent))
    };
    let classes = specs.of_kind(GATEWAY_API, "GatewayClass").filter(is_foreign_class);
    classes.chain(specs.of_kind(GATEWAY_API, "ListenerSet").filter(is_foreign_set)).collect()
}

impl Rendering {
    /// Files the documents that no pack claims.
    pub(super) fn add_unclaimed(&mut self, documents: Vec<&Document>, packs: &Packs, options: &Options) {
        for document in documents {
            let home = home(document, packs, options);
            let id = home.as_ref().map_or_else(|| document.id.clone(), |home| guessed(document, home, packs.table()));
            // Whether its kind has namespaces shows only on a cluster.
            self.documents.insert(id.within(""));
            self.documents.insert(id.clone());
            if !options.apply_unclaimed {
                self.unclaimed.push((document.id.clone(), document.place()));
                continue;
            }
            match unit(document, &id, home, (packs.table(), options)) {
                Ok(unit) => self.units.push(unit),
                Err(problem) => {
                    self.flawed.insert(id.clone(), problem.place.clone());
                    self.broken.insert(id);
                    self.problems.push(*problem);
                }
            }
        }
    }

    /// Puts documents where a cluster has their kinds: into a namespace or not. Returns `None` if all are right
    /// already, and otherwise all that is wanted there; what was moved bears no marks any more.
    ///
    /// A kind that `has_namespaces` does not know stays where it was guessed to be.
    #[must_use]
    pub fn scoped(&self, has_namespaces: impl Fn(&Gvk) -> Option<bool>) -> Option<Self> {
        let place = |unit: &Unit| {
            let (home, object) = (unit.home.as_ref()?, unit.objects.first()?);
            let namespace = if has_namespaces(&object.gvk())? { home.as_str() } else { "" };
            (namespace != object.id().namespace).then(|| object.clone().in_namespace(namespace))
        };
        self.units.iter().find_map(place)?;
        let mut scoped = self.clone();
        for unit in &mut scoped.units {
            if let Some(object) = place(unit) {
                unit.id = object.id().clone();
                unit.objects = vec![object];
            }
        }
        scoped.refuse_collisions();
        Some(scoped)
    }
}

/// Returns the namespace of a document if its kind has namespaces; `None` where it is known already.
fn home(document: &Document, packs: &Packs, options: &Options) -> Option<String> {
    let kind = (document.id.group.clone(), document.id.kind.clone());
    if packs.kinds().contains_key(&kind) {
        return None;
    }
    let said = Some(&document.id.namespace).filter(|namespace| !namespace.is_empty());
    Some(options.target_namespace.as_ref().or(said).map_or(DEFAULT_NAMESPACE, String::as_str).to_owned())
}

fn guessed(document: &Document, home: &str, kinds: &kinds::Table) -> ObjectId {
    let namespace = if kinds.is_cluster_scoped(&document.gvk) { "" } else { home };
    document.id.within(namespace)
}

fn unit(
    document: &Document,
    id: &ObjectId,
    home: Option<String>,
    (kinds, options): (&kinds::Table, &Options),
) -> Result<Unit, Box<Problem>> {
    if document.root.get("sops").is_some() {
        let message = "the document is still encrypted (it has a sops section), and gatewright decrypts nothing";
        let problem = Problem::document(document.place_of(&["sops"]), message).about(id.clone());
        let hint = "keep the secret in a store that the cluster reads by itself, with External Secrets for example";
        return Err(problem.hint(hint).into());
    }
    let object = finish(written(document)?, &id.namespace, kinds, options);
    Ok(Unit { id: id.clone(), objects: vec![object], home, ..Unit::of(document) })
}
