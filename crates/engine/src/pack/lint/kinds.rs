//! Kinds and paths that `pack.yaml` names and that are not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::super::manifest::Manifest;
use super::super::overlay::created::MADE;
use super::super::{MANIFEST, document};
use super::unknown;
use crate::check::suggest;
use crate::problem::{Place, Problem};
use crate::render::syntax::tags;
use crate::schema::Schema;
use crate::text::{did_you_mean, listed};
use crate::yaml::Node;

/// The kind of a document, as templates write it: at the beginning of a line.
static KIND: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^kind:[ \t]*(.*?)[ \t]*$").expect("the expression is sound; a test uses it"));

/// Returns the overlays whose path is not in the schema, or whose kind no template renders, and the same of health hints.
pub(super) fn wrong_kinds(files: &BTreeMap<&str, &str>, manifest: &Manifest, schema: Option<&Schema>) -> Vec<Problem> {
    let Ok(root) = document(files, MANIFEST) else { return Vec::new() };
    let place = |list: &str, index: usize, field: &str| {
        let item = root.get(list).map(Node::items).unwrap_or_default().get(index);
        let line = item.and_then(|item| item.get(field)).map_or(0, |node| node.position.line);
        Place { line, ..Place::file(MANIFEST) }
    };
    let kinds = rendered_kinds(files, manifest);
    let mut problems = Vec::new();
    for (index, overlay) in manifest.overlays.iter().enumerate() {
        let parts: Vec<&str> = overlay.path.split('.').collect();
        let lost = schema.and_then(|schema| unknown(&parts, schema));
        problems.extend(
            lost.map(|(message, near)| Problem::document(place("overlays", index, "path"), message).meant(near)),
        );
        let at = place("overlays", index, "kind");
        problems.extend(if overlay.creates {
            not_made(&overlay.kind, at)
        } else {
            kinds.as_ref().and_then(|kinds| not_rendered(&overlay.kind, kinds, at))
        });
    }
    for (index, hint) in manifest.health.iter().enumerate() {
        let at = place("health", index, "kind");
        let is_made = manifest.overlays.iter().any(|overlay| overlay.creates && overlay.kind == hint.kind);
        problems.extend(kinds.as_ref().filter(|_| !is_made).and_then(|kinds| not_rendered(&hint.kind, kinds, at)));
    }
    problems
}

fn not_rendered(kind: &str, kinds: &BTreeSet<&str>, place: Place) -> Option<Problem> {
    if kinds.contains(kind) {
        return None;
    }
    let hint = did_you_mean(suggest(kind, kinds.iter().copied()));
    let hint = hint.unwrap_or_else(|| format!("they render {}", listed(kinds, 12)));
    Some(Problem::document(place, format!("no template renders a {kind}")).hint(hint))
}

fn not_made(kind: &str, place: Place) -> Option<Problem> {
    if MADE.contains(&kind) {
        return None;
    }
    let hint = did_you_mean(suggest(kind, MADE)).unwrap_or_else(|| format!("it can make {}", listed(MADE, MADE.len())));
    Some(Problem::document(place, format!("an overlay cannot make a {kind}")).hint(hint))
}

/// Returns the kinds of what the templates render, or `None` if their texts do not say it.
fn rendered_kinds<'a>(files: &BTreeMap<&str, &'a str>, manifest: &Manifest) -> Option<BTreeSet<&'a str>> {
    let mut kinds = BTreeSet::new();
    for template in &manifest.templates {
        let text = *files.get(template.file.as_str())?;
        let found: Vec<&str> =
            KIND.captures_iter(text).filter_map(|kind| kind.get(1)).map(|kind| kind.as_str()).collect();
        let is_plain = |kind: &&str| kind.chars().all(|char| char.is_ascii_alphanumeric());
        let includes = tags(text).iter().any(|tag| matches!(tag.word(), Some("include" | "extends")));
        if found.is_empty() || includes || !found.iter().all(is_plain) {
            return None;
        }
        kinds.extend(found);
    }
    Some(kinds)
}
