//! Objects that pods and listeners need: what is to be deleted while something that stays refers to it waits for a person.
//!
//! A pod that runs keeps what it has read, and nobody notices anything until it is replaced: then it does not start. A
//! listener without its certificate is closed at once. What stays is what is wanted, by us and by our other syncs there,
//! what is not deleted though nobody wants it any more, and pods of others as far as anybody may look.

use std::collections::{BTreeMap, BTreeSet};

use super::{Guard, Hold};
use crate::kinds;
use crate::object::{Object, ObjectId};
use crate::plan::refusal::Reason;
use crate::plan::{Inputs, Plan};
use crate::references::{is_referred_to, of};
use crate::spec::GATEWAY_API;
use crate::text::{count, listed};
use crate::unit::Unit;
use crate::unit::marked::Marked;

/// The most users of an object that are named.
const NAMED: usize = 3;

/// A pod on the cluster that needs an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUser {
    /// The pod.
    pub pod: ObjectId,
    /// The object of ours that it is a pod of, if it is one.
    pub of: Option<ObjectId>,
}

/// A unit of which something is to be deleted.
struct Candidate {
    /// All that is to be deleted of it.
    deleted: BTreeSet<ObjectId>,
    /// It waits for a person already.
    is_held: bool,
}

/// The users of objects, by object.
type Users = BTreeMap<ObjectId, BTreeSet<ObjectId>>;

/// Takes the deletion of what is in use out of a plan. Where a unit waits for approval already, that is one more thing to
/// know about it.
pub(in crate::plan) fn hold_back(plan: &mut Plan, inputs: Inputs<'_>) {
    let mut told = BTreeSet::new();
    // What is held stays, and so does what that refers to.
    while hold_some(plan, &mut told, inputs) {}
}

fn hold_some(plan: &mut Plan, told: &mut BTreeSet<ObjectId>, inputs: Inputs<'_>) -> bool {
    let mut candidates = candidates(plan);
    candidates.retain(|unit, candidate| !told.contains(unit) && candidate.deleted.iter().any(is_referred_to));
    if candidates.is_empty() {
        return false;
    }
    let users = users(plan, &candidates, inputs);
    let mut is_new = false;
    for (unit, candidate) in candidates {
        let reasons = reasons(&candidate, &users, inputs);
        if !reasons.is_empty() {
            told.insert(unit.clone());
            is_new |= tell(plan, &unit, candidate.is_held, &reasons.join("; "), inputs);
        }
    }
    is_new
}

/// Holds a unit, or adds to what is said of it; tells whether something stays that would have gone.
fn tell(plan: &mut Plan, unit: &ObjectId, is_held: bool, reasons: &str, inputs: Inputs<'_>) -> bool {
    let hold = plan.holds.iter_mut().find(|hold| hold.unit.as_ref() == Some(unit));
    if let Some(hold) = hold.filter(|_| is_held) {
        if !hold.message.contains(reasons) {
            hold.message = format!("{}; {reasons}", hold.message);
        }
        return false;
    }
    let steps: Vec<_> = plan.prunes().filter(|step| step.unit == *unit).map(|step| inputs.held(step)).collect();
    let message = format!("{} to delete, and {reasons}", count(steps.len(), "object"));
    let hint = "have what uses it do without it, put it back into the source, or approve it";
    let is_stopped = plan.stops(Hold::on_unit(Guard::InUse, unit, message, hint, steps), inputs);
    if is_stopped {
        plan.withhold(|step| step.unit == *unit, &Reason::Held(Guard::InUse));
    }
    is_stopped
}

/// Returns the units of which something is to be deleted, now or once a person agrees.
fn candidates(plan: &Plan) -> BTreeMap<ObjectId, Candidate> {
    let mut candidates: BTreeMap<ObjectId, Candidate> = BTreeMap::new();
    for step in plan.prunes().filter(|step| !plan.is_approved(&step.unit)) {
        let new = || Candidate { deleted: BTreeSet::new(), is_held: false };
        candidates.entry(step.unit.clone()).or_insert_with(new).deleted.insert(step.id.clone());
    }
    let waits = |hold: &&Hold| matches!(hold.guard, Guard::Confirm | Guard::Withdrawal);
    for hold in plan.holds.iter().filter(waits) {
        if let Some(unit) = &hold.unit {
            let deleted = hold.steps.iter().map(|step| step.id.clone()).collect();
            candidates.insert(unit.clone(), Candidate { deleted, is_held: true });
        }
    }
    candidates
}

/// Returns what refers to the objects of some units, and stays as far as this plan goes.
fn users(plan: &Plan, candidates: &BTreeMap<ObjectId, Candidate>, inputs: Inputs<'_>) -> Users {
    let Inputs { rendering, observed, policies, owned, .. } = inputs;
    let ids: BTreeSet<&ObjectId> =
        candidates.values().flat_map(|it| &it.deleted).filter(|id| is_referred_to(id)).collect();
    let deleted: BTreeSet<&ObjectId> =
        plan.steps.iter().filter(|step| step.action.deletes()).map(|step| &step.id).collect();
    // What waits for other clusters stays as it is until its turn.
    let waiting: BTreeSet<&ObjectId> = policies.waiting.units().collect();
    let steps = plan.changes().filter(|step| !waiting.contains(&step.unit));
    let changed: BTreeSet<&ObjectId> = steps.map(|step| &step.id).collect();
    let mut users = Users::new();
    let wanted = rendering.units.iter().flat_map(Unit::all);
    // What others have added to it stays there.
    let becomes = observed.dry_runs.values().filter_map(|run| Some(&run.result.as_ref().ok()?.object));
    let stays = observed.live.values().map(|live| &live.object).filter(|object| !changed.contains(object.id()));
    let is_over = |id: &ObjectId| deleted.contains(id) || policies.left_alone.contains(id);
    for object in wanted.chain(becomes).chain(stays).filter(|object| !is_over(object.id())) {
        for id in named(object, &policies.kinds).filter(|id| ids.contains(id)) {
            users.entry(id).or_default().insert(object.id().clone());
        }
    }
    let listened = rendering.open.named().filter(|(_, id)| ids.contains(id));
    // What was made of a spec is nobody's certificate.
    let is_written = |id: &&ObjectId| owned.entries.get(*id).is_none_or(|entry| entry.unit == **id);
    let written: BTreeSet<&ObjectId> = ids.iter().copied().filter(is_written).collect();
    for (by, id) in listened.chain(may_name(rendering, &written)) {
        users.entry(id.clone()).or_default().insert(by.clone());
    }
    for (id, pods) in observed.users.iter().filter(|(id, _)| ids.contains(id)) {
        let is_told = |of: &ObjectId| is_over(of) || changed.contains(of);
        let left = pods.iter().filter(|user| !user.of.as_ref().is_some_and(is_told));
        // A workload of ours says more than its pods.
        let names = left.map(|user| user.of.as_ref().unwrap_or(&user.pod).clone());
        users.entry(id.clone()).or_default().extend(names);
    }
    users
}

/// Returns Gateways and listener sets that are broken, each with what it may name: nobody knows, and what was made of them
/// stays.
fn may_name<'a>(
    rendering: &'a Marked,
    ids: &BTreeSet<&'a ObjectId>,
) -> impl Iterator<Item = (&'a ObjectId, &'a ObjectId)> {
    let read: BTreeSet<&ObjectId> = rendering.open.named().map(|(by, _)| by).collect();
    let unread = rendering.broken.iter().filter(move |spec| spec.group == GATEWAY_API && !read.contains(spec));
    let named = ids.iter().copied().filter(|id| ["ConfigMap", "Secret"].contains(&&*id.kind));
    let named: Vec<&ObjectId> = named.collect();
    unread.flat_map(move |spec| {
        let near = named.clone().into_iter().filter(move |id| id.namespace == spec.namespace);
        near.map(move |id| (spec, id))
    })
}

/// Returns what an object refers to.
pub(in crate::plan) fn named(object: &Object, kinds: &kinds::Table) -> impl Iterator<Item = ObjectId> {
    let namespace = &object.id().namespace;
    of(object.body(), kinds).into_iter().map(move |reference| reference.id(namespace))
}

/// Says of what a unit loses what else uses it.
fn reasons(candidate: &Candidate, users: &Users, inputs: Inputs<'_>) -> Vec<String> {
    let says = |id: &ObjectId| {
        let of_us = users.get(id).into_iter().flatten().filter(|user| !candidate.deleted.contains(user));
        let of_others = inputs.policies.claims.users(id);
        let all: Vec<String> = of_us.map(ToString::to_string).chain(of_others).collect();
        (!all.is_empty()).then(|| format!("{id} is used by {}", listed(all, NAMED)))
    };
    candidate.deleted.iter().filter(|id| is_referred_to(id)).filter_map(says).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::inventory::{Entry, Inventory};
    use crate::kinds::name::KindName;
    use crate::live::Live;
    use crate::plan::claims::{Claim, Wanted};
    use crate::plan::guard::rollout::Wait;
    use crate::plan::policies::{Confirm, MaxDelete, Policies};
    use crate::plan::tests::policies;
    use crate::plan::{Observed, plan};
    use crate::problem::Place;
    use crate::unit::Rendering;
    use crate::unit::marked::Marked;

    fn object(version: &str, kind: &str, name: &str, spec: &Value) -> Object {
        let metadata = json!({"name": name, "namespace": "a"});
        Object::new(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}))
            .expect("it is whole")
    }

    fn unit(object: &Object) -> Unit {
        let files = [Arc::from("a.yaml")].into();
        Unit { files, objects: vec![object.clone()], ..Unit::empty(object.id().clone(), Place::file("a.yaml")) }
    }

    /// All that a plan is made from.
    struct World {
        rendering: Marked,
        observed: Observed,
        owned: Inventory,
        policies: Policies,
    }

    impl World {
        /// A world where `owned` is there, each a unit of its own, and `wanted` is what the source says now.
        fn new(owned: &[Object], wanted: &[Object]) -> Self {
            let max_delete = MaxDelete { units: 100, percent: 100, ..MaxDelete::default() };
            let confirm = Confirm { kinds: [].into(), gpus: false };
            let policies = Policies { max_delete, confirm, ..policies() };
            let mut inventory = Inventory {
                installation: policies.marker.installation.clone(),
                source: "specs".to_owned(),
                cluster: "c".to_owned(),
                ..Inventory::default()
            };
            let mut observed = Observed::from_objects("c", []);
            for object in owned {
                let (id, uid) = (object.id().clone(), format!("uid-{}", object.id()));
                let mut body = policies.marker.mark(object.clone()).into_body();
                body["metadata"]["uid"] = uid.clone().into();
                body["metadata"]["resourceVersion"] = "1".into();
                observed.live.insert(id.clone(), Live::new(body).expect("it is whole"));
                let (gvk, files) = (object.gvk(), ["gone.yaml".to_owned()].into());
                let (unit, uid, overlays) = (id.clone(), Some(uid), BTreeMap::new());
                inventory.entries.insert(id, Entry { gvk, uid, unit, adopted: false, files, overlays });
            }
            let rendering = Rendering { units: wanted.iter().map(unit).collect(), ..Rendering::default() };
            Self { rendering: rendering.marked(&policies.marker), observed, owned: inventory, policies }
        }

        /// A person is asked about all of these kinds.
        fn confirming(mut self, kinds: &[&str]) -> Self {
            self.policies.confirm.kinds = kinds.iter().map(|kind| KindName::read(kind)).collect();
            self
        }

        fn plan(&self) -> Plan {
            plan(&self.rendering, &self.observed, &self.owned, &self.policies)
        }
    }

    fn held(plan: &Plan) -> Vec<String> {
        let line = |hold: &Hold| format!("{} {}: {}", hold.guard, hold.subject(), hold.message);
        plan.holds.iter().map(line).collect()
    }

    fn secret(name: &str) -> Object {
        object("v1", "Secret", name, &Value::Null)
    }

    fn workload(kind: &str, name: &str, spec: &Value) -> Object {
        let mut spec = spec.clone();
        if spec["containers"].is_null() {
            spec["containers"] = json!([]);
        }
        let template = json!({"spec": spec});
        match kind {
            "CronJob" => object("batch/v1", kind, name, &json!({"jobTemplate": {"spec": {"template": template}}})),
            "Job" => object("batch/v1", kind, name, &json!({"template": template})),
            "ModelServer" => object("example.com/v1", kind, name, &json!({"template": template})),
            _ => object("apps/v1", kind, name, &json!({"template": template})),
        }
    }

    #[test]
    fn each_way_to_refer_holds_the_deletion_whatever_the_workload_is() {
        let container = |part: Value| {
            let mut container = json!({"name": "c"});
            container.as_object_mut().expect("it is one").extend(part.as_object().cloned().unwrap_or_default());
            container
        };
        let volume = |volume: Value| json!({"volumes": [volume]});
        let from = json!({"envFrom": [{"secretRef": {"name": "x"}}]});
        let variable = json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]});
        let ways = [
            ("Secret", json!({"imagePullSecrets": [{"name": "x"}]})),
            ("Secret", json!({"containers": [container(from.clone())]})),
            ("Secret", json!({"initContainers": [container(from.clone())]})),
            ("Secret", json!({"ephemeralContainers": [container(from)]})),
            ("Secret", json!({"containers": [container(variable)]})),
            ("Secret", volume(json!({"secret": {"secretName": "x"}}))),
            ("Secret", volume(json!({"csi": {"nodePublishSecretRef": {"name": "x"}}}))),
            ("Secret", volume(json!({"projected": {"sources": [{"secret": {"name": "x"}}]}}))),
            ("ConfigMap", volume(json!({"projected": {"sources": [{"configMap": {"name": "x"}}]}}))),
            ("ConfigMap", volume(json!({"configMap": {"name": "x"}}))),
            ("ConfigMap", json!({"containers": [container(json!({"envFrom": [{"configMapRef": {"name": "x"}}]}))]})),
            ("PersistentVolumeClaim", volume(json!({"persistentVolumeClaim": {"claimName": "x"}}))),
            ("ServiceAccount", json!({"serviceAccountName": "x"})),
        ];
        for (kind, spec) in ways {
            let needed = object("v1", kind, "x", &Value::Null);
            for workload_kind in ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ModelServer"] {
                let user = workload(workload_kind, "user", &spec);
                let plan = World::new(&[needed.clone(), user.clone()], std::slice::from_ref(&user)).plan();
                let expected = format!(
                    "in-use {kind} a/x is : 1 object to delete, and {kind} a/x is used by {workload_kind} a/user"
                );
                assert_eq!(held(&plan), [expected], "{spec}");
                assert!(plan.prunes().next().is_none(), "{plan}");
                // What goes with it does not keep it, and one of another name is not it.
                let other = workload(workload_kind, "other", &json!({"serviceAccountName": "y"}));
                let plan = World::new(&[needed.clone(), user], std::slice::from_ref(&other)).plan();
                assert_eq!((held(&plan), plan.prunes().count()), (Vec::new(), 2), "{plan}");
            }
        }
    }

    #[test]
    fn what_is_held_keeps_what_it_needs() {
        // The workload waits for a person, so that it stays.
        let user = workload("StatefulSet", "user", &json!({"imagePullSecrets": [{"name": "x"}]}));
        let other = secret("other");
        let world = World::new(&[secret("x"), user, other.clone()], std::slice::from_ref(&other));
        let plan = world.confirming(&["StatefulSet"]).plan();
        let held = held(&plan);
        assert_eq!(held.len(), 2, "{held:?}");
        assert!(held.iter().any(|line| line.starts_with("confirm StatefulSet a/user")), "{held:?}");
        assert!(held.iter().any(|line| line.ends_with("Secret a/x is used by StatefulSet a/user")), "{held:?}");
        assert_eq!(plan.prunes().count(), 0);
    }

    #[test]
    fn a_unit_that_waits_already_says_what_uses_it() {
        let needed = object("v1", "ConfigMap", "x", &Value::Null);
        let user = workload("Deployment", "user", &json!({"volumes": [{"configMap": {"name": "x"}}]}));
        let world = World::new(&[needed, user.clone()], std::slice::from_ref(&user));
        let plan = world.confirming(&["ConfigMap"]).plan();
        let end = "is a ConfigMap; ConfigMap a/x is used by Deployment a/user";
        assert!(matches!(held(&plan).as_slice(), [one] if one.ends_with(end)), "{:?}", held(&plan));
    }

    #[test]
    fn pods_of_others_keep_it_and_those_of_what_goes_do_not() {
        let pod = |name: &str, of: Option<&Object>| PodUser {
            pod: ObjectId::new("", "Pod", "a", name),
            of: of.map(|of| of.id().clone()),
        };
        let goes = workload("Deployment", "goes", &json!({}));
        let stays = secret("stays");
        let owned = [secret("x"), goes.clone(), stays.clone()];
        let mut world = World::new(&owned, std::slice::from_ref(&stays));
        world.observed.users = BTreeMap::from([(owned[0].id().clone(), vec![pod("theirs", None)])]);
        let plan = world.plan();
        assert_eq!(held(&plan), ["in-use Secret a/x is : 1 object to delete, and Secret a/x is used by Pod a/theirs"]);
        world.observed.users = BTreeMap::from([(owned[0].id().clone(), vec![pod("goes-1", Some(&goes))])]);
        let plan = world.plan();
        assert_eq!((held(&plan), plan.prunes().count()), (Vec::new(), 2));
    }

    #[test]
    fn another_sync_keeps_what_it_needs_unless_it_only_reports() {
        let user = workload("Deployment", "theirs", &json!({"serviceAccountName": "x"}));
        let stays = secret("stays");
        let needed = object("v1", "ServiceAccount", "x", &Value::Null);
        let mut world = World::new(&[needed, stays.clone()], std::slice::from_ref(&stays));
        let theirs = Rendering { units: vec![unit(&user)], ..Rendering::default() };
        let claim = Claim::Known(Arc::new(Wanted::of(&theirs, &world.policies.kinds)));
        world.policies.claims.syncs.insert("other".to_owned(), claim);
        let end = "is used by Deployment a/theirs of sync \"other\"";
        let plan = world.plan();
        assert!(matches!(held(&plan).as_slice(), [one] if one.ends_with(end)), "{plan}");
        world.policies.claims.reports.insert("other".to_owned());
        let plan = world.plan();
        assert_eq!((held(&plan), plan.prunes().count()), (Vec::new(), 1), "{plan}");
    }

    #[test]
    fn what_waits_for_its_turn_keeps_what_it_needs_until_then() {
        let before = workload("Deployment", "user", &json!({"imagePullSecrets": [{"name": "x"}]}));
        let after = workload("Deployment", "user", &json!({"imagePullSecrets": []}));
        let mut world = World::new(&[secret("x"), before], std::slice::from_ref(&after));
        let first = world.plan();
        assert_eq!((held(&first), first.prunes().count()), (Vec::new(), 1), "{first}");
        let wait = Wait { guard: Guard::Rollout, message: "not yet".to_owned(), hint: String::new(), why: None };
        let waits = BTreeMap::from([(after.id().clone(), wait)]);
        world.policies.waiting = first.waiting_for_others((&waits, None), &world.observed, &world.policies);
        let second = world.plan();
        let line = "in-use Secret a/x is : 1 object to delete, and Secret a/x is used by Deployment a/user";
        assert!(held(&second).iter().any(|held| held == line), "{second}");
        assert_eq!(second.prunes().count(), 0, "{second}");
    }
}
