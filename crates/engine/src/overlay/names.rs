//! Names in overlays that nothing has: probably other ones, misspelled.
//!
//! A warning says so and holds nothing, because a source may be read in parts.

use std::collections::{BTreeMap, BTreeSet};

use super::Overlay;
use super::table::Table;
use crate::check::suggest;
use crate::object::ObjectId;
use crate::pack::Packs;
use crate::problem::{Problem, Scope};
use crate::selector::{ClusterSelector, Fleet};
use crate::spec::overlay::SpecName;
use crate::spec::{GATEWAY_API, Specs};
use crate::text::{count, listed};
use crate::yaml::Node;

/// The names of clusters in an overlay.
const NAMES: [&str; 3] = ["spec", "clusters", "names"];

/// The most clusters of a table that are named.
const MOST_ROWS: usize = 3;

/// Returns a warning for each Gateway and each class that a target names and that is not in the source.
pub(super) fn lost(overlay: &Overlay, specs: &Specs, packs: &Packs) -> Vec<Problem> {
    let Some(target) = &overlay.spec.target else { return Vec::new() };
    let all = || specs.documents.keys().chain(specs.broken.keys());
    let of_kind = |kind: &'static str| all().filter(move |id| id.group == GATEWAY_API && id.kind == kind);
    let mut problems = Vec::new();
    for (index, wanted) in target.gateways.iter().flatten().enumerate() {
        let is_beside = |id: &&ObjectId| wanted.namespace.as_ref().is_none_or(|ns| specs.namespace(ns) == id.namespace);
        let names: BTreeSet<&str> = of_kind("Gateway").filter(is_beside).map(|id| id.name.as_str()).collect();
        if !names.contains(wanted.name.as_str()) {
            let message = format!("there is no {wanted} in the source");
            let path = ["spec", "target", "gateways", &index.to_string()];
            problems.push(warning(overlay, &path, message, suggest(&wanted.name, names)));
        }
    }
    problems.extend(lost_specs(overlay, specs));
    let classes = of_kind("GatewayClass").map(|id| id.name.as_str());
    let classes: BTreeSet<&str> = classes.chain(packs.builtin_classes()).collect();
    for (index, wanted) in target.gateway_classes.iter().flatten().enumerate() {
        if !classes.contains(wanted.as_str()) {
            let message = format!("there is no GatewayClass {wanted:?} in the source");
            let path = ["spec", "target", "gatewayClasses", &index.to_string()];
            problems.push(warning(overlay, &path, message, suggest(wanted, classes.iter().copied())));
        }
    }
    problems
}

/// Returns a warning for each spec that is named by its kind, and perhaps its name, and that is not in the source.
fn lost_specs(overlay: &Overlay, specs: &Specs) -> Vec<Problem> {
    let Some(wanted) = overlay.spec.target.as_ref().and_then(|target| target.specs.as_ref()) else { return Vec::new() };
    let unclaimed: BTreeSet<ObjectId> = specs.unclaimed_objects().map(|(id, _)| id).collect();
    let warning = |(index, wanted): (usize, &SpecName)| {
        let is_beside = |id: &&ObjectId| {
            wanted.group.as_ref().is_none_or(|group| *group == id.group)
                && wanted.namespace.as_ref().is_none_or(|ns| specs.namespace(ns) == id.namespace)
        };
        let all = specs.documents.keys().chain(specs.broken.keys()).chain(&unclaimed);
        let beside: Vec<&ObjectId> = all.filter(is_beside).collect();
        let of_kind = beside.iter().filter(|id| id.kind == wanted.kind);
        let names: BTreeSet<&str> = of_kind.map(|id| id.name.as_str()).collect();
        let path = ["spec", "target", "specs", &index.to_string()];
        match &wanted.name {
            _ if names.is_empty() => {
                let near = suggest(&wanted.kind, beside.iter().map(|id| id.kind.as_str()));
                Some(warning(overlay, &path, format!("there is no {} in the source", wanted.kind), near))
            }
            Some(name) if !names.contains(name.as_str()) => {
                let message = format!("there is no {} {name:?} in the source", wanted.kind);
                Some(warning(overlay, &path, message, suggest(name, names)))
            }
            Some(_) | None => None,
        }
    };
    wanted.iter().enumerate().filter_map(warning).collect()
}

/// Returns a warning for each selection of specs that means documents of no pack, for a sync that does not apply these.
pub(super) fn unapplied(overlay: &Overlay, specs: &Specs) -> Vec<Problem> {
    let Some(wanted) = overlay.spec.target.as_ref().and_then(|target| target.specs.as_ref()) else { return Vec::new() };
    let unclaimed: Vec<ObjectId> = specs.unclaimed_objects().map(|(id, _)| id).collect();
    let warning = |(index, wanted): (usize, &SpecName)| {
        let number = unclaimed.iter().filter(|id| wanted.is(id, specs)).count();
        let message = format!("{} of the source cannot be reached: no pack claims it", count(number, &wanted.kind));
        let problem = warning(overlay, &["spec", "target", "specs", &index.to_string()], message, None);
        (number > 0).then(|| problem.hint("with unclaimed: apply the sync applies it, and the overlay has its say"))
    };
    wanted.iter().enumerate().filter_map(warning).collect()
}

/// Returns a warning for each cluster that is named and not there, or one if no cluster is selected.
pub(super) fn lost_clusters(overlay: &Overlay, fleet: &Fleet) -> Vec<Problem> {
    let Some(selector) = &overlay.spec.clusters else { return Vec::new() };
    let written = overlay.document.root.at(NAMES).map(Node::items).unwrap_or_default();
    let lost = written.iter().enumerate().filter_map(|(index, node)| {
        let name = node.as_str().filter(|name| !fleet.contains_key(*name))?;
        let index = index.to_string();
        let path = [NAMES.as_slice(), &[&index]].concat();
        let near = suggest(name, fleet.keys().map(String::as_str));
        Some(warning(overlay, &path, format!("there is no cluster {name:?} in the config"), near))
    });
    let lost: Vec<Problem> = lost.collect();
    let is_idle = lost.is_empty() && !fleet.iter().any(|(name, labels)| selector.selects(name, labels));
    if is_idle { vec![unselected(overlay, selector, fleet)] } else { lost }
}

/// Says that no cluster is selected, and by which label if that alone is enough.
fn unselected(overlay: &Overlay, selector: &ClusterSelector, fleet: &Fleet) -> Problem {
    for (key, value) in selector.match_labels.iter().flatten() {
        let values: BTreeSet<&str> = fleet.values().filter_map(|labels| labels.get(key)).map(String::as_str).collect();
        if !values.contains(value.as_str()) {
            let keys: BTreeSet<&str> = fleet.values().flat_map(BTreeMap::keys).map(String::as_str).collect();
            let near = if values.is_empty() { suggest(key, keys) } else { suggest(value, values) };
            let label = format!("no cluster of the config has the label {key:?} with the value {value:?}");
            return warning(overlay, &["spec", "clusters", "matchLabels", key], label, near);
        }
    }
    warning(overlay, &["spec", "clusters"], "no cluster of the config is selected".to_owned(), None)
}

/// Returns a warning if a table has rows for clusters that are not there: of a table that others use, too, they are many.
pub(super) fn lost_rows(overlay: &Overlay, fleet: &Fleet) -> Option<Problem> {
    let lost: Vec<&str> =
        overlay.table.iter().flat_map(Table::clusters).filter(|name| !fleet.contains_key(*name)).collect();
    let message =
        format!("there is no such cluster in the config as its table has rows for: {}", listed(&lost, MOST_ROWS));
    (!lost.is_empty()).then(|| warning(overlay, &["spec", "values"], message, None))
}

fn warning(overlay: &Overlay, path: &[&str], message: String, near: Option<&str>) -> Problem {
    Problem { scope: Scope::Warning, ..overlay.document.problem(path, message).meant(near) }
}
