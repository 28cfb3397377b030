//! Deletions that wait for a person: what holds data, costs a GPU, serves routes, or asks for it.
//!
//! A unit waits as a whole: half of a data plane helps nobody. What is deleted after it, because it may need it, waits
//! too: classes, parameters, kinds and namespaces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::contents::is_container;
use super::token::HeldStep;
use super::{Guard, Hold};
use crate::marks::confirm_mark;
use crate::object::{ObjectId, kinds};
use crate::plan::order::wave;
use crate::plan::policies::Policies;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::{Action, Observed, Plan, Step};
use crate::quantity::Quantity;
use crate::text::count;
use crate::unit::Rendering;

/// Vendors' names of the devices that a container asks for, beside those that end in `/gpu`.
const DEVICES: [&str; 5] =
    ["nvidia.com/mig-", "gpu.intel.com/", "habana.ai/gaudi", "aws.amazon.com/neuron", "google.com/tpu"];

/// Takes the deletions that nobody has approved out of a plan.
pub(in crate::plan) fn hold_back(plan: &mut Plan, rendering: &Rendering, observed: &Observed, policies: &Policies) {
    let mut units: BTreeMap<ObjectId, BTreeSet<String>> = BTreeMap::new();
    for step in prunes(&plan.steps).filter(|step| !plan.is_approved(&step.unit)) {
        let why = observed.live.get(&step.id).and_then(|live| reason(&step.id, live.object.body(), policies));
        let routes = routes(&step.unit, rendering, observed);
        for why in why.map(|why| format!("{} {why}", step.id)).into_iter().chain(routes) {
            units.entry(step.unit.clone()).or_default().insert(why);
        }
    }
    for (unit, reasons) in units {
        let is_of_unit = |step: &&Step| step.unit == unit;
        let masker = &policies.conflicts.masker;
        let steps: Vec<HeldStep> =
            prunes(&plan.steps).filter(is_of_unit).map(|step| HeldStep::of(step, observed, masker)).collect();
        let reasons: Vec<String> = reasons.into_iter().collect();
        let message = format!("{} to delete, and {}", count(steps.len(), "object"), reasons.join("; "));
        let hold = Hold::on_unit(Guard::Confirm, &unit, message, steps);
        if plan.stops(hold, observed, policies) {
            plan.withhold(|step| step.unit == unit, &Reason::Held(Guard::Confirm));
        }
    }
}

fn prunes(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| matches!(step.action, Action::Prune(_)))
}

/// What the held units may need is deleted after them.
pub(in crate::plan) fn keep_what_may_be_needed(plan: &mut Plan) {
    let held = plan.holds.iter().filter_map(|hold| hold.unit.as_ref());
    let Some(last) = held.max_by_key(|unit| wave(unit)).cloned() else { return };
    plan.withhold(|step| wave(&step.unit) < wave(&last), &Reason::StillNeeded(last.to_string()));
}

impl Plan {
    /// Takes deletions out of the plan.
    pub(in crate::plan) fn withhold(&mut self, is_held: impl Fn(&Step) -> bool, reason: &Reason) {
        let is_held = |step: &Step| matches!(step.action, Action::Prune(_)) && is_held(step);
        let (held, others): (Vec<Step>, Vec<Step>) = std::mem::take(&mut self.steps).into_iter().partition(is_held);
        self.steps = others;
        let refusal = |step: Step| Refusal { unit: step.unit, id: step.id, reason: reason.clone() };
        self.refusals.extend(held.into_iter().map(refusal));
    }
}

/// Says why an object is not deleted without being asked about, if so.
pub(in crate::plan) fn reason(id: &ObjectId, body: &Value, policies: &Policies) -> Option<String> {
    if let Some(mark) = confirm_mark(body) {
        return Some(format!("carries {mark}"));
    }
    // With these goes more than they are themselves, so that no setting leaves them out.
    if policies.confirm.kinds.iter().any(|named| kinds::means(named, id)) || is_container(id) {
        return Some(format!("is a {}", id.kind));
    }
    let device = device(body).filter(|_| policies.confirm.gpus)?;
    Some(format!("asks for {device}"))
}

/// The routes of a Gateway that is deleted as a whole.
fn routes(unit: &ObjectId, rendering: &Rendering, observed: &Observed) -> Option<String> {
    let routes = observed.routes.get(unit).filter(|routes| **routes > 0)?;
    if rendering.units.iter().any(|wanted| wanted.id == *unit) {
        return None;
    }
    Some(format!("{} {} attached to {unit}", count(*routes, "route"), if *routes == 1 { "is" } else { "are" }))
}

/// Finds a device that some container asks for, wherever a kind has its containers.
pub(in crate::plan) fn device(body: &Value) -> Option<&str> {
    match body {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("limits" | "requests", Value::Object(quantities)) => quantities
                .iter()
                .find(|(name, quantity)| is_device(name) && !is_zero(quantity))
                .map(|(name, _)| name.as_str()),
            _ => device(value),
        }),
        Value::Array(items) => items.iter().find_map(device),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn is_device(name: &str) -> bool {
    name.ends_with("/gpu") || DEVICES.iter().any(|device| name.starts_with(device))
}

fn is_zero(amount: &Value) -> bool {
    Quantity::of(amount).is_some_and(Quantity::is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::policies::Confirm;
    use serde_json::json;

    #[test]
    fn a_kind_that_waits_may_be_named_with_its_group() {
        let kinds = ["StatefulSet", "Service.serving.knative.dev"].map(str::to_owned).into();
        let policies = Policies { confirm: Confirm { kinds, gpus: false }, ..crate::plan::tests::policies() };
        for (group, kind, waits) in [
            ("apps", "StatefulSet", true),
            ("apps.kruise.io", "StatefulSet", true),
            ("serving.knative.dev", "Service", true),
            ("", "Service", false),
        ] {
            let why = reason(&ObjectId::new(group, kind, "a", "b"), &json!({}), &policies);
            assert_eq!(why.is_some(), waits, "{group}/{kind}");
        }
    }

    #[test]
    fn devices_are_found_wherever_containers_are() {
        let containers = |resources: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "resources": resources}]}}}});
        assert_eq!(device(&containers(json!({"limits": {"cpu": "1", "nvidia.com/gpu": 8}}))), Some("nvidia.com/gpu"));
        assert_eq!(device(&containers(json!({"requests": {"amd.com/gpu": "1"}}))), Some("amd.com/gpu"));
        assert_eq!(device(&containers(json!({"limits": {"nvidia.com/gpu": "0"}}))), None);
        assert_eq!(device(&containers(json!({"limits": {"cpu": "1"}}))), None);
        let graph =
            json!({"spec": {"services": {"worker": {"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}}}});
        assert_eq!(device(&graph), Some("nvidia.com/mig-1g.5gb"));
    }
}
