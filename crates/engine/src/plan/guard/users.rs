//! Deletions of what pods that stay name: their Secrets, `ConfigMap`s, claims and accounts. Without them no pod of theirs
//! starts again, which nobody notices before a node is drained.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::object::ObjectId;
use crate::plan::{Inputs, Plan};
use crate::references::of_pod;
use crate::relations::templates;

/// The workloads that stay, by what their pods name.
#[derive(Debug, Default)]
pub(super) struct Users(BTreeMap<ObjectId, ObjectId>);

impl Users {
    /// Looks for the users of what a plan deletes: what is wanted, and what exists and is left as it is.
    pub(super) fn of(plan: &Plan, inputs: Inputs<'_>) -> Self {
        // It is hardly ever something that pods can name, and to look through everything takes time.
        let may_be_named = |id: &ObjectId| id.group.is_empty() && !id.namespace.is_empty();
        if !plan.prunes().any(|step| may_be_named(&step.id)) {
            return Self::default();
        }
        let changed: BTreeSet<&ObjectId> = plan.steps.iter().map(|step| &step.id).collect();
        let wanted = inputs.rendering.units.iter().flat_map(|unit| unit.specs.iter().chain(&unit.objects));
        let left = inputs.observed.live.iter().filter(|(id, _)| !changed.contains(id));
        let mut users = Self::default();
        for (id, body) in wanted.map(|object| (object.id(), object.body())) {
            users.add(id, body, inputs);
        }
        for (id, body) in left.map(|(id, live)| (id, live.object.body())) {
            users.add(id, body, inputs);
        }
        users
    }

    fn add(&mut self, user: &ObjectId, body: &Value, Inputs { policies, .. }: Inputs<'_>) {
        for template in templates(body, &policies.kinds) {
            for reference in of_pod(&template["spec"]) {
                let id = ObjectId::new("", reference.kind, &user.namespace, reference.name);
                self.0.entry(id).or_insert_with(|| user.clone());
            }
        }
    }

    /// Says who uses an object, if somebody does.
    pub(super) fn reason(&self, id: &ObjectId) -> Option<String> {
        self.0.get(id).map(|user| format!("is used by the pods of {user}, which stays"))
    }
}
