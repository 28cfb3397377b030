//! The documents around the one that is looked at, and the sheet on which is written what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::open::Open;
use super::table::REFERENCE_NOT_FOUND;
use super::{Id, Severities};
use crate::object::ObjectId;
use crate::pack::Packs;
use crate::problem::{Problem, Scope};
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::unit::Options;
use crate::yaml::Node;

/// Whoever provisions a Gateway or a class.
#[derive(Clone, Copy)]
pub(super) enum Provider {
    /// A pack renders it.
    Pack,
    /// A controller that no pack renders for: it may understand more than the standard names.
    Foreign,
    /// Nobody knows, because there is no such class.
    Unknown,
}

/// All that the source holds, as far as rules ask for it.
pub(super) struct Context<'a> {
    pub(super) specs: &'a Specs,
    pub(super) packs: &'a Packs,
    pub(super) severities: &'a Severities,
    /// Somebody checks the source by itself: a round has a cluster that shows the rest.
    pub(super) is_check: bool,
    /// The time at which certificates are looked at, in seconds since 1970.
    pub(super) now: Option<i64>,
    /// The controllers of the classes in the source.
    classes: BTreeMap<&'a str, &'a str>,
    /// The Gateways to which listener sets of the source attach.
    parents: BTreeSet<ObjectId>,
    /// Documents that no pack claims: kind, namespace and name, by group.
    others: BTreeMap<&'a str, BTreeSet<[&'a str; 3]>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(specs: &'a Specs, packs: &'a Packs, options: &Options) -> Self {
        let controller = |document: &'a Document| {
            let controller = text(&document.root, &["spec", "controllerName"])?;
            Some((document.id.name.as_str(), controller))
        };
        let classes = specs.of_kind(GATEWAY_API, "GatewayClass").filter_map(controller).collect();
        let mut others: BTreeMap<&str, BTreeSet<[&str; 3]>> = BTreeMap::new();
        for document in &specs.unclaimed {
            let key = [&document.id.kind, specs.home(document), &document.id.name];
            others.entry(&document.id.group).or_default().insert(key);
        }
        let (severities, parents) = (packs.severities(), BTreeSet::new());
        let Options { is_check, now, .. } = *options;
        let mut context = Self { specs, packs, severities, is_check, now, classes, parents, others };
        let sets = specs.of_kind(GATEWAY_API, "ListenerSet").filter_map(|set| context.parent(set)).collect();
        context.parents = sets;
        context
    }

    /// Returns the Gateway that a listener set names; `None` of other documents.
    pub(super) fn parent(&self, document: &Document) -> Option<ObjectId> {
        if !document.id.is_a(GATEWAY_API, "ListenerSet") {
            return None;
        }
        let field = |name: &str| text(&document.root, &["spec", "parentRef", name]);
        let namespace = self.specs.namespace(field("namespace").unwrap_or(&document.id.namespace));
        let (group, kind) = (field("group").unwrap_or(GATEWAY_API), field("kind").unwrap_or("Gateway"));
        Some(ObjectId::new(group, kind, namespace, field("name")?))
    }

    /// Returns who provisions the Gateways of a class.
    pub(super) fn provider(&self, class: &str) -> Provider {
        let controller = self.classes.get(class).copied().or_else(|| self.packs.builtin_class(class));
        match controller.map(|controller| self.packs.of_controller(controller)) {
            Some(Some(_)) => Provider::Pack,
            Some(None) => Provider::Foreign,
            None => Provider::Unknown,
        }
    }

    /// Tells whether an object stands in the source, usable or not.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        let key = [id.kind.as_str(), id.namespace.as_str(), id.name.as_str()];
        self.specs.has(id) || self.others.get(id.group.as_str()).is_some_and(|others| others.contains(&key))
    }

    /// Tells whether the source holds an object, or something of which a controller makes it as a Secret.
    pub(super) fn holds(&self, id: &ObjectId) -> bool {
        let is_made = || id.is_a("", "Secret") && self.specs.known.makes_secret(&id.namespace, &id.name);
        self.has(id) || is_made()
    }

    /// Tells whether somebody wants to know of what the source does not show and a cluster may have: whoever checks the
    /// source, and who has a setting for the rule.
    pub(super) fn asks_beyond_source(&self, rule: Id) -> bool {
        self.is_check || self.severities.0.contains_key(&rule)
    }

    /// Begins the list of what only a cluster can answer.
    pub(super) fn open(&self) -> Open {
        let is_off = self.severities.scope(REFERENCE_NOT_FOUND, true).is_none();
        Open::new(Arc::clone(&self.specs.known.secrets), is_off)
    }

    /// Returns the names of documents that no pack claims and that differ from an object in their name only.
    pub(super) fn beside<'b>(&'b self, id: &'b ObjectId) -> impl Iterator<Item = &'a str> {
        let others = self.others.get(id.group.as_str()).into_iter().flatten();
        let others = others.filter(|[kind, namespace, _]| *kind == id.kind && *namespace == id.namespace);
        others.map(|[.., name]| *name)
    }

    /// Tells whether a listener set of the source adds listeners to a Gateway.
    pub(super) fn has_sets(&self, gateway: &ObjectId) -> bool {
        self.parents.contains(gateway)
    }
}

/// What was found in one document.
pub(super) struct Sheet<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) document: &'a Document,
    /// Who provisions it.
    pub(super) provider: Provider,
    pub(super) problems: Vec<Problem>,
    /// References that nothing in the source answers, and of which nothing is said for that.
    pub(super) open: Vec<(ObjectId, Problem)>,
    /// All that it names and may name.
    pub(super) named: BTreeSet<ObjectId>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(context: &'a Context<'a>, document: &'a Document) -> Self {
        let class = |document: &'a Document| text(&document.root, &["spec", "gatewayClassName"]);
        let provider = match document.id.kind.as_str() {
            "GatewayClass" => context.provider(&document.id.name),
            "ListenerSet" => {
                let gateway = context.parent(document).and_then(|parent| context.specs.documents.get(&parent));
                gateway.and_then(class).map_or(Provider::Unknown, |class| context.provider(class))
            }
            _ => class(document).map_or(Provider::Unknown, |class| context.provider(class)),
        };
        Self { context, document, provider, problems: Vec::new(), open: Vec::new(), named: BTreeSet::new() }
    }

    pub(super) fn root(&self) -> &'a Node {
        &self.document.root
    }

    /// Tells whether this is a listener set: what is wrong in one is no reason to hold the Gateway of others.
    fn is_set(&self) -> bool {
        self.document.id.kind == "ListenerSet"
    }

    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.provider, Provider::Foreign)
    }

    /// Tells whether somebody wants to know of what the source does not show and a cluster may have.
    pub(super) fn asks_beyond_source(&self, rule: Id) -> bool {
        self.context.asks_beyond_source(rule)
    }

    /// Tells whether anybody wants to know of a rule.
    pub(super) fn asks(&self, rule: Id) -> bool {
        self.context.severities.scope(rule, true).is_some()
    }

    /// Adds a finding about a field, and what to write there.
    pub(super) fn add(&mut self, rule: Id, path: &[&str], (message, hint): (String, String)) {
        self.write(rule, self.is_set(), path, (message, hint));
    }

    /// Adds a finding that is a warning, unless the config file says otherwise of its rule.
    pub(super) fn warn(&mut self, rule: Id, path: &[&str], (message, hint): (String, String)) {
        self.write(rule, true, path, (message, hint));
    }

    /// Notes a reference to something that only a cluster may have.
    pub(super) fn leave_open(&mut self, rule: Id, (id, path): (ObjectId, &[&str]), message: String) {
        if self.asks(rule) {
            let problem = self.document.problem(path, message).by(rule);
            self.open.push((id, Problem { scope: Scope::Warning, ..problem }));
        }
    }

    fn write(&mut self, rule: Id, is_weak: bool, path: &[&str], (message, hint): (String, String)) {
        let Some(scope) = self.context.severities.scope(rule, is_weak) else { return };
        let problem = self.document.problem(path, message).hint(hint).by(rule);
        self.problems.push(Problem { scope: scope.min(Scope::Document), ..problem });
    }
}

/// Returns a text below a value.
pub(super) fn text<'a>(node: &'a Node, path: &[&str]) -> Option<&'a str> {
    node.at(path.iter().copied())?.as_str()
}

/// Writes a path as messages do: `spec.listeners[0].port`.
pub(super) fn dotted(path: &[&str]) -> String {
    let mut text = String::new();
    for part in path {
        let is_index = part.parse::<usize>().is_ok();
        let (before, after) = if is_index { ("[", "]") } else { (".", "") };
        text.push_str(if text.is_empty() { "" } else { before });
        text.push_str(part);
        text.push_str(after);
    }
    text
}
