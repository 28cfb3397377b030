//! Gateways that the source leaves to the deployer of their control plane, from which they were adopted.
//!
//! They stand in the source, and nothing is made of them here. What was made of them stays until it is handed back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Deployer, Options, Unit, render};
use crate::marks::MANAGED_ANNOTATION;
use crate::object::{Object, ObjectId};
use crate::pack::Packs;
use crate::problem::{Place, Problem};
use crate::selector::ClusterFacts;
use crate::spec::Document;
use crate::tree::Tree;

/// A Gateway that is left to its deployer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Released {
    /// The place where the source says so.
    pub place: Place,
    /// The Gateway as it is written.
    pub gateway: Object,
    /// The `ListenerSet`s of the source that attach to it.
    pub attached: Vec<Object>,
    /// The parameters that tell the deployer to leave the Gateway to us; `None` if it cannot be told.
    pub told: Option<ObjectId>,
    /// The deployer.
    pub deployer: Deployer,
}

/// Tells whether a document says that it is left to the deployer. What is neither yes nor no is a mistake: whoever meant
/// no would see the Gateway changed.
pub(super) fn is_released(document: &Document) -> Result<bool, Box<Problem>> {
    let path = ["metadata", "annotations", MANAGED_ANNOTATION];
    match document.root.at(path).map(|value| value.as_str()) {
        None | Some(Some("true")) => Ok(false),
        Some(Some("false")) => Ok(true),
        Some(_) => {
            let problem = document.problem(&path, format!("{MANAGED_ANNOTATION} is \"true\" or \"false\", a text"));
            Err(Box::new(problem.hint("\"false\" leaves it to the deployer of its control plane")))
        }
    }
}

impl Released {
    /// Says that nothing is made of it here.
    pub(super) fn warning(&self, id: &ObjectId) -> Problem {
        let message = format!("{MANAGED_ANNOTATION} leaves it to {}", self.deployer.manager);
        let release =
            format!("`gatewright release {}` hands it back; until then keep the document, for without it", id.path());
        let hint = format!("{release} what was made for it is pruned");
        Problem::warning(self.place.clone(), message).about(id.clone()).hint(hint)
    }

    /// Renders what its deployer does from its class and parameters, as they are on a cluster, which has settings of its
    /// own perhaps. `packs` have no settings that the deployer does not have.
    ///
    /// # Errors
    /// The reason why it would render nothing, in words.
    pub fn deployed(&self, packs: &Packs, cluster: &ClusterFacts, beside: &[&Object]) -> Result<Unit, String> {
        let options = Options { cluster: Some(cluster.clone()), ..Options::default() };
        let documents = beside.iter().copied().chain(&self.attached).chain([&self.gateway]).map(bare);
        let files = documents.enumerate().map(|(index, document)| (format!("{index}.yaml"), document.to_string()));
        let rendering = render(&files.collect::<Tree>(), packs, &options);
        let id = self.gateway.id();
        if rendering.self_managed.contains(id) {
            return Err("its own parameters on the cluster say that somebody else provisions it".to_owned());
        }
        rendering.units.into_iter().find(|unit| unit.id == *id).ok_or_else(|| {
            let problems: Vec<&str> = rendering.problems.iter().map(|problem| problem.message.as_str()).collect();
            format!("from what is on the cluster nothing can be rendered: {}", problems.join("; "))
        })
    }
}

/// Returns what a person writes of an object.
fn bare(object: &Object) -> Value {
    let body = object.body();
    let fields = ["name", "namespace"].into_iter().filter_map(|field| Some((field, body["metadata"].get(field)?)));
    let metadata: Map<String, Value> = fields.map(|(field, value)| (field.to_owned(), value.clone())).collect();
    json!({"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": body["spec"]})
}
