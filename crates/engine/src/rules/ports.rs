//! Listeners on one port: which of them can be told apart.

use std::collections::BTreeMap;

use super::Id;
use super::found::{Sheet, dotted};
use super::listeners::Listener;
use super::protocols::Lost;
use super::table::{HTTP_AND_TLS_ON_ONE_PORT, PROTOCOL_CONFLICT, TCP_AND_UDP_ON_ONE_PORT, TLS_MODES_ON_ONE_PORT};
use crate::yaml::Node;

/// How listeners of a protocol tell one request from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the host of each request.
    Plain,
    /// By the server name of each connection.
    Tls,
    /// Not at all: a port is one of them.
    Stream,
    /// By datagrams, which are no matter of TCP.
    Datagram,
}

impl Way {
    fn of(protocol: &str) -> Option<Self> {
        match protocol {
            "HTTP" => Some(Self::Plain),
            "HTTPS" | "TLS" => Some(Self::Tls),
            "TCP" => Some(Self::Stream),
            "UDP" => Some(Self::Datagram),
            _ => None,
        }
    }
}

/// A rule, the consequence of breaking it, and which pairs do.
type Advice = (Id, &'static str, fn(&Pair<'_>) -> bool);

/// Two listeners on one port that have something to do with each other.
struct Pair<'a> {
    first: Listener<'a>,
    second: Listener<'a>,
    ways: (Way, Way),
    port: i64,
}

impl Pair<'_> {
    fn is(&self, one: Way, other: Way) -> bool {
        self.ways == (one, other) || self.ways == (other, one)
    }

    /// Says what they are: `spec.listeners[1] is for TCP on port 80, and listener "a" is for HTTP there`.
    fn said(&self, whose: &str, consequence: &str) -> String {
        let at = self.second.path(&[]);
        let at = dotted(&at.iter().map(String::as_str).collect::<Vec<_>>());
        let (protocol, port) = (self.second.protocol(), self.port);
        let (name, other) = (self.first.name(), self.first.protocol());
        format!(
            "{at} is for {protocol} on port {port}, and listener {name:?}{whose} is for {other} there: {consequence}"
        )
    }
}

/// Returns each listener with the first one before it on its port that it has something to do with.
fn pairs<'a>(listeners: &[Listener<'a>], is_meant: impl Fn(&Pair<'a>) -> bool) -> Vec<Pair<'a>> {
    let mut seen: BTreeMap<i64, Vec<(Listener<'a>, Way)>> = BTreeMap::new();
    let mut pairs = Vec::new();
    for &second in listeners {
        let (Some(port), Some(way)) = (second.port(), Way::of(second.protocol())) else { continue };
        let before = seen.entry(port).or_default();
        let mut others = before.iter().map(|&(first, it)| Pair { first, second, ways: (it, way), port });
        pairs.extend(others.find(|pair| is_meant(pair)));
        before.push((second, way));
    }
    pairs
}

fn has_other_mode(first: &Listener<'_>, second: &Listener<'_>) -> bool {
    [first, second].iter().all(|listener| listener.protocol() == "TLS")
        && first.passes_tls_on() != second.passes_tls_on()
}

fn is_conflict(pair: &Pair<'_>) -> bool {
    pair.is(Way::Stream, Way::Plain) || pair.is(Way::Stream, Way::Tls)
}

/// Warns of listeners of a set that conflict with one of its Gateway, which goes before.
pub(super) fn beside_gateway(sheet: &mut Sheet<'_>, gateway: &Node, listeners: &[Listener<'_>]) {
    let before = Listener::all(gateway);
    for second in listeners {
        let both: Vec<Listener<'_>> = before.iter().chain([second]).copied().collect();
        let is_of_both = |pair: &Pair<'_>| is_conflict(pair) && std::ptr::eq(pair.second.node, second.node);
        for pair in pairs(&both, is_of_both) {
            let path = pair.second.path(&["protocol"]);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let message = pair.said(" of its Gateway", "the Gateway's goes before");
            sheet.warn(PROTOCOL_CONFLICT, &path, (message, "take another port".to_owned()));
        }
    }
}

/// Returns the conflicts by which listeners are lost: a stream and anything else over TCP.
pub(super) fn conflicts(listeners: &[Listener<'_>]) -> Vec<Lost> {
    let is_on = |port: i64, it: &&Listener<'_>| it.port() == Some(port) && it.protocol() != "UDP";
    let lost = |pair: Pair<'_>| Lost {
        rule: PROTOCOL_CONFLICT,
        listeners: listeners.iter().filter(|it| is_on(pair.port, it)).map(|it| it.index).collect(),
        path: pair.second.path(&["protocol"]),
        said: (pair.said("", "both are refused"), "give one of them another port".to_owned()),
    };
    pairs(listeners, is_conflict).into_iter().map(lost).collect()
}

/// Warns of what some data planes can do, and others not.
pub(super) fn check(sheet: &mut Sheet<'_>, listeners: &[Listener<'_>]) {
    let all: [Advice; 3] = [
        (HTTP_AND_TLS_ON_ONE_PORT, "most data planes cannot tell the two apart, and refuse both", |pair| {
            pair.is(Way::Plain, Way::Tls)
        }),
        (TLS_MODES_ON_ONE_PORT, "only one of them passes TLS on, and many data planes refuse both", |pair| {
            has_other_mode(&pair.first, &pair.second)
        }),
        (TCP_AND_UDP_ON_ONE_PORT, "some load balancers cannot have both at one address", |pair| {
            pair.ways.0 != pair.ways.1 && [pair.ways.0, pair.ways.1].contains(&Way::Datagram)
        }),
    ];
    let found = all.into_iter().flat_map(|(rule, consequence, is_meant)| {
        pairs(listeners, is_meant).into_iter().map(move |pair| (rule, consequence, pair))
    });
    for (rule, consequence, pair) in found {
        let path = pair.second.path(&["protocol"]);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        sheet.warn(rule, &path, (pair.said("", consequence), "give one of them another port".to_owned()));
    }
}
