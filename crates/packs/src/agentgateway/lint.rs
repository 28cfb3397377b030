//! Warnings about what is allowed, and yet hardly what somebody meant.

use std::collections::BTreeSet;

use gatewright_engine::merge::origin::Merged;
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;

use super::config::is_catalog_ignored;
use super::ports::{INTERNAL, RESERVED, internal};
use crate::gateway::lint::{host_in_repository, listener_port, second_variable, variables, zero};
use crate::problems::warning;

/// Returns a warning for everything of that sort.
///
/// A warning about parameters names no Gateway, so that one line in those of a class is one warning and not a thousand.
pub(super) fn lint(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    let mut warnings: Vec<Problem> = reserved_ports(subject).chain(internal_ports(subject)).collect();
    warnings.extend(host_in_repository(parameters, "image"));
    warnings.extend(zeros(parameters));
    warnings.extend(second_variables(parameters));
    warnings.extend(catalog(parameters));
    warnings
}

/// A listener on a port that the proxy itself takes: it opens nothing.
fn reserved_ports<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Problem> + 'a {
    let listeners = subject.gateway.spec.listeners.iter().enumerate();
    let hint = "nothing is opened for this listener; give it another port";
    let reserved = listeners.filter(|(_, listener)| RESERVED.contains(&listener.port));
    reserved.map(move |(index, _)| listener_port(subject, index, "one of the proxy's own", hint))
}

/// An annotation that names a port of nobody: it does not count.
fn internal_ports(subject: &Subject<'_>) -> Option<Problem> {
    let own = subject.gateway.spec.listeners.iter().map(|listener| listener.port).collect();
    let mistake = internal(&subject.gateway.metadata, &own).err()?;
    let message = format!("the annotation {INTERNAL} is not used: {mistake}");
    Some(warning(subject.document, &["metadata", "annotations", INTERNAL], message))
}

/// Seconds of which agentgateway takes a zero for nothing at all.
fn zeros(parameters: &Merged) -> impl Iterator<Item = Problem> + '_ {
    [("shutdown.min", 10), ("shutdown.max", 60)].into_iter().filter_map(|(path, default)| {
        let message = format!("a {path} of 0 counts as {default}, as in agentgateway");
        zero(parameters, path, &message, "write 1 for the shortest time that there is")
    })
}

/// Variables that stand twice in one layer. One of the proxy's own is meant to be replaced.
fn second_variables(parameters: &Merged) -> impl Iterator<Item = Problem> {
    let mut seen = BTreeSet::new();
    let second = variables(parameters, "env").filter(move |(_, name)| !seen.insert(*name));
    second.map(|(item, name)| second_variable(item, name))
}

/// A catalog that everybody is to have.
fn catalog(parameters: &Merged) -> Option<Problem> {
    let sources = parameters.at("modelCatalog.sources").filter(|_| is_catalog_ignored(parameters))?;
    let message = "spec.modelCatalog counts only in the parameters of a Gateway, and is left out here";
    let hint =
        "its ConfigMaps are those of the Gateway's namespace; refer to it from spec.infrastructure.parametersRef";
    Some(Problem::warning(sources.origin.place.clone(), message).hint(hint))
}
