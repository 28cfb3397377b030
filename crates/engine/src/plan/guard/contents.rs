//! Namespaces and kinds: with them goes everything that is in them, so nothing of anybody else may be.
//!
//! What we are about to delete anyway may be in there, and what hangs on it; so may what every namespace has, and what
//! is made again whenever it is missing. Anything else keeps it. Where all of it is ours, a person still has to agree.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::is_container;
use crate::live::Live;
use crate::marks::Owner;
use crate::object::ObjectId;
use crate::plan::refusal::Reason;
use crate::plan::{Inputs, Plan};
use crate::text::listed;

/// Objects that are in every namespace, or come back by themselves: group, kind, and the name if it is but one.
const EVERYWHERE: [(&str, &str, Option<&str>); 5] = [
    ("", "ServiceAccount", Some("default")),
    ("", "ConfigMap", Some("kube-root-ca.crt")),
    ("", "Event", None),
    ("events.k8s.io", "Event", None),
    ("coordination.k8s.io", "Lease", None),
];

/// The most objects of others that are named.
const NAMED: usize = 3;

/// Takes the deletion of namespaces and kinds that hold something of others out of a plan.
pub(in crate::plan) fn check(plan: &mut Plan, inputs: Inputs<'_>) {
    let deleted: BTreeSet<ObjectId> = plan.prunes().map(|step| step.id.clone()).collect();
    for id in deleted.iter().filter(|id| is_container(id)) {
        let reason = match inputs.observed.contents.get(id) {
            None => Some("nobody knows what is in it".to_owned()),
            Some(Err(message)) => Some(format!("nobody knows what is in it ({message})")),
            Some(Ok(contents)) => {
                let is_ours = |live: &Live| deleted.contains(live.object.id()) && inputs.owner(live) == Owner::Us;
                in_words(&foreign(contents, is_ours)).map(|what| format!("it holds what others have made ({what})"))
            }
        };
        if let Some(reason) = reason {
            plan.withhold(|step| step.id == *id, &Reason::HoldsOthers(reason));
        }
    }
}

/// Returns what is in a container and would be lost with it: what is not ours, hangs on nothing of ours, and does not
/// come back by itself.
pub fn foreign(contents: &[Live], is_ours: impl Fn(&Live) -> bool) -> Vec<&ObjectId> {
    let (ours, others): (Vec<&Live>, Vec<&Live>) = contents.iter().partition(|live| is_ours(live));
    let services: BTreeSet<&str> = ours
        .iter()
        .filter(|live| live.object.id().is_a("", "Service"))
        .map(|live| live.object.id().name.as_str())
        .collect();
    let mut uids: BTreeSet<&str> = ours.iter().map(|live| live.uid.as_str()).collect();
    let mut left: Vec<&Live> = others.into_iter().filter(|live| !comes_back(live, &services)).collect();
    loop {
        let (hanging, rest): (Vec<&Live>, Vec<&Live>) = left.into_iter().partition(|live| hangs_on(live, &uids));
        left = rest;
        if hanging.is_empty() {
            return left.into_iter().map(|live| live.object.id()).collect();
        }
        uids.extend(hanging.into_iter().map(|live| live.uid.as_str()));
    }
}

/// Names objects of others; `None` if there are none.
pub fn in_words(foreign: &[&ObjectId]) -> Option<String> {
    (!foreign.is_empty()).then(|| listed(foreign, NAMED))
}

fn comes_back(live: &Live, services: &BTreeSet<&str>) -> bool {
    let id = live.object.id();
    let is_it = |name: Option<&str>| name.is_none_or(|name| id.name == name);
    let is_known = EVERYWHERE.iter().any(|(group, kind, name)| id.is_a(group, kind) && is_it(*name));
    // Endpoints bear the name of their Service, and nothing else tells whose they are.
    let is_of_service = id.is_a("", "Endpoints") && services.contains(id.name.as_str());
    is_known || is_of_service || live.is_terminating()
}

fn hangs_on(live: &Live, uids: &BTreeSet<&str>) -> bool {
    let references = live.object.body().pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| reference["uid"].as_str().is_some_and(|uid| uids.contains(uid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(kind: &str, name: &str, owner: Option<&str>) -> Live {
        let references: Vec<Value> = owner.map(|uid| json!({"uid": uid})).into_iter().collect();
        let metadata = json!({"name": name, "namespace": "a", "uid": name, "ownerReferences": references});
        Live::new(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})).expect("it is an object")
    }

    #[test]
    fn what_hangs_on_ours_goes_with_it_and_nothing_else_may() {
        let contents = [
            live("ServiceAccount", "default", None),
            live("ConfigMap", "kube-root-ca.crt", None),
            live("Event", "edge.1", None),
            live("Service", "edge", None),
            live("Endpoints", "edge", None),
            live("ReplicaSet", "edge-1", Some("edge-deployment")),
            live("Pod", "edge-1-a", Some("edge-1")),
            live("Deployment", "edge-deployment", None),
        ];
        let is_ours = |live: &Live| {
            ["edge", "edge-deployment"].contains(&live.uid.as_str()) && live.object.id().kind != "Endpoints"
        };
        assert_eq!(foreign(&contents, is_ours), Vec::<&ObjectId>::new());
        let others = [live("ConfigMap", "theirs", None), live("Pod", "theirs", Some("another"))];
        let all = [contents.as_slice(), &others].concat();
        assert_eq!(in_words(&foreign(&all, is_ours)).as_deref(), Some("ConfigMap a/theirs, Pod a/theirs"));
        assert_eq!(foreign(&contents, |_| false).len(), 5);
    }
}
