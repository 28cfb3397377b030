//! Overlays that do less than they seem to. Fields that the object does not have are told by a rule about it.

use serde_json::Value;

use super::Said;
use crate::diff::{Path, Segment, plain};
use crate::object::Object;
use crate::patch::ambiguity::Ambiguity;
use crate::patch::ambiguous;
use crate::problem::Problem;
use crate::yaml::Node;

const HINT: &str = "write the whole list, with {$patch: replace} as one of its items";

/// Returns a warning for everything of that sort in a patch of an object.
///
/// It names no Gateway, so that one line in the parameters of a class is one warning and not a thousand.
pub(super) fn lint(said: &Said<'_>, object: &Object, change: &Value) -> Vec<Problem> {
    let gvk = object.gvk();
    let twice = ambiguous(change, &gvk).into_iter().filter_map(|ambiguity| {
        let second = list(said.node, &ambiguity.path)?.items().get(*ambiguity.items.get(1)?)?;
        let message = format!("{}, so they merge into one", shared(&ambiguity, ""));
        Some(warning(said, second, &message))
    });
    twice.chain(of_object(said, object)).collect()
}

/// Items of the object that are not the only ones of their key.
fn of_object(said: &Said<'_>, object: &Object) -> Vec<Problem> {
    let of_object = ambiguous(object.body(), &object.gvk()).into_iter().flat_map(|ambiguity| {
        let items = list(said.node, &ambiguity.path).into_iter().flat_map(|list| {
            let value = plain(&ambiguity.value);
            items(list, ambiguity.key, &value).collect::<Vec<_>>()
        });
        let warning = |item| {
            let effect = match directive(item) {
                Some(_) => "all of them go",
                None => "only the first of them changes",
            };
            warning(said, item, &format!("{}, and {effect}", shared(&ambiguity, " of the object")))
        };
        items.map(warning).collect::<Vec<_>>()
    });
    of_object.collect()
}

fn shared(ambiguity: &Ambiguity, of: &str) -> String {
    let Ambiguity { path, key, value, items } = ambiguity;
    format!("{} items in {}{of} share the merge key {key}={}", items.len(), Path(path), plain(value))
}

fn warning(said: &Said<'_>, item: &Node, message: &str) -> Problem {
    Problem::warning(said.place(item.position), format!("{}: {message}", said.overlay.path)).hint(HINT)
}

/// Follows a path through a patch. A list that is replaced leads nowhere: nothing in it has to be found.
fn list<'a>(overlay: &'a Node, path: &[Segment]) -> Option<&'a Node> {
    let found = path.iter().try_fold(overlay, step)?;
    let replaces = |item: &Node| directive(item) == Some("replace");
    (!found.items().iter().any(replaces)).then_some(found)
}

/// Returns what a segment leads to.
pub(super) fn step<'a>(node: &'a Node, segment: &Segment) -> Option<&'a Node> {
    match segment {
        Segment::Field(field) => node.get(field),
        Segment::Index(index) => node.items().get(*index),
        Segment::Key(key, value) => items(node, key, value).next(),
    }
}

/// Returns the items of a list that have this key, `value` being what is read of it.
fn items<'a>(list: &'a Node, key: &str, value: &str) -> impl Iterator<Item = &'a Node> {
    let is_it = move |item: &&Node| item.get(key).is_some_and(|node| plain(&node.to_value()) == value);
    list.items().iter().filter(is_it)
}

fn directive(item: &Node) -> Option<&str> {
    item.get("$patch").and_then(Node::as_str)
}
