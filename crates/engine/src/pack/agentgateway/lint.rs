//! What is allowed, and yet hardly what somebody meant.

use super::config::is_catalog_ignored;
use super::ports::{INTERNAL, RESERVED, internal};
use crate::merge::origin::Merged;
use crate::pack::Subject;
use crate::problem::Problem;

/// Returns a remark for everything of that sort.
pub(super) fn lint(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    reserved_ports(subject).chain(internal_ports(subject)).chain(catalog(parameters)).collect()
}

/// A listener on a port that the proxy itself takes: it opens nothing.
fn reserved_ports<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Problem> + 'a {
    let listeners = subject.gateway.spec.listeners.iter().enumerate();
    listeners.filter(|(_, listener)| RESERVED.contains(&listener.port)).map(|(index, listener)| {
        let message = format!("port {} of the listener {:?} is one of the proxy's own", listener.port, listener.name);
        let place = subject.document.place_of(&["spec", "listeners", &index.to_string(), "port"]);
        let hint = "nothing is opened for this listener; give it another port";
        Problem::notice(place, message).about(subject.document.id.clone()).hint(hint)
    })
}

/// An annotation that names a port of nobody: it does not count.
fn internal_ports(subject: &Subject<'_>) -> Option<Problem> {
    let own = subject.gateway.spec.listeners.iter().map(|listener| listener.port).collect();
    let mistake = internal(&subject.gateway.metadata, &own).err()?;
    let place = subject.document.place_of(&["metadata", "annotations", INTERNAL]);
    let problem = Problem::notice(place, format!("the annotation {INTERNAL} is not used: {mistake}"));
    Some(problem.about(subject.document.id.clone()))
}

/// A catalog that everybody is to have. The remark names no Gateway, because it is the same for all of them.
fn catalog(parameters: &Merged) -> Option<Problem> {
    let sources = parameters.at("modelCatalog.sources").filter(|_| is_catalog_ignored(parameters))?;
    let message = "spec.modelCatalog counts only in the parameters of a Gateway, and is left out here";
    let hint =
        "its ConfigMaps are those of the Gateway's namespace; refer to it from spec.infrastructure.parametersRef";
    Some(Problem::notice(sources.origin.place.clone(), message).hint(hint))
}
