//! A cluster in memory, to plan against: for tests, examples and those who embed the engine.
//!
//! It has what a plan goes by: uids, resource versions, and writes that fail if somebody else was there first. It knows
//! no fields and no defaults: what is applied replaces what is there, whoever has set it, and nothing is filled in.
//! Namespaces need not exist, nothing is ever unhealthy, and a deletion is over at once.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::inventory::Inventory;
use crate::live::Live;
use crate::object::{Object, ObjectId};
use crate::plan::{Action, Observed, Over, Plan, Step};
use crate::text::digest;

/// A cluster in memory.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    identity: String,
    objects: BTreeMap<ObjectId, Live>,
    version: u64,
}

/// A step that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A guard holds the whole plan, which says why.
    #[error("cannot apply a plan that a guard holds")]
    Held,
    /// Somebody has made, changed or deleted the object since it was observed.
    #[error("cannot {action} {id}: it was changed since it was observed")]
    Conflict {
        /// The word for the action.
        action: &'static str,
        /// The object.
        id: ObjectId,
    },
}

impl Cluster {
    /// Makes an empty cluster; `identity` tells it from others, as the uid of `kube-system` does.
    pub fn new(identity: &str) -> Self {
        Self::from_objects(identity, [])
    }

    /// Begins with objects as another cluster has them.
    pub fn from_objects(identity: &str, objects: impl IntoIterator<Item = Live>) -> Self {
        let objects: BTreeMap<_, _> = objects.into_iter().map(|live| (live.object.id().clone(), live)).collect();
        let versions = objects.values().filter_map(|live| live.resource_version.parse().ok());
        Self { identity: identity.to_owned(), version: versions.max().unwrap_or(0), objects }
    }

    /// Returns all objects.
    pub fn objects(&self) -> &BTreeMap<ObjectId, Live> {
        &self.objects
    }

    /// Returns all that a plan can be made from.
    pub fn observed(&self) -> Observed {
        Observed::from_objects(&self.identity, self.objects.values().cloned())
    }

    /// Puts an object there, whoever had one of this name; one that says the same keeps its version.
    pub fn put(&mut self, object: Object) -> Live {
        let live = self.stored(object);
        self.objects.insert(live.object.id().clone(), live.clone());
        live
    }

    /// Returns what an object would become, as a dry run does.
    pub fn stored(&mut self, object: Object) -> Live {
        let uid = match self.objects.get(object.id()) {
            Some(live) if live.object == object => return live.clone(),
            Some(live) => live.uid.clone(),
            None => format!("uid-{}", self.next()),
        };
        Live { object, uid, resource_version: self.next().to_string() }
    }

    /// Takes an object away.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Live> {
        self.objects.remove(id)
    }

    /// Tells whether an object is the one that was planned for: this very version, or none.
    pub fn agrees(&self, id: &ObjectId, over: Option<&Over>) -> bool {
        self.objects.get(id).map(Over::of).as_ref() == over
    }

    /// Carries out a plan, step by step, and returns the inventory for the next one.
    ///
    /// Where a step fails, those before it are done: plan again, with the inventory of the plan. A value that is made
    /// once is not random here.
    pub fn apply(&mut self, plan: &Plan) -> Result<Inventory, ApplyError> {
        if plan.is_stopped() {
            return Err(ApplyError::Held);
        }
        let mut inventory = plan.inventory.clone();
        for step in &plan.steps {
            let written = self.carry_out(step)?;
            inventory.record_uids(&written);
            if step.action.disowns() {
                inventory.entries.remove(&step.id);
            }
        }
        Ok(inventory)
    }

    fn carry_out(&mut self, step: &Step) -> Result<Option<Live>, ApplyError> {
        if !step.action.changes() {
            return Ok(None);
        }
        if !self.agrees(&step.id, step.action.over()) {
            return Err(ApplyError::Conflict { action: step.action.word(), id: step.id.clone() });
        }
        if step.action.deletes() || matches!(step.action, Action::Recreate(_)) {
            self.objects.remove(&step.id);
        }
        let object = step.object.as_ref().map(|object| match &step.action {
            // Digits are hexadecimal and Base64 both.
            Action::Generate(it) => it.value.filled(object, &STANDARD.encode(digest(object.id().key().as_bytes()))),
            _ => object.clone(),
        });
        Ok(object.map(|object| self.put(object)))
    }

    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Marker;
    use crate::pack::Packs;
    use crate::plan::plan;
    use crate::plan::policies::Policies;
    use crate::tree::Tree;
    use crate::unit::{Options, render};

    const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: infra}, data: {size: small}}";
    const SECRET: &str =
        "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: infra}, stringData: {key: OLD}}";

    /// Plans what these documents want.
    fn planned(documents: &[(&str, &str)], cluster: &Cluster, owned: &Inventory) -> Plan {
        let packs = Packs::new(Vec::new()).expect("there are none");
        let options = Options { apply_unclaimed: true, ..Options::default() };
        let marker = Marker::new("0123456789abcdef", "edge");
        let wanted = render(&Tree::from_iter(documents.iter().copied()), &packs, &options).marked(&marker);
        plan(&wanted, &cluster.observed(), owned, &Policies::new(marker))
    }

    #[test]
    fn what_was_applied_is_known_again_and_goes_with_its_file() {
        let mut cluster = Cluster::new("c");
        let both = [("a.yaml", MAP), ("b.yaml", SECRET)];
        let first = planned(&both, &cluster, &Inventory::default());
        let owned = cluster.apply(&first).expect("nothing was there");
        assert_eq!((cluster.objects().len(), owned.entries.len()), (2, 2));
        let again = planned(&both, &cluster, &owned);
        assert_eq!((again.to_string(), again.is_empty()), ("plan: no changes, 2 unchanged".to_owned(), true));
        assert_eq!(cluster.clone().apply(&again), Ok(owned.clone()), "to change nothing is to own the same");

        let without = planned(&both[1..], &cluster, &owned);
        assert_eq!(without.to_string(), "- prune ConfigMap infra/a\nplan: 1 to prune, 1 unchanged");
        let owned = cluster.apply(&without).expect("nobody was faster");
        assert_eq!((cluster.objects().len(), owned.entries.len()), (1, 1));
    }

    #[test]
    fn a_plan_shows_what_differs_and_no_secret() {
        let mut cluster = Cluster::new("c");
        let owned = cluster.apply(&planned(&[("a.yaml", MAP), ("b.yaml", SECRET)], &cluster, &Inventory::default()));
        let (map, secret) = (MAP.replace("small", "large"), SECRET.replace("OLD", "NEW"));
        let plan = planned(&[("a.yaml", &map), ("b.yaml", &secret)], &cluster, &owned.expect("nothing was there"));
        let text = plan.to_string();
        assert!(text.contains("~ update ConfigMap infra/a\n    data.size: \"small\" -> \"large\"\n"), "{text}");
        assert!(text.contains("~ update Secret infra/b\n    data.key: "), "{text}");
        for secret in ["OLD", "NEW", "T0xE", "TkVX"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn what_somebody_has_changed_since_it_was_observed_is_left_alone() {
        let mut cluster = Cluster::new("c");
        let document = [("a.yaml", MAP)];
        let plan = planned(&document, &cluster, &Inventory::default());
        let theirs = cluster.put(plan.steps[0].object.clone().expect("it is made"));
        let error = cluster.apply(&plan).expect_err("it is there");
        assert_eq!(error.to_string(), "cannot create ConfigMap infra/a: it was changed since it was observed");
        assert_eq!(cluster.objects().values().collect::<Vec<_>>(), [&theirs]);
        assert!(cluster.put(theirs.object.clone()) == theirs, "the same again is no new version");
    }

    #[test]
    fn nothing_is_done_of_a_plan_that_a_guard_holds() {
        let mut cluster = Cluster::new("c");
        let plan = planned(&[("a.yaml", MAP)], &cluster, &Inventory::default());
        let owned = cluster.apply(&plan).expect("nothing was there");
        let empty = planned(&[], &cluster, &owned);
        assert!(empty.to_string().contains("held by guard empty-render: "), "{empty}");
        assert_eq!(cluster.apply(&empty), Err(ApplyError::Held));
        assert_eq!(cluster.objects().len(), 1);
    }
}
