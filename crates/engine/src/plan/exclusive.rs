//! Places that only one object can have: ports of nodes and addresses of the cluster.
//!
//! A Gateway that is renamed wants the nodePort that the old one still has, and the old one goes only when the new one
//! is healthy. Nothing but a moment without either gets out of that, so a person decides: with approval the old object
//! goes right before the new one is made, and without it both stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::guard::{Guard, Hold};
use super::refusal::Reason;
use super::{Action, Inputs, Observed, Plan, Step};
use crate::inventory::Inventory;
use crate::live::Live;
use crate::object::{Object, ObjectId, group_kind};

/// Finds what has to go first, and puts it there or holds what is about it.
pub(super) fn arrange(plan: &mut Plan, inputs: Inputs<'_>) {
    let Inputs { observed, owned, .. } = inputs;
    let mut needs: BTreeMap<ObjectId, BTreeMap<ObjectId, (ObjectId, Vec<String>)>> = BTreeMap::new();
    let mut refused: BTreeMap<ObjectId, (ObjectId, String)> = BTreeMap::new();
    for step in &plan.steps {
        let Some(wanted) = wanted_places(step, observed) else { continue };
        for (holder, places) in holders(&step.id, &wanted, observed, owned) {
            let is_pruned = plan.prunes().any(|step| step.id == holder);
            let enforced: Vec<&str> = places.iter().filter(|place| is_enforced(place)).map(String::as_str).collect();
            if is_pruned {
                needs.entry(step.unit.clone()).or_default().insert(holder, (step.id.clone(), places));
            } else if !enforced.is_empty() {
                let what = format!("{holder} has {}, and stays", enforced.join(", "));
                refused.insert(step.id.clone(), (step.unit.clone(), what));
            }
        }
    }
    for (id, (unit, what)) in refused {
        needs.remove(&unit);
        plan.refuse_changes(&unit, &[(id, Reason::Taken(what))], owned);
    }
    for (unit, holders) in needs {
        plan.release(&unit, &holders, inputs);
    }
}

/// Tells whether an object is to have a place of its own on the cluster that the live one has not.
pub fn wants_place(object: &Object, live: Option<&Live>) -> bool {
    let has = live.map(|live| places(live.object.body())).unwrap_or_default();
    places(object.body()).iter().any(|place| is_enforced(place) && !has.contains(place))
}

/// Tells whether something that we own has a place that a wanted object needs: that is why it cannot be made yet.
pub(super) fn is_taken(object: &Object, observed: &Observed, owned: &Inventory) -> bool {
    let mut wanted = places(object.body());
    wanted.retain(|place| is_enforced(place));
    !holders(object.id(), &wanted, observed, owned).is_empty()
}

impl Plan {
    /// Lets what others have go first, if that is approved; else all that is about it stays as it is.
    fn release(&mut self, unit: &ObjectId, holders: &BTreeMap<ObjectId, (ObjectId, Vec<String>)>, inputs: Inputs<'_>) {
        let first = |step: &Step| Step {
            unit: unit.clone(),
            action: match &step.action {
                Action::Prune(deletion) => Action::DeleteFirst(deletion.clone()),
                other => other.clone(),
            },
            note: holders.get(&step.id).map(|(needs, places)| format!("{} is for {needs}", places.join(", "))),
            ..step.clone()
        };
        let released: Vec<Step> = self.prunes().filter(|step| holders.contains_key(&step.id)).map(first).collect();
        let needed: BTreeSet<&ObjectId> = holders.values().map(|(needs, _)| needs).collect();
        let makes = self.steps.iter().filter(|step| needed.contains(&step.id));
        let steps = released.iter().chain(makes).map(|step| inputs.held(step)).collect();
        let texts = holders.iter().map(|(holder, (needs, places))| {
            format!("{holder}, which is to be deleted, has {} that {needs} needs", places.join(", "))
        });
        let texts = texts.collect::<Vec<_>>().join("; ");
        let hint = "approve it to have the old one deleted right before the new one is made, with nothing in between";
        let is_holder = |step: &Step| holders.contains_key(&step.id) && matches!(step.action, Action::Prune(_));
        let old: BTreeSet<ObjectId> =
            self.steps.iter().filter(|step| is_holder(step)).map(|step| step.unit.clone()).collect();
        if self.stops(Hold::on_unit(Guard::DeleteFirst, unit, texts, hint, steps), inputs) {
            let reasons: Vec<_> = needed.iter().map(|id| ((*id).clone(), Reason::Held(Guard::DeleteFirst))).collect();
            self.refuse_changes(unit, &reasons, inputs.owned);
            self.withhold(|step| old.contains(&step.unit), &Reason::Held(Guard::DeleteFirst));
        } else {
            self.steps.retain(|step| !is_holder(step));
            self.steps.extend(released);
        }
    }

    /// Refuses all changes of a unit: those that are named for their reason, the others because of them.
    pub(super) fn refuse_changes(&mut self, unit: &ObjectId, reasons: &[(ObjectId, Reason)], owned: &Inventory) {
        let is_change = |step: &Step| step.unit == *unit && step.action.changes() && !step.action.deletes();
        let named = |step: &Step| reasons.iter().find(|(id, _)| *id == step.id).map(|(_, reason)| reason.clone());
        for id in self.refuse(is_change, |step| named(step).unwrap_or(Reason::UnitHeld)) {
            self.unwrite(&id, owned);
        }
    }
}

/// The places that an object takes and does not have yet.
fn wanted_places(step: &Step, observed: &Observed) -> Option<BTreeSet<String>> {
    let is_written = matches!(step.action, Action::Create | Action::Update(_) | Action::Recreate(_));
    let mut wanted = places(step.object.as_ref().filter(|_| is_written)?.body());
    if let Some(live) = observed.live.get(&step.id) {
        let has = places(live.object.body());
        wanted.retain(|place| !has.contains(place));
    }
    (!wanted.is_empty()).then_some(wanted)
}

/// Those of our other objects that have such places.
fn holders(
    id: &ObjectId,
    wanted: &BTreeSet<String>,
    observed: &Observed,
    owned: &Inventory,
) -> BTreeMap<ObjectId, Vec<String>> {
    if wanted.is_empty() {
        return BTreeMap::new();
    }
    let others = owned.entries.keys().filter(|other| *other != id);
    let live = others.filter_map(|other| Some((other, observed.live.get(other)?)));
    let shared = live.map(|(other, live)| {
        let both: Vec<String> = places(live.object.body()).intersection(wanted).cloned().collect();
        (other.clone(), both)
    });
    shared.filter(|(_, both)| !both.is_empty()).collect()
}

/// An API server refuses a second object with such a place; of the others the second one does not work.
fn is_enforced(place: &str) -> bool {
    !place.starts_with("hostPort") && !place.starts_with("loadBalancerIP")
}

/// Returns the places that an object takes, in words that are equal where the places are.
fn places(body: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    if group_kind(body) == ("", "Service") {
        let texts = |field: &str| body["spec"][field].as_str().filter(|text| !text.is_empty() && *text != "None");
        for field in ["clusterIP", "loadBalancerIP"] {
            places.extend(texts(field).map(|address| format!("{field} {address}")));
        }
        let addresses = body["spec"]["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        places.extend(addresses.filter(|address| *address != "None").map(|address| format!("clusterIP {address}")));
        let ports = body["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
        let ports = ports.chain([&body["spec"]["healthCheckNodePort"]]).filter_map(Value::as_u64);
        places.extend(ports.filter(|port| *port > 0).map(|port| format!("nodePort {port}")));
    }
    let Some(pod) = body.pointer("/spec/template/spec") else { return places };
    // Nodes that differ have ports that differ.
    let nodes = pod["nodeSelector"].as_object().filter(|selector| !selector.is_empty());
    let nodes = nodes.map(|selector| format!(" on nodes {}", Value::from(selector.clone()))).unwrap_or_default();
    let containers = pod["containers"].as_array().into_iter().flatten();
    for port in containers.flat_map(|container| container["ports"].as_array().into_iter().flatten()) {
        let number = if pod["hostNetwork"] == true { &port["containerPort"] } else { &port["hostPort"] };
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        if let Some(number) = number.as_u64().filter(|number| *number > 0) {
            places.insert(format!("hostPort {number}/{protocol}{nodes}"));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_what_only_one_can_have() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "spec": {
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "loadBalancerIP": "192.0.2.1", "healthCheckNodePort": 0,
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 81}],
        }});
        let expected = ["clusterIP 10.0.0.1", "loadBalancerIP 192.0.2.1", "nodePort 30080"];
        assert_eq!(places(&service).into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(places(&json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None"}})).len(), 0);
        let pods = |nodes: Value, host: bool| {
            let ports = json!([{"containerPort": 80, "hostPort": 80}, {"containerPort": 53, "protocol": "UDP"}]);
            let pod = json!({"nodeSelector": nodes, "hostNetwork": host, "containers": [{"ports": ports}]});
            places(&json!({"kind": "DaemonSet", "spec": {"template": {"spec": pod}}}))
        };
        assert_eq!(pods(json!({}), false), BTreeSet::from(["hostPort 80/TCP".to_owned()]));
        assert_eq!(pods(json!({}), true).len(), 2);
        assert!(pods(json!({"a": "1"}), false).is_disjoint(&pods(json!({"a": "2"}), false)));
    }
}
