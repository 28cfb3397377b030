//! Secrets, `ConfigMap`s, claims and service accounts that somebody has named for a pod.

use super::Pod;
use crate::object::ObjectId;
use crate::problem::Place;
use crate::references::{is_referred_to, of_pod};
use crate::rules::objects::Finding;
use crate::rules::open::NOT_IN_SOURCE;
use crate::rules::table::REFERENCE_NOT_FOUND;

pub(super) fn check(pod: &mut Pod<'_>) {
    for reference in of_pod(pod.spec) {
        if reference.is_optional || reference.is_everywhere() || reference.name.contains("{{") {
            continue;
        }
        // What a pack refers to by itself, it or its operator makes.
        let Some(place) = pod.texts.says(reference.fields, reference.name) else { continue };
        add(pod, reference.id(&pod.owner.id().namespace), place);
    }
}

fn add(pod: &mut Pod<'_>, wants: ObjectId, place: Place) {
    let message = format!("names {wants}, {NOT_IN_SOURCE}");
    let hint = "it has to be on the cluster by then".to_owned();
    // Classes are part of a cluster, and in few sources.
    let is_weak = !is_referred_to(&wants);
    let mut problem = pod.problem((REFERENCE_NOT_FOUND, &[]), (message, hint));
    problem.place = place;
    pod.findings.push(Finding { rule: REFERENCE_NOT_FOUND, is_weak, wants: Some(wants), problem });
}
