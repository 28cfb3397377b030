//! Secrets, `ConfigMap`s, claims and service accounts that somebody has named for a pod.

use serde_json::Value;

use super::{Pod, items};
use crate::object::ObjectId;
use crate::problem::Place;
use crate::rules::objects::Finding;
use crate::rules::table::REFERENCE_NOT_FOUND;

/// A reference: the kind, the fields by which it is written, and what they are.
type Reference<'a> = (&'static str, &'static [&'static str], &'a Value);

/// The account that each namespace has.
const DEFAULT: &str = "default";

pub(super) fn check(pod: &mut Pod<'_>) {
    for (kind, fields, value) in all(pod) {
        let holder = fields.iter().take(fields.len() - 1).fold(value, |value, field| &value[*field]);
        let Some(name) = fields.last().and_then(|field| holder[*field].as_str()) else { continue };
        let is_known = holder["optional"] == true || (kind == "ServiceAccount" && name == DEFAULT);
        if is_known || name.contains("{{") {
            continue;
        }
        // What a pack refers to by itself, it or its operator makes.
        let Some(place) = pod.texts.says(fields, name) else { continue };
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

/// Returns the references of a pod.
fn all<'a>(pod: &Pod<'a>) -> Vec<Reference<'a>> {
    let spec = pod.spec;
    let mut found: Vec<Reference<'a>> = vec![("ServiceAccount", &["serviceAccountName"], spec)];
    found.extend(items(&spec["imagePullSecrets"]).map(|it| ("Secret", &["name"][..], it)));
    for volume in items(&spec["volumes"]) {
        found.push(("Secret", &["secret", "secretName"], volume));
        found.push(("ConfigMap", &["configMap", "name"], volume));
        found.push(("PersistentVolumeClaim", &["persistentVolumeClaim", "claimName"], volume));
        for part in items(&volume["projected"]["sources"]) {
            found.push(("Secret", &["secret", "name"], part));
            found.push(("ConfigMap", &["configMap", "name"], part));
        }
    }
    for (_, container) in pod.containers() {
        for variable in items(&container["env"]) {
            found.push(("Secret", &["valueFrom", "secretKeyRef", "name"], variable));
            found.push(("ConfigMap", &["valueFrom", "configMapKeyRef", "name"], variable));
        }
        for variables in items(&container["envFrom"]) {
            found.push(("Secret", &["secretRef", "name"], variables));
            found.push(("ConfigMap", &["configMapRef", "name"], variables));
        }
    }
    found
}
