//! Files of other tools that stand beside specs: they hold no objects, and are no mistakes.

use std::sync::Arc;

use super::Specs;
use crate::problem::{Place, Problem};
use crate::yaml::Node;

/// The names of the files by which kustomize puts manifests together.
const KUSTOMIZATIONS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// The group of what they hold.
const KUSTOMIZE: &str = "kustomize.config.k8s.io/";

impl Specs {
    /// Passes over a file of another tool; tells whether it is one. That it held a spec before is not forgotten: what was
    /// made of that is held.
    pub(super) fn passes_over(&mut self, file: &Arc<str>, roots: &[Node]) -> bool {
        let text = |root: &Node, field: &str| root.get(field).and_then(Node::as_str).unwrap_or_default().to_owned();
        let is_nameless = |root: &Node| root.at(["metadata", "name"]).is_none();
        let name = file.rsplit('/').next().unwrap_or_default();
        let is_kustomization = |root: &Node| {
            let group = text(root, "apiVersion");
            group.starts_with(KUSTOMIZE) || (KUSTOMIZATIONS.contains(&name) && group.is_empty() && is_nameless(root))
        };
        let is_no_object = |root: &Node| root.get("apiVersion").is_none() && root.get("kind").is_none();
        if !roots.is_empty() && roots.iter().all(is_kustomization) {
            let message = "a kustomization is passed over: manifests are read as they stand";
            let problem = Problem::warning(Place::file(Arc::clone(file)), message);
            self.problems.push(problem.hint("have `kustomize build` write into a folder of its own, and read that"));
        } else if !(is_hidden(file) && roots.iter().all(is_no_object)) {
            return false;
        }
        self.reading.files.insert(Arc::clone(file), 0);
        true
    }
}

/// Tells whether a file, or a folder that it lies in, is hidden, as settings of tools are.
fn is_hidden(file: &str) -> bool {
    file.split('/').any(|part| part.starts_with('.') && part != "." && part != "..")
}
