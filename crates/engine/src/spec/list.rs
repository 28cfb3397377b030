//! Lists of documents.

use std::sync::Arc;

use super::{Kinds, Specs, with_article};
use crate::problem::{Place, Problem};
use crate::yaml::{Content, Node};

/// Returns the items of a list, as kubectl takes one: a `List`, or a list of one kind, such as a `GatewayList`, which has no
/// name.
pub fn items_of(root: &Node) -> Option<&Node> {
    let kind = root.get("kind").and_then(Node::as_str)?;
    let is_list = kind == "List" || (kind.ends_with("List") && root.at(["metadata", "name"]).is_none());
    root.get("items").filter(|_| is_list)
}

impl Specs {
    /// Reads the documents of a list, as `kubectl get --output yaml` writes it.
    pub(super) fn add_list(&mut self, file: &Arc<str>, root: &Node, kinds: &Kinds) {
        if root.get("sops").is_some() {
            let problem = Problem::file(Place::at(file, root.position), "the list is still encrypted with sops");
            return self.spoil(problem.hint("gatewright decrypts nothing; keep secrets out of it"));
        }
        let items = root.get("items").unwrap_or(root);
        if !matches!(items.content, Content::List(_)) {
            let message = format!("items is {}, but must be a list", with_article(items.content.type_name()));
            return self.spoil(Problem::file(Place::at(file, items.position), message));
        }
        items.items().to_vec().into_iter().for_each(|item| self.add(file, item, kinds));
    }
}
