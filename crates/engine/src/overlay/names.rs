//! Names in overlays that nothing has: probably other ones, misspelled.
//!
//! A notice says so and holds nothing, because a source may be read in parts.

use std::collections::BTreeSet;

use super::Overlay;
use crate::check::suggest;
use crate::object::ObjectId;
use crate::pack::Packs;
use crate::problem::Problem;
use crate::spec::{GATEWAY_API, Specs};

/// Returns a notice for each Gateway and each class that a target names and that is not in the source.
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
            problems.push(notice(overlay, &path, message, suggest(&wanted.name, names)));
        }
    }
    let classes = of_kind("GatewayClass").map(|id| id.name.as_str());
    let classes: BTreeSet<&str> = classes.chain(packs.builtin_classes()).collect();
    for (index, wanted) in target.gateway_classes.iter().flatten().enumerate() {
        if !classes.contains(wanted.as_str()) {
            let message = format!("there is no GatewayClass {wanted:?} in the source");
            let path = ["spec", "target", "gatewayClasses", &index.to_string()];
            problems.push(notice(overlay, &path, message, suggest(wanted, classes.iter().copied())));
        }
    }
    problems
}

/// Returns a notice for each cluster that is named and not known.
pub(super) fn lost_clusters(overlay: &Overlay, known: &BTreeSet<String>) -> Vec<Problem> {
    let names = overlay.spec.clusters.iter().filter_map(|clusters| clusters.names.as_ref()).flatten();
    let lost = names.filter(|name| !known.contains(*name));
    lost.map(|name| {
        let near = suggest(name, known.iter().map(String::as_str));
        notice(overlay, &["spec", "clusters", "names"], format!("there is no cluster {name:?} in the config"), near)
    })
    .collect()
}

fn notice(overlay: &Overlay, path: &[&str], message: String, near: Option<&str>) -> Problem {
    let problem = Problem::notice(overlay.document.place_of(path), message).about(overlay.document.id.clone());
    Problem { hint: near.map(|near| format!("did you mean {near:?}?")), ..problem }
}
