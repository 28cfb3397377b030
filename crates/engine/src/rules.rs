//! Rules: what is wrong in the meaning of a document, though an API server would take it.
//!
//! Each rule has an id that stays, a page in `docs/rules`, and the condition and reason by which a controller would say
//! the same of a Gateway, a listener or a class. An error is what the standard forbids, and holds the document; what only
//! a cluster can tell, and what spoils one listener of several, is a warning and holds nothing. A config file may say
//! otherwise of most rules ([`Severities`]).

mod addresses;
mod certificates;
mod classes;
mod found;
mod gateways;
pub(crate) mod known;
mod listeners;
pub(crate) mod objects;
pub mod open;
mod pods;
pub mod policies;
mod ports;
mod protocols;
mod references;
mod routes;
mod services;
mod sets;
mod table;
mod texts;
mod x509;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::suggest;
use crate::interrupt;
use crate::object::ObjectId;
use crate::pack::Packs;
use crate::problem::{Problem, Scope};
use crate::references::is_referred_to;
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::text::did_you_mean;
use crate::unit::{Options, Rendering, Unit};
use found::{Context, Sheet};
use objects::Finding;
use open::Open;
pub use table::{ALL, UNSUPPORTED_ADDRESS_TYPE, find};
pub(crate) use table::{CLASS_NOT_FOUND, CLASS_PARAMETERS_NAMESPACE_MISSING, INVALID_PARAMETERS, SERVICE_NAME};

/// The id of a rule: `GW014`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(u16);

/// A text is no id of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a rule, such as GW014")]
pub struct IdError(String);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GW{:03}", self.0)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        let digits = text.strip_prefix("GW").filter(|digits| digits.len() == 3);
        digits.and_then(|digits| digits.parse().ok()).map(Self).ok_or(IdError(text))
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id.
    pub id: Id,
    /// A short name, in words with dashes between them.
    pub name: &'static str,
    /// Its severity where no config file says otherwise.
    pub severity: Severity,
    /// The condition by which a controller says it, with its status; empty where the standard has none.
    pub condition: &'static str,
    /// The reason of that condition.
    pub reason: &'static str,
    /// The rule in one line.
    pub summary: &'static str,
    /// Whether it stays as it is, because nothing can be rendered of what breaks it.
    pub is_fixed: bool,
}

/// The weight of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A person should know.
    Warning,
    /// The document is held: what was rendered from it stays as it is.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The severities that a config file gives to rules; `None`: the rule is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Severities(pub BTreeMap<Id, Option<Severity>>);

impl Severities {
    /// Returns the extent of the damage that a finding does, or `None` if nobody wants to know. What is `weak` is a
    /// warning, whatever the rule is, unless the config file names the rule.
    fn scope(&self, id: Id, is_weak: bool) -> Option<Scope> {
        let usual = find(id).map_or(Severity::Warning, |rule| rule.severity);
        let usual = if is_weak { Severity::Warning } else { usual };
        let severity = self.0.get(&id).copied().unwrap_or(Some(usual))?;
        Some(if severity == Severity::Error { Scope::Document } else { Scope::Warning })
    }
}

/// Returns what rules find in the documents of a source, each finding with the spec that an error holds.
fn check(context: &Context<'_>, units: &[Unit], open: &mut Open) -> Vec<(ObjectId, Problem)> {
    let specs = context.specs;
    let mut found = Vec::new();
    let of_standard = specs.documents.values().filter(|document| document.id.group == GATEWAY_API);
    for document in of_standard.take_while(|_| !interrupt::is_given()) {
        let mut sheet = Sheet::new(context, document);
        match document.id.kind.as_str() {
            "Gateway" => gateways::check(&mut sheet),
            "ListenerSet" => sets::check(&mut sheet),
            "GatewayClass" => classes::check(&mut sheet),
            _ => continue,
        }
        let holds = context.parent(document).unwrap_or_else(|| document.id.clone());
        sheet.open.into_iter().for_each(|(id, problem)| open.add(holds.clone(), id, &problem));
        open.is_named(&document.id, sheet.named);
        found.extend(sheet.problems.into_iter().map(|problem| (holds.clone(), problem)));
    }
    found.extend(of_routes(context, units));
    found
}

/// The same of routes, which no pack claims.
fn of_routes(context: &Context<'_>, units: &[Unit]) -> Vec<(ObjectId, Problem)> {
    let specs = context.specs;
    let is_route = |document: &&Document| document.id.group == GATEWAY_API && specs.kinds.of(&document.id).route;
    let mut routes = specs.unclaimed.iter().filter(is_route).peekable();
    let services = if routes.peek().is_some() { routes::services(specs, units) } else { BTreeMap::new() };
    let check = |route: &Document| {
        let mut sheet = Sheet::new(context, route);
        routes::check(&mut sheet, &services);
        let id = specs.placed(route);
        sheet.problems.into_iter().map(move |problem| (id.clone(), problem)).collect::<Vec<_>>()
    };
    routes.take_while(|_| !interrupt::is_given()).flat_map(check).collect()
}

impl Rendering {
    /// Adds what rules find, and takes out the units that an error holds.
    pub(crate) fn check_rules(&mut self, specs: &Specs, (packs, options): (&Packs, &Options), of_pods: Vec<Finding>) {
        let of = |problem: &Problem| Some((problem.rule?, problem.object.clone(), problem.place.clone()));
        let said: Vec<_> = self.problems.iter().filter_map(of).collect();
        // A pack that knows more than the standard has said it in its own words.
        let objects: BTreeSet<_> = said.iter().map(|(rule, object, _)| (*rule, object.clone())).collect();
        let places: BTreeSet<_> = said.into_iter().map(|(rule, _, place)| (rule, place)).collect();
        let is_new = |problem: &Problem| {
            let is_said = |rule| {
                objects.contains(&(rule, problem.object.clone())) || places.contains(&(rule, problem.place.clone()))
            };
            !problem.rule.is_some_and(is_said)
        };
        let named = services::check(&self.units, specs, packs.severities());
        let context = Context::new(specs, packs, options);
        let mut open = context.open();
        let of_pods = self.judged(&context, of_pods, &mut open);
        let all = check(&context, &self.units, &mut open).into_iter().chain(named).chain(of_pods);
        let found = all.filter(|(_, problem)| is_new(problem));
        for (held, problem) in found.collect::<Vec<_>>() {
            // What is left to a deployer is not ours to hold.
            let is_error = problem.scope != Scope::Warning && !self.released.contains_key(&held);
            let scope = if is_error { problem.scope } else { Scope::Warning };
            if is_error {
                self.hold(&held, &problem, packs);
            }
            self.problems.push(Problem { scope, ..problem });
        }
        self.open = open;
    }

    /// Returns what was found in pods and in other objects, as far as anybody wants to know of it.
    fn judged(&self, context: &Context<'_>, findings: Vec<Finding>, open: &mut Open) -> Vec<(ObjectId, Problem)> {
        let is_rendered = |id: &ObjectId| self.units.iter().flat_map(Unit::all).any(|object| object.id() == id);
        let judge = |Finding { rule, is_weak, wants, problem }: Finding| {
            let problem = match wants {
                Some(id) if context.holds(&id) || is_rendered(&id) => return None,
                Some(id) => match did_you_mean(suggest(&id.name, context.beside(&id))) {
                    None if !context.asks_beyond_source(rule) || !is_referred_to(&id) => {
                        open.add(problem.object.clone()?, id, &problem);
                        return None;
                    }
                    near => {
                        open.is_said(problem.object.clone()?, id);
                        Problem { hint: near.or(problem.hint), ..problem }
                    }
                },
                None => problem,
            };
            // In a round the API server has the last word, and others may fill in before it does.
            let is_weak = is_weak || !context.is_check && !policies::ALL.contains(&rule);
            let scope = context.severities.scope(rule, is_weak)?.min(Scope::Document);
            Some((problem.object.clone()?, Problem { scope, ..problem }))
        };
        // A line in the parameters of a class is one warning, and not one for each of its Gateways.
        let mut said = BTreeSet::new();
        let mut is_new = |(_, problem): &(ObjectId, Problem)| {
            let message = problem.message.split_once(": ").map_or(problem.message.as_str(), |(_, message)| message);
            let key = (problem.rule, problem.place.clone(), message.to_owned(), problem.hint.clone());
            problem.scope != Scope::Warning || said.insert(key)
        };
        findings.into_iter().filter_map(judge).filter(|found| is_new(found)).collect()
    }

    fn hold(&mut self, held: &ObjectId, problem: &Problem, packs: &Packs) {
        self.flawed.insert(held.clone(), problem.place.clone());
        let is_held = |unit: &Unit| unit.id == *held;
        if packs.is_spec(&held.group, &held.kind) || self.units.iter().any(is_held) {
            self.broken.insert(held.clone());
        }
        self.self_managed.remove(held);
        self.units.retain(|unit| !is_held(unit));
    }
}

#[cfg(test)]
mod tests;
