//! Documents that no pack claims: they are listed, or each is a unit of its own and applied as it is.

use std::collections::BTreeSet;

use super::written::written;
use super::{Asked, Options, Rendering, Unit, finish};
use crate::object::{Gvk, ObjectId};
use crate::overlay::object::Touched;
use crate::overlay::{self, Assignment, Overlay};
use crate::pack::Packs;
use crate::problem::{Problem, Scope};
use crate::resolve::parent;
use crate::rules::objects::{self, Finding};
use crate::spec::gateway::GatewayClass;
use crate::spec::listener_set::ListenerSet;
use crate::spec::{Document, GATEWAY_API, Specs};

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
    /// Files the documents that no pack claims; `touched` notes which patches of overlays were for them.
    pub(super) fn add_unclaimed(
        &mut self,
        documents: Vec<&Document>,
        (packs, specs, overlays): (&Packs, &Specs, &Assignment),
        (options, touched, findings): Asked<'_>,
    ) {
        for document in documents {
            let is_known = packs.kinds().contains_key(&(document.id.group.clone(), document.id.kind.clone()));
            let home = (!is_known).then(|| specs.home(document).to_owned());
            let id = if is_known { document.id.clone() } else { specs.placed(document) };
            // Whether its kind has namespaces shows only on a cluster.
            self.documents.insert(id.within(""));
            self.documents.insert(id.clone());
            let unrendered = || (document.place(), "it is still there, and no pack renders anything of it".to_owned());
            self.unrendered.entry(id.clone()).or_insert_with(unrendered);
            if !options.apply_unclaimed {
                self.unclaimed.push((document.id.clone(), document.place()));
                let refused = specs.refused.get(&document.id).into_iter().flatten().cloned();
                self.problems.extend(refused.map(|problem| Problem { scope: Scope::Warning, ..problem }));
                findings.extend(unapplied(document, (specs, options)));
                continue;
            }
            if specs.broken.contains_key(&id) || specs.reading.is_misspelled(&document.place()) {
                self.flawed.entry(id.clone()).or_insert_with(|| document.place());
                self.broken.insert(id);
                continue;
            }
            let began = Unit { id: id.clone(), home, ..Unit::of(document) };
            match filled(began, document, overlays, (specs, options, &mut *touched)) {
                Ok(unit) => {
                    let texts = (document, &overlays.of(&unit.id)[..]);
                    let of_object = |object| objects::find_in_document(object, texts, (&specs.kinds, &specs.policies));
                    findings.extend(unit.objects.iter().flat_map(of_object));
                    findings.extend(objects::unserved(document, &specs.definitions));
                    self.units.push(unit);
                }
                Err(problems) => {
                    let place = problems.first().map_or_else(|| document.place(), |problem| problem.place.clone());
                    self.flawed.insert(id.clone(), place);
                    self.broken.insert(id);
                    self.problems.extend(problems);
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

/// Returns what is wrong with a document that nobody applies, which is said to whoever checks it, and holds nothing. Other
/// programs have files of kinds that no API server has, so of those only slips are told.
fn unapplied(document: &Document, (specs, options): (&Specs, &Options)) -> Vec<Finding> {
    // Of a kind that was probably meant for a pack it is said already.
    let is_asked = options.is_check && !specs.reading.is_misspelled(&document.place());
    let Some(object) = is_asked.then(|| written(document).ok()).flatten() else { return Vec::new() };
    let findings = objects::find_in_document(&object, (document, &[]), (&specs.kinds, &specs.policies));
    let findings = findings.into_iter().chain(objects::unserved(document, &specs.definitions));
    findings.filter(|finding| !finding.is_of_others()).map(Finding::weak).collect()
}

/// Fills the unit of a document with what is applied: the document as it is, but for what overlays change.
fn filled(
    unit: Unit,
    document: &Document,
    overlays: &Assignment,
    (specs, options, touched): (&Specs, &Options, &mut Touched),
) -> Result<Unit, Vec<Problem>> {
    if document.root.get("sops").is_some() {
        let message = "the document is still encrypted (it has a sops section), and gatewright decrypts nothing";
        let problem = Problem::document(document.place_of(&["sops"]), message).about(unit.id.clone());
        let hint = "keep the secret in a store that the cluster reads by itself, with External Secrets for example";
        return Err(vec![problem.hint(hint)]);
    }
    let refused = specs.mistakes(document);
    if !refused.is_empty() {
        return Err(document.problems(refused));
    }
    if let Some(reason) = overlays.held(&unit.id) {
        return Err(vec![document.problem(&[], reason).about(unit.id)]);
    }
    let governing = overlays.of(&unit.id);
    let unusable = governing.iter().filter(|_| unit.home.is_some()).filter_map(|overlay| unusable(overlay, &unit.id));
    let unusable: Vec<Problem> = unusable.collect();
    if !unusable.is_empty() {
        return Err(unusable);
    }
    let object = written(document).map_err(|problem| vec![*problem])?;
    let object = object.edited(|body| specs.definitions.prune_nulls(document, body));
    let object = finish(object, &unit.id.namespace, &specs.kinds, options);
    let objects = overlay::object::patch(&governing, vec![object], (&specs.kinds, touched))?;
    Ok(Unit { objects, ..unit.governed(&governing) })
}

/// Says what of an overlay can be no matter of a document that no pack claims: it has no parameters.
fn unusable(overlay: &Overlay, id: &ObjectId) -> Option<Problem> {
    let parameters = overlay.layer().is_some().then_some(("parameters", "it has no parameters"));
    let rules = (!overlay.spec.enforce.is_empty()).then_some(("enforce", "no rule can be checked for it"));
    let (field, reason) = parameters.or(rules)?;
    let problem = overlay.document.problem(&["spec", field], format!("no pack claims {id}, so that {reason}"));
    Some(problem.hint("put the patches of such documents into an overlay of their own"))
}

impl Unit {
    /// Notes the overlays that have a say in it, with their files.
    pub(super) fn governed(mut self, overlays: &[&Overlay]) -> Self {
        self.files.extend(overlays.iter().flat_map(|overlay| overlay.files()));
        self.overlays.extend(overlays.iter().map(|it| (it.document.id.name.clone(), it.selection())));
        self
    }
}
