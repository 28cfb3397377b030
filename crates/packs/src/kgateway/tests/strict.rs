//! Tests of what an API server would not take of a `GatewayParameters`, and what it would.

use serde_json::{Value, json};

use super::{packs, rendering};

/// A `spec.kube`, and what is said about it after `spec.`; nothing if it is in order.
#[expect(clippy::too_many_lines, reason = "a table of what is checked")]
fn rows() -> Vec<(Value, &'static str)> {
    let envoy = |field: &str, value: Value| json!({"envoyContainer": {field: value}});
    let format = |value: Value| json!({"envoyContainer": {"bootstrap": {"logFormat": value}}});
    let stats = |value: Value| json!({"stats": {"matcher": value}});
    let matcher = |value: Value| json!({"stats": {"matcher": {"inclusionList": [value]}}});
    let pod = |field: &str, value: Value| json!({"podTemplate": {field: value}});
    let service = |field: &str, value: Value| json!({"service": {field: value}});
    let limit = |value: Value| json!({"envoyContainer": {"resources": {"limits": {"cpu": value}}}});
    let port = |value: Value| json!({"service": {"ports": [value]}});
    let args = |count: usize, length: usize| envoy("extraArgs", json!(vec!["a".repeat(length); count]));
    vec![
        (json!({}), ""),
        (args(1, 1), ""),
        (args(32, 256), ""),
        (args(0, 0), "kube.envoyContainer.extraArgs has 0 items, but must have at least 1"),
        (args(33, 1), "kube.envoyContainer.extraArgs has 33 items, but must have at most 32"),
        (args(1, 0), "kube.envoyContainer.extraArgs[0] has 0 characters, but must have at least 1"),
        (args(1, 257), "kube.envoyContainer.extraArgs[0] has 257 characters, but must have at most 256"),
        (format(json!({"text": "%v"})), ""),
        (format(json!({"json": {}})), ""),
        (format(json!({"json": {}, "text": null})), ""),
        (format(json!({})), "kube.envoyContainer.bootstrap.logFormat must have exactly one of json, text"),
        (
            format(json!({"json": {}, "text": ""})),
            "kube.envoyContainer.bootstrap.logFormat has json and text, but must have exactly one of json, text",
        ),
        (
            format(json!({"txt": "%v"})),
            "unknown field \"txt\" in spec.kube.envoyContainer.bootstrap.logFormat (did you mean \"text\"?)",
        ),
        (stats(json!({"exclusionList": []})), ""),
        (stats(json!({})), "kube.stats.matcher must have exactly one of inclusionList, exclusionList"),
        (
            stats(json!({"exclusionList": [], "inclusionList": []})),
            "kube.stats.matcher has exclusionList and inclusionList, but must have exactly one of ",
        ),
        (
            stats(json!({"exclusionList": vec![json!({"exact": "a"}); 17]})),
            "kube.stats.matcher.exclusionList has 17 items, but must have at most 16",
        ),
        (matcher(json!({"suffix": "a", "ignoreCase": true})), ""),
        (
            matcher(json!({"ignoreCase": true})),
            "kube.stats.matcher.inclusionList[0] must have exactly one of exact, prefix, suffix, contains, safeRegex",
        ),
        (
            matcher(json!({"exact": "a", "safeRegex": "b"})),
            "kube.stats.matcher.inclusionList[0] has exact and safeRegex, but must have exactly one of ",
        ),
        (json!({"deployment": {"replicas": -1}}), "kube.deployment.replicas is -1, but must be at least 0"),
        (
            json!({"deployment": {"replicas": 3_000_000_000_u32}}),
            "kube.deployment.replicas is 3000000000, but must be between -2147483648 and 2147483647",
        ),
        (
            json!({"envoyContainer": {"bootstrap": {"dnsResolver": {"udpMaxQueries": -1}}}}),
            "kube.envoyContainer.bootstrap.dnsResolver.udpMaxQueries is -1, but must be ",
        ),
        (pod("gracefulShutdown", json!({"sleepTimeSeconds": 31_536_000})), ""),
        (
            pod("gracefulShutdown", json!({"sleepTimeSeconds": 31_536_001})),
            "kube.podTemplate.gracefulShutdown.sleepTimeSeconds is 31536001, but must be between 0 and 31536000",
        ),
        (
            pod("terminationGracePeriodSeconds", json!(-1)),
            "kube.podTemplate.terminationGracePeriodSeconds is -1, but must be between 0 and 31536000",
        ),
        (
            pod("startupProbe", json!({"periodSeconds": 2_147_483_648_u32})),
            "kube.podTemplate.startupProbe.periodSeconds is 2147483648, but must be between -2147483648 and 2147483647",
        ),
        (pod("tolerations", json!([{"tolerationSeconds": 2_147_483_648_u32}])), ""),
        (
            pod("topologySpreadConstraints", json!([{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}])),
            "kube.podTemplate.topologySpreadConstraints[0] has no \"topologyKey\"",
        ),
        (service("type", json!("ExternalName")), ""),
        (service("type", json!("None")), "kube.service.type is the string \"None\", but must be one of ClusterIP, "),
        (port(json!({"port": 65535, "nodePort": 1})), ""),
        (port(json!({"port": 0})), "kube.service.ports[0].port is 0, but must be between 1 and 65535"),
        (port(json!({"port": 65536})), "kube.service.ports[0].port is 65536, but must be between 1 and 65535"),
        (
            port(json!({"port": 80, "nodePort": 0})),
            "kube.service.ports[0].nodePort is 0, but must be between 1 and 65535",
        ),
        (port(json!({"nodePort": 1})), "kube.service.ports[0] has no \"port\""),
        (limit(json!(1)), ""),
        (limit(json!("1.5")), ""),
        (limit(json!("128974848")), ""),
        (limit(json!("12e6")), ""),
        (limit(json!("-.5Ki")), ""),
        (
            limit(json!("1 Gi")),
            "kube.envoyContainer.resources.limits.cpu is \"1 Gi\", but must be a quantity, such as 500m, 1.5 or 2Gi",
        ),
        (
            limit(json!(0.5)),
            "kube.envoyContainer.resources.limits.cpu is the number 0.5, but must be a quantity, such as 500m, ",
        ),
        (envoy("env", json!([{"value": "a"}])), "kube.envoyContainer.env[0] has no \"name\""),
        (
            envoy("extraVolumeMounts", json!([{"name": "a"}])),
            "kube.envoyContainer.extraVolumeMounts[0] has no \"mountPath\"",
        ),
        (json!({"istio": {"customSidecars": [{"image": "a"}]}}), "kube.istio.customSidecars[0] has no \"name\""),
    ]
}

fn check(spec: &str, expected: &str) {
    let rendering = rendering(&packs(&Value::Null), spec);
    let problems: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
    if expected.is_empty() {
        assert!(!problems.iter().any(|problem| problem.contains("GatewayParameters")), "{spec}: {problems:?}");
        return;
    }
    let [of_the_gateway, of_the_parameters] = problems.as_slice() else {
        unreachable!("{spec}: {problems:?}");
    };
    let broken = "InvalidParameters: its GatewayParameters infra/edge is broken, see parameters.yaml:1 [GW002]";
    assert_eq!(of_the_gateway, &format!("gateway.yaml:8: Gateway infra/edge: {broken}"));
    let said = of_the_parameters.strip_prefix("parameters.yaml:4: GatewayParameters infra/edge: ");
    let said = said.map(|said| said.strip_prefix("spec.").unwrap_or(said)).unwrap_or_default();
    assert!(said.starts_with(expected), "{spec}: {of_the_parameters}");
}

#[test]
fn parameters_are_as_strict_as_the_api_server() {
    for (kube, expected) in rows() {
        check(&json!({"kube": kube}).to_string(), expected);
    }
}

#[test]
fn a_gateway_is_ours_or_somebody_elses() {
    check("{selfManaged: {}}", "");
    check("{selfManaged: {by: {nobody: 1}}}", "");
    check("{selfManaged: {}, kube: null}", "");
    check("{}", "spec must have exactly one of kube, selfManaged");
    check(
        "{selfManaged: {}, kube: {}}",
        "spec has selfManaged and kube, but must have exactly one of kube, selfManaged",
    );
    check("{selfManaged: true}", "selfManaged is the boolean true, but must be an object");
    check("{kub: {}}", "unknown field \"kub\" in spec (did you mean \"kube\"?)");
}
