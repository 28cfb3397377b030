//! Secrets, `ConfigMap`s, claims and service accounts that somebody has named for a pod.

use super::Pod;
use crate::object::ObjectId;
use crate::problem::Place;
use crate::references::of_pod;
use crate::rules::objects::Finding;
use crate::rules::table::REFERENCE_NOT_FOUND;

/// The account that each namespace has.
const DEFAULT: &str = "default";

pub(super) fn check(pod: &mut Pod<'_>) {
    for reference in of_pod(pod.spec) {
        let (kind, name) = (reference.kind, reference.name);
        let is_known = reference.is_optional || (kind == "ServiceAccount" && name == DEFAULT);
        if is_known || name.contains("{{") {
            continue;
        }
        // What a pack refers to by itself, it or its operator makes.
        let Some(place) = pod.texts.says(reference.fields, name) else { continue };
        add(pod, (kind, name), place);
    }
}

fn add(pod: &mut Pod<'_>, (kind, name): (&str, &str), place: Place) {
    let wants = ObjectId::new("", kind, &pod.owner.id().namespace, name);
    let message = format!("names {wants}, which is not in the source");
    let hint = "it has to be on the cluster by then".to_owned();
    let mut problem = pod.problem((REFERENCE_NOT_FOUND, &[]), (message, hint));
    problem.place = place;
    pod.findings.push(Finding { rule: REFERENCE_NOT_FOUND, is_weak: false, wants: Some(wants), problem });
}
