//! Pods on the cluster that need what may be deleted: of others, and of workloads of ours that an operator looks after.
//!
//! One page of pods for each namespace in which something of these kinds goes, and nothing where nothing does. Without the
//! right to list pods nobody looks.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::guard::in_use::PodUser;
use gatewright_engine::references::{is_referred_to, of_pod, templates};
use gatewright_engine::relations::pod_labels;
use gatewright_engine::unit::Unit;
use tracing::debug;

use crate::cluster::{Cluster, ClusterError, Search};
use crate::reconcile::model::Facts;
use crate::reconcile::requests::only_local;

/// The most steps from a pod to what it was made for: a worker of a group over its set, its leader, the leaders' set and the
/// group to the service.
const DEEPEST: usize = 6;

/// The most owners of pods that are read in a round.
const MOST_OWNERS: usize = 20;

/// Looks for the pods that need what may be deleted.
pub(super) async fn look(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    let objects = if cluster.has_health() { candidates(facts, observed) } else { BTreeSet::new() };
    let namespaces: BTreeSet<&str> = objects.iter().map(|id| id.namespace.as_str()).collect();
    let mut users: BTreeMap<ObjectId, Vec<PodUser>> = BTreeMap::new();
    let mut owners = Owners { known: BTreeMap::new(), cluster, facts, observed };
    for namespace in namespaces {
        let search = Search { namespace, labels: "", fields: "" };
        let pods = match cluster.search(&Gvk::new("v1", "Pod"), search).await {
            Ok(pods) => pods,
            Err(error) => {
                debug!(namespace, reason = only_local(error)?, "cannot see which pods need what is to be deleted");
                continue;
            }
        };
        for pod in pods.iter().filter(|pod| !is_over(pod)) {
            let named = of_pod(&pod.object.body()["spec"]).into_iter().map(|reference| reference.id(namespace));
            let needed: BTreeSet<ObjectId> = named.filter(|id| objects.contains(id)).collect();
            if needed.is_empty() {
                continue;
            }
            let user = PodUser { pod: pod.object.id().clone(), of: owners.of(pod).await };
            for id in needed {
                users.entry(id).or_default().push(user.clone());
            }
        }
    }
    observed.users = users;
    Ok(())
}

/// What may be deleted and may be needed by pods.
fn candidates(facts: &Facts, observed: &Observed) -> BTreeSet<ObjectId> {
    let policies = &facts.policies;
    let wanted: BTreeSet<&ObjectId> = facts.rendering.units.iter().flat_map(Unit::all).map(Object::id).collect();
    // What is on its way out already is not deleted again, so that nobody need be asked about it in each round.
    let is_there = |id: &ObjectId| observed.live.get(id).is_some_and(|live| !live.is_terminating());
    let goes = |id: &ObjectId| is_referred_to(id) && !wanted.contains(id) && is_there(id);
    let owned = facts.owned.entries.iter().filter(|(id, entry)| goes(id) && policies.is_about(&entry.unit));
    owned.filter(|(id, _)| policies.prune && policies.claims.by(id).is_none()).map(|(id, _)| id.clone()).collect()
}

/// A pod that has ended, or is about to, needs nothing any more.
fn is_over(pod: &Live) -> bool {
    let phase = pod.object.body()["status"]["phase"].as_str();
    pod.is_terminating() || phase.is_some_and(|phase| ["Succeeded", "Failed"].contains(&phase))
}

/// Finds out which pods are of objects of ours.
struct Owners<'a> {
    /// The answers so far, by the uid of the owner that was asked for.
    known: BTreeMap<String, Option<ObjectId>>,
    cluster: &'a dyn Cluster,
    facts: &'a Facts,
    observed: &'a Observed,
}

impl Owners<'_> {
    async fn of(&mut self, pod: &Live) -> Option<ObjectId> {
        if let Some(id) = self.selected_by(pod) {
            return Some(id);
        }
        let mut owner = Owner::of(pod)?;
        let first = owner.uid.clone();
        for _ in 0..DEEPEST {
            if let Some(known) = self.known.get(&owner.uid) {
                return known.clone();
            }
            if let Some(live) = self.observed.live.values().find(|live| live.uid == owner.uid) {
                return self.is(first, Some(live.object.id().clone()));
            }
            if self.known.len() >= MOST_OWNERS {
                return None;
            }
            let read = self.cluster.get(&owner.gvk, &owner.id).await;
            let live = read.inspect_err(|error| debug!(error = %Chain(error), "cannot read whose a pod is"));
            let Some(next) = live.ok().flatten().as_ref().and_then(Owner::of) else { break };
            owner = next;
        }
        self.is(first, None)
    }

    fn is(&mut self, uid: String, id: Option<ObjectId>) -> Option<ObjectId> {
        self.known.insert(uid, id.clone());
        id
    }

    /// Returns the workload that knows a pod by its labels; it need not be read for that.
    fn selected_by(&self, pod: &Live) -> Option<ObjectId> {
        let kinds = &self.facts.policies.kinds;
        let wanted = self.facts.rendering.units.iter().flat_map(Unit::all);
        let live = self.observed.live.values().map(|live| &live.object);
        let near = wanted.chain(live).filter(|object| object.id().namespace == pod.object.id().namespace);
        let labels = &pod.object.body()["metadata"]["labels"];
        let selects = |object: &&Object| {
            let selector = pod_labels(object.body()).filter(|_| !templates(object.body(), kinds).is_empty());
            selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value))
        };
        near.filter(selects).map(|object| object.id().clone()).next()
    }
}

/// The owner that an object names.
struct Owner {
    gvk: Gvk,
    id: ObjectId,
    uid: String,
}

impl Owner {
    /// Returns the owner that looks after an object, in its namespace.
    fn of(live: &Live) -> Option<Self> {
        let references = live.object.body()["metadata"]["ownerReferences"].as_array()?;
        let reference = references.iter().find(|it| it["controller"] == true).or_else(|| references.first())?;
        let field = |name: &str| reference[name].as_str();
        let gvk = Gvk::new(field("apiVersion")?, field("kind")?);
        let id = ObjectId::new(&gvk.group, &gvk.kind, &live.object.id().namespace, field("name")?);
        Some(Self { gvk, id, uid: field("uid")?.to_owned() })
    }
}
