//! Deletions that wait for a person: what holds data, costs a GPU, serves routes, or asks for it.
//!
//! A unit waits as a whole: half of a data plane helps nobody. What is deleted after it, because it may need it, waits
//! too: classes, parameters, kinds and namespaces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::token::HeldStep;
use super::{Guard, Hold};
use crate::devices::is_device;
use crate::kinds::{self, is_container};
use crate::marks::confirm_mark;
use crate::object::ObjectId;
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;
use crate::plan::{Action, Inputs, Plan, Step};
use crate::quantity::Quantity;
use crate::text::count;

/// Takes the deletions that nobody has approved out of a plan.
pub(in crate::plan) fn hold_back(plan: &mut Plan, inputs: Inputs<'_>) {
    let Inputs { observed, policies, .. } = inputs;
    let mut units: BTreeMap<ObjectId, BTreeSet<String>> = BTreeMap::new();
    for step in plan.prunes().filter(|step| !plan.is_approved(&step.unit)) {
        let why = observed.live.get(&step.id).and_then(|live| reason(&step.id, live.object.body(), policies));
        let routes = routes(&step.unit, inputs);
        for why in why.map(|why| format!("{} {why}", step.id)).into_iter().chain(routes) {
            units.entry(step.unit.clone()).or_default().insert(why);
        }
    }
    for (unit, reasons) in units {
        let held = plan.prunes().filter(|step| step.unit == unit);
        let steps: Vec<HeldStep> = held.map(|step| inputs.held(step)).collect();
        let reasons: Vec<String> = reasons.into_iter().collect();
        let message = format!("{} to delete, and {}", count(steps.len(), "object"), reasons.join("; "));
        let hint = "look at what goes, then approve it, or put the spec back";
        if plan.stops(Hold::on_unit(Guard::Confirm, &unit, message, hint, steps), inputs) {
            plan.withhold(|step| step.unit == unit, &Reason::Held(Guard::Confirm));
        }
    }
}

/// Takes the deletion of what the held units may need out of the plan: it is deleted after them.
pub(in crate::plan) fn keep_what_may_be_needed(plan: &mut Plan, Policies { kinds, waiting, .. }: &Policies) {
    let held = plan.holds.iter().filter_map(|hold| hold.unit.as_ref()).chain(waiting.units());
    let Some(last) = held.max_by_key(|unit| kinds.wave(unit)).cloned() else { return };
    let wave = kinds.wave(&last);
    plan.withhold(|step| kinds.wave(&step.unit) < wave, &Reason::StillNeeded(last.to_string()));
}

impl Plan {
    /// Takes deletions out of the plan.
    pub(in crate::plan) fn withhold(&mut self, is_held: impl Fn(&Step) -> bool, reason: &Reason) {
        self.refuse(|step| matches!(step.action, Action::Prune(_)) && is_held(step), |_| reason.clone());
    }
}

/// Says why an object is not deleted without being asked about, if so.
pub(in crate::plan) fn reason(id: &ObjectId, body: &Value, policies: &Policies) -> Option<String> {
    if let Some(mark) = confirm_mark(body) {
        return Some(format!("carries {mark}"));
    }
    // With these goes more than they are themselves, so that no setting leaves them out.
    if policies.confirm.kinds.iter().any(|named| named.is_of(id)) || is_container(id) {
        let article = if id.kind.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
        return Some(format!("is {article} {}", id.kind));
    }
    let device = device(body).filter(|_| policies.confirm.gpus)?;
    Some(format!("asks for {device}"))
}

/// The routes of a Gateway that is deleted as a whole.
fn routes(unit: &ObjectId, Inputs { rendering, observed, .. }: Inputs<'_>) -> Option<String> {
    let routes = observed.routes.get(unit).filter(|routes| **routes > 0)?;
    if rendering.units.iter().any(|wanted| wanted.id == *unit) {
        return None;
    }
    Some(format!("{} {} attached to {unit}", count(*routes, "route"), if *routes == 1 { "is" } else { "are" }))
}

/// Finds a device that some container asks for, wherever a kind has its containers.
fn device(body: &Value) -> Option<&str> {
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

/// Tells whether an object takes long to become healthy, because models are loaded: by its kind, or because it asks for a
/// GPU.
pub fn is_slow(id: &ObjectId, body: Option<&Value>, kinds: &kinds::Table) -> bool {
    kinds.of(id).slow || body.is_some_and(|body| device(body).is_some())
}

fn is_zero(amount: &Value) -> bool {
    Quantity::of(amount).is_some_and(Quantity::is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::name::KindName;
    use crate::plan::policies::Confirm;
    use serde_json::json;

    #[test]
    fn a_kind_that_waits_may_be_named_with_its_group() {
        let kinds = ["StatefulSet", "Service.serving.knative.dev"].map(KindName::read).into();
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
    fn a_model_server_is_known_by_its_kind_or_its_gpu() {
        let mut kinds = kinds::Table::builtin();
        let rows = json!({"example.com": {"ModelServer": {"slow": true}}});
        kinds.add(&serde_json::from_value(rows).expect("they are rows")).expect("nobody else knows it");
        let is_slow = |group, kind, body: Option<&Value>| {
            super::is_slow(&ObjectId::new(group, kind, "models", "chat"), body, &kinds)
        };
        assert!(is_slow("example.com", "ModelServer", None));
        assert!(!is_slow("example.org", "ModelServer", None));
        assert!(!is_slow("apps", "Deployment", None));
        let limits = |name: &str| json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {name: "1"}}}]}}}});
        assert!(is_slow("apps", "Deployment", Some(&limits("nvidia.com/gpu"))));
        assert!(!is_slow("apps", "Deployment", Some(&limits("cpu"))));
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
