//! Namespaces that are made for objects.

use std::collections::BTreeSet;

use super::{Action, NamespaceState, Observed, Plan, Step};
use crate::object::{Object, ObjectId};

impl Plan {
    /// Namespaces of objects that are to be made; what they are for was decided with the objects.
    pub(super) fn add_namespaces(&mut self, observed: &Observed) {
        let makes = |step: &&Step| matches!(step.action, Action::Create | Action::Generate(_));
        let created = self.steps.iter().filter(makes);
        let namespaces: BTreeSet<String> = created.map(|step| step.id.namespace.clone()).collect();
        let is_made = |name: &str| is_created(&self.steps, name);
        let is_absent =
            |name: &&String| observed.namespaces.get(*name) == Some(&NamespaceState::Absent) && !is_made(name);
        let steps: Vec<Step> = namespaces.iter().filter(is_absent).map(|name| namespace_step(name)).collect();
        self.steps.extend(steps);
    }
}

/// Tells whether one of the steps makes a namespace that stands in the source.
pub(super) fn is_created(steps: &[Step], namespace: &str) -> bool {
    let is_it = |id: &ObjectId| id.group.is_empty() && id.kind == "Namespace" && id.name == namespace;
    steps.iter().any(|step| step.action == Action::Create && is_it(&step.id))
}

fn namespace_step(name: &str) -> Step {
    let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let object = Object::new(body).expect("the name of a namespace is never empty");
    let step = Step::new(object.id(), object.id(), object.gvk(), Action::CreateNamespace);
    Step { object: Some(object), ..step }
}
