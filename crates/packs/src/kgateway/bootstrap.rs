//! The data that the template of Envoy's bootstrap needs.

use gatewright_engine::pack::Subject;
use serde_json::{Map, Value, json};

use super::parameters::{Kube, Stats, StatsMatcher, StringMatcher};
use super::settings::Settings;

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
    let list = |matchers: &[StringMatcher]| json!({"patterns": matchers.iter().map(pattern).collect::<Vec<_>>()});
    // Envoy takes no empty list.
    let said = |list: &Option<Vec<StringMatcher>>| list.clone().filter(|matchers| !matchers.is_empty());
    match (said(&matcher.inclusion_list), said(&matcher.exclusion_list)) {
        (Some(matchers), _) => Some(json!({"inclusion_list": list(&matchers)})),
        (None, Some(matchers)) => Some(json!({"exclusion_list": list(&matchers)})),
        (None, None) => None,
    }
}

fn pattern(matcher: &StringMatcher) -> Value {
    let mut pattern = Map::new();
    let fields = [
        ("exact", &matcher.exact),
        ("prefix", &matcher.prefix),
        ("suffix", &matcher.suffix),
        ("contains", &matcher.contains),
    ];
    for (field, text) in fields {
        if let Some(text) = text {
            pattern.insert(field.to_owned(), Value::from(text.as_str()));
        }
    }
    if let Some(regex) = &matcher.safe_regex {
        pattern.insert("safe_regex".to_owned(), json!({"regex": regex}));
    }
    if matcher.ignore_case == Some(true) {
        pattern.insert("ignore_case".to_owned(), Value::Bool(true));
    }
    Value::Object(pattern)
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
