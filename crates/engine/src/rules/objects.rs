//! Objects of Kubernetes' own kinds that are rendered, or go to a cluster as they were written: all that its API server
//! would refuse, and that no schema of a spec has seen.
//!
//! Templates of built-in packs are tried on real API servers. So objects are looked at only where somebody has written a
//! part of them: in an overlay, a patch, a template of pods, or as a whole.

mod claims;
mod contents;
mod fields;
mod ingresses;
mod jobs;
mod networks;
mod ports;
mod rights;
mod scaling;
mod selectors;
mod services;
mod values;
mod workloads;

use std::slice;

use serde_json::Value;

use super::Id;
use super::pods;
use super::policies::Policies;
use super::table::{OBJECT_VALUE, UNKNOWN_KIND};
use super::texts::{Step, Texts};
use crate::admission::Definitions;
use crate::kinds::{
    self,
    served::{self, Unknown},
};
use crate::object::{Object, ObjectId};
use crate::overlay::Overlay;
use crate::problem::{Place, Problem, Scope};
use crate::resolve::Resolved;
use crate::spec::{Document, GATEWAY_API};
use crate::unit::duplicates;

/// A finding about the objects of a unit, before it is known what a config file says of its rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(super) rule: Id,
    /// Whether it is a warning, whatever its rule is.
    pub(super) is_weak: bool,
    /// The object that has to be there for it to be none.
    pub(super) wants: Option<ObjectId>,
    pub(super) problem: Problem,
}

impl Finding {
    /// Tells whether it is about a kind that resembles none that is known, as other programs have them.
    pub(crate) fn is_of_others(&self) -> bool {
        self.rule == UNKNOWN_KIND && self.problem.hint.is_none()
    }

    /// Returns it as a warning.
    pub(crate) fn weak(self) -> Self {
        Self { is_weak: true, ..self }
    }
}

/// An object, and all that was found in it.
struct Sheet<'a> {
    object: &'a Object,
    kinds: &'a kinds::Table,
    texts: &'a Texts<'a>,
    findings: Vec<Finding>,
}

/// A part of an object that is wrong.
struct Part<'v> {
    steps: Vec<Step>,
    value: &'v Value,
    /// Whether its name is what is wrong, and not its value.
    is_key: bool,
}

/// Returns what is wrong with the objects of a spec and with their pods.
pub(crate) fn find(objects: &[Object], resolved: &Resolved<'_>, kinds: &kinds::Table) -> Vec<Finding> {
    let texts = Texts::of(resolved);
    let mut findings: Vec<Finding> = Vec::new();
    let written = if is_written(resolved) { objects } else { &[] };
    for finding in written.iter().flat_map(|object| of_object(object, (&texts, kinds))) {
        // Several objects may be made of one text.
        let is_same = |other: &Finding| {
            (other.rule, &other.problem.place, &other.problem.hint)
                == (finding.rule, &finding.problem.place, &finding.problem.hint)
        };
        let is_placed = finding.problem.place != *texts.whole();
        if !is_placed || !findings.iter().any(is_same) {
            findings.push(finding);
        }
    }
    findings.extend(pods::find(objects, &texts, (kinds, &resolved.specs.policies)));
    findings
}

/// Returns what is wrong with a document that no pack claims, as an object and its overlays.
pub(crate) fn find_in_document(
    object: &Object,
    (document, overlays): (&Document, &[&Overlay]),
    (kinds, policies): (&kinds::Table, &Policies),
) -> Vec<Finding> {
    let texts = Texts::of_document(document, object.id(), overlays);
    if let Some(unknown) = unknown_kind(document, kinds) {
        return vec![unknown];
    }
    let mut findings = of_object(object, (&texts, kinds));
    let mut sheet = Sheet { object, kinds, texts: &texts, findings: Vec::new() };
    for twice in duplicates::find(slice::from_ref(object), kinds) {
        let message = twice.strip_prefix(&format!("{} ", object.id())).unwrap_or(&twice).to_owned();
        sheet.add_at(OBJECT_VALUE, texts.whole().clone(), (message, Some("keep one of them".to_owned())));
    }
    findings.extend(sheet.findings);
    findings.extend(pods::find(slice::from_ref(object), &texts, (kinds, policies)));
    findings
}

/// Says that no API server knows the kind of a document.
fn unknown_kind(document: &Document, kinds: &kinds::Table) -> Option<Finding> {
    let Unknown { field, message, hint, fix, is_certain } = served::unknown(&document.gvk, kinds)?;
    let old = if field == "kind" { document.id.kind.clone() } else { document.gvk.api_version() };
    let problem = Problem { hint, ..Problem::document(document.place_of(&[field]), message) };
    let problem = problem.fixed(&old, fix.as_deref()).about(document.id.clone()).by(UNKNOWN_KIND);
    Some(Finding { rule: UNKNOWN_KIND, is_weak: !is_certain, wants: None, problem })
}

/// Says that the definition of a kind which no pack claims does not have the version of a document. It is a warning: another
/// release may have it.
pub(crate) fn unserved(document: &Document, definitions: &Definitions) -> Option<Finding> {
    let (id, version) = (&document.id, &document.gvk.version);
    let definition = definitions.of(&id.group, &id.kind)?;
    let versions: Vec<&str> = definition.schemas().map(|(name, _)| name).collect();
    if versions.is_empty() || versions.contains(&version.as_str()) {
        return None;
    }
    let message = format!("the definition of {} that is known here has no version {version}", id.kind);
    let hint = format!("it has {}; with another release, name its definitions in crdFolders", versions.join(", "));
    let problem = Problem::document(document.place_of(&["apiVersion"]), message).hint(hint);
    let problem = problem.about(id.clone()).by(UNKNOWN_KIND);
    Some(Finding { rule: UNKNOWN_KIND, is_weak: true, wants: None, problem })
}

/// Tells whether people have written a part of the objects of a spec: what stands in parameters goes into them as it is. Those
/// of a Gateway without any are the pack's alone.
fn is_written(resolved: &Resolved<'_>) -> bool {
    let is_patched = |overlay: &&Overlay| !overlay.spec.object_patches.is_empty();
    !resolved.document.id.is_a(GATEWAY_API, "Gateway")
        || !resolved.layers.is_empty()
        || resolved.overlays.iter().any(is_patched)
}

fn of_object(object: &Object, (texts, kinds): (&Texts<'_>, &kinds::Table)) -> Vec<Finding> {
    let mut sheet = Sheet { object, kinds, texts, findings: Vec::new() };
    fields::check(&mut sheet);
    // A value of another type is said once.
    if sheet.findings.is_empty() {
        values::check(&mut sheet);
    }
    sheet.findings
}

impl Sheet<'_> {
    /// Adds that a value is none that an API server takes.
    fn say(&mut self, path: &[&str], (message, hint): (String, &str)) {
        self.say_of(path, false, (message, Some(hint.to_owned())));
    }

    /// Adds the same of a value, or of its key. What nobody has written is told where the nearest thing around it is.
    fn say_of(&mut self, path: &[&str], is_key: bool, said: (String, Option<String>)) {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        let origin = (1..=path.len()).rev().find_map(|length| {
            let (steps, value) = fields::steps(self.object.body(), &path[..length]);
            self.texts.origin(self.object, (&steps, value), is_key && length == path.len())
        });
        let place = origin.unwrap_or_else(|| self.texts.whole().clone());
        self.add_at(OBJECT_VALUE, place, said);
    }

    /// Adds a finding, at the place where somebody has written the part.
    fn add(&mut self, rule: Id, part: &Part<'_>, (message, hint): (String, Option<String>)) {
        let origin = self.texts.origin(self.object, (&part.steps, part.value), part.is_key);
        let place = origin.unwrap_or_else(|| self.texts.whole().clone());
        self.add_at(rule, place, (message, hint));
    }

    fn add_at(&mut self, rule: Id, place: Place, (message, hint): (String, Option<String>)) {
        // A document that goes to the cluster by itself is named anyway.
        let is_own = self.texts.id == self.object.id();
        let message = if is_own { message } else { format!("{}: {message}", self.object.id()) };
        let problem = Problem { scope: Scope::Document, hint, ..Problem::document(place, message) };
        let problem = problem.about(self.texts.id.clone()).by(rule);
        self.findings.push(Finding { rule, is_weak: false, wants: None, problem });
    }
}
