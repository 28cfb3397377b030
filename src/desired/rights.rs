//! The rights that a sync needs on a cluster: what its requests are, as RBAC says it.
//!
//! Every object is listed by our label in all namespaces, read, applied (for which an API server asks for `patch`, and
//! where nothing is for `create` too), and deleted. Inventories are read, written and deleted as `ConfigMap`s.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::kinds::has_pods;
use gatewright_engine::object::{Object, is_secret};
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::unit::{Rendering, Unit};
use serde_json::{Value, json};

use crate::cluster::account::Account;
use crate::cluster::right::{IMPERSONATE, Right};
use crate::cluster::{NO_NAMESPACE, SYSTEM_NAMESPACE};
use crate::config::settings::SyncSettings;

/// The group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// The group of Events.
const EVENTS: &str = "events.k8s.io";

/// Kinds of RBAC to which rights are given, not only written: an API server lets nobody give what he has not himself.
const ROLES: [&str; 2] = ["Role", "ClusterRole"];
const BINDINGS: [&str; 2] = ["RoleBinding", "ClusterRoleBinding"];

/// The verbs of all rights, in the order in which they are printed.
const VERBS: [&str; 9] = ["get", "list", "create", "update", "patch", "delete", "escalate", "bind", IMPERSONATE];

/// The request for rights.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    /// The sync.
    pub sync: &'a str,
    /// The subject that gets the rights, as a binding names it.
    pub subject: &'a Value,
    /// The extent of the rights.
    pub extent: Extent,
    /// The account that the sync acts as, which gets those of them that are about objects.
    pub account: Option<&'a Account>,
}

/// The extent of the rights that a sync needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Only to look, for reports.
    pub is_read_only: bool,
    /// Whether missing namespaces are made.
    pub creates_namespaces: bool,
    /// Whether Events are recorded about what is changed.
    pub records_events: bool,
}

impl Extent {
    /// Returns what a sync needs by its settings.
    pub(crate) fn of(settings: &SyncSettings, is_read_only: bool) -> Self {
        let (creates_namespaces, records_events) = (settings.create_namespaces, settings.events);
        Self { is_read_only, creates_namespaces, records_events }
    }
}

/// The rules that are needed everywhere, and those in single namespaces.
struct Needs {
    everywhere: Rules,
    places: BTreeMap<String, Rules>,
}

/// Rules by group and verbs, in an order that does not depend on anything.
type Rules = BTreeMap<(String, Vec<&'static str>, Vec<String>), BTreeSet<String>>;

/// Returns the documents that give the rights for what renderings want.
pub(crate) fn documents<'a>(request: &Request<'_>, renderings: impl IntoIterator<Item = &'a Rendering>) -> Vec<Value> {
    let needs = needs(request.extent, renderings);
    let name = format!("gatewright-{}", request.sync);
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    let mut documents = vec![system];
    let Some(account) = request.account else {
        documents.extend(roles(request.subject, &name, &needs));
        return documents;
    };
    let mut own = needs.only(Right::is_our_own);
    own.add(&account.rights());
    documents.extend(roles(request.subject, &name, &own));
    // A report lists what bears the marks of others, too.
    let is_read_only = request.extent.is_read_only;
    let of_account = needs.only(|right| !right.is_our_own() || (is_read_only && right.verb == "list"));
    documents.extend(roles(&account.subject(), &format!("{name}-account"), &of_account));
    documents
}

fn roles(subject: &Value, name: &str, needs: &Needs) -> Vec<Value> {
    let places = needs.places.iter().map(|(namespace, rules)| (Some(namespace.as_str()), rules));
    let all = [(None, &needs.everywhere)].into_iter().chain(places).filter(|(_, rules)| !rules.is_empty());
    all.flat_map(|(namespace, rules)| role(subject, name, namespace, rules)).collect()
}

/// Returns the rights for what a rendering wants, one by one.
pub(crate) fn rights(extent: Extent, account: Option<&Account>, rendering: &Rendering) -> BTreeSet<Right> {
    let needs = needs(extent, [rendering]);
    let places = needs.places.iter().map(|(namespace, rules)| (Some(namespace.as_str()), rules));
    let all = places.chain([(None, &needs.everywhere)]).flat_map(|(namespace, rules)| each(namespace, rules));
    all.chain(account.map(Account::rights).unwrap_or_default()).collect()
}

impl Needs {
    /// Returns those that are for some rights.
    fn only(&self, is_one: impl Fn(&Right) -> bool) -> Self {
        let places = self.places.iter().map(|(namespace, rules)| {
            (namespace.clone(), rules_for(each(Some(namespace), rules).iter().filter(|right| is_one(right))))
        });
        let everywhere = each(None, &self.everywhere);
        Self { places: places.collect(), everywhere: rules_for(everywhere.iter().filter(|right| is_one(right))) }
    }

    fn add(&mut self, rights: &[Right]) {
        for right in rights {
            let rules = match &right.namespace {
                Some(namespace) => self.places.entry(namespace.clone()).or_default(),
                None => &mut self.everywhere,
            };
            rules.extend(rules_for([right]));
        }
    }
}

/// Puts rights together to rules again: those on the same objects are one.
fn rules_for<'a>(rights: impl IntoIterator<Item = &'a Right>) -> Rules {
    let mut verbs: BTreeMap<(&str, Option<&str>, &str), Vec<&'static str>> = BTreeMap::new();
    for right in rights {
        let place = (right.group.as_str(), right.name.as_deref(), right.resource.as_str());
        verbs.entry(place).or_default().extend(VERBS.iter().filter(|verb| **verb == right.verb));
    }
    let mut rules = Rules::new();
    for ((group, name, resource), verbs) in verbs {
        let names: Vec<String> = name.map(str::to_owned).into_iter().collect();
        add(&mut rules, group, &verbs, &names, resource);
    }
    rules
}

fn each(namespace: Option<&str>, rules: &Rules) -> Vec<Right> {
    let mut rights = Vec::new();
    for ((group, verbs, names), resources) in rules {
        let names: Vec<Option<&String>> = if names.is_empty() { vec![None] } else { names.iter().map(Some).collect() };
        for (verb, resource) in verbs.iter().flat_map(|verb| resources.iter().map(move |resource| (verb, resource))) {
            rights.extend(names.iter().map(|name| Right {
                namespace: namespace.map(str::to_owned),
                group: group.clone(),
                resource: resource.clone(),
                verb: (*verb).to_owned(),
                name: name.cloned(),
            }));
        }
    }
    rights
}

fn needs<'a>(extent: Extent, renderings: impl IntoIterator<Item = &'a Rendering>) -> Needs {
    let units: Vec<&Unit> = renderings.into_iter().flat_map(|rendering| &rendering.units).collect();
    let mut everywhere = Rules::new();
    let mut places: BTreeMap<String, Rules> = BTreeMap::new();
    for object in units.iter().flat_map(|unit| unit.all()) {
        let (group, resource) = resource(object);
        let namespace = object.id().namespace.clone();
        // Secrets are never asked for in all namespaces.
        let is_asked_here = is_secret(&group, &object.id().kind) && !namespace.is_empty();
        let lists = if is_asked_here { places.entry(namespace.clone()).or_default() } else { &mut everywhere };
        add(lists, &group, &["list"], &[], &resource);
        if object.id().group == "apps" && has_pods(&object.id().kind) && !namespace.is_empty() {
            // What a rollout waits for in vain stands there.
            for cause in ["events", "pods"] {
                add(places.entry(namespace.clone()).or_default(), "", &["list"], &[], cause);
            }
        }
        if extent.records_events && !extent.is_read_only {
            let place = if namespace.is_empty() { NO_NAMESPACE } else { &namespace };
            add(places.entry(place.to_owned()).or_default(), EVENTS, &["create"], &[], "events");
        }
        let rules = if namespace.is_empty() { &mut everywhere } else { places.entry(namespace).or_default() };
        let verbs: &[_] = if extent.is_read_only { &["get"] } else { &["get", "create", "patch", "delete"] };
        add(rules, &group, verbs, &[], &resource);
        if object.id().group == RBAC && !extent.is_read_only {
            giving(rules, object, &resource);
        }
    }
    for unit in &units {
        deployers(unit, &mut everywhere, &mut places);
    }
    namespaces(extent, &mut everywhere, places.keys().cloned().collect());
    let verbs: &[_] = if extent.is_read_only { &["get"] } else { &["get", "create", "update", "delete"] };
    add(places.entry(SYSTEM_NAMESPACE.to_owned()).or_default(), "", verbs, &[], "configmaps");
    Needs { everywhere, places }
}

fn add(rules: &mut Rules, group: &str, verbs: &[&'static str], names: &[String], resource: &str) {
    rules.entry((group.to_owned(), verbs.to_vec(), names.to_vec())).or_default().insert(resource.to_owned());
}

/// Adds the right to give rights: who writes a role must have all that is in it, or the right to go beyond; who binds
/// one likewise.
fn giving(rules: &mut Rules, object: &Object, resource: &str) {
    let kind = object.id().kind.as_str();
    if ROLES.contains(&kind) {
        add(rules, RBAC, &["escalate"], &[object.id().name.clone()], resource);
    }
    if BINDINGS.contains(&kind) {
        let text = |field: &str| object.body()["roleRef"][field].as_str().unwrap_or_default().to_owned();
        let plural = if text("kind") == "ClusterRole" { "clusterroles" } else { "roles" };
        add(rules, RBAC, &["bind"], &[text("name")], plural);
    }
}

/// Before anything is adopted from a deployer, its Gateway, class and parameters are looked at.
fn deployers(unit: &Unit, everywhere: &mut Rules, places: &mut BTreeMap<String, Rules>) {
    let Some(deployer) = &unit.deployer else { return };
    let rules = places.entry(unit.id.namespace.clone()).or_default();
    add(rules, GATEWAY_API, &["get"], &[], "gateways");
    add(everywhere, GATEWAY_API, &["get"], &[], "gatewayclasses");
    if let Some(told_by) = &deployer.told_by {
        add(everywhere, &told_by.gvk.group, &["get"], &[], &plural(&told_by.gvk.kind));
    }
}

/// The namespace `kube-system` says which cluster it is; those of objects are looked at before something is made there.
fn namespaces(extent: Extent, everywhere: &mut Rules, mut names: BTreeSet<String>) {
    let verbs: &[_] = if extent.creates_namespaces && !extent.is_read_only { &["get", "patch"] } else { &["get"] };
    if verbs.len() > 1 {
        add(everywhere, "", &["create"], &[], "namespaces");
        add(everywhere, "", &["patch"], &names.iter().cloned().collect::<Vec<_>>(), "namespaces");
    }
    names.insert("kube-system".to_owned());
    add(everywhere, "", &["get"], &names.into_iter().collect::<Vec<_>>(), "namespaces");
}

/// A role and its binding.
fn role(subject: &Value, name: &str, namespace: Option<&str>, rules: &Rules) -> [Value; 2] {
    let rules: Vec<Value> = rules
        .iter()
        .map(|((group, verbs, names), resources)| {
            let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
            if !names.is_empty() {
                rule["resourceNames"] = json!(names);
            }
            rule
        })
        .collect();
    let (role, binding) = match namespace {
        None => ("ClusterRole", "ClusterRoleBinding"),
        Some(_) => ("Role", "RoleBinding"),
    };
    let version = format!("{RBAC}/v1");
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let reference = json!({"apiGroup": RBAC, "kind": role, "name": name});
    [
        json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version, "kind": binding, "metadata": metadata, "roleRef": reference,
            "subjects": [subject],
        }),
    ]
}

fn resource(object: &Object) -> (String, String) {
    (object.id().group.clone(), plural(&object.id().kind))
}

/// The name of a kind in addresses, by the rule that those who define kinds follow; only a server knows for certain.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let is_sibilant = ["ss", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end));
    let before_y = kind.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u']));
    match before_y {
        Some(rest) => format!("{rest}ies"),
        None if is_sibilant => format!("{kind}es"),
        None if kind.ends_with('s') => kind,
        None => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_plurals_that_servers_know() {
        let known = [
            ("Deployment", "deployments"),
            ("Gateway", "gateways"),
            ("GatewayClass", "gatewayclasses"),
            ("GatewayParameters", "gatewayparameters"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Endpoints", "endpoints"),
            ("HTTPRoute", "httproutes"),
        ];
        for (kind, name) in known {
            assert_eq!(plural(kind), name);
        }
    }
}
