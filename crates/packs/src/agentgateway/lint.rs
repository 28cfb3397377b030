//! Warnings about what is allowed, and yet hardly what somebody meant.

use std::collections::BTreeSet;

use gatewright_engine::merge::origin::{Merged, MergedContent};
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;

use super::config::is_catalog_ignored;
use super::ports::{INTERNAL, RESERVED, internal};
use crate::gateway::lint::{host_in_repository, text};

/// Returns a warning for everything of that sort.
///
/// A warning about parameters names no Gateway, so that one line in those of a class is one warning and not a thousand.
pub(super) fn lint(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    let mut warnings: Vec<Problem> = reserved_ports(subject).chain(internal_ports(subject)).collect();
    warnings.extend(host_in_repository(parameters, "image"));
    warnings.extend(zeros(parameters));
    warnings.extend(variables(parameters));
    warnings.extend(catalog(parameters));
    warnings
}

/// A listener on a port that the proxy itself takes: it opens nothing.
fn reserved_ports<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Problem> + 'a {
    let listeners = subject.gateway.spec.listeners.iter().enumerate();
    listeners.filter(|(_, listener)| RESERVED.contains(&listener.port)).map(|(index, listener)| {
        let message = format!("port {} of the listener {:?} is one of the proxy's own", listener.port, listener.name);
        let place = subject.document.place_of(&["spec", "listeners", &index.to_string(), "port"]);
        let hint = "nothing is opened for this listener; give it another port";
        Problem::warning(place, message).about(subject.document.id.clone()).hint(hint)
    })
}

/// An annotation that names a port of nobody: it does not count.
fn internal_ports(subject: &Subject<'_>) -> Option<Problem> {
    let own = subject.gateway.spec.listeners.iter().map(|listener| listener.port).collect();
    let mistake = internal(&subject.gateway.metadata, &own).err()?;
    let place = subject.document.place_of(&["metadata", "annotations", INTERNAL]);
    let problem = Problem::warning(place, format!("the annotation {INTERNAL} is not used: {mistake}"));
    Some(problem.about(subject.document.id.clone()))
}

/// Seconds of which agentgateway takes a zero for nothing at all.
fn zeros(parameters: &Merged) -> impl Iterator<Item = Problem> + '_ {
    [("shutdown.min", 10), ("shutdown.max", 60)].into_iter().filter_map(|(path, default)| {
        let said = parameters.at(path).filter(|said| said.is_zero())?;
        let message = format!("a {path} of 0 counts as {default}, as in agentgateway");
        Some(Problem::warning(said.origin.place.clone(), message).hint("write 1 for the shortest time that there is"))
    })
}

/// Variables that stand twice in one layer. Another layer's is meant to be replaced, and so is one of the proxy's own.
fn variables(parameters: &Merged) -> Vec<Problem> {
    let Some(MergedContent::List(items)) = parameters.at("env").map(|env| &env.content) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let named = items.iter().filter_map(|item| Some((item, item.get("name").and_then(text)?)));
    let second = named.filter(|(_, name)| !seen.insert(*name));
    second
        .map(|(item, name)| {
            let message = format!("the variable {name:?} stands here a second time; the last one counts");
            let hint = "an object that has both is refused by the API server";
            Problem::warning(item.origin.place.clone(), message).hint(hint)
        })
        .collect()
}

/// A catalog that everybody is to have.
fn catalog(parameters: &Merged) -> Option<Problem> {
    let sources = parameters.at("modelCatalog.sources").filter(|_| is_catalog_ignored(parameters))?;
    let message = "spec.modelCatalog counts only in the parameters of a Gateway, and is left out here";
    let hint =
        "its ConfigMaps are those of the Gateway's namespace; refer to it from spec.infrastructure.parametersRef";
    Some(Problem::warning(sources.origin.place.clone(), message).hint(hint))
}
