use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::pack::Pack;
use crate::tree::Tree;
use crate::unit::{Options, Source};

/// A pack that makes a Service of each Gateway of class `acme`, and takes parameters.
fn packs() -> Packs {
    let manifest = "{name: acme, controllers: [acme.example.com/acme], classes: {acme: acme.example.com/acme}, \
                    parameters: {group: acme.example.com, kind: Acme, versions: [v1]}, templates: [service.yaml]}";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: {{ name | json }}}}";
    let files = BTreeMap::from([("pack.yaml", manifest), ("service.yaml", service)]);
    Packs::new(vec![Pack::declared(&files, &Value::Null).expect("it is sound")]).expect("it is sound")
}

/// Checks a source.
fn render(text: &str, packs: &Packs) -> Rendering {
    render_for(text, packs, true)
}

fn render_for(text: &str, packs: &Packs, is_check: bool) -> Rendering {
    let mut source = Source::load(&Tree::from_iter([("a.yaml", text)]), packs, None);
    // As the daemon does it, where such documents are not applied.
    source.specs.forget_unclaimed();
    source.render(packs, &Options { is_check, ..Options::default() })
}

/// Each finding as `GW007 error 6`: the rule, whether it holds, and the line.
fn findings(rendering: &Rendering) -> Vec<String> {
    let word = |problem: &Problem| if problem.scope == Scope::Warning { "warning" } else { "error" };
    let rule = |problem: &Problem| problem.rule.map_or_else(|| problem.message.clone(), |rule| rule.to_string());
    let line = |problem: &Problem| format!("{} {} {}", rule(problem), word(problem), problem.place.line);
    rendering.problems.iter().map(line).collect()
}

fn gateway(class: &str, more: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: edge, namespace: shop}}\nspec:\n  \
         gatewayClassName: {class}\n{more}\n"
    )
}

fn set(more: &str) -> String {
    format!(
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {{name: more, namespace: shop}}\n\
         spec: {{parentRef: {{name: edge}}, listeners: [{{name: more, port: 9090, {more}}}]}}\n"
    )
}

const CLASS: &str = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: other}\n\
                     spec: {controllerName: example.com/other}\n";

const HTTP: &str = "  listeners: [{name: http, port: 80, protocol: HTTP}]";

/// Checks the findings in a Gateway of our own class, with more documents after it.
#[track_caller]
fn check(spec: &str, more: &str, expected: &[&str]) {
    let rendering = render(&format!("{}{more}", gateway("acme", spec)), &packs());
    assert_eq!(findings(&rendering), expected, "{spec}\n{more}");
    let is_held = expected.iter().any(|finding| finding.contains("error"));
    assert_eq!(rendering.units.is_empty(), is_held, "{spec}: an error holds the unit, and a warning does not");
    assert_eq!(rendering.broken.len(), usize::from(is_held), "{spec}");
}

#[test]
fn the_table_is_in_order() {
    for (rule, next) in ALL.iter().zip(&ALL[1..]) {
        assert!(rule.id < next.id, "{} stands before {}", rule.id, next.id);
    }
    for rule in &ALL {
        let is_kebab = rule.name.chars().all(|char| char.is_ascii_lowercase() || char == '-');
        assert!(is_kebab && rule.summary.ends_with('.') && rule.condition.is_empty() == rule.reason.is_empty());
        assert!(ALL.iter().filter(|other| other.name == rule.name).count() == 1, "{}", rule.name);
    }
}

#[test]
fn an_id_is_read_as_it_is_written() {
    assert_eq!(serde_json::to_value(CLASS_NOT_FOUND).expect("it is text"), "GW001");
    // Reports of a later release may have rules that this one does not know.
    let later: Id = serde_json::from_value("GW999".into()).expect("it is an id");
    assert_eq!((later.to_string(), find(later)), ("GW999".to_owned(), None));
    for text in ["GW1", "GW0001", "gw001", "GW-01", "1"] {
        assert_eq!(Id::try_from(text.to_owned()), Err(IdError(text.to_owned())));
    }
}

#[test]
fn a_listener_that_is_lost_takes_no_other_with_it() {
    for (one, rule) in [("protocol: Invalid", "GW007"), ("protocol: HTTPS", "GW009")] {
        let alone = format!("  listeners:\n  - {{name: a, port: 80, {one}}}");
        check(&alone, "", &[&format!("{rule} error 7")]);
        let beside = format!("{alone}\n  - {{name: b, port: 81, protocol: HTTP}}");
        check(&beside, "", &[&format!("{rule} warning 7")]);
    }
    // A listener set may have others.
    let spec = "  allowedListeners: {namespaces: {from: Same}}\n  listeners: [{name: a, port: 80, protocol: Invalid}]";
    check(spec, &set("protocol: HTTP"), &["GW007 warning 7"]);
}

#[test]
fn protocols_that_exclude_each_other_share_no_port() {
    let two = |a: &str, b: &str| {
        let line = |name: &str, more: &str| format!("\n  - {{name: {name}, port: 80, {more}}}");
        format!("  listeners:{}{}", line("a", a), line("b", b))
    };
    let (ended, passed) = ("hostname: a.b, tls: {options: {a.b/c: d}}", "hostname: c.d, tls: {mode: Passthrough}");
    for (a, b, expected) in [
        ("protocol: HTTP", "protocol: TCP", Some("GW017 error 8")),
        ("protocol: HTTP", &format!("protocol: HTTPS, {ended}"), Some("GW018 warning 8")),
        (&format!("protocol: TLS, {ended}"), &format!("protocol: TLS, {passed}"), Some("GW019 warning 8")),
        ("protocol: UDP", "protocol: TCP", Some("GW020 warning 8")),
        (&format!("protocol: TLS, {ended}"), &format!("protocol: HTTPS, {ended}"), None),
        ("protocol: HTTP", "hostname: a.b, protocol: HTTP", None),
        ("protocol: UDP", "protocol: example.com/quic", None),
    ] {
        check(&two(a, b), "", &expected.into_iter().collect::<Vec<_>>());
    }
    let third = format!("{}\n  - {{name: c, port: 81, protocol: HTTP}}", two("protocol: HTTP", "protocol: TCP"));
    check(&third, "", &["GW017 warning 8"]);
    let third = format!("{}\n  - {{name: c, port: 80, protocol: TCP}}", two("protocol: UDP", "protocol: HTTP"));
    check(&third, "", &["GW020 warning 8", "GW020 warning 9", "GW017 warning 9"]);
}

const HTTPS: &str = "  listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}]";

#[test]
fn a_secret_is_looked_for_where_it_is_made() {
    check(HTTPS, "", &["GW010 warning 6"]);
    let document = |kind: &str, more: &str| format!("---\napiVersion: {kind}\nmetadata: {{{more}\n");
    for made in [
        document("v1\nkind: Secret", "name: cert, namespace: shop}"),
        document("a.b/v1\nkind: ExternalSecret", "name: cert, namespace: shop}"),
        document("a.b/v1\nkind: ExternalSecret", "name: x, namespace: shop}\nspec: {target: {name: cert}}"),
        document("a.b/v1\nkind: Certificate", "name: x, namespace: shop}\nspec: {secretName: cert}"),
    ] {
        check(HTTPS, &made, &[]);
        check(HTTPS, &made.replace("shop", "other"), &["GW010 warning 6"]);
    }
    let asked =
        gateway("acme", HTTPS).replace("namespace: shop", "namespace: shop, annotations: {a.b/cluster-issuer: c}");
    assert_eq!(findings(&render(&asked, &packs())), [""; 0]);
    let near = document("v1\nkind: Secret", "name: certs, namespace: shop}");
    let problems = render(&(gateway("acme", HTTPS) + &near), &packs()).problems;
    assert_eq!(problems[0].hint.as_deref(), Some("did you mean \"certs\"?"));
}

#[test]
fn a_reference_into_another_namespace_needs_a_grant() {
    let spec = HTTPS.replace("name: cert", "name: cert, namespace: other");
    check(&spec, "", &["GW012 warning 6"]);
    let grant = |from: &str, to: &str| {
        format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {{name: a, namespace: other}}\n\
             spec: {{from: [{{group: gateway.networking.k8s.io, {from}}}], to: [{{group: '', {to}}}]}}\n"
        )
    };
    let (from, to) = ("kind: Gateway, namespace: shop", "kind: Secret");
    // Then it is looked for.
    check(&spec, &grant(from, to), &["GW010 warning 6"]);
    check(&spec, &grant(from, "kind: Secret, name: cert"), &["GW010 warning 6"]);
    for (from, to) in [
        (from, "kind: Secret, name: others"),
        (from, "kind: ConfigMap"),
        ("kind: Gateway, namespace: other", to),
        ("kind: HTTPRoute, namespace: shop", to),
    ] {
        check(&spec, &grant(from, to), &["GW012 warning 6"]);
    }
    let source = Source::load(&Tree::from_iter([("a.yaml", gateway("acme", &spec))]), &packs(), Some("all"));
    let rendering = source.render(&packs(), &Options { is_check: true, ..Options::default() });
    assert_eq!(findings(&rendering), ["GW010 warning 6"], "all are in one namespace");
}

#[test]
fn a_round_says_nothing_of_what_a_cluster_may_have() {
    let elsewhere = HTTPS.replace("name: cert", "name: cert, namespace: other");
    let secret = |name: &str, namespace: &str| {
        format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}}}\n")
    };
    let round =
        |spec: &str, more: &str, packs: &Packs| findings(&render_for(&(gateway("acme", spec) + more), packs, false));
    assert_eq!(round(HTTPS, "", &packs()), [""; 0]);
    assert_eq!(round(&elsewhere, "", &packs()), [""; 0]);
    assert_eq!(round(HTTPS, &secret("certs", "shop"), &packs()), ["GW010 warning 6"], "a slip");
    assert_eq!(round(&elsewhere, &secret("cert", "other"), &packs()), ["GW012 warning 6"], "it is in the source");
    let asked = packs().with_severities(Severities([(Id(10), Some(Severity::Error))].into()));
    assert_eq!(round(HTTPS, "", &asked), ["GW010 error 6"]);
}

#[test]
fn clients_are_validated_by_what_holds_authorities() {
    let spec = |reference: &str| {
        let tls = "  tls: {frontend: {default: {validation: {caCertificateRefs: [";
        format!(
            "{}\n{tls}{reference}]}}}}}}}}",
            HTTPS.replace("certificateRefs: [{name: cert}]", "options: {a.b/c: d}")
        )
    };
    check(&spec("{group: '', kind: Secret2, name: a}"), "", &["GW014 error 7"]);
    check(&spec("{group: '', kind: ConfigMap, name: a}"), "", &["GW015 warning 7"]);
    let both = "{group: '', kind: Secret2, name: a}, {group: '', kind: ConfigMap, name: a}";
    check(&spec(both), "", &["GW014 warning 7", "GW015 warning 7"]);
    check(&spec("{group: a.b, kind: Bundle, name: a}"), "", &[]);
}

#[test]
fn what_others_render_is_judged_by_the_standard_alone() {
    let of_others = |spec: &str| findings(&render(&format!("{}{CLASS}", gateway("other", spec)), &packs()));
    let address = format!("{HTTP}\n  addresses: [{{type: a.b/c, value: d}}]");
    assert_eq!(of_others(&address), [""; 0]);
    check(&address, "", &["GW005 error 7"]);
    let bundle = HTTPS.replace("name: cert", "group: a.b, kind: Bundle, name: cert");
    assert_eq!(of_others(&bundle), [""; 0]);
    check(&bundle, "", &["GW011 warning 6"]);
    // It may know a protocol that the standard does not.
    assert_eq!(of_others(&HTTP.replace("protocol: HTTP", "protocol: PROXY")), ["GW007 warning 6"]);
    assert_eq!(of_others(&format!("{HTTP}\n  addresses: [{{type: IPAddresses}}]")), ["GW006 error 7"]);
    assert_eq!(of_others(&HTTP.replace("HTTP}", "HTTP, hostname: 1.2.3.4}")), ["GW023 error 6"]);
    let label = format!("{HTTP}\n  infrastructure: {{labels: {{gateway.networking.k8s.io/a: b}}}}");
    assert_eq!(of_others(&label), ["GW021 error 7"]);
}

#[test]
fn a_class_names_the_namespace_that_its_parameters_have() {
    let of_class = |group: &str, more: &str, others: &str| {
        let parameters = format!("parametersRef: {{group: '{group}', name: a, {more}}}");
        let class = CLASS.replace("example.com/other", &format!("example.com/other, {parameters}"));
        findings(&render(&format!("{class}{others}"), &packs()))
    };
    let definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n\
                      spec: {group: a.b, scope: SCOPE, names: {kind: ClusterThing}}\n";
    let (cluster, namespaced) = (definition.replace("SCOPE", "Cluster"), definition.replace("SCOPE", "Namespaced"));
    assert_eq!(of_class("", "kind: ConfigMap", ""), ["GW003 error 5"]);
    assert_eq!(of_class("", "kind: ConfigMap, namespace: c", ""), [""; 0]);
    assert_eq!(of_class("a.b", "kind: Thing, namespace: c", ""), [""; 0]);
    assert_eq!(of_class("a.b", "kind: Thing", ""), [""; 0]);
    assert_eq!(of_class("a.b", "kind: ClusterThing, namespace: c", ""), ["GW004 warning 5"]);
    assert_eq!(of_class("a.b", "kind: ClusterThing, namespace: c", &cluster), ["GW004 error 5"]);
    assert_eq!(of_class("a.b", "kind: ClusterThing, namespace: c", &namespaced), [""; 0]);
    assert_eq!(of_class("a.b", "kind: ClusterThing", &namespaced), ["GW003 error 5"]);
}

#[test]
fn what_a_pack_says_in_its_own_words_is_said_once() {
    let parameters = "parametersRef: {group: acme.example.com, kind: Acme, name: a}";
    let class = CLASS.replace("example.com/other", &format!("acme.example.com/acme, {parameters}"));
    let class = class.replace("name: other", "name: ours");
    let rendering = render(&(gateway("ours", HTTP) + &class), &packs());
    assert_eq!(findings(&rendering), ["GW003 error 11"]);
    assert!(rendering.problems[0].message.starts_with("InvalidParameters: "));
}

#[test]
fn a_listener_set_does_not_hold_the_gateway_of_others() {
    let address = set("protocol: HTTP, hostname: 1.2.3.4");
    let spec = |from: &str| format!("{HTTP}\n  allowedListeners: {{namespaces: {{{from}}}}}");
    check(&spec("from: Same"), &address, &["GW023 warning 12"]);
    let packs = packs().with_severities(Severities([(table::HOSTNAME_IS_ADDRESS, Some(Severity::Error))].into()));
    let rendering = render(&(gateway("acme", &spec("from: Same")) + &address), &packs);
    assert_eq!((findings(&rendering), rendering.units.len()), (vec!["GW023 error 12".to_owned()], 0));
}

#[test]
fn a_broken_listener_set_holds_the_gateway_only_where_that_lets_it_attach() {
    let broken = set("protocol: HTTP").replace("9090", "90900");
    let units = |spec: &str| render(&(gateway("acme", spec) + &broken), &packs()).units.len();
    let from = |from: &str| format!("{HTTP}\n  allowedListeners: {{namespaces: {{from: {from}}}}}");
    assert_eq!([units(HTTP), units(&from("None"))], [1, 1]);
    assert_eq!([units(&from("Same")), units(&from("All"))], [0, 0]);
}

#[test]
fn a_listener_set_shares_no_port_with_what_excludes_it() {
    let spec = format!("{HTTP}\n  allowedListeners: {{namespaces: {{from: Same}}}}");
    let more = |port: u16, protocol: &str| set(&format!("protocol: {protocol}")).replace("9090", &port.to_string());
    check(&spec, &more(80, "TCP"), &["GW017 warning 12"]);
    check(&spec, &more(81, "TCP"), &[]);
    check(&spec, &more(80, "example.com/raw"), &[]);
}

#[test]
fn a_listener_set_needs_a_gateway_that_allows_it() {
    let more = set("protocol: HTTP");
    let spec = |from: &str| format!("{HTTP}\n  allowedListeners: {{namespaces: {{from: {from}}}}}");
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {a: b}}\n";
    check(HTTP, &more, &["GW025 warning 11"]);
    check(&spec("All"), &more, &[]);
    check(&spec("None"), &more, &["GW025 warning 12"]);
    check(
        &spec("Same"),
        &more.replace("namespace: shop", "namespace: other").replace("name: edge", "name: edge, namespace: shop"),
        &["GW025 warning 12"],
    );
    check(&spec("Selector, selector: {matchLabels: {a: b}}"), &format!("{more}{namespace}"), &[]);
    check(&spec("Selector, selector: {matchLabels: {a: c}}"), &format!("{more}{namespace}"), &["GW025 warning 12"]);
    check(&spec("Selector, selector: {matchLabels: {a: c}}"), &more, &[]);
    assert_eq!(findings(&render(&more, &packs())), ["GW025 warning 5"]);
}

#[test]
fn a_config_file_has_the_last_word() {
    let text = gateway("acme", &HTTP.replace("HTTP}", "HTTP, hostname: 1.2.3.4}"));
    for (severity, expected, units) in [
        (None, vec![], 1),
        (Some(Severity::Warning), vec!["GW023 warning 6"], 1),
        (Some(Severity::Error), vec!["GW023 error 6"], 0),
    ] {
        let packs = packs().with_severities(Severities([(table::HOSTNAME_IS_ADDRESS, severity)].into()));
        let rendering = render(&text, &packs);
        assert_eq!(findings(&rendering), expected);
        assert_eq!((rendering.units.len(), rendering.broken.len()), (units, 1 - units));
    }
    // What is not said loses no listener.
    let text =
        gateway("acme", "  listeners:\n  - {name: a, port: 80, protocol: A}\n  - {name: b, port: 81, protocol: HTTPS}");
    let packs = packs().with_severities(Severities([(table::UNSUPPORTED_PROTOCOL, None)].into()));
    assert_eq!(findings(&render(&text, &packs)), ["GW009 warning 8"]);
}

#[test]
fn documents_alone() {
    let with = |more: &str| format!("{HTTP}\n  {more}");
    for (spec, expected) in [
        (HTTP.replace("HTTP}", "HTTP, allowedRoutes: {namespaces: {from: Selector}}}"), "GW022 error 6"),
        (with("allowedListeners: {namespaces: {from: Selector, selector: null}}"), "GW022 error 7"),
        (with("infrastructure: {labels: {gateway.networking.k8s.io/gateway-name: a}}"), "GW021 warning 7"),
        (with("infrastructure: {annotations: {gateway.networking.k8s.io/a: a}}"), "GW021 warning 7"),
        (with("addresses: [{type: xIPAddress, value: 1.2.3.4}]"), "GW006 error 7"),
        (HTTP.replace("HTTP}", "HTTP, allowedRoutes: {kinds: [{kind: HttpRoute}]}}"), "GW008 warning 6"),
        (HTTP.replace("HTTP}", "UDP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}"), "GW008 warning 6"),
        (with("tls: {backend: {clientCertificateRef: {name: a}}}"), "GW013 warning 7"),
        (with("tls: {backend: {clientCertificateRef: {kind: Key, name: a}}}"), "GW013 warning 7"),
        (with("tls: {frontend: {default: {}, perPort: [{port: 80, tls: {}}]}}"), "GW024 warning 7"),
    ] {
        check(&spec, "", &[expected]);
    }
    for spec in [
        HTTP.replace("HTTP}", "HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {}}}}"),
        HTTP.replace("HTTP}", "HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}, {group: a.b, kind: Route}]}}"),
        HTTP.replace("HTTP}", "HBONE}"),
        HTTP.replace("HTTP}", "a.b/C, allowedRoutes: {kinds: [{kind: TCPRoute}]}}"),
        with("addresses: [{type: IPAddress}]"),
        with("addresses: [{value: 1.2.3.4}, {type: Hostname, value: a.b}]"),
    ] {
        check(&spec, "", &[]);
    }
}

#[test]
fn a_service_cannot_have_every_name_of_a_gateway() {
    for (name, expected) in [("a-b", 0), ("a.b", 1), ("1a", 1), (&*"a".repeat(63), 0)] {
        let text = gateway("acme", HTTP).replace("name: edge", &format!("name: {name}"));
        let rendering = render(&text.replace("name: 1a", "name: '1a'"), &packs());
        assert_eq!(findings(&rendering), vec!["GW026 warning 3"; expected], "{name}");
        assert_eq!(rendering.units.len(), 1);
    }
}
