//! Names of rendered Services, which have to be shorter and simpler than those of other objects.

use std::sync::LazyLock;

use regex::Regex;

use super::{SERVICE_NAME, Severities};
use crate::object::{Object, ObjectId};
use crate::problem::Problem;
use crate::spec::Specs;
use crate::unit::Unit;

/// A DNS label as of RFC 1035.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$").expect("a test reads it"));

/// Returns what is wrong with the names of the Services of Gateways, each with the Gateway.
pub(super) fn check(units: &[Unit], specs: &Specs, severities: &Severities) -> Vec<(ObjectId, Problem)> {
    let Some(scope) = severities.scope(SERVICE_NAME, true) else { return Vec::new() };
    let wrong = units.iter().filter_map(|unit| {
        let document = specs.documents.get(&unit.id).filter(|document| document.id.kind == "Gateway")?;
        let is_wrong = |id: &ObjectId| id.is_a("", "Service") && id.name == unit.id.name && !NAME.is_match(&id.name);
        let service = unit.objects.iter().map(Object::id).find(|id| is_wrong(id))?;
        let message = format!("{service} is rendered for it, and no API server takes a Service of that name");
        let problem = document.problem(&["metadata", "name"], message).by(SERVICE_NAME);
        let hint =
            "call the Gateway by up to 63 lower-case letters, digits and hyphens, of which the first is a letter";
        Some((unit.id.clone(), Problem { scope, ..problem.hint(hint) }))
    });
    wrong.collect()
}
