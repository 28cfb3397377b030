//! A cluster to which things happen, and the promises that every round on it has to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::memory::{MemoryCluster, Verb};
use gatewright::cluster::{Cluster, Reason};
use gatewright::report::{ClusterReport, ClusterState};
use gatewright_engine::live::Live;
use gatewright_engine::marks::{OWNER_ANNOTATION, OWNER_LABEL, Owner, SYNC_LABEL};
use gatewright_engine::object::{Object, ObjectId};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::installation::{Installation, Specs, gateway};
use super::mortal::{Effect, Mortal};

/// The Gateways that there may be.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Something that happens between two rounds.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The source has this Gateway with this port.
    Want(Index, u16),
    /// The source has it no more.
    Drop(Index),
    /// Its file cannot be read any more.
    Break(Index),
    /// Somebody deletes one of our objects.
    Delete(Index),
    /// Somebody changes one of them.
    Edit(Index),
    /// Somebody takes our marks off one.
    Unmark(Index),
    /// Somebody deletes one and makes another in its place, with our marks or without.
    Replace(Index, bool),
    /// Somebody takes the place of what a Gateway would become.
    Squat(Index),
    /// Such a request fails.
    Fail(Verb, Reason),
    /// Such a request is carried out, and its answer is lost.
    Lose(Verb),
}

/// Anything that may happen, what is ordinary more often.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    let index = any::<Index>;
    prop_oneof![
        6 => (index(), 80_u16..83).prop_map(|(name, port)| Event::Want(name, port)),
        3 => index().prop_map(Event::Drop),
        1 => index().prop_map(Event::Break),
        1 => index().prop_map(Event::Delete),
        1 => index().prop_map(Event::Edit),
        1 => index().prop_map(Event::Unmark),
        1 => (index(), any::<bool>()).prop_map(|(object, marked)| Event::Replace(object, marked)),
        1 => index().prop_map(Event::Squat),
        3 => (verb(), reason()).prop_map(|(verb, reason)| Event::Fail(verb, reason)),
        2 => verb().prop_map(Event::Lose),
    ]
}

fn verb() -> impl Strategy<Value = Verb> {
    use Verb::{Apply, Delete, DeleteRecord, DryRun, Get, Identity, Kinds, List, ReadRecord, WriteRecord};
    // Most of what can go wrong in the middle of something does so while objects are written.
    let writes = [Apply, Apply, Apply, Apply, Delete, Delete, Delete, DryRun, Get, WriteRecord];
    let others = [Identity, Kinds, List, Get, DryRun, ReadRecord, WriteRecord, DeleteRecord];
    prop::sample::select([writes.as_slice(), others.as_slice()].concat())
}

fn reason() -> impl Strategy<Value = Reason> {
    use Reason::{Conflict, Forbidden, Invalid, NotFound, Other, Overloaded, Unauthorized, Unreachable};
    let all = [Unreachable, Unauthorized, Forbidden, NotFound, Conflict, Invalid, Overloaded, Other];
    prop::sample::select(all.to_vec())
}

/// The cluster, the source, and who brings the one to the other.
pub(crate) struct World {
    installation: Installation,
    memory: Arc<MemoryCluster>,
    cluster: Arc<dyn Cluster>,
    specs: Specs,
    /// Whether what nobody owns may be adopted.
    adopts: bool,
}

impl World {
    pub(crate) fn new(adopts: bool, applies_specs: bool) -> Self {
        let memory = Arc::new(MemoryCluster::new("c"));
        let settings = json!({
            "specs": if applies_specs { "apply" } else { "render" },
            "adopt": {"policy": if adopts { "if-unowned" } else { "never" }},
            "prune": {"maxDelete": {"units": 9, "percent": 100}, "allowEmpty": true},
        });
        let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
        Self { installation: Installation::new("edge", &settings), memory, cluster, specs: Specs::new(), adopts }
    }

    pub(crate) fn happens(&mut self, event: &Event) {
        match event {
            Event::Want(name, port) => {
                let name = name_of(*name);
                self.specs.insert(format!("{name}.json"), gateway("infra", name, *port));
            }
            Event::Drop(name) => drop(self.specs.remove(&format!("{}.json", name_of(*name)))),
            Event::Break(name) => {
                if let Some(text) = self.specs.get_mut(&format!("{}.json", name_of(*name))) {
                    text.push('}');
                }
            }
            Event::Delete(object) => drop(self.pick(*object).and_then(|live| self.memory.remove(live.object.id()))),
            Event::Edit(object) => self.put(*object, |body| body["spec"]["edited"] = json!(true)),
            Event::Unmark(object) => self.put(*object, unmark),
            Event::Replace(object, is_marked) => {
                let Some(live) = self.pick(*object) else { return };
                self.memory.remove(live.object.id());
                let mut body = live.object.into_body();
                if !is_marked {
                    unmark(&mut body);
                }
                self.memory.put(Object::new(body).expect("it was an object before"));
            }
            Event::Squat(name) => self.squat(name_of(*name)),
            Event::Fail(verb, reason) => self.memory.fail_next(*verb, None, *reason),
            Event::Lose(verb) => self.memory.lose_next_answer(*verb, None),
        }
    }

    /// One of the objects with our mark, if there are any.
    fn pick(&self, index: Index) -> Option<Live> {
        let marked: Vec<Live> = self.marked().into_values().collect();
        (!marked.is_empty()).then(|| index.get(&marked).clone())
    }

    fn put(&self, object: Index, change: impl FnOnce(&mut Value)) {
        let Some(live) = self.pick(object) else { return };
        let mut body = live.object.into_body();
        change(&mut body);
        self.memory.put(Object::new(body).expect("it was an object before"));
    }

    fn squat(&self, name: &str) {
        let id = ObjectId::new("", "ConfigMap", "infra", name);
        if !self.memory.objects().contains_key(&id) {
            let metadata = json!({"name": name, "namespace": "infra"});
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            self.memory.put(Object::new(body).expect("it has all that it needs"));
        }
    }

    fn is_ours(&self, object: &Object) -> bool {
        self.installation.marker.owner(object) == Owner::Us
    }

    fn marked(&self) -> BTreeMap<ObjectId, Live> {
        self.memory.objects().into_iter().filter(|(_, live)| self.is_ours(&live.object)).collect()
    }

    fn unmarked(&self) -> BTreeMap<ObjectId, Live> {
        self.memory.objects().into_iter().filter(|(_, live)| !self.is_ours(&live.object)).collect()
    }

    async fn known(&self) -> BTreeSet<ObjectId> {
        self.installation.inventory(self.cluster.as_ref()).await.entries.into_keys().collect()
    }

    /// Runs a round, which keeps its promises whatever fails in it.
    pub(crate) async fn round(&self) {
        let (before, unmarked, known) = (self.marked(), self.unmarked(), self.known().await);
        let mortal = Mortal::new(&self.cluster, None);
        let cluster: Arc<dyn Cluster> = mortal.clone();
        let report = self.installation.round(&self.specs, &cluster).await;

        let after = self.memory.objects();
        let wanted = self.installation.wanted(&self.specs);
        for (id, live) in &unmarked {
            let now = after.get(id);
            let is_adopted = self.adopts && wanted.contains(id) && now.is_some_and(|now| now.uid == live.uid);
            assert!(now == Some(live) || is_adopted, "{id} is not ours: {report:?}");
        }
        for id in before.keys().filter(|id| !after.contains_key(*id)) {
            let is_unwanted = known.contains(id) && !wanted.contains(id) && !self.is_broken(&id.name);
            assert!(is_unwanted, "{id} was deleted: {report:?}");
        }
        let known = self.known().await;
        let unknown: Vec<ObjectId> = self.marked().into_keys().filter(|id| !known.contains(id)).collect();
        assert_eq!(unknown, [], "not in the inventory: {report:?}");
        assert_order(&mortal.done(), &before, &after, &report);
    }

    /// Tells whether the file of a Gateway is there and says nothing.
    fn is_broken(&self, name: &str) -> bool {
        self.specs.get(&format!("{name}.json")).is_some_and(|text| text.ends_with("}}}"))
    }

    /// Everything is as it is wanted, except where it is not ours, and a plan has nothing to do.
    pub(crate) async fn assert_converged(&self) {
        let plan = self.installation.plan(&self.specs, &self.cluster).await;
        assert_eq!(plan.state, ClusterState::Planned, "{plan:?}");
        let open: Vec<_> = plan.steps.iter().filter(|step| step.action.word() != "keep").collect();
        assert!(open.is_empty(), "{open:?} in {plan:?}");
        let live = self.memory.objects();
        let rendering = self.installation.rendering(&self.specs);
        for unit in &rendering.units {
            let is_foreign = |object: &&Object| live.get(object.id()).is_some_and(|live| !self.is_ours(&live.object));
            if unit.all().any(|object| is_foreign(&object)) {
                continue;
            }
            for object in unit.all() {
                let object = self.installation.marker.mark(object.clone());
                assert_eq!(live.get(object.id()).map(|live| &live.object), Some(&object), "{plan:?}");
            }
        }
        let wanted = self.installation.wanted(&self.specs);
        let refused: BTreeSet<&ObjectId> = plan.refusals.iter().map(|refusal| &refusal.id).collect();
        let left: Vec<_> =
            self.marked().into_keys().filter(|id| !wanted.contains(id) && !refused.contains(id)).collect();
        assert_eq!(left, [], "nobody wants it: {plan:?}");
    }
}

/// Checks that the objects that a Deployment needs are there before it, and go after it.
fn assert_order(
    done: &[Effect],
    before: &BTreeMap<ObjectId, Live>,
    after: &BTreeMap<ObjectId, Live>,
    report: &ClusterReport,
) {
    let needs =
        |id: &ObjectId| ["ServiceAccount", "ConfigMap"].map(|kind| ObjectId::new("", kind, &id.namespace, &id.name));
    for (at, effect) in done.iter().enumerate() {
        let Effect::Create(id) = effect else { continue };
        for need in needs(id).into_iter().filter(|_| id.kind == "Deployment") {
            let (create, adopt) = (Effect::Create(need.clone()), Effect::Update(need.clone()));
            let is_done = done[..at].contains(&create) || done[..at].contains(&adopt);
            // The answer may have been lost.
            let is_made = after.contains_key(&need) && !done.contains(&create);
            assert!(before.contains_key(&need) || is_done || is_made, "{effect:?} at {at} in {done:?}");
        }
    }
    let prunes = report.steps.iter().filter(|step| step.action.word() == "prune" && step.id.kind == "Deployment");
    for step in prunes {
        let after = done.iter().position(|effect| *effect == Effect::Delete(step.id.clone()));
        for need in needs(&step.id) {
            let place = done.iter().position(|effect| *effect == Effect::Delete(need.clone()));
            assert!(place.is_none_or(|place| after.is_some_and(|after| after < place)), "{need} in {done:?}");
        }
    }
}

fn name_of(index: Index) -> &'static str {
    let name: &&str = index.get(&NAMES);
    name
}

fn unmark(body: &mut Value) {
    for (field, key) in [("labels", SYNC_LABEL), ("labels", OWNER_LABEL), ("annotations", OWNER_ANNOTATION)] {
        body["metadata"][field].as_object_mut().and_then(|marks| marks.remove(key));
    }
}
