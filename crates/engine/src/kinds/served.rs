//! The kinds that API servers serve themselves, by group and version: a document of another kind of these groups is one that
//! no server takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::{Table, is_of_kubernetes, plain};
use crate::check::only;
use crate::object::Gvk;
use crate::reading::is_slip;
use crate::spec::known::slip;
use crate::text::did_you_mean;
use crate::yaml;

/// Kinds by version by group.
type Served = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let mut documents = yaml::parse_values(include_str!("served.yaml")).expect("a test reads it");
    let written: Served = serde_json::from_value(documents.pop().unwrap_or_default()).expect("a test reads it");
    written.into_iter().map(|(group, versions)| (plain(&group).to_owned(), versions)).collect()
});

/// A group, version or kind that is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// The field that says it.
    pub field: &'static str,
    /// The mistake, in words.
    pub message: String,
    /// Advice on the words to write instead.
    pub hint: Option<String>,
    /// The words to write in its place, where only they can have been meant.
    pub fix: Option<String>,
    /// Whether no later version of Kubernetes can have it.
    pub is_certain: bool,
}

/// Returns what no API server knows of the group, version and kind of an object; `None` where that is all right, or is nothing
/// that anybody here can tell.
pub(crate) fn unknown(gvk: &Gvk, table: &Table) -> Option<Unknown> {
    let Gvk { group, version, kind } = gvk;
    if !is_of_kubernetes(group) {
        return beside(gvk, table);
    }
    let versions = SERVED.get(group);
    if versions.and_then(|versions| versions.get(version)).is_some_and(|kinds| kinds.contains(kind)) {
        return None;
    }
    let message = format!("Kubernetes has no {kind} in {}", gvk.api_version());
    let beside = || elsewhere(kind).chain(of_others(kind, table)).collect();
    let places: Vec<String> = best_version(group, kind).map_or_else(beside, |place| vec![place]);
    if let Some(place) = places.first() {
        let hint = format!("write apiVersion: {place}");
        // Another version may want other fields, or mean something else by them.
        let is_same_version = place.rsplit('/').next() == Some(version.as_str());
        let fix = (places.len() == 1 && is_same_version).then(|| place.clone());
        return Some(Unknown { field: "apiVersion", message, hint: Some(hint), fix, is_certain: true });
    }
    let of_group: BTreeSet<&str> =
        versions.into_iter().flat_map(BTreeMap::values).flatten().map(String::as_str).collect();
    if let Some(near) = slip(kind, of_group.iter().copied()) {
        return Some(misspelled(kind, message, (near, of_group)));
    }
    let near = slip(kind, all_kinds());
    let place = near.and_then(|near| elsewhere(near).next());
    let hint = near.zip(place).map(|(near, place)| format!("did you mean kind {near} in apiVersion {place}?"));
    // A kind may be newer than this table, but not a group that has no dot.
    let is_certain = hint.is_some() || versions.is_none() && !group.contains('.');
    let field = if versions.is_none() { "apiVersion" } else { "kind" };
    Some(Unknown { field, message, hint, fix: None, is_certain })
}

/// The same of groups that anybody may have: only what is close to something known is told.
fn beside(gvk: &Gvk, table: &Table) -> Option<Unknown> {
    let Gvk { group, kind, .. } = gvk;
    if table.knows(group, kind) {
        return None;
    }
    let of_group: BTreeSet<&str> = table.all().filter(|(of, ..)| of == group).map(|(_, kind, _)| kind).collect();
    if let Some(near) = slip(kind, of_group.iter().copied()) {
        let message = format!("unknown kind {kind:?} in {}", gvk.api_version());
        return Some(misspelled(kind, message, (near, of_group)));
    }
    let known = table.all().filter(|(_, known, _)| known == kind).map(|(group, ..)| group);
    let served = SERVED.iter().filter(|(_, versions)| versions.values().any(|kinds| kinds.contains(kind)));
    let groups: BTreeSet<&str> = known.chain(served.map(|(group, _)| group.as_str())).collect();
    let near = groups.into_iter().find(|near| !near.is_empty() && is_slip(group, near))?;
    let message = format!("unknown group {group:?} of kind {kind:?}");
    Some(Unknown { field: "apiVersion", message, hint: did_you_mean(Some(near)), fix: None, is_certain: true })
}

fn misspelled(kind: &str, message: String, (near, known): (&str, BTreeSet<&str>)) -> Unknown {
    let fix = only(kind, known).map(str::to_owned);
    Unknown { field: "kind", message, hint: did_you_mean(Some(near)), fix, is_certain: true }
}

/// Returns where another group has a kind, as `apiVersion` says it.
fn elsewhere(kind: &str) -> impl Iterator<Item = String> {
    SERVED.keys().filter_map(move |group| best_version(group, kind))
}

/// The same of groups that are not Kubernetes' own.
fn of_others(kind: &str, table: &Table) -> impl Iterator<Item = String> {
    let found = table.all().filter(move |(group, known, _)| *known == kind && !is_of_kubernetes(group));
    found.filter_map(|(group, _, row)| Some(format!("{group}/{}", row.version.as_deref()?)))
}

/// Returns the version of a group in which a kind is best written: the newest of those that are stable, else the newest.
fn best_version(group: &str, kind: &str) -> Option<String> {
    let has_kind = |(_, kinds): &(&String, &BTreeSet<String>)| kinds.contains(kind);
    let versions = SERVED.get(group)?.iter().filter(has_kind).map(|(version, _)| version);
    let is_stable = |version: &str| !version.contains("alpha") && !version.contains("beta");
    let best = versions.max_by_key(|version| (is_stable(version), version.contains("beta"), version.as_str()))?;
    Some(if group.is_empty() { best.clone() } else { format!("{group}/{best}") })
}

fn all_kinds() -> impl Iterator<Item = &'static str> {
    SERVED.values().flat_map(BTreeMap::values).flatten().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP_ROUTE: &str = "write apiVersion: gateway.networking.k8s.io/v1";

    fn told(group: &str, version: &str, kind: &str) -> Option<(&'static str, String, Option<String>)> {
        let gvk = Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
        let unknown = unknown(&gvk, &Table::builtin())?;
        Some((unknown.field, unknown.hint.unwrap_or_default(), unknown.fix))
    }

    #[test]
    fn what_is_misspelled_or_somewhere_else_is_told() {
        for (written, field, hint, fix) in [
            (["apps", "v1", "Deploymnt"], "kind", "did you mean \"Deployment\"?", Some("Deployment")),
            (["apps", "v1", "deployment"], "kind", "did you mean \"Deployment\"?", Some("Deployment")),
            (["", "v1", "Deployment"], "apiVersion", "write apiVersion: apps/v1", Some("apps/v1")),
            (["", "v1", "Deploymnt"], "kind", "did you mean kind Deployment in apiVersion apps/v1?", None),
            (["extensions", "v1beta1", "Ingress"], "apiVersion", "write apiVersion: networking.k8s.io/v1", None),
            (
                ["autoscaling", "v2beta2", "HorizontalPodAutoscaler"],
                "apiVersion",
                "write apiVersion: autoscaling/v2",
                None,
            ),
            (["app", "v1", "Deployment"], "apiVersion", "write apiVersion: apps/v1", Some("apps/v1")),
            (["batch", "v2", "CronJob"], "apiVersion", "write apiVersion: batch/v1", None),
            (["networking.k8s.oi", "v1", "Ingress"], "apiVersion", "did you mean \"networking.k8s.io\"?", None),
            (["gateway.networking.k8s.io", "v1", "HttpRout"], "kind", "did you mean \"HTTPRoute\"?", None),
            (
                ["gateway.networking.k8s.io", "v1", "HttpRoute"],
                "kind",
                "did you mean \"HTTPRoute\"?",
                Some("HTTPRoute"),
            ),
            (["networking.k8s.io", "v1", "HTTPRoute"], "apiVersion", HTTP_ROUTE, Some("gateway.networking.k8s.io/v1")),
            (["app", "v1beta1", "Application"], "apiVersion", "", None),
            (["", "v1", "Config"], "kind", "", None),
            (["skaffold", "v2beta29", "Config"], "apiVersion", "", None),
        ] {
            let [group, version, kind] = written;
            assert_eq!(
                told(group, version, kind),
                Some((field, hint.to_owned(), fix.map(str::to_owned))),
                "{written:?}"
            );
        }
    }

    #[test]
    fn what_is_there_or_is_anybodys_is_not() {
        for [group, version, kind] in [
            ["apps", "v1", "Deployment"],
            ["", "v1", "Endpoints"],
            ["gateway.networking.k8s.io", "v1alpha2", "TCPRoute"],
            ["gateway.networking.k8s.io", "v1", "SomethingNew"],
            ["serving.knative.dev", "v1", "Service"],
            ["apps.openshift.io", "v1", "DeploymentConfig"],
            ["snapshot.storage.k8s.io", "v1", "VolumeSnapshot"],
            ["kustomize.config.k8s.io", "v1beta1", "Kustomization"],
        ] {
            assert_eq!(told(group, version, kind), None, "{group}/{version} {kind}");
        }
    }
}
