//! Properties of every plan, whatever is wanted, owned and there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::guard::Guard;
use super::guard::token::HeldStep;
use super::policies::{Adopt, Confirm, MaxDelete, Policies};
use super::{Action, Observed, Over, Plan, Suspicion, plan};
use crate::inventory::{Entry, Inventory};
use crate::kinds::name::KindName;
use crate::live::Live;
use crate::marks::{Marker, confirm_mark, keep_mark};
use crate::memory;
use crate::object::{Object, ObjectId};
use crate::problem::Place;
use crate::unit::marked::Marked;
use crate::unit::{Rendering, Unit};

/// An object that there may be, and what is the case with it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is the case or not, whatever the others are")]
struct Situation {
    is_wanted: bool,
    is_owned: bool,
    /// The uid that the inventory knows is that of the live object.
    is_same: bool,
    is_adopted: bool,
    is_live: bool,
    is_marked: bool,
    /// An annotation.
    mark: Option<(&'static str, &'static str)>,
}

fn situation() -> impl Strategy<Value = Situation> {
    let marks = [
        None,
        None,
        Some(("gatewright.dev/prune", "disabled")),
        Some(("gatewright.dev/prune", "confirm")),
        Some(("helm.sh/resource-policy", "keep")),
        Some(("meta.helm.sh/release-name", "theirs")),
    ];
    (any::<[bool; 6]>(), prop::sample::select(marks.to_vec())).prop_map(|(flags, mark)| {
        let [is_wanted, is_owned, is_same, is_adopted, is_live, is_marked] = flags;
        Situation { is_wanted, is_owned, is_same: is_same || !is_adopted, is_adopted, is_live, is_marked, mark }
    })
}

fn marker() -> Marker {
    Marker::new("0123456789abcdef", "edge")
}

pub(super) fn policies() -> Policies {
    Policies {
        source: "specs".to_owned(),
        adopt: Adopt::IfUnowned,
        max_delete: MaxDelete { units: 3, percent: 60, ..MaxDelete::default() },
        confirm: Confirm { kinds: [KindName::read("PersistentVolumeClaim")].into(), gpus: true },
        create_namespaces: true,
        cluster: "c".to_owned(),
        ..Policies::new(marker())
    }
}

/// Everything that a plan is made from: units of two objects each.
struct World {
    rendering: Marked,
    observed: Observed,
    owned: Inventory,
}

fn empty(id: ObjectId) -> Unit {
    Unit { files: [Arc::from("a.yaml")].into(), ..Unit::empty(id, Place::file("a.yaml")) }
}

fn world(situations: &[Situation]) -> World {
    let mut units: BTreeMap<ObjectId, Unit> = BTreeMap::new();
    let mut observed = Observed::from_objects("c", []);
    let mut owned = Inventory {
        installation: marker().installation,
        source: "specs".to_owned(),
        cluster: "c".to_owned(),
        ..Inventory::default()
    };
    for (number, situation) in situations.iter().enumerate() {
        let kind = ["ConfigMap", "Service", "PersistentVolumeClaim"][number % 3];
        let metadata = json!({"name": format!("o{number}"), "namespace": "infra"});
        let object = Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})).expect("it is whole");
        let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", &format!("u{}", number / 2));
        let (id, uid) = (object.id().clone(), format!("uid-{number}"));
        if situation.is_wanted {
            let of = units.entry(unit.clone()).or_insert_with(|| empty(unit.clone()));
            of.objects.push(object.clone());
        }
        if situation.is_owned {
            let uid = if situation.is_same { uid.clone() } else { "another".to_owned() };
            let (gvk, files) = (object.gvk(), ["a.yaml".to_owned()].into());
            owned.entries.insert(
                id.clone(),
                Entry { gvk, uid: Some(uid), unit, adopted: situation.is_adopted, files, overlays: BTreeMap::new() },
            );
        }
        if situation.is_live {
            let marked = if situation.is_marked { marker().mark(object) } else { object };
            let annotations = situation.mark.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let mut body = marked.with_metadata("annotations", annotations).into_body();
            body["metadata"]["uid"] = uid.into();
            body["metadata"]["resourceVersion"] = "1".into();
            observed.live.insert(id, Live::new(body).expect("it is whole"));
        }
    }
    let rendering = Rendering { units: units.into_values().collect(), ..Rendering::default() };
    World { rendering: rendering.marked(&marker()), observed, owned }
}

impl World {
    fn plan(&self, policies: &Policies) -> Plan {
        plan(&self.rendering, &self.observed, &self.owned, policies)
    }

    fn body(&self, id: &ObjectId) -> &Value {
        self.observed.live[id].object.body()
    }
}

fn deleted(plan: &Plan) -> BTreeSet<ObjectId> {
    plan.steps.iter().filter(|step| step.action.deletes()).map(|step| step.id.clone()).collect()
}

proptest! {
    #[test]
    fn a_plan_that_was_applied_leaves_nothing_to_do(situations in prop::collection::vec(situation(), 0..16)) {
        let world = world(&situations);
        let mut cluster = memory::Cluster::from_objects("c", world.observed.live.values().cloned());
        let first = world.plan(&policies());
        if let Ok(owned) = cluster.apply(&first) {
            let again = plan(&world.rendering, &cluster.observed(), &owned, &policies());
            prop_assert!(again.is_empty(), "{first}\nand then\n{again}");
        }
    }

    #[test]
    fn only_what_is_ours_unwanted_and_not_protected_is_deleted(situations in prop::collection::vec(situation(), 0..16)) {
        let world = world(&situations);
        let plan = world.plan(&policies());
        let wanted: BTreeSet<&ObjectId> = world.rendering.units.iter().flat_map(|unit| unit.all().map(Object::id)).collect();
        for step in plan.steps.iter().filter(|step| step.action.deletes()) {
            let id = &step.id;
            let entry = world.owned.entries.get(id);
            prop_assert!(entry.is_some(), "{id} is not in the inventory");
            prop_assert!(!wanted.contains(id), "{id} is wanted");
            let live = &world.observed.live[id];
            prop_assert_eq!(marker().owner(&live.object), crate::marks::Owner::Us);
            prop_assert_eq!(entry.and_then(|entry| entry.uid.clone()), Some(live.uid.clone()));
            prop_assert!(entry.is_some_and(|entry| !entry.adopted), "{id} was adopted");
            prop_assert_eq!(keep_mark(world.body(id)), None);
            prop_assert_eq!(confirm_mark(world.body(id)), None);
            prop_assert!(id.kind != "PersistentVolumeClaim", "{id} holds data");
            let over = Over { uid: live.uid.clone(), resource_version: live.resource_version.clone() };
            prop_assert_eq!(step.action.over(), Some(&over));
        }
        // What is not deleted is not forgotten.
        for (id, live) in &world.observed.live {
            let is_ours = marker().owner(&live.object) == crate::marks::Owner::Us;
            let is_known = world.owned.entries.contains_key(id);
            let is_forgotten = plan.steps.iter().any(|step| step.id == *id && step.action == Action::Forget);
            prop_assert!(!(is_ours && is_known && is_forgotten), "{id} is forgotten");
        }
    }

    #[test]
    fn while_an_inventory_is_suspect_nothing_is_deleted_and_all_else_goes_on(
        situations in prop::collection::vec(situation(), 0..16),
    ) {
        let mut world = world(&situations);
        let all = |plan: &Plan| plan.changes().map(|step| step.id.clone()).collect::<BTreeSet<_>>();
        let certain = world.plan(&policies());
        world.observed.suspicion = Some(Suspicion { sync: "edge".to_owned(), what: "it is gone".to_owned() });
        let suspect = world.plan(&policies());
        prop_assert_eq!(deleted(&suspect), BTreeSet::new());
        prop_assert_eq!(all(&suspect), &all(&certain) - &deleted(&certain));
        prop_assert!(suspect.holds.iter().any(|hold| hold.guard == Guard::Inventory && hold.token.is_none()));
    }

    #[test]
    fn a_token_lifts_exactly_the_steps_that_it_was_printed_with(
        situations in prop::collection::vec(situation(), 0..16),
        other in prop::collection::vec(situation(), 0..16),
    ) {
        let (world, other) = (world(&situations), world(&other));
        let before = world.plan(&policies());
        let tokens = |plan: &Plan| plan.holds.iter().filter_map(|hold| hold.token.clone()).collect::<BTreeSet<String>>();
        for hold in &before.holds {
            let Some(token) = hold.token.clone() else { continue };
            let approved = Policies { approved: [token.clone()].into(), ..policies() };
            let after = world.plan(&approved);
            let lifted: BTreeSet<ObjectId> = hold.steps.iter().map(|step| step.id.clone()).collect();
            if hold.unit.is_some() {
                let expected: BTreeSet<ObjectId> = deleted(&before).union(&lifted).cloned().collect();
                prop_assert_eq!(deleted(&after), expected);
            } else {
                prop_assert_eq!(deleted(&after), lifted);
            }
            // Elsewhere it lifts nothing but the very same steps.
            let elsewhere = other.plan(&approved);
            for hold in &elsewhere.lifted {
                let same = before.holds.iter().find(|held| held.token == hold.token).map(|held| &held.steps);
                let key = |steps: &[HeldStep]| steps.iter().map(|step| (step.id.clone(), step.uid.clone())).collect::<BTreeSet<_>>();
                prop_assert_eq!(same.map(|steps| key(steps)), Some(key(&hold.steps)));
            }
            prop_assert!(!tokens(&elsewhere).contains(&token));
        }
    }
}
