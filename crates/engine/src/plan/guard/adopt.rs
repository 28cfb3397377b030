//! Adoptions that wait for a person: what exists and bears nobody's mark was made by somebody.
//!
//! A unit waits as a whole. What the control plane and the API server have made for themselves is not adopted at all,
//! whatever the policy is and whoever agrees.

use std::collections::BTreeSet;

use super::{Guard, Hold};
use crate::kinds::has_pods;
use crate::live::Live;
use crate::marks::Owner;
use crate::object::ObjectId;
use crate::plan::deployer::settings::found_settings;
use crate::plan::policies::Adopt;
use crate::plan::{Action, Inputs, Plan, Step};
use crate::text::count;
use crate::unit::Unit;

/// Namespaces that belong to Kubernetes begin so.
const SYSTEM: &str = "kube-";

/// Objects that every API server, or every namespace, has: group, kind, namespace (empty: any) and name.
const OF_SERVER: [(&str, &str, &str, &str); 7] = [
    ("", "Namespace", "", "default"),
    ("", "Service", "default", "kubernetes"),
    ("", "Endpoints", "default", "kubernetes"),
    ("discovery.k8s.io", "EndpointSlice", "default", "kubernetes"),
    ("", "ConfigMap", "", "kube-root-ca.crt"),
    ("", "ServiceAccount", "", "default"),
    ("rbac.authorization.k8s.io", "ClusterRole", "", "cluster-admin"),
];

/// Says what an API server puts on objects that it makes at its start and mends again.
const BOOTSTRAPPED: [(&str, &str, &str); 3] = [
    ("labels", "kubernetes.io/bootstrapping", "rbac-defaults"),
    ("labels", "kube-aggregator.kubernetes.io/automanaged", "onstart"),
    ("annotations", "apf.kubernetes.io/autoupdate-spec", "true"),
];

/// Says whose a live object is if it belongs to Kubernetes itself.
pub(in crate::plan) fn system(live: &Live) -> Option<&'static str> {
    let id = live.object.id();
    let is_namespace = id.is_a("", "Namespace") && id.name.starts_with(SYSTEM);
    if id.namespace.starts_with(SYSTEM) || is_namespace {
        return Some("the system: what is in namespaces that begin with kube- is never adopted");
    }
    let is_it = |(group, kind, namespace, name): &(&str, &str, &str, &str)| {
        id.is_a(group, kind) && id.name == *name && (namespace.is_empty() || id.namespace == *namespace)
    };
    let is_reserved =
        id.name.starts_with("system:") || (id.group == "scheduling.k8s.io" && id.name.starts_with("system-"));
    let metadata = &live.object.body()["metadata"];
    let is_bootstrapped = BOOTSTRAPPED.iter().any(|(field, key, value)| metadata[*field][*key] == *value);
    let is_servers = is_reserved || is_bootstrapped || OF_SERVER.iter().any(is_it);
    is_servers.then_some("the system: what Kubernetes makes for itself is never adopted")
}

/// Returns the adoptions of a unit that nobody has approved, with the guard, and adds the hold for them.
pub(in crate::plan) fn waiting(
    plan: &mut Plan,
    unit: &Unit,
    steps: &[&Step],
    inputs: Inputs<'_>,
) -> Option<(Guard, BTreeSet<ObjectId>)> {
    let (hold, objects) = unowned(unit, steps, inputs).or_else(|| restarting(unit, steps, inputs))?;
    let guard = hold.guard;
    plan.stops(hold, inputs).then_some((guard, objects))
}

/// The hold for objects that bear nobody's mark.
fn unowned(unit: &Unit, steps: &[&Step], inputs: Inputs<'_>) -> Option<(Hold, BTreeSet<ObjectId>)> {
    if inputs.policies.adopt != Adopt::Confirm {
        return None;
    }
    // Who lets a deployer's objects be adopted lets the Gateway be told so.
    let is_adopted = steps.iter().any(|step| matches!(step.action, Action::AdoptFromDeployer(_)));
    let is_told = |step: &Step| is_adopted && unit.specs.iter().any(|spec| *spec.id() == step.id);
    let is_asked = |step: &&&Step| is_unowned(step, inputs) && !is_told(step);
    let foreign: Vec<&Step> = steps.iter().filter(is_asked).copied().collect();
    if foreign.is_empty() {
        return None;
    }
    let hint = "see who has made that; then approve it, give the spec another name, or set adopt.policy: if-unowned for the sync";
    Some(held(Guard::Adopt, unit, message(&foreign), hint, &foreign, inputs))
}

/// The hold for workloads that would be taken over from a deployer and restarted by it.
fn restarting(unit: &Unit, steps: &[&Step], inputs: Inputs<'_>) -> Option<(Hold, BTreeSet<ObjectId>)> {
    let restarts = |step: &&&Step| {
        let is_taken_over = matches!(step.action, Action::AdoptFromDeployer(_)) && has_pods(&step.id.kind);
        is_taken_over && step.differences.iter().any(|difference| difference.path.starts_with("spec.template"))
    };
    let restarted: Vec<&Step> = steps.iter().filter(restarts).copied().collect();
    let first = restarted.first()?;
    let named: Vec<String> = restarted.iter().map(|step| step.id.to_string()).collect();
    let message = format!("to adopt {} would replace its pods", named.join(" and "));
    let live = inputs.observed.live.get(&first.id).zip(first.object.as_ref());
    let settings = live.and_then(|(live, wanted)| found_settings(unit.deployer.as_ref()?, &live.object, wanted));
    let hint = match settings {
        Some(settings) => {
            format!("set {settings} in the config file (of one cluster of several: below packOverrides); or approve it")
        }
        None => "set in the parameters what differs, as it was made; or approve it".to_owned(),
    };
    Some(held(Guard::AdoptRestart, unit, message, &hint, &restarted, inputs))
}

fn held(
    guard: Guard,
    unit: &Unit,
    message: String,
    hint: &str,
    steps: &[&Step],
    inputs: Inputs<'_>,
) -> (Hold, BTreeSet<ObjectId>) {
    let asked = steps.iter().map(|step| inputs.held(step)).collect();
    let held = steps.iter().map(|step| step.id.clone()).collect();
    (Hold::on_unit(guard, &unit.id, message, hint, asked), held)
}

/// Tells whether a step would make something ours that bears nobody's mark, and is not what we have written down.
fn is_unowned(step: &Step, inputs: Inputs<'_>) -> bool {
    let Inputs { observed, owned, .. } = inputs;
    if !matches!(step.action, Action::Adopt(_) | Action::Generate(_)) {
        return false;
    }
    let Some(live) = observed.live.get(&step.id) else { return false };
    let is_proven = observed.suspicion.is_none() && !observed.unverified.contains(&step.id);
    let uid = owned.entries.get(&step.id).and_then(|entry| entry.uid.as_ref());
    let is_known = is_proven && uid == Some(&live.uid);
    !is_known && inputs.owner(live) == Owner::Nobody
}

fn message(held: &[&Step]) -> String {
    let what = |step: &&Step| match step.differences.len() {
        0 => format!("{} (as it is wanted)", step.id),
        number => format!("{} (differs in {})", step.id, count(number, "field")),
    };
    let named: Vec<String> = held.iter().map(what).collect();
    let exist = if held.len() == 1 { "exists and bears" } else { "exist and bear" };
    format!("{} {exist} nobody's mark: {}", count(held.len(), "object"), named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<&'static str> {
        let metadata = json!({"name": name, "namespace": namespace, "uid": "1"});
        let body = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        system(&Live::new(body).expect("it has all that it needs"))
    }

    #[test]
    fn objects_of_the_system_are_known() {
        for (api_version, kind, namespace, name) in [
            ("v1", "Service", "default", "kubernetes"),
            ("v1", "ConfigMap", "shop", "kube-root-ca.crt"),
            ("v1", "ServiceAccount", "shop", "default"),
            ("v1", "ConfigMap", "kube-system", "coredns"),
            ("apps/v1", "Deployment", "kube-flannel", "flannel"),
            ("v1", "Namespace", "", "kube-public"),
            ("v1", "Namespace", "", "default"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node"),
            ("scheduling.k8s.io/v1", "PriorityClass", "", "system-node-critical"),
        ] {
            assert!(of(api_version, kind, namespace, name).is_some(), "{kind} {namespace}/{name}");
        }
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        let metadata = json!({"name": "edit", "uid": "1", "labels": labels});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata});
        assert!(system(&Live::new(role).expect("it has all that it needs")).is_some());
    }

    #[test]
    fn objects_of_others_are_not_those_of_the_system() {
        for (api_version, kind, namespace, name) in [
            ("v1", "Service", "shop", "kubernetes"),
            ("v1", "ServiceAccount", "shop", "edge"),
            ("v1", "Namespace", "", "shop"),
            ("v1", "ConfigMap", "kubernetes", "coredns"),
            ("serving.knative.dev/v1", "Service", "default", "kubernetes"),
        ] {
            assert_eq!(of(api_version, kind, namespace, name), None, "{kind} {namespace}/{name}");
        }
    }
}
