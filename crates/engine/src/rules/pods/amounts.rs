//! Amounts of resources that containers ask for, and the claims to devices that they use.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Pod, items, name};
use crate::quantity::Quantity;

/// The domain of resources that are Kubernetes' own.
const OWN_DOMAIN: &str = "kubernetes.io/";

pub(super) fn check(pod: &mut Pod<'_>) {
    for (list, container) in pod.containers() {
        for side in ["limits", "requests"] {
            for (resource, amount) in container["resources"][side].as_object().into_iter().flatten() {
                of_resource(pod, [list, name(container), "resources", side, resource], amount);
            }
        }
        claims(pod, [list, name(container), "resources", "claims"], &container["resources"]["claims"]);
    }
}

fn of_resource(pod: &mut Pod<'_>, path: [&str; 5], amount: &Value) {
    let [_, own, _, side, resource] = path;
    let Some(quantity) = Quantity::of(amount) else { return };
    let shown = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let what = format!("the container {own:?} has {shown} of {resource:?} below {side}");
    if quantity < Quantity::default() {
        pod.say(&path, (format!("{what}, which is less than 0"), "write 0 or more"));
    } else if is_counted(resource) && !is_whole(quantity) {
        pod.say(&path, (format!("{what}, but devices are counted"), "write a whole number, such as 1"));
    }
}

/// Tells whether a resource is one of those that others have added to nodes. A server counts them in thousandths.
fn is_counted(resource: &str) -> bool {
    resource.contains('/') && !resource.contains(OWN_DOMAIN)
}

fn is_whole(quantity: Quantity) -> bool {
    quantity.times(1000).whole() % 1000 == 0
}

/// Claims are those of the pod, each used once.
fn claims(pod: &mut Pod<'_>, path: [&str; 4], claims: &Value) {
    let there: BTreeSet<&str> = items(&pod.spec["resourceClaims"]).map(name).collect();
    for claim in items(claims).map(name).filter(|claim| !there.contains(claim)) {
        let message = format!("the container {:?} uses the claim {claim:?}, and the pod has no such claim", path[1]);
        let known: Vec<&str> = there.iter().copied().collect();
        let hint = if known.is_empty() {
            "add it to resourceClaims".to_owned()
        } else {
            format!("add it to resourceClaims; there are {}", known.join(", "))
        };
        pod.say(&path, (message, &hint));
    }
}
