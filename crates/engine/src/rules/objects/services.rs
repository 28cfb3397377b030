//! Services: fields that only go together with a type, addresses, and what has a form of its own.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::values::{NAME, place};
use super::{Sheet, ports, selectors};
use crate::check::suggest;
use crate::spec::metadata::is_label_key;
use crate::text::did_you_mean;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
pub(super) const CLUSTER_IP: &str = TYPES[0];
pub(super) const EXTERNAL_NAME: &str = TYPES[1];
const LOAD_BALANCER: &str = TYPES[2];
const NODE_PORT: &str = TYPES[3];

/// Fields that take one of a few words.
const WORDS: [(&str, &[&str]); 6] = [
    ("type", &TYPES),
    ("sessionAffinity", &["ClientIP", "None"]),
    ("externalTrafficPolicy", &["Cluster", "Local"]),
    ("internalTrafficPolicy", &["Cluster", "Local"]),
    ("ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"]),
    ("trafficDistribution", &["PreferClose", "PreferSameNode", "PreferSameZone"]),
];

/// Fields that only a Service of type `LoadBalancer` has.
const OF_LOAD_BALANCERS: [&str; 3] = ["allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"];

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// The longest time for which a client stays with a pod, in seconds: a day.
const LONGEST_AFFINITY: i64 = 86_400;

pub(super) fn check(sheet: &mut Sheet<'_>, spec: &Value) {
    for (field, allowed) in WORDS {
        word(sheet, &["spec", field], &spec[field], allowed);
    }
    let ty = spec["type"].as_str().filter(|ty| !ty.is_empty()).unwrap_or(CLUSTER_IP);
    if !TYPES.contains(&ty) {
        return;
    }
    types(sheet, spec, ty);
    families(sheet, spec, ty);
    addresses(sheet, spec, ty);
    selectors::labels(sheet, &["spec", "selector"], &spec["selector"]);
    ports::of_service(sheet, spec, ty);
}

/// Says that a field has none of the words that it takes.
pub(super) fn word(sheet: &mut Sheet<'_>, path: &[&str], value: &Value, allowed: &[&str]) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty() && !allowed.contains(text)) else { return };
    let words = allowed.join(" or ");
    let hint = did_you_mean(suggest(text, allowed.iter().copied())).unwrap_or_else(|| format!("write {words}"));
    sheet.say(path, (format!("{} is {text:?}, but must be {words}", place(path)), &hint));
}

/// Fields that a Service of a type must have or must not have.
fn types(sheet: &mut Sheet<'_>, spec: &Value, ty: &str) {
    let is_reached = [LOAD_BALANCER, NODE_PORT].contains(&ty) || ty == CLUSTER_IP && is_set(&spec["externalIPs"]);
    let mut forbid = |field: &str, is_allowed: bool, hint: &str| {
        if is_set(&spec[field]) && !is_allowed {
            let message = format!("spec.{field} does not go together with the type {ty}");
            sheet.say(&["spec", field], (message, hint));
        }
    };
    for field in OF_LOAD_BALANCERS {
        forbid(field, ty == LOAD_BALANCER, "leave it out, or write type: LoadBalancer");
    }
    forbid("externalTrafficPolicy", is_reached, "leave it out: such a Service is not reached from outside");
    let is_local = ty == LOAD_BALANCER && spec["externalTrafficPolicy"] == "Local";
    forbid("healthCheckNodePort", is_local, "it needs type: LoadBalancer and externalTrafficPolicy: Local");
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        forbid(field, ty != EXTERNAL_NAME, "leave it out: an external name has no address of the cluster");
    }
    let is_headless = spec["clusterIP"] == "None";
    forbid("clusterIP", !is_headless || ty == CLUSTER_IP, "leave it out: only the type ClusterIP can be headless");
    let is_wrong = |class: &&str| ty == LOAD_BALANCER && !is_label_key(class);
    if let Some(class) = spec["loadBalancerClass"].as_str().filter(is_wrong) {
        let message = format!("spec.loadBalancerClass is {class:?}, which is the name of no class");
        sheet.say(&["spec", "loadBalancerClass"], (message, "write one such as example.com/internal"));
    }
    let name = spec["externalName"].as_str().unwrap_or_default();
    if ty == EXTERNAL_NAME && !NAME.is_match(name.strip_suffix('.').unwrap_or(name)) {
        let message = format!("the type ExternalName needs spec.externalName, which is {name:?}");
        sheet.say(&["spec", "externalName"], (message, "write the DNS name, in lower case"));
    }
}

/// Tells whether a field says something. Numbers that are 0 and empty lists count as not set.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Object(_) => true,
    }
}

fn families(sheet: &mut Sheet<'_>, spec: &Value, ty: &str) {
    let families: Vec<&str> = spec["ipFamilies"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let path = ["spec", "ipFamilies"];
    let distinct: BTreeSet<&str> = families.iter().copied().collect();
    if families.iter().any(|family| !FAMILIES.contains(family)) || distinct.len() < families.len() {
        let message =
            format!("spec.ipFamilies are {}, but must be IPv4 and IPv6, each once at most", families.join(" and "));
        sheet.say(&path, (message, "write [IPv4], [IPv6] or both"));
    } else if families.len() > 1 && spec["ipFamilyPolicy"] == "SingleStack" {
        let message = "spec.ipFamilies has two families, and spec.ipFamilyPolicy is SingleStack".to_owned();
        sheet.say(&path, (message, "write ipFamilyPolicy: PreferDualStack, or keep one family"));
    }
    let first = &spec["clusterIPs"][0];
    if ty != EXTERNAL_NAME && !first.is_null() && *first != spec["clusterIP"] {
        let message = "the first of spec.clusterIPs is not spec.clusterIP".to_owned();
        sheet.say(&["spec", "clusterIPs"], (message, "leave clusterIPs out; the server fills it in"));
    }
}

fn addresses(sheet: &mut Sheet<'_>, spec: &Value, ty: &str) {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let chosen = spec["clusterIP"].as_str().unwrap_or_default();
    if ty != EXTERNAL_NAME && !["", "None"].contains(&chosen) && !is_address(chosen) {
        let message = format!("spec.clusterIP is {chosen:?}, which is no IP address");
        sheet.say(&["spec", "clusterIP"], (message, "leave it out: the cluster chooses one"));
    }
    let mut each = |field: &str, is_right: &dyn Fn(&str) -> bool, (what, hint): (&str, &str)| {
        for (index, value) in spec[field].as_array().into_iter().flatten().enumerate() {
            if let Some(text) = value.as_str().filter(|text| !is_right(text)) {
                let message = format!("spec.{field}[{index}] is {text:?}, which is no {what}");
                sheet.say(&["spec", field, &index.to_string()], (message, hint));
            }
        }
    };
    let is_outside = |text: &str| text.parse().is_ok_and(is_outside);
    each(
        "externalIPs",
        &is_outside,
        ("IP address that others can reach", "write one of the cluster's nodes or routers"),
    );
    if ty == LOAD_BALANCER {
        each(
            "loadBalancerSourceRanges",
            &|text| is_range(text.trim()),
            ("range of addresses", "write one as 10.0.0.0/8"),
        );
    }
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if spec["sessionAffinity"] == "ClientIP"
        && seconds.as_i64().is_some_and(|seconds| !(1..=LONGEST_AFFINITY).contains(&seconds))
    {
        let message = format!("spec.sessionAffinityConfig.clientIP.timeoutSeconds is {seconds}");
        let path = ["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"];
        sheet.say(&path, (message, "write a number from 1 to 86400"));
    }
}

/// Tells whether packets to an address may come from outside.
fn is_outside(address: IpAddr) -> bool {
    let is_near = match address {
        IpAddr::V4(address) => address.is_link_local() || address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.is_unicast_link_local() || address.segments()[0] & 0xff0f == 0xff02,
    };
    !(address.is_unspecified() || address.is_loopback() || is_near)
}

/// Tells whether a text is a range of addresses (CIDR).
pub(super) fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
