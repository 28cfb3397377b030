//! Guards on a real API server: what waits for a person, and what a token lifts, and not one step more.

mod adopt;
mod delete_first;
mod deletion;
mod dependence;
mod recreate;
mod tokens;

use serde_json::{Value, json};

use crate::ownership::site::Site;
use crate::program::Run;

/// The tokens that a run has printed, in their order.
fn tokens(run: &Run) -> Vec<String> {
    let lines = run.out.lines().filter_map(|line| line.trim().strip_prefix("gatewright approve "));
    lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// The only token of a run.
#[track_caller]
pub(crate) fn token(run: &Run) -> String {
    let mut all = tokens(run);
    assert_eq!(all.len(), 1, "{}", run.out);
    all.remove(0)
}

/// A document that no pack renders, applied as it is.
fn document(site: &Site, version: &str, kind: &str, name: &str, rest: &Value) -> String {
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": site.name}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object.to_string()
}
