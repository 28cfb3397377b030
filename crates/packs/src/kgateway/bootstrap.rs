//! The data that the template of Envoy's bootstrap needs.

use gatewright_engine::pack::Subject;
use serde_json::{Value, json};

use super::parameters::{Kube, Stats, StatsMatcher, StringMatcher};
use super::settings::Settings;
use crate::json::without_nulls;

/// Returns the values of the bootstrap of the proxy called `name`.
pub(super) fn values(settings: &Settings, subject: &Subject<'_>, kube: &Kube, name: &str) -> Value {
    let bootstrap = &kube.envoy_container.bootstrap;
    let mut values = json!({
        "cluster": format!("{name}.{}", subject.namespace),
        "role": format!("kgateway-kube-gateway-api~{}~{}", subject.namespace, subject.gateway.metadata.name),
        "xds": {"host": settings.xds.host, "port": settings.xds.port, "tls": settings.xds.tls.is_some()},
        "answersHealthChecks": kube.pod_template.readiness_probe.is_some(),
        "proxyProtocol": bootstrap.enable_readiness_probe_proxy_protocol == Some(true),
        "stats": stats(&kube.stats),
        "udpMaxQueries": bootstrap.dns_resolver.udp_max_queries.unwrap_or_default(),
    });
    if let Some(format) = &bootstrap.log_format {
        values["logFormat"] = match (&format.json, &format.text) {
            (Some(json), _) => json!({"json_format": json}),
            (None, text) => json!({"text_format": text}),
        };
    }
    values
}

fn stats(stats: &Stats) -> Value {
    let mut values = json!({"enabled": stats.enabled != Some(false), "metrics": stats.route_prefix_rewrite});
    if stats.enable_stats_route == Some(true) {
        values["stats"] = json!(stats.stats_route_prefix_rewrite);
    }
    if let Some(matcher) = stats.matcher.as_ref().and_then(matcher) {
        values["matcher"] = matcher;
    }
    values
}

fn matcher(matcher: &StatsMatcher) -> Option<Value> {
    let list = |name: &str, matchers: &Option<Vec<StringMatcher>>| {
        // Envoy takes no empty list.
        let matchers = matchers.as_ref().filter(|matchers| !matchers.is_empty())?;
        Some(json!({name: {"patterns": matchers.iter().map(pattern).collect::<Vec<_>>()}}))
    };
    list("inclusion_list", &matcher.inclusion_list).or_else(|| list("exclusion_list", &matcher.exclusion_list))
}

fn pattern(matcher: &StringMatcher) -> Value {
    without_nulls(json!({
        "exact": matcher.exact,
        "prefix": matcher.prefix,
        "suffix": matcher.suffix,
        "contains": matcher.contains,
        "safe_regex": matcher.safe_regex.as_ref().map(|regex| json!({"regex": regex})),
        "ignore_case": matcher.ignore_case.filter(|ignore| *ignore),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_matches_as_none() {
        let exact = StringMatcher { exact: Some("a".to_owned()), ..StringMatcher::default() };
        let lists = |inclusion: Vec<StringMatcher>, exclusion: Vec<StringMatcher>| StatsMatcher {
            inclusion_list: Some(inclusion),
            exclusion_list: Some(exclusion),
        };
        assert_eq!(matcher(&lists(Vec::new(), Vec::new())), None);
        let patterns = json!({"patterns": [{"exact": "a"}]});
        assert_eq!(matcher(&lists(Vec::new(), vec![exact.clone()])), Some(json!({"exclusion_list": patterns})));
        assert_eq!(matcher(&lists(vec![exact], Vec::new())), Some(json!({"inclusion_list": patterns})));
    }
}
