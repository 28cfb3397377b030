//! Patches of specs, before they are resolved.
//!
//! What comes out is checked like any document. What a patch has put there has the place of the patch, and everything
//! else keeps its own.

use std::borrow::Cow;

use super::patch::{OverlayPatch, Target};
use super::{Assignment, Overlay, nodes, ties};
use crate::admission::Definitions;
use crate::kinds;
use crate::kinds::row::Row;
use crate::problem::{Place, Problem};
use crate::spec::{Document, Kind, Kinds, Specs, validate};
use crate::yaml::{Content, Position};

/// The fields that say which object a document is.
const IDENTITY: [&str; 4] = ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"];

/// Applies what the overlays of a cluster say about specs; one that comes out broken is broken.
pub(crate) fn patch<'a>(specs: &'a Specs, overlays: &Assignment, kinds: &Kinds) -> Cow<'a, Specs> {
    let mut specs = patch_unclaimed(specs, overlays);
    for id in overlays.governed.keys() {
        let overlays = overlays.of(id);
        let is_patched = overlays.iter().any(|overlay| !overlay.spec.spec_patches.is_empty());
        let Some(document) = specs.documents.get(id).filter(|_| is_patched) else { continue };
        let Some(kind) = kinds.get(&(id.group.clone(), id.kind.clone())) else { continue };
        match patched(document, &overlays, kind, (&specs.kinds, &specs.definitions)) {
            Ok(document) => drop(specs.to_mut().documents.insert(id.clone(), document)),
            Err(problems) => {
                let place = document.place();
                let specs = specs.to_mut();
                specs.documents.remove(id);
                specs.broken.insert(id.clone(), place);
                specs.problems.extend(problems);
            }
        }
    }
    specs
}

/// Applies what they say about documents that no pack claims, so that packs that look into these see it, too.
fn patch_unclaimed<'a>(specs: &'a Specs, overlays: &Assignment) -> Cow<'a, Specs> {
    let mut patched = Cow::Borrowed(specs);
    for (index, (id, document)) in specs.unclaimed_objects().enumerate() {
        let overlays = overlays.of(&id);
        // What was forgotten is not applied.
        let is_there = document.root.content != Content::Null;
        if !is_there || overlays.iter().all(|overlay| overlay.spec.spec_patches.is_empty()) {
            continue;
        }
        match changed_by_all(document, &overlays, &specs.kinds) {
            Ok(document) => patched.to_mut().unclaimed[index] = document,
            Err(problems) => {
                let patched = patched.to_mut();
                patched.broken.insert(id, document.place());
                patched.problems.extend(problems);
            }
        }
    }
    patched
}

fn patched(
    document: &Document,
    overlays: &[&Overlay],
    kind: &Kind,
    (kinds, definitions): (&kinds::Table, &Definitions),
) -> Result<Document, Vec<Problem>> {
    let document = changed_by_all(document, overlays, kinds)?;
    let problems = validate(&document, kind, definitions);
    if problems.is_empty() {
        return Ok(document);
    }
    let patches =
        overlays.iter().flat_map(|overlay| OverlayPatch::of_spec(overlay)).map(|change| change.place(&[]).to_string());
    let patches = patches.collect::<Vec<_>>().join(", ");
    let after = |problem: Problem| Problem {
        message: format!("after the patches at {patches}: {}", problem.message),
        ..problem
    };
    Err(problems.into_iter().map(after).collect())
}

/// Makes the changes of all overlays, the lowest first.
fn changed_by_all(document: &Document, overlays: &[&Overlay], kinds: &kinds::Table) -> Result<Document, Vec<Problem>> {
    let mut document = document.clone();
    let row = kinds.of(&document.id);
    for group in ties::ranks(overlays) {
        let changes: Vec<Vec<OverlayPatch<'_>>> =
            group.iter().map(|overlay| OverlayPatch::of_spec(overlay).collect()).collect();
        let value = document.root.to_value();
        let ties = ties::of_changes(&changes, &value, Target { id: &document.id, gvk: &document.gvk, row });
        if !ties.is_empty() {
            return Err(ties);
        }
        for change in changes.iter().flatten() {
            document = changed(document, change, row).map_err(|problem| vec![*problem])?;
        }
    }
    Ok(document)
}

fn changed(mut document: Document, change: &OverlayPatch<'_>, row: &Row) -> Result<Document, Box<Problem>> {
    let before = document.root.to_value();
    let after = change.apply(&before, Target { id: &document.id, gvk: &document.gvk, row })?;
    if let Some(pointer) = IDENTITY.iter().find(|pointer| before.pointer(pointer) != after.pointer(pointer)) {
        let path: Vec<String> = pointer.split('/').skip(1).map(str::to_owned).collect();
        let hint = format!("which {} it is cannot be patched", document.id.kind);
        return Err(change.refused(&path, &document.id, &hint).into());
    }
    let patched = &mut document.patched;
    document.root = nodes::node(&document.root, &after, |path| remember(patched, change.place(path)));
    Ok(document)
}

/// Returns the position in line 0 that stands for a place of another file.
fn remember(patched: &mut Vec<Place>, place: Place) -> Position {
    let known = patched.iter().position(|known| *known == place);
    let index = known.unwrap_or_else(|| {
        patched.push(place);
        patched.len() - 1
    });
    Position { line: 0, column: u32::try_from(index + 1).unwrap_or(u32::MAX) }
}
