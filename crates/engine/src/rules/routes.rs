//! Routes: whether the listeners that they name take them, and whether they may send to what they name behind them.
//!
//! Only what the source shows counts: a Gateway, a Service or a grant that is not in it may be on the cluster.

mod backends;

use super::found::{Sheet, dotted, text};
use super::listeners::{Listener, port, takes};
use super::table::{ROUTE_HOSTNAME, ROUTE_NOT_ALLOWED, ROUTE_PARENT};
use crate::check::suggest;
use crate::object::ObjectId;
use crate::reading::is_slip;
use crate::spec::{Document, GATEWAY_API, namespaces};
use crate::text::{did_you_mean, listed};
use crate::yaml::Node;
pub(super) use backends::{Services, services};

/// The most ports, names or hostnames that a message lists.
const MOST: usize = 8;

/// The fewest letters of a word in a name that can be misspelled: what is shorter may be another word.
const SHORTEST: usize = 4;

/// Kinds of routes that know no hostnames.
const WITHOUT_HOSTNAMES: [&str; 2] = ["TCPRoute", "UDPRoute"];

/// The kinds that routes of the standard attach to, in its group.
const PARENTS: [&str; 2] = ["Gateway", "ListenerSet"];

/// Checks a route.
pub(super) fn check(sheet: &mut Sheet<'_>, services: &Services) {
    for (index, parent) in items(sheet.root(), &["spec", "parentRefs"]).iter().enumerate() {
        attach(sheet, parent, &["spec", "parentRefs", &index.to_string()]);
    }
    backends::check(sheet, services);
}

fn items<'a>(node: &'a Node, path: &[&str]) -> &'a [Node] {
    node.at(path.iter().copied()).map(Node::items).unwrap_or_default()
}

/// Returns the name that was probably meant: it differs in one letter of a word, and not in what tells names of one kind
/// apart, such as numbers (`shop-v1`, `shop-v2`) and short words (`us`, `eu`).
fn misspelled<'a>(said: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let words = |name: &'a str| name.split(['-', '.']);
    let is_word = |word: &str| word.len() >= SHORTEST && !word.bytes().any(|byte| byte.is_ascii_digit());
    let is_slip =
        |(said, known): (&str, &str)| is_word(said) && is_word(known) && strsim::damerau_levenshtein(said, known) == 1;
    let said: Vec<&str> = said.split(['-', '.']).collect();
    let length: usize = said.iter().map(|word| word.len() + 1).sum();
    let is_it = |name: &&'a str| {
        let mut apart = said.iter().copied().zip(words(name)).filter(|(said, known)| said != known);
        words(name).count() == said.len() && apart.next().is_some_and(is_slip) && apart.next().is_none()
    };
    // There may be thousands.
    names.into_iter().filter(|name| length.abs_diff(name.len() + 1) <= 1).find(is_it)
}

/// Checks that a Gateway or listener set of the source takes the route.
fn attach(sheet: &mut Sheet<'_>, parent: &Node, path: &[&str]) {
    let specs = sheet.context.specs;
    let home = specs.home(sheet.document);
    let (group, kind) = (text(parent, &["group"]).unwrap_or(GATEWAY_API), text(parent, &["kind"]).unwrap_or("Gateway"));
    let Some(name) = text(parent, &["name"]) else { return };
    if let Some(said) = no_parent(&dotted(path), group, kind).filter(|_| !is_known(sheet, group, kind)) {
        return sheet.warn(ROUTE_PARENT, path, said);
    }
    let id = ObjectId::new(group, kind, specs.namespace(text(parent, &["namespace"]).unwrap_or(home)), name);
    let Some(document) = specs.documents.get(&id).filter(|_| group == GATEWAY_API) else {
        return absent(sheet, &id, path, parent.get("namespace").is_some());
    };
    let Some(named) = named(sheet, (parent, path), document) else { return };
    let allowed = match allowed(sheet, (&named, home), document) {
        Ok(allowed) => allowed,
        Err(said) => return sheet.warn(ROUTE_NOT_ALLOWED, path, said),
    };
    let hostnames: Vec<&str> = items(sheet.root(), &["spec", "hostnames"]).iter().filter_map(Node::as_str).collect();
    let meets = |listener: &&Listener<'_>| {
        let own = listener.text(&["hostname"]).unwrap_or_default();
        own.is_empty() || hostnames.iter().any(|hostname| intersect(own, hostname))
    };
    let has_hostnames = !hostnames.is_empty() && !WITHOUT_HOSTNAMES.contains(&sheet.document.id.kind.as_str());
    if !has_hostnames || allowed.iter().any(|listener| meets(&listener)) {
        return;
    }
    // A listener that has the hostname and does not take the route is the one that was meant.
    let kind = sheet.document.id.kind.as_str();
    let meant: Vec<Listener<'_>> = named.iter().filter(|it| meets(it) && takes(it, kind)).copied().collect();
    if !meant.is_empty()
        && let Err(said) = self::allowed(sheet, (&meant, home), document)
    {
        return sheet.warn(ROUTE_NOT_ALLOWED, path, said);
    }
    let theirs = allowed.iter().filter_map(|listener| listener.text(&["hostname"]));
    let message =
        format!("spec.hostnames has nothing in common with the listeners of {id}: {}", listed(hostnames, MOST));
    let hint = format!("write a hostname for which one of them is: {}", listed(theirs, MOST));
    sheet.warn(ROUTE_HOSTNAME, &["spec", "hostnames"], (message, hint));
}

/// Tells whether a kind is known that stands beside those of the standard, such as what is still being tried out.
fn is_known(sheet: &Sheet<'_>, group: &str, kind: &str) -> bool {
    group != GATEWAY_API && sheet.context.specs.kinds.knows(group, kind)
}

/// Says that a group and kind are none that a route attaches to. A mesh takes them for Services, vendors for what is theirs.
fn no_parent(place: &str, group: &str, kind: &str) -> Option<(String, String)> {
    let is_standard = group == GATEWAY_API && PARENTS.contains(&kind) || (group, kind) == ("", "Service");
    let is_meant = group == GATEWAY_API || is_slip(group, GATEWAY_API);
    let hint = if group == GATEWAY_API && kind == "Service" {
        "write group: \"\" beside it: a Service is of no group".to_owned()
    } else {
        format!("write group: {GATEWAY_API} and kind: Gateway or ListenerSet, or leave both out for a Gateway")
    };
    // Later versions of the standard may have more kinds.
    let is_known = kind == "Service" || PARENTS.iter().any(|known| is_slip(kind, known));
    let message = format!("{place} names a {kind} of group {group:?}, to which no route attaches");
    (!is_standard && is_meant && is_known).then_some((message, hint))
}

/// Says which Gateway of the source was probably meant by one that is not in it.
fn absent(sheet: &mut Sheet<'_>, id: &ObjectId, path: &[&str], is_explicit: bool) {
    let specs = sheet.context.specs;
    if id.group != GATEWAY_API || specs.has(id) {
        return;
    }
    let message = format!("{} is {id}, which is not in the source", dotted(path));
    let beside = specs.of_kind(&id.group, &id.kind).filter(|it| it.id.namespace == id.namespace);
    if let Some(hint) = did_you_mean(misspelled(&id.name, beside.map(|document| document.id.name.as_str()))) {
        return sheet.warn(ROUTE_PARENT, &[path, &["name"]].concat(), (message, hint));
    }
    let mut elsewhere = specs.of_kind(&id.group, &id.kind).filter(|it| it.id.name == id.name);
    if let (Some(other), None, false) = (elsewhere.next(), elsewhere.next(), is_explicit)
        && sheet.asks_beyond_source(ROUTE_PARENT)
    {
        let hint = format!("write namespace: {} if {} is meant", other.id.namespace, other.id);
        sheet.warn(ROUTE_PARENT, path, (message, hint));
    }
}

/// Returns the listeners that a reference to a parent names; `None`, and says so, where there are none.
fn named<'a>(
    sheet: &mut Sheet<'_>,
    (parent, path): (&Node, &[&str]),
    document: &'a Document,
) -> Option<Vec<Listener<'a>>> {
    let mut listeners = Listener::all(&document.root);
    if let Some(section) = text(parent, &["sectionName"]) {
        let names: Vec<&str> = listeners.iter().map(Listener::name).collect();
        listeners.retain(|listener| listener.name() == section);
        if listeners.is_empty() {
            let path = [path, &["sectionName"]].concat();
            let message = format!("{} is {section:?}, and {} has no such listener", dotted(&path), document.id);
            let all = || format!("there are: {}", listed(&names, MOST));
            let hint = did_you_mean(suggest(section, names.iter().copied())).unwrap_or_else(all);
            sheet.warn(ROUTE_PARENT, &path, (message, hint));
            return None;
        }
    }
    if let Some(wanted) = port(parent) {
        let ports: Vec<i64> = listeners.iter().filter_map(Listener::port).collect();
        listeners.retain(|listener| listener.port() == Some(wanted));
        if listeners.is_empty() {
            let path = [path, &["port"]].concat();
            let message = format!("{} is {wanted}, and {} has no such listener", dotted(&path), document.id);
            sheet.warn(ROUTE_PARENT, &path, (message, there_are(ports)));
            return None;
        }
    }
    (!listeners.is_empty()).then_some(listeners)
}

fn there_are(mut ports: Vec<i64>) -> String {
    ports.sort_unstable();
    ports.dedup();
    format!("there are: {}", listed(ports, MOST))
}

/// Returns those listeners that take routes of the kind from the namespace; else why none does.
fn allowed<'a>(
    sheet: &Sheet<'_>,
    (listeners, home): (&[Listener<'a>], &str),
    document: &Document,
) -> Result<Vec<Listener<'a>>, (String, String)> {
    let (kind, parent) = (sheet.document.id.kind.as_str(), &document.id);
    let who = match listeners {
        [one] => format!("listener {:?} of {parent} takes no {kind}s", one.name()),
        _ => format!("no listener of {parent} takes {kind}s"),
    };
    let of_kind: Vec<Listener<'_>> = listeners.iter().filter(|listener| takes(listener, kind)).copied().collect();
    if of_kind.is_empty() {
        return Err((who, "see the protocol and the allowedRoutes.kinds of the listeners".to_owned()));
    }
    let chosen = |listener: &Listener<'a>| listener.node.at(["allowedRoutes", "namespaces"]);
    let specs = sheet.context.specs;
    let is_open =
        |listener: &&Listener<'a>| namespaces::admits(specs, (chosen(listener), "Same"), (&parent.namespace, home));
    let open: Vec<Listener<'_>> = of_kind.iter().filter(is_open).copied().collect();
    if open.is_empty() {
        let message = format!("{who} of namespace {home:?}");
        let hint = "write allowedRoutes: {namespaces: {from: All}} into a listener, or a selector for the namespace";
        return Err((message, hint.to_owned()));
    }
    Ok(open)
}

/// Tells whether there is a name for which two hostnames are: a wildcard stands for one part of a name or more.
fn intersect(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    match (one.strip_prefix('*'), other.strip_prefix('*')) {
        (None, None) => one == other,
        (Some(end), None) => other.ends_with(end),
        (None, Some(end)) => one.ends_with(end),
        (Some(end), Some(other)) => end.ends_with(other) || other.ends_with(end),
    }
}
