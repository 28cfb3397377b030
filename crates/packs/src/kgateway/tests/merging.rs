//! The merging of the parameters of a class and of a Gateway by kgateway: one row for each of its rules.

use std::collections::BTreeSet;

use gatewright_engine::merge::origin::{Layer, LayerName};
use gatewright_engine::merge::{Table, merge};
use gatewright_engine::pack::Pack;
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::yaml;
use serde_json::{Value, json};

const CONTAINERS: [&str; 3] = ["kube.envoyContainer", "kube.sdsContainer", "kube.istio.istioProxyContainer"];

/// A field, what the lower layer says, what the higher one says, and what comes out; `~` is a layer that does not say it.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: [Row; 62] = [
    // What is present counts, also if it is nothing.
    ("kube.deployment.replicas", "2", "0", "0"),
    ("kube.deployment.replicas", "2", "~", "2"),
    ("kube.omitDefaultSecurityContext", "true", "false", "false"),
    ("kube.envoyContainer.bootstrap.logLevel", "debug", "''", "''"),
    ("kube.envoyContainer.bootstrap.dnsResolver.udpMaxQueries", "7", "0", "0"),
    ("kube.envoyContainer.bootstrap.enableReadinessProbeProxyProtocol", "true", "false", "false"),
    ("kube.sdsContainer.bootstrap.logLevel", "debug", "info", "info"),
    (
        "kube.istio.istioProxyContainer",
        "{logLevel: a, istioMetaMeshId: a}",
        "{logLevel: b}",
        "{logLevel: b, istioMetaMeshId: a}",
    ),
    ("kube.istio.istioProxyContainer.istioDiscoveryAddress", "a", "''", "''"),
    ("kube.podTemplate.priorityClassName", "high", "low", "low"),
    ("kube.podTemplate.terminationGracePeriodSeconds", "9", "0", "0"),
    (
        "kube.podTemplate.gracefulShutdown",
        "{enabled: true, sleepTimeSeconds: 9}",
        "{enabled: false}",
        "{enabled: false, sleepTimeSeconds: 9}",
    ),
    ("kube.service", "{type: NodePort, clusterIP: a}", "{type: ClusterIP}", "{type: ClusterIP, clusterIP: a}"),
    ("kube.service.loadBalancerClass", "a", "''", "''"),
    ("kube.service.externalTrafficPolicy", "Local", "Cluster", "Cluster"),
    (
        "kube.stats",
        "{enabled: true, routePrefixRewrite: a}",
        "{enabled: false}",
        "{enabled: false, routePrefixRewrite: a}",
    ),
    // What is replaced as a whole.
    (
        "kube.deployment.strategy",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 1}}",
        "{type: Recreate}",
        "{type: Recreate}",
    ),
    (
        "kube.stats.matcher",
        "{inclusionList: [{exact: a}]}",
        "{exclusionList: [{exact: b}]}",
        "{exclusionList: [{exact: b}]}",
    ),
    ("kube.envoyContainer.bootstrap.logFormat", "{text: a}", "{json: {b: c}}", "{json: {b: c}}"),
    ("kube.service.loadBalancerSourceRanges", "[a]", "[b]", "[b]"),
    ("kube.service.loadBalancerSourceRanges", "[a]", "[]", "[]"),
    // Mappings by key; an empty one clears.
    ("kube.envoyContainer.bootstrap.componentLogLevels", "{a: x, b: x}", "{b: y}", "{a: x, b: y}"),
    ("kube.envoyContainer.bootstrap.componentLogLevels", "{a: x}", "{}", "{}"),
    ("kube.envoyContainer.bootstrap.componentLogLevels", "{a: x}", "~", "{a: x}"),
    ("{container}.resources.limits", "{cpu: 1, memory: 1}", "{cpu: 2}", "{cpu: 2, memory: 1}"),
    ("{container}.resources.limits", "{cpu: 1}", "{}", "{}"),
    ("{container}.resources.requests", "{cpu: 1}", "{}", "{}"),
    ("{container}.resources", "{limits: {cpu: 1}}", "{requests: {cpu: 2}}", "{limits: {cpu: 1}, requests: {cpu: 2}}"),
    ("kube.podTemplate.nodeSelector", "{a: x}", "{}", "{}"),
    ("{labelled}.extraLabels", "{a: x, b: x}", "{b: y}", "{a: x, b: y}"),
    ("{labelled}.extraLabels", "{a: x}", "{}", "{}"),
    ("{labelled}.extraAnnotations", "{a: x}", "{}", "{}"),
    // Lists behind each other; an empty one clears.
    ("kube.envoyContainer.extraArgs", "[a]", "[b, a]", "[a, b, a]"),
    ("kube.envoyContainer.env", "[{name: A}]", "[{name: B}]", "[{name: A}, {name: B}]"),
    ("kube.envoyContainer.env", "[{name: A}]", "[]", "[]"),
    ("kube.envoyContainer.extraVolumeMounts", "[a]", "[b]", "[a, b]"),
    ("{container}.securityContext.capabilities.add", "[A]", "[B]", "[A, B]"),
    ("{container}.securityContext.capabilities.drop", "[ALL]", "[ALL]", "[ALL, ALL]"),
    ("{list}", "[a]", "[b]", "[a, b]"),
    ("{list}", "[a]", "[]", "[]"),
    // A zero says nothing.
    ("{context}.seLinuxOptions.{string}", "a", "''", "a"),
    ("{context}.seLinuxOptions.{string}", "a", "b", "b"),
    ("{context}.seLinuxOptions", "{level: a, user: a}", "{level: b, user: ''}", "{level: b, user: a}"),
    ("{context}.seccompProfile.type", "Localhost", "''", "Localhost"),
    (
        "{context}.seccompProfile",
        "{type: Localhost, localhostProfile: a}",
        "{type: RuntimeDefault}",
        "{type: RuntimeDefault, localhostProfile: a}",
    ),
    ("{probe}.{number}", "5", "0", "5"),
    ("{probe}.{number}", "5", "6", "6"),
    ("kube.istio.customSidecars", "[a]", "[]", "[a]"),
    ("kube.istio.customSidecars", "[a]", "[b]", "[b]"),
    // Present or not, within contexts.
    (
        "{container}.securityContext",
        "{runAsUser: 1, privileged: true}",
        "{runAsUser: 0}",
        "{runAsUser: 0, privileged: true}",
    ),
    (
        "kube.podTemplate.securityContext",
        "{fsGroup: 1, runAsNonRoot: true}",
        "{runAsNonRoot: false}",
        "{fsGroup: 1, runAsNonRoot: false}",
    ),
    (
        "{context}.windowsOptions",
        "{gmsaCredentialSpecName: a, runAsUserName: a}",
        "{gmsaCredentialSpec: b}",
        "{gmsaCredentialSpecName: a, gmsaCredentialSpec: b, runAsUserName: a}",
    ),
    // A probe has one handler, whoever says it, and takes it whole.
    ("{probe}", "{httpGet: {path: /a, port: 1, httpHeaders: [h]}}", "{httpGet: {port: 2}}", "{httpGet: {port: 2}}"),
    (
        "{probe}",
        "{exec: {command: [a, b]}, periodSeconds: 3}",
        "{exec: {command: [c]}}",
        "{exec: {command: [c]}, periodSeconds: 3}",
    ),
    ("{probe}", "{tcpSocket: {port: 1}}", "{grpc: {port: 2}}", "{grpc: {port: 2}}"),
    (
        "{probe}",
        "{tcpSocket: {port: 1}}",
        "{terminationGracePeriodSeconds: 0}",
        "{tcpSocket: {port: 1}, terminationGracePeriodSeconds: 0}",
    ),
    // Tag and digest know of each other.
    ("{container}.image", "{tag: v1, repository: a}", "{digest: d}", "{repository: a, digest: d}"),
    ("{container}.image", "{digest: d}", "{tag: v1}", "{tag: v1}"),
    ("{container}.image", "{digest: d}", "{tag: v1, digest: e}", "{tag: v1, digest: e}"),
    ("{container}.image", "{tag: v1, digest: d}", "{tag: ''}", "{tag: '', digest: d}"),
    // Not merged at all: the lower layer's stays, also if that is none.
    ("{context}", "{appArmorProfile: {type: a}}", "{appArmorProfile: {type: b}}", "{appArmorProfile: {type: a}}"),
    ("{context}", "{runAsUser: 1}", "{appArmorProfile: {type: b}}", "{runAsUser: 1}"),
];

/// Fields that are not merged, in a mapping that both layers have, or only the higher one.
const UNMERGED: [(&str, &str); 3] = [
    ("{container}.resources", "claims"),
    ("kube.podTemplate.securityContext", "supplementalGroupsPolicy"),
    ("kube.podTemplate.securityContext", "seLinuxChangePolicy"),
];

/// Returns what a word in braces stands for.
fn meanings(word: &str) -> Vec<String> {
    let affinity = |rest: &str| format!("kube.podTemplate.affinity.{rest}DuringSchedulingIgnoredDuringExecution");
    let lists = ["imagePullSecrets", "tolerations", "topologySpreadConstraints", "extraVolumes"];
    let of_context = ["securityContext.supplementalGroups", "securityContext.sysctls"];
    let pod = lists.into_iter().chain(of_context).map(|list| format!("kube.podTemplate.{list}"));
    let affinities = ["nodeAffinity.preferred", "podAffinity.required", "podAffinity.preferred"];
    let affinities =
        affinities.into_iter().chain(["podAntiAffinity.required", "podAntiAffinity.preferred"]).map(affinity);
    let terms = [format!("{}.nodeSelectorTerms", affinity("nodeAffinity.required"))];
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    match word {
        "container" => owned(&CONTAINERS),
        "labelled" => owned(&["kube.podTemplate", "kube.service", "kube.serviceAccount"]),
        "context" => CONTAINERS.iter().chain(&["kube.podTemplate"]).map(|at| format!("{at}.securityContext")).collect(),
        "list" => pod.chain(affinities).chain(terms).chain(["kube.service.ports".to_owned()]).collect(),
        "probe" => ["startup", "readiness", "liveness"].map(|name| format!("kube.podTemplate.{name}Probe")).to_vec(),
        "string" => owned(&["level", "role", "type", "user"]),
        "number" => {
            owned(&["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"])
        }
        _ => unreachable!("{word:?} stands for nothing"),
    }
}

/// Returns every path that a path with words in braces stands for.
fn paths(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let (word, after) = rest.split_once('}').expect("a brace is closed");
    let after = paths(after);
    let each = |meaning: String| after.iter().map(move |after| format!("{before}{meaning}{after}")).collect::<Vec<_>>();
    meanings(word).into_iter().flat_map(each).collect()
}

fn pack() -> Pack {
    crate::pack("kgateway", &Value::Null).expect("the built-in pack can be used")
}

fn value(text: &str) -> Value {
    yaml::parse_values(text).expect(text).pop().unwrap_or(Value::Null)
}

/// Puts a value at a path of fields separated by dots.
fn at(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, field| json!({field: value}))
}

fn check(table: &Table, path: &str, lower: &str, higher: &str, expected: &str) {
    let layers = [lower, higher].map(|text| {
        let text = yaml::to_string(&at(path, value(text)));
        yaml::parse(&text).expect(&text).remove(0)
    });
    let [lower, higher] = layers.each_ref().map(|node| Layer::new(LayerName::Class, "a.yaml", node));
    let merged = merge(&[lower, higher], table).to_value();
    let pointer = format!("/{}", path.replace('.', "/"));
    assert_eq!(merged.pointer(&pointer), Some(&value(expected)), "{path}: {layers:?}");
}

#[test]
fn parameters_merge_as_in_kgateway() {
    let table = pack().own.table;
    for (pattern, lower, higher, expected) in ROWS {
        for path in paths(pattern) {
            check(&table, &path, lower, higher, expected);
        }
    }
    for (pattern, field) in UNMERGED {
        for path in paths(pattern) {
            let higher = format!("{{{field}: b}}");
            check(&table, &path, &format!("{{{field}: a}}"), &higher, &format!("{{{field}: a}}"));
            check(&table, &path, "{other: a}", &higher, "{other: a}");
            check(&table, &path, "~", &higher, &higher);
        }
    }
}

#[test]
fn every_line_of_the_table_has_a_row() {
    let Manifest { merge, .. } = pack().manifest;
    let tested: BTreeSet<String> = ROWS.iter().flat_map(|row| paths(row.0)).collect();
    let of_contexts = paths("{context}").into_iter().map(|path| format!("{path}.appArmorProfile"));
    let unmerged = UNMERGED.iter().flat_map(|(path, field)| paths(&format!("{path}.{field}")));
    let tested: BTreeSet<String> = tested.into_iter().chain(of_contexts).chain(unmerged).collect();
    let listed = merge.iter().flat_map(|line| &line.paths);
    let missing: Vec<&String> = listed.filter(|path| !tested.contains(*path)).collect();
    assert_eq!(missing, [""; 0], "lines of pack.yaml without a row");
}
